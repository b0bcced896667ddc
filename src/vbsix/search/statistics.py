"""What the paper analyses of a search."""

from __future__ import annotations

from typing import NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from vbsix.search.beam import INVALID, LIVE, Graph
from vbsix.search.graph import UNREACHABLE, distances, join, next_vertex


class Statistics(NamedTuple):
    """Of one search; counts per iteration have a leading axis of L."""

    hit: Bool[Array, ""]
    """A correct terminal state was found."""
    states: Int[Array, " L"]
    """States in the beam."""
    successors: Int[Array, " L"]
    """Valid transitions out of the beam."""
    distinct: Int[Array, " L"]
    """Distinct states they lead to."""
    paths: Float[Array, ""]
    """Prefixes that a beam holds, averaged over the iterations with a beam; counted in float32."""
    correct_discarded: Int[Array, ""]
    """States that reach a correct terminal state, fell out of the beam and were expanded at another iteration."""
    late: Float[Array, ""]
    """Share of beam slots with states of the instructions where the critic ranks, averaged likewise."""


def statistics(graph: Graph, space: str) -> Statistics:
    """Measures a search."""
    kind = graph.expansion.kind
    _, beam, tokens = kind.shape
    valid = kind != INVALID
    own = jnp.arange(beam * tokens, dtype=jnp.int32).reshape(1, beam, tokens)
    states = jnp.sum(graph.beam.alive, axis=1)
    active = states > 0
    return Statistics(
        hit=graph.hit,
        states=states,
        successors=jnp.sum(valid, axis=(1, 2)),
        distinct=jnp.sum(valid & (graph.expansion.representative == own), axis=(1, 2)),
        paths=jnp.sum(graph.beam.paths) / jnp.maximum(jnp.sum(active), 1),
        correct_discarded=correct_discarded(graph, join(graph, space)),
        late=jnp.sum(graph.expansion.late * active) / jnp.maximum(jnp.sum(active), 1),
    )


def correct_discarded(graph: Graph, successor: Int[Array, "V A"]) -> Int[Array, ""]:
    """The paper's correct discarded states."""
    vertices = successor.shape[0]
    # The successors of the last iteration are not pruned: there is no beam for them to fall out of.
    going_on = jnp.any(graph.beam.alive, axis=1) & (jnp.roll(jnp.any(graph.beam.alive, axis=1), -1))
    going_on = going_on.at[-1].set(False)
    pruned = (graph.expansion.kind == LIVE) & (next_vertex(graph) < 0) & going_on[:, None, None]
    target = jnp.where(pruned.reshape(-1) & (successor.reshape(-1) >= 0), successor.reshape(-1), vertices)
    fell_out = jnp.zeros(vertices, bool).at[target].set(True, mode="drop")
    return jnp.sum(fell_out & (distances(graph, successor) < UNREACHABLE))
