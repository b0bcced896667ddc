"""A run: its folder, the loop that trains it, checkpoints, metrics, and the progress display."""
