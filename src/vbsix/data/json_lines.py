"""Examples of any domain, as lines of JSON: `{"id", "context", "instructions": [...], "target"}`.

A line may have `targets`, the target after each instruction, or `programs`, the command of each. Nothing learns from
them; they show which correct programs are spurious.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from itertools import accumulate
from math import isfinite
from pathlib import Path
from typing import Any

from vbsix.data.examples import Row
from vbsix.data.scone import read_lines
from vbsix.domains.base import Domain
from vbsix.utilities.errors import InvalidData, InvalidProgram, InvalidWorld, VbsixError, shorten

SUFFIX = ".jsonl"
MOST_WORDS = 80
"""Words of an instruction that are read, at most, unless `data.max_words` says otherwise."""
CURRICULUM = 0.2
"""The share of steps on the shortest examples, where examples differ in length."""
_FIELDS = ("context", "instructions", "target")


def read_json_lines(path: Path, domain: Domain) -> list[Row]:
    """The examples of a file, all of them valid. Raises `InvalidData` with every problem of the file.

    A line without an id has its number for one. The worlds in between are known where a line says them. Contexts
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
            reasons = list(_reasons(example)) or list(_language_reasons(domain, example))
        except (ValueError, RecursionError) as error:
            example, reasons = {}, [f"not JSON: {error}"]
        if not reasons:
            context, wrong_context = _text(domain, "context", example["context"], context_text)
            target, wrong_target = _text(domain, "target", example["target"], target_text)
            reasons = [reason for reason in (wrong_context, wrong_target) if reason]
            instructions = tuple(example["instructions"])
            between, wrong_between = _between(domain, example, context, target, target_text)
            reasons += wrong_between
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
    if isinstance(instructions, str):
        yield f'"instructions" is a text, not a list of texts: write [{json.dumps(shorten(instructions)[1:-1])}]'
        return
    if not isinstance(instructions, list) or not instructions:
        yield '"instructions" is not a list of texts with at least one'
        return
    for number, instruction in enumerate(instructions, start=1):
        if not isinstance(instruction, str) or not instruction.strip():
            yield f"instruction {number} is empty or not a text"


def _language_reasons(domain: Domain, example: dict[str, Any]) -> Iterator[str]:
    """Why the values of a line cannot be compared."""
    for field in ("context", "target", "targets"):
        if field in example and not _is_finite(example[field]):
            yield f"{field}: has NaN or Infinity in it, which JSON does not have, and which no denotation equals"


def _is_finite(value: Any) -> bool:
    if isinstance(value, dict):
        return all(map(_is_finite, value.values()))
    return all(map(_is_finite, value)) if isinstance(value, list) else not isinstance(value, float) or isfinite(value)


def _between(
    domain: Domain, example: dict[str, Any], context: str | None, target: str | None, read: Callable[[str], str]
) -> tuple[list[str | None], list[str]]:
    """The worlds between instructions, from `targets` or `programs` where a line has them, and what is wrong there."""
    count = len(example["instructions"])
    if "targets" in example:
        texts = example["targets"]
        if not isinstance(texts, list) or len(texts) != count:
            return [], [f'"targets" is not a list of {count} targets, one for each instruction']
        found = [_text(domain, "targets", text, read) for text in texts]
    elif "programs" in example and context is not None:
        programs = example["programs"]
        if (
            not isinstance(programs, list)
            or len(programs) != count
            or not all(isinstance(one, str) for one in programs)
        ):
            return [], [f'"programs" is not a list of {count} texts, the command of each instruction']
        found = _execute_each(domain, context, programs, read)
    else:
        return [None] * (count - 1), []
    if wrong := [reason for _, reason in found if reason]:
        return [], wrong
    reached = found[-1][0]
    if reached is None or target is None or not domain.is_right(reached, target):
        return [], [f'the last of "targets" or "programs" leads to {reached}, "target" is {target}']
    return [text for text, _ in found[:-1]], []


def _execute_each(
    domain: Domain, context: str, programs: Sequence[str], read: Callable[[str], str]
) -> list[tuple[str | None, str | None]]:
    """The world after each command, or why there is none."""
    from vbsix.domains.execution import execute

    try:
        steps = execute(domain, context, " ".join(programs))
    except InvalidProgram as error:
        return [(None, f"programs: {error}")]
    ends = list(accumulate(len(program.split()) for program in programs))
    counts = [steps[end - 1].commands if end else 0 for end in ends]
    if counts != list(range(1, len(programs) + 1)):
        return [(None, '"programs" needs one complete command for each instruction')]
    return [(read(steps[end - 1].world), None) for end in ends]


def warnings_about(rows: Sequence[Row]) -> Iterator[str]:
    """What is odd about rows, though they can be used: ids that occur twice, and rows that contradict each other."""
    by_id: dict[str, list[Row]] = {}
    by_content: dict[Any, list[Row]] = {}
    for row in rows:
        by_id.setdefault(row.id, []).append(row)
        by_content.setdefault((row.worlds[0], row.utterances), []).append(row)
    if twice := [same for same in by_id.values() if len(same) > 1]:
        first = twice[0]
        yield f"{first[1].origin}: the id {first[0].id} is taken by {first[0].origin} ({len(twice)} ids occur twice)."
    if wrong := [same for same in by_content.values() if len({row.worlds[-1] for row in same}) > 1]:
        other = next(row for row in wrong[0] if row.worlds[-1] != wrong[0][0].worlds[-1])
        yield (
            f"{other.origin}: has the context and the instructions of {wrong[0][0].origin}, but another target "
            f"({len(wrong)} such examples). At most one of them can be learned: correct or remove the others."
        )


def choose_settings(path: Path, steps: int) -> dict[str, Any]:
    """Settings that depend on the data: words that are read, and a curriculum where examples differ in length.

    A file that cannot be read has none; `read_json_lines` says why.

    Args:
        path: the file.
        steps: of the run.
    """
    try:
        lines = [json.loads(line) for line in read_lines(path) if line.strip()]
    except (VbsixError, ValueError, RecursionError):
        return {}
    examples = [line for line in lines if not any(_reasons(line))]
    if not examples:
        return {}
    longest = max(len(text.split()) for example in examples for text in example["instructions"])
    settings: dict[str, Any] = {"data.max_words": min(longest, MOST_WORDS)}
    if len({len(example["instructions"]) for example in examples}) > 1:
        settings["training.curriculum_steps"] = round(CURRICULUM * steps)
    return settings


def _text(domain: Domain, field: str, value: Any, read: Callable[[str], str]) -> tuple[str | None, str | None]:
    """The text of a value, or why it has none."""
    try:
        return read(domain.to_text(value)), None
    except InvalidWorld as error:
        return None, f"{field}: {error}"
    except RecursionError:
        return None, f"{field}: is nested too deeply"
