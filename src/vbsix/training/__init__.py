"""Training: Algorithm 2 (`step.py`), a file for each objective, and many seeds at once (`seeds.py`)."""
