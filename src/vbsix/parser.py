"""A trained parser: a world and utterances in, programs with their probabilities and worlds out.

It reads words by their projections into the encoder's input layer, whether it comes from a run's folder or from an
exported model (see `vbsix.loading`). So a model is one small file, and holds no word vectors of others.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from vbsix.data.examples import Arrays, Example, to_arrays
from vbsix.data.words import Words
from vbsix.domains.base import Domain, State
from vbsix.errors import UnknownName, VbsixError, naming
from vbsix.files import write_tensors
from vbsix.models import Committee, Policy
from vbsix.models.policy import PolicyTables
from vbsix.search import Graph, Problem, SearchConfig, beam_search, complete_programs, elect_programs
from vbsix.search.beam import CORRECT
from vbsix.search.merging import choose
from vbsix.search.programs import log_denotations
from vbsix.training.checkpoint import to_tensors
from vbsix.training.config import Config

MOST_UTTERANCES = 80
"""Longest request that is parsed."""
_USUAL_UTTERANCES = 5
"""Requests up to this length are parsed by the same compiled function, longer ones by one for twice the length."""


@dataclass(frozen=True)
class Reading:
    """A program for a request."""

    tokens: tuple[str, ...]
    commands: tuple[str, ...]
    """The tokens of each utterance's command."""
    command_probabilities: tuple[float, ...]
    """The probability of each command, given those before it."""
    worlds: tuple[str, ...]
    """The world after each utterance."""
    probability: float
    """Of the program; of a committee's reading, of all programs found that lead to its last world."""
    confidence: float
    """How probable its last world is: that of the programs that lead there (of the 256 best), divided by that of all
    complete programs which the beam found."""
    share: float
    """Its probability divided likewise."""


@dataclass(frozen=True)
class Parse:
    """What a parser makes of a request."""

    world: str
    utterances: tuple[str, ...]
    readings: tuple[Reading, ...]
    """The most probable first; none if the beam found no complete program."""
    unknown_words: tuple[str, ...]
    """Words that the model does not know; it reads them all alike."""
    unread_words: tuple[str, ...]
    """Words at the end of utterances that are longer than the model reads."""

    @property
    def confidence(self) -> float:
        """That of the best reading."""
        return self.readings[0].confidence if self.readings else 0.0


@dataclass(frozen=True, eq=False)
class Parser:
    """A policy with all that it needs to parse; `vbsix.load` makes one.

    Attributes:
        domain: the language.
        policy: without the part that projects words; that of one seed, or of several which decide together.
        words: the vocabulary; the vectors are projections.
        config: the settings of the run.
        provenance: method, steps, seed (or seeds), name of the data and version that the model comes from.
    """

    domain: Domain
    policy: Policy | Committee
    words: Words
    config: Config
    provenance: dict[str, Any]

    def parse(
        self,
        world: Any,
        utterances: Sequence[str],
        best: int = 1,
        room: int = _USUAL_UTTERANCES,
        begin: Sequence[str] | None = None,
    ) -> Parse:
        """Reads utterances, each as a command, beginning in a world given in its text form, or as JSON.

        Args:
            world: the world before the first utterance.
            utterances: instructions in their order.
            best: how many readings are wanted; fewer come if the beam finds fewer.
            room: for how many utterances the function is compiled; less is faster, and more compiles once more.
            begin: commands that all readings begin with; None compiles once more than a list, an empty one too.

        Raises:
            VbsixError: the world does not parse, an utterance is empty, or a command has a token that is not known.
        """
        return self.parse_many([(world, utterances)], best, room, begin)[0]

    def parse_many(
        self,
        requests: Sequence[tuple[Any, Sequence[str]]],
        best: int = 1,
        room: int = _USUAL_UTTERANCES,
        begin: Sequence[str] | None = None,
    ) -> list[Parse]:
        """Parses many worlds with their utterances, in batches; all readings of all of them begin with `begin`."""
        beam = self.config.run.evaluation_beam
        if not 1 <= best <= beam:
            raise VbsixError(f"{best} readings cannot be given: ask for 1 to {beam}, the beam of this model.")
        examples = [self._example(world, utterances) for world, utterances in requests]
        capacity = room
        while examples and capacity < max(len(example.instructions) for example in examples):
            capacity *= 2
        prefix = None if begin is None else self._prefix(begin, capacity)
        batch = min(self.config.run.evaluation_batch, len(examples))
        parses = []
        for first in range(0, len(examples), max(batch, 1)):
            part = examples[first : first + batch]
            filled = part + part[-1:] * (batch - len(part))
            arrays = to_arrays(self.domain, filled, self.words, capacity, self.config.data.max_words)
            with self.domain.alone():
                predicted = predict_readings(
                    self.domain, self.policy, self.words.vectors, arrays, prefix, beam=beam, best=best
                )
                predicted = jax.tree.map(np.asarray, predicted)
                self.domain.raise_failure()
                parses += [self._parse(example, _at(predicted, place)) for place, example in enumerate(part)]
        return parses

    def read(self, utterances: Sequence[str]) -> PolicyTables:
        """What the policy needs to know of utterances, for a search of one's own."""
        return _prepare(self.policy, self.words.vectors, self.word_ids(utterances, len(utterances)))

    def word_ids(self, utterances: Sequence[str], room: int) -> Int[np.ndarray, "M T"]:
        """The ids of the words that are read of each utterance, with room for so many utterances."""
        _require_words(utterances)
        words = np.zeros((room, self.config.data.max_words), np.int32)
        for row, utterance in zip(words, utterances, strict=False):
            known = self.words.encode(utterance)[: len(row)]
            row[: len(known)] = known
        return words

    def unknown_words(self, utterances: Sequence[str]) -> tuple[str, ...]:
        """The words of utterances that the model does not know, each once."""
        return tuple(dict.fromkeys(word for utterance in utterances for word in self.words.unknown(utterance)))

    def export(self, path: str | Path, half: bool = False) -> None:
        """Writes the model as one file from which `vbsix.load` makes the same parser.

        Args:
            path: a file, by custom `*.safetensors`.
            half: numbers of half the precision, in a file of half the size.
        """
        tensors = {**to_tensors(self.policy), "words": self.words.vectors}
        if half:
            with np.errstate(over="ignore"):
                tensors = {name: array.astype(np.float16) for name, array in tensors.items()}
        require_finite(tensors, "the model as exported")
        metadata = {"config": asdict(self.config), "tokens": self.domain.tokens, "words": self.words.words}
        metadata |= {"attributes": self.domain.shown(), "provenance": self.provenance}
        write_tensors(Path(path), tensors, metadata)

    def _example(self, world: Any, utterances: Sequence[str]) -> Example:
        """The request, checked, as an example without a target."""
        if not 1 <= len(utterances) <= MOST_UTTERANCES:
            raise VbsixError(f"{len(utterances)} utterances: expected 1 to {MOST_UTTERANCES}.")
        _require_words(utterances)
        with naming("world"):
            world = self.domain.world_text(world)
            self.domain.parse_world(world)
        return Example("", world, tuple(utterances), None)

    def _prefix(self, commands: Sequence[str], room: int) -> Int[np.ndarray, " L"]:
        """The token ids of commands, then -1, with room for so many commands."""
        tokens = " ".join(commands).split()
        prefix = np.full(room * self.domain.max_tokens_per_instruction, -1, np.int32)
        if len(tokens) > len(prefix):
            raise VbsixError(f"the commands to begin with have {len(tokens)} tokens, more than {len(prefix)}.")
        for place, token in enumerate(tokens):
            if token not in self.domain.tokens:
                raise UnknownName("token", token, self.domain.tokens)
            prefix[place] = self.domain.tokens.index(token)
        return prefix

    def _parse(self, example: Example, predicted: Predictions) -> Parse:
        most = self.config.data.max_words
        return Parse(
            world=example.context,
            utterances=example.instructions,
            readings=tuple(
                self._reading(_at(predicted, place), float(predicted.log_found), len(example.instructions))
                for place in np.flatnonzero(np.isfinite(predicted.log_probability))
            ),
            unknown_words=self.unknown_words(example.instructions),
            unread_words=tuple(word for utterance in example.instructions for word in utterance.split()[most:]),
        )

    def _reading(self, program: Predictions, log_found: float, count: int) -> Reading:
        tokens = [self.domain.tokens[token] for token in program.tokens if token >= 0]
        commands = [
            " ".join(token for token, place in zip(tokens, program.instruction, strict=False) if place == number)
            for number in range(count)
        ]
        states = [_at(program.states, number) for number in range(count)]
        return Reading(
            tokens=tuple(tokens),
            commands=tuple(commands),
            command_probabilities=tuple(np.exp(program.log_commands[:count]).tolist()),
            worlds=tuple(self.domain.format_target(self.domain.world(state)) for state in states),
            probability=float(np.exp(program.log_probability)),
            confidence=float(min(1.0, np.exp(program.log_denotation - log_found))),
            share=float(min(1.0, np.exp(program.log_probability - log_found))),
        )


class Predictions(NamedTuple):
    """The P most probable programs of each of N requests."""

    tokens: Int[Array, "*N P L"]
    """Token ids, then -1."""
    log_probability: Float[Array, "*N P"]
    """Of the whole program; -inf for a place without one."""
    log_denotation: Float[Array, "*N P"]
    """Of all programs found that lead where it leads."""
    instruction: Int[Array, "*N P L"]
    """Which instruction each token belongs to."""
    log_commands: Float[Array, "*N P M"]
    """Of each command, given those before it."""
    states: State
    """After each command; leaves [N, P, M, ...]."""
    log_found: Float[Array, "*N"]
    """Of all complete programs that the beam found together."""


@functools.partial(jax.jit, static_argnums=0, static_argnames=("beam", "best"))
def predict_readings(
    domain: Domain,
    policy: Policy | Committee,
    projections: Float[Any, "V projected"],
    requests: Arrays,
    prefix: Int[Any, " L"] | None = None,
    *,
    beam: int,
    best: int,
) -> Predictions:
    """Beam search with the policy alone, for a batch of requests; all programs have the prefix.

    One policy says which programs it holds for the most probable, as in the paper. A committee says which worlds, by
    the probability of all programs that lead there, and so searches in execution space.
    """
    votes = isinstance(policy, Committee)
    search = SearchConfig(space="execution" if votes else "program", beam=beam, epsilon=0.0)

    def of_request(request: Arrays) -> Predictions:
        actor = policy.for_example(domain, _prepare(policy, projections, request.words))
        problem = Problem(request.world, request.instructions, None, prefix)
        most = request.words.shape[0]
        graph = beam_search(domain, actor, None, problem, jax.random.key(0), instructions=most, config=search)
        programs = elect_programs(domain, graph, best) if votes else complete_programs(graph, best)
        follow = jax.vmap(lambda tokens, vertices: _follow(domain, graph, tokens, vertices, most))
        log_complete = graph.beam.log_chart[:, :, None] + graph.expansion.log_policy
        return Predictions(
            programs.tokens,
            programs.log_probability,
            programs.log_probability if votes else log_denotations(domain, graph, best),
            *follow(programs.tokens, programs.vertices),
            log_found=jax.nn.logsumexp(jnp.where(graph.expansion.kind == CORRECT, log_complete, -jnp.inf)),
        )

    return jax.vmap(of_request)(jax.tree.map(jnp.asarray, requests))


def _follow(
    domain: Domain, graph: Graph, tokens: Int[Array, " L"], vertices: Int[Array, " L"], most: int
) -> tuple[Int[Array, " L"], Float[Array, " M"], State]:
    """Each token's instruction, each command's log-probability, and the state after each command of a program."""
    inside, tokens, vertices = tokens >= 0, jnp.maximum(tokens, 0), jnp.maximum(vertices, 0)
    before = jax.tree.map(lambda leaf: leaf.reshape(-1, *leaf.shape[2:])[vertices], graph.beam.states)
    log_policy = graph.expansion.log_policy.reshape(-1, len(domain.tokens))[vertices, tokens]
    successors, _ = jax.vmap(domain.expand)(before)
    after = choose(successors, (jnp.arange(len(tokens)), tokens))
    done_before, done_after = (jax.vmap(domain.instructions_done)(states) for states in (before, after))
    belongs = inside[:, None] & (done_before[:, None] == jnp.arange(most)[None, :])
    ends = jnp.argmax(belongs & (done_after > done_before)[:, None], axis=0)
    log_commands = jnp.sum(jnp.where(belongs, log_policy[:, None], 0.0), axis=0)
    return done_before, log_commands, choose(after, ends)


def _prepare(
    policy: Policy | Committee, projections: Float[Any, "V projected"], words: Int[Any, "M T"]
) -> PolicyTables:
    return policy.read(jnp.asarray(projections)[words], jnp.asarray(words) > 0)


def _require_words(utterances: Sequence[str]) -> None:
    for number, utterance in enumerate(utterances, start=1):
        if not utterance.strip():
            raise VbsixError(f"utterance {number} is empty.")


def _at(tree: Any, place: Any) -> Any:
    """An element along the first axis; what has no axis is passed on."""
    return jax.tree.map(lambda leaf: leaf[place] if np.ndim(leaf) else leaf, tree)


def require_finite(tensors: dict[str, np.ndarray], where: str) -> None:
    """Raises an error that names the tensors with other numbers."""
    wrong = sorted(name for name, array in tensors.items() if not np.isfinite(array).all())
    if wrong:
        raise VbsixError(f"{where}: not finite numbers: {', '.join(wrong)}.")
