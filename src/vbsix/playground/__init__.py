"""The playground: a page in the browser to try trained parsers, and the JSON API behind it."""
