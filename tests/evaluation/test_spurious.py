from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from training.tiny_config import tiny_config, tiny_dataset

from vbsix import execute
from vbsix.data.dataset import Dataset, Split
from vbsix.data.examples import Row, prefixes
from vbsix.data.words import random_words
from vbsix.domains.registry import get_domain
from vbsix.evaluation.accuracy import Predicted
from vbsix.evaluation.spurious import (
    FOUND,
    intermediate_accuracy,
    is_spurious,
    predict_longest,
    spurious_finds,
    spurious_posterior,
    spurious_shares,
)
from vbsix.models.heads import Networks
from vbsix.search import Problem, beam_search, complete_programs
from vbsix.search.beam import outcome_of
from vbsix.search.select import greedy
from vbsix.training.chunk import create_learners

pytestmark = pytest.mark.integration


DOMAIN = get_domain("tangrams")
REMOVE = "all-objects {} index ARemove"
# The first shape is removed, then the last.
WORLDS = ("1:0 2:1 3:2 4:3", "1:1 2:2 3:3", "1:1 2:2")
RIGHT = f"{REMOVE.format(1)} {REMOVE.format(-1)}"
SPURIOUS = f"{REMOVE.format(4)} {REMOVE.format(1)}"
WRONG = f"{REMOVE.format(1)} {REMOVE.format(1)}"
TWICE = ("remove it",) * 2
CONFIG = tiny_config(data__evaluation=(1, 2))


def reached(world: str, program: str) -> tuple[str, ...]:
    """The worlds after each command of a program."""
    after = {step.commands: step.world for step in reversed(execute(DOMAIN, world, program))}
    return tuple(after[count] for count in sorted(after) if count)


def compare(program: str, worlds: tuple[str | None, ...]) -> list[bool]:
    """Which worlds of a program are right; one that is not known counts as the last."""
    found = reached(WORLDS[0], program) if program else ("no world",) * 2
    return [world == (wanted or worlds[-1]) for world, wanted in zip(found, worlds[1:], strict=False)]


def measure(measured: Any, programs: list[list[str]], rows: list[Row]) -> Any:
    """What a function says about predictions of dev; `programs` has a list for each seed."""
    right = np.array(
        [[compare(*pair) for pair in zip(seed, (row.worlds for row in rows), strict=True)] for seed in programs]
    )
    predicted = Predicted(np.zeros((*right.shape[:2], 1), np.int32), right, np.full(len(rows), 2))
    examples = prefixes([Row("1", WORLDS, TWICE)], [2])
    dataset = Dataset(DOMAIN, random_words(TWICE), examples, {"dev": Split(rows)}, CONFIG.data.max_words)
    if measured is intermediate_accuracy:
        return measured(dataset, CONFIG, {"dev": predicted})["dev"]
    networks: Any = Networks(jnp.zeros(len(programs)), None, None)  # pyright: ignore[reportArgumentType]
    shares = measured(dataset, networks, CONFIG, {"dev": predicted})
    assert shares[FOUND] == [None] * len(programs), "there are no rows to search for"
    return shares["dev"]


@pytest.mark.parametrize(
    ("right", "spurious"),
    [
        ((True, True), False),
        ((False, True), True),
        ((True, False, True), True),
        ((True,), None),  # no world in between
        ((True, False), None),  # not even right
        ((None, True), None),  # nobody knows
        ((True, None), None),
    ],
)
def test_a_correct_program_that_passes_through_a_wrong_world_is_spurious(right, spurious):
    assert is_spurious(right) is spurious


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
def test_the_spurious_share_is_of_the_correct_predictions(programs, share):
    rows = [Row(str(number), WORLDS, TWICE) for number in range(3)]
    expected = [pytest.approx(share) if share else share, 0.0]
    assert measure(spurious_shares, [programs, [RIGHT] * 3], rows) == expected


def test_intermediate_worlds_are_looked_at_where_the_last_is_right():
    rows = [Row(str(number), WORLDS, TWICE) for number in range(3)]
    assert measure(intermediate_accuracy, [[RIGHT, SPURIOUS, WRONG], [WRONG] * 3], rows) == {"1": [0.5, None]}


def test_rows_without_all_worlds_are_passed_over():
    known, unknown = (Row("1", worlds, TWICE) for worlds in (WORLDS, (WORLDS[0], None, WORLDS[2])))
    assert measure(spurious_shares, [[RIGHT, SPURIOUS]], [known, unknown]) == [0.0]
    assert measure(spurious_shares, [[SPURIOUS]], [unknown]) == [None]
    longer = Row("2", (*WORLDS, None), (*TWICE, "remove it"))
    assert measure(spurious_shares, [[RIGHT, SPURIOUS]], [known, longer]) == [0.5], "only the first two count"


def test_predictions_are_compared_with_every_world(tiny_run):
    """By executing the predicted tokens."""
    run, dataset, learners = tiny_run
    found = predict_longest(dataset, learners.networks, run.config)
    assert found.keys() == dataset.splits.keys()
    expected, complete = [], 0
    for of_seed in found["dev"].tokens:
        for row, tokens in zip(dataset.splits["dev"].rows, of_seed, strict=True):
            program = " ".join(DOMAIN.tokens[token] for token in tokens if token >= 0)
            complete += bool(program)
            worlds = reached(str(row.worlds[0]), program) if program else ("no world",) * 2
            expected.append([world == wanted for world, wanted in zip(worlds, row.worlds[1:3], strict=True)])
    assert found["dev"].right.reshape(-1, 2).tolist() == expected
    assert complete and any(map(any, expected))
    np.testing.assert_array_equal(found["dev"].correct, found["dev"].right[:, :, 1])


def test_finds_are_spurious_by_their_share_of_the_posterior():
    useful = np.isin(DOMAIN.tokens, ["all-objects", "1", "4", "-1", "index", "ARemove"])
    start, *between = (jnp.asarray(DOMAIN.parse_world(world)) for world in WORLDS)
    problem = Problem(start, jnp.int32(2), between[-1])
    graph = beam_search(
        DOMAIN,
        lambda state, valid: jnp.where(useful, jnp.log(1 / 6), jnp.log(1e-6)),
        problem,
        jax.random.key(0),
        select=greedy(300),
        outcome=outcome_of(DOMAIN, problem),
        instructions=2,
        beam=300,
        space="program",
    )
    programs = complete_programs(graph, 300)
    assert not programs.found[-1], "all that were found"
    mass, through_wrong = np.exp(programs.log_probability), 0.0
    for number in np.flatnonzero(programs.found):
        program = " ".join(DOMAIN.tokens[token] for token in np.asarray(programs.tokens[number]) if token >= 0)
        assert reached(WORLDS[0], program)[-1] == WORLDS[-1]
        through_wrong += mass[number] * (reached(WORLDS[0], program)[0] != WORLDS[1])
    expected = through_wrong / mass.sum()
    assert 0.1 < expected < 0.9
    assert spurious_posterior(DOMAIN, graph, jnp.stack(between)) == pytest.approx(expected, rel=1e-4)


def test_what_untrained_searches_find_is_measured_for_each_seed():
    config = tiny_config(search__beam=256)
    dataset = tiny_dataset(config)
    networks = create_learners(DOMAIN, config, jnp.arange(2)).networks
    assert spurious_finds(dataset, networks, config, 1) == [0.0, 0.0], "one utterance has no intermediate world"
    unknown = Split([Row("1", (WORLDS[0], None, WORLDS[2]), TWICE)])
    without = Dataset(DOMAIN, dataset.words, [], {}, dataset.max_words, unknown)
    assert spurious_finds(without, networks, config, 2) == [None, None]
