"""The search of the paper's Algorithm 1: beam search in program or execution space, with or without a critic.

Everything is written for one example and batched by `jax.vmap` outside. Shapes are fixed: K states in the beam, A
tokens, L iterations.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray, UInt32

from vbsix.domains.base import Domain, State, Target
from vbsix.search.config import SearchConfig
from vbsix.search.exploration import among_best, behaviour, explore_slots, perturb
from vbsix.search.merging import Merged, choose, merge_prefixes, representatives
from vbsix.search.packing import scan_packed

Policy = Callable[[State, Bool[Array, " A"]], Float[Array, " A"]]
"""log π(a | s) of all tokens, given one state of the example at hand and which tokens are valid there; the others are
dropped, whatever their probability."""
Critic = Callable[[State], Float[Array, ""]]
"""V(s, y), an estimate of the expected reward from one state of the example at hand."""

INVALID, LIVE, CORRECT, INCORRECT = range(4)
"""What a transition leads to: nowhere, a state to go on from, a correct or an incorrect terminal state."""


class Problem(NamedTuple):
    """An example without its words, which only the policy and the critic know."""

    world: Any
    """Initial world."""
    instructions: Int[Array, ""]
    """M, the number of instructions."""
    target: Target | None
    """Target denotation; None when predicting: then every finished program counts as correct."""
    prefix: Int[Any, " L"] | None = None
    """Tokens that all programs begin with, then -1; None for none."""


class Beam(NamedTuple):
    """The states kept by one iteration."""

    states: State
    log_chart: Float[Array, "*L K"]
    """log P_t, the actor score; -inf in an empty slot."""
    paths: Float[Array, "*L K"]
    """Number of prefixes that lead to the state through the beams before (in floats: it grows exponentially)."""
    chosen: Int[Array, "*L K"]
    """Which merged successor this is, as slot * A + token of its first predecessor; -1 in an empty slot."""

    @property
    def alive(self) -> Bool[Array, "*L K"]:
        return jnp.isfinite(self.log_chart)


class Expansion(NamedTuple):
    """All transitions out of one beam."""

    keys: UInt32[Array, "*L K 2"]
    log_policy: Float[Array, "*L K A"]
    """log π of all tokens; in a search that samples, of what it draws from, see `behaviour`."""
    kind: Int[Array, "*L K A"]
    successor_keys: UInt32[Array, "*L K A 2"]
    representative: Int[Array, "*L K A"]
    """Index (slot * A + token) of the first transition that leads to the same state."""
    late: Float[Array, "*L"]
    """Share of this beam's states that belong to the critic's instructions."""


class Graph(NamedTuple):
    """Everything a search has discovered; leaves have a leading axis of L iterations."""

    beam: Beam
    expansion: Expansion

    @property
    def hit(self) -> Bool[Array, ""]:
        """Whether a correct terminal state was found."""
        return jnp.any(self.expansion.kind == CORRECT)


def beam_search(
    domain: Domain,
    policy: Policy,
    critic: Critic | None,
    problem: Problem,
    key: PRNGKeyArray,
    *,
    instructions: int,
    config: SearchConfig,
) -> Graph:
    """Searches for programs that lead from the example's world to its target.

    Args:
        domain: the language.
        policy: the actor.
        critic: the value function, or None to rank by the actor score alone.
        problem: the example.
        key: randomness of the exploration.
        instructions: the largest number of instructions; sets the number of iterations and all shapes.
        config: how to search.
    """
    length = instructions * domain.max_tokens_per_instruction
    limit = problem.instructions * domain.max_tokens_per_instruction

    def iterate(frontier: tuple[Beam, Array], step: tuple[Array, PRNGKeyArray]):
        """The beam with its noisy log P_t makes the next one; without sampling, there is no noise."""
        (beam, perturbed), (iteration, key) = frontier, step
        allowed = jnp.broadcast_to(iteration < limit, len(domain.tokens))
        if problem.prefix is not None:
            given = jnp.asarray(problem.prefix)[iteration]
            allowed &= (given < 0) | (jnp.arange(len(domain.tokens)) == given)
        log_policy, kind, successor_keys, successors = _expand(domain, policy, problem, beam, allowed, config)
        live = (kind == LIVE) & (iteration + 1 < limit)
        log_successors = beam.log_chart[:, None] + log_policy
        log_prefixes = jnp.where(live, log_successors, -jnp.inf)
        group = _merge(successor_keys.reshape(-1, 2), kind.reshape(-1), config.space)
        noisy = None
        if config.exploration == "sampling":
            noisy = jnp.where(live, perturb(key, perturbed, log_successors), -jnp.inf).reshape(-1)
        merged = merge_prefixes(log_prefixes.reshape(-1), jnp.repeat(beam.paths, kind.shape[1]), group, noisy)
        chosen = _rank(domain, critic, problem, successors, merged, config, instructions)
        if config.exploration == "slots":
            available = jnp.isfinite(merged.log_sum)
            if config.pool == "rerank":
                available &= among_best(merged.log_sum, max(config.rerank, config.beam))
            chosen = explore_slots(key, chosen, available, config.epsilon)
        recorded = beam, log_policy, kind.astype(jnp.int8), successor_keys, group.reshape(kind.shape)
        return _next_beam(successors, merged, chosen), recorded

    start = _first_beam(domain, problem.world, instructions, config.beam)
    steps = jnp.arange(length), jax.random.split(key, length)
    beam, log_policy, kind, successor_keys, group = scan_packed(iterate, (start, start.log_chart), steps)[1]
    late = jax.vmap(lambda states: is_late(domain, problem, states, config))(beam.states) & beam.alive
    keys = jax.vmap(jax.vmap(domain.key))(beam.states)
    share = jnp.sum(late, axis=1) / jnp.maximum(jnp.sum(beam.alive, axis=1), 1)
    return Graph(beam, Expansion(keys, log_policy, kind, successor_keys, group, share))


def _first_beam(domain: Domain, world: Any, instructions: int, size: int) -> Beam:
    state = domain.start(world, instructions)
    first = jnp.arange(size) == 0
    return Beam(
        states=jax.tree.map(lambda leaf: jnp.broadcast_to(leaf, (size, *jnp.shape(leaf))), state),
        log_chart=jnp.where(first, 0.0, -jnp.inf),
        paths=first.astype(jnp.float32),
        chosen=jnp.full(size, -1, jnp.int32),
    )


def _expand(
    domain: Domain, policy: Policy, problem: Problem, beam: Beam, allowed: Bool[Array, " A"], config: SearchConfig
):
    """All transitions out of a beam: log π, kind, and key of the successor; and the successors themselves, flat."""
    successors, valid = jax.vmap(domain.expand)(beam.states)
    log_policy = jax.vmap(policy)(beam.states, valid)
    if config.exploration == "sampling":
        log_policy = jax.vmap(lambda log_policy, valid: behaviour(log_policy, valid, config.epsilon))(log_policy, valid)
    valid &= beam.alive[:, None] & allowed[None, :] & jnp.isfinite(log_policy)
    finished = jax.vmap(jax.vmap(domain.instructions_done))(successors) == problem.instructions
    if config.prune:
        valid &= finished | ~jax.vmap(jax.vmap(domain.is_dead_end))(successors)
    correct = jnp.ones_like(finished)
    if problem.target is not None:
        correct = jax.vmap(jax.vmap(lambda state: domain.matches(state, problem.target)))(successors)
    kind = jnp.where(valid, jnp.where(finished, jnp.where(correct, CORRECT, INCORRECT), LIVE), INVALID)
    keys = jax.vmap(jax.vmap(domain.key))(successors)
    flat = jax.tree.map(lambda leaf: leaf.reshape(-1, *leaf.shape[2:]), successors)
    return log_policy, kind, keys, flat


def _merge(keys: UInt32[Array, "N 2"], kinds: Int[Array, " N"], space: str) -> Int[Array, " N"]:
    """Which transitions lead to the same state; in program space no two do."""
    if space == "program":
        return jnp.arange(kinds.shape[0], dtype=jnp.int32)
    return representatives(keys, kinds != INVALID)


def is_late(domain: Domain, problem: Problem, states: State, config: SearchConfig) -> Bool[Array, " n"]:
    """Whether states belong to the last instructions, where the critic has a say."""
    done = jax.vmap(domain.instructions_done)(states)
    return done >= problem.instructions - config.critic_instructions


def ac_score(log_chart: Float[Array, " n"], late: Bool[Array, " n"], value: Float[Array, " n"]) -> Float[Array, " n"]:
    """The paper's AC-Scorer: the actor score P_t[s] plus, where the critic has a say, V(s, y)."""
    return jnp.where(jnp.isfinite(log_chart), jnp.exp(log_chart) + jnp.where(late, value, 0.0), -jnp.inf)


def _rank(
    domain: Domain,
    critic: Critic | None,
    problem: Problem,
    successors: State,
    merged: Merged,
    config: SearchConfig,
    instructions: int,
) -> Int[Array, " K"]:
    """The K best merged successors, -1 where there are fewer; ties go to the first predecessor."""

    def best_of(score: Float[Array, " n"], states: State, size: int) -> tuple[Float[Array, " k"], Int[Array, " k"]]:
        done = jax.vmap(domain.instructions_done)(states)
        return best_states(score, done, size, config.quota, instructions)

    if critic is None:
        score, best = best_of(merged.perturbed, successors, config.beam)
    else:
        size = min(max(config.rerank, config.beam), merged.perturbed.shape[0])
        actor, best = best_of(merged.perturbed, successors, size)
        candidates = choose(successors, best)
        late, value = is_late(domain, problem, candidates, config), jax.vmap(critic)(candidates)
        if config.critic_score == "product":
            score = actor + jnp.where(late, jnp.log(jnp.maximum(value, SMALLEST_VALUE)), 0.0)
        else:
            score = ac_score(merged.log_sum[best], late, value)
        # The candidates come sorted by actor score and top_k is stable, so that ties keep that order.
        score, order = best_of(score, candidates, config.beam)
        best = best[order]
    return jnp.where(jnp.isfinite(score), best, -1)


SMALLEST_VALUE = 1e-30
"""A state whose value is smaller is still a state."""


def best_states(
    score: Float[Array, " n"], done: Int[Array, " n"], size: int, quota: int, instructions: int
) -> tuple[Float[Array, " k"], Int[Array, " k"]]:
    """The largest scores and their places; those within the quota of their instruction before all others."""
    if not quota:
        best, places = jax.lax.top_k(score, size)
        return best, places
    order = jnp.argsort(score, descending=True)
    same = jax.nn.one_hot(done[order], instructions, dtype=jnp.int32)
    place = jnp.sum(jnp.cumsum(same, axis=0) * same, axis=1)
    chosen = order[jnp.argsort((place > quota) | jnp.isneginf(score[order]))][:size]
    return score[chosen], chosen


def _next_beam(successors: State, merged: Merged, chosen: Int[Array, " K"]) -> tuple[Beam, Float[Array, " K"]]:
    """The beam of the states chosen, and its noisy log P_t."""
    taken, index = chosen >= 0, jnp.maximum(chosen, 0)
    log_chart, perturbed = (jnp.where(taken, each[index], -jnp.inf) for each in (merged.log_sum, merged.perturbed))
    return Beam(choose(successors, index), log_chart, jnp.where(taken, merged.paths[index], 0.0), chosen), perturbed
