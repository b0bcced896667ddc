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

from vbsix.domains.registry import get_domain
from vbsix.errors import VbsixError
from vbsix.models import NetworkConfig, Policy

CONFIG = NetworkConfig()


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


@pytest.mark.parametrize("sees_target", [False, True], ids=["policy", "expert"])
def test_it_is_the_function_of_the_reference(case: Case, sees_target):
    policy = draw_policy(case, sees_target=sees_target)
    in_double, target = reference.in_double(policy), case.target if sees_target else None
    utterances = [case.utterance(index) for index in range(M)]
    expected = [
        reference.policy(in_double, utterances[n], take(case.observations, row), target)
        for row, n in enumerate(np.asarray(case.instruction))
    ]
    assert np.ptp(expected) > 1, "a flat policy would hide errors"
    np.testing.assert_allclose(evaluate(policy, case), expected, atol=1e-5)


@pytest.mark.parametrize("name", ["scene", "alchemy", "tangrams"])
def test_gradients_agree_with_finite_differences(name):
    """Of the expert, which has all that the policy has."""
    with jax.enable_x64(True):
        case = small_case(name)
        expert = draw_policy(case, SMALL, sees_target=True)
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
def test_the_first_gradient_reaches_every_parameter(case: Case, sees_target):
    policy = make_policy(case, CONFIG, sees_target)
    gradient = jax.grad(lambda policy: jnp.mean(evaluate(policy, case)[:, 3]))(policy)
    for path, leaf in jax.tree.leaves_with_path(gradient):
        assert np.all(np.isfinite(leaf)), path
        assert np.any(leaf), path


def test_an_empty_utterance_gives_a_policy_and_gradients(case: Case):
    policy, silent = draw_policy(case), replace(case, mask=jnp.zeros_like(case.mask))
    np.testing.assert_allclose(jnp.sum(jnp.exp(evaluate(policy, silent)), axis=1), 1, atol=1e-5)
    gradient = jax.grad(lambda policy: jnp.mean(evaluate(policy, silent)[:, 0]))(policy)
    assert all(np.all(np.isfinite(leaf)) for leaf in jax.tree.leaves(gradient))
    assert not np.any(gradient.from_words), "there was nothing to attend to"


def test_an_utterance_as_long_as_the_limit_is_read_to_its_end(case: Case):
    longest = LENGTHS.index(T)
    changed = replace(case, words=case.words.at[longest, T - 1].add(1.0))
    reads_it = case.instruction == longest
    before, after = (evaluate(draw_policy(case), each) for each in (case, changed))
    assert np.all(np.any(before[reads_it] != after[reads_it], axis=1))
    np.testing.assert_allclose(before[~reads_it], after[~reads_it], atol=1e-6)


def test_padding_changes_nothing(case: Case):
    """More room for words and for instructions."""
    words = jnp.full((M + 2, T + 3, CONFIG.word), 7.0).at[:M, :T].set(case.words)
    mask = jnp.zeros((M + 2, T + 3), bool).at[:M, :T].set(case.mask)
    policy = draw_policy(case)
    roomy = evaluate(policy, replace(case, words=words, mask=mask))
    np.testing.assert_allclose(roomy, evaluate(policy, case), atol=1e-5)


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


def test_it_is_a_function_of_one_state_for_search(case: Case):
    policy = draw_policy(case)

    @jax.jit
    def run(policy):
        tables = policy.prepare(policy.encode(case.words, case.mask))
        valid = jnp.zeros((len(case.instruction), len(case.domain.tokens)), bool)
        return jax.vmap(policy.for_example(case.domain, tables))(case.states, valid)

    assert jnp.any(case.states.history[:, -1] != 0), "finished states are asked about as well"
    np.testing.assert_allclose(run(policy), evaluate(policy, case), atol=1e-5)


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


def test_the_number_of_parameters(case: Case):
    """Of the policy and of the expert."""
    expected = {"scene": (212_438, 336_118), "alchemy": (210_800, 297_424), "tangrams": (201_588, 242_900)}
    assert (
        count_parameters(draw_policy(case)),
        count_parameters(draw_policy(case, sees_target=True)),
    ) == expected[case.domain.name]


@pytest.mark.parametrize("name", ["scene", "alchemy", "tangrams"])
def test_a_renormalised_policy_gives_invalid_tokens_nothing(name):
    domain = get_domain(name)
    empty = {"scene": ("__", 10), "alchemy": ("_", 7), "tangrams": ("", 0)}[name]
    world = " ".join(f"{place + 1}:{empty[0]}" for place in range(empty[1]))
    state = domain.start(domain.parse_world(world), 1)
    valid = domain.expand(state)[1]
    both = []
    for renormalise in (False, True):
        policy = Policy(domain, replace(SMALL, renormalise=renormalise), key=jax.random.key(0))
        words = jax.random.normal(jax.random.key(1), (1, 2, SMALL.word))
        tables = policy.prepare(policy.encode(words, jnp.ones((1, 2), bool)))
        both.append(np.exp(policy.for_example(domain, tables)(state, valid)))
    plain, renormalised = both
    assert plain.sum() == pytest.approx(1, rel=1e-5)
    valid = np.asarray(valid)
    assert not valid.all()
    np.testing.assert_allclose(renormalised, np.where(valid, plain, 0) / plain[valid].sum(), rtol=1e-4)
