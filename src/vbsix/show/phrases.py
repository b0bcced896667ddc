"""What a command did, in plain words: "pour beaker 3 into beaker 5", "the person who just entered leaves".

The words follow from the worlds before and after the command, so that all references are resolved. Where the command
refers to an earlier one, the words say so too.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from vbsix.domains.names import base_name
from vbsix.show.svg.worlds import ALCHEMY_NAMES, NAMES

NOTHING = "nothing changes"
ORDINALS = ("", "first", "second", "third", "fourth", "fifth")
UNITS = ("no units", "one unit", "two units", "three units", "four units")


@dataclass(frozen=True)
class Change:
    """What a command did."""

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
    change_of = _CHANGES.get(base_name(domain))
    if change_of is None:
        return None
    try:
        return _tell(change_of, worlds, commands)
    except (IndexError, KeyError, StopIteration, ValueError):
        return None  # a domain of your own that has the name of a built-in one, and other worlds


def _tell(
    change_of: Callable[[Sequence[str], Sequence[str]], Change], worlds: Sequence[str], commands: Sequence[str]
) -> str:
    before, after = _cells(worlds[-2]), _cells(worlds[-1])
    if before == after:
        return NOTHING
    change = change_of(before, after)
    recalled: Mapping[int, str] = {}
    refers = any(token[0] in "HW" and token[1:].isdigit() for token in commands[-1].split())
    if refers and len(worlds) > 2 and worlds[-3] != worlds[-2]:
        recalled = change_of(_cells(worlds[-3]), before).after
    named = [recalled[place].format(name) if place in recalled else name for place, name in change.things]
    return change.words(*[*named, "", ""][:2])


def tell_all(domain: str, world: str, worlds: Sequence[str], commands: Sequence[str]) -> list[str | None]:
    """What each of some commands did, from a first world on."""
    every = [world, *worlds]
    return [tell(domain, every[: number + 1], commands[:number]) for number in range(1, len(commands) + 1)]


def _scene(before: Sequence[str], after: Sequence[str]) -> Change:
    changed = _differences(before, after)
    left = [place for place in changed if before[place] != "__" and after[place] == "__"]
    come = [place for place in changed if before[place] == "__" and after[place] != "__"]
    if left and come:
        (origin, *_), (goal, *_) = left, come
        return Change(
            lambda person, _: f"{person} moves to position {goal + 1}",
            ((origin, _person(before[origin])),),
            {goal: "the person who just moved"},
        )
    if come:
        goal = come[0]
        who = _person(after[goal]).replace("the", "a", 1)
        return Change(
            lambda *_: f"{who} enters at position {goal + 1}",
            (),
            {goal: "the person who just entered"},
        )
    if left:
        return Change(
            lambda person, _: f"{person} leaves",
            ((left[0], f"{_person(before[left[0]])} at position {left[0] + 1}"),),
            {},
        )
    one, other = changed
    return Change(
        lambda person, second: f"{person} and {second} swap hats",
        tuple((place, _person(before[place])) for place in (one, other)),
        dict.fromkeys((one, other), "{}, who just swapped hats,"),
    )


def _person(cell: str) -> str:
    hat = "no hat" if cell[1] == "_" else f"{'an' if cell[1] == 'o' else 'a'} {NAMES[cell[1]]} hat"
    return f"the person in {NAMES[cell[0]]} with {hat}"


def _alchemy(before: Sequence[str], after: Sequence[str]) -> Change:
    changed = _differences(before, after)
    sizes = {place: len(after[place].strip("_")) - len(before[place].strip("_")) for place in changed}
    if len(changed) == 2:
        origin, goal = sorted(changed, key=sizes.__getitem__)
        return Change(
            lambda one, other: f"pour {one} into {other}",
            ((origin, _beaker(origin)), (goal, _beaker(goal))),
            {goal: "{}, the one just filled", origin: "{}, the one just emptied"},
        )
    (place,) = changed
    things = ((place, _beaker(place)),)
    if sizes[place] == 0:
        brown = ALCHEMY_NAMES["b"]
        return Change(lambda one, _: f"mix {one} (it turns {brown})", things, {place: "{}, the one just mixed"})
    if after[place] == "_":
        return Change(lambda one, _: f"empty {one}", things, {place: "{}, the one just emptied"})
    units = UNITS[-sizes[place]]
    return Change(lambda one, _: f"pour out {units} of {one}", things, {place: "{}, the same one as before"})


def _beaker(place: int) -> str:
    return f"beaker {place + 1}"


def _tangrams(before: Sequence[str], after: Sequence[str]) -> Change:
    if len(after) < len(before):
        gone = next(place for place in range(len(before)) if place == len(after) or before[place] != after[place])
        return Change(lambda one, _: f"remove {one}", ((gone, _figure(gone)),), {})
    if len(after) > len(before):
        new = next(place for place in range(len(after)) if place == len(before) or before[place] != after[place])
        return Change(
            lambda *_: f"put the removed figure back in {ORDINALS[new + 1]} place",
            (),
            {new: "{}, the one just put back"},
        )
    one, other = _differences(before, after)
    return Change(
        lambda first, second: f"swap {first} and {second}",
        tuple((place, _figure(place)) for place in (one, other)),
        dict.fromkeys((one, other), "{}"),
    )


def _figure(place: int) -> str:
    return f"the {ORDINALS[place + 1]} figure"


def _cells(world: str) -> list[str]:
    return [word.partition(":")[2] for word in world.split()]


def _differences(before: Sequence[str], after: Sequence[str]) -> list[int]:
    return [place for place, (one, other) in enumerate(zip(before, after, strict=True)) if one != other]


_CHANGES: Mapping[str, Callable[[Sequence[str], Sequence[str]], Change]] = {
    "scene": _scene,
    "alchemy": _alchemy,
    "tangrams": _tangrams,
}
