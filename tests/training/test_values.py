"""The critic's examples on the toy of test_objectives.py, whose programs are aa, ba, aba, bba and, wrong, abb, bbb."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from reference.tables import TableDomain, Tables

from vbsix.search import Problem, SearchConfig, extract_negatives, program_search
from vbsix.training.objectives import correct_flow
from vbsix.training.values import label_graph, label_programs

A = np.array([0.6, 0.3, 0.8])
"""The probability of `a` in the states 0, 1 and 2."""


def log_policy(state, valid):
    a = jnp.asarray(np.append(A, [0.5, 0.5]), jnp.float32)[state["place"]]
    return jnp.log(jnp.stack([a, 1 - a]))


@pytest.fixture(scope="module")
def searched(toy):
    problem = Problem(jnp.int32(0), jnp.int32(1), jnp.int32(3))
    config = SearchConfig(beam=4, epsilon=0.0)
    return program_search(toy, log_policy, None, problem, jax.random.key(0), instructions=1, config=config)


def label(graph, programs, negatives, late, labels, size):
    if labels == "graph":
        return label_graph(graph, correct_flow(graph), late, size=size)
    wrong = extract_negatives(graph, negatives, "execution").programs
    return label_programs(graph, programs, wrong, late, paper=labels == "paper", size=size)


def build(searched, labels, *, late=None, size=20):
    programs, graph = searched
    late = jnp.ones(graph.beam.alive.size, bool) if late is None else late
    examples = label(graph, programs, 4, late, labels, size)
    places = np.asarray(graph.beam.states["place"]).reshape(-1)[np.asarray(examples.vertices)]
    mask = np.asarray(examples.mask)
    by_place = dict(zip(places[mask].tolist(), np.asarray(examples.labels)[mask].tolist(), strict=True))
    assert len(by_place) == mask.sum(), "one example for each distinct state"
    return by_place, examples


def test_suffix_labels_count_each_suffix_once(searched):
    by_place, examples = build(searched, "suffix")
    # State 1 is reached by a and by b, but its suffixes are a and ba; the first and the terminal states are left out.
    assert by_place == pytest.approx({1: 0.3 + 0.7 * 0.8, 2: 0.8}, rel=1e-5)
    assert examples.dropped == 0


def test_paper_labels_count_the_token_before_and_every_program(searched):
    by_place, _ = build(searched, "paper")
    suffixes = 0.3 + 0.7 * 0.8
    # Into state 1 by a (0.6) or b (0.4); into state 2 by b (0.7), once for each of the two programs through it.
    assert by_place == pytest.approx({1: 0.6 * suffixes + 0.4 * suffixes, 2: min(2 * 0.7 * 0.8, 1.0)}, rel=1e-5)


def test_graph_labels_are_backward_sums(searched):
    by_place, _ = build(searched, "graph")
    assert by_place == pytest.approx({1: 0.3 + 0.7 * 0.8, 2: 0.8}, rel=1e-5)


def test_states_that_the_critic_does_not_rank_are_left_out(searched):
    places = np.asarray(searched[1].beam.states["place"]).reshape(-1)
    by_place, _ = build(searched, "suffix", late=jnp.asarray(places == 2))
    assert by_place == pytest.approx({2: 0.8}, rel=1e-5)


def test_states_beyond_the_places_are_counted(searched):
    by_place, examples = build(searched, "suffix", size=1)
    assert len(by_place) == 1
    assert examples.dropped == 1


def test_a_state_on_wrong_programs_only_has_label_zero(toy):
    """One program is extracted, aa; state 2 is then only on the way to the incorrect abb."""

    def prefers_aa(state, valid):
        a = jnp.array([0.6, 0.9, 0.8, 0.5, 0.5])[state["place"]]
        return jnp.log(jnp.stack([a, 1 - a]))

    problem = Problem(jnp.int32(0), jnp.int32(1), jnp.int32(3))
    config = SearchConfig(beam=4, epsilon=0.0, program_beam=1)
    searched = program_search(toy, prefers_aa, None, problem, jax.random.key(0), instructions=1, config=config)
    by_place, _ = build(searched, "suffix")
    assert by_place == pytest.approx({1: 0.9, 2: 0.0}, rel=1e-4)


def test_graph_labels_cover_states_that_lead_nowhere():
    """From 0, `a` leads to 1 and on to the target 3; `b` to 2, where no token is valid."""
    successor = np.array([[1, 2], [3, -1], [-1, -1], [-1, -1]], np.int32)
    done = np.array([0, 0, 0, 1], np.int32)
    half = np.full((4, 2), np.log(0.5), np.float32)
    domain = TableDomain(Tables(successor, done, done, half, np.zeros(4)), max_tokens_per_instruction=3)
    problem = Problem(jnp.int32(0), jnp.int32(1), jnp.int32(1))
    config = SearchConfig(beam=3, epsilon=0.0)
    programs, graph = program_search(
        domain, domain.policy, None, problem, jax.random.key(0), instructions=1, config=config
    )
    late = jnp.ones(graph.beam.alive.size, bool)
    found = {}
    for labels in ("suffix", "graph"):
        examples = label(graph, programs, 1, late, labels, 9)
        states = np.asarray(graph.beam.states).reshape(-1)[np.asarray(examples.vertices)]
        mask = np.asarray(examples.mask)
        found[labels] = dict(zip(states[mask].tolist(), np.asarray(examples.labels)[mask].tolist(), strict=True))
    assert found["suffix"] == pytest.approx({1: 0.5})
    assert found["graph"] == pytest.approx({1: 0.5, 2: 0.0})
