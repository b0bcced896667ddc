"""How often predictions are right, how sure that is, and whether they are right for the right reasons."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float, Int

from vbsix.data.examples import Arrays, Row
from vbsix.domains.base import Domain
from vbsix.models import Policy
from vbsix.training.chunk import is_correct, predict_batch

if TYPE_CHECKING:  # a parser reads runs, which evaluate while they train
    from vbsix.parser import Parse, Parser

RESAMPLES = 10_000
"""How often examples are drawn anew for an interval."""
WILSON = 1.96**2
"""The normal distribution's 97.5% quantile, squared."""
BINS = 10
"""Of equal width, to compare confidence with accuracy."""
Interval = tuple[float, float]


def accuracy(
    domain: Domain, policies: Policy, vectors: Float[Any, "V word"], examples: Arrays, *, beam: int, batch: int
) -> list[float]:
    """The share of examples whose most probable program leads to their target, for each seed's policy."""
    tokens = predict_tokens(domain, policies, vectors, examples, beam=beam, batch=batch)
    with domain.alone():
        correct = np.asarray(is_correct(domain, examples, tokens))
        domain.raise_failure()
    return [float(share) for share in np.mean(correct, axis=1)]


def predict_tokens(
    domain: Domain, policies: Policy, vectors: Float[Any, "V word"], examples: Arrays, *, beam: int, batch: int
) -> Int[np.ndarray, "S N L"]:
    """The most probable program of each example under each seed's policy, in batches of one size."""
    count = examples.instructions.shape[0]
    batch = min(batch, count)
    found = []
    for first in range(0, count, batch):
        index = np.minimum(np.arange(first, first + batch), count - 1)  # the last batch is filled up with its end
        part = jax.tree.map(lambda leaf, index=index: jnp.asarray(leaf)[index], examples)
        with domain.alone():
            programs = predict_batch(domain, policies, jnp.asarray(vectors), part, beam=beam)
            found.append(np.asarray(programs.tokens[:, :, 0]))
            domain.raise_failure()
    return np.concatenate(found, axis=1)[:, :count]


@dataclass(frozen=True)
class Prediction:
    """What a parser makes of the first utterances of a row."""

    row: Row
    parse: Parse
    right: tuple[bool | None, ...]
    """Whether the world after each utterance is the row's; None where the row does not tell."""

    @property
    def length(self) -> int:
        return len(self.right)

    @property
    def correct(self) -> bool:
        """Whether the last world is right."""
        return self.right[-1] is True

    @property
    def spurious(self) -> bool | None:
        """Whether a correct prediction comes to its world through wrong ones; None where that is not known."""
        return None if None in self.right or not self.correct else not all(self.right)


@dataclass(frozen=True)
class Bin:
    """Predictions of about the same confidence."""

    low: float
    high: float
    count: int
    confidence: float | None
    """Their mean confidence."""
    accuracy: float | None
    """How many of them are right."""


@dataclass(frozen=True)
class Calibration:
    """How well confidence tells accuracy, over all predictions of all seeds."""

    bins: list[Bin]
    error: float
    """The expected calibration error: the mean distance of the bins' confidence and accuracy."""


@dataclass(frozen=True)
class Report:
    """Evaluation of some seeds on a split. Keys are numbers of utterances; lists have a fraction for each seed."""

    examples: dict[str, int]
    accuracy: dict[str, list[float]]
    intervals: dict[str, Interval]
    """95% intervals of the mean over seeds, by the bootstrap."""
    seed_intervals: dict[str, list[Interval]]
    intermediate: dict[str, list[float | None]]
    """How many worlds after that many utterances are right when whole rows are parsed; the row's own worlds tell."""
    spurious: dict[str, list[float | None]]
    """How many of the correct predictions come to the right world through wrong ones."""
    calibration: Calibration


def predict_rows(parser: Parser, rows: Sequence[Row]) -> list[Prediction]:
    """Predictions for the first 1, 2, ... utterances of each row, wherever the world after the last is known."""
    asked = [
        (row, length)
        for row in rows
        for length in range(1, len(row.utterances) + 1)
        if row.worlds[0] is not None and row.worlds[length] is not None
    ]
    parses = parser.parse_many([(str(row.worlds[0]), row.utterances[:length]) for row, length in asked])
    predictions = []
    for (row, length), parse in zip(asked, parses, strict=True):
        found = parse.readings[0].worlds if parse.readings else ("no world",) * length
        wanted = row.worlds[1 : length + 1]
        right = (None if world is None else world == reached for world, reached in zip(wanted, found, strict=True))
        predictions.append(Prediction(row, parse, tuple(right)))
    return predictions


def report(by_seed: Sequence[Sequence[Prediction]]) -> Report:
    """Sums up the predictions of some seeds for the same rows."""
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
        calibration=calibration([prediction for predictions in by_seed for prediction in predictions]),
    )


def bootstrap_interval(values: Float[np.ndarray, " N"]) -> Interval:
    """The 95% percentile interval of the mean, always the same for the same values.

    To draw N values with replacement is to draw how often each distinct value comes. Where all are right, or none,
    that tells nothing: then it is Wilson's interval.
    """
    distinct, counts = np.unique(values, return_counts=True)
    unknown = WILSON / (len(values) + WILSON)
    if distinct.tolist() == [0.0]:
        return 0.0, unknown
    if distinct.tolist() == [1.0]:
        return 1 - unknown, 1.0
    drawn = np.random.default_rng(0).multinomial(len(values), counts / len(values), size=RESAMPLES)
    low, high = np.quantile(drawn @ distinct / len(values), [0.025, 0.975])
    return float(low), float(high)


def calibration(predictions: Sequence[Prediction]) -> Calibration:
    """Compares the confidence of predictions with their accuracy."""
    confidence = np.array([prediction.parse.confidence for prediction in predictions])
    correct = np.array([prediction.correct for prediction in predictions])
    place = np.minimum((confidence * BINS).astype(int), BINS - 1)
    bins, error = [], 0.0
    for number in range(BINS):
        inside = place == number
        means = (float(confidence[inside].mean()), float(correct[inside].mean())) if inside.any() else (None, None)
        if means[0] is not None and means[1] is not None:
            error += abs(means[0] - means[1]) * float(inside.mean())
        bins.append(Bin(number / BINS, (number + 1) / BINS, int(inside.sum()), *means))
    return Calibration(bins, error)


def _passed(predictions: Iterable[Prediction], length: int) -> list[bool | None]:
    """Whether the worlds after that many utterances are right in the predictions for whole rows."""
    whole = (one for one in predictions if one.length == len(one.row.utterances))
    return [one.right[length - 1] for one in whole if one.length >= length]


def _share(values: Iterable[bool | None]) -> float | None:
    """How many of the known values are true; None where none is known."""
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if known else None
