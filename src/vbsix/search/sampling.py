"""Sampling programs, for REINFORCE."""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray

from vbsix.domains.base import Domain, State
from vbsix.domains.execution import follow
from vbsix.models.functions import PolicyFunction
from vbsix.models.layers import renormalise
from vbsix.search.beam import Problem
from vbsix.utilities.settings import Number, is_off


class Samples(NamedTuple):
    """Programs sampled from a policy."""

    tokens: Int[Array, "n L"]
    """Token ids, then -1."""
    states: State
    """The state in which each token was sampled, leaves [n, L, ...]."""
    valid: Bool[Array, "n L A"]
    """Which tokens were valid there."""
    finished: Bool[Array, " n"]
    """Whether the program has a command for every instruction."""
    reward: Float[Array, " n"]
    """1 for a correct program, else 0."""


def mix_with_uniform(log_policy: Float[Array, " A"], valid: Bool[Array, " A"], epsilon: Number) -> Float[Array, " A"]:
    """The log of (1 - ε)·π + ε·uniform over the valid tokens. What π gives to others is lost, and so are they."""
    if is_off(epsilon):
        return log_policy
    log_uniform = jnp.where(valid, jnp.log(epsilon) - jnp.log(jnp.maximum(jnp.sum(valid), 1)), -jnp.inf)
    return jnp.logaddexp(jnp.log1p(-epsilon) + log_policy, log_uniform)


def sampling_distribution(
    policy: PolicyFunction, state: State, valid: Bool[Array, " A"], epsilon: Number
) -> Float[Array, " A"]:
    """The log of what tokens are sampled from: π over the valid tokens, mixed with a uniform distribution."""
    return mix_with_uniform(renormalise(policy(state, valid), valid), valid, epsilon)


def sample_programs(
    domain: Domain,
    policy: PolicyFunction,
    problem: Problem,
    key: PRNGKeyArray,
    *,
    instructions: int,
    size: int,
    epsilon: Number,
) -> Samples:
    """Samples programs, one token at a time; see `sampling_distribution`.

    Args:
        domain: the language.
        policy: the actor.
        problem: the example.
        key: randomness.
        instructions: the largest number of instructions; sets all shapes.
        size: how many programs.
        epsilon: the weight of the uniform distribution.
    """
    length = instructions * domain.max_tokens_per_instruction

    def extend(carry, step):
        state, finished = carry
        iteration, key = step
        successors, valid = domain.expand(state)
        valid &= ~finished & (iteration < problem.instructions * domain.max_tokens_per_instruction)
        token = jax.random.categorical(key, sampling_distribution(policy, state, valid, epsilon))
        token = jnp.where(jnp.any(valid), token, -1)
        following = follow(successors, state, token)
        finished = domain.instructions_done(following) == problem.instructions
        return (following, finished), (token, state, valid)

    def sample(key: PRNGKeyArray) -> Samples:
        start = domain.start(problem.world, instructions), jnp.bool_(False)
        steps = jnp.arange(length), jax.random.split(key, length)
        (last, finished), (tokens, states, valid) = jax.lax.scan(extend, start, steps)
        reward = finished & domain.matches(last, problem.target)
        return Samples(tokens, states, valid, finished, reward.astype(jnp.float32))

    return jax.vmap(sample)(jax.random.split(key, size))
