"""The graph that a search discovered: where transitions lead across iterations, and which states reach the target.

A vertex is an expanded state, numbered iteration * K + slot. In execution space, vertices with the same key are one
vertex (the first), across iterations: a path may run through a state that fell out of the beam and came back.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jaxtyping import Array, Int

from vbsix.search.beam import CORRECT, LIVE, Graph
from vbsix.search.merging import best_of_group, lookup, representatives

UNREACHABLE = 1 << 20
"""Distance of a vertex from which no correct terminal state can be reached."""


def same_vertex(graph: Graph, space: str) -> Int[Array, " V"]:
    """The vertex that stands for each vertex: the first with the same key; in program space each for itself."""
    alive = graph.beam.alive.reshape(-1)
    if space == "program":
        return jnp.arange(alive.shape[0], dtype=jnp.int32)
    return representatives(graph.expansion.keys.reshape(-1, 2), alive)


def join(graph: Graph, space: str) -> Int[Array, "V A"]:
    """The vertex each transition leads to, -1 where it ends the program, is invalid or was never expanded."""
    live = graph.expansion.kind == LIVE
    tokens = live.shape[-1]
    if space == "program":
        return jnp.where(live, next_vertex(graph), -1).reshape(-1, tokens)
    found = lookup(
        graph.expansion.keys.reshape(-1, 2), graph.beam.alive.reshape(-1), graph.expansion.successor_keys.reshape(-1, 2)
    )
    return jnp.where(live.reshape(-1), found, -1).reshape(-1, tokens)


def next_vertex(graph: Graph) -> Int[Array, "L K A"]:
    """The layered graph: the vertex of the next iteration each transition leads to, -1 if it was pruned."""
    iterations, beam, tokens = graph.expansion.kind.shape

    def invert(chosen: Int[Array, " K"]) -> Int[Array, " N"]:
        places = jnp.where(chosen < 0, beam * tokens, chosen)
        return jnp.full(beam * tokens, -1, jnp.int32).at[places].set(jnp.arange(beam), mode="drop")

    slots = jax.vmap(lambda slots, group: slots[group])(
        jax.vmap(invert)(_chosen_next(graph)), graph.expansion.representative
    )
    first = (jnp.arange(1, iterations + 1) * beam)[:, None, None]
    return jnp.where((slots >= 0) & (graph.expansion.kind == LIVE), slots + first, -1)


def best_transitions(graph: Graph) -> Int[Array, "L K"]:
    """The most probable transition (slot * A + token) into each slot of the next beam, -1 into an empty one."""
    live = graph.expansion.kind == LIVE
    log_prefixes = jnp.where(live, graph.beam.log_chart[:, :, None] + graph.expansion.log_policy, -jnp.inf)
    flat = log_prefixes.reshape(len(live), -1), graph.expansion.representative.reshape(len(live), -1)
    best, chosen = jax.vmap(best_of_group)(*flat), _chosen_next(graph)
    return jnp.where(chosen >= 0, jnp.take_along_axis(best, jnp.maximum(chosen, 0), axis=1), -1)


def _chosen_next(graph: Graph) -> Int[Array, "L K"]:
    """What the next beam has chosen of each beam's successors; nothing follows the last."""
    return jnp.roll(graph.beam.chosen, -1, axis=0).at[-1].set(-1)


def distances(graph: Graph, successor: Int[Array, "V A"]) -> Int[Array, " V"]:
    """Fewest tokens from each vertex to a correct terminal state.

    Sweeps from the last iteration to the first, which settles all paths that run forward; sweeps are repeated as long
    as some path through an earlier iteration still shortens a distance.
    """
    iterations, beam, tokens = graph.expansion.kind.shape
    to_target = jnp.where(graph.expansion.kind == CORRECT, 1, UNREACHABLE)
    layers = successor.reshape(iterations, beam, tokens)

    def sweep(distance: Int[Array, " V"]) -> Int[Array, " V"]:
        def settle(distance, layer):
            iteration, to_target, successor = layer
            via = jnp.where(successor >= 0, distance[jnp.maximum(successor, 0)] + 1, UNREACHABLE)
            nearest = jnp.minimum(jnp.min(jnp.minimum(via, to_target), axis=-1), UNREACHABLE)
            return jax.lax.dynamic_update_slice(distance, nearest, (iteration * beam,)), None

        return jax.lax.scan(settle, distance, (jnp.arange(iterations), to_target, layers), reverse=True)[0]

    def improve(pair):
        return pair[1], sweep(pair[1])

    start = jnp.full(iterations * beam, UNREACHABLE)
    return jax.lax.while_loop(lambda pair: jnp.any(pair[0] != pair[1]), improve, (start, sweep(start)))[1]
