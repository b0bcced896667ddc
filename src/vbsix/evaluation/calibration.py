"""How well confidence predicts accuracy."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

BINS = 10
"""Of equal width, to compare confidence with accuracy."""


@dataclass(frozen=True)
class Bin:
    """Predictions of about the same confidence."""

    low: float
    high: float
    count: int
    confidence: float | None
    """Their mean confidence."""
    accuracy: float | None
    """The share of them that is correct."""


@dataclass(frozen=True)
class Calibration:
    """Confidence and accuracy, over all predictions of all seeds."""

    bins: list[Bin]
    error: float
    """The expected calibration error: the mean distance of the bins' confidence and accuracy."""


def calibrate(confidences: Sequence[float], correctness: Sequence[bool]) -> Calibration:
    """Compares the confidence of predictions with their accuracy."""
    confidence, correct = np.array(confidences), np.array(correctness)
    place = np.minimum((confidence * BINS).astype(int), BINS - 1)
    bins, error = [], 0.0
    for number in range(BINS):
        inside = place == number
        means = (float(confidence[inside].mean()), float(correct[inside].mean())) if inside.any() else (None, None)
        if means[0] is not None and means[1] is not None:
            error += abs(means[0] - means[1]) * float(inside.mean())
        bins.append(Bin(number / BINS, (number + 1) / BINS, int(inside.sum()), *means))
    return Calibration(bins, error)
