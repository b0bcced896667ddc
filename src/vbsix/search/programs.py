"""Programs out of searches: the paper's ProgramSearch, its negatives, and prediction."""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray

from vbsix.domains.base import Domain
from vbsix.search.beam import CORRECT, INCORRECT, Critic, Graph, Policy, Problem, beam_search
from vbsix.search.config import SearchConfig
from vbsix.search.graph import best_transitions, distances, join
from vbsix.search.merging import best_of_group, choose, representatives


class Programs(NamedTuple):
    """Programs found by a search, the most probable first."""

    tokens: Int[Array, "P L"]
    """Token ids, then -1."""
    vertices: Int[Array, "P L"]
    """Vertex in which each token was chosen, then -1."""
    log_probability: Float[Array, " P"]
    """log p(z), -inf for a place without a program."""

    @property
    def found(self) -> Bool[Array, " P"]:
        return jnp.isfinite(self.log_probability)

    @property
    def length(self) -> Int[Array, " P"]:
        return jnp.sum(self.tokens >= 0, axis=-1)


def program_search(
    domain: Domain,
    policy: Policy,
    critic: Critic | None,
    problem: Problem,
    key: PRNGKeyArray,
    *,
    instructions: int,
    config: SearchConfig,
) -> tuple[Programs, Graph]:
    """The paper's ProgramSearch: searches, then finds paths to correct terminal states in the graph discovered.

    Arguments are those of `beam_search`.
    """
    graph = beam_search(domain, policy, critic, problem, key, instructions=instructions, config=config)
    if config.space == "program":  # a tree: its paths are known without another search
        return complete_programs(graph, config.program_beam), graph
    return extract_programs(domain, graph, join(graph, config.space), problem.instructions, config.program_beam), graph


def predict(
    domain: Domain, policy: Policy, world: Any, instructions: Int[Array, ""], *, most: int, beam: int, best: int
) -> Programs:
    """The most probable complete programs, by beam search in program space without a target.

    Args:
        domain: the language.
        policy: the actor.
        world: initial world.
        instructions: number of instructions of this example.
        most: the largest number of instructions; sets all shapes.
        beam: K.
        best: how many programs to return.
    """
    config = SearchConfig(space="program", beam=beam, epsilon=0.0)
    problem = Problem(world, instructions, None)
    graph = beam_search(domain, policy, None, problem, jax.random.key(0), instructions=most, config=config)
    return complete_programs(graph, best)


def complete_programs(graph: Graph, size: int) -> Programs:
    """The most probable correct programs of a search in program space, where each slot of a beam is one prefix."""
    return _follow_back(graph, *_ends(graph, size))


VOTES = 256
"""Ends of programs, merged where the search merges, that have a say in which denotation is the most probable."""


def elect_programs(domain: Domain, graph: Graph, size: int) -> Programs:
    """A program of each of the most probable denotations, with the probability of the denotation.

    That is the sum over the programs found that lead to it. The program is its most probable end, and from there the
    most probable predecessors.
    """
    end, last, log_votes, same = _vote(domain, graph, size)
    first = jnp.argmax(same, axis=1) == jnp.arange(same.shape[0])  # its most probable end
    log_votes, chosen = jax.lax.top_k(jnp.where(first, log_votes, -jnp.inf), min(size, same.shape[0]))
    return _follow_back(graph, end[chosen], last[chosen], log_votes)


def log_denotations(domain: Domain, graph: Graph, size: int) -> Float[Array, " P"]:
    """For each of `complete_programs`, the probability of all programs found that lead where it leads."""
    _, _, log_votes, _ = _vote(domain, graph, size)
    return log_votes[:size]


def _vote(
    domain: Domain, graph: Graph, size: int
) -> tuple[Int[Array, " n"], Int[Array, " n"], Float[Array, " n"], Bool[Array, "n n"]]:
    """The most probable ends (see `_ends`), the probability of their denotations, and which have the same one."""
    tokens = graph.expansion.kind.shape[2]
    end, last, log_probability = _ends(graph, max(VOTES, size))
    before = choose(graph.beam.states, (end, last // tokens))
    successors, _ = jax.vmap(domain.expand)(before)
    reached = choose(successors, (jnp.arange(len(last)), last % tokens))
    keys = jax.vmap(domain.denotation_key)(reached)
    same = jnp.all(keys[:, None] == keys[None, :], axis=-1)
    return end, last, jax.nn.logsumexp(jnp.where(same, log_probability[None, :], -jnp.inf), axis=1), same


def _ends(graph: Graph, size: int) -> tuple[Int[Array, " n"], Int[Array, " n"], Float[Array, " n"]]:
    """The most probable transitions to correct terminal states: iteration, slot * A + token, log-probability."""
    _, beam, tokens = graph.expansion.kind.shape
    log_prefixes = graph.beam.log_chart[:, :, None] + graph.expansion.log_policy
    scores = jnp.where(graph.expansion.kind == CORRECT, log_prefixes, -jnp.inf).reshape(-1)
    log_probability, transition = jax.lax.top_k(scores, min(size, scores.shape[0]))
    return transition // (beam * tokens), transition % (beam * tokens), log_probability


def extract_programs(
    domain: Domain, graph: Graph, successor: Int[Array, "V A"], instructions: Int[Array, ""], size: int
) -> Programs:
    """Beam search with π over the part of the graph that reaches correct terminal states.

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


def _follow_back(
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
    """How many incorrect terminal states, counted per iteration, got no program."""


def extract_negatives(graph: Graph, size: int, space: str) -> Negatives:
    """The incorrect terminal states with the most probable last transition, each with the path that it ends."""
    iterations = graph.expansion.kind.shape[0]
    log_prefixes = graph.beam.log_chart[:, :, None] + graph.expansion.log_policy
    scores = jnp.where(graph.expansion.kind == INCORRECT, log_prefixes, -jnp.inf).reshape(iterations, -1)
    groups = graph.expansion.representative.reshape(iterations, -1)
    if space == "program":  # where the search itself did not merge
        keys = graph.expansion.successor_keys.reshape(iterations, -1, 2)
        groups = jax.vmap(representatives)(keys, jnp.isfinite(scores))

    def best_of_iteration(scores, group):
        best = best_of_group(scores, group)
        distinct = jnp.where(jnp.isfinite(scores), best[group], -1) == jnp.arange(scores.shape[0])
        top, transition = jax.lax.top_k(jnp.where(distinct, scores, -jnp.inf), min(size, scores.shape[0]))
        return top, transition, jnp.sum(distinct)

    top, transition, count = jax.vmap(best_of_iteration)(scores, groups)
    keys = jax.vmap(lambda keys, index: keys.reshape(-1, 2)[index])(graph.expansion.successor_keys, transition)
    # A state reached at several iterations counts once, where it is most probable.
    order = jnp.argsort(-top.reshape(-1), stable=True)
    sorted_top = top.reshape(-1)[order]
    first = representatives(keys.reshape(-1, 2)[order], jnp.isfinite(sorted_top)) == jnp.arange(order.shape[0])
    log_probability, place = jax.lax.top_k(jnp.where(first, sorted_top, -jnp.inf), min(size, order.shape[0]))
    origin = order[place]
    end, last = origin // top.shape[1], transition.reshape(-1)[origin]
    programs = _follow_back(graph, end, last, log_probability)
    return Negatives(programs, jnp.sum(count) - jnp.sum(programs.found))
