"""Worlds that teachers inferred for training rows: what was inferred, its file, and what a learner makes of it.

Teachers are given rows with the targets of training examples alone (`with_targets`). The worlds in between that data
files have are never read here.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from hashlib import sha256
from itertools import zip_longest
from pathlib import Path

from vbsix.data.examples import Example, Row, prefixes
from vbsix.utilities.errors import VbsixError
from vbsix.utilities.files import FORMAT, check_format, write_bytes


@dataclass(frozen=True, slots=True)
class InferredRow:
    """What was inferred for a row."""

    id: str
    worlds: tuple[str, ...]
    """The world after each of its first utterances; none if no correct program was found."""
    posterior: float
    """The share of the probability of all correct programs found that passes through these worlds."""


@dataclass(frozen=True)
class Inferred:
    """What teachers inferred for all training rows, in their order."""

    rows: tuple[InferredRow, ...]
    lengths: tuple[int, ...]
    """The numbers of utterances after which targets were given; 0 stands for the end of a row."""
    teachers: str
    """Identifies the teachers."""
    data: str
    """Identifies the rows."""


def with_targets(row: Row, lengths: Iterable[int]) -> Row:
    """The row with its first world and the worlds after these numbers of utterances alone; 0 is the whole row."""
    known = {0, *(length or len(row.utterances) for length in lengths)}
    return replace(row, worlds=tuple(world if place in known else None for place, world in enumerate(row.worlds)))


def identify_rows(rows: Iterable[Row], lengths: Iterable[int]) -> str:
    """Identifies rows and their targets, up to the longest training example."""
    lengths, known = tuple(lengths), []
    for row in rows:
        end = max(length or len(row.utterances) for length in lengths)
        known.append((row.id, with_targets(row, lengths).worlds[: end + 1], row.utterances[:end]))
    return sha256(repr(known).encode()).hexdigest()


def longest_examples(rows: Sequence[Row], lengths: Sequence[int]) -> list[Example]:
    """The longest training example of each row."""
    return [
        example
        for row in rows
        for example in prefixes([row], [max(length or len(row.utterances) for length in lengths)])
    ]


def examples_of(row: Row, inferred: InferredRow) -> list[Example]:
    """An example for each prefix of a row whose target is known: its own target, or else the inferred world."""
    both = zip_longest(row.worlds[1:], inferred.worlds)
    complete = replace(row, worlds=(row.worlds[0], *(world if known is None else known for known, world in both)))
    return prefixes(
        [complete], [length for length, world in enumerate(complete.worlds) if length and world is not None]
    )


def require_rows_of(inferred: Inferred, rows: Sequence[Row]) -> None:
    """Refuses what was inferred for other rows."""
    if inferred.data != identify_rows(rows, inferred.lengths):
        raise VbsixError(
            "the worlds that teachers inferred belong to other rows than those of the data; was the data changed?"
        )


def write_inferred(path: Path, inferred: Inferred) -> None:
    """Writes a line that says whose worlds these are, and then a line for each row."""
    about = {"lengths": inferred.lengths, "teachers": inferred.teachers, "data": inferred.data}
    lines = [{"format": FORMAT, **about}, *map(asdict, inferred.rows)]
    write_bytes(path, "".join(f"{json.dumps(line)}\n" for line in lines).encode())


def read_inferred(path: Path) -> Inferred:
    """Reads what `write_inferred` wrote."""
    try:
        about, *lines = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
        check_format(path, about["format"])
        rows = [InferredRow(str(one["id"]), tuple(map(str, one["worlds"])), float(one["posterior"])) for one in lines]
        lengths = tuple(int(length) for length in about["lengths"])
        return Inferred(tuple(rows), lengths, str(about["teachers"]), str(about["data"]))
    except FileNotFoundError:
        raise VbsixError(f"{path}: no such file.") from None
    except (KeyError, TypeError, ValueError) as error:
        raise VbsixError(f"{path}: not what teachers inferred: {error!r}.") from error
