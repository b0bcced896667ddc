"""ε-greedy exploration: how often a slot takes a random state, and which.

Frequencies are compared with their expectations; a deviation of more than five standard deviations is a failure. The
keys are fixed, so that the tests give the same on every run.
"""

from __future__ import annotations

import functools
from collections import Counter
from math import comb

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from reference import search as twin
from reference.comparison import quick_jit
from reference.tables import TableDomain, Tables

from vbsix.search import Problem, SearchConfig, search_graph
from vbsix.search.select import explore_slots

SAMPLES = 20_000
DEVIATIONS = 5
SLOTS, COUNT = 6, 30
AVAILABLE = np.isin(np.arange(COUNT), np.arange(0, COUNT, 2))
"""Every other state: fifteen of thirty."""
RANKING = np.array([4, 0, 28, 10, 12, 2], np.int32)


@functools.cache
def sample_slots(
    epsilon: float, ranking: tuple[int, ...] = tuple(RANKING), available: tuple[bool, ...] = tuple(AVAILABLE)
):
    """[samples, slots], what the slots take."""
    keys = jax.random.split(jax.random.key(7), SAMPLES)
    draw = jax.jit(jax.vmap(lambda key: explore_slots(key, jnp.array(ranking), jnp.array(available), epsilon)))
    return np.asarray(draw(keys))


def assert_frequency(hits: np.ndarray, probability: float) -> None:
    """The share of hits is what it should be."""
    tolerance = DEVIATIONS * np.sqrt(probability * (1 - probability) / hits.size)
    assert np.mean(hits) == pytest.approx(probability, abs=tolerance)


def test_without_epsilon_every_slot_takes_its_rank():
    assert np.array_equal(sample_slots(0.0), np.broadcast_to(RANKING, (SAMPLES, SLOTS)))


@pytest.mark.parametrize("epsilon", [0.15, 0.5])
def test_share_of_random_picks(epsilon):
    """Of 15 states, n flagged slots draw from the 9 that have no rank and their own n, one of which they would have
    had without being flagged."""
    expected = 0.0
    for flagged in range(SLOTS + 1):
        chance = comb(SLOTS, flagged) * epsilon**flagged * (1 - epsilon) ** (SLOTS - flagged)
        expected += chance * flagged / SLOTS * (1 - 1 / (9 + flagged))
    for slot in range(SLOTS):
        assert_frequency(sample_slots(epsilon)[:, slot] != RANKING[slot], expected)


def test_random_picks_are_uniform():
    """The nine states that have no rank are taken equally often, by any slot."""
    picks = sample_slots(0.15)
    others = np.setdiff1d(np.flatnonzero(AVAILABLE), RANKING)
    share = np.mean(np.isin(picks, others)) / len(others)
    for state in others:
        assert_frequency(np.any(picks == state, axis=1), share * SLOTS)
        for slot in (0, SLOTS - 1):
            assert_frequency(picks[:, slot] == state, share)


def test_with_epsilon_1_all_available_states_are_taken_equally_often():
    picks = sample_slots(1.0)
    for state in np.flatnonzero(AVAILABLE):
        for slot in range(SLOTS):
            assert_frequency(picks[:, slot] == state, 1 / 15)


def test_slots_are_flagged_independently():
    deviates = sample_slots(0.15) != RANKING
    assert_frequency(deviates[:, 0] & deviates[:, 5], np.mean(deviates[:, 0]) * np.mean(deviates[:, 5]))


@pytest.mark.parametrize("epsilon", [0.15, 0.5, 1.0])
def test_only_available_states_are_taken_and_none_twice(epsilon):
    picks = sample_slots(epsilon)
    assert AVAILABLE[picks].all()
    assert all(len(set(row)) == SLOTS for row in picks.tolist())


FEW = tuple(np.isin(np.arange(COUNT), [3, 8, 9]))
FEW_RANKED = (8, 3, 9, -1, -1, -1)


@pytest.mark.parametrize("epsilon", [0.3, 1.0])
def test_where_fewer_states_remain_than_slots_are_flagged_slots_stay_empty(epsilon):
    """Three states for six slots: each is taken once at most, the other slots are empty."""
    picks = sample_slots(epsilon, FEW_RANKED, FEW)
    assert np.isin(picks, [3, 8, 9, -1]).all()
    for state in (3, 8, 9):
        assert (np.sum(picks == state, axis=1) <= 1).all()
    if epsilon == 1:
        assert (np.sum(picks == -1, axis=1) == 3).all()
        assert (picks[:, 3:] == -1).all(), "the first flagged slots take what there is"


SMALL = [(slots, count) for slots in (1, 3) for count in (1, 2, 3, 4, 5)]
"""Slots and candidates."""


@functools.cache
def small_samples(epsilon: float) -> dict[tuple[int, int], np.ndarray]:
    """[samples, slots] for each of the small sizes; candidate 0 is the best, 1 the next."""
    keys = jax.random.split(jax.random.key(5), SAMPLES)

    def select(key):
        return {
            (slots, count): explore_slots(
                key, jnp.array([*range(count), *[-1] * slots][:slots]), jnp.arange(7) < count, epsilon
            )
            for slots, count in SMALL
        }

    return jax.tree.map(np.asarray, jax.jit(jax.vmap(select))(keys))


@pytest.mark.parametrize("epsilon", [0.15, 0.6, 1.0])
def test_the_sets_have_the_distribution_of_the_reference_code(epsilon):
    """It fills one slot after the other; a slot whose rank was taken by a random draw before it draws, too."""
    for (slots, count), picks in small_samples(epsilon).items():
        expected = twin.epsilon_greedy_sets(range(count), slots, epsilon)
        assert sum(expected.values()) == pytest.approx(1)
        found = Counter(frozenset(row) - {-1} for row in picks.tolist())
        assert found.keys() <= expected.keys()
        counts = np.array([found[candidates] for candidates in expected])
        chances = np.array(list(expected.values()))
        for hits, chance in zip(counts, chances, strict=True):
            assert hits / SAMPLES == pytest.approx(chance, abs=DEVIATIONS * np.sqrt(chance * (1 - chance) / SAMPLES))
        # χ² has a mean of n - 1 and a variance of 2 (n - 1).
        freedom = len(expected) - 1
        statistic = np.sum((counts - SAMPLES * chances) ** 2 / (SAMPLES * chances))
        assert statistic <= freedom + DEVIATIONS * np.sqrt(2 * freedom) + 1e-3, (slots, count)


def test_the_reference_rule_by_hand():
    """Two slots of three candidates. Slot 1 takes rank 1 unless it draws, or slot 0 has drawn it before."""
    expected = twin.epsilon_greedy_sets("abc", 2, 0.3)
    stays, draws = 0.7, 0.3
    ab = stays * stays + stays * draws / 2 + draws / 3 * (stays + draws / 2) + draws / 3 * (1 / 2)
    assert expected[frozenset("ab")] == pytest.approx(ab)
    assert twin.epsilon_greedy_sets("ab", 2, 0.3) == {frozenset("ab"): 1.0}
    assert twin.epsilon_greedy_sets("abc", 2, 0.0) == {frozenset("ab"): 1.0}


# The same through a search: one state with 26 successors, all different but for the last two, which are one state.

TOKENS, BEAM, EPSILON = 26, 4, 0.3


@functools.cache
def first_beams() -> np.ndarray:
    """[samples, slots], the states of the first beam after the start."""
    successor = np.full((TOKENS, TOKENS), -1, np.int32)
    successor[0] = np.arange(1, TOKENS + 1)
    successor[0, -1] = TOKENS - 1
    probability = np.arange(TOKENS, 0, -1) / np.sum(np.arange(TOKENS + 1))
    log_policy = np.broadcast_to(np.log(probability), (TOKENS, TOKENS)).astype(np.float32)
    zeros = np.zeros(TOKENS, np.int32)
    domain = TableDomain(Tables(successor, zeros, zeros, log_policy, zeros), max_tokens_per_instruction=2)
    config = SearchConfig(beam=BEAM, selection="epsilon-greedy", epsilon=EPSILON)

    def search(key):
        problem = Problem(jnp.int32(0), jnp.int32(1), jnp.int32(0))
        graph = search_graph(domain, domain.policy, None, problem, key, instructions=1, config=config)
        return jnp.where(graph.beam.alive[1], graph.beam.states[1], -1), graph.beam.log_chart[1]

    states, log_chart = quick_jit(jax.vmap(search))(jax.random.split(jax.random.key(11), SAMPLES))
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
