"""Calibrating a parser on rows, as a run does at its end."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

import jax
import numpy as np

from vbsix.data.examples import Arrays, Row, prefixes, to_arrays
from vbsix.evaluation.confidence import Outcomes, corrupt, fit_confidence, word_rarity
from vbsix.parsing.parser import Parser, predict_requests


def calibrate_parser(parser: Parser, dev: Sequence[Row], texts: Iterable[str]) -> Parser:
    """The parser with a confidence model.

    Args:
        parser: any parser.
        dev: rows that it did not learn from, with the world after each utterance.
        texts: the utterances that it learned from.
    """
    words, longest = parser.words, max(len(row.utterances) for row in dev)
    clean, corrupted = [], []
    for length in range(1, longest + 1):
        examples = prefixes([row for row in dev if len(row.utterances) >= length], (length,))
        arrays = to_arrays(parser.domain, examples, words, longest, parser.config.data.max_words)
        clean.append(_predict(parser, arrays))
        for how in ("unknown", "random"):
            changed = corrupt(np.asarray(arrays.words), np.asarray(arrays.instructions), how, len(words.words))
            corrupted.append(_predict(parser, arrays._replace(words=changed)))
    rarity = word_rarity((words.encode(text) for text in texts), len(words.words))
    return replace(parser, confidence_model=fit_confidence(clean, corrupted, rarity))


def _predict(parser: Parser, arrays: Arrays) -> Outcomes:
    domain, beam = parser.domain, parser.config.run.evaluation_beam
    count = len(arrays.instructions)
    batch = min(parser.config.run.evaluation_batch, count)
    parts = []
    for first in range(0, count, batch):
        index = np.minimum(np.arange(first, first + batch), count - 1)
        part = jax.tree.map(lambda leaf, index=index: np.asarray(leaf)[index], arrays)
        with domain.alone():
            found = predict_requests(
                domain,
                parser.policy,
                parser.words.vectors,
                part._replace(target=None),
                beam=beam,
                best=1,
            )
            last = jax.vmap(lambda states, n: jax.tree.map(lambda leaf: leaf[0, n - 1], states))(
                found.states, part.instructions
            )
            right = jax.vmap(domain.matches)(last, part.target)
            right &= np.isfinite(found.log_probability[:, 0])
            parts.append([np.asarray(each) for each in (found.log_commands[:, 0], found.log_denotation[:, 0], right)])
            domain.raise_failure()
    commands, outcome, right = (np.concatenate(each)[:count] for each in zip(*parts, strict=True))
    outcome = np.where(np.isfinite(outcome), outcome, -np.inf)
    return Outcomes(commands, outcome, np.asarray(arrays.words), np.asarray(arrays.instructions), right)
