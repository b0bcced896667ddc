"""The policy and the expert policy."""

from __future__ import annotations

from dataclasses import replace

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.test_util import check_grads
from models.cases import LENGTHS, SMALL, Case, M, T, count_parameters, draw, small_case, take
from reference import networks as reference

from vbsix.models import Critic, NetworkConfig, Policy
from vbsix.utilities.errors import VbsixError

CONFIG = NetworkConfig()
BIASED = NetworkConfig(output_biases=True)


def make_policy(case: Case, config: NetworkConfig = CONFIG, sees_target: bool = False) -> Policy:
    return Policy(case.domain, config, key=jax.random.key(0), sees_target=sees_target)


def draw_policy(case: Case, config: NetworkConfig = CONFIG, sees_target: bool = False) -> Policy:
    return draw(lambda: make_policy(case, config, sees_target))


@eqx.filter_jit
def evaluate(policy: Policy, case: Case):
    """log π of all states of a case."""
    target = None if policy.target is None else case.target
    tables = policy.prepare(policy.encode(case.words, case.mask), target)
    return jax.vmap(lambda *state: policy.log_probabilities(tables, *state))(case.instruction, case.observations)


@pytest.mark.parametrize(
    ("config", "sees_target"),
    [(CONFIG, False), (CONFIG, True), (BIASED, False)],
    ids=["policy", "expert", "output biases"],
)
def test_it_is_the_function_of_the_reference(case: Case, config, sees_target):
    policy = draw_policy(case, config, sees_target)
    assert (policy.biases is None) == (config is CONFIG)
    assert all(np.all(bias) for bias in jax.tree.leaves(policy.biases)), "zeros would hide errors"
    in_double, target = reference.in_double(policy), case.target if sees_target else None
    utterances = [case.utterance(index) for index in range(M)]
    expected = [
        reference.policy(in_double, utterances[n], take(case.observations, row), target)
        for row, n in enumerate(np.asarray(case.instruction))
    ]
    assert np.ptp(expected) > 1, "a flat policy would hide errors"
    np.testing.assert_allclose(evaluate(policy, case), expected, atol=1e-5)


def test_gradients_agree_with_finite_differences():
    """Of the expert with output biases, which has all that other policies have."""
    with jax.enable_x64(True):
        case = small_case("tangrams")
        expert = draw_policy(case, replace(SMALL, output_biases=True), sees_target=True)
        weights = jax.random.normal(jax.random.key(4), (len(case.domain.tokens),))
        # Steps so small that hardly any ReLU changes sides.
        check_grads(lambda expert: jnp.sum(evaluate(expert, case) @ weights), (expert,), 1, ["rev"], eps=1e-7)


def test_the_first_policy_is_nearly_uniform(case: Case):
    """Over six seeds the mean entropy is 0.9995 log A in scene, 0.9994 in alchemy and tangrams, the least 0.995."""
    log_policy = evaluate(make_policy(case), case)
    entropy = -jnp.sum(jnp.exp(log_policy) * log_policy, axis=1) / jnp.log(len(case.domain.tokens))
    assert jnp.mean(entropy) >= 0.98
    assert jnp.min(entropy) >= 0.98
    assert jnp.max(entropy) < 1, "exactly uniform would mean that it sees nothing"


@pytest.mark.parametrize("sees_target", [False, True], ids=["policy", "expert"])
def test_the_first_gradient_reaches_every_parameter(tangrams: Case, sees_target):
    """Also the output biases', which start at zero."""
    policy = make_policy(tangrams, BIASED, sees_target)
    gradient = jax.grad(lambda policy: jnp.mean(evaluate(policy, tangrams)[:, 3]))(policy)
    for path, leaf in jax.tree.leaves_with_path(gradient):
        assert np.all(np.isfinite(leaf)), path
        assert np.any(leaf), path


def test_an_empty_utterance_gives_a_policy_and_gradients(tangrams: Case):
    policy, silent = draw_policy(tangrams), replace(tangrams, mask=jnp.zeros_like(tangrams.mask))
    np.testing.assert_allclose(jnp.sum(jnp.exp(evaluate(policy, silent)), axis=1), 1, atol=1e-5)
    gradient = jax.grad(lambda policy: jnp.mean(evaluate(policy, silent)[:, 0]))(policy)
    assert all(np.all(np.isfinite(leaf)) for leaf in jax.tree.leaves(gradient))
    assert not np.any(gradient.from_words), "there was nothing to attend to"


def test_an_utterance_as_long_as_the_limit_is_read_to_its_end(tangrams: Case):
    longest = LENGTHS.index(T)
    changed = replace(tangrams, words=tangrams.words.at[longest, T - 1].add(1.0))
    reads_it = tangrams.instruction == longest
    before, after = (evaluate(draw_policy(tangrams), each) for each in (tangrams, changed))
    assert np.all(np.any(before[reads_it] != after[reads_it], axis=1))
    np.testing.assert_allclose(before[~reads_it], after[~reads_it], atol=1e-6)


def test_padding_changes_nothing(tangrams: Case):
    """More room for words and for instructions."""
    words = jnp.full((M + 2, T + 3, CONFIG.word), 7.0).at[:M, :T].set(tangrams.words)
    mask = jnp.zeros((M + 2, T + 3), bool).at[:M, :T].set(tangrams.mask)
    policy = draw_policy(tangrams)
    roomy = evaluate(policy, replace(tangrams, words=words, mask=mask))
    np.testing.assert_allclose(roomy, evaluate(policy, tangrams), atol=1e-5)


def test_without_stack_attributes_it_sees_how_many_objects_there_are(case: Case):
    seeing, blind = (draw_policy(case, NetworkConfig(stack_attributes=seen)) for seen in (True, False))
    objects = case.observations.objects
    present = objects > 0

    def showing(ids):
        return eqx.tree_at(lambda each: each.observations, case, case.observations._replace(objects=ids))

    changed, emptied = showing(jnp.where(present, objects + 1, 0)), showing(jnp.zeros_like(objects))
    assert jnp.any(present)
    np.testing.assert_array_equal(evaluate(blind, case), evaluate(blind, changed))
    assert np.ptp(evaluate(blind, case) - evaluate(blind, emptied)) > 1e-3
    assert np.ptp(evaluate(seeing, case) - evaluate(seeing, changed)) > 1e-3


def test_rows_of_a_batch_are_independent(tangrams: Case):
    policy = draw_policy(tangrams)
    batch = jnp.stack([tangrams.words, -tangrams.words, 2 * tangrams.words])
    masks = jnp.stack([tangrams.mask, ~tangrams.mask, jnp.ones_like(tangrams.mask)])
    together = jax.vmap(lambda words, mask: evaluate(policy, replace(tangrams, words=words, mask=mask)))(batch, masks)
    for words, mask, row in zip(batch, masks, together, strict=True):
        np.testing.assert_allclose(row, evaluate(policy, replace(tangrams, words=words, mask=mask)), atol=1e-5)


def test_a_seed_among_others_gives_what_it_gives_alone(tangrams: Case):
    seeds = [draw(lambda: make_policy(tangrams), seed) for seed in range(3)]
    together = jax.vmap(evaluate, in_axes=(0, None))(jax.tree.map(lambda *leaves: jnp.stack(leaves), *seeds), tangrams)
    assert jnp.max(jnp.abs(together[0] - together[1])) > 0.1
    np.testing.assert_allclose(together[1], evaluate(seeds[1], tangrams), atol=1e-5)


def test_the_expert_sees_the_target(case: Case):
    expert = draw_policy(case, sees_target=True)
    other = replace(case, target=jnp.roll(case.target, 1, axis=0))
    assert jnp.any(case.target != other.target)
    assert jnp.min(jnp.max(jnp.abs(evaluate(expert, case) - evaluate(expert, other)), axis=1)) > 1e-4


@pytest.mark.parametrize("sees_target", [False, True], ids=["policy", "expert"])
def test_only_the_expert_may_see_the_target(tangrams: Case, sees_target):
    policy = draw_policy(tangrams, sees_target=sees_target)
    with pytest.raises(VbsixError, match="expert"):
        policy.prepare(policy.encode(tangrams.words, tangrams.mask), None if sees_target else tangrams.target)


def test_it_is_a_function_of_one_state_for_search(tangrams: Case):
    """Over all tokens, or over those alone that are valid in the state."""
    shape = len(tangrams.instruction), len(tangrams.domain.tokens)
    valid = jax.random.bernoulli(jax.random.key(5), 0.4, shape).at[:, 0].set(True)
    plain, renormalised = (draw_policy(tangrams, replace(CONFIG, renormalise=each)) for each in (False, True))

    @jax.jit
    def run(policies):
        tables = plain.prepare(plain.encode(tangrams.words, tangrams.mask))
        return [jax.vmap(policy.for_example(tangrams.domain, tables))(tangrams.states, valid) for policy in policies]

    assert jnp.any(tangrams.states.history[:, -1] != 0), "finished states are asked about as well"
    expected = np.asarray(evaluate(plain, tangrams))
    over_all, over_valid = run([plain, renormalised])
    np.testing.assert_allclose(over_all, expected, atol=1e-5)
    kept = np.where(valid, np.exp(expected), 0)
    np.testing.assert_allclose(np.exp(over_valid), kept / kept.sum(axis=1, keepdims=True), rtol=1e-4, atol=1e-7)


def test_batches_are_traced_once(tangrams: Case):
    traces = 0

    @eqx.filter_jit
    def run(policy, words, mask):
        nonlocal traces
        traces += 1
        return evaluate(policy, replace(tangrams, words=words, mask=mask))

    for seed in range(3):
        policy = Policy(tangrams.domain, CONFIG, key=jax.random.key(seed))
        run(policy, tangrams.words * seed, jnp.roll(tangrams.mask, seed, axis=0))
    assert traces == 1


def test_output_biases_start_at_zero(tangrams: Case):
    """So the initial policy is the same with and without them; they have 2 * 150 + 128 parameters."""
    plain, biased = make_policy(tangrams), make_policy(tangrams, BIASED)
    assert count_parameters(biased) - count_parameters(plain) == 428
    assert not any(np.any(leaf) for leaf in jax.tree.leaves(biased.biases))
    np.testing.assert_allclose(evaluate(biased, tangrams), evaluate(plain, tangrams), atol=1e-6)


def test_the_reference_initialisation_is_that_of_guu_et_al(case: Case):
    """Embeddings have GloVe's mean and standard deviation and are the same for all seeds; the other parameters are
    those of the seed."""
    config = NetworkConfig(initialisation="reference")
    one, other = (Policy(case.domain, config, key=jax.random.key(seed), sees_target=True) for seed in (0, 1))
    critic = Critic(case.domain, config, key=jax.random.key(2))

    def embeddings(policy: Policy):
        return policy.tokens, policy.stack.constants, policy.stack.attributes.vectors, policy.target.vectors

    jax.tree.map(np.testing.assert_array_equal, embeddings(one), embeddings(other))
    np.testing.assert_array_equal(critic.world.vectors, one.target.vectors)
    numbers = np.concatenate([np.asarray(each).reshape(-1) for each in embeddings(one)[:2]])
    assert np.mean(numbers) == pytest.approx(-0.015, abs=5 * 0.566 / np.sqrt(numbers.size))
    assert np.std(numbers) == pytest.approx(0.566, rel=5 / np.sqrt(2 * numbers.size))
    for each in (lambda policy: policy.first.weight, lambda policy: policy.utterances.input):
        assert np.any(each(one) != each(other))


def test_the_number_of_parameters(case: Case):
    """Of the policy and of the expert."""
    expected = {"scene": (212_438, 336_118), "alchemy": (210_800, 297_424), "tangrams": (201_588, 242_900)}
    assert (
        count_parameters(draw_policy(case)),
        count_parameters(draw_policy(case, sees_target=True)),
    ) == expected[case.domain.name]
