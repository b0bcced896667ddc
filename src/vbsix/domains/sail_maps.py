"""The maps of the SAIL navigation corpus, read from its files: intersections with objects, joined by hallways.

The corpus is not part of this package. No JAX, so that pictures can do without.
"""

from __future__ import annotations

import functools
import os
import xml.etree.ElementTree as xml
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from vbsix.utilities.errors import InvalidData

MAPS = ("grid", "jelly", "l")
"""The corpus's maps."""
HEADINGS = {0: (0, -1), 90: (1, 0), 180: (0, 1), 270: (-1, 0)}
"""Where a step leads, in x and y, by heading."""
ITEMS = ("barstool", "chair", "easel", "hatrack", "lamp", "sofa")
FLOORS = ("blue", "brick", "concrete", "flower", "grass", "gravel", "wood", "yellow")
WALLS = ("butterfly", "fish", "tower")

Place = tuple[int, int]
"""The x and y of an intersection."""


class Hallway(NamedTuple):
    """What a segment between two intersections looks like."""

    floor: str
    wall: str


class Map(NamedTuple):
    """A map."""

    name: str
    items: Mapping[Place, str]
    """What stands at each intersection; empty for nothing."""
    hallways: Mapping[tuple[Place, Place], Hallway]
    """By the intersections that they join, in both orders."""
    numbered: Mapping[int, Place] = {}
    """The intersections between which sequences of instructions lead, by their numbers."""

    def ahead(self, place: Place, heading: int) -> Place | None:
        """The next intersection in a direction; None if no hallway leads there."""
        step = HEADINGS[heading % 360]
        next_ = place[0] + step[0], place[1] + step[1]
        return next_ if (place, next_) in self.hallways else None


def corners(map_: Map) -> tuple[Place, Place]:
    """The least and the greatest x and y of a map's intersections."""
    columns, rows = zip(*map_.items, strict=True)
    return (min(columns), min(rows)), (max(columns), max(rows))


def sail_folder() -> Path:
    """The folder of the corpus: `sail` in the folder that `VBSIX_DATA` names, which is `data` by default."""
    folder = Path(os.environ.get("VBSIX_DATA") or "data") / "sail"
    if not folder.is_dir():
        raise InvalidData(
            [
                f"{folder}: no such folder. It should have the SAIL corpus and its maps. Fetch them with: vbsix data "
                "fetch --only sail --out data; or set VBSIX_DATA to the folder that has them in sail/."
            ]
        )
    return folder


def find_maps() -> tuple[Map, ...]:
    """The corpus's maps."""
    return _read_maps(sail_folder())


@functools.cache
def _read_maps(folder: Path) -> tuple[Map, ...]:
    return tuple(read_map(folder / f"map-{name}.xml") for name in MAPS)


def read_map(path: Path) -> Map:
    """A map from a file `map-<name>.xml`. Raises `InvalidData` with every problem of the file."""
    try:
        root = xml.parse(path).getroot()
    except OSError as error:
        raise InvalidData([f"{path}: cannot be read: {error.strerror}"]) from error
    except xml.ParseError as error:
        raise InvalidData([f"{path}: not XML: {error}"]) from None
    problems: list[str] = []
    items: dict[Place, str] = {}
    numbered: dict[int, Place] = {}
    for number, node in enumerate(root.iter("node"), start=1):
        place = _place(f"{node.get('x')},{node.get('y')}")
        item = node.get("item", "")
        if place is None:
            problems.append(f"node {number}: x and y must be whole numbers")
        elif place in items:
            problems.append(f"node {number}: {place[0]},{place[1]} is there twice")
        elif item not in ("", *ITEMS):
            problems.append(f"node {number}: unknown item {item!r}; known: {', '.join(ITEMS)}")
        else:
            items[place] = item
            if node.get("id", "").isdigit():
                numbered[int(node.get("id", ""))] = place
    hallways: dict[tuple[Place, Place], Hallway] = {}
    for number, edge in enumerate(root.iter("edge"), start=1):
        ends = _place(edge.get("node1", "")), _place(edge.get("node2", ""))
        hallway = Hallway(edge.get("floor", ""), edge.get("wall", ""))
        reason = _edge_problem(ends, hallway, items)
        if reason:
            problems.append(f"edge {number}: {reason}")
        elif ends[0] and ends[1]:
            hallways[ends[0], ends[1]] = hallways[ends[1], ends[0]] = hallway
    if not items and not problems:
        problems.append("no nodes in the file")
    if problems:
        raise InvalidData(f"{path}: {problem}" for problem in problems)
    return Map(path.stem.removeprefix("map-"), items, hallways, numbered)


def _edge_problem(ends: Sequence[Place | None], hallway: Hallway, known: Mapping[Place, str]) -> str | None:
    one, other = ends
    if one is None or other is None:
        return "node1 and node2 must be places such as 0,5"
    if one not in known or other not in known:
        return "joins a place that is no node"
    if abs(one[0] - other[0]) + abs(one[1] - other[1]) != 1:
        return "joins places that are not neighbours"
    if hallway.floor not in FLOORS:
        return f"unknown floor {hallway.floor!r}; known: {', '.join(FLOORS)}"
    if hallway.wall not in WALLS:
        return f"unknown wall {hallway.wall!r}; known: {', '.join(WALLS)}"
    return None


def _place(text: str) -> Place | None:
    try:
        x, y = map(int, text.split(","))
    except ValueError:
        return None
    return x, y
