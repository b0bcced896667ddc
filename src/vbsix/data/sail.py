"""The instructions of the SAIL navigation corpus (`<map>.settrc`), and JSON lines made of them.

A block of a file is one sequence: an id, a line `y=START map=MAP x=GOAL` with the numbers of two intersections, then a
sentence and its trace in turn, where a trace is `ACTION(x,y,heading);...;(x, y, heading)`. Some traces end elsewhere
than at the goal. The target is where they end. Nothing learns from the actions; the poses after all sentences but the
last are written as `targets`, which show spurious programs alone.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from vbsix.data.json_lines import SUFFIX
from vbsix.data.scone import read_lines
from vbsix.domains.sail_maps import MAPS, Map
from vbsix.utilities.errors import InvalidData, shorten
from vbsix.utilities.files import write_bytes

ACTIONS = ("FORWARD", "LEFT", "RIGHT")
_ENDS = re.compile(r"y=\d+\s+map=(\w+)\s+x=\d+")
_STEP = re.compile(r"([A-Z]*)\((\d+), ?(\d+), ?(0|90|180|270)\)")


class Trace(NamedTuple):
    """What somebody did after a sentence."""

    sentence: str
    actions: tuple[str, ...]
    poses: tuple[str, ...]
    """Before each action, and the last one; as `Sail` writes them."""


class Instructions(NamedTuple):
    """A sequence of instructions from one position of a map to another."""

    id: str
    map: str
    goal: int
    """The number of the intersection to which somebody was to be led."""
    traces: tuple[Trace, ...]

    @property
    def is_continuous(self) -> bool:
        """Whether each trace begins where the one before it ends; in 27 sequences of the corpus one does not."""
        pairs = zip(self.traces, self.traces[1:], strict=False)
        return all(one.poses[-1] == next_.poses[0] for one, next_ in pairs)


def read_sail(path: Path) -> list[Instructions]:
    """The sequences of a file. Raises `InvalidData` with every problem of the file."""
    sequences, problems = [], []
    for first, block in _blocks(path):
        reasons = list(_problems(path.stem, block, first))
        problems += [f"{path}:{line}: {reason}" for line, reason in reasons]
        if not reasons:
            traces = tuple(_trace(path.stem, *pair) for pair in zip(block[2::2], block[3::2], strict=True))
            goal = int(block[1].rpartition("=")[2])
            sequences.append(Instructions(block[0], path.stem, goal, traces))
    if not sequences and not problems:
        problems.append(f"{path}: no instructions in the file")
    if problems:
        raise InvalidData(problems)
    return sequences


def misses_goal(sequence: Instructions, map_: Map) -> bool:
    """Whether the trace of a sequence ends elsewhere than at its goal."""
    x, y = map_.numbered[sequence.goal]
    return sequence.traces[-1].poses[-1].rpartition(" ")[0] != f"{map_.name} {x} {y}"


def convert_sail(folder: Path, out: Path) -> list[Path]:
    """Writes JSON lines for leave-one-map-out cross-validation.

    For each map there are `sentences-MAP.jsonl` (a sentence each; the target is the pose after it) and
    `sequences-MAP.jsonl` (a sequence each; the target is its last position, whatever the heading), to be evaluated on;
    and `sentences-without-MAP.jsonl` and `sequences-without-MAP.jsonl`, of the other two maps, to learn from. The
    target of a sequence to learn from is the last pose, with its heading.

    Returns:
        The files.
    """
    by_map = {name: read_sail(folder / f"{name}.settrc") for name in MAPS}
    written = []
    for name in MAPS:
        others = [sequence for other in MAPS if other != name for sequence in by_map[other]]
        written += [
            _write(out / f"sentences-{name}{SUFFIX}", _sentences(by_map[name])),
            _write(out / f"sequences-{name}{SUFFIX}", _sequences(by_map[name], with_heading=False)),
            _write(out / f"sentences-without-{name}{SUFFIX}", _sentences(others)),
            _write(out / f"sequences-without-{name}{SUFFIX}", _sequences(others, with_heading=True)),
        ]
    return written


def _sentences(sequences: Sequence[Instructions]) -> Iterator[dict]:
    for sequence in sequences:
        for number, trace in enumerate(sequence.traces, start=1):
            context, target = trace.poses[0], trace.poses[-1]
            yield {
                "id": f"{sequence.map}/{sequence.id}/{number}",
                "context": context,
                "instructions": [trace.sentence],
                "target": target,
            }


def _sequences(sequences: Sequence[Instructions], *, with_heading: bool) -> Iterator[dict]:
    for sequence in sequences:
        ends = [trace.poses[-1] for trace in sequence.traces]
        target = ends[-1] if with_heading else ends[-1].rpartition(" ")[0]
        example = {
            "id": f"{sequence.map}/{sequence.id}",
            "context": sequence.traces[0].poses[0],
            "instructions": [trace.sentence for trace in sequence.traces],
            "target": target,
        }
        yield {**example, "targets": [*ends[:-1], target]} if sequence.is_continuous else example


def _write(path: Path, examples: Iterator[dict]) -> Path:
    write_bytes(path, "".join(json.dumps(example) + "\n" for example in examples).encode())
    return path


def _blocks(path: Path) -> Iterator[tuple[int, list[str]]]:
    """The number of the first line of each block, and its lines."""
    block: list[str] = []
    for number, line in enumerate([*read_lines(path), b""], start=1):
        if text := line.decode(errors="replace").strip():
            block.append(text)
        elif block:
            yield number - len(block), block
            block = []


def _problems(name: str, block: Sequence[str], first: int) -> Iterator[tuple[int, str]]:
    """Lines of a block that are not what they should be, and why."""
    if len(block) < 4 or len(block) % 2:
        yield first, f"{len(block)} lines: expected an id, a line with the map, then a sentence and its trace in turn"
        return
    if (ends := _ENDS.fullmatch(block[1])) is None or ends[1] != name:
        yield first + 1, f"{shorten(block[1])}: expected y=NUMBER map={name} x=NUMBER"
    for place, trace in enumerate(block[3::2]):
        steps = trace.split(";")
        found = [_STEP.fullmatch(step) for step in steps]
        for step, match in zip(steps, found, strict=True):
            if match is None:
                yield first + 3 + 2 * place, f"{shorten(step)}: expected ACTION(x,y,heading)"
        for match in found[:-1]:
            if match and match[1] not in ACTIONS:
                yield first + 3 + 2 * place, f"{shorten(match[1])}: an action is one of {', '.join(ACTIONS)}"
        if found[-1] and found[-1][1]:
            yield first + 3 + 2 * place, "the last pose has an action; a trace ends with (x, y, heading)"


def _trace(name: str, sentence: str, trace: str) -> Trace:
    steps = [match for step in trace.split(";") if (match := _STEP.fullmatch(step))]
    poses = tuple(f"{name} {match[2]} {match[3]} {match[4]}" for match in steps)
    return Trace(sentence, tuple(match[1] for match in steps[:-1]), poses)
