from __future__ import annotations

import numpy as np
import pytest
from training.tiny import tiny_config

from vbsix.data.examples import Row
from vbsix.data.words import random_words
from vbsix.domains.registry import get_domain
from vbsix.training.spurious import spurious_shares
from vbsix.training.task import Split, Task

DOMAIN = get_domain("tangrams")
REMOVE = "all-objects {} index ARemove"
# The first shape is removed, then the last.
WORLDS = ("1:0 2:1 3:2 4:3", "1:1 2:2 3:3", "1:1 2:2")
RIGHT = f"{REMOVE.format(1)} {REMOVE.format(-1)}"
SPURIOUS = f"{REMOVE.format(4)} {REMOVE.format(1)}"
WRONG = f"{REMOVE.format(1)} {REMOVE.format(1)}"


def shares(programs: list[list[str]], rows: list[Row]) -> list[float | None]:
    """`programs` has a list for each seed."""
    tokens = np.full((len(programs), len(rows), 14), -1, np.int32)
    for seed, by_row in enumerate(programs):
        for number, program in enumerate(by_row):
            ids = [DOMAIN.tokens.index(token) for token in program.split()]
            tokens[seed, number, : len(ids)] = ids
    config = tiny_config()
    task = Task(DOMAIN, random_words(["remove it"]), [], {}, config)
    return spurious_shares(task, Split(rows), 2, tokens)


@pytest.mark.parametrize(
    ("programs", "share"),
    [
        ([RIGHT, RIGHT, RIGHT], 0.0),
        ([RIGHT, SPURIOUS, RIGHT], 1 / 3),
        ([SPURIOUS, WRONG, RIGHT], 1 / 2),
        ([SPURIOUS, "", WRONG], 1.0),
        ([WRONG, WRONG, ""], None),
    ],
)
def test_a_right_program_that_passes_through_a_wrong_world_is_spurious(programs, share):
    rows = [Row(str(number), WORLDS, ("remove it", "remove it")) for number in range(3)]
    assert shares([programs, [RIGHT] * 3], rows) == [pytest.approx(share) if share else share, 0.0]


def test_rows_that_do_not_tell_are_passed_over():
    known, unknown = (Row("1", worlds, ("remove it",) * 2) for worlds in (WORLDS, (WORLDS[0], None, WORLDS[2])))
    assert shares([[RIGHT, SPURIOUS]], [known, unknown]) == [0.0]
    assert shares([[SPURIOUS]], [unknown]) == [None]
