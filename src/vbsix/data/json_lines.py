"""Examples of any domain, as lines of JSON: `{"id", "context", "instructions": [...], "target"}`."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from vbsix.data.examples import Row
from vbsix.data.scone import read_lines
from vbsix.domains.base import Domain
from vbsix.utilities.errors import InvalidData, InvalidWorld

SUFFIX = ".jsonl"
_FIELDS = ("context", "instructions", "target")


def read_json_lines(path: Path, domain: Domain) -> list[Row]:
    """The examples of a file, all of them valid. Raises `InvalidData` with every problem of the file.

    A line without an id has its number for one. An example is a row whose worlds in between are not known. Contexts
    and targets become texts as the domain writes them, so that equal ones have equal texts.
    """
    context_text = cache(lambda text: domain.format_world(domain.parse_world(text)))
    target_text = cache(lambda text: domain.format_target(domain.parse_target(text)))
    rows, problems = [], []
    for number, line in enumerate(read_lines(path), start=1):
        if not line.strip():
            continue
        try:
            example = json.loads(line.decode())
            reasons = list(_reasons(example))
        except (ValueError, RecursionError) as error:
            example, reasons = {}, [f"not JSON: {error}"]
        if not reasons:
            context, wrong_context = _text(domain, "context", example["context"], context_text)
            target, wrong_target = _text(domain, "target", example["target"], target_text)
            reasons = [reason for reason in (wrong_context, wrong_target) if reason]
            instructions = tuple(example["instructions"])
            between = [None] * (len(instructions) - 1)
            id_ = str(example.get("id", number))
            rows.append(Row(id_, (context, *between, target), instructions, f"{path}:{number}"))
        problems += [f"{path}:{number}: {reason}" for reason in reasons]
    if not rows and not problems:
        problems.append(f"{path}: no examples in the file")
    if problems:
        raise InvalidData(problems)
    return rows


def hold_out(rows: Sequence[Row], share: float) -> tuple[list[Row], list[Row]]:
    """Rows to learn from and a share of them to be measured on, always the same; equal rows stay together.

    Raises:
        InvalidData: there are too few rows to have both.
    """
    by_content: dict[tuple, list[Row]] = {}
    for row in rows:
        by_content.setdefault((row.worlds[0], row.utterances), []).append(row)
    mixed = sorted(by_content, key=lambda content: hashlib.sha256(repr(content).encode()).digest())
    count = max(1, round(share * len(mixed)))
    if count >= len(mixed):
        raise InvalidData([f"{len(mixed)} different examples are too few to hold out {share:.0%} of them"])
    held_out = set(mixed[:count])
    train = [row for row in rows if (row.worlds[0], row.utterances) not in held_out]
    return train, [by_content[content][0] for content in mixed[:count]]


def _reasons(example: Any) -> Iterator[str]:
    """Why a line is not an example."""
    if not isinstance(example, dict):
        yield 'expected an object such as {"id": 1, "context": ..., "instructions": ["..."], "target": ...}'
        return
    for field in _FIELDS:
        if field not in example:
            yield f'"{field}" is missing'
    instructions = example.get("instructions", ["."])
    if not isinstance(instructions, list) or not instructions:
        yield '"instructions" is not a list of texts with at least one'
        return
    for number, instruction in enumerate(instructions, start=1):
        if not isinstance(instruction, str) or not instruction.strip():
            yield f"instruction {number} is empty or not a text"


def _text(domain: Domain, field: str, value: Any, read: Callable[[str], str]) -> tuple[str | None, str | None]:
    """The text of a value, or why it has none."""
    try:
        return read(domain.to_text(value)), None
    except InvalidWorld as error:
        return None, f"{field}: {error}"
