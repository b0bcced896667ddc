"""Algorithm 1 of the paper, the function VBSiX: beam search in program or execution space.

Everything is written for one example and batched by `jax.vmap` outside. Shapes are fixed: K states in the beam, A
tokens, L iterations. A transition is numbered slot * A + token; N = K * A. Line numbers are those printed in the paper.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray, UInt32

from vbsix.data.examples import Arrays, Waypoints
from vbsix.domains.base import Domain, State, Target
from vbsix.domains.execution import ends_command_elsewhere
from vbsix.models.functions import PolicyFunction
from vbsix.search.merging import Merged, merge_prefixes, representatives
from vbsix.search.packing import scan_packed
from vbsix.utilities.trees import choose

INVALID, LIVE, CORRECT, INCORRECT, DEAD_END = range(5)
"""What a transition leads to: nothing, a state to expand, a correct or an incorrect terminal state, a dead end."""
Outcome = Callable[[State, State], Int[Array, ""]]
"""Classifies a successor, given the state before it: LIVE, CORRECT, INCORRECT or DEAD_END."""


class Problem(NamedTuple):
    """What search needs of an example. Only the networks read its words."""

    world: Any
    """Initial world."""
    instructions: Int[Array, ""]
    """M, the number of instructions."""
    target: Target | None
    """Target denotation. None when predicting: then every finished program counts as correct."""
    allowed: Bool[Any, "L A"] | None = None
    """Which tokens each iteration may take; None for all."""
    waypoints: Waypoints | None = None
    """Worlds that a program must pass, where known. Search does not follow a command that ends elsewhere."""

    @classmethod
    def of(cls, example: Arrays) -> Problem:
        """The problem of a training example."""
        return cls(example.world, example.instructions, example.target, waypoints=example.waypoints)


class Candidates(NamedTuple):
    """The successors of a beam, from which a selection rule selects the next one.

    Transitions that lead to the same state are merged: the state is stored at the index of the first of them.
    """

    states: State
    """Leaves [N, ...]."""
    log_chart: Float[Array, " N"]
    """log P_t, the log of the actor score, under the policy that the search expands with; -inf where there is no
    state to select."""
    log_transitions: Float[Array, "K A"]
    """log P_{t-1}[s] + log π(a | s) of every transition, whatever it leads to."""
    live: Bool[Array, "K A"]
    """Which transitions lead to a state that can be selected."""
    group: Int[Array, " N"]
    """The index at which each transition's state is stored."""


Select = Callable[[PRNGKeyArray, Candidates, Float[Array, " K"]], tuple[Int[Array, " K"], Float[Array, " K"]]]
"""The function of a selection rule that chooses the next beam among the candidates; -1 is an empty slot. The last
argument and the second result are one number per slot that a rule may carry from beam to beam; it starts as log P_0."""


class Beam(NamedTuple):
    """B_t, the states that an iteration keeps."""

    states: State
    log_chart: Float[Array, "*L K"]
    """log P_t; -inf in an empty slot."""
    paths: Float[Array, "*L K"]
    """Number of prefixes that lead to the state through the beams before, in floats: it grows exponentially."""
    chosen: Int[Array, "*L K"]
    """The candidate that each slot holds, a transition out of the beam before; -1 in an empty slot and in B_0."""

    @property
    def alive(self) -> Bool[Array, "*L K"]:
        return jnp.isfinite(self.log_chart)


class Expansion(NamedTuple):
    """All transitions out of one beam: the edges of G."""

    keys: UInt32[Array, "*L K 2"]
    """Keys of the beam's states."""
    log_policy: Float[Array, "*L K A"]
    """The log-probability of all tokens, under the policy that the search expands with."""
    kind: Int[Array, "*L K A"]
    """What each transition leads to: INVALID, LIVE, CORRECT, INCORRECT or DEAD_END."""
    successor_keys: UInt32[Array, "*L K A 2"]
    representative: Int[Array, "*L K A"]
    """Number of the first transition that leads to the same state."""


class Graph(NamedTuple):
    """G and T: entry i of the first axis is B_i with its transitions, and T is the transitions of kind CORRECT.

    A state found at two iterations has two entries; `graph.py` joins them.
    """

    beam: Beam
    expansion: Expansion

    @property
    def hit(self) -> Bool[Array, ""]:
        """Whether a correct terminal state was found."""
        return jnp.any(self.expansion.kind == CORRECT)


def beam_search(
    domain: Domain,
    policy: PolicyFunction,
    problem: Problem,
    key: PRNGKeyArray,
    *,
    select: Select,
    outcome: Outcome,
    instructions: int,
    beam: int,
    space: str,
    longest: Int[Array, ""] | None = None,
) -> Graph:
    """Algorithm 1, lines 5-22: expands a beam token by token, and returns the graph of all that it saw.

    Args:
        domain: the language.
        policy: what tokens are expanded with: the actor π, or what the selection rule makes of it
            (`SelectionRule.behaviour`).
        problem: the example.
        key: randomness of the selection rule.
        select: which successors make the next beam.
        outcome: what a successor is to the search; see `outcome_of`.
        instructions: the largest number of instructions; sets the number of iterations and all shapes.
        beam: K.
        space: `program` or `execution`.
        longest: the largest number of instructions in the batch, the same for all its examples. The iterations that no
            example needs are skipped. None runs all.
    """
    length = instructions * domain.max_tokens_per_instruction
    limit = problem.instructions * domain.max_tokens_per_instruction
    allowed = (jnp.arange(length) < limit)[:, None] & (True if problem.allowed is None else problem.allowed)

    def iterate(frontier: tuple[Beam, Array], step: tuple[Array, Array, PRNGKeyArray]):
        (previous, carried), (allowed, is_last, key) = frontier, step
        # Lines 12-14: all successors of B_{t-1}, which are edges of G.
        log_policy, kind, keys, successors = _expand(domain, policy, outcome, previous, allowed)
        # Lines 15-19: P_t of a state sums over the prefixes that lead to it. Ours: all terminal states leave the
        # beam; in the paper, only correct ones do. B_L is empty, because no iteration would expand it.
        group = _group(keys.reshape(-1, 2), kind.reshape(-1), space)
        live = (kind == LIVE) & ~is_last
        log_transitions = previous.log_chart[:, None] + log_policy
        merged = merge_prefixes(
            jnp.where(live, log_transitions, -jnp.inf).reshape(-1), jnp.repeat(previous.paths, kind.shape[1]), group
        )
        # Lines 20-21: the selection rule chooses B_t; in the paper, the K best by AC-score.
        candidates = Candidates(successors, merged.log_sum, log_transitions, live, group)
        chosen, carried = select(key, candidates, carried)
        recorded = previous, log_policy, kind.astype(jnp.int8), keys, group.reshape(kind.shape)
        return (_next_beam(successors, merged, chosen), carried), recorded

    start = _first_beam(domain, problem.world, instructions, beam)  # lines 6-9
    steps = allowed, jnp.arange(length) + 1 >= limit, jax.random.split(key, length)
    frontier = start, start.log_chart
    end = None if longest is None else longest * domain.max_tokens_per_instruction
    rest = None if longest is None else _nothing(iterate, frontier, steps)
    recorded = scan_packed(iterate, frontier, steps, end=end, rest=rest)[1]  # lines 10-21
    beams, log_policy, kind, successor_keys, group = recorded
    keys = jax.vmap(jax.vmap(domain.key))(beams.states)
    return Graph(beams, Expansion(keys, log_policy, kind, successor_keys, group))  # line 22


def outcome_of(domain: Domain, problem: Problem, *, prune_dead_ends: bool = False) -> Outcome:
    """What states are to the search for this example.

    A token that leads to a dead end, or that ends a command elsewhere than at a waypoint, stays valid for the policy's
    normalisation, but search does not follow it.
    """
    waypoints = problem.waypoints

    def outcome(before: State, state: State) -> Int[Array, ""]:
        finished = domain.instructions_done(state) == problem.instructions
        correct = jnp.bool_(True) if problem.target is None else domain.matches(state, problem.target)
        unfinished = jnp.where(domain.is_dead_end(state), DEAD_END, LIVE) if prune_dead_ends else LIVE
        kind = jnp.where(finished, jnp.where(correct, CORRECT, INCORRECT), unfinished)
        if waypoints is None:
            return kind
        misses = ends_command_elsewhere(domain, before, state, waypoints.targets, waypoints.known)
        return jnp.where((kind == LIVE) & misses, DEAD_END, kind)

    return outcome


def _nothing(iterate: Callable[[Any, Any], tuple[Any, Any]], frontier: Any, steps: Any) -> Any:
    """What an iteration over an empty beam records."""
    shapes = jax.eval_shape(iterate, frontier, choose(steps, 0))[1]
    beam, *others = jax.tree.map(lambda one: jnp.zeros(one.shape, one.dtype), shapes)
    empty = beam._replace(log_chart=jnp.full_like(beam.log_chart, -jnp.inf), chosen=jnp.full_like(beam.chosen, -1))
    return (empty, *others)


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
    domain: Domain,
    policy: PolicyFunction,
    outcome: Outcome,
    beam: Beam,
    allowed: Bool[Array, " _"],
):
    """All transitions out of a beam: log π, kind, and key of the successor; and the successors themselves, flat."""
    successors, valid = jax.vmap(domain.expand)(beam.states)
    log_policy = jax.vmap(policy)(beam.states, valid)
    valid &= beam.alive[:, None] & allowed[None, :] & jnp.isfinite(log_policy)
    kind = jnp.where(valid, jax.vmap(jax.vmap(outcome, in_axes=(None, 0)))(beam.states, successors), INVALID)
    keys = jax.vmap(jax.vmap(domain.key))(successors)
    flat = jax.tree.map(lambda leaf: leaf.reshape(-1, *leaf.shape[2:]), successors)
    return log_policy, kind, keys, flat


def _group(keys: UInt32[Array, "N 2"], kinds: Int[Array, " N"], space: str) -> Int[Array, " N"]:
    """The group of each transition: in execution space all that lead to the same state, in program space itself."""
    if space == "program":
        return jnp.arange(kinds.shape[0], dtype=jnp.int32)
    return representatives(keys, kinds != INVALID)


def _next_beam(successors: State, merged: Merged, chosen: Int[Array, " K"]) -> Beam:
    taken, index = chosen >= 0, jnp.maximum(chosen, 0)
    log_chart = jnp.where(taken, merged.log_sum[index], -jnp.inf)
    return Beam(choose(successors, index), log_chart, jnp.where(taken, merged.paths[index], 0.0), chosen)
