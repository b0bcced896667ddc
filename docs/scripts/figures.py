"""Draws the figures of docs/concepts.md: one small search, with the numbers that the text uses.

The search is for "the man with the yellow hat moves to the left end". Three words begin a command, and two of them lead
to the same person.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import pairwise
from typing import NamedTuple

from vbsix.show.svg.elements import FAINT, INK, MONO, Picture, document, label, path, place, tag
from vbsix.show.svg.worlds import world_svg

WORLD = "1:__ 2:ry 3:__ 4:b_ 5:__ 6:__ 7:__ 8:__ 9:__ 10:__"
TARGET = "1:ry 2:__ 3:__ 4:b_ 5:__ 6:__ 7:__ 8:__ 9:__ 10:__"
INSTRUCTION = "the man with the yellow hat moves to the left end"
PROGRAMS = ("y PHat 1 AMove", "r PShirt 1 AMove")
"""The correct programs of the search."""

PLAIN, KEPT, DROPPED, CORRECT, WRONG = "plain", "kept", "dropped", "correct", "wrong"
STYLES = {
    PLAIN: {"fill": "#eef1f4", "stroke": "#4f5a65", "stroke_width": 1.2},
    KEPT: {"fill": "#d7e5fb", "stroke": "#1f5fbf", "stroke_width": 1.8},
    DROPPED: {"fill": "#ffffff", "stroke": "#a3adb7", "stroke_width": 1, "stroke_dasharray": "4 3"},
    CORRECT: {"fill": "#ffec9e", "stroke": "#b87900", "stroke_width": 2.2},
    WRONG: {"fill": "#ffffff", "stroke": "#b5473a", "stroke_width": 1.4},
}
BLUE, GOLD = "#1f5fbf", "#b87900"
WIDTH, HEIGHT = 104, 34


class Node(NamedTuple):
    """A state of the search."""

    text: str
    x: float
    y: float
    kind: str = PLAIN


class Edge(NamedTuple):
    """A token that leads from one state to another."""

    start: str
    end: str
    token: str
    probability: float


STATES = {
    "start": Node("empty stack", 0, 80),
    "y": Node("yellow", 185, 0),
    "r": Node("red", 185, 80),
    "b": Node("blue", 185, 160),
    "p2": Node("person at 2", 380, 40),
    "p4": Node("person at 4", 380, 130),
    "b1": Node("blue, 1", 380, 200),
    "p2-1": Node("person at 2, 1", 575, 40),
    "p4-1": Node("person at 4, 1", 575, 130),
    "right": Node("target world", 765, 40, CORRECT),
    "other": Node("another world", 765, 130, WRONG),
}
EDGES = (
    Edge("start", "y", "y", 0.25),
    Edge("start", "r", "r", 0.25),
    Edge("start", "b", "b", 0.5),
    Edge("y", "p2", "PHat", 0.5),
    Edge("r", "p2", "PShirt", 0.5),
    Edge("b", "p4", "PShirt", 0.5),
    Edge("b", "b1", "1", 0.4),
    Edge("p2", "p2-1", "1", 0.5),
    Edge("p4", "p4-1", "1", 0.5),
    Edge("p2-1", "right", "AMove", 0.9),
    Edge("p4-1", "other", "AMove", 0.9),
)
TREE = {
    "start": Node("(empty)", 0, 105),
    "y": Node("y", 185, 0),
    "r": Node("r", 185, 80),
    "b": Node("b", 185, 180),
    "y PHat": Node("y PHat", 380, 0),
    "r PShirt": Node("r PShirt", 380, 80),
    "b PShirt": Node("b PShirt", 380, 150),
    "b 1": Node("b 1", 380, 210),
    "y PHat 1": Node("y PHat 1", 575, 0),
    "r PShirt 1": Node("r PShirt 1", 575, 80),
    "b PShirt 1": Node("b PShirt 1", 575, 150),
    "y right": Node("target world", 765, 0, CORRECT),
    "r right": Node("target world", 765, 80, CORRECT),
    "other": Node("another world", 765, 150, WRONG),
}
TREE_EDGES = (
    *EDGES[:3],
    Edge("y", "y PHat", "PHat", 0.5),
    Edge("r", "r PShirt", "PShirt", 0.5),
    Edge("b", "b PShirt", "PShirt", 0.5),
    Edge("b", "b 1", "1", 0.4),
    Edge("y PHat", "y PHat 1", "1", 0.5),
    Edge("r PShirt", "r PShirt 1", "1", 0.5),
    Edge("b PShirt", "b PShirt 1", "1", 0.5),
    Edge("y PHat 1", "y right", "AMove", 0.9),
    Edge("r PShirt 1", "r right", "AMove", 0.9),
    Edge("b PShirt 1", "other", "AMove", 0.9),
)


def actor_scores(edges: Iterable[Edge]) -> dict[str, float]:
    """The chart: the probability of all prefixes that lead to each state."""
    scores = {"start": 1.0}
    for edge in edges:
        scores[edge.end] = scores.get(edge.end, 0.0) + scores[edge.start] * edge.probability
    return scores


def rewards(edges: Iterable[Edge]) -> dict[str, float]:
    """The probability of reaching the target from each state."""
    found = {"right": 1.0}
    for edge in reversed(list(edges)):
        found[edge.start] = found.get(edge.start, 0.0) + edge.probability * found.get(edge.end, 0.0)
    return found


def posteriors(edges: Iterable[Edge]) -> dict[Edge, float]:
    """The share of the probability of all correct programs that runs through each transition."""
    edges = list(edges)
    score, reward = actor_scores(edges), rewards(edges)
    return {edge: score[edge.start] * edge.probability * reward.get(edge.end, 0.0) / reward["start"] for edge in edges}


def draw_all() -> dict[str, str]:
    """All figures by their file names."""
    score, reward, posterior = actor_scores(EDGES), rewards(EDGES), posteriors(EDGES)
    tree_score = actor_scores(TREE_EDGES)
    labelled = [name for name in STATES if name not in ("right", "other")]
    on_correct = [edge for edge in EDGES if posterior[edge] > 0]
    return {
        "concepts-example.svg": _example(),
        "concepts-spaces.svg": _stack(
            "The same commands in program space and in execution space",
            [
                ("Program space: every prefix is a state", _graph(TREE, TREE_EDGES)),
                ("Execution space: prefixes with the same result are one state", _graph(STATES, EDGES)),
            ],
        ),
        "concepts-chart.svg": _stack(
            "A beam of two states after two tokens, in both spaces",
            [
                (
                    "Program space: both prefixes of the right command fall out of the beam",
                    _graph(
                        _until(TREE, 2, {"b PShirt", "b 1"}),
                        TREE_EDGES[:7],
                        {name: f"{tree_score[name]:.3g}" for name in _until(TREE, 2)},
                        probabilities=True,
                    ),
                ),
                (
                    "Execution space: their probabilities are summed, and the state is kept",
                    _graph(
                        _until(STATES, 2, {"p2", "p4"}),
                        EDGES[:7],
                        {name: f"{score[name]:.3g}" for name in _until(STATES, 2)},
                        probabilities=True,
                    ),
                ),
            ],
        ),
        "concepts-critic.svg": _bars(
            "Actor score and critic score of the states after two tokens",
            [(STATES[name].text, score[name], reward.get(name, 0.0)) for name in ("p2", "p4", "b1")],
        ),
        "concepts-extraction.svg": _stack(
            "The part of the graph that reaches the target",
            [("Two programs are extracted", _graph(STATES, EDGES, highlighted=on_correct))],
        ),
        "concepts-training.svg": _stack(
            "What the policy and the critic learn from the graph",
            [
                (
                    "On edges: the posterior, by which the policy's loss is multiplied. Below states: the critic's "
                    "label",
                    _graph(
                        STATES,
                        EDGES,
                        {name: f"{reward.get(name, 0.0):.3g}" for name in labelled[1:]},
                        highlighted=on_correct,
                        weights={edge: f"{posterior[edge]:.1f}" for edge in EDGES},
                    ),
                )
            ],
        ),
    }


def _until(nodes: Mapping[str, Node], tokens: int, kept: Iterable[str] = ()) -> dict[str, Node]:
    """The states after so few tokens; those of the last beam are kept or dropped."""
    columns = sorted({node.x for node in nodes.values()})[: tokens + 1]
    kinds = {True: KEPT, False: DROPPED}
    return {
        name: node._replace(kind=kinds[name in set(kept)]) if kept and node.x == columns[-1] else node
        for name, node in nodes.items()
        if node.x in columns
    }


def _graph(
    nodes: Mapping[str, Node],
    edges: Iterable[Edge],
    below: Mapping[str, str] | None = None,
    *,
    probabilities: bool = False,
    highlighted: Iterable[Edge] = (),
    weights: Mapping[Edge, str] | None = None,
) -> Picture:
    highlighted, parts = set(highlighted), []
    for edge in edges:
        start, end = nodes[edge.start], nodes[edge.end]
        gold = edge in highlighted
        ends = start.x + WIDTH, start.y + HEIGHT / 2, end.x, end.y + HEIGHT / 2
        colour, width = (GOLD, 2.4) if gold else ("#8b96a1", 1.2)
        parts.append(path("M", *ends[:2], "L", *ends[2:], stroke=colour, stroke_width=width))
        text = edge.token + (f" {edge.probability:g}" if probabilities else "")
        if weights is not None:
            text = f"{edge.token}: {weights[edge]}"
        middle = (ends[0] + ends[2]) / 2, (ends[1] + ends[3]) / 2
        size = 7.2 * len(text)
        parts.append(
            tag("rect", x=middle[0] - size / 2 - 2, y=middle[1] - 8, width=size + 4, height=16, fill="#ffffff")
        )
        parts.append(label(text, middle[0], middle[1] + 4, 12, text_anchor="middle", font_family=MONO))
    for name, node in nodes.items():
        parts.append(tag("rect", x=node.x, y=node.y, width=WIDTH, height=HEIGHT, rx=7, **STYLES[node.kind]))
        parts.append(label(node.text, node.x + WIDTH / 2, node.y + HEIGHT / 2 + 4, 12.5, text_anchor="middle"))
        if below and name in below:
            spot = node.x + WIDTH / 2, node.y + HEIGHT + 14
            parts.append(label(below[name], *spot, 12, text_anchor="middle", fill=BLUE, font_weight="bold"))
    width = max(node.x for node in nodes.values()) + WIDTH
    height = max(node.y for node in nodes.values()) + HEIGHT + (18 if below else 0)
    return Picture("".join(parts), width, height)


def _stack(title: str, pictures: Iterable[tuple[str, Picture]]) -> str:
    """Pictures below each other, each with its caption."""
    margin, y, parts, width = 16, 16.0, [], 0.0
    for caption, picture in pictures:
        parts += [label(caption, margin, y + 13, 14, font_weight="bold"), place(picture.markup, margin, y + 28)]
        y += picture.height + 52
        width = max(width, picture.width, 8.2 * len(caption))
    return document(Picture("".join(parts), width + 2 * margin, y - 8), title, title)


def _example() -> str:
    first, last = world_svg("scene", WORLD), world_svg("scene", TARGET)
    scale = 1.5
    width = 2 * scale * first.width + 200
    middle = scale * first.width + 16, 62
    parts = [
        place(label("world", 0, 0, 13, fill=FAINT), 16, 24),
        tag("g", first.markup, transform=f"translate(16 32) scale({scale})"),
        path("M", middle[0] + 22, middle[1], "h", 120, stroke=INK, stroke_width=1.6),
        path("M", middle[0] + 136, middle[1] - 5, "l", 7, 5, "l", -7, 5, stroke=INK, stroke_width=1.6, fill="none"),
        label("y PHat 1 AMove", middle[0] + 82, middle[1] - 9, 12, text_anchor="middle", font_family=MONO),
        label("not given", middle[0] + 82, middle[1] + 18, 12, text_anchor="middle", fill=FAINT),
        place(label("target", 0, 0, 13, fill=FAINT), middle[0] + 166, 24),
        tag("g", last.markup, transform=f"translate({middle[0] + 166:g} 32) scale({scale})"),
        label(f"“{INSTRUCTION}”", 16, 138, 14),
    ]
    title = "An example: a world, an instruction and a target world"
    return document(Picture("".join(parts), width, 156), title, f"{INSTRUCTION}: {WORLD} becomes {TARGET}")


def _bars(title: str, rows: Iterable[tuple[str, float, float]]) -> str:
    scale, left, parts, y = 420, 130, [], 56
    parts.append(tag("rect", x=left, y=18, width=14, height=14, fill="#6aa5ff"))
    parts.append(label("actor score: probability of reaching the state", left + 20, 30, 12.5))
    parts.append(tag("rect", x=left + 330, y=18, width=14, height=14, fill="#ffd93b"))
    parts.append(label("critic score: expected reward from the state", left + 350, 30, 12.5))
    for name, actor, value in rows:
        parts.append(label(name, left - 12, y + 17, 13, text_anchor="end"))
        parts.append(tag("rect", x=left, y=y, width=scale * actor, height=24, fill="#6aa5ff"))
        parts.append(tag("rect", x=left + scale * actor, y=y, width=max(scale * value, 1), height=24, fill="#ffd93b"))
        total = f"{actor:.2f} + {value:.2f} = {actor + value:.2f}"
        parts.append(label(total, left + scale * (actor + value) + 10, y + 17, 13, font_family=MONO))
        y += 36
    return document(Picture("".join(parts), 790, y + 8), title, title)


def checks() -> None:
    """What the text of the page says about the numbers."""
    score = actor_scores(EDGES)
    assert all(end.start == start.end for start, end in pairwise([EDGES[0], EDGES[3], EDGES[7], EDGES[9]]))
    assert score["p2"] == score["p4"] == 0.25 and score["b1"] == 0.2
