"""The critic's training examples: the paper's BuildValueExamples."""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, UInt32

from vbsix.domains.hashing import mix
from vbsix.search import Graph, Programs, same_vertex
from vbsix.search.merging import representatives
from vbsix.training.objectives import Flow, suffix_log_probability


class ValueExamples(NamedTuple):
    """States, as vertices of the search graph, with the expected reward estimated for them."""

    vertices: Int[Array, " N"]
    labels: Float[Array, " N"]
    mask: Bool[Array, " N"]
    """Which places hold an example."""
    dropped: Int[Array, ""]
    """States that found no place."""


def label_programs(
    graph: Graph, positives: Programs, negatives: Programs, late: Bool[Array, " V"], *, paper: bool, size: int
) -> ValueExamples:
    """One example for each distinct state on a program but the first and the terminal ones.

    The label of a state is the probability of the distinct correct suffixes found.

    Args:
        graph: what the search discovered.
        positives: correct programs.
        negatives: programs that lead to incorrect terminal states.
        late: which vertices the critic is trained on.
        paper: whether the token that led to the state counts as part of a suffix, and a suffix once for each program,
            the sum clipped to 1.
        size: places for examples; states beyond them are dropped, those that lead to the target last.
    """
    vertices, same = late.shape[0], same_vertex(graph, "execution")

    def states_of(programs: Programs) -> Int[Array, " PL"]:
        """The states passed after each token but the last, V for places without one."""
        inside = (programs.vertices >= 0) & (jnp.arange(programs.vertices.shape[1]) > 0)[None, :]
        passed = jnp.where(inside, programs.vertices, 0)
        return jnp.where(inside & late[passed], same[passed], vertices).reshape(-1)

    positive = states_of(positives)
    mass = jnp.exp(suffix_log_probability(graph, positives))
    if paper:
        counted = jnp.concatenate([mass[:, :1], mass[:, :-1]], axis=1).reshape(-1)
    else:
        suffix = jnp.stack([_suffix_hash(positives.tokens).reshape(-1), positive.astype(jnp.uint32)], axis=1)
        first = representatives(suffix, positive < vertices) == jnp.arange(positive.shape[0])
        counted = jnp.where(first, mass.reshape(-1), 0.0)
    reward = jnp.minimum(jnp.zeros(vertices).at[positive].add(counted, mode="drop"), 1.0)
    on_correct = jnp.zeros(vertices, bool).at[positive].set(True, mode="drop")
    included = on_correct.at[states_of(negatives)].set(True, mode="drop")
    return _choose(graph, reward, included, on_correct, size)


def label_graph(graph: Graph, flow: Flow, late: Bool[Array, " V"], *, size: int) -> ValueExamples:
    """One example for each distinct state of the graph, also for those that no program passes through.

    The label of a state is the probability of all correct suffixes that the layered graph holds. See `label_programs`.
    """
    vertices, same = late.shape[0], same_vertex(graph, "execution")
    # A state met at several iterations has been followed furthest where most of its mass was found.
    reward = jnp.zeros(vertices).at[same].max(jnp.exp(flow.log_reward.reshape(-1)))
    own = jnp.arange(vertices)
    included = graph.beam.alive.reshape(-1) & late & (same == own) & (own > 0)
    return _choose(graph, reward, included, included & (reward > 0), size)


def _choose(
    graph: Graph, reward: Float[Array, " V"], included: Bool[Array, " V"], on_correct: Bool[Array, " V"], size: int
) -> ValueExamples:
    """Where places are scarce, states on correct programs come first; of the rest, keys are as good as chance."""
    chance = graph.expansion.keys[..., 1].reshape(-1).astype(jnp.float32) / 2.0**33
    priority = jnp.where(included, 1.0 + on_correct + chance, 0.0)
    place, chosen = jax.lax.top_k(priority, min(size, included.shape[0]))
    mask = place > 0
    return ValueExamples(chosen, jnp.where(mask, reward[chosen], 0.0), mask, jnp.sum(included) - jnp.sum(mask))


def _suffix_hash(tokens: Int[Array, "P L"]) -> UInt32[Array, "P L"]:
    """A hash of the tokens from each place to the end."""

    def add(suffix, token):
        suffix = jnp.where(token >= 0, mix(suffix * jnp.uint32(0x9E3779B1) + token.astype(jnp.uint32) + 1), suffix)
        return suffix, suffix

    start = jnp.zeros(tokens.shape[0], jnp.uint32)
    return jax.lax.scan(add, start, tokens.T, reverse=True)[1].T
