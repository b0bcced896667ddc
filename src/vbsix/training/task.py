"""What a run learns from and is measured on: examples of a data folder or of the embedded corpus, and words."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from vbsix.data.examples import Arrays, Example, Row, prefixes, rests, to_arrays
from vbsix.data.json_lines import SUFFIX, hold_out, read_json_lines
from vbsix.data.scone import load_split, scone_folder
from vbsix.data.words import Words, load_words, random_words
from vbsix.domains.base import Domain
from vbsix.domains.registry import get_domain, is_built_in
from vbsix.errors import VbsixError
from vbsix.training.config import Config

SYNTHETIC = "synthetic"
"""The name of the embedded corpus."""
CHECKED = 16
"""With how many examples a domain is checked before it is used."""
GLOVE = Path("glove", "glove.6B.100d.txt")


@dataclass(frozen=True)
class Split:
    """Rows that a parser is measured on."""

    rows: Sequence[Row]
    programs: Sequence[tuple[str, ...]] | None = None
    """The program that each utterance means, where it is known."""

    def examples(self, length: int) -> list[Example]:
        """An example of the first `length` utterances of each row."""
        return prefixes(self.rows, (length,))


@dataclass(frozen=True)
class Task:
    """All the data of a run."""

    domain: Domain
    words: Words
    examples: Sequence[Example]
    """To learn from."""
    splits: dict[str, Split]
    """To be measured on while training."""
    config: Config
    train: Split = Split(())
    """The rows that the examples are from. Nothing learns from their worlds in between."""

    @property
    def most_instructions(self) -> int:
        return max(len(example.instructions) for example in self.examples)

    def arrays(self, examples: Sequence[Example], most: int | None = None) -> Arrays:
        """Examples as arrays with room for `most` instructions, or as many as the longest has."""
        most = most or max(len(example.instructions) for example in examples)
        return to_arrays(self.domain, examples, self.words, most, self.config.data.max_words)

    def fingerprint(self) -> str:
        """Identifies what is learned from, so that a run is not resumed on other data."""
        texts = [(example.context, example.instructions, example.target) for example in self.examples]
        shown = () if is_built_in(self.domain) else (self.domain.shown(),)
        digest = hashlib.sha256(repr((self.domain.tokens, self.words.words, texts, *shown)).encode())
        digest.update(np.ascontiguousarray(self.words.vectors).tobytes())
        return digest.hexdigest()


def load_task(config: Config, source: str, domain: Domain | None = None) -> Task:
    """Reads the data of a run.

    Args:
        config: says which domain, and which prefixes of the rows are examples.
        source: a folder with SCONE's files (and GloVe's, if there), a file of JSON lines, or `synthetic`.
        domain: the language; None takes the one that is known by its name.
    """
    domain, unread = domain or get_domain(config.domain), []
    if source == SYNTHETIC:
        if not is_built_in(domain):
            raise VbsixError(f"there is no embedded corpus for {domain.name}: give your examples, --data FILE{SUFFIX}.")
        train, splits, vectors = *_synthetic(config), None
    elif source.endswith(SUFFIX):
        train, splits, vectors = *_own(config, source, domain), None
    else:
        folder = Path(source)
        if not folder.is_dir():
            wanted = f"a folder with SCONE's files, a file of JSON lines (*{SUFFIX}), or `{SYNTHETIC}`"
            raise VbsixError(f"{source}: no such folder; give {wanted}.")
        train = load_split(folder, domain, config.data.split)
        splits = {"dev": Split(load_split(folder, domain, "dev"))}
        # Word vectors cover what a parser may ever read, test included, of which no more than the words is read here.
        has_test = (scone_folder(folder) / f"{domain.name}-test.tsv").exists()
        unread = load_split(folder, domain, "test") if has_test else []
        vectors = next((path for path in _glove_files(folder) if path.exists()), _glove_files(folder)[0])
    examples = prefixes(train, config.data.lengths)
    if config.data.rests:
        examples += rests(examples)
    if config.training.short_first:
        examples.sort(key=lambda example: len(example.instructions))
    rows = [*train, *(row for split in splits.values() for row in split.rows), *unread]
    texts = [utterance for row in rows for utterance in row.utterances]
    if vectors:
        words = load_words(vectors, texts, config.data.glove_words or None, config.data.normalise)
        if config.data.own_words:
            words = words.with_own([text for row in train for text in row.utterances], config.data.own_words)
    else:
        words = random_words(texts, config.network.word, normalise=config.data.normalise)
    if (found := words.vectors.shape[1]) != config.network.word:
        raise VbsixError(f"the word vectors have {found} numbers, network.word says {config.network.word}.")
    return Task(domain, words.restrict(texts), examples, splits, config, Split(train))


def _glove_files(folder: Path) -> list[Path]:
    return [folder / GLOVE, folder / GLOVE.name, scone_folder(folder).parent / GLOVE]


def _own(config: Config, source: str, domain: Domain) -> tuple[list[Row], dict[str, Split]]:
    """Examples in JSON lines to learn from, and those of another file or a share of the first."""
    rows = read_json_lines(Path(source), domain)
    check_own_domain(domain, rows)
    if config.data.dev_file:
        return rows, {"dev": Split(read_json_lines(Path(config.data.dev_file), domain))}
    train, dev = hold_out(rows, config.data.dev_share)
    return train, {"dev": Split(dev)}


def check_own_domain(domain: Domain, rows: Sequence[Row]) -> None:
    """Refuses a domain that would mislead a search, as far as a few of its worlds tell. Ours are checked by tests."""
    if not is_built_in(domain):
        from vbsix.testing import check_domain

        longest = max(len(row.utterances) for row in rows)
        check_domain(domain, [str(row.worlds[0]) for row in rows[:CHECKED]], instructions=min(longest, 2))


def _synthetic(config: Config) -> tuple[list[Row], dict[str, Split]]:
    """Rows to learn from, others with the same phrasings, and others with phrasings that were held out."""
    from vbsix.data.synthetic import generate

    data = config.data
    longest = max(*data.lengths, *data.evaluation, 2 if data.split == "train-orig" else 1)

    def split(rows: int, seed: int, phrasings: str) -> Split:
        made = generate(config.domain, rows, seed, utterances=longest, phrasings=phrasings)
        return Split([one.row for one in made], [one.programs for one in made])

    train = list(split(data.synthetic_rows, 1, "seen").rows)
    known = {(row.worlds[0], row.utterances) for row in train}
    dev = split(data.synthetic_dev_rows, 2, "seen")
    if any((row.worlds[0], row.utterances) in known for row in dev.rows):
        fresh = [place for place, row in enumerate(dev.rows) if (row.worlds[0], row.utterances) not in known]
        programs = dev.programs or []
        dev = Split([dev.rows[place] for place in fresh], [programs[place] for place in fresh])
    if data.split == "train-orig":
        train = [Row(row.id, row.worlds[: end + 1], row.utterances[:end]) for row in train for end in (1, 2)]
    return train, {"dev": dev, "held-out": split(data.synthetic_dev_rows, 3, "held-out")}
