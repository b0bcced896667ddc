"""A policy with context."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from random import Random

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.test_util import check_grads
from models.cases import SMALL, Case, M, draw, make_case, take, walk
from reference import networks as reference

from vbsix import VbsixError, get_domain
from vbsix.models import NetworkConfig, Policy

CONFIG = NetworkConfig(context=16)
WITHOUT = NetworkConfig()


@cache
def contextual(name: str) -> Case:
    """A case whose domain has context."""
    case, domain = make_case(name), get_domain(name).with_context()
    states = walk(domain, Random(f"networks in {name}"))
    return Case(
        domain,
        states,
        jnp.minimum(jnp.sum(states.history != 0, axis=1), M - 1),
        jax.jit(jax.vmap(domain.observe))(states),
        jax.jit(jax.vmap(domain.observe_world))(states),
        *(case.target, case.words, case.mask),
    )


@pytest.fixture(params=["scene", "alchemy", "tangrams"])
def with_context(request) -> Case:
    return contextual(request.param)


@eqx.filter_jit
def evaluate(policy: Policy, case: Case):
    """log π of all states of a case, as search gets it."""
    tables = policy.prepare(policy.encode(case.words, case.mask))
    everything = jnp.ones(len(case.domain.tokens), bool)
    return jax.vmap(lambda state: policy.for_example(case.domain, tables)(state, everything))(case.states)


def test_it_is_the_function_of_the_reference(with_context: Case):
    case = with_context
    policy = draw(lambda: Policy(case.domain, CONFIG, key=jax.random.key(0)))
    in_double, utterances = reference.in_double(policy), [case.utterance(index) for index in range(M)]
    seen = jax.jit(jax.vmap(case.domain.observe_context))(case.states)
    expected, without = (
        [
            reference.policy(
                in_double,
                utterances[n],
                take(case.observations, row),
                None,
                utterances[:n],
                take(seen, row) if on else None,
            )
            for row, n in enumerate(np.asarray(case.instruction))
        ]
        for on in (True, False)
    )
    assert np.max(np.abs(np.subtract(expected, without))) > 0.5, "a context that changes nothing would hide errors"
    np.testing.assert_allclose(evaluate(policy, case), expected, atol=2e-5)


def test_a_policy_that_gets_context_computes_what_it_computed_before(with_context: Case):
    """Exactly: its other parameters are drawn as before, and the context's weights are zero."""
    trained = draw(lambda: Policy(with_context.domain, WITHOUT, key=jax.random.key(0)))
    fresh = Policy(with_context.domain, CONFIG, key=jax.random.key(0))
    continued = eqx.tree_at(lambda policy: policy.context, trained, fresh.context, is_leaf=lambda leaf: leaf is None)
    np.testing.assert_array_equal(evaluate(continued, with_context), evaluate(trained, with_context))
    drawn = Policy(with_context.domain, WITHOUT, key=jax.random.key(0))
    for one, other in zip(jax.tree.leaves(drawn), jax.tree.leaves(fresh), strict=False):
        np.testing.assert_array_equal(one, other)


def test_the_first_gradient_reaches_the_output_and_the_next_ones_all():
    case = contextual("tangrams")
    policy = Policy(case.domain, CONFIG, key=jax.random.key(0))
    gradient = eqx.filter_grad(lambda policy: -jnp.mean(evaluate(policy, case)[:, 0]))
    first = gradient(policy).context
    assert np.any(first.output)
    assert not np.any(first.commands.rows)
    moved = eqx.tree_at(lambda policy: policy.context.output, policy, policy.context.output + 0.1)
    assert all(np.any(leaf) for leaf in jax.tree.leaves(gradient(moved).context))


def test_gradients_agree_with_finite_differences():
    with jax.enable_x64(True):
        case = contextual("tangrams")
        few = jax.tree.map(lambda leaf: leaf[::10], case.states)
        case = eqx.tree_at(
            lambda each: (each.states, each.words), case, (few, case.words[..., : SMALL.word].astype(float))
        )
        policy = draw(lambda: Policy(case.domain, replace(SMALL, context=3), key=jax.random.key(0)))
        weights = jax.random.normal(jax.random.key(4), (len(case.domain.tokens),))
        check_grads(lambda policy: jnp.sum(evaluate(policy, case) @ weights), (policy,), 1, ["rev"], eps=1e-7)


def test_it_sees_what_words_and_stack_do_not_say():
    """Two states that differ in where a shape was: a policy without context gives both the same."""
    domain = get_domain("tangrams").with_context()

    def after(world: str, place: str):
        state = domain.start(domain.parse_world(world), M)
        for token in ("all-objects", place, "index", "ARemove"):
            state = take(domain.expand(state)[0], domain.tokens.index(token))
        return state

    states = jax.tree.map(lambda *leaves: jnp.stack(leaves), after("1:0 2:1", "1"), after("1:1 2:0", "2"))
    case = eqx.tree_at(lambda each: each.states, contextual("tangrams"), states)
    for config, differs in ((WITHOUT, False), (CONFIG, True)):
        policy = draw(lambda config=config: Policy(domain, config, key=jax.random.key(0)))
        one, other = evaluate(policy, case)
        assert np.any(one != other) == differs


def test_a_domain_without_context_is_refused():
    case = make_case("tangrams")
    policy = Policy(case.domain, CONFIG, key=jax.random.key(0))
    with pytest.raises(VbsixError, match="needs the domain with context"):
        evaluate(policy, case)
