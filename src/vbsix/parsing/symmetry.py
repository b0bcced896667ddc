"""Which words name which constants, induced from what a trained parser reads into its training rows."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from jaxtyping import Float, Int

from vbsix.data.examples import Row
from vbsix.data.words import UNKNOWN
from vbsix.domains.symmetry import Symmetry
from vbsix.parsing.parser import Parser
from vbsix.utilities.errors import UnknownName, VbsixError

READINGS = 8
"""Readings of a row that are asked for; those that lead to its target count."""
LEAST = 3
"""How often a word must occur to name a constant."""
NAMES = 0.5
"""From this probability on that a word brings its constant into the command, it names the constant."""
ITERATIONS = 30


def induce_symmetry(parser: Parser, constants: Sequence[str], rows: Sequence[Row]) -> Symmetry:
    """Constants that are interchangeable, with the words that name them, for a domain to declare.

    The parser reads the rows. Its readings that lead to the target of a row count by their probability. Then each word
    has a probability to bring a constant into the command of its utterance: a noisy-or model, learned with EM, so that
    a word that merely stands beside a name explains nothing. Look at the words before you declare them.

    Args:
        parser: trained on the rows, without symmetry.
        constants: tokens that are interchangeable.
        rows: what it learned from. Only first worlds, utterances and last worlds are read.

    Raises:
        UnknownName: a constant is no token.
        VbsixError: no word names one of the constants.
    """
    for constant in constants:
        if constant not in parser.domain.tokens:
            raise UnknownName("token", constant, parser.domain.tokens)
    said, has = [], []
    for row in _read(parser, rows):
        for utterance, used in row:
            said.append([word for word in dict.fromkeys(parser.words.encode(utterance)) if word != UNKNOWN])
            has.append([used.get(constant, 0.0) for constant in constants])
    words = np.array([word for utterance in said for word in utterance], np.int64)
    places = np.repeat(np.arange(len(said)), np.array([len(utterance) for utterance in said], np.int64))
    count = np.bincount(words)
    by_constant = np.reshape(has, (-1, len(constants))).T
    brought = np.stack([noisy_or(words, places, of_constant) for of_constant in by_constant])
    own = brought.argmax(axis=0) == np.arange(len(constants))[:, None]
    named = np.where(own & (brought >= NAMES) & (count >= LEAST), brought * count, 0)
    names = [[parser.words.words[word] for word in np.argsort(-row, kind="stable") if row[word]] for row in named]
    if missing := [constant for constant, found in zip(constants, names, strict=True) if not found]:
        raise VbsixError(
            f"no word names {', '.join(missing)} in what the parser makes of these rows. Declare the words yourself."
        )
    return Symmetry(tuple(constants), dict(zip(constants, align_forms(names), strict=True)))


def noisy_or(
    words: Int[np.ndarray, " pairs"], places: Int[np.ndarray, " pairs"], has: Float[np.ndarray, " utterances"]
) -> Float[np.ndarray, " V"]:
    """The probability of each word to bring something into the command of its utterance, by EM.

    Args:
        words: the word of each pair of a word and an utterance that it occurs in.
        places: the utterance of each pair.
        has: how probable it is that the command of each utterance has it.
    """
    count = np.maximum(np.bincount(words), 1)
    brings = np.full(len(count), 0.5)
    for _ in range(ITERATIONS):
        without = np.exp(np.bincount(places, np.log1p(-brings[words]), minlength=len(has)))
        expected = has[places] * brings[words] / np.maximum(1 - without[places], 1e-9)
        brings = np.clip(np.bincount(words, expected) / count, 1e-9, 1 - 1e-9)
    return brings


def _read(parser: Parser, rows: Sequence[Row]) -> Iterator[list[tuple[str, dict[str, float]]]]:
    """For each row with correct readings, its utterances, and the probability of each token in their commands."""
    requests: list[tuple[Any, Sequence[str]]] = [(row.worlds[0], row.utterances) for row in rows]
    for row, parse in zip(rows, parser.parse_many(requests, best=READINGS), strict=True):
        target = row.worlds[-1]
        correct = [
            reading
            for reading in parse.readings
            if target is not None and parser.domain.is_right(reading.worlds[-1], target)
        ]
        total = sum(reading.share for reading in correct)
        if not total:
            continue
        used: list[dict[str, float]] = [defaultdict(float) for _ in row.utterances]
        for reading in correct:
            for tokens, command in zip(used, reading.commands, strict=True):
                for token in set(command.split()):
                    tokens[token] += reading.share / total
        yield list(zip(row.utterances, used, strict=True))


def align_forms(names: Sequence[Sequence[str]]) -> list[list[str]]:
    """Names in which forms at the same place correspond, such as plurals. The usual name stands in for one missing."""
    forms = [{name.replace(found[0], "{}"): name for name in found} for found in names]
    kinds = Counter(form for found in forms for form in found)
    shared = [form for form, _ in kinds.most_common()]
    return [[found.get(form, found["{}"]) for form in shared] for found in forms]
