"""Data: SCONE's files, a synthetic corpus, words and their vectors, and padded arrays of them."""
