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
from vbsix.models.heads import Networks, Tables, make_heads, stack_encoder
from vbsix.utilities.errors import VbsixError

CONFIG = NetworkConfig()
ALL = np.int32(M)


def make_networks(case: Case, config: NetworkConfig = CONFIG) -> tuple[Policy, Critic]:
    key = jax.random.key(0)
    return draw(lambda: Policy(case.domain, config, key=key)), draw(lambda: Critic(case.domain, config, key=key))


def prepare(policy: Policy, critic: Critic, case: Case, instructions):
    utterances, as_next = (encoder.encode(case.words, case.mask) for encoder in (policy, critic.next_utterance))
    return critic.prepare(policy.stack, utterances, as_next, jnp.asarray(instructions), case.target)


@eqx.filter_jit
def evaluate(policy: Policy, critic: Critic, case: Case, instructions=ALL):
    """The logits of all states of a case."""
    tables = prepare(policy, critic, case, instructions)
    return jax.vmap(lambda *state: critic.logit(tables, *state))(case.instruction, case.observations, case.worlds)


@pytest.mark.parametrize("instructions", [M, M - 1])
def test_it_is_the_function_of_the_reference(case: Case, instructions):
    policy, critic = make_networks(case)
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
    np.testing.assert_allclose(evaluate(policy, critic, case, np.int32(instructions)), expected, atol=1e-5)


def test_gradients_agree_with_finite_differences():
    with jax.enable_x64(True):
        case = small_case("alchemy")
        policy, critic = make_networks(case, SMALL)
        weights = jax.random.normal(jax.random.key(4), case.instruction.shape)
        # Steps so small that hardly any ReLU changes sides.
        check_grads(lambda critic: evaluate(policy, critic, case) @ weights, (critic,), 1, ["rev"], eps=1e-7)


def test_its_gradient_does_not_reach_the_policy(tangrams: Case):
    policy, critic = make_networks(tangrams)
    gradients = jax.grad(lambda networks: jnp.mean(evaluate(*networks, tangrams)))((policy, critic))
    assert not any(np.any(leaf) for leaf in jax.tree.leaves(gradients[0]))
    for path, leaf in jax.tree.leaves_with_path(gradients[1]):
        assert np.all(np.isfinite(leaf)), path
        assert np.any(leaf), path


def test_it_reads_the_policys_encoders(tangrams: Case):
    policy, critic = make_networks(tangrams)
    value = evaluate(policy, critic, tangrams)
    for part in (lambda policy: policy.stack.constants, lambda policy: policy.utterances.recurrent):
        other = eqx.tree_at(part, policy, replace_fn=lambda leaf: leaf + 1)
        assert np.any(value != evaluate(other, critic, tangrams))


def test_nothing_follows_the_last_instruction(tangrams: Case):
    """Words in a row that the example does not have are not read."""
    networks = make_networks(tangrams)
    assert tangrams.mask[M - 1].any()
    junk = replace(tangrams, words=tangrams.words.at[M - 1].add(1.0))
    before_last = tangrams.instruction < M - 1
    one, other = (evaluate(*networks, each, np.int32(M - 1)) for each in (tangrams, junk))
    np.testing.assert_array_equal(one[before_last], other[before_last])
    read, changed = evaluate(*networks, tangrams), evaluate(*networks, junk)
    assert np.all((read != changed)[tangrams.instruction >= M - 2])


def test_it_sees_the_current_world_and_the_target(case: Case):
    networks = make_networks(case)
    value = evaluate(*networks, case)
    other = evaluate(*networks, replace(case, target=jnp.roll(case.target, 1, axis=0)))
    assert jnp.mean(jnp.abs(value - other)) > 1e-3
    other = evaluate(*networks, replace(case, worlds=jnp.roll(case.worlds, 1, axis=1)))
    assert jnp.mean(jnp.abs(value - other)) > 1e-3


def test_padding_changes_nothing(tangrams: Case):
    """More room for words and for instructions."""
    words = jnp.full((M + 2, T + 3, CONFIG.word), 7.0).at[:M, :T].set(tangrams.words)
    mask = jnp.zeros((M + 2, T + 3), bool).at[:M, :T].set(tangrams.mask)
    networks = make_networks(tangrams)
    roomy = evaluate(*networks, replace(tangrams, words=words, mask=mask))
    np.testing.assert_allclose(roomy, evaluate(*networks, tangrams), atol=1e-5)


def test_rows_of_a_batch_are_independent(tangrams: Case):
    networks = make_networks(tangrams)
    batch = jnp.stack([tangrams.words, -tangrams.words, 2 * tangrams.words])
    targets = jnp.stack([jnp.roll(tangrams.target, shift, axis=0) for shift in range(3)])

    def run(words, target):
        return evaluate(*networks, replace(tangrams, words=words, target=target))

    for row, alone in zip(jax.vmap(run)(batch, targets), map(run, batch, targets), strict=True):
        np.testing.assert_allclose(row, alone, atol=1e-5)


def test_it_is_a_function_of_one_state_for_search(tangrams: Case):
    """Before the sigmoid, and after it as search takes it."""
    policy, critic = make_networks(tangrams)

    @jax.jit
    def run(policy, critic):
        tables = prepare(policy, critic, tangrams, jnp.int32(M))
        of_policy = policy.prepare(policy.encode(tangrams.words, tangrams.mask))
        heads = make_heads(tangrams.domain, Networks(policy, critic, None), Tables(of_policy, tables))
        return jax.vmap(critic.for_example(tangrams.domain, tables))(tangrams.states), jax.vmap(heads.critic)(
            tangrams.states
        )

    logits, values = run(policy, critic)
    np.testing.assert_allclose(logits, evaluate(policy, critic, tangrams), atol=1e-5)
    np.testing.assert_allclose(values, jax.nn.sigmoid(logits), atol=1e-6)


def test_batches_are_traced_once(tangrams: Case):
    traces = 0

    @eqx.filter_jit
    def run(policy, critic, words, instructions):
        nonlocal traces
        traces += 1
        tables = prepare(policy, critic, replace(tangrams, words=words), instructions)
        return jax.vmap(critic.for_example(tangrams.domain, tables))(tangrams.states)

    for seed in range(3):
        run(*make_networks(tangrams), tangrams.words * seed, jnp.int32(M - seed))
    assert traces == 1


def test_the_number_of_parameters(case: Case):
    expected = {"scene": 392_865, "alchemy": 318_945, "tangrams": 228_577}
    assert count_parameters(make_networks(case)[1]) == expected[case.domain.name]


def test_it_needs_a_policy_with_a_stack_encoder(tangrams: Case):
    policy, _ = make_networks(tangrams)
    assert stack_encoder(policy) is policy.stack
    with pytest.raises(VbsixError, match="needs a StackEncoder as `stack`"):
        stack_encoder(eqx.tree_at(lambda policy: policy.stack, policy, None))
