"""The critic's training examples: the paper's BuildValueExamples."""

from __future__ import annotations

from typing import Literal, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, UInt32

from vbsix.domains.stack import mix
from vbsix.search import Graph, Programs
from vbsix.search.merging import representatives
from vbsix.training.objectives import correct_flow, suffix_log_probability

Labels = Literal["suffix", "paper", "graph"]


class ValueExamples(NamedTuple):
    """States, as vertices of the search graph, with the expected reward estimated for them."""

    vertices: Int[Array, " N"]
    labels: Float[Array, " N"]
    mask: Bool[Array, " N"]
    """Which places hold an example."""
    dropped: Int[Array, ""]
    """States that found no place."""


def build_value_examples(
    graph: Graph,
    positives: Programs,
    negatives: Programs,
    late: Bool[Array, " V"],
    *,
    labels: Labels,
    size: int,
) -> ValueExamples:
    """One example for each distinct state on a program, or in the graph, but the first and the terminal ones.

    Args:
        graph: what the search discovered.
        positives: correct programs.
        negatives: programs that lead to incorrect terminal states.
        late: which vertices the critic is trained on.
        labels: `suffix`, the probability of the distinct correct suffixes found; `paper`, the same with the token
            that led to the state, a suffix counted once for each program, clipped to 1; `graph`, the probability of
            all that the layered graph holds, for every state in it, also for those that no program passes through.
        size: places for examples; states beyond them are dropped, those that lead to the target last.
    """
    vertices = late.shape[0]
    same = representatives(graph.expansion.keys.reshape(-1, 2), graph.beam.alive.reshape(-1))

    def states_of(programs: Programs) -> Int[Array, " PL"]:
        """The states passed after each token but the last, V for places without one."""
        inside = (programs.vertices >= 0) & (jnp.arange(programs.vertices.shape[1]) > 0)[None, :]
        passed = jnp.where(inside, programs.vertices, 0)
        return jnp.where(inside & late[passed], same[passed], vertices).reshape(-1)

    if labels == "graph":
        # A state met at several iterations has been followed furthest where most of its mass was found.
        reward = jnp.zeros(vertices).at[same].max(jnp.exp(correct_flow(graph).log_reward.reshape(-1)))
        own = jnp.arange(vertices)
        included = graph.beam.alive.reshape(-1) & late & (same == own) & (own > 0)
        on_correct = included & (reward > 0)
    else:
        positive = states_of(positives)
        mass = jnp.exp(suffix_log_probability(graph, positives))
        if labels == "paper":
            counted = jnp.concatenate([mass[:, :1], mass[:, :-1]], axis=1).reshape(-1)
        else:
            suffix = jnp.stack([_suffix_hash(positives.tokens).reshape(-1), positive.astype(jnp.uint32)], axis=1)
            first = representatives(suffix, positive < vertices) == jnp.arange(positive.shape[0])
            counted = jnp.where(first, mass.reshape(-1), 0.0)
        reward = jnp.minimum(jnp.zeros(vertices).at[positive].add(counted, mode="drop"), 1.0)
        on_correct = jnp.zeros(vertices, bool).at[positive].set(True, mode="drop")
        included = on_correct.at[states_of(negatives)].set(True, mode="drop")
    # Where places are scarce, states on correct programs come first; among the rest their keys are as good as chance.
    chance = graph.expansion.keys[..., 1].reshape(-1).astype(jnp.float32) / 2.0**33
    priority = jnp.where(included, 1.0 + on_correct + chance, 0.0)
    place, chosen = jax.lax.top_k(priority, min(size, vertices))
    mask = place > 0
    return ValueExamples(chosen, jnp.where(mask, reward[chosen], 0.0), mask, jnp.sum(included) - jnp.sum(mask))


def _suffix_hash(tokens: Int[Array, "P L"]) -> UInt32[Array, "P L"]:
    """A hash of the tokens from each place to the end."""

    def add(suffix, token):
        suffix = jnp.where(token >= 0, mix(suffix * jnp.uint32(0x9E3779B1) + token.astype(jnp.uint32) + 1), suffix)
        return suffix, suffix

    start = jnp.zeros(tokens.shape[0], jnp.uint32)
    return jax.lax.scan(add, start, tokens.T, reverse=True)[1].T
