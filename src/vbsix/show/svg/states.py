"""A state as a card: its world, its stack and its score, framed by what became of it."""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING

from vbsix.show.svg.elements import FAINT, INK, MONO, Picture, label, path, place, plain, tag
from vbsix.show.svg.worlds import world_svg

if TYPE_CHECKING:  # pictures do without JAX
    from vbsix.show.inspection import SeenState

ACTOR = "#1f5fbf"
"""Colour of actor scores, as in the paper."""
CRITIC = "#2a7d3f"
"""Colour of critic scores."""
CORRECT, CORRECT_TEXT = "#b87900", "#7a5000"
INCORRECT = "#b5473a"
STYLES: dict[str, dict[str, str | float]] = {
    "beam": {"fill": "#dfe4e9", "stroke": "#4f5a65", "stroke_width": 1.5},
    "pruned": {"fill": "#ffffff", "stroke": "#a3adb7", "stroke_width": 1, "stroke_dasharray": "4 3"},
    "correct": {"fill": "#ffec9e", "stroke": CORRECT, "stroke_width": 2.8},
    "incorrect": {"fill": "#ffffff", "stroke": INCORRECT, "stroke_width": 1.2},
}
WORDS = {
    "beam": "kept in the beam",
    "pruned": "dropped",
    "correct": "correct terminal state",
    "incorrect": "incorrect terminal state",
}
PAD = 9
_CHIP_HEIGHT, _CHIP_FONT = 15, 10.5
_MONO_WIDTH = 0.61


def card(domain: str, state: SeenState, *, instructions: int) -> Picture:
    """A state of a search."""
    world = world_svg(domain, state.world)
    width, foot = world.width + 2 * PAD, PAD + world.height + 6 + _CHIP_HEIGHT + 14
    height = foot + 7
    faded = 0.6 if state.kind == "pruned" else 1
    inside = place(world.markup, PAD, PAD) + place(_stack(state, world.width), PAD, PAD + world.height + 6)
    actor, critic = probability(state.log_probability), "" if state.value is None else f"{state.value:.2f}"
    score = label(actor, PAD, foot, 11, fill=ACTOR, font_weight="bold")
    score += label(critic, PAD + 12 + 6.5 * len(actor), foot, 11, fill=CRITIC, font_weight="bold") if critic else ""
    notes = label(_note(state, instructions), width - PAD, foot, 9.5, fill=FAINT, text_anchor="end")
    frame = tag("rect", width=width, height=height, rx=7, **STYLES[state.kind])
    badge = place(mark(state.kind), width - 4, 3)
    words = (
        f"{WORDS[state.kind]} after {state.iteration} tokens; world {state.world or '(empty)'}; "
        f"stack {' '.join(state.stack) or '(empty)'}; probability {actor}"
        f"{f'; critic score {critic}' if critic else ''}"
    )
    markup = tag(
        "g", tag("title", plain(words)), frame, tag("g", inside, opacity=faded), score, notes, badge, class_=state.kind
    )
    return Picture(markup, width, height)


def mark(kind: str) -> str:
    """A tick or a cross in a disc around 0, 0 for terminal states."""
    if kind not in ("correct", "incorrect"):
        return ""
    colour = CORRECT if kind == "correct" else INCORRECT
    stroke = {"fill": "none", "stroke": "#ffffff", "stroke_width": 2, "stroke_linecap": "round"}
    tick, cross = ("M", -3.5, 0, "L", -1, 3, "L", 4, -3), ("M", -3, -3, "L", 3, 3, "M", -3, 3, "L", 3, -3)
    return tag("circle", cx=0, cy=0, r=8, fill=colour) + path(*(tick if kind == "correct" else cross), **stroke)


def probability(log_probability: float) -> str:
    """A probability in two digits, however small: `0.036`, `1.2·10⁻⁶`."""
    if log_probability > math.log(0.00095):
        return f"{math.exp(log_probability):.2g}"
    mantissa, exponent = f"{math.exp(log_probability % -math.log(10)):.1e}".split("e")
    power = int(exponent) + math.ceil(log_probability / math.log(10))
    return f"{mantissa}·10{str(power).translate(_SUPERSCRIPTS)}"


_SUPERSCRIPTS = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


def _note(state: SeenState, instructions: int) -> str:
    """Where else the state was expanded; which instruction it is at, where there are several."""
    if state.expanded_at is not None:
        return f"expanded after {state.expanded_at}"
    if instructions > 1 and state.kind in ("beam", "pruned"):
        return f"instruction {state.instructions_done + 1}"
    return ""


def _stack(state: SeenState, width: float) -> str:
    """The elements side by side, bottom first."""
    if state.kind in ("correct", "incorrect"):
        colour = CORRECT_TEXT if state.kind == "correct" else INCORRECT
        return label(state.kind, 0, 11, 11, fill=colour, font_weight="bold")
    if not state.stack:
        return label("empty stack", 0, 11, 9.5, fill=FAINT)
    chips, x = [], 0.0
    room = (width - 4 * (len(state.stack) - 1)) / len(state.stack)
    for element in state.stack:
        text = short(element)
        letter = _CHIP_FONT * _MONO_WIDTH
        most = max(int((room - 8) / letter), 1)
        if len(state.stack) > 1 or len(text) > most:
            text = text if len(text) <= most else text[: max(most - 1, 1)] + "…"
        size = len(text) * letter + 8
        chips.append(tag("rect", x=x, y=0, width=size, height=_CHIP_HEIGHT, rx=3, fill="#ffffff", stroke="#8c96a0"))
        chips.append(label(text, x + 4, 11.2, _CHIP_FONT, font_family=MONO, fill=INK))
        x += size + 4
    return "".join(chips)


def short(element: str) -> str:
    """A stack element as the pictures show it: `number:3` as 3, `object:3` as #3, `list:[1,2,3]` as [1-3]."""
    kind, _, value = element.partition(":")
    match kind:
        case "number" | "color" | "fraction":
            return value
        case "object":
            return f"#{value}"
        case "list":
            return f"[{_ranges([int(number) for number in re.findall(r'[0-9]+', value)])}]"
        case "gone":
            return f"gone {value}"
        case _:
            return element


def _ranges(numbers: list[int]) -> str:
    """Sorted numbers with runs drawn together: `1,4-6`."""
    runs: list[list[int]] = []
    for number in numbers:
        if runs and runs[-1][-1] == number - 1:
            runs[-1].append(number)
        else:
            runs.append([number])
    return ",".join(f"{run[0]}-{run[-1]}" if len(run) > 2 else ",".join(map(str, run)) for run in runs)
