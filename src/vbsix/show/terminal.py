"""Worlds as pictures of text: in colour on a terminal, and readable without."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from rich.text import Text

from vbsix.domains.changes import FIGURE_NAMES
from vbsix.domains.names import base_name
from vbsix.domains.sail_maps import Map, Place, corners, find_maps
from vbsix.show.svg.worlds import ALCHEMY_COLOURS, COLOURS, FLOOR_COLOURS

_BEAKER_HEIGHT = 4
_ARROWS = {0: "▲", 90: "▶", 180: "▼", 270: "◀"}


def draw_world(domain: str, world: str) -> Text:
    """A picture of a world in its text form; of a domain that has no picture, the text itself.

    The world is taken to be valid: `Domain.parse_world` is what checks it.
    """
    return _PICTURES.get(base_name(domain), Text)(world)


def _scene(world: str) -> Text:
    stage = _elements(world)
    hats = [_block("▟", hat, "▙") if hat != "_" else "" for _, (_, hat) in stage]
    shirts = [_block("█", shirt, "█") if shirt != "_" else Text("·", "dim") for _, (shirt, _) in stage]
    return _table([("hat", hats), ("shirt", shirts), ("position", _positions(stage))])


def _block(left: str, colour: str, right: str) -> Text:
    """The letter of a colour inside a solid shape of that colour."""
    fill = COLOURS[colour]
    return Text.assemble((left, fill), (colour, f"black on {fill}"), (right, fill))


def _alchemy(world: str) -> Text:
    beakers = _elements(world)
    levels = [
        ("", [_level(units.replace("_", "").ljust(_BEAKER_HEIGHT)[level]) for _, units in beakers])
        for level in reversed(range(_BEAKER_HEIGHT))
    ]
    return _table([*levels, ("", ["└───┘"] * len(beakers)), ("beaker", _positions(beakers))])


def _level(unit: str) -> Text:
    """One unit between the walls of a beaker; a space where there is none."""
    fill = "" if unit == " " else f"black on {ALCHEMY_COLOURS[unit]}"
    return Text.assemble("│", (f" {unit} ", fill), "│")


def _tangrams(world: str) -> Text:
    row = _elements(world)
    if not row:
        return Text("(an empty row)", "dim")
    figures = [Text(f" {FIGURE_NAMES[int(shape)]} ", "bold reverse") for _, shape in row]
    return _table([("figure", figures), ("position", _positions(row))])


def _sail(world: str) -> Text:
    """The map with the first letter of each item, hallways in the colours of their floors, and an arrow."""
    name, (x, y, *heading) = world.split()[0], map(int, world.split()[1:])
    map_ = next((one for one in find_maps() if one.name == name), None)
    if map_ is None:
        return Text(world)
    (left, top), (right, bottom) = corners(map_)
    lines = []
    for row in range(top, bottom + 1):
        across, down = Text(), Text()
        for place in ((column, row) for column in range(left, right + 1)):
            item = map_.items.get(place)
            mark = " " if item is None else item[:1] or "·"
            is_here = place == (x, y)
            across.append(_ARROWS[heading[0]] if is_here and heading else "●" if is_here else mark, "bold" * is_here)
            across.append_text(_hallway(map_, place, 90, "──"))
            down.append_text(_hallway(map_, place, 180, "│")).append("  ")
        lines += [across, down]
    return Text("\n").join([*lines[:-1], Text(world)])


def _hallway(map_: Map, place: Place, heading: int, line: str) -> Text:
    next_ = map_.ahead(place, heading)
    return Text(" " * len(line)) if next_ is None else Text(line, FLOOR_COLOURS[map_.hallways[place, next_].floor])


_PICTURES: dict[str, Callable[[str], Text]] = {
    "scene": _scene,
    "alchemy": _alchemy,
    "tangrams": _tangrams,
    "sail": _sail,
}


def _elements(world: str) -> list[tuple[str, str]]:
    """The (position, content) pairs of a text such as `1:r_ 2:__`."""
    return [(position, content) for position, _, content in (word.partition(":") for word in world.split())]


def _positions(elements: Iterable[tuple[str, str]]) -> list[Text]:
    return [Text(position, "dim") for position, _ in elements]


def _table(rows: Iterable[tuple[str, Iterable[str | Text]]]) -> Text:
    """Rows of centred cells behind their labels."""
    lines = []
    for label, cells in rows:
        line = Text.assemble((f"{label:>8} ", "dim"))
        for cell in cells:
            centred = Text.assemble(" ", cell)
            centred.align("center", 6)
            line.append_text(centred)
        line.rstrip()
        lines.append(line)
    return Text("\n").join(lines)
