"""The critic."""

from __future__ import annotations

from dataclasses import replace

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.test_util import check_grads
from models.cases import SMALL, Case, M, T, count_parameters, draw, small_case, take
from reference import networks as reference

from vbsix.models import Critic, NetworkConfig, Policy

SHARED, OWN = NetworkConfig(), NetworkConfig(own_encoders=True)
both = pytest.mark.parametrize("config", [SHARED, OWN], ids=["shared", "own"])


def make_networks(case: Case, config: NetworkConfig = SHARED) -> tuple[Policy, Critic]:
    key = jax.random.key(0)
    return draw(lambda: Policy(case.domain, config, key=key)), draw(lambda: Critic(case.domain, config, key=key))


@eqx.filter_jit
def evaluate(policy: Policy, critic: Critic, case: Case, instructions: int = M, method=Critic.logit):
    """The logits, or the values, of all states of a case."""
    utterances = policy.encode(case.words, case.mask)
    tables = critic.prepare(
        policy, utterances, critic.encode(case.words, case.mask), jnp.int32(instructions), case.target
    )
    return jax.vmap(lambda *state: method(critic, tables, *state))(case.instruction, case.observations, case.worlds)


@both
@pytest.mark.parametrize("instructions", [M, M - 1])
def test_it_is_the_function_of_the_reference(case: Case, config, instructions):
    policy, critic = make_networks(case, config)
    doubles = reference.in_double(critic), reference.in_double(policy)
    utterances = [case.utterance(index) for index in range(M)]
    following = [*utterances[1:instructions], *[None] * M]
    expected = [
        reference.critic_logit(
            *doubles, utterances[n], following[n], take(case.observations, row), case.worlds[row], case.target
        )
        for row, n in enumerate(np.asarray(case.instruction))
    ]
    assert np.ptp(expected) > 0.5, "a flat critic would hide errors"
    np.testing.assert_allclose(evaluate(policy, critic, case, instructions), expected, atol=1e-5)


@pytest.mark.parametrize("name", ["scene", "alchemy", "tangrams"])
def test_gradients_agree_with_finite_differences(name):
    with jax.enable_x64(True):
        case = small_case(name)
        policy, critic = make_networks(case, replace(SMALL, own_encoders=True))
        weights = jax.random.normal(jax.random.key(4), case.instruction.shape)
        # Steps so small that hardly any ReLU changes sides.
        check_grads(lambda critic: evaluate(policy, critic, case) @ weights, (critic,), 1, ["rev"], eps=1e-7)


@both
def test_its_gradient_does_not_reach_the_policy(case: Case, config):
    policy, critic = make_networks(case, config)
    gradients = jax.grad(lambda networks: jnp.mean(evaluate(*networks, case)))((policy, critic))
    assert not any(np.any(leaf) for leaf in jax.tree.leaves(gradients[0]))
    for path, leaf in jax.tree.leaves_with_path(gradients[1]):
        assert np.all(np.isfinite(leaf)), path
        assert np.any(leaf), path


def test_it_reads_the_policys_encoders_unless_it_has_its_own(case: Case):
    for config in (SHARED, OWN):
        policy, critic = make_networks(case, config)
        other = eqx.tree_at(lambda policy: policy.stack.constants, policy, replace_fn=lambda leaf: leaf + 1)
        changed = np.any(evaluate(policy, critic, case) != evaluate(other, critic, case))
        assert changed == (config is SHARED)


def test_the_value_is_the_sigmoid_of_the_logit(tangrams: Case):
    networks = make_networks(tangrams)
    value = evaluate(*networks, tangrams, method=Critic.value)
    np.testing.assert_allclose(value, jax.nn.sigmoid(evaluate(*networks, tangrams)), atol=1e-6)


def test_nothing_follows_the_last_instruction(case: Case):
    """Words in a row that the example does not have are not read."""
    networks = make_networks(case)
    assert case.mask[M - 1].any()
    junk = replace(case, words=case.words.at[M - 1].add(1.0))
    before_last = case.instruction < M - 1
    one, other = (evaluate(*networks, each, instructions=M - 1) for each in (case, junk))
    np.testing.assert_array_equal(one[before_last], other[before_last])
    read, changed = evaluate(*networks, case), evaluate(*networks, junk)
    assert np.all((read != changed)[case.instruction >= M - 2])


def test_it_sees_the_current_world_and_the_target(case: Case):
    networks = make_networks(case)
    value = evaluate(*networks, case)
    other = evaluate(*networks, replace(case, target=jnp.roll(case.target, 1, axis=0)))
    assert jnp.mean(jnp.abs(value - other)) > 1e-3
    other = evaluate(*networks, replace(case, worlds=jnp.roll(case.worlds, 1, axis=1)))
    assert jnp.mean(jnp.abs(value - other)) > 1e-3


def test_padding_changes_nothing(case: Case):
    """More room for words and for instructions."""
    words = jnp.full((M + 2, T + 3, SHARED.word), 7.0).at[:M, :T].set(case.words)
    mask = jnp.zeros((M + 2, T + 3), bool).at[:M, :T].set(case.mask)
    networks = make_networks(case)
    roomy = evaluate(*networks, replace(case, words=words, mask=mask))
    np.testing.assert_allclose(roomy, evaluate(*networks, case), atol=1e-5)


def test_rows_of_a_batch_are_independent(tangrams: Case):
    networks = make_networks(tangrams)
    batch = jnp.stack([tangrams.words, -tangrams.words, 2 * tangrams.words])
    targets = jnp.stack([jnp.roll(tangrams.target, shift, axis=0) for shift in range(3)])

    def run(words, target):
        return evaluate(*networks, replace(tangrams, words=words, target=target))

    for row, alone in zip(jax.vmap(run)(batch, targets), map(run, batch, targets), strict=True):
        np.testing.assert_allclose(row, alone, atol=1e-5)


def test_it_is_a_function_of_one_state_for_search(case: Case):
    policy, critic = make_networks(case)

    @jax.jit
    def run(policy, critic):
        utterances = policy.encode(case.words, case.mask)
        tables = critic.prepare(policy, utterances, critic.encode(case.words, case.mask), jnp.int32(M), case.target)
        return jax.vmap(critic.for_example(case.domain, tables))(case.states)

    np.testing.assert_allclose(run(policy, critic), evaluate(policy, critic, case, method=Critic.value), atol=1e-6)


def test_batches_are_traced_once(tangrams: Case):
    traces = 0

    @eqx.filter_jit
    def run(policy, critic, words, instructions):
        nonlocal traces
        traces += 1
        utterances = policy.encode(words, tangrams.mask)
        tables = critic.prepare(policy, utterances, critic.encode(words, tangrams.mask), instructions, tangrams.target)
        return jax.vmap(critic.for_example(tangrams.domain, tables))(tangrams.states)

    for seed in range(3):
        run(*make_networks(tangrams), tangrams.words * seed, jnp.int32(M - seed))
    assert traces == 1


def test_the_number_of_parameters(case: Case):
    """Without and with encoders of its own."""
    expected = {"scene": (392_865, 500_257), "alchemy": (318_945, 426_049), "tangrams": (228_577, 327_969)}
    assert (
        tuple(count_parameters(make_networks(case, config)[1]) for config in (SHARED, OWN))
        == expected[case.domain.name]
    )
