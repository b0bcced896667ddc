"""Worlds, their languages and executors."""
