"""Slow plain-Python twins of compiled code, written to be read beside the design."""
