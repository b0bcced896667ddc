"""Examples to click on: instructions with a known outcome, in the style that the built-in models learned, and searches.

The instructions were written for the playground; the searches are rows of the built-in corpus. A test runs them all
through the built-in models; `docs/scripts/playground_examples.py` finds other searches.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

_STAGE = "1:r_ 2:__ 3:__ 4:by 5:__ 6:__ 7:go 8:__ 9:__ 10:__"
_BEAKERS = "1:ggg 2:_ 3:yo 4:_ 5:rr 6:y 7:p"
_ROW = "1:0 2:1 3:2 4:3 5:4"


@dataclass(frozen=True)
class Example:
    """Instructions in a world, and the world that they should lead to."""

    title: str
    world: str
    utterances: tuple[str, ...]
    target: str


EXAMPLES: Mapping[str, Sequence[Example]] = {
    "scene": (
        Example(
            "Leave and move",
            _STAGE,
            ("the man in the green shirt leaves", "the man in the red shirt moves next to the man in the blue shirt"),
            "1:__ 2:__ 3:__ 4:by 5:r_ 6:__ 7:__ 8:__ 9:__ 10:__",
        ),
        Example(
            "Someone new",
            _STAGE,
            ("a person in purple appears on the far right", "he moves to the left of the man in green"),
            "1:r_ 2:__ 3:__ 4:by 5:__ 6:p_ 7:go 8:__ 9:__ 10:__",
        ),
        Example(
            "Enter and leave",
            _STAGE,
            ("a person in an orange shirt and no hat appears on the far right", "the person in the blue shirt leaves"),
            "1:r_ 2:__ 3:__ 4:__ 5:__ 6:__ 7:go 8:__ 9:__ 10:o_",
        ),
        Example(
            "Give a hat",
            "1:__ 2:__ 3:br 4:__ 5:__ 6:g_ 7:__ 8:__ 9:__ 10:__",
            (
                "the man in the blue shirt moves to the right of the man in the green shirt",
                "he gives his hat to the man in the green shirt",
            ),
            "1:__ 2:__ 3:__ 4:__ 5:__ 6:gr 7:b_ 8:__ 9:__ 10:__",
        ),
    ),
    "alchemy": (
        Example(
            "Pour, mix, throw out",
            _BEAKERS,
            ("pour the last beaker into the yellow one", "mix it", "throw it out"),
            "1:ggg 2:_ 3:yo 4:_ 5:rr 6:_ 7:_",
        ),
        Example(
            "Count units",
            _BEAKERS,
            ("throw out two units of the first beaker", "pour the red beaker into the fourth one"),
            "1:g 2:_ 3:yo 4:rr 5:_ 6:y 7:p",
        ),
        Example(
            "Mix, then drain",
            _BEAKERS,
            ("mix the third beaker", "drain one unit from it"),
            "1:ggg 2:_ 3:b 4:_ 5:rr 6:y 7:p",
        ),
        Example(
            "Do it again",
            _BEAKERS,
            ("throw out one unit of the first beaker", "repeat"),
            "1:g 2:_ 3:yo 4:_ 5:rr 6:y 7:p",
        ),
    ),
    "tangrams": (
        Example(
            "Remove and swap",
            _ROW,
            ("remove the second figure", "swap the first and last figure"),
            "1:4 2:2 3:3 4:0",
        ),
        Example(
            "Put it back",
            _ROW,
            ("delete the third figure", "put it back in the first position"),
            "1:2 2:0 3:1 4:3 5:4",
        ),
        Example(
            "There and back",
            _ROW,
            ("swap the first and third figures", "undo the last step", "remove the last figure"),
            "1:0 2:1 3:2 4:3",
        ),
        Example(
            "Three steps",
            "1:4 2:2 3:0 4:3 5:1",
            ("delete the middle figure", "add it back in 1st place", "swap the second and fourth figures"),
            "1:0 2:3 3:2 4:4 5:1",
        ),
    ),
}


@dataclass(frozen=True)
class Guided:
    """A search in which merging, or the critic, visibly wins, and what to look at.

    Without merging, that is in program space, or without the critic, it finds no program. With it, the most probable
    program found passes through the known worlds.
    """

    title: str
    world: str
    utterances: tuple[str, ...]
    worlds: tuple[str, ...]
    """After each instruction; the last is the target."""
    beam: Literal[4, 16, 64]
    look: str


MERGING, CRITIC = "Merging wins", "The critic wins"
_MERGED = "Only execution space finds a program. Open it as a picture, and look for cards that two arrows lead to."
GUIDED: Mapping[str, Sequence[Guided]] = {
    "tangrams": (
        Guided(
            MERGING,
            "1:2 2:0 3:4 4:3 5:1",
            (
                "get rid of the last item",
                "bring it back in the last place",
                "exchange the item added in step 2 with item 1",
            ),
            ("1:2 2:0 3:4 4:3", "1:2 2:0 3:4 4:3 5:1", "1:1 2:0 3:4 4:3 5:2"),
            4,
            _MERGED,
        ),
    ),
    "alchemy": (
        Guided(
            MERGING,
            "1:oooo 2:y 3:oo 4:g 5:yy 6:ro 7:_",
            (
                "drain first yellow one",
                "pour out 2 parts of sixth beaker",
                "pour contents of rightmost orange beaker into beaker with green chemical",
            ),
            (
                "1:oooo 2:_ 3:oo 4:g 5:yy 6:ro 7:_",
                "1:oooo 2:_ 3:oo 4:g 5:yy 6:_ 7:_",
                "1:oooo 2:_ 3:_ 4:goo 5:yy 6:_ 7:_",
            ),
            4,
            _MERGED,
        ),
    ),
    "tangrams-critic": (
        Guided(
            CRITIC,
            "1:2 2:3 3:1 4:0 5:4",
            ("trade shape 2 with third shape", "let it switch places with fourth shape", "then delete shape 2"),
            ("1:2 2:1 3:3 4:0 5:4", "1:2 2:1 3:0 4:3 5:4", "1:2 2:0 3:3 4:4"),
            4,
            "Switch “the critic ranks” off: the right states drop out of the beam.",
        ),
    ),
}
"""By the built-in model that searches."""
