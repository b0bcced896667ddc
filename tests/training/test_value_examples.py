"""The critic's examples on the toy of test_objectives.py, whose programs are aa, ba, aba, bba and, wrong, abb, bbb."""

from __future__ import annotations

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from reference.comparison import quick_jit
from reference.tables import TableDomain, Tables

from vbsix.search import Problem, SearchConfig, extract_negatives, program_search
from vbsix.training.forward_backward import forward_backward
from vbsix.training.value_examples import build_value_examples, graph_value_examples, suffix_log_probability

A = np.array([0.6, 0.3, 0.8])
"""The probability of `a` in the states 0, 1 and 2."""


def log_policy(state, valid):
    a = jnp.asarray(np.append(A, [0.5, 0.5]), jnp.float32)[state["place"]]
    return jnp.log(jnp.stack([a, 1 - a]))


def search(domain, policy, problem, config):
    key = jax.random.key(0)
    return quick_jit(lambda: program_search(domain, policy, None, problem, key, instructions=1, config=config))()


@pytest.fixture(scope="module")
def searched(toy):
    problem = Problem(jnp.int32(0), jnp.int32(1), jnp.int32(3))
    config = SearchConfig(beam=4, selection="epsilon-greedy", epsilon=0.0)
    return search(toy, log_policy, problem, config)


@functools.partial(quick_jit, static_argnums=(2, 4, 5))
def label(graph, programs, negatives, in_window, labels, size):
    if labels == "graph":
        return graph_value_examples(graph, forward_backward(graph), in_window, size=size)
    wrong = extract_negatives(graph, negatives).programs
    return build_value_examples(graph, programs, wrong, in_window, size=size)


def build(searched, labels, *, in_window=None, size=20):
    programs, graph = searched
    in_window = jnp.ones(graph.beam.alive.size, bool) if in_window is None else in_window
    examples = label(graph, programs, 4, in_window, labels, size)
    places = np.asarray(graph.beam.states["place"]).reshape(-1)[np.asarray(examples.vertices)]
    mask = np.asarray(examples.mask)
    by_place = dict(zip(places[mask].tolist(), np.asarray(examples.labels)[mask].tolist(), strict=True))
    assert len(by_place) == mask.sum(), "one example for each distinct state"
    return by_place, examples


def test_paper_labels_count_the_token_before_and_every_program(searched):
    by_place, examples = build(searched, "paper")
    assert examples.dropped == 0
    suffixes = 0.3 + 0.7 * 0.8
    # Into state 1 by a (0.6) or b (0.4); into state 2 by b (0.7), once for each of the two programs through it.
    assert by_place == pytest.approx({1: 0.6 * suffixes + 0.4 * suffixes, 2: min(2 * 0.7 * 0.8, 1.0)}, rel=1e-5)


def test_graph_labels_are_backward_sums(searched):
    by_place, _ = build(searched, "graph")
    assert by_place == pytest.approx({1: 0.3 + 0.7 * 0.8, 2: 0.8}, rel=1e-5)


def test_states_outside_the_critics_window_are_left_out(searched):
    places = np.asarray(searched[1].beam.states["place"]).reshape(-1)
    for labels, label in (("paper", 1.0), ("graph", 0.8)):
        by_place, _ = build(searched, labels, in_window=jnp.asarray(places == 2))
        assert by_place == pytest.approx({2: label}, rel=1e-5)


def test_states_beyond_the_places_are_counted(searched):
    for labels in ("paper", "graph"):
        by_place, examples = build(searched, labels, size=1)
        assert len(by_place) == 1
        assert examples.dropped == 1


def test_the_probability_of_what_follows_each_state(searched):
    programs, graph = searched
    found = {
        "".join("ab"[token] for token in row if token >= 0): np.exp(log_suffixes[row >= 0]).tolist()
        for row, log_suffixes in zip(np.asarray(programs.tokens), suffix_log_probability(graph, programs), strict=True)
    }
    assert found["ba"] == pytest.approx([0.4 * 0.3, 0.3], rel=1e-5)
    assert found["aba"] == pytest.approx([0.6 * 0.7 * 0.8, 0.7 * 0.8, 0.8], rel=1e-5)


def test_a_state_on_wrong_programs_only_has_label_zero(toy):
    """One program is extracted, aa; state 2 is then only on the way to the incorrect abb."""

    def prefers_aa(state, valid):
        a = jnp.array([0.6, 0.9, 0.8, 0.5, 0.5])[state["place"]]
        return jnp.log(jnp.stack([a, 1 - a]))

    problem = Problem(jnp.int32(0), jnp.int32(1), jnp.int32(3))
    config = SearchConfig(beam=4, selection="epsilon-greedy", epsilon=0.0, program_beam=1)
    searched = search(toy, prefers_aa, problem, config)
    by_place, _ = build(searched, "paper")
    assert by_place == pytest.approx({1: 0.6 * 0.9, 2: 0.0}, rel=1e-4)


def test_graph_labels_cover_states_that_lead_nowhere():
    """From 0, `a` leads to 1 and on to the target 3; `b` to 2, where no token is valid."""
    successor = np.array([[1, 2], [3, -1], [-1, -1], [-1, -1]], np.int32)
    done = np.array([0, 0, 0, 1], np.int32)
    half = np.full((4, 2), np.log(0.5), np.float32)
    domain = TableDomain(Tables(successor, done, done, half, np.zeros(4)), max_tokens_per_instruction=3)
    problem = Problem(jnp.int32(0), jnp.int32(1), jnp.int32(1))
    config = SearchConfig(beam=3, selection="epsilon-greedy", epsilon=0.0)
    programs, graph = search(domain, domain.policy, problem, config)
    in_window = jnp.ones(graph.beam.alive.size, bool)
    found = {}
    for labels in ("paper", "graph"):
        examples = label(graph, programs, 1, in_window, labels, 9)
        states = np.asarray(graph.beam.states).reshape(-1)[np.asarray(examples.vertices)]
        mask = np.asarray(examples.mask)
        found[labels] = dict(zip(states[mask].tolist(), np.asarray(examples.labels)[mask].tolist(), strict=True))
    assert found["paper"] == pytest.approx({1: 0.5 * 0.5})
    assert found["graph"] == pytest.approx({1: 0.5, 2: 0.0})
