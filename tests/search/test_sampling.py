"""Sampling programs: their distribution, their validity and their rewards.

Frequencies are compared with their expectations; a deviation of more than five standard deviations is a failure. The
keys are fixed, so that the tests give the same on every run.
"""

from __future__ import annotations

import functools
from collections import Counter

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from reference.comparison import quick_jit
from reference.tables import TableDomain, Tables

from vbsix import execute, get_domain
from vbsix.models.layers import renormalise
from vbsix.search import Problem, Samples, sample_programs

SIZE = 20_000
DEVIATIONS = 5

# A start with three valid tokens of four, one of which leads nowhere, one back to the start, one to the end:
#
#          b .1           a .2
#   dead <------ start --------> correct
#                 ^  |           (d leads to incorrect, but is invalid in the start: it is valid in middle)
#          a .5   |  | c .3
#                 middle ------> incorrect
#                         d .25

START, MIDDLE, DEAD, CORRECT, INCORRECT = range(5)
SUCCESSOR = [
    [CORRECT, DEAD, MIDDLE, -1],
    [START, -1, -1, INCORRECT],
    [-1, -1, -1, -1],
    [START, START, START, START],
    [START, START, START, START],
]
POLICY = [[0.2, 0.1, 0.3, 0.4], [0.5, 0.2, 0.05, 0.25], [0.25] * 4, [0.25] * 4, [0.25] * 4]
LONGEST = 4


@functools.cache
def toy_samples(epsilon: float) -> Samples:
    tables = Tables(
        np.array(SUCCESSOR, np.int32),
        np.array([0, 0, 0, 1, 1], np.int32),
        np.array([7, 7, 7, 7, 8], np.int32),  # what is not finished has no reward, even where it looks right
        np.log(np.array(POLICY, np.float32)),
        np.zeros(5, np.float32),
    )
    domain = TableDomain(tables, LONGEST)
    problem = Problem(jnp.int32(START), jnp.int32(1), jnp.int32(7))

    def sample(key):
        # There is room for a second instruction, of which no use may be made.
        return sample_programs(domain, domain.policy, problem, key, instructions=2, size=SIZE, epsilon=epsilon)

    return jax.tree.map(np.asarray, quick_jit(sample)(jax.random.key(3)))


def mixture(state: int, epsilon: float) -> dict[str, float]:
    """The distribution over the valid tokens of a state, written out."""
    valid = [token for token in range(4) if SUCCESSOR[state][token] >= 0]
    total = sum(POLICY[state][token] for token in valid)
    return {"abcd"[t]: (1 - epsilon) * POLICY[state][t] / total + epsilon / len(valid) for t in valid}


def distribution(epsilon: float, state: int = START, program: str = "", probability: float = 1.0) -> dict[str, float]:
    """The probability of every program that can be sampled, by recursion."""
    if state in (CORRECT, INCORRECT, DEAD) or len(program) == LONGEST:
        return {program: probability}
    programs = {}
    for token, share in mixture(state, epsilon).items():
        programs |= distribution(epsilon, SUCCESSOR[state]["abcd".index(token)], program + token, probability * share)
    return programs


def texts(samples: Samples) -> list[str]:
    return ["".join("abcd"[token] for token in row if token >= 0) for row in samples.tokens]


def assert_frequencies(sampled: list[str], expected: dict[str, float]) -> None:
    assert sum(expected.values()) == pytest.approx(1)
    counts = Counter(sampled)
    assert set(counts) <= set(expected)
    for outcome, probability in expected.items():
        tolerance = DEVIATIONS * np.sqrt(probability * (1 - probability) / len(sampled))
        assert counts[outcome] / len(sampled) == pytest.approx(probability, abs=tolerance), outcome


@pytest.mark.parametrize("epsilon", [0.0, 0.2, 1.0])
def test_the_first_token_is_sampled_from_the_mixture(epsilon):
    assert_frequencies([text[0] for text in texts(toy_samples(epsilon))], mixture(START, epsilon))


@pytest.mark.parametrize("epsilon", [0.0, 0.2, 1.0])
def test_whole_programs_are_sampled_from_the_product_of_mixtures(epsilon):
    expected = distribution(epsilon)
    assert {"a", "b", "cd", "caa", "cab", "cacd", "caca"} == set(expected), "every way through the drawing"
    assert_frequencies(texts(toy_samples(epsilon)), expected)


def test_programs_are_sampled_independently():
    first, second = np.array(texts(toy_samples(0.2))).reshape(2, -1)
    expected = distribution(0.2)
    pairs = {one + " " + other: expected[one] * expected[other] for one in expected for other in expected}
    assert_frequencies([f"{one} {other}" for one, other in zip(first, second, strict=True)], pairs)


def test_rewards_states_and_valid_tokens_of_the_toy():
    samples = toy_samples(0.2)
    columns = samples.reward, samples.finished, samples.states, samples.valid
    for text, reward, finished, states, valid in zip(texts(samples)[:500], *columns, strict=False):
        state = START
        for place, token in enumerate(text):
            assert states[place] == state
            assert valid[place].tolist() == [successor >= 0 for successor in SUCCESSOR[state]]
            state = SUCCESSOR[state]["abcd".index(token)]
        assert reward == (state == CORRECT)
        assert finished == (state in (CORRECT, INCORRECT))
        assert not valid[len(text) :].any(), "nothing is sampled after the end, in a dead end, or beyond the limit"
    assert (samples.tokens[:, LONGEST:] == -1).all()


def test_tokens_come_before_the_padding():
    tokens = toy_samples(0.2).tokens
    assert not np.any((tokens[:, 1:] >= 0) & (tokens[:, :-1] < 0))


def test_renormalise_is_a_distribution_over_the_valid_tokens():
    log_policy = jnp.log(jnp.array([0.2, 0.1, 0.3, 0.4]))
    found = renormalise(log_policy, jnp.array([True, False, True, False]))
    assert np.exp(found).tolist() == pytest.approx([0.4, 0, 0.6, 0])


def test_sampled_programs_of_a_domain_run_and_have_their_reward():
    """The policy goes by the height of the stack and often removes a shape, so that programs come to an end."""
    domain, world, target, instructions = get_domain("tangrams"), "1:2 2:0 3:4", "1:2", 2
    favourites = [{"all-objects": 4}, {"1": 4, "2": 4, "3": 4, "ARemove": 7}, {"index": 4}, {"index": 4}]
    logits = jnp.array([[liked.get(token, 0.0) for token in domain.tokens] for liked in favourites])
    problem = Problem(domain.parse_world(world), jnp.int32(instructions), domain.parse_world(target))

    def policy(state, valid):
        return jax.nn.log_softmax(logits[jnp.sum(state.stack != 0)])

    def sample(key):
        return sample_programs(domain, policy, problem, key, instructions=3, size=400, epsilon=0.1)

    samples = jax.tree.map(np.asarray, quick_jit(sample)(jax.random.key(5)))
    outcomes = Counter()
    for row, is_finished, reward in zip(samples.tokens, samples.finished, samples.reward, strict=True):
        program = [domain.tokens[token] for token in row if token >= 0]
        assert len(program) <= instructions * domain.max_tokens_per_instruction
        steps = execute(domain, world, program)
        finished = steps[-1].commands == instructions
        assert is_finished == finished
        assert all(step.commands < instructions for step in steps[:-1]), "nothing follows the last command"
        assert reward == (finished and steps[-1].world == target)
        outcomes[finished, float(reward)] += 1
    assert all(outcomes[case] >= 10 for case in [(False, 0.0), (True, 0.0), (True, 1.0)]), outcomes
