"""Exploration: how often a slot takes a random state, and which.

Frequencies are compared with their expectations; a deviation of more than five standard deviations is a failure. The
keys are fixed, so that the tests give the same on every run.
"""

from __future__ import annotations

import functools
from math import comb
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from reference.comparison import quick_jit
from reference.tables import TableDomain, Tables

from vbsix.search import Problem, SearchConfig, beam_search
from vbsix.search.beam import best_states
from vbsix.search.exploration import explore_slots

DRAWS = 20_000
DEVIATIONS = 5
SLOTS, COUNT = 6, 30
AVAILABLE = np.isin(np.arange(COUNT), np.arange(0, COUNT, 2))
"""Every other state: fifteen of thirty."""
RANKING = np.array([4, 0, 28, 10, 12, 2], np.int32)


@functools.cache
def draws(epsilon: float, ranking: tuple[int, ...] = tuple(RANKING), available: tuple[bool, ...] = tuple(AVAILABLE)):
    """[draws, slots], what the slots take."""
    keys = jax.random.split(jax.random.key(7), DRAWS)
    draw = jax.jit(jax.vmap(lambda key: explore_slots(key, jnp.array(ranking), jnp.array(available), epsilon)))
    return np.asarray(draw(keys))


def assert_frequency(hits: np.ndarray, probability: float) -> None:
    """The share of hits is what it should be."""
    tolerance = DEVIATIONS * np.sqrt(probability * (1 - probability) / hits.size)
    assert np.mean(hits) == pytest.approx(probability, abs=tolerance)


def test_without_epsilon_every_slot_takes_its_rank():
    assert np.array_equal(draws(0.0), np.broadcast_to(RANKING, (DRAWS, SLOTS)))


@pytest.mark.parametrize("epsilon", [0.15, 0.5])
def test_share_of_random_picks(epsilon):
    """Of 15 states, n flagged slots draw from the 9 that have no rank and their own n, one of which they would have
    had without being flagged."""
    expected = 0.0
    for flagged in range(SLOTS + 1):
        chance = comb(SLOTS, flagged) * epsilon**flagged * (1 - epsilon) ** (SLOTS - flagged)
        expected += chance * flagged / SLOTS * (1 - 1 / (9 + flagged))
    for slot in range(SLOTS):
        assert_frequency(draws(epsilon)[:, slot] != RANKING[slot], expected)


def test_random_picks_are_uniform():
    """The nine states that have no rank are taken equally often, by any slot."""
    picks = draws(0.15)
    others = np.setdiff1d(np.flatnonzero(AVAILABLE), RANKING)
    share = np.mean(np.isin(picks, others)) / len(others)
    for state in others:
        assert_frequency(np.any(picks == state, axis=1), share * SLOTS)
        for slot in (0, SLOTS - 1):
            assert_frequency(picks[:, slot] == state, share)


def test_with_epsilon_1_all_available_states_are_taken_equally_often():
    picks = draws(1.0)
    for state in np.flatnonzero(AVAILABLE):
        for slot in range(SLOTS):
            assert_frequency(picks[:, slot] == state, 1 / 15)


def test_slots_are_flagged_independently():
    deviates = draws(0.15) != RANKING
    assert_frequency(deviates[:, 0] & deviates[:, 5], np.mean(deviates[:, 0]) * np.mean(deviates[:, 5]))


@pytest.mark.parametrize("epsilon", [0.15, 0.5, 1.0])
def test_only_available_states_are_taken_and_none_twice(epsilon):
    picks = draws(epsilon)
    assert AVAILABLE[picks].all()
    assert all(len(set(row)) == SLOTS for row in picks.tolist())


FEW = tuple(np.isin(np.arange(COUNT), [3, 8, 9]))
FEW_RANKED = (8, 3, 9, -1, -1, -1)


@pytest.mark.parametrize("epsilon", [0.3, 1.0])
def test_where_fewer_states_remain_than_slots_are_flagged_slots_stay_empty(epsilon):
    """Three states for six slots: each is taken once at most, the other slots are empty."""
    picks = draws(epsilon, FEW_RANKED, FEW)
    assert np.isin(picks, [3, 8, 9, -1]).all()
    for state in (3, 8, 9):
        assert (np.sum(picks == state, axis=1) <= 1).all()
    if epsilon == 1:
        assert (np.sum(picks == -1, axis=1) == 3).all()
        assert (picks[:, 3:] == -1).all(), "the first flagged slots take what there is"


# The same through a search: one state with 26 successors, all different but for the last two, which are one state.

TOKENS, BEAM, EPSILON = 26, 4, 0.3


@functools.cache
def first_beams(**settings: Any) -> np.ndarray:
    """[draws, slots], the states of the first beam after the start."""
    successor = np.full((TOKENS, TOKENS), -1, np.int32)
    successor[0] = np.arange(1, TOKENS + 1)
    successor[0, -1] = TOKENS - 1
    probability = np.arange(TOKENS, 0, -1) / np.sum(np.arange(TOKENS + 1))
    log_policy = np.broadcast_to(np.log(probability), (TOKENS, TOKENS)).astype(np.float32)
    zeros = np.zeros(TOKENS, np.int32)
    domain = TableDomain(Tables(successor, zeros, zeros, log_policy, zeros), max_tokens_per_instruction=2)
    config = SearchConfig(beam=BEAM, epsilon=EPSILON, **settings)

    def search(key):
        problem = Problem(jnp.int32(0), jnp.int32(1), jnp.int32(0))
        graph = beam_search(domain, domain.policy, None, problem, key, instructions=1, config=config)
        return jnp.where(graph.beam.alive[1], graph.beam.states[1], -1), graph.beam.log_chart[1]

    states, log_chart = quick_jit(jax.vmap(search))(jax.random.split(jax.random.key(11), DRAWS))
    chart = np.append(probability[:-2], probability[-2:].sum())
    np.testing.assert_allclose(np.exp(log_chart), chart[np.asarray(states) - 1], rtol=1e-4)
    return np.asarray(states)


def test_a_search_explores_merged_states():
    """25 states for four slots. A state that two tokens lead to is drawn no more often than the others."""
    beams = first_beams()
    assert (beams >= 1).all()
    assert all(len(set(row)) == BEAM for row in beams.tolist())
    for slot in range(BEAM):
        assert np.mean(beams[:, slot] == slot + 1) == pytest.approx(1 - EPSILON, abs=0.03)
    unranked = np.arange(BEAM + 1, TOKENS)
    share = np.mean(np.isin(beams, unranked)) * BEAM / len(unranked)
    for state in unranked:
        assert_frequency(np.any(beams == state, axis=1), share)


def test_a_search_may_explore_those_states_alone_that_a_critic_is_shown():
    """Four slots by rank, and six states more in the pool."""
    beams = first_beams(pool="rerank", rerank=10)
    assert (beams >= 1).all() and (beams <= 10).all()
    share = np.mean(beams > BEAM) * BEAM / 6
    for state in range(BEAM + 1, 11):
        assert_frequency(np.any(beams == state, axis=1), share)


def test_a_quota_comes_before_the_rest():
    """Two slots for each of three instructions; the third has one state, and its other slot goes to the best left."""
    score = jnp.array([0.9, 0.8, 0.7, 0.1, 0.2, 0.15, 0.05, -jnp.inf])
    done = jnp.array([0, 0, 0, 1, 1, 1, 2, 2])
    found, chosen = best_states(score, done, 6, 2, 3)
    assert chosen.tolist() == [0, 1, 4, 5, 6, 2]
    np.testing.assert_array_equal(found, score[chosen])
    assert np.isneginf(best_states(score, done, 8, 2, 3)[0][-1]), "what is not there comes last"


def test_a_search_with_a_quota_keeps_states_of_every_instruction():
    """From 0, `a` stays within the first instruction and `b`, less probable, begins the second."""
    successor = np.array([[1, 4], [2, 4], [3, 4], [3, 4], [4, 5], [-1, -1]], np.int32)
    done = np.array([0, 0, 0, 0, 1, 2], np.int32)
    log_policy = np.broadcast_to(np.log([0.99, 0.01]), (6, 2)).astype(np.float32)
    domain = TableDomain(Tables(successor, done, done, log_policy, np.zeros(6)), max_tokens_per_instruction=2)
    problem = Problem(jnp.int32(0), jnp.int32(2), jnp.int32(2))

    def second_beam(quota):
        config = SearchConfig(space="program", beam=2, epsilon=0.0, quota=quota)
        graph = beam_search(domain, domain.policy, None, problem, jax.random.key(0), instructions=2, config=config)
        return graph.beam.states[2].tolist()

    assert second_beam(0) == [2, 4]
    assert second_beam(1) == [2, 4]
    successor[1] = successor[2] = 3, 3
    domain = TableDomain(Tables(successor, done, done, log_policy, np.zeros(6)), max_tokens_per_instruction=2)
    assert second_beam(0) == [3, 3]
    assert second_beam(1) == [3, 4]


@pytest.mark.parametrize(("rule", "best"), [("sum", 3), ("product", 1)])
def test_a_value_is_added_to_the_actor_score_or_multiplies_it(rule, best):
    """0.6 + 0.45 is less than 0.1 + 1, but 0.6 · 0.45 is more than 0.1 · 1; a state of value 0 stays a state."""
    successor = np.array([[1, 2, 3], [4, 4, 4], [4, 4, 4], [4, 4, 4], [-1, -1, -1]], np.int32)
    done = np.array([0, 0, 0, 0, 1], np.int32)
    log_policy = np.broadcast_to(np.log([0.6, 0.3, 0.1]), (5, 3)).astype(np.float32)
    tables = Tables(successor, done, done, log_policy, np.array([0, 0.45, 0, 1, 0], np.float32))
    domain = TableDomain(tables, max_tokens_per_instruction=3)
    config = SearchConfig(beam=3, epsilon=0.0, critic_score=rule)
    problem = Problem(jnp.int32(0), jnp.int32(1), jnp.int32(1))
    graph = beam_search(domain, domain.policy, domain.critic, problem, jax.random.key(0), instructions=1, config=config)
    assert graph.beam.states[1].tolist() == [best, 4 - best, 2]
    assert graph.beam.alive[1].all()
