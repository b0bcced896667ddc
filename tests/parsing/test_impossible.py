"""What an instruction names must be there, and what it usually means must be possible."""

from __future__ import annotations

from collections import Counter

import pytest

import vbsix
from vbsix.parsing.impossible import LEAST_SHARE, WORLDS, missing, other_worlds

STAGE = "1:r_ 2:__ 3:gb"
BEAKERS = "1:ggg 2:_ 3:yo"
ROW = "1:0 2:1 3:2"


@pytest.mark.parametrize(
    ("domain", "text", "before", "after", "reason"),
    [
        ("scene", "the man with the Purple hat leaves", STAGE, STAGE, "nobody has a purple hat"),
        ("scene", "the man with the red hat leaves", STAGE, STAGE, "nobody has a red hat"),
        ("scene", "the man in the orange shirt leaves", STAGE, STAGE, "nobody has an orange shirt"),
        ("scene", "the man in the blue hat leaves", STAGE, "1:r_ 2:__ 3:__", None),
        ("scene", "the man in white leaves", STAGE, STAGE, "nobody wears white"),
        ("scene", "the man in blue leaves", STAGE, STAGE, None),
        ("scene", "a man in a yellow shirt appears", STAGE, "1:r_ 2:y_ 3:gb", None),
        ("scene-where", "the man in purple leaves", STAGE, STAGE, "nobody wears purple"),
        ("alchemy", "throw out the brown one", BEAKERS, BEAKERS, "no beaker holds brown"),
        ("alchemy", "mix the third beaker, it turns brown", BEAKERS, "1:ggg 2:_ 3:bb", None),
        ("alchemy", "throw out the orange beaker", BEAKERS, BEAKERS, None),
        ("tangrams", "remove the fifth figure", ROW, "1:0 2:1", "there is no fifth figure"),
        ("tangrams", "remove shape 4", ROW, "1:0 2:1", "there is no figure 4"),
        ("tangrams", "put it back in 4th place", ROW, "1:0 2:1 3:2 4:3", None),
        ("tangrams", "undo the fifth step", ROW, ROW, None),
        ("tangrams", "swap the figures, then undo the fourth swap", ROW, ROW, None),
        ("tangrams", "swap them for the fourth time", ROW, ROW, None),
        ("tangrams", "undo the fourth change", ROW, ROW, None),
        ("tangrams", "remove the first figure, not the fifth one", ROW, "1:1 2:2", None),
        ("scene", "the person in blue, not the orange one, leaves", STAGE, STAGE, None),
        ("scene", "the man without an orange hat leaves", STAGE, STAGE, None),
        ("scene", "everyone except the man in white leaves", STAGE, STAGE, None),
        ("scene", "not the man in blue, the one in white leaves", STAGE, STAGE, "nobody wears white"),
        ("scene", "the man in white moves instead", STAGE, STAGE, "nobody wears white"),
        ("alchemy", "pour out the blue one", BEAKERS, BEAKERS, "no beaker holds blue"),
        ("alchemy", "pour out the green one instead of the red one", BEAKERS, BEAKERS, None),
        ("chess", "remove the fifth figure", "e2", "e4", None),
    ],
)
def test_what_is_named_must_be_there(domain, text, before, after, reason):
    assert missing(domain, text, before, after) == reason


@pytest.mark.parametrize("domain", ["scene", "alchemy", "tangrams", "tangrams-where"])
def test_the_other_worlds_are_worlds(domain):
    worlds = other_worlds(domain)
    assert len(worlds) == WORLDS and len(set(worlds)) > WORLDS / 2
    for world in worlds:
        vbsix.get_domain(domain).parse_world(world)


def test_a_colour_names_one_beaker_that_is_seldom_in_the_same_place():
    """So an instruction that names a colour and a place is possible in most of the other worlds."""
    places = Counter(cell[:3] for world in other_worlds("alchemy") for cell in world.split() if is_pure(cell))
    assert len(places) == 6 * 7 and max(places.values()) <= (1 - LEAST_SHARE) * WORLDS
    for world in other_worlds("alchemy"):
        assert sum(map(is_pure, world.split())) == 6


def is_pure(cell: str) -> bool:
    return len(set(cell[2:])) == 1
