"""What the paper analyses of a search."""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from vbsix.domains.base import Domain
from vbsix.search.beam import DEAD_END, INVALID, LIVE, Graph, Problem
from vbsix.search.graph import UNREACHABLE, distances, join, next_vertex
from vbsix.search.select import in_critic_window
from vbsix.utilities.settings import Number


class Statistics(NamedTuple):
    """Of one search; counts per iteration have a leading axis of L."""

    hit: Bool[Array, ""]
    """A correct terminal state was found."""
    states: Int[Array, " L"]
    """States in the beam."""
    successors: Int[Array, " L"]
    """Valid transitions out of the beam."""
    distinct: Int[Array, " L"]
    """Distinct states that they lead to."""
    paths: Float[Array, ""]
    """Prefixes that a beam holds, averaged over the iterations with a beam; counted in float32."""
    correct_discarded: Int[Array, ""]
    """States that reach a correct terminal state, fell out of the beam and were expanded at another iteration."""


def statistics(graph: Graph, space: str) -> Statistics:
    """Measures a search."""
    kind = graph.expansion.kind
    _, beam, tokens = kind.shape
    followed = (kind != INVALID) & (kind != DEAD_END)
    own = jnp.arange(beam * tokens, dtype=jnp.int32).reshape(1, beam, tokens)
    states = jnp.sum(graph.beam.alive, axis=1)
    return Statistics(
        hit=graph.hit,
        states=states,
        successors=jnp.sum(followed, axis=(1, 2)),
        distinct=jnp.sum(followed & (graph.expansion.representative == own), axis=(1, 2)),
        paths=jnp.sum(graph.beam.paths) / jnp.maximum(jnp.sum(states > 0), 1),
        correct_discarded=correct_discarded(graph, join(graph, space)),
    )


def critic_window_share(domain: Domain, problem: Problem, graph: Graph, window: Number) -> Float[Array, " L"]:
    """The share of each beam's states that are in the critic's window."""
    inside = jax.vmap(lambda states: in_critic_window(domain, problem, states, window))(graph.beam.states)
    alive = graph.beam.alive
    return jnp.sum(inside & alive, axis=1) / jnp.maximum(jnp.sum(alive, axis=1), 1)


def correct_discarded(graph: Graph, successor: Int[Array, "V A"]) -> Int[Array, ""]:
    """The paper's correct discarded states."""
    vertices = successor.shape[0]
    # The successors of the last iteration are not pruned: there is no beam for them to fall out of.
    continues = jnp.any(graph.beam.alive, axis=1) & (jnp.roll(jnp.any(graph.beam.alive, axis=1), -1))
    continues = continues.at[-1].set(False)
    pruned = (graph.expansion.kind == LIVE) & (next_vertex(graph) < 0) & continues[:, None, None]
    target = jnp.where(pruned.reshape(-1) & (successor.reshape(-1) >= 0), successor.reshape(-1), vertices)
    fell_out = jnp.zeros(vertices, bool).at[target].set(True, mode="drop")
    return jnp.sum(fell_out & (distances(graph, successor) < UNREACHABLE))
