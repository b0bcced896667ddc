"""Numbers as text."""

from __future__ import annotations

import statistics
from collections.abc import Sequence

MISSING = "-"
"""Stands for a number that is not known."""


def known(values: Sequence[float | None]) -> list[float]:
    """The values that are known."""
    return [value for value in values if value is not None]


def mean(values: Sequence[float | None]) -> float | None:
    """The mean of the known values; None if there are none."""
    return statistics.mean(found) if (found := known(values)) else None


def percent(value: float | None) -> str:
    """A share as a percentage, without the sign."""
    return MISSING if value is None else f"{100 * value:.1f}"


def deviation(values: Sequence[float]) -> float:
    """The standard deviation of a sample, which divides by n - 1; 0 for a single value."""
    return statistics.stdev(values) if len(values) > 1 else 0.0


def mean_std(values: Sequence[float | None], scale: float = 1) -> str:
    """The mean and the standard deviation over the known values, such as `51.8 ± 7.0`."""
    found = [scale * value for value in known(values)]
    spread = f" ± {deviation(found):.1f}" if len(found) > 1 else ""
    return f"{statistics.mean(found):.1f}{spread}" if found else MISSING
