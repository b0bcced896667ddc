from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from training.tiny import tiny_config

from vbsix.data.examples import Row
from vbsix.data.words import random_words
from vbsix.domains.registry import get_domain
from vbsix.search import Problem, SearchConfig, beam_search, complete_programs
from vbsix.training.chunk import create_learners
from vbsix.training.spurious import passes_through, spurious_finds, spurious_share, spurious_shares, worlds_between
from vbsix.training.task import Split, Task, load_task

DOMAIN = get_domain("tangrams")
REMOVE = "all-objects {} index ARemove"
# The first shape is removed, then the last.
WORLDS = ("1:0 2:1 3:2 4:3", "1:1 2:2 3:3", "1:1 2:2")
RIGHT = f"{REMOVE.format(1)} {REMOVE.format(-1)}"
SPURIOUS = f"{REMOVE.format(4)} {REMOVE.format(1)}"
WRONG = f"{REMOVE.format(1)} {REMOVE.format(1)}"


def shares(programs: list[list[str]], rows: list[Row], measure=spurious_shares):
    """`programs` has a list for each seed."""
    tokens = np.full((len(programs), len(rows), 14), -1, np.int32)
    for seed, by_row in enumerate(programs):
        for number, program in enumerate(by_row):
            ids = [DOMAIN.tokens.index(token) for token in program.split()]
            tokens[seed, number, : len(ids)] = ids
    config = tiny_config()
    task = Task(DOMAIN, random_words(["remove it"]), [], {}, config)
    return measure(task, Split(rows), 2, tokens)


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


def test_worlds_in_between_are_looked_at_where_the_last_is_right():
    rows = [Row(str(number), WORLDS, ("remove it", "remove it")) for number in range(3)]
    assert shares([[RIGHT, SPURIOUS, WRONG], [WRONG] * 3], rows, worlds_between) == {"1": [0.5, None]}


def test_rows_that_do_not_tell_are_passed_over():
    known, unknown = (Row("1", worlds, ("remove it",) * 2) for worlds in (WORLDS, (WORLDS[0], None, WORLDS[2])))
    assert shares([[RIGHT, SPURIOUS]], [known, unknown]) == [0.0]
    assert shares([[SPURIOUS]], [unknown]) == [None]
    short = Row("2", WORLDS[:2], ("remove it",))
    assert shares([[RIGHT, SPURIOUS]], [known, short]) == [0.0]


def test_finds_are_spurious_by_their_share_of_probability():
    useful = np.isin(DOMAIN.tokens, ["all-objects", "1", "4", "-1", "index", "ARemove"])
    start, *between = (jnp.asarray(DOMAIN.parse_world(world)) for world in WORLDS)
    graph = beam_search(
        DOMAIN,
        lambda state, valid: jnp.where(useful, jnp.log(1 / 6), jnp.log(1e-6)),
        None,
        Problem(start, jnp.int32(2), between[-1]),
        jax.random.key(0),
        instructions=2,
        config=SearchConfig(space="program", beam=300, epsilon=0.0),
    )
    programs = complete_programs(graph, 300)
    assert not programs.found[-1], "all that were found"
    right = passes_through(DOMAIN, start[None], jnp.stack(between)[None], programs.tokens[:, None, :])[:, 0].all(
        axis=-1
    )
    mass = np.exp(programs.log_probability)
    expected = mass[~right].sum() / mass.sum()
    assert 0.1 < expected < 0.9
    assert spurious_share(DOMAIN, graph, jnp.stack(between)) == pytest.approx(expected, rel=1e-4)


def test_what_untrained_searches_find_is_measured_for_each_seed():
    task = load_task(tiny_config(search__beam=256), "synthetic")
    networks = create_learners(DOMAIN, task.config, jnp.arange(2)).networks
    assert spurious_finds(task, networks, 1) == [0.0, 0.0], "one utterance has no world in between"
    unknown = Split([Row("1", (WORLDS[0], None, WORLDS[2]), ("remove it",) * 2)])
    assert spurious_finds(Task(DOMAIN, task.words, [], {}, task.config, unknown), networks, 2) == [None, None]
