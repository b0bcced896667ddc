"""Two parsers compared row by row: the difference in accuracy, with a confidence interval."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from vbsix.evaluation.report import RESAMPLES, Interval, Prediction, resample_interval

BySeed = Sequence[Sequence[Prediction]]
"""The predictions of each seed, all for the same rows."""

BLOCK = 100
"""Resamples of all rows that are held in memory at a time; divides `RESAMPLES`."""


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
    """95% interval of the difference, by the bootstrap over rows and, of each run, seeds."""
    row_interval: Interval
    """The same over rows alone: for these policies. A row counts with the mean of its seeds."""
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
    return {str(length): _difference(_correct(first, length), _correct(second, length)) for length in lengths}


def _correct(by_seed: BySeed, length: int) -> Float[np.ndarray, "seeds N"]:
    """For each seed and row, 1 if it is right."""
    return np.array([[float(one.correct) for one in predictions if one.length == length] for predictions in by_seed])


def _difference(first: Float[np.ndarray, "seeds N"], second: Float[np.ndarray, "others N"]) -> Difference:
    by_row = second.mean(axis=0) - first.mean(axis=0)
    return Difference(
        examples=len(by_row),
        first=float(first.mean()),
        second=float(second.mean()),
        difference=float(by_row.mean()),
        interval=_resample_both(first, second),
        row_interval=resample_interval(by_row),
        better=int(np.sum(by_row > 0)),
        worse=int(np.sum(by_row < 0)),
    )


def _resample_both(first: Float[np.ndarray, "seeds N"], second: Float[np.ndarray, "others N"]) -> Interval:
    """The 95% percentile interval of the difference. Rows are the same for both runs; seeds are sampled for each."""
    chance = np.random.default_rng(0)

    def draw(count: int, resamples: int = RESAMPLES) -> Float[np.ndarray, "resamples count"]:
        """The share of each of `count` things in each resample."""
        return chance.multinomial(count, np.full(count, 1 / count), size=resamples) / count

    both = np.concatenate([first, second]).T
    blocks = [draw(len(both), BLOCK) @ both for _ in range(RESAMPLES // BLOCK)]  # memory grows with rows of one block
    by_seed = np.split(np.concatenate(blocks), [len(first)], axis=1)
    accuracy, other = ((draw(shares.shape[1]) * shares).sum(axis=1) for shares in by_seed)
    low, high = np.quantile(other - accuracy, [0.025, 0.975])
    return float(low), float(high)
