"""SCONE's files: tab-separated rows of an id, the first world, then utterances, each with the world after it."""

from __future__ import annotations

import codecs
from collections.abc import Callable, Iterator
from functools import cache, partial
from pathlib import Path

from vbsix.data.examples import PAPER_SETTINGS, Example, Row, prefixes, whole_rows
from vbsix.domains.base import Domain
from vbsix.domains.names import base_name
from vbsix.utilities.errors import InvalidData, InvalidWorld, UnknownName

SPLITS = ("train", "dev", "test", "train-orig")
"""SCONE's splits. `train-orig` has the one- and two-utterance training examples of earlier papers, one a row."""

ALL_WRONG = 10
"""A file with this many problems, and no row without one, is a file of something else."""
UNKNOWN_WORLD = "?"
"""What stands for a world that the file does not tell."""


def load_examples(directory: Path, domain: Domain, split: str) -> list[Example]:
    """The examples that the paper makes of a split."""
    return to_examples(load_split(directory, domain, split), domain.name, split)


def to_examples(rows: list[Row], domain_name: str, split: str) -> list[Example]:
    """The examples of a split's rows: the paper's prefixes for its domains and splits, else whole rows."""
    setting = PAPER_SETTINGS.get(base_name(domain_name))
    if setting and split == "train":
        return prefixes(rows, setting.training)
    if setting and split in ("dev", "test"):
        return prefixes(rows, setting.evaluation)
    return whole_rows(rows)


def load_split(directory: Path, domain: Domain, split: str) -> list[Row]:
    """The rows of `<domain>-<split>.tsv`, which lies in the folder or in its `scone` folder.

    A language that remembers where reads the files of the paper's domain.
    """
    if split not in SPLITS:
        raise UnknownName("split", split, SPLITS)
    path = split_file(directory, domain, split)
    rows, problems = _read(path, domain)
    if not rows and len(problems) >= ALL_WRONG:
        problems = [f"{path}: not a file of {domain.name}, none of its lines has its form", problems[0]]
    if problems:
        raise InvalidData(problems)
    return rows


def split_file(directory: Path, domain: Domain, split: str) -> Path:
    """Where a split is, whether or not it is there."""
    return scone_folder(directory) / f"{base_name(domain.name)}-{split}.tsv"


def scone_folder(directory: Path) -> Path:
    """Where SCONE's files lie, given their folder or the one above it."""
    return directory / "scone" if (directory / "scone").is_dir() else directory


def read_rows(path: Path, domain: Domain) -> list[Row]:
    """The rows of a file, all of them valid. Raises `InvalidData` with every problem of the file."""
    rows, problems = _read(path, domain)
    if problems:
        raise InvalidData(problems)
    return rows


def _read(path: Path, domain: Domain) -> tuple[list[Row], list[str]]:
    """The lines of a file that are rows, and what is wrong with the others."""
    rows, problems = [], []
    world_error = cache(partial(_world_error, domain))
    for number, line in enumerate(read_lines(path), start=1):
        try:
            fields = line.decode().split("\t")
            reasons = list(_reasons(fields, world_error))
        except UnicodeDecodeError as error:
            fields, reasons = [], [f"not UTF-8 text, at byte {error.start + 1}"]
        problems += [f"{path}:{number}: {reason}" for reason in reasons]
        if not reasons:
            worlds = tuple(None if text == UNKNOWN_WORLD else text for text in fields[1::2])
            rows.append(Row(fields[0], worlds, tuple(fields[2::2]), f"{path}:{number}"))
    if not rows and not problems:
        problems.append(f"{path}: no rows in the file")
    return rows, problems


def _reasons(fields: list[str], world_error: Callable[[str], str | None]) -> Iterator[str]:
    """Why a line is not a row."""
    if fields == [""]:
        yield "the line is empty"
        return
    if any("\0" in field for field in fields):
        yield "a NUL character"
    if len(fields) < 4 or len(fields) % 2:
        yield (
            f"{len(fields)} fields, expected an even number from 4 on, separated by tabs: "
            "id, world, then utterance and world in turn"
        )
        return
    if not fields[0].strip():
        yield "the id is empty"
    last = len(fields) // 2 - 1
    for number, utterance in enumerate(fields[2::2], start=1):
        if not utterance.strip():
            yield f"utterance {number} is empty"
    for number, world in enumerate(fields[1::2]):
        where = f"the world after utterance {number}" if number else "the first world"
        if world == UNKNOWN_WORLD and number in (0, last):
            yield f"{where} is unknown ({UNKNOWN_WORLD}); only one in the middle can be"
        elif world != UNKNOWN_WORLD and (error := world_error(world)):
            yield f"{where}: {error}"


def _world_error(domain: Domain, text: str) -> str | None:
    try:
        domain.parse_world(text)
    except InvalidWorld as error:
        return str(error)


def read_lines(path: Path) -> list[bytes]:
    """The lines of a file, without their ends. Raises `InvalidData` where it cannot be read."""
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        hint = "; `vbsix data fetch` downloads the data" if path.suffix == ".tsv" else ""
        raise InvalidData([f"{path}: no such file{hint}"]) from None
    except OSError as error:
        raise InvalidData([f"{path}: cannot be read: {error.strerror}"]) from error
    lines = data.removeprefix(codecs.BOM_UTF8).split(b"\n")
    if not lines[-1]:
        lines.pop()
    return [line.removesuffix(b"\r") for line in lines]
