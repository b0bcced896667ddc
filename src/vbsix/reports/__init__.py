"""Reports of runs: one page that holds all it shows."""
