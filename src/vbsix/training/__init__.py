"""Training: Algorithm 2 (`step.py`), a file for each objective, and many learners at once (`chunk.py`)."""
