from __future__ import annotations

import dataclasses

import jax
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from vbsix import get_domain
from vbsix.data.examples import (
    PAPER_SETTINGS,
    Arrays,
    Example,
    Row,
    prefixes,
    suffixes,
    targets_of,
    to_arrays,
    whole_rows,
)
from vbsix.data.words import random_words
from vbsix.utilities.errors import InvalidData

TANGRAMS = get_domain("tangrams")
UTTERANCES = ("swap the first two", "remove the last one", "and the first", "add it back", "undo that")
ROW = Row("train-1", ("1:0 2:1 3:2", "1:1 2:0 3:2", "1:1 2:0", "1:0", "1:0 2:1", "1:0"), UTTERANCES)
WORDS = random_words(UTTERANCES, dimensions=4)


@st.composite
def tangrams_worlds(draw) -> str:
    shapes = draw(st.lists(st.integers(0, 4), unique=True))
    return " ".join(f"{place}:{shape}" for place, shape in enumerate(shapes, start=1))


def test_a_prefix_ends_with_the_world_after_its_last_utterance():
    assert prefixes([ROW], (4, 5)) == [
        Example("train-1/4", ROW.worlds[0], UTTERANCES[:4], ROW.worlds[4]),
        Example("train-1/5", ROW.worlds[0], UTTERANCES, ROW.worlds[5]),
    ]


def test_whole_rows_keep_all_utterances_and_may_lack_a_world_between():
    row = Row("7", ("1:0 2:1", None, "1:1"), ("swap them", "remove the last"))
    assert whole_rows([row]) == [Example("7/2", "1:0 2:1", row.utterances, "1:1")]


def test_ids_are_unique_even_if_those_of_the_rows_are_not():
    rows = [dataclasses.replace(ROW, id=id_) for id_ in ("a", "a", "a/1#2", "a", "a/1")]
    ids = [example.id for example in prefixes(rows, (1, 5))]
    assert ids[:4] == ["a/1", "a/5", "a/1#2", "a/5#2"]
    assert len(set(ids)) == len(ids) == 10


def test_every_row_that_cannot_be_an_example_is_reported():
    gap = Row("gap", ("1:0", None, "1:1"), ("one", "two"))
    with pytest.raises(InvalidData) as caught:
        prefixes([ROW, gap], (1, 5))
    assert caught.value.problems == (
        "row gap: no world after utterance 1, so no example can end there",
        "row gap: an example of 5 utterances cannot be made of 2",
    )
    with pytest.raises(InvalidData):
        prefixes([ROW], (-1,))


def test_the_papers_settings():
    assert {name: setting.training for name, setting in PAPER_SETTINGS.items()} == {
        "alchemy": (1, 5),
        "scene": (4, 5),
        "tangrams": (4, 5),
    }
    assert {name: setting.max_words for name, setting in PAPER_SETTINGS.items()} == {
        "alchemy": 18,
        "scene": 25,
        "tangrams": 15,
    }
    assert {setting.evaluation for setting in PAPER_SETTINGS.values()} == {(3, 5)}


def test_arrays_are_padded_and_cut():
    arrays = to_arrays(TANGRAMS, prefixes([ROW], (1, 3)), WORDS, max_instructions=4, max_words=3)
    assert arrays.words.shape == (2, 4, 3) and arrays.words.dtype == np.int32
    np.testing.assert_array_equal(arrays.instructions, [1, 3])
    spelt = [[" ".join(WORDS.words[id_] for id_ in row if id_) for row in example] for example in arrays.words]
    assert spelt == [["swap the first", "", "", ""], ["swap the first", "remove the last", "and the first", ""]]
    assert arrays.world.shape == arrays.target.shape == (2, 5)
    assert [TANGRAMS.format_world(world) for world in arrays.target] == [ROW.worlds[1], ROW.worlds[3]]
    assert [TANGRAMS.format_world(world) for world in arrays.world] == [ROW.worlds[0]] * 2


def test_an_empty_instruction_is_an_instruction_of_no_words():
    arrays = to_arrays(TANGRAMS, [Example("a", "1:0", ("", "swap"), "")], WORDS, max_instructions=2, max_words=2)
    assert not arrays.words[0, 0].any() and arrays.words[0, 1, 0] == WORDS.lookup("swap")
    assert arrays.instructions[0] == 2


def test_worlds_may_be_any_tree_of_arrays():
    class Pair(type(TANGRAMS)):
        def parse_world(self, text):
            return {"text": np.array([len(text)]), "more": (np.float32(1.0),)}

    arrays = to_arrays(Pair(), [Example("a", "x", ("go",), "xyz")] * 2, WORDS, max_instructions=1, max_words=1)
    np.testing.assert_array_equal(arrays.target["text"], [[3], [3]])
    assert jax.tree.map(np.shape, arrays.world) == {"text": (2, 1), "more": ((2,),)}


def test_all_examples_that_do_not_fit_are_reported_together():
    examples = [*prefixes([ROW], (1, 5)), Example("bad", "1:0", ("go",), "1:9")]
    with pytest.raises(InvalidData) as caught:
        to_arrays(TANGRAMS, examples, WORDS, max_instructions=4, max_words=3)
    first, second = caught.value.problems
    assert first == "example train-1/5: 5 instructions, more than 4"
    assert second.startswith("example bad: ") and "'9'" in second
    with pytest.raises(InvalidData, match="no examples"):
        to_arrays(TANGRAMS, [], WORDS, max_instructions=4, max_words=3)


@given(
    between=st.lists(tangrams_worlds() | st.none(), min_size=3, max_size=3),
    fourth=tangrams_worlds(),
)
def test_worlds_in_between_cannot_reach_a_learner(between, fourth):
    """Whatever they are, the arrays are the same, bit by bit; only the first world and the target are in them."""

    def arrays(row: Row) -> Arrays:
        examples = prefixes([row], lengths)
        return to_arrays(TANGRAMS, examples, WORDS, max_instructions=5, max_words=15, waypoints=targets_of(examples))

    lengths = (5,)
    told = dataclasses.replace(ROW, worlds=(ROW.worlds[0], *between, fourth, ROW.worlds[5]))
    jax.tree.map(np.testing.assert_array_equal, arrays(ROW), arrays(told))
    lengths = (4, 5)  # here the world after four utterances is a target
    told = dataclasses.replace(ROW, worlds=(ROW.worlds[0], *between, *ROW.worlds[4:]))
    jax.tree.map(np.testing.assert_array_equal, arrays(ROW), arrays(told))


def test_suffix_examples_are_made_of_examples_alone():
    first, fourth, whole = prefixes([ROW], (1, 4, 5))
    after_one, last = suffixes([whole, fourth, first])[::-1]
    assert (last.context, last.instructions, last.target) == (fourth.target, ROW.utterances[4:], ROW.worlds[5])
    assert (after_one.context, after_one.target) == (first.target, fourth.target)
    assert after_one.instructions == ROW.utterances[1:4]
    assert suffixes([whole]) == suffixes([first]) == []
    elsewhere = dataclasses.replace(fourth, context="1:0")
    assert suffixes([whole, elsewhere]) == []
    other = dataclasses.replace(fourth, target="1:0")
    assert suffixes([whole, fourth, other]) == [], "one of the two is wrong"


def test_examples_and_arrays_have_no_place_for_worlds_in_between():
    assert [field.name for field in dataclasses.fields(Example)] == ["id", "context", "instructions", "target"]
    assert Arrays._fields == ("world", "target", "words", "instructions", "waypoints")
    arrays = to_arrays(TANGRAMS, prefixes([ROW], (4, 5)), WORDS, max_instructions=5, max_words=15)
    assert arrays.waypoints is None
    assert arrays.world.shape == arrays.target.shape == (2, *TANGRAMS.parse_world("1:0").shape)


def test_waypoints_are_the_targets_of_shorter_examples():
    examples = prefixes([ROW], (2, 4, 5))
    other = dataclasses.replace(examples[0], target="1:0")

    def waypoints(*given: Example):
        return to_arrays(TANGRAMS, examples, WORDS, 5, 15, targets_of(given)).waypoints

    found = waypoints(*examples)
    assert found.known.tolist() == [[False] * 5, [False, True, *[False] * 3], [False, True, False, True, False]]
    for example, place in ((1, 1), (2, 1), (2, 3)):
        expected = TANGRAMS.parse_world(str(ROW.worlds[place + 1]))
        np.testing.assert_array_equal(found.targets[example, place], expected)
    assert waypoints(*examples, other).known[:, 1].tolist() == [False] * 3, "one of the two is wrong"
    assert not waypoints(examples[2]).known.any()
