"""What a command did, in plain words: "pour beaker 3 into beaker 5", "the person who just entered leaves".

The words follow from the worlds before and after the command, so that all references are resolved. Where the command
refers to an earlier one, the words say so too.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from vbsix.domains.changes import ALCHEMY_NAMES, NAMES, NOTHING, Change, change_between, units
from vbsix.utilities.errors import with_article

REFERRING = "HW"
"""How the tokens begin that recall an argument of an earlier command, or where it was."""
ORDINALS = ("", "first", "second", "third", "fourth", "fifth")
UNITS = ("no units", "one unit", "two units", "three units", "four units")


@dataclass(frozen=True)
class Phrase:
    """What a command did, in words."""

    words: Callable[[str, str], str]
    """The sentence, from what to call the first and the second thing."""
    things: tuple[tuple[int, str], ...]
    """Where the things were, and what to call them."""
    after: Mapping[int, str]
    """What to call, in the next command, the thing that is at a place after this one."""


def tell(domain: str, worlds: Sequence[str], commands: Sequence[str]) -> str | None:
    """What the last of some commands did; None where it is not known, as in domains of your own.

    Args:
        domain: the name of the language.
        worlds: the first world, and the world after each command.
        commands: the tokens of each command.
    """
    try:
        return _tell(domain, worlds, commands)
    except (IndexError, KeyError, StopIteration, ValueError):
        return None  # a domain of your own that has the name of a built-in one, and other worlds


def _tell(domain: str, worlds: Sequence[str], commands: Sequence[str]) -> str | None:
    change = change_between(domain, worlds[-2], worlds[-1])
    if change is None:
        return None
    if change.kind == NOTHING:
        return "nothing changes"
    phrase = _phrase(change)
    recalled: Mapping[int, str] = {}
    refers = any(token[0] in REFERRING and token[1:].isdigit() for token in commands[-1].split())
    if refers and len(worlds) > 2 and worlds[-3] != worlds[-2]:
        earlier = change_between(domain, worlds[-3], worlds[-2])
        recalled = _phrase(earlier).after if earlier else {}
    named = [recalled[place].format(name) if place in recalled else name for place, name in phrase.things]
    return phrase.words(*[*named, "", ""][:2])


def tell_all(domain: str, world: str, worlds: Sequence[str], commands: Sequence[str]) -> list[str | None]:
    """What each of some commands did, from a first world on."""
    every = [world, *worlds]
    return [tell(domain, every[: number + 1], commands[:number]) for number in range(1, len(commands) + 1)]


def _phrase(change: Change) -> Phrase:
    first, last = change.places[0], change.places[-1]
    match change.kind:
        case "move":
            return Phrase(
                lambda person, _: f"{person} moves to position {last + 1}",
                ((first, _person(change.before[0])),),
                {last: "the person who just moved"},
            )
        case "come":
            who = _person(change.after[0]).replace("the", "a", 1)
            return Phrase(
                lambda *_: f"{who} enters at position {first + 1}", (), {first: "the person who just entered"}
            )
        case "leave":
            who = f"{_person(change.before[0])} at position {first + 1}"
            return Phrase(lambda person, _: f"{person} leaves", ((first, who),), {})
        case "swap hats":
            return Phrase(
                lambda person, second: f"{person} and {second} swap hats",
                tuple(zip(change.places, map(_person, change.before), strict=True)),
                dict.fromkeys(change.places, "{}, who just swapped hats,"),
            )
        case "pour":
            return Phrase(
                lambda one, other: f"pour {_closed(one)} into {other}",
                ((first, _beaker(first)), (last, _beaker(last))),
                {last: "{}, the one just filled", first: "{}, the one just emptied"},
            )
        case "mix":
            brown = ALCHEMY_NAMES["b"]
            return Phrase(
                lambda one, _: f"mix {one} (it turns {brown})",
                ((first, _beaker(first)),),
                {first: "{}, the one just mixed"},
            )
        case "drain":
            left, things = units(change.after[0]), ((first, _beaker(first)),)
            if not left:
                return Phrase(lambda one, _: f"empty {one}", things, {first: "{}, the one just emptied"})
            amount = UNITS[units(change.before[0]) - left]
            return Phrase(lambda one, _: f"pour out {amount} of {one}", things, {first: "{}, the same one as before"})
        case "remove":
            return Phrase(lambda one, _: f"remove {one}", ((first, _figure(first)),), {})
        case "add":
            where = f"put the removed figure back in {ORDINALS[first + 1]} place"
            return Phrase(lambda *_: where, (), {first: "{}, the one just put back"})
        case _:
            return Phrase(
                lambda one, other: f"swap {_closed(one)} and {other}",
                ((first, _figure(first)), (last, _figure(last))),
                {},
            )


def _closed(name: str) -> str:
    """What to call a thing before more words: "beaker 3, the one just filled," with the second comma."""
    return f"{name}," if "," in name else name


def _person(cell: str) -> str:
    hat = "no hat" if cell[1] == "_" else with_article(f"{NAMES[cell[1]]} hat")
    return f"the person in {NAMES[cell[0]]} with {hat}"


def _beaker(place: int) -> str:
    return f"beaker {place + 1}"


def _figure(place: int) -> str:
    return f"the {ORDINALS[place + 1]} figure"
