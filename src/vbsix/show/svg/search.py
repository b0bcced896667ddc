"""A search drawn as the paper draws its Figures 3 and 4: states as small worlds, a column for each iteration."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from vbsix.show.svg.elements import FAINT, MONO, Picture, document, label, path, place, tag
from vbsix.show.svg.layout import arrange
from vbsix.show.svg.states import ACTOR, CORRECT, CRITIC, STYLES, WORDS, card, mark, probability
from vbsix.show.svg.worlds import world_svg

if TYPE_CHECKING:  # pictures do without JAX
    from vbsix.show.inspection import Inspection, SeenTransition

MARGIN = 28
NARROWEST = 900
BETWEEN = 16
"""Between the cards of a column."""
HEAD = 64
"""Height of the headings over the columns."""

_EDGE = "#8c96a0"
_LABEL_FONT = 11
_MONO_WIDTH, _SANS_WIDTH = 0.61, 0.56
"""Of a letter of font size 1, on the safe side."""

_Point = tuple[float, float]
_Box = tuple[float, float, float]
"""A text's middle and half of its width."""


def draw_search(inspection: Inspection, *, target: str, utterances: Sequence[str], policy: str) -> str:
    """An SVG file of the states of an inspection, of what the search was asked and what it found.

    Args:
        inspection: limit its states to some dozens, for all of them are drawn.
        target: the target world's text.
        utterances: the instructions.
        policy: what to call the policy.
    """
    graph, programs = _graph(inspection, len(utterances)), _programs(inspection)
    legend = _legend(inspection)
    width = max(graph.width, programs.width, legend.width, NARROWEST)
    header = _header(inspection, target, utterances, policy, width)
    parts, y = [], float(MARGIN)
    for picture in (header, legend, graph, programs):
        parts.append(place(picture.markup, MARGIN, y))
        y += picture.height + MARGIN
    return document(
        Picture("".join(parts), width + 2 * MARGIN, y),
        f"A search in {inspection.space} space: {inspection.domain}",
        f"Instructions: {' / '.join(utterances)}. Target: {target or 'an empty row'}. {_summary(inspection)}",
    )


def _summary(inspection: Inspection) -> str:
    drawn = len(inspection.states)
    share = f"{drawn} of {drawn + inspection.left_out}" if inspection.left_out else f"all {drawn}"
    return f"{'A' if inspection.programs else 'No'} program was found. {share[0].upper() + share[1:]} states are drawn."


# What was asked, how to read the graph, and what was found.


def _header(inspection: Inspection, target: str, utterances: Sequence[str], policy: str, width: float) -> Picture:
    parts = [label(f"Search in {inspection.space} space: {inspection.domain}", 0, 20, 22, font_weight="bold")]
    y = 50
    for number, utterance in enumerate(utterances, start=1):
        parts.append(label(f"{number}.  {utterance}", 0, y, 15))
        y += 21
    parts.append(label(f"{_summary(inspection)} Policy: {policy}.", 0, y + 4, 12, fill=FAINT))
    world = world_svg(inspection.domain, target)
    x = width - world.width
    parts += [label("target", x, 8, 12, fill=FAINT), place(world.markup, x, 18)]
    return Picture("".join(parts), width, max(y + 8, 18 + world.height))


def _legend(inspection: Inspection) -> Picture:
    swatches = [
        (tag("rect", x=0, y=1, width=28, height=17, rx=4, **STYLES[kind]) + place(mark(kind), 27, 3), 32, words)
        for kind, words in WORDS.items()
    ]
    swatches += [
        (path("M", 0, 9, "H", 28, stroke=CORRECT, stroke_width=2.8), 28, "on a program found"),
        (label("0.1", 0, 13, 12, fill=ACTOR, font_weight="bold"), 20, "actor score"),
    ]
    if any(state.value is not None for state in inspection.states):
        swatches.append((label("0.1", 0, 13, 12, fill=CRITIC, font_weight="bold"), 20, "critic score"))
    parts, x = [], 0.0
    for markup, width, words in swatches:
        parts += [place(markup, x, 0), label(words, x + width + 6, 13, 12)]
        x += width + len(words) * 12 * _SANS_WIDTH + 26
    notes = [
        "Under each world its stack, bottom first: 3 is a number, r a colour, #3 the object at position 3, "
        "[1,4-6] a list of such objects.",
    ]
    if any(state.expanded_at is not None for state in inspection.states):
        notes.append(
            "“Expanded after 2”: the state was dropped here, but was in the beam after 2 tokens; programs may run "
            "through it there."
        )
    if policy := _same_policy(inspection.transitions):
        notes.append(f"Every token drawn has the probability {policy}.")
    parts += [label(note, 0, 38 + 18 * line, 12, fill=FAINT) for line, note in enumerate(notes)]
    return Picture("".join(parts), x, 26 + 18 * len(notes))


def _programs(inspection: Inspection) -> Picture:
    if not inspection.programs:
        return Picture("", 0, 0)
    parts, width = [label("The most probable programs found", 0, 14, 14, font_weight="bold")], 0.0
    for line, program in enumerate(inspection.programs):
        y, text = 38 + 20 * line, " ".join(program.tokens)
        score = probability(program.log_probability)
        parts += [label(score, 0, y, 12, fill=ACTOR), label(text, 90, y, 13, font_family=MONO)]
        width = max(width, 90 + len(text) * 13 * _MONO_WIDTH)
    return Picture("".join(parts), width, 28 + 20 * len(inspection.programs))


# The graph.


def _graph(inspection: Inspection, instructions: int) -> Picture:
    states = inspection.states
    cards = [card(inspection.domain, state, instructions=instructions) for state in states]
    width, height = max(card.width for card in cards), max(card.height for card in cards)
    layers = [[n for n, state in enumerate(states) if state.iteration == t] for t in range(states[-1].iteration + 1)]
    bundles = _bundles(inspection.transitions)
    texts = {ends: _edge_text(inspection, bundle) for ends, bundle in bundles.items()}
    heights = arrange(layers, list(bundles), height + BETWEEN)
    lefts = _columns(layers, texts, heights, width)
    corners = [(lefts[state.iteration], HEAD + heights[n]) for n, state in enumerate(states)]
    bottom = max(y for _, y in corners) + height

    out, into = Counter(origin for origin, _ in bundles), Counter(destination for _, destination in bundles)
    edges, labels, taken = [], [], []
    for ends in sorted(bundles, key=lambda ends: _in_program(bundles[ends])):  # those of programs lie on top
        (x, y), (to_x, to_y) = corners[ends[0]], corners[ends[1]]
        start, end = (x + width, y + height / 2), (to_x, to_y + height / 2)
        edges.append(_edge(start, end, _in_program(bundles[ends])))
        # Where edges fan out their texts have room at the far end.
        wish = 0.5 + 0.12 * ((out[ends[0]] > into[ends[1]]) - (out[ends[0]] < into[ends[1]]))
        where = _free_place(start, end, wish, len(texts[ends]), taken)
        labels.append(_edge_label(where, texts[ends], _in_program(bundles[ends])))
    headings = [_heading(inspection, t, len(layer), lefts[t], width, bottom) for t, layer in enumerate(layers)]
    pictures = [
        place(card.markup, *corner, data_iteration=state.iteration)
        for card, corner, state in zip(cards, corners, states, strict=True)
    ]
    return Picture("".join([*headings, *edges, *pictures, *labels]), lefts[-1] + width, bottom + 30)


def _bundles(transitions: Sequence[SeenTransition]) -> Mapping[tuple[int, int], list[SeenTransition]]:
    """The transitions between two states, by these states."""
    bundles: dict[tuple[int, int], list[SeenTransition]] = {}
    for transition in transitions:
        bundles.setdefault((transition.origin, transition.destination), []).append(transition)
    return bundles


def _in_program(bundle: Sequence[SeenTransition]) -> bool:
    return any(transition.in_program for transition in bundle)


def _same_policy(transitions: Sequence[SeenTransition]) -> str | None:
    """The probability of all transitions, where it is the same for all of them."""
    policies = {probability(transition.log_policy) for transition in transitions}
    return policies.pop() if len(policies) == 1 else None


def _edge_text(inspection: Inspection, bundle: Sequence[SeenTransition]) -> str:
    """The tokens of a bundle, each with its probability where that is not the same for all."""
    if _same_policy(inspection.transitions):
        return " | ".join(transition.token for transition in bundle)
    return " | ".join(f"{transition.token} ({probability(transition.log_policy)})" for transition in bundle)


def _columns(
    layers: Sequence[Sequence[int]], texts: Mapping[tuple[int, int], str], heights: Mapping[int, float], width: float
) -> list[float]:
    """Where columns begin: between two of them is room for the longest text, and for edges not to be too steep."""
    lefts = [0.0]
    for layer in layers[1:]:
        into = {ends: text for ends, text in texts.items() if ends[1] in layer}
        longest = max((len(text) for text in into.values()), default=0) * _LABEL_FONT * _MONO_WIDTH
        rise = max((abs(heights[end] - heights[start]) for start, end in into), default=0)
        lefts.append(lefts[-1] + width + max(longest + 46, min(rise / 4, 200), 90))
    return lefts


def _heading(inspection: Inspection, t: int, drawn: int, x: float, width: float, bottom: float) -> str:
    """What a column holds, and under it how many states it leaves out."""
    middle = x + width / 2
    if t == 0:
        return label("start", middle, 14, 13, font_weight="bold", text_anchor="middle")
    iteration = inspection.iterations[t - 1]
    merged = f", {iteration.merged} merged" if inspection.space == "execution" else ""
    kept = f"{iteration.kept} kept, {iteration.pruned} dropped"
    if iteration.pruned and not iteration.kept:
        kept = f"{iteration.pruned} unfinished at the limit"
    faint = {"size": 11, "fill": FAINT, "text_anchor": "middle"}
    lines = [
        label(f"after {t} token{'s' * (t > 1)}", middle, 14, 13, font_weight="bold", text_anchor="middle"),
        label(f"{iteration.distinct} states{merged}", middle, 30, **faint),
        label(kept, middle, 45, **faint),
    ]
    if left_out := iteration.distinct - drawn:
        lines.append(label(f"and {left_out} more", middle, bottom + 22, **faint))
    return "".join(lines)


def _edge(start: _Point, end: _Point, in_program: bool) -> str:
    (x, y), (to_x, to_y) = start, end
    to_x -= 7  # the head of the arrow
    middle = (x + to_x) / 2
    colour, width = (CORRECT, 2.6) if in_program else (_EDGE, 1.1)
    line = path("M", x, y, "C", middle, y, middle, to_y, to_x, to_y, fill="none", stroke=colour, stroke_width=width)
    return line + path("M", to_x + 6, to_y, "l", -8, -4, "v", 8, "Z", fill=colour)


def _free_place(start: _Point, end: _Point, wish: float, letters: int, taken: list[_Box]) -> _Point:
    """The place for a text along an edge that is nearest to the one wished for and covers least of what is taken."""
    half = letters * _LABEL_FONT * _MONO_WIDTH / 2

    def overlap(point: _Point) -> float:
        return sum(
            max(half + other + 4 - abs(point[0] - x), 0) * max(_LABEL_FONT + 3 - abs(point[1] - y), 0)
            for x, y, other in taken
        )

    shifts = [sign * 0.06 * step for step in range(6) for sign in (1, -1)]
    x, y = min((_point(start, end, min(max(wish + shift, 0.15), 0.85)) for shift in shifts), key=overlap)
    taken.append((x, y, half))
    return x, y


def _edge_label(where: _Point, text: str, in_program: bool) -> str:
    (x, y), width, height = where, len(text) * _LABEL_FONT * _MONO_WIDTH + 4, _LABEL_FONT + 4
    size = {"x": x - width / 2, "y": y - height / 2, "width": width, "height": height, "rx": 3}
    weight = "bold" if in_program else "normal"
    return tag("rect", **size, fill="#ffffff", fill_opacity=0.88) + label(
        text, x, y + 4, _LABEL_FONT, font_family=MONO, font_weight=weight, text_anchor="middle"
    )


def _point(start: _Point, end: _Point, t: float) -> _Point:
    """A point of the curve that `_edge` draws."""
    (x, y), (to_x, to_y) = start, end
    bend = 1.5 * t - 1.5 * t**2 + t**3
    return x + (to_x - x) * bend, y + (to_y - y) * (3 * t**2 - 2 * t**3)
