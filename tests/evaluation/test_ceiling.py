"""What a language allows, on rows for which it can be worked out by hand."""

from __future__ import annotations

import json

import pytest

from vbsix import InvalidData, PythonDomain, get_domain
from vbsix.data.examples import Row
from vbsix.evaluation.ceiling import Ceiling, measure_ceiling

SHAPES = "03412"
FIRST = "1:0 2:3 3:4 4:1 5:2"


def without(place: int) -> str:
    left = SHAPES[: place - 1] + SHAPES[place:]
    return " ".join(f"{number}:{shape}" for number, shape in enumerate(left, start=1))


def put_back(place: int) -> Row:
    return Row(f"{place}", (FIRST, without(place), FIRST), (f"delete figure {place}", "Add  it back"))


ROWS = [put_back(place) for place in (1, 2, 3, 4, 5, 2)]


@pytest.mark.parametrize(
    ("name", "right"),
    [("tangrams", 2), ("tangrams-where", 6)],  # with one position for all of them, the second is right most often
)
def test_what_can_be_put_back_without_being_told_where(name, right):
    found = measure_ceiling(get_domain(name), ROWS, ROWS, least=5)
    assert found == Ceiling(
        rows=6, right=right, steps=12, frequent=6, right_frequent=right, unexplained=0, unexplained_train=0
    )
    assert found.share == right / 6


def test_rarer_utterances_count_as_right_and_steps_without_a_command_as_wrong():
    domain = get_domain("tangrams")
    strange = Row("strange", (FIRST, without(1), "1:0"), ("delete figure 1", "all but one"))
    found = measure_ceiling(domain, ROWS, [*ROWS, strange], least=7)
    assert (found.rows, found.right, found.frequent, found.unexplained) == (7, 6, 0, 1)
    assert found.steps == 13  # without the one that nothing explains


def test_worlds_in_between_are_needed():
    row = Row("7", (FIRST, None, FIRST), ("delete figure 1", "add it back"), "rows.jsonl:7")
    with pytest.raises(InvalidData, match=r"rows\.jsonl:7: the ceiling needs the world after each instruction"):
        measure_ceiling(get_domain("tangrams"), [row], [row])


class Walk:
    """A robot that walks to a place, named by a number or as the end of the road."""

    tokens = ("1", "2", "3", "end")
    max_tokens_per_instruction = 1

    def start(self, context):
        return (context, 0, 0)

    def step(self, state, token):
        road, _, done = state
        place = road if token == "end" else int(token)
        return (road, place, done + 1) if place <= road else None

    def instructions_done(self, state):
        return state[2]

    def denotation(self, state):
        return state[1]


class WalkWithoutEnd(Walk):
    tokens = ("1", "2", "3")


@pytest.mark.parametrize(("language", "right"), [(Walk, 8), (WalkWithoutEnd, 4)])
def test_a_language_in_plain_python(language, right):
    domain = PythonDomain(language)
    rows = [Row(f"{n}", (json.dumps(2 + n % 2), json.dumps(2 + n % 2)), ("go to the end",)) for n in range(8)]
    found = measure_ceiling(domain, rows, rows)
    assert (found.right, found.right_frequent) == (right, right)


class Hurry(Walk):
    """On a road of three, `1` goes on to the next instruction only if it is said twice."""

    max_tokens_per_instruction = 2

    def step(self, state, token):
        road, place, done = state
        if token == "1" and road == 3 and place != 1:
            return (road, 1, done)
        return super().step(state, token)


def test_a_command_must_end_the_instruction():
    """Roads of two need `1`, roads of three `1 1`, and neither command does for both."""
    rows = [Row(f"{n}", (json.dumps(2 + n % 2), "1"), ("go to the start",)) for n in range(8)]
    found = measure_ceiling(PythonDomain(Hurry), rows, rows)
    assert (found.right, found.unexplained) == (4, 0)
