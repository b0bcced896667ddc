from __future__ import annotations

from collections import Counter

import pytest

from vbsix.data.examples import Row
from vbsix.evaluation.error_analysis import (
    ReadStep,
    argument_confusion,
    argument_shares,
    arguments_of_change,
    confident_mistakes,
    confusion,
    kind_of_change,
    kind_of_reference,
    read_steps,
    shares,
    spurious_examples,
)
from vbsix.evaluation.report import Prediction
from vbsix.search.prediction import Parse, Reading

STAGE = "1:r_ 2:__ 3:by 4:__ 5:__ 6:__ 7:__ 8:__ 9:__ 10:__"
BEAKERS = "1:ggg 2:_ 3:yo 4:_ 5:rr 6:_ 7:p"


@pytest.mark.parametrize(
    ("domain", "before", "after", "kind"),
    [
        ("scene", STAGE, STAGE.replace("2:__", "2:g_"), "come"),
        ("scene", STAGE, STAGE.replace("1:r_", "1:__"), "leave"),
        ("scene", STAGE, STAGE.replace("1:r_ 2:__", "1:__ 2:r_"), "move"),
        ("scene", STAGE, STAGE.replace("1:r_", "1:ry").replace("3:by", "3:b_"), "swap hats"),
        ("scene", STAGE, STAGE, "nothing"),
        ("alchemy", BEAKERS, BEAKERS.replace("ggg", "g"), "drain"),
        ("alchemy", BEAKERS, BEAKERS.replace("7:p", "7:_"), "drain"),
        ("alchemy", BEAKERS, BEAKERS.replace("yo", "bb"), "mix"),
        ("alchemy", BEAKERS, BEAKERS.replace("2:_", "2:p").replace("7:p", "7:_"), "pour"),
        ("tangrams", "1:0 2:1", "1:1 2:0", "swap"),
        ("tangrams", "1:0 2:1", "1:1", "remove"),
        ("tangrams", "", "1:1", "add"),
        ("chess", "e2", "e4", "change"),
    ],
)
def test_what_changed_tells_the_kind(domain, before, after, kind):
    assert kind_of_change(domain, before, after) == kind


WORLDS = ("1:0 2:1 3:2", "1:1 2:2", "1:2 2:1")


def prediction(worlds: tuple[str, ...], confidence: float = 0.5, row: str = "row") -> Prediction:
    """Of a row that removes a shape and swaps the other two; the row's name is its first utterance."""
    said = (row, "swap them")[: len(worlds)]
    reading = Reading(("t",) * len(worlds), ("t",) * len(worlds), (0.5,) * len(worlds), worlds, 0.25, confidence, 0.25)
    parse = Parse(WORLDS[0], said, (reading,), (), ())
    right = tuple(found == wanted for found, wanted in zip(worlds, WORLDS[1:], strict=False))
    return Prediction(Row("id", WORLDS, (row, "swap them")), parse, right)


RIGHT, LATE, EARLY = prediction(WORLDS[1:]), prediction(("1:1 2:2", "1:1")), prediction(("1:0 2:2", "1:2 2:1"))
NONE = Prediction(RIGHT.row, Parse(WORLDS[0], RIGHT.row.utterances, (), (), ()), (False, False))


def test_steps_end_with_the_first_wrong_world():
    steps = read_steps("tangrams", [RIGHT, LATE, EARLY, NONE, prediction(("1:0",))])  # the last is no whole row
    found = [(step.position, step.kind, step.predicted, step.right) for step in steps]
    assert found == [
        (1, "remove", "remove", True),
        (2, "swap", "swap", True),
        (1, "remove", "remove", True),
        (2, "swap", "remove", False),
        (1, "remove", "remove", False),
        (1, "remove", None, False),
    ]
    by_position = {share.name: (share.count, share.right) for share in shares(steps, lambda step: step.position)}
    assert by_position == {"1": (4, 2), "2": (2, 1)}
    assert confusion(steps) == {
        "remove": Counter({"remove": 3}),  # what found no program is wrong, but taken for nothing else
        "swap": Counter({"swap": 1, "remove": 1}),
    }


def test_positions_are_in_the_order_of_numbers():
    steps = [ReadStep(position, "swap", "swap", True) for position in (10, 9, 1)]
    assert [share.name for share in shares(steps, lambda step: step.position)] == ["1", "9", "10"]


def test_without_programs_nothing_is_taken_for_another():
    unknown = Prediction(RIGHT.row, NONE.parse, (None, False))
    assert confusion(read_steps("tangrams", [NONE, unknown])) == {}


def test_the_most_confident_mistakes_come_first_each_row_once():
    wrong = [
        prediction(("1:1 2:2", "1:1"), confidence, row) for confidence, row in ((0.3, "a"), (0.9, "b"), (0.5, "a"))
    ]
    found = confident_mistakes([[RIGHT, wrong[0], EARLY, NONE], wrong[1:]], 5)
    assert [(place, one.parse.confidence) for place, one in found] == [(1, 0.9), (1, 0.5)]
    assert len(confident_mistakes([wrong], 1)) == 1


def test_spurious_programs_are_right_through_wrong_worlds():
    assert spurious_examples([[RIGHT, LATE, EARLY]], 5) == [(0, EARLY)]


def test_mistakes_count_where_the_worlds_between_are_unknown():
    unknown = Prediction(LATE.row, LATE.parse, (None, False))
    assert confident_mistakes([[unknown]], 5) == [(0, unknown)]


@pytest.mark.parametrize(
    ("domain", "before", "after", "arguments"),
    [
        ("scene", "1:r_ 2:__ 3:by", "1:__ 2:r_ 3:by", {"person": "1", "position": "2"}),
        ("scene", "1:r_ 2:__ 3:by", "1:r_ 2:__ 3:__", {"person": "3"}),
        ("scene", "1:r_ 2:__ 3:by", "1:r_ 2:go 3:by", {"position": "2", "shirt": "green", "hat": "orange"}),
        ("scene", "1:r_ 2:__ 3:by", "1:ry 2:__ 3:b_", {"people": "1 and 3"}),
        ("alchemy", "1:gg 2:_ 3:y", "1:_ 2:_ 3:ygg", {"from": "1", "into": "3"}),
        ("alchemy", "1:gg 2:_ 3:yo", "1:gg 2:_ 3:bb", {"beaker": "3"}),
        ("alchemy", "1:gg 2:_ 3:yo", "1:g 2:_ 3:yo", {"beaker": "1", "amount": "1 unit"}),
        ("tangrams", "1:0 2:1", "1:0", {"figure": "2"}),
        ("tangrams", "1:0 2:1", "1:2 2:0 3:1", {"position": "1", "which figure": "figure C"}),
        ("tangrams", "1:0 2:1", "1:1 2:0", {"figures": "1 and 2"}),
        ("tangrams", "1:0", "1:0", {}),
        ("chess", "a", "b", {}),
    ],
)
def test_what_a_change_acted_on(domain, before, after, arguments):
    assert arguments_of_change(domain, before, after) == arguments


def test_arguments_are_counted_where_the_kind_is_right():
    steps = [
        ReadStep(1, "pour", "pour", True, "", {"from": "1", "into": "3"}, {"from": "1", "into": "3"}),
        ReadStep(1, "pour", "pour", False, "", {"from": "1", "into": "3"}, {"from": "1", "into": "2"}),
        ReadStep(1, "pour", "drain", False, "", {"from": "1", "into": "3"}, {"beaker": "1"}),
    ]
    found = {share.name: (share.count, share.right) for share in argument_shares(steps)}
    assert found == {"pour: from": (2, 2), "pour: into": (2, 1)}
    assert argument_confusion(steps, 5) == [("pour: into", "3", "2", 1)]


@pytest.mark.parametrize(
    ("utterance", "kind"),
    [
        ("mix it", "an earlier instruction"),
        ("the man in red leaves", "a colour"),
        ("remove the last figure", "an end or the middle"),
        ("swap the 1st and 3rd figures", "a number"),
        ("do something", "something else"),
    ],
)
def test_the_kind_of_reference_follows_from_the_words(utterance, kind):
    assert kind_of_reference(utterance) == kind
