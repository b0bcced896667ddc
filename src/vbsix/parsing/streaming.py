"""Answers to a file of requests, block by block: memory does not grow with the file, and a killed call continues.

Answers go to `OUTPUT.part`. After each block, `OUTPUT.part.json` says how far the input was read and the answers were
written. A call that continues cuts off what was written later. At the end `OUTPUT.part` gets its final name.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

from vbsix.parsing.parser import Parser
from vbsix.parsing.requests import Answering, answer_lines
from vbsix.utilities.errors import VbsixError
from vbsix.utilities.files import read_json, write_json

BLOCK = 1024
"""Lines of a block. A block has batches of requests of about the same length."""


class Block(NamedTuple):
    """Lines of the input, one behind the other."""

    first: int
    """The number of its first line."""
    lines: tuple[bytes, ...]
    end: int
    """The bytes of the input up to its end."""
    sha256: str
    """Of these bytes."""


Answer = Callable[[Iterable[Block]], Iterator[tuple[Block, bytes]]]
"""Gives each block with its answers, in order."""


def answer_blocks(parser: Parser, how: Answering, blocks: Iterable[Block]) -> Iterator[tuple[Block, bytes]]:
    """Each block with its answers, made in this process."""
    for block in blocks:
        yield block, answer_lines(parser, block.lines, block.first, how)


class Streamed(NamedTuple):
    """How far a call has come."""

    answers: int
    """Of all calls for this file together."""
    own: int
    """Of this call."""
    read: int
    """Bytes of the input."""


def answer_file(
    source: Path, target: Path, origin: Mapping[str, Any], answer: Answer, block: int = BLOCK
) -> Iterator[Streamed]:
    """Answers the requests of a file in another file, in order; the first item says what earlier calls have done.

    Args:
        source: a request in each line.
        target: gets an answer in each line.
        origin: what the answers depend on besides the input; a call continues one with the same.
        answer: answers blocks.
        block: lines of a block.

    Raises:
        VbsixError: the output exists, or was begun with another input, model or options.
    """
    part, note = target.with_name(target.name + ".part"), target.with_name(target.name + ".part.json")
    if target.exists():
        raise VbsixError(f"{target}: exists already. Remove it, or give another --output.")
    with source.open("rb") as requests:
        done, digest = _continue(requests, source, part, note, origin)
        with part.open("r+b" if done["written"] else "wb") as answers:
            answers.truncate(done["written"])
            answers.seek(done["written"])
            yield Streamed(done["answers"], 0, done["read"])
            own = 0
            for one, text in answer(_blocks(requests, digest, done["lines"], done["read"], block)):
                count = text.count(b"\n")
                own += count
                done = {
                    "lines": one.first + len(one.lines) - 1,
                    "read": one.end,
                    "sha256": one.sha256,
                    "answers": done["answers"] + count,
                    "written": done["written"] + len(text),
                }
                try:
                    answers.write(text)
                    answers.flush()
                    os.fsync(answers.fileno())
                    write_json(note, {"origin": origin, **done})
                except OSError as error:  # a full disk does not say which file
                    reason = f"{part}: {error.strerror}. The answers so far are kept; the same command continues."
                    raise VbsixError(reason) from error
                yield Streamed(done["answers"], own, done["read"])
    part.replace(target)
    note.unlink(missing_ok=True)


def _continue(
    requests: BinaryIO, source: Path, part: Path, note: Path, origin: Mapping[str, Any]
) -> tuple[dict[str, Any], Any]:
    """How far an earlier call has come, and the hash of the input up to there; the input is then read up to there."""
    digest = hashlib.sha256()
    if not (part.exists() and note.exists()):
        return {"lines": 0, "read": 0, "answers": 0, "written": 0}, digest
    done = read_json(note)
    began = f"{part}: was begun with"
    remedy = f"Continue it as it was begun, or remove {part.name} and {note.name}."
    there = done.pop("origin")
    for name, value in origin.items():
        if there.get(name) != value:
            shown = f"{name} = {there.get(name)}, not {value}" if name != "model" else "another model"
            raise VbsixError(f"{began} {shown}. {remedy}")
    if part.stat().st_size < done["written"]:
        raise VbsixError(f"{part}: has lost its end. Remove {part.name} and {note.name} to begin again.")
    left = done["read"]
    while left and (content := requests.read(min(left, 1 << 20))):
        digest.update(content)
        left -= len(content)
    if left or digest.hexdigest() != done["sha256"]:
        raise VbsixError(f"{began} another input: {source} has changed. {remedy}")
    return done, digest


def _blocks(requests: BinaryIO, digest: Any, lines: int, end: int, size: int) -> Iterator[Block]:
    """The rest of the input, in blocks, after the lines and bytes already read, whose hash is given."""
    while taken := tuple(islice(requests, size)):
        for line in taken:
            digest.update(line)
            end += len(line)
        yield Block(lines + 1, taken, end, digest.hexdigest())
        lines += len(taken)
