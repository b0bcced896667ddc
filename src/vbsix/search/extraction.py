"""Programs out of the graph of a search: correct ones (Algorithm 1, line 3) and negatives (Algorithm 2, line 6)."""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from vbsix.domains.base import Domain
from vbsix.search.beam import CORRECT, INCORRECT, Graph
from vbsix.search.graph import best_transitions, distances
from vbsix.search.merging import best_of_group, representatives


class Programs(NamedTuple):
    """Programs found by a search, the most probable first."""

    tokens: Int[Array, "P L"]
    """Token ids, then -1."""
    vertices: Int[Array, "P L"]
    """Vertex in which each token was chosen, then -1."""
    log_probability: Float[Array, " P"]
    """log p(z) under the policy that the search expanded with; -inf for a place without a program."""

    @property
    def found(self) -> Bool[Array, " P"]:
        return jnp.isfinite(self.log_probability)

    @property
    def length(self) -> Int[Array, " P"]:
        return jnp.sum(self.tokens >= 0, axis=-1)


def complete_programs(graph: Graph, size: int) -> Programs:
    """The most probable correct programs of a search in program space, where each slot of a beam is one prefix."""
    return follow_back(graph, *most_probable_ends(graph, size))


def most_probable_ends(graph: Graph, size: int) -> tuple[Int[Array, " n"], Int[Array, " n"], Float[Array, " n"]]:
    """The most probable transitions to correct terminal states: iteration, slot * A + token, log-probability."""
    _, beam, tokens = graph.expansion.kind.shape
    log_prefixes = graph.beam.log_chart[:, :, None] + graph.expansion.log_policy
    scores = jnp.where(graph.expansion.kind == CORRECT, log_prefixes, -jnp.inf).reshape(-1)
    log_probability, transition = jax.lax.top_k(scores, min(size, scores.shape[0]))
    return transition // (beam * tokens), transition % (beam * tokens), log_probability


def extract_programs(
    domain: Domain, graph: Graph, successor: Int[Array, "V A"], instructions: Int[Array, ""], size: int
) -> Programs:
    """Beam search over the part of the graph that reaches correct terminal states.

    Probabilities are those that the search expanded with.

    Complete programs leave the beam, as in the search itself. A prefix is kept only if it can still be completed
    within the limit on the length: the graph may have cycles.
    """
    iterations, _, tokens = graph.expansion.kind.shape
    log_policy = graph.expansion.log_policy.reshape(-1, tokens)
    correct = (graph.expansion.kind == CORRECT).reshape(-1, tokens)
    distance = distances(graph, successor)
    limit = instructions * domain.max_tokens_per_instruction

    def extend(carry, length):
        vertex, log_prefix, complete, ends = carry
        log_extended = (log_prefix[:, None] + log_policy[vertex]).reshape(-1)
        following = successor[vertex].reshape(-1)
        ending = correct[vertex].reshape(-1) & (length < limit)
        possible = (following >= 0) & (length + 1 + distance[jnp.maximum(following, 0)] <= limit)
        # Programs that end here compete with those complete so far, prefixes among themselves.
        scores = jnp.concatenate([complete, jnp.where(ending, log_extended, -jnp.inf)])
        complete, best = jax.lax.top_k(scores, size)
        here = jnp.arange(size * tokens) + length * size * tokens
        ends = jnp.concatenate([ends, here])[best]
        log_prefix, kept = jax.lax.top_k(jnp.where(possible, log_extended, -jnp.inf), size)
        return (following[kept], log_prefix, complete, ends), (vertex, kept)

    first = jnp.where(jnp.arange(size) == 0, 0.0, -jnp.inf)
    nothing = jnp.full(size, -jnp.inf), jnp.zeros(size, jnp.int32)
    start = (jnp.zeros(size, jnp.int32), first, *nothing)
    (_, _, complete, ends), (vertex, kept) = jax.lax.scan(extend, start, jnp.arange(iterations))
    end, last = ends // (size * tokens), ends % (size * tokens)
    return _unroll(vertex, kept, end, last, complete, tokens)


def follow_back(
    graph: Graph, end: Int[Array, " n"], last: Int[Array, " n"], log_probability: Float[Array, " n"]
) -> Programs:
    """Programs along the most probable predecessors in the beams; see `_unroll`."""
    iterations, beam, tokens = graph.expansion.kind.shape
    vertex = jnp.arange(iterations * beam, dtype=jnp.int32).reshape(iterations, beam)
    return _unroll(vertex, best_transitions(graph), end, last, log_probability, tokens)


def _unroll(
    vertex: Int[Array, "L P"],
    kept: Int[Array, "L P"],
    end: Int[Array, " n"],
    last: Int[Array, " n"],
    log_probability: Float[Array, " n"],
    tokens: int,
) -> Programs:
    """Programs from back pointers: each ends at iteration `end` with transition `last` (slot * A + token).

    Args:
        vertex: the vertex of each slot at each iteration.
        kept: the transition (slot * A + token of the iteration before) behind each slot of the next iteration.
        end: index of the last token.
        last: the transition that ends the program.
        log_probability: -inf for places without a program.
        tokens: A.
    """

    def back(transition, layer):
        iteration, vertex, kept_before = layer
        inside = iteration <= end
        transition = jnp.where(iteration == end, last, transition)
        slot, token = transition // tokens, transition % tokens
        passed = jnp.where(inside, token, -1), jnp.where(inside, vertex[slot], -1)
        return jnp.where(inside, kept_before[slot], transition), passed

    before = jnp.concatenate([jnp.zeros_like(kept[:1]), kept[:-1]])
    layers = jnp.arange(vertex.shape[0]), vertex, before
    _, (chosen, vertices) = jax.lax.scan(back, last, layers, reverse=True)
    found = jnp.isfinite(log_probability)[:, None]
    return Programs(jnp.where(found, chosen.T, -1), jnp.where(found, vertices.T, -1), log_probability)


class Negatives(NamedTuple):
    """One program for each of the most probable incorrect terminal states."""

    programs: Programs
    """Their `log_probability` is that of the last transition with all prefixes that lead to it."""
    dropped: Int[Array, ""]
    """How many incorrect terminal states got no program."""


def extract_negatives(graph: Graph, size: int) -> Negatives:
    """The incorrect terminal states with the most probable last transition, each with the path that it ends.

    A state that several transitions lead to, also at several iterations, counts once, where it is most probable.
    """
    log_prefixes = graph.beam.log_chart[:, :, None] + graph.expansion.log_policy
    scores = jnp.where(graph.expansion.kind == INCORRECT, log_prefixes, -jnp.inf).reshape(-1)
    group = representatives(graph.expansion.successor_keys.reshape(-1, 2), jnp.isfinite(scores))
    best = best_of_group(scores, group)
    distinct = jnp.where(jnp.isfinite(scores), best[group], -1) == jnp.arange(scores.shape[0])
    log_probability, transition = jax.lax.top_k(jnp.where(distinct, scores, -jnp.inf), min(size, scores.shape[0]))
    _, beam, tokens = graph.expansion.kind.shape
    end, last = transition // (beam * tokens), transition % (beam * tokens)
    programs = follow_back(graph, end, last, log_probability)
    return Negatives(programs, jnp.sum(distinct) - jnp.sum(programs.found))
