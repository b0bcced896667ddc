"""Worlds as small pictures. Every colour carries its letter, so that no picture depends on colour alone."""

from __future__ import annotations

import functools
from collections.abc import Callable

from vbsix.domains.changes import ALCHEMY_NAMES, FIGURE_NAMES, NAMES, cells
from vbsix.domains.names import base_name
from vbsix.domains.sail_maps import corners, find_maps
from vbsix.show.svg.elements import FAINT, INK, MONO, Picture, inline, label, path, place, plain, tag

# Bright enough to carry a dark letter.
COLOURS = {"r": "#ff6b5e", "y": "#ffd93b", "g": "#4cc46a", "o": "#ff9f43", "p": "#c58bff", "b": "#6aa5ff"}
ALCHEMY_COLOURS = COLOURS | {"b": "#b5835a"}  # b is brown there
FIGURES = {
    "0": "M-11 11 L-3 -11 L3 -3 L11 -11 L11 11 Z",
    "1": "M-11 -11 L11 -11 L0 0 L11 11 L-11 11 Z",
    "2": "M-11 0 L0 -11 L11 0 L4 0 L4 11 L-11 11 Z",
    "3": "M-11 -4 L0 -11 L11 -4 L0 3 L11 11 L-11 11 Z",
    "4": "M-4 -11 L4 -11 L4 -4 L11 -4 L11 11 L-11 4 L-4 4 Z",
}
"""Outlines of the figures of tangrams. They look like nothing in particular, for the models call them by position."""
FLOOR_COLOURS = {
    "blue": "#6aa5ff",
    "brick": "#d9705f",
    "concrete": "#9aa3ab",
    "flower": "#ff9fc8",
    "grass": "#4cc46a",
    "gravel": "#6f7780",
    "wood": "#b5835a",
    "yellow": "#ffd93b",
}
"""Of the floors of SAIL's hallways."""

_LINE = "#3b444d"
_EMPTY = "#b4bcc4"


def world_svg(domain: str, world: str) -> Picture:
    """A picture of a world in its text form; of a domain that has no picture, the text itself.

    The world is taken to be valid: `Domain.parse_world` is what checks it. All worlds of a built-in domain have the
    same size. The fragment uses no ids, classes or style sheets, so that any number of them fit on a page. What moves
    is marked by `data-piece`, which says what it looks like, so that a page can let it move.
    """
    return _PICTURES.get(base_name(domain), _text)(world)


def has_picture(domain: str) -> bool:
    """Whether worlds of the domain of that name are drawn."""
    return base_name(domain) in _PICTURES


def world_html(domain: str, world: str) -> str:
    """A world inside a page: its picture or, where the domain has none, its text, which breaks into lines."""
    return inline(world_svg(domain, world)) if has_picture(domain) else tag("code", plain(world))


def _scene(world: str) -> Picture:
    cell, floor, height = 20, 40, 52
    people, words = [], []
    for place_, content in enumerate(cells(world), start=1):
        people.append(_position(place_, cell, height))
        if content == "__":
            people.append(tag("circle", cx=(place_ - 0.5) * cell, cy=floor - 3, r=1.2, fill=_EMPTY))
        else:
            people.append(place(_person(content[0], content[1]), (place_ - 0.5) * cell, floor, data_piece=content))
            wears = f"{NAMES[content[1]]} hat" if content[1] != "_" else "no hat"
            words.append(f"position {place_}: {NAMES[content[0]]} shirt, {wears}")
    stage = path("M", 0, floor, "H", 10 * cell, stroke=_LINE, stroke_width=1)
    return _picture("; ".join(words) or "an empty stage", [stage, *people], 10 * cell, height)


@functools.cache
def _person(shirt: str, hat: str) -> str:
    """A person around x = 0 who stands at y = 0."""
    parts = [
        tag("circle", cx=0, cy=-22, r=5, fill="#f4dfca", stroke=_LINE, stroke_width=0.8),
        path(
            "M", -7.5, 0, "V", -11, "Q", -7.5, -17, 0, -17, "Q", 7.5, -17, 7.5, -11, "V", 0, "Z",
            fill=COLOURS[shirt], stroke=_LINE, stroke_width=0.8,
        ),
        _letter(shirt, 0, -4.5, 10),
    ]  # fmt: skip
    if hat != "_":
        crown = ("M", -9, -25, "H", 9, "V", -27.5, "H", 6, "L", 5, -37, "H", -5, "L", -6, -27.5, "H", -9, "Z")
        parts.append(path(*crown, fill=COLOURS[hat], stroke=_LINE, stroke_width=0.8))
        parts.append(_letter(hat, 0, -28.5, 9))
    return "".join(parts)


def _alchemy(world: str) -> Picture:
    cell, unit, bottom, height = 24, 10, 43, 55
    beakers, words = [], []
    for place_, content in enumerate(cells(world), start=1):
        left, right = (place_ - 1) * cell + 3.5, place_ * cell - 3.5
        beakers.append(_position(place_, cell, height))
        units = content.replace("_", "")
        for level, colour in enumerate(units, start=1):
            liquid = _unit(colour, right - left, unit)
            beakers.append(place(liquid, left, bottom - level * unit, data_piece=colour))
        glass = ("M", left - 1.5, 0.5, "L", left, 3, "V", bottom, "H", right, "V", 3, "L", right + 1.5, 0.5)
        beakers.append(path(*glass, fill="none", stroke=_LINE, stroke_width=1.2, stroke_linejoin="round"))
        inside = ", ".join(ALCHEMY_NAMES[colour] for colour in units)
        words.append(f"beaker {place_}: {inside or 'empty'}")
    return _picture("; ".join(words), beakers, 7 * cell, height)


@functools.cache
def _unit(colour: str, width: float, height: float) -> str:
    size = {"x": 0, "y": 0, "width": width, "height": height}
    liquid = tag("rect", **size, fill=ALCHEMY_COLOURS[colour], stroke="#ffffff", stroke_width=0.5)
    return liquid + _letter(colour, width / 2, 8, 9)


def _tangrams(world: str) -> Picture:
    cell, floor, height = 26, 28, 40
    width = 5 * cell
    shapes, words = [path("M", 0, floor, "H", width, stroke=_LINE, stroke_width=1)], []
    for place_, identity in enumerate(cells(world), start=1):
        shapes.append(_position(place_, cell, height))
        shapes.append(place(_figure(identity), (place_ - 0.5) * cell, floor - 13, data_piece=identity))
        words.append(f"position {place_}: figure {FIGURE_NAMES[int(identity)]}")
    if not words:
        shapes.append(label("an empty row", width / 2, floor - 9, 10, fill=FAINT, text_anchor="middle"))
    return _picture("; ".join(words) or "an empty row", shapes, width, height)


@functools.cache
def _figure(identity: str) -> str:
    """A figure around 0, 0."""
    return tag("path", d=FIGURES[identity], fill="#a9bacb", stroke=_LINE, stroke_width=1, stroke_linejoin="round")


def _sail(world: str) -> Picture:
    cell, name, (x, y, *heading) = 22, world.split()[0], map(int, world.split()[1:])
    map_ = next((one for one in find_maps() if one.name == name), None)
    if map_ is None:
        return _text(world)
    (left, top), (right, bottom) = corners(map_)
    at = lambda place_: ((place_[0] - left + 0.5) * cell, (place_[1] - top + 0.5) * cell)  # noqa: E731
    parts = [
        path("M", *at(one), "L", *at(other), stroke=FLOOR_COLOURS[hallway.floor], stroke_width=6)
        for (one, other), hallway in map_.hallways.items()
        if one < other
    ]
    for place_, item in map_.items.items():
        cx, cy = at(place_)
        parts.append(tag("circle", cx=cx, cy=cy, r=5, fill="#ffffff", stroke=_EMPTY))
        parts += [_letter(item[0], cx, cy + 3, 8)] if item else []
    if heading:
        person = tag("path", d="M0 -8 L6 6 L-6 6 Z", fill=COLOURS["r"], stroke=_LINE, transform=f"rotate({heading[0]})")
    else:
        person = tag("circle", r=6, fill=COLOURS["r"], stroke=_LINE)
    parts.append(place(person, *at((x, y)), data_piece="person"))
    words = f"map {name}: x {x}, y {y}" + (f", heading {heading[0]}" if heading else "")
    return _picture(words, parts, (right - left + 1) * cell, (bottom - top + 1) * cell)


def _text(world: str) -> Picture:
    size = 11
    return Picture(label(world, 0, size, size, font_family=MONO), 0.62 * size * max(len(world), 1), size + 4)


_PICTURES: dict[str, Callable[[str], Picture]] = {
    "scene": _scene,
    "alchemy": _alchemy,
    "tangrams": _tangrams,
    "sail": _sail,
}


def _picture(words: str, parts: list[str], width: float, height: float) -> Picture:
    return Picture(tag("g", tag("title", plain(words)), *parts, role="img"), width, height)


@functools.cache
def _position(number: int, cell: float, height: float) -> str:
    return label(str(number), (number - 0.5) * cell, height - 2, 8, fill=FAINT, text_anchor="middle")


def _letter(letter: str, x: float, y: float, size: float) -> str:
    return label(letter, x, y, size, fill=INK, text_anchor="middle", font_weight="bold")
