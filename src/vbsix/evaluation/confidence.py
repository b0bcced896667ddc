"""How probable it is that a parse is right, learned from a dev set.

A parser is confident in a step if its command is probable and its words are common. The confidence of a step is a
logistic function of three numbers: the log-probability of the command, the mean rarity of the words and the rarity of
the rarest word. The confidence of a parse is the product over its steps. Three copies of the dev set fit the weights:
as it is, with words replaced by the unknown word, and with words replaced by random ones. So the weights also say how
often a guess is right when words are missing or make no sense.

Twice as many examples are corrupted as are real. Where rarity does not tell them apart, as in a small language, they
would make confidence in real ones far too low. So a second fit, in which they count little, moves and scales the
logits. It does not change which of two steps is the more certain one.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Bool, Float, Int

from vbsix.data.words import PADDING, UNKNOWN
from vbsix.utilities.errors import VbsixError

LEAST_LOG = -12.0
"""Commands less probable than this count as this."""
KEPT = 0.98
"""The share of the right answers on dev whose least certain step is at or above the threshold."""
PENALTY = 1e-3
"""Of the squared weights, for small dev sets."""
CORRUPTED_WEIGHT = 0.1
"""Of a corrupted example in the second fit."""
LEAST_SCALE = 0.01
"""By which the second fit multiplies logits; above zero, so that it does not reverse their order."""
FALLBACK_THRESHOLD = 0.25

Features = Float[np.ndarray, "*N M 4"]


@dataclass(frozen=True, eq=False)
class ConfidenceModel:
    """What turns probabilities into confidences.

    Attributes:
        weights: of a step's features.
        threshold: a parse is understood if no step is less certain than this.
        rarity: for each word id, minus the logarithm of its frequency in the training data.
    """

    weights: Float[np.ndarray, " 4"]
    threshold: float
    rarity: Float[np.ndarray, " V"]

    def steps(
        self,
        log_commands: Float[np.ndarray, "*N M"],
        log_outcome: Float[np.ndarray, " *N"],
        words: Sequence[Sequence[int]],
    ) -> Float[np.ndarray, "*N M"]:
        """The confidence of each step of programs for one request.

        Args:
            log_commands: the log-probability of each command, given those before it.
            log_outcome: the log-probability of all programs that end in the same world.
            words: the word ids of each utterance.
        """
        rarities = [self.rarity[list(ids) or [UNKNOWN]] for ids in words]
        shape = (1,) * log_outcome.ndim + (len(words),)
        mean, most = (np.array([each(row) for row in rarities]).reshape(shape) for each in (np.mean, np.max))
        count = np.full(log_outcome.shape, len(words))
        return _logistic(_features(log_commands, log_outcome, count, mean, most) @ self.weights)

    def to_json(self) -> dict[str, Any]:
        """See `read_confidence`."""
        return {
            "weights": self.weights.tolist(),
            "threshold": self.threshold,
            "rarity": self.rarity.tolist(),
        }


def read_confidence(saved: Any, words: int) -> ConfidenceModel | None:
    """What `ConfidenceModel.to_json` gave; None if it belongs to another vocabulary.

    Raises:
        VbsixError: it is damaged.
    """
    try:
        weights, rarity = np.array(saved["weights"], float), np.array(saved["rarity"], float)
        threshold = float(saved["threshold"])
    except (KeyError, TypeError, ValueError) as error:
        raise VbsixError("damaged: its confidence model cannot be read.") from error
    if weights.shape != (4,) or not np.isfinite([*weights, threshold, *rarity]).all():
        raise VbsixError("damaged: its confidence model cannot be read.")
    return ConfidenceModel(weights, threshold, rarity) if rarity.shape == (words,) else None


def fallback_steps(
    log_commands: Float[np.ndarray, "*N M"], log_outcome: Float[np.ndarray, " *N"], words: Sequence[Sequence[int]]
) -> Float[np.ndarray, "*N M"]:
    """The confidence of each step where there is no `ConfidenceModel`: the probability times the share of known words.

    What other programs with the same outcome add to the probability is shared among the steps.
    """
    known = np.array([np.mean(np.array(ids or [UNKNOWN]) != UNKNOWN) for ids in words])
    return np.exp(_log_steps(log_commands, log_outcome, np.full(log_outcome.shape, len(words)))) * known


def word_rarity(texts: Iterable[Sequence[int]], words: int) -> Float[np.ndarray, " V"]:
    """The rarity of word ids in encoded texts, to two decimals. The unknown word counts as one that never occurs."""
    ids = [id_ for text in texts for id_ in text]
    counts = np.bincount(np.array(ids, int), minlength=words).astype(float)
    counts[[PADDING, UNKNOWN]] = 0
    return np.log((counts.sum() + 1) / (counts + 0.5)).round(2)


def corrupt(
    words: Int[np.ndarray, "N M T"], instructions: Int[np.ndarray, " N"], how: str, vocabulary: int
) -> Int[np.ndarray, "N M T"]:
    """Examples with words of their last utterance replaced, always the same ones.

    Args:
        words: the word ids of the examples.
        instructions: how many utterances each has.
        how: `unknown` replaces some words, another share in each example, by the unknown word; `random` replaces all by
            random words of the vocabulary.
        vocabulary: how many word ids there are.
    """
    generator = np.random.default_rng(0)
    rows = np.arange(len(words))
    last = words[rows, instructions - 1]
    if how == "random":
        new = generator.integers(UNKNOWN + 1, max(vocabulary, UNKNOWN + 2), last.shape)
    else:
        hidden = generator.random(last.shape) < generator.random((len(last), 1))
        new = np.where(hidden, UNKNOWN, last)
    changed = words.copy()
    changed[rows, instructions - 1] = np.where(last == PADDING, PADDING, new)
    return changed


@dataclass(frozen=True, eq=False)
class Outcomes:
    """What a parser predicted for some examples, and whether that was right."""

    log_commands: Float[np.ndarray, "N M"]
    log_outcome: Float[np.ndarray, " N"]
    """-inf where no program was found."""
    words: Int[np.ndarray, "N M T"]
    instructions: Int[np.ndarray, " N"]
    right: Bool[np.ndarray, " N"]


def fit_confidence(
    clean: Sequence[Outcomes], corrupted: Sequence[Outcomes], rarity: Float[np.ndarray, " V"]
) -> ConfidenceModel | None:
    """The weights under which the outcomes are most probable; None where nothing was right.

    Args:
        clean: outcomes on dev as it is.
        corrupted: outcomes on copies of it with words replaced.
        rarity: see `word_rarity`.
    """
    features, inside, right = _prepare([*clean, *corrupted], rarity)
    if not right.any():
        return None
    count = sum(int(np.isfinite(one.log_outcome).sum()) for one in clean)  # clean examples come first
    share = np.ones(len(right))
    weights = _fit(features, inside, right, share, np.zeros(4))
    share[count:] = CORRUPTED_WEIGHT
    logits = features @ weights
    both = np.stack([np.ones_like(logits), logits], axis=-1)
    shift, scale = _fit(both, inside, right, share, np.array([0.0, 1.0]), least=LEAST_SCALE)
    weights = scale * weights + [shift, 0, 0, 0]
    least = np.where(inside[:count], _logistic(features[:count] @ weights), 1.0).min(axis=1)
    if not right[:count].any():
        return ConfidenceModel(weights, FALLBACK_THRESHOLD, rarity)
    kept = np.quantile(least[right[:count]], 1 - KEPT, method="lower")
    threshold = np.floor(kept * 1e4) / 1e4  # down, so that rounding errors leave no step below it
    return ConfidenceModel(weights, float(threshold), rarity)


def _fit(
    features: Float[np.ndarray, "N M F"],
    inside: Bool[np.ndarray, "N M"],
    right: Bool[np.ndarray, " N"],
    share: Float[np.ndarray, " N"],
    start: Float[np.ndarray, " F"],
    least: float = -np.inf,
) -> Float[np.ndarray, " F"]:
    """The weights under which the outcomes are most probable, with all but the first near where they start.

    Args:
        features: of each step; the first is 1.
        inside: which steps there are.
        right: which examples are right.
        share: how much each example counts.
        start: the first weights.
        least: what no weight but the first may be below.
    """
    from scipy.optimize import minimize

    share, free = share / share.sum(), np.arange(len(start)) > 0

    def loss(weights: Float[np.ndarray, " F"]) -> tuple[float, Float[np.ndarray, " F"]]:
        logits = features @ weights
        log_right = np.minimum((inside * -np.logaddexp(0, -logits)).sum(axis=1), -1e-9)
        likelihood = np.where(right, log_right, np.log(-np.expm1(log_right)))
        per_example = share * np.where(right, 1.0, -1 / np.expm1(-log_right))
        slope = (per_example[:, None] * inside * (1 - _logistic(logits)))[..., None] * features
        away = free * (weights - start)
        value = PENALTY * (away**2).sum() - (share * likelihood).sum()
        return float(value), 2 * PENALTY * away - slope.sum(axis=(0, 1))

    bounds = [(least if is_free else -np.inf, np.inf) for is_free in free]
    return np.asarray(minimize(loss, start, jac=True, method="L-BFGS-B", bounds=bounds).x)


def _prepare(
    outcomes: Sequence[Outcomes], rarity: Float[np.ndarray, " V"]
) -> tuple[Features, Bool[np.ndarray, "N M"], Bool[np.ndarray, " N"]]:
    """Features, which steps there are, and what was right; examples without a program tell nothing."""
    features, insides, rights = [], [], []
    longest = max(one.log_commands.shape[1] for one in outcomes)
    for one in outcomes:
        found = np.isfinite(one.log_outcome)
        there = one.words != PADDING
        rarities = np.where(there, rarity[one.words], 0.0)
        mean = rarities.sum(axis=2) / np.maximum(there.sum(axis=2), 1)
        inside = np.arange(one.log_commands.shape[1]) < one.instructions[:, None]
        made = _features(
            np.where(inside, one.log_commands, 0.0), one.log_outcome, one.instructions, mean, rarities.max(axis=2)
        )
        room = (0, longest - inside.shape[1])
        features.append(np.pad(made[found], ((0, 0), room, (0, 0))))
        insides.append(np.pad(inside[found], ((0, 0), room)))
        rights.append(one.right[found])
    return np.concatenate(features), np.concatenate(insides), np.concatenate(rights)


def _features(
    log_commands: Float[np.ndarray, "*N M"],
    log_outcome: Float[np.ndarray, " *N"],
    count: Int[np.ndarray, " *N"],
    mean_rarity: Float[np.ndarray, "*#N M"],
    most_rarity: Float[np.ndarray, "*#N M"],
) -> Features:
    log_steps = _log_steps(log_commands, log_outcome, count)
    shape = log_steps.shape
    centred = np.broadcast_to(mean_rarity - 5, shape), np.broadcast_to(most_rarity - 8, shape)
    return np.stack([np.ones(shape), log_steps, *centred], axis=-1)


def _log_steps(
    log_commands: Float[np.ndarray, "*N M"], log_outcome: Float[np.ndarray, " *N"], count: Int[np.ndarray, " *N"]
) -> Float[np.ndarray, "*N M"]:
    """The log-probability of each step, with its part of what other programs with the same outcome add."""
    with np.errstate(invalid="ignore"):
        added = np.nan_to_num(log_outcome - log_commands.sum(axis=-1), nan=0.0, posinf=0.0, neginf=0.0)
    log_steps = log_commands + (np.maximum(added, 0.0) / count)[..., None]
    return np.clip(log_steps, LEAST_LOG, 0.0)


def _logistic(logits: np.ndarray) -> np.ndarray:
    return np.exp(-np.logaddexp(0, -logits))
