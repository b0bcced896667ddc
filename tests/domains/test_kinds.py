"""Where a target is made of other types than denotations."""

from __future__ import annotations

import pytest

from vbsix.domains.kinds import Kinds

NESTED = {
    "a text in a tuple of numbers": ([(1, 2), (3, 4)], ["1", 2], "[0]", "a text", "a number"),
    "a number where a list is inside a tuple": ([((1, 2), 3)], [1, 2], "[0]", "a number", "a list"),
    "a list without the tuple inside it": ([((1, 2), 3)], [1, 2, 3], "", "a list of 3", "a list of 2"),
    "a list where a number is inside a tuple": ([((1, 2), 3)], [[1, 2], [3]], "[1]", "a list", "a number"),
    "texts in a list inside a tuple": ([((1, 2), "a")], [["1", "2"], "a"], "[0][0]", "a text", "a number"),
    "a field of another type": ([{"at": 1, "lit": True}], {"at": 1, "lit": 1}, "['lit']", "a number", "true or false"),
    "null in a field": ([{"at": 1}, {"at": "end"}], {"at": None}, "['at']", "null", "a number or a text"),
    "a field that lacks": ([{"at": 1, "on": 2}], {"at": 1}, "['on']", "missing", "a number"),
    "a field too many": ([{"at": 1}], {"at": 1, "on": 2}, "['on']", "a number", "missing"),
    "a list in lists of objects": ([[{"at": 1}], []], [{"at": 1}, {"at": [1]}], "[1]['at']", "a list", "a number"),
    "another type altogether": ([(1, 2)], "1 2", "", "a text", "a list"),
    "a text beside null": ([{"at": None}, {"at": 1}], {"at": "end"}, "['at']", "a text", "a number or null"),
    "a set": ([{1, 2}], [1, 2], "", "a list", "set"),
}
ALIKE = {
    "lists as tuples": ([((1, 2), "a")], [[3, 4], "b"]),
    "whole numbers and others": ([(1, 2.5)], [2.5, 1]),
    "lists of other lengths": ([(1, 2)], [1, 2, 3]),
    "null at another place of a list": ([("a", None), ("a", "b")], [None, "b"]),
    "items of lists that were always empty": ([()], ["a"]),
    "fields of objects that have none in common": ([{"ann": 1}, {"bob": 2}], {"eve": 3}),
    "fields of objects that were always empty": ([{}], {"eve": 3}),
    "any value in place of null": ([{"at": None}], {"at": [1]}),
    "any value in place of null in a record": ([(None, 1)], ["a", 2]),
    "a field that objects have at times": ([{"at": 1}, {"at": 1, "on": 2}], {"at": 1}),
}


def known(values):
    kinds = Kinds()
    for value in values:
        kinds.add(value)
    return kinds


@pytest.mark.parametrize(("values", "target", "place", "found", "expected"), NESTED.values(), ids=NESTED)
def test_the_place_and_both_types_are_named(values, target, place, found, expected):
    assert known(values).difference(target) == (place, found, expected)


@pytest.mark.parametrize(("values", "target"), ALIKE.values(), ids=ALIKE)
def test_what_denotations_may_be_does_not_differ(values, target):
    assert known(values).difference(target) is None


def test_what_is_added_later_counts():
    kinds = known([[[1]], [{"ann": 1}, {"bob": 2}]])
    assert kinds.difference([["a"], {"eve": "b"}]) == ("[0][0]", "a text", "a number")
    kinds.add([["a"], ["b"]])
    assert kinds.difference([["a"], {"eve": "b"}]) == ("[1]['eve']", "a text", "a number")
    kinds.add([{"eve": "b"}])
    assert kinds.difference([["a"], {"eve": "b"}]) is None


def test_items_of_lists_are_merged_once(monkeypatch):
    """Not for each item of each list that is compared."""
    grid = [[0] * 40 for _ in range(40)]
    kinds, merged = known([grid] * 3), []
    include = Kinds._include
    monkeypatch.setattr(Kinds, "_include", lambda self, other: merged.append(1) or include(self, other))
    for _ in range(5):
        assert kinds.difference(grid) is None
    assert len(merged) == 40 + 40 * 40 + 40


def test_a_difference_in_fields_of_mappings_is_named():
    assert str(known([{"ann": 1}, {"bob": 2}]).difference({"eve": "3"})) == (
        "target['eve'] is a text, denotation(state)['eve'] is a number"
    )


def test_differences_at_other_places_of_a_list_have_the_same_pattern():
    one, other = (known([(1, 2)]).difference(target) for target in ([1, "2"], ["1", "2"]))
    assert one is not None and other is not None
    assert one.place != other.place and one.pattern == other.pattern
