"""Worlds, searches, commands and runs for people: on a terminal, as SVG, in reports and in notebooks."""
