"""Sampling programs, for REINFORCE."""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray

from vbsix.domains.base import Domain, State
from vbsix.models.layers import renormalise
from vbsix.search.beam import Policy, Problem
from vbsix.search.exploration import behaviour


class Samples(NamedTuple):
    """Programs drawn from a policy."""

    tokens: Int[Array, "n L"]
    """Token ids, then -1."""
    states: State
    """The state in which each token was drawn, leaves [n, L, ...]."""
    valid: Bool[Array, "n L A"]
    """Which tokens were valid there."""
    reward: Float[Array, " n"]
    """1 for a correct program, else 0; a program that came to no end has 0."""


def drawing(policy: Policy, state: State, valid: Bool[Array, " A"], epsilon: float) -> Float[Array, " A"]:
    """The log of the distribution that tokens are drawn from: π over those given as valid, mixed with a uniform one."""
    return behaviour(renormalise(policy(state, valid), valid), valid, epsilon)


def sample_programs(
    domain: Domain,
    policy: Policy,
    problem: Problem,
    key: PRNGKeyArray,
    *,
    instructions: int,
    size: int,
    epsilon: float,
) -> Samples:
    """Draws programs, a token at a time; see `drawing`.

    Args:
        domain: the language.
        policy: the actor.
        problem: the example.
        key: randomness.
        instructions: the largest number of instructions; sets all shapes.
        size: how many programs.
        epsilon: see `drawing`.
    """
    length = instructions * domain.max_tokens_per_instruction

    def draw(carry, step):
        state, finished = carry
        iteration, key = step
        successors, valid = domain.expand(state)
        going = ~finished & (iteration < problem.instructions * domain.max_tokens_per_instruction)
        valid &= going
        token = jax.random.categorical(key, drawing(policy, state, valid, epsilon))
        moved = jnp.any(valid)
        following = jax.tree.map(lambda new, old: jnp.where(moved, new[token], old), successors, state)
        finished = domain.instructions_done(following) == problem.instructions
        return (following, finished), (jnp.where(moved, token, -1), state, valid)

    def sample(key: PRNGKeyArray) -> Samples:
        start = domain.start(problem.world, instructions), jnp.bool_(False)
        steps = jnp.arange(length), jax.random.split(key, length)
        (last, finished), (tokens, states, valid) = jax.lax.scan(draw, start, steps)
        reward = finished & domain.matches(last, problem.target)
        return Samples(tokens, states, valid, reward.astype(jnp.float32))

    return jax.vmap(sample)(jax.random.split(key, size))
