"""Two parsers compared row by row: the difference in accuracy, with a confidence interval."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from vbsix.evaluation.report import Interval, Prediction, resample_interval

BySeed = Sequence[Sequence[Prediction]]
"""The predictions of each seed, all for the same rows."""


@dataclass(frozen=True)
class Difference:
    """How much more accurate the second run is than the first, after some number of utterances."""

    examples: int
    first: float
    """Accuracy, the mean over seeds."""
    second: float
    difference: float
    """Second minus first."""
    interval: Interval
    """95% interval of the difference, by the bootstrap over rows; a row counts with the mean of its seeds."""
    better: int
    """Rows on which the second run is right more often than the first."""
    worse: int
    """Rows on which it is right less often."""

    @property
    def clear(self) -> bool:
        """Whether the interval leaves 0 out; one without width, of few rows that are all alike, says nothing."""
        low, high = self.interval
        return low < high and (low > 0 or high < 0)


def compare(first: BySeed, second: BySeed) -> dict[str, Difference]:
    """The difference of two runs by numbers of utterances. Both have predictions for the same rows, in one order."""
    lengths = sorted({prediction.length for prediction in first[0]})
    return {str(length): _difference(_by_row(first, length), _by_row(second, length)) for length in lengths}


def _by_row(by_seed: BySeed, length: int) -> Float[np.ndarray, " N"]:
    """For each row, the share of seeds that are right."""
    correct = [[float(one.correct) for one in predictions if one.length == length] for predictions in by_seed]
    return np.mean(correct, axis=0)


def _difference(first: Float[np.ndarray, " N"], second: Float[np.ndarray, " N"]) -> Difference:
    by_row = second - first
    return Difference(
        examples=len(by_row),
        first=float(first.mean()),
        second=float(second.mean()),
        difference=float(by_row.mean()),
        interval=resample_interval(by_row),
        better=int(np.sum(by_row > 0)),
        worse=int(np.sum(by_row < 0)),
    )
