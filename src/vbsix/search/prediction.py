"""Prediction: beam search with the policy alone. Evaluation and parsers both predict here."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from vbsix.data.examples import Arrays
from vbsix.domains.base import Domain, State
from vbsix.domains.execution import apply_token, to_value
from vbsix.models.ensemble import Ensemble
from vbsix.models.functions import PolicyFunction
from vbsix.models.heads import policy_head
from vbsix.models.policy import PolicyNetwork
from vbsix.search.beam import CORRECT, Graph, Problem, beam_search, outcome_of
from vbsix.search.extraction import Programs, complete_programs, follow_back, most_probable_ends
from vbsix.search.select import greedy
from vbsix.search.sharding import sharded_map
from vbsix.utilities.displays import display_html
from vbsix.utilities.trees import choose

DENOTATION_ENDS = 256
"""How many of the most probable ends of programs count towards the probability of their denotation."""


@dataclass(frozen=True)
class Reading:
    """A program for a request, as text."""

    tokens: tuple[str, ...]
    commands: tuple[str, ...]
    """The tokens of each utterance's command."""
    command_probabilities: tuple[float, ...]
    """The probability of each command, given those before it."""
    worlds: tuple[str, ...]
    """The world after each utterance."""
    probability: float
    """Of the program; for an ensemble, of all programs found that lead to its last world."""
    confidence: float
    """How probable it is that its last world is right. A parser calibrates it on dev; see `Parser.parse`."""
    share: float
    """Its probability, divided by that of all complete programs in the beam."""
    command_confidences: tuple[float, ...] = ()
    """How probable it is that each command is right, given those before it."""

    @property
    def denotations(self) -> tuple[Any, ...]:
        """The worlds as Python values where they are JSON, as those of a language in plain Python are."""
        return tuple(map(to_value, self.worlds))


@dataclass(frozen=True)
class Outcome:
    """The readings that end in the same world."""

    world: str
    confidence: float
    readings: tuple[Reading, ...]
    """The most probable first."""


@dataclass(frozen=True)
class Parse:
    """What a parser makes of a request."""

    world: str
    utterances: tuple[str, ...]
    readings: tuple[Reading, ...]
    """The most probable first; none if the beam completed no program."""
    unknown_words: tuple[str, ...]
    """Words that the model does not know; they all share one vector."""
    unread_words: tuple[str, ...]
    """Words at the end of utterances that are longer than the model reads."""
    domain: str = ""
    """The name of the language."""
    understood: bool = True
    """False if a command of the best reading is too doubtful: its words are rare or unknown, it is improbable, or it
    leaves out how its instruction describes somebody who comes. Also False if there is a reason why an instruction
    cannot be done."""
    reasons: tuple[str | None, ...] = ()
    """For each instruction why it cannot be done, such as "beaker 7 is full"; None where nothing says so."""

    @property
    def context(self) -> Any:
        """The world, as a Python value where it is JSON."""
        return to_value(self.world)

    @property
    def instructions(self) -> tuple[str, ...]:
        """The utterances."""
        return self.utterances

    @property
    def confidence(self) -> float:
        """That of the best reading."""
        return self.readings[0].confidence if self.readings else 0.0

    @property
    def outcomes(self) -> tuple[Outcome, ...]:
        """The readings grouped by their last world, the group of the best reading first, then by confidence."""
        groups: dict[str, list[Reading]] = {}
        for reading in self.readings:
            groups.setdefault(reading.worlds[-1], []).append(reading)
        outcomes = [Outcome(world, group[0].confidence, tuple(group)) for world, group in groups.items()]
        return (*outcomes[:1], *sorted(outcomes[1:], key=lambda outcome: -outcome.confidence))

    def _repr_html_(self) -> str:
        return display_html("parse", self)


class Predictions(NamedTuple):
    """The P most probable programs of each request."""

    tokens: Int[Array, "*N P L"]
    """Token ids, then -1."""
    log_probability: Float[Array, "*N P"]
    """Of the whole program; -inf for a place without one."""
    log_denotation: Float[Array, "*N P"]
    """Of all programs found that have its denotation."""
    instruction: Int[Array, "*N P L"]
    """Which instruction each token belongs to."""
    log_commands: Float[Array, "*N P M"]
    """Of each command, given those before it."""
    states: State
    """After each command; leaves [*N, P, M, ...]."""
    log_complete: Float[Array, "*N"]
    """Of all complete programs in the beam."""


def predict(
    domain: Domain,
    policy: PolicyNetwork | Ensemble,
    projections: Float[Any, "V projected"],
    request: Arrays,
    allowed: Bool[Any, "L A"] | None = None,
    *,
    beam: int,
    best: int = 1,
    longest: Int[Array, ""] | None = None,
) -> Predictions:
    """The most probable programs for one request.

    A single policy predicts its most probable program, as in the paper. An ensemble predicts the most probable
    denotation, marginalising over the programs that lead to it, and searches in execution space for that.

    Args:
        domain: the language.
        policy: one policy or an ensemble.
        projections: the policy's projections of all words; see `project_words`.
        request: the example, without a target.
        allowed: see `Problem`.
        beam: K.
        best: how many programs to return.
        longest: see `beam_search`.
    """
    marginalise = isinstance(policy, Ensemble)
    problem = Problem(request.world, request.instructions, None, allowed)
    head, space = policy_head(domain, policy, projections, request.words), "execution" if marginalise else "program"
    most = request.words.shape[0]
    graph = search_greedily(domain, head, problem, instructions=most, beam=beam, space=space, longest=longest)
    programs = denotation_programs(domain, graph, best) if marginalise else complete_programs(graph, best)
    log_programs = graph.beam.log_chart[:, :, None] + graph.expansion.log_policy
    return Predictions(
        programs.tokens,
        programs.log_probability,
        programs.log_probability if marginalise else log_denotations(domain, graph, best),
        *trace(domain, graph, programs, most),
        log_complete=jax.nn.logsumexp(jnp.where(graph.expansion.kind == CORRECT, log_programs, -jnp.inf)),
    )


def search_greedily(
    domain: Domain,
    policy: PolicyFunction,
    problem: Problem,
    *,
    instructions: int,
    beam: int,
    space: str,
    longest: Int[Array, ""] | None = None,
) -> Graph:
    """The beam search that keeps the most probable states; see `beam_search`."""
    select, outcome = greedy(beam), outcome_of(domain, problem)
    sizes: dict[str, Any] = {"instructions": instructions, "beam": beam, "space": space, "longest": longest}
    return beam_search(domain, policy, problem, jax.random.key(0), select=select, outcome=outcome, **sizes)


def map_requests(function: Callable[..., Any], domain: Domain, needed: Any, requests: Arrays) -> Any:
    """`function(*needed, request, longest)` for each request of a batch, shared out over the cores of a CPU.

    `longest` is the largest number of instructions among those that are computed together.
    """

    def of_shard(needed: Any, shard: Arrays) -> Any:
        longest = jnp.max(shard.instructions)
        return jax.tree.map(lambda leaf: leaf[None], jax.vmap(lambda one: function(*needed, one, longest))(shard))

    needed, batch = jax.tree.map(jnp.asarray, (needed, requests))
    found = sharded_map(of_shard, domain, len(requests.words))(needed, batch)
    return jax.tree.map(lambda leaf: leaf[0], found)


def denotation_programs(domain: Domain, graph: Graph, size: int) -> Programs:
    """A program for each of the most probable denotations, with the probability of the denotation.

    That is the sum over the programs found. The program is the most probable end that leads to the denotation, and from
    there the most probable predecessors.
    """
    end, last, log_marginal, same = _marginalise(domain, graph, size)
    first = jnp.argmax(same, axis=1) == jnp.arange(same.shape[0])  # its most probable end
    log_marginal, chosen = jax.lax.top_k(jnp.where(first, log_marginal, -jnp.inf), min(size, same.shape[0]))
    return follow_back(graph, end[chosen], last[chosen], log_marginal)


def log_denotations(domain: Domain, graph: Graph, size: int) -> Float[Array, " P"]:
    """For each of `complete_programs`, the log-probability of all programs found with its denotation."""
    return _marginalise(domain, graph, size)[2][:size]


def _marginalise(
    domain: Domain, graph: Graph, size: int
) -> tuple[Int[Array, " n"], Int[Array, " n"], Float[Array, " n"], Bool[Array, "n n"]]:
    """The most probable ends of programs, the probability of their denotations, and which have the same one."""
    tokens = graph.expansion.kind.shape[2]
    end, last, log_probability = most_probable_ends(graph, max(DENOTATION_ENDS, size))
    before = choose(graph.beam.states, (end, last // tokens))
    reached, _ = _apply(domain, before, last % tokens)
    keys = jax.vmap(domain.denotation_key)(reached)
    same = jnp.all(keys[:, None] == keys[None, :], axis=-1)
    return end, last, jax.nn.logsumexp(jnp.where(same, log_probability[None, :], -jnp.inf), axis=1), same


def trace(
    domain: Domain, graph: Graph, programs: Programs, most: int
) -> tuple[Int[Array, "P L"], Float[Array, "P M"], State]:
    """For each program, each token's instruction, each command's log-probability, and the state after each command.

    `most` is the largest number of instructions.
    """
    return jax.vmap(lambda tokens, vertices: _trace(domain, graph, tokens, vertices, most))(
        programs.tokens, programs.vertices
    )


def _trace(
    domain: Domain, graph: Graph, tokens: Int[Array, " L"], vertices: Int[Array, " L"], most: int
) -> tuple[Int[Array, " L"], Float[Array, " M"], State]:
    """Each token's instruction, each command's log-probability, and the state after each command of a program."""
    inside, tokens, vertices = tokens >= 0, jnp.maximum(tokens, 0), jnp.maximum(vertices, 0)
    before = jax.tree.map(lambda leaf: leaf.reshape(-1, *leaf.shape[2:])[vertices], graph.beam.states)
    log_policy = graph.expansion.log_policy.reshape(-1, len(domain.tokens))[vertices, tokens]
    after, _ = _apply(domain, before, tokens)
    done_before, done_after = (jax.vmap(domain.instructions_done)(states) for states in (before, after))
    belongs = inside[:, None] & (done_before[:, None] == jnp.arange(most)[None, :])
    ends = jnp.argmax(belongs & (done_after > done_before)[:, None], axis=0)
    log_commands = jnp.sum(jnp.where(belongs, log_policy[:, None], 0.0), axis=0)
    return done_before, log_commands, choose(after, ends)


def _apply(domain: Domain, states: State, tokens: Int[Array, " n"]) -> tuple[State, Bool[Array, " n"]]:
    """Each state after its token."""
    return jax.vmap(functools.partial(apply_token, domain))(states, tokens)


def to_readings(domain: Domain, predicted: Predictions, count: int) -> tuple[Reading, ...]:
    """The programs predicted for one request of `count` utterances, as text."""
    log_complete = float(predicted.log_complete)
    places = np.flatnonzero(np.isfinite(predicted.log_probability))
    return tuple(_to_reading(domain, _entry(predicted, int(place)), log_complete, count) for place in places)


def _entry(predicted: Predictions, place: int) -> Predictions:
    """One program out of those predicted for a request."""
    shared = predicted._replace(log_complete=np.zeros(0))
    return jax.tree.map(lambda leaf: leaf[place] if leaf.size else leaf, shared)


def _to_reading(domain: Domain, program: Predictions, log_complete: float, count: int) -> Reading:
    tokens = [domain.tokens[token] for token in program.tokens if token >= 0]
    return Reading(
        tokens=tuple(tokens),
        commands=tuple(
            " ".join(token for token, place in zip(tokens, program.instruction, strict=False) if place == number)
            for number in range(count)
        ),
        command_probabilities=tuple(np.exp(program.log_commands[:count]).tolist()),
        worlds=tuple(_worlds(domain, program.states, count)),
        probability=float(np.exp(program.log_probability)),
        confidence=float(min(1.0, np.exp(program.log_denotation - log_complete))),
        share=float(min(1.0, np.exp(program.log_probability - log_complete))),
    )


def _worlds(domain: Domain, states: State, count: int) -> Sequence[str]:
    return [domain.format_target(domain.world(choose(states, number))) for number in range(count)]
