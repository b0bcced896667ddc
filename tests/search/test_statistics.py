"""What is measured of a search, by hand in a small system; `test_against_reference.py` has the twin's count of more."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from reference.comparison import quick_jit
from reference.tables import TableDomain, Tables

from vbsix.search import Problem, SearchConfig, search_graph, statistics
from vbsix.search.statistics import Statistics, critic_window_share

# A row of diamonds: from each state two tokens lead to two states, and from both of them one token leads on to the
# next. So 2^n prefixes come to the n-th joint, where a beam holds one state. States 3n are the joints:
#
#        1       4
#      /   \   /   \
#     0     3       6 ...      a: up, b: down; then a: on
#      \   /   \   /
#        2       5

DIAMONDS = 6
JOINT = 3 * DIAMONDS


def diamonds() -> Tables:
    successor = np.full((JOINT + 2, 2), -1, np.int32)
    for first in range(0, JOINT, 3):
        successor[first] = first + 1, first + 2
        successor[first + 1, 0] = successor[first + 2, 0] = first + 3
    successor[JOINT, 0] = JOINT + 1  # the only terminal state
    done = (np.arange(JOINT + 2) > JOINT).astype(np.int32)
    log_policy = np.log(np.full((JOINT + 2, 2), 0.5, np.float32))
    return Tables(successor, done, done, log_policy, np.zeros(JOINT + 2, np.float32))


def measure(tables: Tables, **settings: Any) -> Statistics:
    return measure_with_window(tables, **settings)[0]


def measure_with_window(tables: Tables, *, space: str, beam: int, longest: int, instructions: int = 1):
    """Statistics of a search for a terminal state with denotation 1, and the shares of states in the critic's window.

    `longest` is per instruction.
    """
    domain = TableDomain(tables, longest)
    config = SearchConfig(space, beam, "epsilon-greedy", 0.0)

    def search():
        problem = Problem(jnp.int32(0), jnp.int32(instructions), jnp.int32(1))
        key = jax.random.key(0)
        graph = search_graph(domain, domain.policy, None, problem, key, instructions=instructions, config=config)
        return statistics(graph, space), critic_window_share(domain, problem, graph, config.critic_window)

    return jax.tree.map(np.asarray, quick_jit(search)())


def test_a_beam_holds_exponentially_many_paths_in_execution_space():
    found = measure(diamonds(), space="execution", beam=4, longest=2 * DIAMONDS + 3)
    # At joint n there are 2^n paths, at the two states after it 2^n each; then two iterations without a beam.
    states = [1, 2] * DIAMONDS + [1, 0, 0]
    paths = [2**n * width for n in range(DIAMONDS) for width in (1, 2)] + [2**DIAMONDS]
    assert found.states.tolist() == states
    assert found.successors.tolist() == [2, 2] * DIAMONDS + [1, 0, 0]
    assert found.distinct.tolist() == [2, 1] * DIAMONDS + [1, 0, 0]
    assert found.paths == pytest.approx(sum(paths) / len(paths), rel=1e-6)
    assert found.hit
    assert found.correct_discarded == 0


def test_a_beam_holds_as_many_paths_as_states_in_program_space():
    found = measure(diamonds(), space="program", beam=4, longest=2 * DIAMONDS + 3)
    states = [1, 2, 2, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 0, 0]
    assert found.states.tolist() == states
    assert found.distinct.tolist() == found.successors.tolist(), "nothing is merged"
    assert found.paths == pytest.approx(sum(states) / 13, rel=1e-6)
    assert found.hit
    assert found.correct_discarded == 0


def test_correct_discarded_states():
    """K = 1. State 2 (.4) falls out at once, comes back behind state 1 and is expanded; the end is behind it."""
    #
    #    0 --a .6--> 1 --a--> 2 --a--> 3 (correct)
    #     `---b .4----------->'
    tables = Tables(
        np.array([[1, 2], [2, -1], [3, -1], [-1, -1]], np.int32),
        np.array([0, 0, 0, 1], np.int32),
        np.array([0, 0, 0, 1], np.int32),
        np.log(np.array([[0.6, 0.4], [1, 1], [1, 1], [1, 1]], np.float32)),
        np.zeros(4, np.float32),
    )
    found = measure(tables, space="execution", beam=1, longest=4)
    assert found.correct_discarded == 1
    assert measure(tables, space="program", beam=1, longest=4).correct_discarded == 0
    no_target = tables._replace(denotation=np.zeros(4, np.int32))
    missed = measure(no_target, space="execution", beam=1, longest=4)
    assert missed.correct_discarded == 0
    assert not missed.hit


def test_the_share_of_states_in_the_critics_window():
    """Of an only instruction all states are in it. Of three instructions the first is not, with two beams of five."""
    _, share = measure_with_window(diamonds(), space="execution", beam=4, longest=2 * DIAMONDS + 3)
    assert share.tolist() == [1] * (2 * DIAMONDS + 1) + [0, 0]
    chain = Tables(
        np.array([[1], [2], [3], [4], [5], [-1]], np.int32),
        np.array([0, 0, 1, 1, 2, 3], np.int32),
        np.zeros(6, np.int32),
        np.zeros((6, 1), np.float32),
        np.zeros(6, np.float32),
    )
    _, share = measure_with_window(chain, space="execution", beam=2, longest=2, instructions=3)
    assert share.tolist() == [0, 0, 1, 1, 1, 0]


def test_a_share_is_of_the_states_in_the_beam():
    """From state 0, `a` stays in the first of three instructions and `b` begins the second."""
    tables = Tables(
        np.array([[1, 2], [-1, -1], [-1, -1]], np.int32),
        np.array([0, 0, 1], np.int32),
        np.zeros(3, np.int32),
        np.log(np.full((3, 2), 0.5, np.float32)),
        np.zeros(3, np.float32),
    )
    _, share = measure_with_window(tables, space="execution", beam=3, longest=1, instructions=3)
    assert share.tolist() == [0, 0.5, 0]
