"""Parsers: loading them, parsing with them, and evaluating them."""
