"""Why an instruction cannot be done in its world.

A policy chooses among the tokens that are valid in a world. So it reads an impossible instruction as another one that
is possible there, often with high confidence. Here the instruction is read in other worlds too. The command that it has in
most of them is what it usually means. If that command fails in the instruction's own world, the instruction is
impossible, and the error is the reason.
"""

from __future__ import annotations

import functools
import random
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

from vbsix.data.synthetic import generate
from vbsix.data.synthetic.corpus import has_corpus
from vbsix.domains import alchemy, scene
from vbsix.domains.execution import execute
from vbsix.domains.names import base_name
from vbsix.utilities.errors import InvalidProgram

if TYPE_CHECKING:
    from vbsix.parsing.parser import Parser
    from vbsix.search.prediction import Parse

WORLDS = 24
"""How many other worlds of each kind an instruction is read in."""
LEAST_WORLDS, LEAST_SHARE = 6, 0.6
"""In how many worlds of a kind an instruction must have its usual meaning, and in what share of those in which it is
understood."""
MOST_KEPT = 4096
"""With how many meanings the memory of a parser is full, and begins afresh."""

Meanings = dict[str, tuple[str, ...]]
_kept: WeakKeyDictionary[Parser, Meanings] = WeakKeyDictionary()


def find_reasons(parser: Parser, parses: Sequence[Parse], chosen: int = 0) -> list[tuple[str | None, ...]]:
    """For each parse, why each of its instructions cannot be done; None where nothing says so.

    Args:
        parser: what made the parses.
        parses: any.
        chosen: how many of the first commands were given, and need no reason.
    """
    if not has_corpus(parser.domain.name):
        return [(None,) * len(parse.utterances) for parse in parses]
    meanings = usual_meanings(parser, {text for parse in parses for text in parse.utterances[chosen:]})
    return [
        tuple(
            None if place < chosen else _reason(parser, parse, place, meanings[text])
            for place, text in enumerate(parse.utterances)
        )
        for parse in parses
    ]


def _reason(parser: Parser, parse: Parse, place: int, meanings: Sequence[str]) -> str | None:
    """What fails when an instruction's usual command is executed after those that its parse has before."""
    if not parse.readings:
        return None
    *before, own = parse.readings[0].commands[: place + 1]
    for usual in meanings:
        if usual == own:
            return None
        try:
            execute(parser.domain, parse.world, " ".join([*before, usual]))
        except InvalidProgram as error:
            reason = error.reason.removeprefix(f"{error.token}: ")
            if not reason.startswith("needs "):  # "needs one beaker": here the instruction refers to it in another way
                return reason
    return None


def usual_meanings(parser: Parser, texts: set[str]) -> Meanings:
    """The commands that instructions have in most worlds of each kind; none where they depend on the world."""
    kept = _kept.get(parser, {})
    new = sorted(texts - kept.keys())
    kinds = other_worlds(parser.domain.name)
    requests = [(world, [text]) for text in new for worlds in kinds for world in worlds]
    parses = iter(parser.parse_many(requests, room=1))
    meanings = {text: kept[text] for text in texts & kept.keys()}
    for text in new:
        found = [_usual([next(parses) for _ in worlds]) for worlds in kinds]
        meanings[text] = tuple(dict.fromkeys(filter(None, found)))
    _kept[parser] = {**kept, **meanings} if len(kept) < MOST_KEPT else meanings  # other threads may read the old one
    return meanings


def _usual(parses: Sequence[Parse]) -> str:
    """The command of most parses; empty if they differ too much."""
    commands = Counter(parse.readings[0].commands[0] for parse in parses if parse.understood)
    command, count = commands.most_common(1)[0] if commands else ("", 0)
    return command if count >= max(LEAST_WORLDS, LEAST_SHARE * commands.total()) else ""


@functools.cache
def other_worlds(domain: str) -> tuple[Sequence[str], Sequence[str]]:
    """Worlds of the corpus, and worlds in which most things are possible."""
    rows = [one.row for one in generate(domain, WORLDS, seed=11, utterances=3)]
    corpus = [str(row.worlds[place % len(row.worlds)]) for place, row in enumerate(rows)]
    generator = random.Random(0)
    roomy = _ROOMY[base_name(domain)]
    return corpus, [_world(roomy(generator, place)) for place in range(WORLDS)]


def _world(cells: Sequence[str]) -> str:
    return " ".join(f"{place}:{cell}" for place, cell in enumerate(cells, start=1))


def _scene(generator: random.Random, _: int) -> list[str]:
    """A shirt of each colour, hats of different colours, and four free positions."""
    colours = [*scene.NAMES]
    shirts, hats = generator.sample(colours, len(colours)), generator.sample([*colours, "_"], len(colours))
    cells = ["__"] * scene.STAGE
    for place, *person in zip(generator.sample(range(scene.STAGE), len(colours)), shirts, hats, strict=True):
        cells[place] = "".join(person)
    return cells


def _alchemy(generator: random.Random, number: int) -> list[str]:
    """One or two units of one colour in each beaker: every beaker can be poured into every other one."""
    colours = [*alchemy.COLOURS, generator.choice(alchemy.COLOURS)]
    generator.shuffle(colours)
    return [colour * (1 + number % 2) for colour in colours]


def _tangrams(generator: random.Random, _: int) -> list[str]:
    """All figures."""
    return generator.sample("01234", 5)


_ROOMY: Mapping[str, Callable[[random.Random, int], list[str]]] = {
    "scene": _scene,
    "alchemy": _alchemy,
    "tangrams": _tangrams,
}
