from __future__ import annotations

import math
import re
from dataclasses import replace
from xml.etree import ElementTree

import pytest

from vbsix.show.inspection import FoundProgram, Inspection, SeenIteration, SeenState, SeenTransition
from vbsix.show.svg import draw_search
from vbsix.show.svg.states import probability, short

ROW, TARGET = "1:0 2:3", "1:3 2:0"
SVG = "{http://www.w3.org/2000/svg}"


def state(iteration: int, kind: str, stack: tuple[str, ...] = (), world: str = ROW, **more) -> SeenState:
    rank = 0 if kind == "beam" else None
    values = {"instructions_done": 0, "log_probability": -3.0 * iteration, "expanded_at": None, **more}
    return SeenState(iteration, kind, rank, world, stack, **values)


@pytest.fixture
def inspection() -> Inspection:
    """Made up: two prefixes are merged after two tokens, and each kind of state is there."""
    return Inspection(
        domain="tangrams",
        space="execution",
        programs=(FoundProgram(("1", "index", "ASwap"), -9.0),),
        iterations=(
            SeenIteration(1, expanded=1, successors=2, merged=0, correct=0, incorrect=0, kept=2, pruned=0),
            SeenIteration(2, expanded=2, successors=4, merged=1, correct=0, incorrect=0, kept=1, pruned=2),
            SeenIteration(3, expanded=1, successors=7, merged=0, correct=1, incorrect=1, kept=0, pruned=5),
        ),
        states=(
            state(0, "beam"),
            state(1, "beam", ("number:1",)),
            state(1, "beam", ("number:-1",)),
            state(2, "beam", ("object:1",)),
            state(2, "pruned", ("list:[1,2]", "number:5"), expanded_at=1),
            state(3, "correct", world=TARGET),
            state(3, "incorrect", world="1:3"),
        ),
        transitions=(
            SeenTransition(0, 1, "1", -3.0, True),
            SeenTransition(0, 2, "-1", -3.0, False),
            SeenTransition(1, 3, "index", -3.0, True),
            SeenTransition(2, 3, "index", -3.0, False),
            SeenTransition(2, 4, "5", -3.0, False),
            SeenTransition(3, 5, "ASwap", -3.0, True),
            SeenTransition(3, 6, "ARemove", -3.0, False),
        ),
        left_out=6,
    )


def draw(inspection: Inspection, utterances=("swap them",)) -> ElementTree.Element:
    return ElementTree.fromstring(draw_search(inspection, target=TARGET, utterances=utterances, policy="made up"))


def texts(root: ElementTree.Element) -> list[str]:
    return [text.text or "" for text in root.iter(f"{SVG}text")]


def cards(root: ElementTree.Element, kind: str) -> list[ElementTree.Element]:
    return [group for group in root.iter(f"{SVG}g") if group.get("class") == kind]


def test_each_state_is_a_card_of_its_kind(inspection):
    root = draw(inspection)
    assert [len(cards(root, kind)) for kind in ("beam", "pruned", "correct", "incorrect")] == [4, 1, 1, 1]


def test_the_correct_terminal_state_is_marked_and_described(inspection):
    (card,) = cards(draw(inspection), "correct")
    assert card.findtext(f"{SVG}title") == (
        "correct terminal state after 3 tokens; world 1:3 2:0; stack (empty); probability 1.2·10⁻⁴"
    )
    assert "correct" in texts(card)
    (beam, *_) = cards(draw(inspection), "beam")
    assert card.find(f"{SVG}rect").get("fill") != beam.find(f"{SVG}rect").get("fill")


def test_stacks_scores_and_tokens_are_written(inspection):
    written = texts(draw(inspection))
    assert written.count("index") == 2
    assert {"ASwap", "ARemove", "#1", "[1,2]", "0.05", "swap them"} <= {text.removeprefix("1.  ") for text in written}
    assert "1 index ASwap" in written


def test_tokens_carry_their_probabilities_where_these_differ(inspection):
    assert "Every token drawn has the probability 0.05." in texts(draw(inspection))
    first, *rest = inspection.transitions
    root = draw(replace(inspection, transitions=(replace(first, log_policy=math.log(0.5)), *rest)))
    assert {"1 (0.5)", "-1 (0.05)"} <= set(texts(root))


def test_critic_scores_are_written_where_there_are_some(inspection):
    assert "critic score" not in "".join(draw(inspection).itertext())
    first, *others = inspection.states
    texts = list(draw(replace(inspection, states=(replace(first, value=0.256), *others))).itertext())
    assert "0.26" in texts and "critic score" in texts
    assert any(text.endswith("; critic score 0.26") for text in texts)


def test_what_is_left_out_is_said(inspection):
    written = texts(draw(inspection))
    assert "A program was found. 7 of 13 states are drawn. Policy: made up." in written
    assert written.count("and 1 more") == 1 and written.count("and 5 more") == 1
    assert "5 unfinished at the limit" in written


def test_a_search_that_found_nothing_says_so(inspection):
    written = texts(draw(replace(inspection, programs=(), left_out=0)))
    assert "No program was found. All 7 states are drawn. Policy: made up." in written
    assert "The most probable programs found" not in written


def test_the_start_alone_can_be_drawn(inspection):
    root = draw(replace(inspection, states=inspection.states[:1], transitions=(), left_out=12))
    assert len(cards(root, "beam")) == 1


def test_transitions_between_the_same_states_share_an_edge(inspection):
    again = SeenTransition(3, 5, "H0", -3.0, False)
    assert "ASwap | H0" in texts(draw(replace(inspection, transitions=(*inspection.transitions, again))))


def test_the_instruction_is_named_where_there_are_several(inspection):
    assert not any(text.startswith("instruction ") for text in texts(draw(inspection)))
    assert texts(draw(inspection, ("one", "two"))).count("instruction 1") == 4


def test_cards_do_not_overlap(inspection):
    boxes = []
    root = draw(inspection)
    for group in root.iter(f"{SVG}g"):
        for card in group:
            if card.get("class"):
                x, y = map(float, re.findall(r"[-\d.]+", group.get("transform", "")))
                frame = card.find(f"{SVG}rect")
                boxes.append((x, y, x + float(frame.get("width")), y + float(frame.get("height"))))
    assert len(boxes) == len(inspection.states)
    for n, (left, top, right, bottom) in enumerate(boxes):
        for x, y, to_x, to_y in boxes[:n]:
            assert left >= to_x or right <= x or top >= to_y or bottom <= y


def test_any_text_is_well_formed(inspection):
    root = draw(inspection, ('<b> & "c" \x00 \x1b',))
    assert '1.  <b> & "c" \ufffd \ufffd' in texts(root)


def test_the_same_inspection_gives_the_same_file(inspection):
    drawn = [draw_search(inspection, target=TARGET, utterances=["swap"], policy="made up") for _ in range(2)]
    assert drawn[0] == drawn[1]


@pytest.mark.parametrize(
    ("log_probability", "written"),
    [
        (0.0, "1"),
        (math.log(0.0304), "0.03"),
        (math.log(0.001), "0.001"),
        (math.log(0.00094), "9.4·10⁻⁴"),
        (math.log(9.96e-7), "1.0·10⁻⁶"),
        (-150.0, "7.2·10⁻⁶⁶"),
        (-1000.0, "5.1·10⁻⁴³⁵"),
    ],
)
def test_probabilities_are_written_however_small(log_probability, written):
    assert probability(log_probability) == written


@pytest.mark.parametrize(
    ("element", "written"),
    [
        ("number:-1", "-1"),
        ("color:r", "r"),
        ("fraction:X1/1", "X1/1"),
        ("object:3", "#3"),
        ("list:[1,2,3,5,7,8]", "[1-3,5,7,8]"),
        ("gone:0", "gone 0"),
        ("queen", "queen"),
    ],
)
def test_stack_elements_are_short(element, written):
    assert short(element) == written
