"""The speed of the published code, kelvinguu/lang2program, on which the paper's is built.

It was measured with MML, a beam of 32, batches of 8 and the paper's training examples, beams being full, in one process
on two quiet CPU cores (AMD EPYC). The first of two figures is of the code as published, with Python 2.7 and
TensorFlow 0.12, the second of the same search code ported to Python 3.11 and TensorFlow 2.21.
"""

from __future__ import annotations

TRAINING = {"scene": (5.5, 3.4), "alchemy": (3.5, 2.0), "tangrams": (3.2, 1.9)}
"""Seconds a training step."""
PREDICTION = {"scene": (0.68, 0.37), "alchemy": (0.60, 0.30), "tangrams": (0.33, 0.20)}
"""Seconds to predict an example of 5 utterances, 8 at a time."""
EXECUTOR = 0.34e6, 0.55e6
"""Tokens a second."""
