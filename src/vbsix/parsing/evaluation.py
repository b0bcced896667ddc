"""Evaluating parsers on rows."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from vbsix.config.schema import Config
from vbsix.data.dataset import FOLD, SYNTHETIC, load_dataset
from vbsix.data.examples import Row
from vbsix.data.json_lines import SUFFIX, read_json_lines
from vbsix.data.scone import load_split
from vbsix.domains.base import Domain
from vbsix.evaluation.report import Prediction
from vbsix.parsing.parser import Parser
from vbsix.utilities.errors import UnknownName


def predict_rows(parser: Parser, rows: Sequence[Row], *, explain: bool = False) -> list[Prediction]:
    """Predictions for the first 1, 2, ... utterances of each row, wherever the world after the last is known.

    With `explain`, they say more often why an instruction cannot be done; see `Parser.parse`.
    """
    asked = [
        (row, length)
        for row in rows
        for length in range(1, len(row.utterances) + 1)
        if row.worlds[0] is not None and row.worlds[length] is not None
    ]
    parses = parser.parse_many(
        [(str(row.worlds[0]), row.utterances[:length]) for row, length in asked], explain=explain
    )
    predictions = []
    for (row, length), parse in zip(asked, parses, strict=True):
        found = parse.readings[0].worlds if parse.readings else (None,) * length
        wanted = row.worlds[1 : length + 1]
        right = (
            None if target is None else reached is not None and parser.domain.is_right(reached, target)
            for target, reached in zip(wanted, found, strict=True)
        )
        predictions.append(Prediction(row, parse, tuple(right)))
    return predictions


def read_split(domain: Domain, config: Config, source: str, split: str, *, own: bool) -> Sequence[Row]:
    """The rows of a split of a data folder or of the built-in corpus, or those of a file of JSON lines.

    Such a file has splits where it is the run's own data.
    """
    if source.endswith(SUFFIX) and not own:
        return read_json_lines(Path(source), domain)
    of_folds = own and config.data.folds and split in (FOLD, "train")
    if of_folds:
        dataset = load_dataset(config.data, domain, source, word_size=config.network.word)
        return dataset.splits[FOLD].rows if split == FOLD else dataset.train.rows
    if source != SYNTHETIC and not source.endswith(SUFFIX):
        return load_split(Path(source), domain, split)
    splits = load_dataset(config.data, domain, source, word_size=config.network.word).splits
    if split not in splits:
        raise UnknownName("split of this data", split, splits)
    return splits[split].rows
