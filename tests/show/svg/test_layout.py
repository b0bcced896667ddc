from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vbsix.show.svg.layout import arrange, spread

WISHES = st.lists(st.integers(-50, 50).map(float), max_size=8).map(sorted)


def test_wishes_that_leave_room_are_granted():
    assert spread([0, 10, 25], 10) == [0, 10, 25]


def test_equal_wishes_are_spread_around_them():
    assert spread([5, 5, 5], 10) == [-5, 5, 15]


@given(WISHES)
def test_heights_keep_their_distance_and_their_middle(wishes):
    heights = spread(wishes, 10)
    assert all(upper - lower >= 10 - 1e-6 for lower, upper in pairwise(heights))
    assert sum(heights) == pytest.approx(sum(wishes))


@given(WISHES, st.lists(st.floats(0, 20), min_size=8, max_size=8), st.floats(-80, 80))
def test_no_other_heights_are_nearer_to_the_wishes(wishes, gaps, first):
    def cost(heights):
        return sum((height - wish) ** 2 for height, wish in zip(heights, wishes, strict=True))

    other = [first + 10 * n + sum(gaps[:n]) for n in range(len(wishes))]
    assert cost(spread(wishes, 10)) <= cost(other) + 1e-6


def test_a_chain_is_level():
    assert arrange([[0], [1], [2]], [(0, 1), (1, 2)], 10) == {0: 0, 1: 0, 2: 0}


def test_a_parent_stands_before_the_middle_of_its_children():
    heights = arrange([[0], [1, 2, 3]], [(0, 1), (0, 2), (0, 3)], 10)
    assert sorted(heights[child] for child in (1, 2, 3)) == [0, 10, 20]
    assert heights[0] == 10


def test_crossings_are_untangled():
    heights = arrange([[0], [1, 2], [3, 4]], [(0, 1), (0, 2), (1, 4), (2, 3)], 10)
    assert (heights[1] < heights[2]) == (heights[4] < heights[3])
