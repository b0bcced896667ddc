"""Searches whose beam is a sample, on a system small enough to know every probability.

    0 -a-> 1 -a-> 3        Tokens without an arrow are invalid, though the policy gives them some probability.
    0 -b-> 2 -b-> 6        State 4 is reached in two ways, and 5 ends the program.
           1 -b-> 4
           2 -a-> 4
           1 -c-> 5

Frequencies may be off by five standard deviations; keys are fixed.
"""

from __future__ import annotations

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from reference.comparison import quick_jit
from reference.tables import TableDomain, Tables

from vbsix.search import Problem, SearchConfig, program_search, search_graph
from vbsix.search.beam import CORRECT, DEAD_END, INVALID, LIVE
from vbsix.search.sampling import mix_with_uniform
from vbsix.search.stochastic import perturb

SAMPLES = 20_000
SUCCESSOR = np.full((7, 3), -1, np.int32)
SUCCESSOR[0, :2] = 1, 2
SUCCESSOR[1] = 3, 4, 5
SUCCESSOR[2, :2] = 4, 6
POLICY = np.full((7, 3), 1 / 3)
POLICY[:3] = [0.5, 0.25, 0.25], [0.5, 0.3, 0.2], [0.2, 0.4, 0.4]
DONE = np.array([0, 0, 0, 0, 0, 1, 0], np.int32)
SYSTEM = TableDomain(Tables(SUCCESSOR, DONE, DONE, np.log(POLICY).astype(np.float32), np.zeros(7)), 3)
PROBLEM = Problem(jnp.int32(0), jnp.int32(1), jnp.int32(1))


def sampled_from(epsilon: float) -> np.ndarray:
    """The probability of each token in each state; what the policy gives to invalid ones is lost."""
    valid = SUCCESSOR >= 0
    count = np.maximum(valid.sum(axis=1, keepdims=True), 1)
    return valid * ((1 - epsilon) * POLICY + epsilon / count)


def expected(epsilon: float) -> np.ndarray:
    """The probability to be in each state after two random tokens."""
    policy, chance = sampled_from(epsilon), np.zeros(7)
    for first, second in np.ndindex(2, 3):
        state = SUCCESSOR[0, first]
        if SUCCESSOR[state, second] >= 0:
            chance[SUCCESSOR[state, second]] += policy[0, first] * policy[state, second]
    return chance


@functools.cache
def second_beams(beam: int, epsilon: float, space: str = "execution"):
    """[samples, slots], the states after two tokens, and their probabilities as the search has them."""
    config = SearchConfig(space=space, beam=beam, epsilon=epsilon, selection="stochastic")

    def search(key):
        graph = search_graph(SYSTEM, SYSTEM.policy, None, PROBLEM, key, instructions=1, config=config)
        return jnp.where(graph.beam.alive[2], graph.beam.states[2], -1), graph.beam.log_chart[2]

    states, log_chart = quick_jit(jax.vmap(search))(jax.random.split(jax.random.key(3), SAMPLES))
    return np.asarray(states), np.asarray(log_chart)


def assert_frequency(hits: np.ndarray, probability: float) -> None:
    tolerance = 5 * np.sqrt(probability * (1 - probability) / hits.size)
    assert np.mean(hits) == pytest.approx(probability, abs=tolerance)


@pytest.mark.parametrize("epsilon", [0.0, 0.3])
@pytest.mark.parametrize("beam", [1, 2])
def test_the_first_slot_is_a_sample_of_the_live_states(beam, epsilon):
    """Also with a beam of 1, where it is one random walk."""
    states, _ = second_beams(beam, epsilon)
    chance = expected(epsilon)
    first, live = states[:, 0], chance.sum() - chance[5]
    if beam == 1:  # a walk that would have ended goes on with another token, so state 1 is as likely as it was
        (at_1, at_2, _), (below_3, below_4, _) = sampled_from(epsilon)[:2]
        assert_frequency(first == 3, at_1 / (at_1 + at_2) * below_3 / (below_3 + below_4))
    else:
        for state in (3, 4, 6):
            assert_frequency(first == state, chance[state] / live)


@pytest.mark.parametrize("epsilon", [0.0, 0.3])
def test_the_second_slot_is_sampled_from_the_rest(epsilon):
    states, _ = second_beams(2, epsilon)
    chance = expected(epsilon)
    for first, second in ((3, 4), (4, 3), (6, 4)):
        rest = chance.sum() - chance[5] - chance[first]
        assert_frequency(states[states[:, 0] == first, 1] == second, chance[second] / rest)


def test_the_chart_is_that_of_the_distribution_sampled_from():
    states, log_chart = second_beams(2, 0.3)
    np.testing.assert_allclose(np.exp(log_chart), expected(0.3)[states], rtol=1e-4)


def test_in_program_space_prefixes_are_sampled_and_not_states():
    """Four prefixes live on; the two to state 4 are apart."""
    states, _ = second_beams(4, 0.0, "program")
    assert (np.sort(states, axis=1) == [3, 4, 4, 6]).all()
    assert_frequency(states[:, 0] == 4, expected(0.0)[4] / (expected(0.0).sum() - expected(0.0)[5]))


def test_a_beam_as_large_as_the_space_leaves_nothing_to_chance():
    """The programs found, and their probabilities, are those of a search that does not sample."""
    config = SearchConfig(beam=4, epsilon=0.0, selection="stochastic", program_beam=2)

    def search(key):
        programs, _ = program_search(SYSTEM, SYSTEM.policy, None, PROBLEM, key, instructions=1, config=config)
        return programs.tokens, programs.log_probability

    tokens, log_probability = quick_jit(jax.vmap(search))(jax.random.split(jax.random.key(1), 20))
    assert (np.asarray(tokens)[:, 0] == [0, 2, -1]).all()
    np.testing.assert_allclose(np.exp(log_probability), [[0.5 * 0.2, 0]] * 20, rtol=1e-5)


def test_the_noise_of_a_state_is_that_of_its_best_successor():
    log_prefixes = jnp.log(jnp.array([[0.2, 0.3, 0.1], [1e-30, 0.0, 0.1], [0.0, 0.0, 0.0]]))
    parents = jnp.array([-0.5, -9.0, -jnp.inf])
    noisy = jax.vmap(lambda key: perturb(key, parents, log_prefixes))(jax.random.split(jax.random.key(0), 500))
    best = np.asarray(noisy).max(axis=2)
    np.testing.assert_allclose(best[:, :2], np.broadcast_to(parents[:2], (500, 2)), rtol=1e-5)
    assert (np.isfinite(noisy) == np.isfinite(log_prefixes)).all()
    assert not np.isnan(noisy).any()


def test_a_uniform_distribution_over_valid_tokens_is_mixed_in():
    valid = jnp.array([True, False, True])
    found = np.exp(mix_with_uniform(jnp.log(jnp.array([0.1, 0.6, 0.3])), valid, 0.2))
    np.testing.assert_allclose(found, [0.8 * 0.1 + 0.1, 0.8 * 0.6, 0.8 * 0.3 + 0.1], rtol=1e-5)


class KnowsDeadEnds(TableDomain):
    """The same system, which tells that states 2, 3 and 4 lead nowhere; of 2 that is not even true."""

    def is_dead_end(self, state):
        return (state == 2) | (state == 3) | (state == 4)


def test_dead_ends_are_pruned_if_asked():
    """State 1 is all that is left of the first successors; its way to the end stays."""
    domain = KnowsDeadEnds(SYSTEM.tables, 3)
    for prune, alive in ((False, [1, 2, 3]), (True, [1, 1, 0])):
        config = SearchConfig(beam=4, epsilon=0.0, selection="stochastic", prune_dead_ends=prune)
        graph = search_graph(domain, domain.policy, None, PROBLEM, jax.random.key(0), instructions=1, config=config)
        assert np.asarray(graph.beam.alive).sum(axis=1).tolist() == alive
        assert graph.hit
        dropped = DEAD_END if prune else LIVE
        assert graph.expansion.kind[0, 0].tolist() == [LIVE, dropped, INVALID]
        assert graph.expansion.kind[1, 0].tolist() == [dropped, dropped, CORRECT]
