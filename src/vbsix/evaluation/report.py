"""What a parser gets right on a split: accuracy with intervals, intermediate worlds, spurious programs, calibration."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from vbsix.data.examples import Row
from vbsix.evaluation.calibration import Calibration, calibrate
from vbsix.evaluation.spurious import is_spurious
from vbsix.search.prediction import Parse

RESAMPLES = 10_000
"""Bootstrap resamples for an interval."""
WILSON = 1.96**2
"""The normal distribution's 97.5% quantile, squared."""
Interval = tuple[float, float]


@dataclass(frozen=True)
class Prediction:
    """What a parser makes of the first utterances of a row."""

    row: Row
    parse: Parse
    right: tuple[bool | None, ...]
    """Whether the world after each utterance is the row's; None where the row has no world."""

    @property
    def length(self) -> int:
        return len(self.right)

    @property
    def correct(self) -> bool:
        """Whether the last world is right."""
        return self.right[-1] is True

    @property
    def spurious(self) -> bool | None:
        """Whether it is a spurious program; None where that is not known."""
        return is_spurious(self.right)


@dataclass(frozen=True)
class Report:
    """Evaluation of some seeds on a split. Keys are numbers of utterances; lists have a fraction for each seed."""

    examples: dict[str, int]
    accuracy: dict[str, list[float]]
    intervals: dict[str, Interval]
    """95% intervals of the mean over seeds, by the bootstrap."""
    seed_intervals: dict[str, list[Interval]]
    intermediate: dict[str, list[float | None]]
    """The share of worlds after that many utterances that are right when whole rows are parsed."""
    spurious: dict[str, list[float | None]]
    """The spurious share of the correct predictions."""
    calibration: Calibration


def report(by_seed: Sequence[Sequence[Prediction]]) -> Report:
    """Summarises the predictions of some seeds for the same rows."""
    lengths = sorted({prediction.length for prediction in by_seed[0]})
    of_length = {
        str(length): [[one for one in predictions if one.length == length] for predictions in by_seed]
        for length in lengths
    }
    correct = {
        name: np.array([[float(one.correct) for one in predictions] for predictions in seeds])
        for name, seeds in of_length.items()
    }
    return Report(
        examples={name: values.shape[1] for name, values in correct.items()},
        accuracy={name: values.mean(axis=1).tolist() for name, values in correct.items()},
        intervals={name: bootstrap_interval(values.mean(axis=0)) for name, values in correct.items()},
        seed_intervals={name: [bootstrap_interval(seed) for seed in values] for name, values in correct.items()},
        intermediate={
            str(length): [_share(_passed(predictions, length)) for predictions in by_seed] for length in lengths
        },
        spurious={
            name: [_share(one.spurious for one in predictions) for predictions in seeds]
            for name, seeds in of_length.items()
        },
        calibration=calibrate(
            [prediction.parse.confidence for predictions in by_seed for prediction in predictions],
            [prediction.correct for predictions in by_seed for prediction in predictions],
        ),
    )


def bootstrap_interval(values: Float[np.ndarray, " N"]) -> Interval:
    """The 95% interval of the mean of shares, by the bootstrap.

    Where all values are 1, or all are 0, the bootstrap tells nothing: then it is Wilson's interval.
    """
    unknown = WILSON / (len(values) + WILSON)
    if np.all(values == 0):
        return 0.0, unknown
    if np.all(values == 1):
        return 1 - unknown, 1.0
    return resample_interval(values)


def resample_interval(values: Float[np.ndarray, " N"]) -> Interval:
    """The 95% percentile interval of the mean, always the same for the same values.

    To draw N values with replacement is to draw how often each distinct value comes.
    """
    distinct, counts = np.unique(values, return_counts=True)
    drawn = np.random.default_rng(0).multinomial(len(values), counts / len(values), size=RESAMPLES)
    low, high = np.quantile(drawn @ distinct / len(values), [0.025, 0.975])
    return float(low), float(high)


def _passed(predictions: Iterable[Prediction], length: int) -> list[bool | None]:
    """Whether the worlds after that many utterances are right in the predictions for whole rows."""
    whole = (one for one in predictions if one.length == len(one.row.utterances))
    return [one.right[length - 1] for one in whole if one.length >= length]


def _share(values: Iterable[bool | None]) -> float | None:
    """How many of the known values are true; None where none is known."""
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if known else None
