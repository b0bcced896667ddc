"""What a run learns from and is evaluated on: examples of SCONE, of the built-in corpus or of JSON lines, and words."""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import numpy as np

from vbsix.data.config import DataConfig
from vbsix.data.examples import Arrays, Example, Row, Targets, prefixes, suffixes, targets_of, to_arrays
from vbsix.data.inferred import Inferred, InferredRow, examples_of, identify_rows, require_rows_of, with_targets
from vbsix.data.json_lines import SUFFIX, hold_out, read_json_lines, warnings_about
from vbsix.data.scone import load_split, scone_folder, split_file
from vbsix.data.words import UtteranceVectors, Words, load_vectors, load_words, random_words
from vbsix.domains.base import Domain
from vbsix.domains.probing import Advice, Trial, advise, advise_on_tolerance, probe, summarise
from vbsix.domains.python import PythonDomain
from vbsix.domains.registry import is_built_in
from vbsix.utilities.errors import UnknownName, VbsixError

SYNTHETIC = "synthetic"
"""The name of the built-in corpus."""
CHECKED = 16
"""Examples that a domain is checked with before it is used."""
FOLD = "fold"
"""The name of the split that cross-validation leaves out of training."""
GLOVE = Path("glove", "glove.6B.100d.txt")
_logger = logging.getLogger("vbsix")
_T = TypeVar("_T")


@dataclass(frozen=True)
class Split:
    """Rows that a parser is evaluated on."""

    rows: Sequence[Row]
    programs: Sequence[tuple[str, ...]] | None = None
    """The program that each utterance means, where it is known."""

    def examples(self, length: int) -> list[Example]:
        """An example of the first `length` utterances of each row."""
        return prefixes(self.rows, (length,))


@dataclass(frozen=True)
class Dataset:
    """All the data of a run."""

    domain: Domain
    words: Words
    examples: Sequence[Example]
    """To learn from."""
    splits: dict[str, Split]
    """To evaluate on."""
    max_words: int
    """Words of an instruction that are read."""
    train: Split = Split(())
    """The rows that the examples come from. Nothing learns from their intermediate worlds."""
    waypoints: Targets | None = None
    """Worlds that programs of longer examples must pass: the targets of shorter examples, and what teachers inferred.
    """
    rows: str = ""
    """Identifies the training rows, those of all folds."""

    @property
    def most_instructions(self) -> int:
        return max(len(example.instructions) for example in self.examples)

    def arrays(self, examples: Sequence[Example], most: int | None = None) -> Arrays:
        """Examples as arrays with room for `most` instructions, or as many as the longest has."""
        most = most or max(len(example.instructions) for example in examples)
        return to_arrays(self.domain, examples, self.words, most, self.max_words, self.waypoints)

    def fingerprint(self) -> str:
        """Identifies what is learned from, so that a run is not resumed on other data."""
        texts = [(example.context, example.instructions, example.target) for example in self.examples]
        spec = () if is_built_in(self.domain) else (self.domain.observation_spec(),)
        digest = hashlib.sha256(repr((self.domain.tokens, self.words.words, texts, *spec)).encode())
        digest.update(np.ascontiguousarray(self.words.vectors).tobytes())
        return digest.hexdigest()


def load_dataset(
    config: DataConfig,
    domain: Domain,
    source: str,
    *,
    word_size: int,
    shortest_first: bool = False,
    words: Words | None = None,
    inferred: Inferred | None = None,
) -> Dataset:
    """Reads the data of a run.

    Args:
        config: which rows and which prefixes of them are examples.
        domain: the language.
        source: a folder with SCONE's files (and GloVe's, if there), a file of JSON lines, or `synthetic`.
        word_size: the length of word vectors.
        shortest_first: sort the training examples by length, as a curriculum needs them.
        words: a vocabulary of one's own; None takes GloVe's, or random vectors where there is no GloVe.
        inferred: what teachers inferred for the rows. Then only rows with a posterior of `config.least_posterior` at
            least are learned from: each prefix of a row is an example, with the inferred world as its target, and
            programs of longer ones pass through it.
    """
    unread: list[Row] = []
    vectors = None
    train, splits = _read_rows(config, domain, source)
    if not (source == SYNTHETIC or source.endswith(SUFFIX)):
        folder = _open_folder(source)
        # The vocabulary covers what a parser may ever read. Of test, only the words are read here.
        has_test = split_file(folder, domain, "test").exists()
        unread = load_split(folder, domain, "test") if has_test else []
        vectors = next((path for path in _glove_files(folder) if path.exists()), _glove_files(folder)[0])
    every = _without_middle(train, source)
    rows = [_Learned(row, with_targets(own, config.lengths)) for row, own in zip(train, every, strict=True)]
    if inferred:
        require_rows_of(inferred, every)
        rows = [one._replace(found=found) for one, found in zip(rows, inferred.rows, strict=True)]
    if config.folds:
        rows, held_out = leave_out(rows, config.folds, config.fold, every)
        splits = {**splits, FOLD: Split([one.row for one in held_out])}
        for length in config.evaluation:
            splits[FOLD].examples(length)  # raises now, and not when the run is evaluated
    elif config.fold:
        raise VbsixError(
            f"data.fold: {config.fold}, but data.folds is 0: say into how many folds the rows are divided."
        )
    if inferred:
        rows = [one for one in rows if one.found and one.found.posterior >= config.least_posterior]
        if not rows:
            raise VbsixError(
                f"data.least_posterior: teachers inferred no worlds with a posterior of {config.least_posterior} or "
                "more, so there is nothing to learn from."
            )
        examples = [example for one in rows if one.found for example in examples_of(one.learned, one.found)]
    else:
        examples = prefixes([one.learned for one in rows], config.lengths)
    if config.suffixes:
        examples += suffixes(examples)
    if shortest_first:
        examples.sort(key=lambda example: len(example.instructions))
    # The vocabulary is the same for every fold, so that runs without one fold and without another share a program.
    read = [*every, *(row for split in splits.values() for row in split.rows), *unread]
    texts = [utterance for row in read for utterance in row.utterances]
    if words is None:
        words = _vocabulary(config, vectors, texts, every, word_size)
    if (size := words.vectors.shape[1]) != word_size:
        raise VbsixError(f"the word vectors have {size} numbers, network.word says {word_size}.")
    waypoints = targets_of(examples) if config.waypoints or inferred else None
    split = Split([one.row for one in rows])
    identity = identify_rows(every, config.lengths)
    return Dataset(domain, words.restrict(texts), examples, splits, config.max_words, split, waypoints, identity)


class _Learned(NamedTuple):
    """A training row, and what may be learned from it."""

    row: Row
    """With all its worlds, for measurements."""
    learned: Row
    """With the targets of training examples alone."""
    found: InferredRow | None = None


def rows_to_infer(
    config: DataConfig, domain: Domain, source: str, lengths: Sequence[int], folds: int
) -> tuple[list[Row], list[int]]:
    """All training rows, with the targets of training examples alone, and the fold of each.

    Args:
        config: which rows.
        domain: the language.
        source: where they are; see `load_dataset`.
        lengths: which prefixes of a row are training examples.
        folds: into how many folds the rows are divided; 1 if they are not.
    """
    every = _without_middle(_read_rows(config, domain, source)[0], source)
    numbers = fold_numbers(every, folds) if folds > 1 else [0] * len(every)
    return [with_targets(row, lengths) for row in every], numbers


def _read_rows(config: DataConfig, domain: Domain, source: str) -> tuple[list[Row], dict[str, Split]]:
    """The training rows, and those to evaluate on."""
    _require_corpus(domain, source)
    if source == SYNTHETIC:
        return _synthetic(config, domain.name)
    if source.endswith(SUFFIX):
        return _json_lines(config, source, domain)
    folder = _open_folder(source)
    return load_split(folder, domain, config.split), {"dev": Split(load_split(folder, domain, "dev"))}


def _without_middle(rows: Sequence[Row], source: str) -> Sequence[Row]:
    """The rows without the worlds that JSON lines give between two instructions. They measure spurious programs."""
    return [with_targets(row, (0,)) for row in rows] if source.endswith(SUFFIX) else rows


def rows_of(domain: Domain, source: str, split: str) -> tuple[list[Row], Sequence[Row]]:
    """The training rows of a data set and those of another split, without a vocabulary. Arguments as above."""
    config = DataConfig()
    if source == SYNTHETIC or source.endswith(SUFFIX):
        train, splits = _read_rows(config, domain, source)
        if split not in splits:
            raise UnknownName("split of this data", split, splits)
        return train, splits[split].rows
    return load_split(_open_folder(source), domain, "train"), load_split(Path(source), domain, split)


def _require_corpus(domain: Domain, source: str) -> None:
    if source == SYNTHETIC and not is_built_in(domain.unwrapped):
        raise VbsixError(f"there is no built-in corpus for {domain.name}: give your examples, --data FILE{SUFFIX}.")


def _open_folder(source: str) -> Path:
    if not Path(source).is_dir():
        wanted = f"a folder with SCONE's files, a file of JSON lines (*{SUFFIX}), or `{SYNTHETIC}`"
        raise VbsixError(f"{source}: {no_folder(Path(source))}; give {wanted}.")
    return Path(source)


def leave_out(rows: Sequence[_T], folds: int, fold: int, every: Sequence[Row]) -> tuple[list[_T], list[_T]]:
    """The rows without those of a fold, and those of the fold.

    Args:
        rows: what there is of each row.
        folds: into how many folds they are divided.
        fold: the one that is left out.
        every: the rows.
    """
    if folds < 2 or fold >= folds:
        raise VbsixError(f"data.fold: {fold} of data.folds = {folds}: there must be 2 folds or more, the first is 0.")
    inside = [number == fold for number in fold_numbers(every, folds)]
    kept = [row for row, is_inside in zip(rows, inside, strict=True) if not is_inside]
    return kept, [row for row, is_inside in zip(rows, inside, strict=True) if is_inside]


def fold_numbers(rows: Sequence[Row], folds: int) -> list[int]:
    """The fold of each row. Folds are random, the same ones every time.

    Rows are in the same fold if they share their id, or an example: their first world and first utterances, where the
    world after these is known, or where these are a whole row. A policy that was trained without a fold has then seen
    no example of its rows, and no beginning of one that ends in a known world.
    """
    wholes = {(row.worlds[0], row.utterances) for row in rows}
    parent: dict[Any, Any] = {}

    def root(key: Any) -> Any:
        while (above := parent.setdefault(key, key)) != key:
            parent[key] = parent[above]
            key = above
        return key

    for row in rows:
        beginnings = [(row.worlds[0], row.utterances[:length]) for length in range(1, len(row.utterances) + 1)]
        for known, key in zip(row.worlds[1:], beginnings, strict=True):
            if known is not None or key in wholes:
                parent[root(key)] = root(row.id)
    numbers = [root(row.id) for row in rows]
    places = {number: place for place, number in enumerate(dict.fromkeys(numbers))}
    if not 2 <= folds <= len(places):
        raise VbsixError(f"data.folds: {folds}: there must be 2 to {len(places)} folds (as many as different rows).")
    fold_of = np.random.default_rng(0).permutation(len(places)) % folds
    return [int(fold_of[places[number]]) for number in numbers]


def _vocabulary(
    config: DataConfig, vectors: Path | None, texts: Sequence[str], train: Sequence[Row], word_size: int
) -> Words:
    least = config.oov_min_count
    if config.vectors:
        words, least = load_vectors(Path(config.vectors), texts, config.normalise), least or 1
    elif vectors:
        words = load_words(vectors, texts, config.glove_words or None, config.normalise)
    else:
        words = random_words([] if least else texts, word_size, normalise=config.normalise)
    return words.with_oov([text for row in train for text in row.utterances], least) if least else words


def _glove_files(folder: Path) -> list[Path]:
    return [folder / GLOVE, folder / GLOVE.name, scone_folder(folder).parent / GLOVE]


def _json_lines(config: DataConfig, source: str, domain: Domain) -> tuple[list[Row], dict[str, Split]]:
    """Examples in JSON lines to learn from, and those of another file or a share of the first."""
    rows = read_json_lines(Path(source), domain)
    check_own_domain(domain, rows)
    if config.dev_file:
        return rows, {"dev": Split(read_json_lines(Path(config.dev_file), domain))}
    train, dev = hold_out(rows, config.dev_share)
    return train, {"dev": Split(dev)}


def check_own_domain(domain: Domain, rows: Sequence[Row]) -> None:
    """Refuses a domain that would mislead a search, as far as a few of its worlds show. Built-in ones have tests."""
    if not is_built_in(domain):
        from vbsix.testing import check_domain

        longest = max(len(row.utterances) for row in rows)
        check_domain(domain.unwrapped, [str(row.worlds[0]) for row in rows[:CHECKED]], instructions=min(longest, 2))


def no_folder(path: Path) -> str:
    """Why a path is not a folder of data files."""
    return f"a file, whose name does not end in {SUFFIX}" if path.is_file() else "no such folder"


def examine(domain: Domain, rows: Sequence[Row], *, skips_no_ops: bool = False) -> tuple[str, list[Advice]]:
    """Searches for examples with no network, if the language is in plain Python: the outcome, and what it shows.

    Args:
        domain: the language.
        rows: the examples.
        skips_no_ops: whether training leaves out commands that change nothing.
    """
    if not isinstance(domain, PythonDomain):
        return "", []
    trials = [Trial(str(row.worlds[0]), len(row.utterances), str(row.worlds[-1]), row.origin) for row in rows]
    found = probe(domain, trials)
    advice = *advise(domain, trials, found, skips_no_ops=skips_no_ops), *advise_on_tolerance(domain, trials)
    return summarise(found), list(advice)


def share_cut(rows: Sequence[Row], most: int, words: Words | None = None) -> float:
    """The share of instructions that have more words than are read, or more vectors, if a vocabulary has those."""
    utterances = [utterance for row in rows for utterance in row.utterances]
    unread = words.unread if words else lambda text, most: text.split()[most:]
    return sum(bool(unread(utterance, most)) for utterance in utterances) / len(utterances)


def describe_cut(shares: Mapping[str, float], most: int, words: Words) -> str:
    """Says what `share_cut` gives for each split; empty if all instructions are read to their end."""
    if not any(shares.values()):
        return ""
    kind = "vectors" if isinstance(words, UtteranceVectors) else "words"
    named = ", ".join(f"{share:.1%} in {name}" for name, share in shares.items())
    return f"Of the instructions, {named} have more than {most} {kind}; what comes after that is not read."


def warn_about_words(dataset: Dataset) -> None:
    """Warns where instructions are not read to their end."""
    most, words = dataset.max_words, dataset.words
    splits = {"train": dataset.train.rows, **{name: split.rows for name, split in dataset.splits.items()}}
    shares = {name: share_cut(rows, most, words) for name, rows in splits.items() if rows}
    if described := describe_cut(shares, most, words):
        _logger.warning("%s --set data.max_words=N reads more.", described)


def warn_about(dataset: Dataset, *, sees_targets: bool) -> None:
    """Warns of what may keep a run on JSON lines from learning.

    Args:
        dataset: what it learns from.
        sees_targets: whether one of its networks sees the target.
    """
    rows, domain = dataset.train.rows, dataset.domain.unwrapped
    concerns = list(warnings_about(rows))
    if isinstance(domain, PythonDomain):
        concerns += [one.text for one in examine(domain, rows, skips_no_ops=domain is not dataset.domain)[1]]
        if sees_targets and not hasattr(domain.language, "describe_target") and hasattr(domain.language, "describe"):
            concerns.append(
                f"{type(domain.language).__name__}: has no describe_target(target), so that the network which should "
                "see the target sees nothing of it. Add it, or take --method execution-only."
            )
    for concern in concerns:
        _logger.warning("%s", concern)


def _synthetic(config: DataConfig, domain: str) -> tuple[list[Row], dict[str, Split]]:
    """Rows to learn from, others with the same phrasings, and others with held-out phrasings."""
    from vbsix.data.synthetic import generate

    longest = max(*config.lengths, *config.evaluation, 2 if config.split == "train-orig" else 1)

    def split(rows: int, seed: int, phrasings: str) -> Split:
        made = generate(domain, rows, seed, utterances=longest, phrasings=phrasings)
        return Split([one.row for one in made], [one.programs for one in made])

    train = list(split(config.synthetic_rows, 1, "seen").rows)
    known = {(row.worlds[0], row.utterances) for row in train}
    dev = split(config.synthetic_dev_rows, 2, "seen")
    if any((row.worlds[0], row.utterances) in known for row in dev.rows):
        new = [place for place, row in enumerate(dev.rows) if (row.worlds[0], row.utterances) not in known]
        programs = dev.programs or []
        dev = Split([dev.rows[place] for place in new], [programs[place] for place in new])
    if config.split == "train-orig":
        train = [Row(row.id, row.worlds[: end + 1], row.utterances[:end]) for row in train for end in (1, 2)]
    return train, {"dev": dev, "held-out": split(config.synthetic_dev_rows, 3, "held-out")}
