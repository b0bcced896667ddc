"""Why an instruction cannot be done in its world.

A policy chooses among the tokens that are valid in a world. So it reads an impossible instruction as another one that
is possible there, often with high confidence. Two things tell that it is impossible. What its words name may be
missing: a colour, a hat, the fifth figure, a free position, three units. Or its usual meaning fails: the instruction is
read in other worlds, in which most things are possible, and the commands that it has in most of them all fail in its
own world.
"""

from __future__ import annotations

import functools
import random
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

from vbsix.data.synthetic.corpus import has_corpus
from vbsix.domains.changes import ALCHEMY_NAMES, NAMES, cells, units
from vbsix.domains.execution import execute
from vbsix.domains.names import base_name
from vbsix.evaluation.error_analysis import TO_EARLIER, kind_of_reference
from vbsix.utilities.errors import InvalidProgram, with_article

if TYPE_CHECKING:
    from vbsix.parsing.parser import Parser
    from vbsix.search.prediction import Parse

WORLDS = 32
"""How many other worlds an instruction is read in."""
READINGS = 32
"""How many readings there, at most: programs that lead to the same world are ways to say the same."""
LEAST_WORLDS, LEAST_SHARE = 6, 0.8
"""In how many of these worlds an instruction must have a usual command, and in what share of those in which it is
understood."""
MOST_KEPT = 4096
"""With how many meanings the memory of a parser is full, and begins afresh."""

COLOURS = {"black", "gray", "grey", "pink", "white", *NAMES.values(), *ALCHEMY_NAMES.values()}
"""Names of colours; each domain lacks some."""
ORDINALS = {
    word: number
    for number, words in enumerate(
        ("first 1st", "second 2nd", "third 3rd", "fourth 4th", "fifth 5th", "sixth 6th", "seventh 7th"), start=1
    )
    for word in words.split()
}
AMOUNTS = {word: number for number, words in enumerate(("two 2", "three 3", "four 4"), 2) for word in words.split()}
_FIGURE = re.compile(
    rf"\b({'|'.join(ORDINALS)})\b(?! (?:step|move|turn|action|command|instruction|swap|change|time))"
    r"|\b(?:figure|shape|object|item|image|position|place|spot)s? ([1-9])\b"
)
_PEOPLE = "boy|character|girl|guy|lady|man|one|person|woman"
_GOAL = re.compile(
    r"\b(?:appear|arrive|come|enter|goe?|move|step|walk)s?\b"
    rf"(?: (?!(?:and|of|who|next|beside|near|closer?|adjacent|{_PEOPLE})\b)[a-z]+){{0,4}}? (?:at|in|on|to|into) "
    r"(?:the )?(?:(?:position|place|spot) (?P<number>\d{1,2})|(?=far |\w+ (?:end|side))(?:far )?(?P<end>left|right)"
    r"(?: end| side)?)$"
)
"""A position that somebody is to go to, which ends the instruction: what follows may make it another one. It is not
that of somebody else: `next to the man in position 5`."""
_AMOUNT = re.compile(
    rf"(?<!into )(?<!it )\b(?P<amount>{'|'.join(AMOUNTS)}) (?:unit|part)s? (?:from|of|out of) (?:the )?"
    rf"(?:(?P<ordinal>{'|'.join(ORDINALS)}|last) beaker|beaker (?P<number>[1-7])|"
    r"(?P<colour>[a-z]+) (?:beaker|chemical|one))$"
)
_NEWCOMER = re.compile(
    rf"\b(?:(?:an?|another)(?: [a-z]+){{0,2}} (?:{_PEOPLE})|some(?:body|one))\b"
    r"(?: (?!(?:and then|who)\b)[\w-]+){0,9}? (?:appear|arrive|come|enter|join|walk|step)s?\b"
)
"""Somebody who comes: what is said of them need not be there before."""
_EXCLUDED = re.compile(r"\b(?:not|except|without|instead of|unlike|than)(?: \w+){1,5}")
"""What these words exclude need not be there: `not the red one`."""


# What the words name.


def missing(domain: str, text: str, before: str, after: str) -> str | None:
    """What an instruction names that is neither in its world nor in the one after its command, as a reason."""
    find = _MISSING.get(base_name(domain))
    return find and find(_EXCLUDED.sub("", text.lower()), cells(before), cells(after))


def leaves_out(domain: str, text: str, before: str, after: str) -> bool:
    """Whether nobody looks as an instruction says of somebody who comes: it was misread, and can perhaps be done."""
    if base_name(domain) != "scene":
        return False
    newcomers = _NEWCOMER.finditer(_EXCLUDED.sub("", text.lower()))
    return any(_missing_look(found[0], [*cells(before), *cells(after)]) is not None for found in newcomers)


def _missing_person(text: str, before: Sequence[str], after: Sequence[str]) -> str | None:
    return (
        _missing_look(_NEWCOMER.sub("", text), [*before, *after])
        or _missing_look(text, [2 * letter for letter in NAMES])  # what nobody can look like
        or _missing_room(text, before, after)
    )


def _missing_look(text: str, people: Sequence[str]) -> str | None:
    for name, what in re.findall(r"\b([a-z]+)[ -](shirt|hat)\b", text):
        letter = _letters(NAMES).get(name)
        if letter and all(person["shirt hat".split().index(what) :][:1] != letter for person in people):
            return f"nobody has {with_article(f'{name} {what}')}"
    name = _missing_colour(text, NAMES, people)
    return f"nobody wears {name}" if name else None


def _missing_room(text: str, before: Sequence[str], after: Sequence[str]) -> str | None:
    """Where somebody is to go to, and somebody else stays."""
    goal = _GOAL.search(text.rstrip(" ."))
    if not goal:
        return None
    position = int(goal["number"]) if goal["number"] else {"left": 1, "right": len(before)}[goal["end"]]
    if not 1 <= position <= len(before):
        return f"there is no position {position}"
    taken = before[position - 1] == after[position - 1] != "__"
    return f"position {position} is taken" if taken else None


def _missing_liquid(text: str, before: Sequence[str], after: Sequence[str]) -> str | None:
    if name := _missing_colour(text, ALCHEMY_NAMES, [*before, *after]):
        return f"no beaker holds {name}"
    return _missing_units(text, before)


def _missing_units(text: str, before: Sequence[str]) -> str | None:
    """What is to be poured out, and is more than there is."""
    found = _AMOUNT.search(text.rstrip(" ."))
    if not found:
        return None
    amount, letter = found["amount"], _letters(ALCHEMY_NAMES).get(found["colour"])
    if letter:
        enough = any(letter in cell and units(cell) >= AMOUNTS[amount] for cell in before)
        return None if enough else f"no beaker with {found['colour']} holds {amount} units"
    if found["colour"]:
        return None
    place = ORDINALS.get(found["ordinal"]) or int(found["number"] or len(before))
    return None if units(before[place - 1]) >= AMOUNTS[amount] else f"beaker {place} holds fewer than {amount} units"


def _missing_colour(text: str, names: Mapping[str, str], there: Sequence[str]) -> str | None:
    letters = dict.fromkeys(COLOURS, "?") | _letters(names)
    named = [word for word in re.findall(r"[a-z]+", text) if word in letters]
    return next((name for name in named if letters[name] not in "".join(there)), None)


def _letters(names: Mapping[str, str]) -> dict[str, str]:
    return {name: letter for letter, name in names.items()}


def _missing_figure(text: str, before: Sequence[str], after: Sequence[str]) -> str | None:
    most = max(len(before), len(after))
    for word, digit in _FIGURE.findall(text):
        if (ORDINALS[word] if word else int(digit)) > most:
            return f"there is no {word} figure" if word else f"there is no figure {digit}"
    return None


_MISSING: Mapping[str, Callable[[str, Sequence[str], Sequence[str]], str | None]] = {
    "scene": _missing_person,
    "alchemy": _missing_liquid,
    "tangrams": _missing_figure,
}


# What the instruction usually means.


def find_failures(parser: Parser, parses: Sequence[Parse], chosen: int = 0) -> list[tuple[str | None, ...]]:
    """For each parse and each of its instructions, why all its usual commands fail; None where one does not.

    Args:
        parser: what made the parses.
        parses: any.
        chosen: how many of the first commands were given; nothing is said of them.
    """
    if not has_corpus(parser.domain.name):
        return [(None,) * len(parse.utterances) for parse in parses]
    meanings = usual_meanings(parser, {text for parse in parses for text in parse.utterances[chosen:]})
    return [
        tuple(
            None if place < chosen else _failure(parser, parse, place, meanings[text])
            for place, text in enumerate(parse.utterances)
        )
        for parse in parses
    ]


def _failure(parser: Parser, parse: Parse, place: int, usual: Sequence[str]) -> str | None:
    """Why the first of the usual commands fails after those that the parse has before."""
    if not parse.readings:
        return None
    *before, own = parse.readings[0].commands[: place + 1]
    reasons = [] if own in usual else [_error(parser, parse.world, [*before, command]) for command in usual]
    return reasons[0] if all(reasons) and reasons else None


def _error(parser: Parser, world: str, commands: Sequence[str]) -> str | None:
    try:
        execute(parser.domain, world, " ".join(commands))
    except InvalidProgram as error:
        reason = error.reason.removeprefix(f"{error.token}: ")
        # "needs one beaker": here the instruction refers to it in another way. "Next to" has another side at the ends.
        if not reason.startswith("needs ") and not reason.endswith("off the stage"):
            return reason
    return None


def usual_meanings(parser: Parser, texts: set[str]) -> dict[str, tuple[str, ...]]:
    """The commands that each instruction has in most of the other worlds; none where it depends on the world."""
    kept = _kept.get(parser, {})
    new = texts - kept.keys()
    alone = {text for text in new if kind_of_reference(text) != TO_EARLIER}  # others mean nothing by themselves
    worlds = other_worlds(parser.domain.name)
    best = min(READINGS, parser.config.run.evaluation_beam)
    found: dict[str, tuple[str, ...]] = dict.fromkeys(new - alone, ())
    for text in alone:
        found[text] = _usual(parser.parse_many([(world, [text]) for world in worlds], best, room=1))
    meanings = {text: kept[text] for text in texts & kept.keys()} | found
    _kept[parser] = {**kept, **found} if len(kept) < MOST_KEPT else found  # other threads may read the old one
    return meanings


_kept: WeakKeyDictionary[Parser, dict[str, tuple[str, ...]]] = WeakKeyDictionary()


def _usual(parses: Sequence[Parse]) -> tuple[str, ...]:
    """The commands that lead to the same world as the best reading in most worlds, the commonest first."""
    understood = [parse for parse in parses if parse.understood]
    commands = Counter(
        command
        for parse in understood
        for command in dict.fromkeys(reading.commands[0] for reading in parse.outcomes[0].readings)
    )
    least = max(LEAST_WORLDS, LEAST_SHARE * len(understood))
    return tuple(command for command, count in commands.most_common() if count >= least)


@functools.cache
def other_worlds(domain: str) -> Sequence[str]:
    """Worlds in which most things are possible."""
    generator, roomy = random.Random(0), _ROOMY[base_name(domain)]
    worlds = [roomy(generator, number) for number in range(WORLDS)]
    return [" ".join(f"{place}:{cell}" for place, cell in enumerate(world, start=1)) for world in worlds]


def _roomy_stage(generator: random.Random, _: int) -> list[str]:
    """Four people in different shirts and hats, both ends free."""
    stage = ["__"] * 10
    shirts, hats = generator.sample([*NAMES], 4), generator.sample([*NAMES, "_"], 4)
    for place, shirt, hat in zip(generator.sample(range(1, 9), 4), shirts, hats, strict=True):
        stage[place] = shirt + hat
    return stage


def _roomy_beakers(generator: random.Random, number: int) -> list[str]:
    """One or two units of each colour, and a mixture: every beaker can be poured into every other one.

    A colour names one beaker only, and that stands in each place in one world of seven. So "pour the green beaker into
    the last one" is possible in most of them.
    """
    beakers = [colour * (1 + number % 2) for colour in ALCHEMY_NAMES]
    beakers.append("".join(generator.sample([*ALCHEMY_NAMES], 2)))
    shift, turn = number % len(beakers), number // len(beakers)
    random.Random(turn).shuffle(beakers)
    return beakers[shift:] + beakers[:shift]


def _full_row(generator: random.Random, _: int) -> list[str]:
    return generator.sample("01234", 5)


_ROOMY: Mapping[str, Callable[[random.Random, int], list[str]]] = {
    "scene": _roomy_stage,
    "alchemy": _roomy_beakers,
    "tangrams": _full_row,
}
