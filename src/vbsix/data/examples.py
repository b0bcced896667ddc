"""From the rows of a data file to what a learner sees: examples, then padded arrays.

A row has the world after every utterance; an example has only the first world and the last. Learners are given
examples, so the worlds in between cannot reach them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Bool, Int

from vbsix.data.words import Words
from vbsix.domains.base import Domain
from vbsix.utilities.errors import InvalidData, InvalidWorld


@dataclass(frozen=True, slots=True)
class Row:
    """A row of a data file: the first world, then utterances with the world after each; None where it is unknown."""

    id: str
    worlds: tuple[str | None, ...]
    utterances: tuple[str, ...]
    origin: str = field(default="", compare=False)
    """File and line, for messages."""


@dataclass(frozen=True, slots=True)
class Example:
    """What a learner is given: the world at the start, the instructions, and the world after the last of them."""

    id: str
    context: str
    instructions: tuple[str, ...]
    target: str | None
    """None where nobody knows it: then there is nothing to learn, but much to predict."""


@dataclass(frozen=True, slots=True)
class Setting:
    """Which prefixes of a five-utterance row are examples, and how many words of an utterance are read."""

    training: tuple[int, ...]
    evaluation: tuple[int, ...]
    max_words: int


PAPER_SETTINGS = {
    "alchemy": Setting(training=(1, 5), evaluation=(3, 5), max_words=18),
    "scene": Setting(training=(4, 5), evaluation=(3, 5), max_words=25),
    "tangrams": Setting(training=(4, 5), evaluation=(3, 5), max_words=15),
}
"""The paper's setting of each domain."""


class Waypoints(NamedTuple):
    """Targets of shorter examples that a longer one begins with: worlds that its program must pass."""

    targets: Any
    """Leaves [*N, M, ...]; entry k is the target after k + 1 instructions, or anything where none is known."""
    known: Bool[Any, "*N M"]


class Arrays(NamedTuple):
    """Examples as padded arrays, N of them, with M instructions of T words at most."""

    world: Any
    """The first worlds: as the domain's `parse_world` gives them, stacked along a new first axis."""
    target: Any
    """The targets as `parse_target` gives them, stacked; None if the examples have none."""
    words: Int[Any, "*N M T"]
    """Word ids, 0 behind the last word of an instruction and in instructions that an example does not have."""
    instructions: Int[Any, "*N"]
    """How many instructions each example has."""
    waypoints: Waypoints | None = None


Targets = Mapping[tuple[str, tuple[str, ...]], str | None]
"""The target of each context with its instructions; None where equal examples have different ones."""


def targets_of(examples: Iterable[Example]) -> Targets:
    """The targets of some examples."""
    targets: dict[tuple[str, tuple[str, ...]], str | None] = {}
    for example in examples:
        request = example.context, example.instructions
        targets[request] = example.target if targets.get(request, example.target) == example.target else None
    return targets


def prefixes(rows: Iterable[Row], lengths: Sequence[int]) -> list[Example]:
    """An example for each length of each row: the row's first utterances, all of them where the length is 0.

    Raises `InvalidData` for rows too short.
    """
    return _examples((row, length or len(row.utterances)) for row in rows for length in lengths)


def whole_rows(rows: Iterable[Row]) -> list[Example]:
    """An example for each row, with all its utterances."""
    return prefixes(rows, (0,))


def suffixes(examples: Sequence[Example]) -> list[Example]:
    """Suffix examples: where one example is a prefix of another, the rest of the longer one, from the shorter's target.

    They add no supervision, but have fewer instructions. What these refer to may be lost. Where equal examples have
    different targets, none of them is a prefix.
    """
    targets, found = targets_of(examples), []
    for example in examples:
        for length in range(len(example.instructions) - 1, 0, -1):
            prefix, suffix = example.instructions[:length], example.instructions[length:]
            if (world := targets.get((example.context, prefix))) is not None:
                found.append(Example(f"{example.id} from {length + 1}", world, suffix, example.target))
                break
    return found


def to_arrays(
    domain: Domain,
    examples: Sequence[Example],
    words: Words,
    max_instructions: int,
    max_words: int,
    waypoints: Targets | None = None,
) -> Arrays:
    """Examples as arrays for the device. Instructions are cut at `max_words` words, which the paper does too.

    With `waypoints`, an example whose first instructions are there must pass through their target.

    Raises `InvalidData` for examples with more than `max_instructions` instructions or with a world that does not
    parse, and if there are no examples.
    """
    problems = [] if examples else ["no examples"]
    ids = np.zeros((len(examples), max_instructions, max_words), np.int32)
    worlds, targets = [], []
    encode, parse_world, parse_target = cache(words.encode), cache(domain.parse_world), cache(domain.parse_target)
    for example, rows in zip(examples, ids, strict=True):
        if len(example.instructions) > max_instructions:
            problems.append(
                f"example {example.id}: {len(example.instructions)} instructions, more than {max_instructions}"
            )
        for row, instruction in zip(rows, example.instructions, strict=False):
            known = encode(instruction)[:max_words]
            row[: len(known)] = known
        try:
            worlds.append(parse_world(example.context))
            targets.append(None if example.target is None else parse_target(example.target))
        except InvalidWorld as error:
            problems.append(f"example {example.id}: {error}")
    if problems:
        raise InvalidData(problems)
    instructions = np.array([len(example.instructions) for example in examples], np.int32)
    passed = None if waypoints is None else _waypoints(parse_target, examples, max_instructions, waypoints)
    return Arrays(_stack(worlds), _stack(targets), ids, instructions, passed)


def _waypoints(
    parse_target: Callable[[str], Any], examples: Sequence[Example], most: int, targets: Targets
) -> Waypoints:
    texts = [
        [
            targets.get((example.context, example.instructions[:length]))
            if length < len(example.instructions)
            else None
            for length in range(1, most + 1)
        ]
        for example in examples
    ]
    parsed = [
        _stack([parse_target(text if text is not None else str(example.target)) for text in row])
        for example, row in zip(examples, texts, strict=True)
    ]
    return Waypoints(_stack(parsed), np.array([[text is not None for text in row] for row in texts]))


def _examples(choices: Iterable[tuple[Row, int]]) -> list[Example]:
    examples, problems = [], []
    taken: Counter[str] = Counter()
    for row, length in choices:
        context, target = row.worlds[0], row.worlds[length] if 0 < length < len(row.worlds) else None
        where = row.origin or f"row {row.id}"
        if not 0 < length <= len(row.utterances):
            problems.append(f"{where}: an example of {length} utterances cannot be made of {len(row.utterances)}")
        elif context is None or target is None:
            problems.append(f"{where}: no world after utterance {length}, so no example can end there")
        else:
            examples.append(Example(_unique(f"{row.id}/{length}", taken), context, row.utterances[:length], target))
    if problems:
        raise InvalidData(problems)
    return examples


def _unique(name: str, taken: Counter[str]) -> str:
    """The name, numbered where it was taken before: rows may share their id."""
    unique = name
    while unique in taken:
        taken[name] += 1
        unique = f"{name}#{taken[name]}"
    taken[unique] = 1
    return unique


def _stack(worlds: list[Any]) -> Any:
    import jax

    return jax.tree.map(lambda *leaves: np.stack(leaves), *worlds)
