"""What a command did to a world of SCONE's domains, from the worlds before and after it.

So it is known where programs are not, as in data, and all references are resolved.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from vbsix.domains.names import base_name

NOTHING = "nothing"
NAMES = {"r": "red", "y": "yellow", "g": "green", "o": "orange", "p": "purple", "b": "blue"}
ALCHEMY_NAMES = NAMES | {"b": "brown"}
"""What b means in beakers."""
FIGURE_NAMES = "ABCDE"


@dataclass(frozen=True)
class Change:
    """What a command did.

    Attributes:
        kind: in a word or two.
        places: what it acted on, from 0; where something goes from one place to another, in that order.
        before: what stood at each place before.
        after: what stands there now.
    """

    kind: str
    places: tuple[int, ...]
    before: tuple[str, ...]
    after: tuple[str, ...]


def cells(world: str) -> list[str]:
    """What stands at each position of a text such as `1:r_ 2:__`."""
    return [word.partition(":")[2] for word in world.split()]


def change_between(domain: str, before: str, after: str) -> Change | None:
    """What a command did; None where that is not known, as in domains of your own."""
    kind_of = _CHANGES.get(base_name(domain))
    if kind_of is None:
        return None
    old, new = cells(before), cells(after)
    kind, places = (NOTHING, []) if old == new else kind_of(old, new)
    return Change(kind, tuple(places), *(tuple(_content(world, place) for place in places) for world in (old, new)))


def units(cell: str) -> int:
    """How many units a beaker holds."""
    return len(cell.strip("_"))


def _content(world: Sequence[str], place: int) -> str:
    return world[place] if place < len(world) else ""


def _scene(before: Sequence[str], after: Sequence[str]) -> tuple[str, list[int]]:
    changed = _differences(before, after)
    left = [place for place in changed if after[place] == "__"]
    come = [place for place in changed if before[place] == "__"]
    if left and come:
        return "move", [left[0], come[0]]
    if left or come:
        return ("leave" if left else "come"), [*left, *come][:1]
    return "swap hats", changed


def _alchemy(before: Sequence[str], after: Sequence[str]) -> tuple[str, list[int]]:
    added = {place: units(after[place]) - units(before[place]) for place in _differences(before, after)}
    if sum(added.values()):
        return "drain", [min(added, key=added.__getitem__)]
    if any(added.values()):
        return "pour", [min(added, key=added.__getitem__), max(added, key=added.__getitem__)]
    return "mix", list(added)[:1]


def _tangrams(before: Sequence[str], after: Sequence[str]) -> tuple[str, list[int]]:
    if len(before) == len(after):
        return "swap", _differences(before, after)
    shorter, longer = sorted((before, after), key=len)
    place = next(place for place in range(len(longer)) if place == len(shorter) or shorter[place] != longer[place])
    return ("add" if longer is after else "remove"), [place]


def _differences(before: Sequence[str], after: Sequence[str]) -> list[int]:
    return [place for place, (one, other) in enumerate(zip(before, after, strict=True)) if one != other]


_CHANGES: Mapping[str, Callable[[Sequence[str], Sequence[str]], tuple[str, list[int]]]] = {
    "scene": _scene,
    "alchemy": _alchemy,
    "tangrams": _tangrams,
}
