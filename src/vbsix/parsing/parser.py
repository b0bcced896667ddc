"""A trained parser: a world and utterances in, programs with their probabilities and worlds out.

It reads words by their projections into the encoder's input layer, whether it comes from a run's folder or from an
exported model (see `vbsix.parsing.loading`). So a model is one small file, and holds no word vectors of others.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import jax
import numpy as np
from jaxtyping import Bool, Float, Int

from vbsix.config.presets import full_name
from vbsix.config.schema import Config
from vbsix.data.examples import Arrays, Example, to_arrays
from vbsix.data.words import UNKNOWN, Words
from vbsix.domains.base import Domain
from vbsix.evaluation.confidence import FALLBACK_THRESHOLD, ConfidenceModel, fallback_steps
from vbsix.models import Ensemble, PolicyNetwork
from vbsix.models.critic import TrainedCritic
from vbsix.parsing.impossible import find_failures, leaves_out, missing
from vbsix.runs.checkpoints import to_tensors
from vbsix.runs.identity import Behaviour, identify
from vbsix.search.prediction import Parse, Predictions, Reading, map_requests, predict, to_readings
from vbsix.utilities.displays import display_html
from vbsix.utilities.errors import UnknownName, VbsixError, naming
from vbsix.utilities.files import checksum, sha256, write_tensors
from vbsix.utilities.renaming import renamed
from vbsix.utilities.trees import choose

CRITIC = "critic"
"""How the names of the critic's tensors begin in an exported model."""
MOST_UTTERANCES = 80
"""Longest request that is parsed."""
_USUAL_UTTERANCES = 5
"""Requests up to this length are parsed by the same compiled function, longer ones by one for twice the length."""


@dataclass(frozen=True, eq=False)
class Parser:
    """A policy with all that it needs to parse; `vbsix.load` makes one.

    Attributes:
        domain: the language.
        policy: without the parameters that project words; one policy, or an ensemble.
        words: the vocabulary; its vectors are projections.
        config: the settings of the run.
        provenance: method, recipe, variant, steps, seed (or seeds), name of the data and version.
        confidence_model: what calibrates confidences, from the dev set of the run; None without one.
        critic: the critic that was trained beside the policy, for searches with a target; None without one.
        behaviour: what a language in plain Python did when it was trained; None where that is not known.
    """

    domain: Domain
    policy: PolicyNetwork | Ensemble
    words: Words
    config: Config
    provenance: dict[str, Any]
    confidence_model: ConfidenceModel | None = None
    critic: TrainedCritic | None = None
    behaviour: Behaviour | None = None

    def __repr__(self) -> str:
        return f"<parser for {self.domain.name}: {full_name(self.config)}, {len(self.words.words)} words>"

    def _repr_html_(self) -> str:
        return display_html("parser", self)

    @renamed(world="context", utterances="instructions")
    def parse(
        self,
        context: Any,
        instructions: Sequence[str],
        best: int = 1,
        room: int = _USUAL_UTTERANCES,
        begin: Sequence[str] | None = None,
        explain: bool = True,
    ) -> Parse:
        """Reads instructions, each as a command, beginning in a context given in its text form, or as JSON.

        The confidence of a reading estimates how often such a reading is right. It falls with unknown and rare words,
        and with improbable commands. A model without calibration takes the probability times the share of known words.
        `Parse.understood` is False if a command is less certain than almost all right ones on dev, or if an
        instruction cannot be done in its world (`Parse.reasons`).

        Args:
            context: the world before the first instruction.
            instructions: the instructions in their order.
            best: how many readings are wanted; fewer come if the beam finds fewer.
            room: for how many utterances the function is compiled; less is faster, and more compiles once more.
            begin: commands that all readings begin with; None compiles once more than a list, an empty one too.
            explain: whether to look further for reasons why instructions cannot be done. In the domains of the corpus,
                that reads each new instruction in 32 other worlds.

        Raises:
            VbsixError: the world does not parse, an utterance is empty, or a command has a token that is not known.
        """
        return self.parse_many([(context, instructions)], best, room, begin, explain)[0]

    def parse_many(
        self,
        requests: Sequence[tuple[Any, Sequence[str]]],
        best: int = 1,
        room: int = _USUAL_UTTERANCES,
        begin: Sequence[str] | None = None,
        explain: bool = False,
    ) -> list[Parse]:
        """Parses many worlds with their utterances, in batches; all readings of all of them begin with `begin`.

        With `explain`, as in `parse`, instructions that cannot be done in their world are not understood. It takes ten
        times as long.
        """
        parses = self._parse_examples([self._example(*request) for request in requests], best, room, begin)
        return self._explain(parses, len(begin or ())) if explain else parses

    def _explain(self, parses: Sequence[Parse], chosen: int = 0) -> list[Parse]:
        """The parses with more reasons why instructions cannot be done."""
        found = []
        for parse, failures in zip(parses, find_failures(self, parses, chosen), strict=True):
            reasons = tuple(known or failure for known, failure in zip(parse.reasons, failures, strict=True))
            found.append(replace(parse, reasons=reasons, understood=parse.understood and not any(reasons)))
        return found

    def parse_each(
        self, requests: Sequence[tuple[Any, Sequence[str]]], best: int = 1, explain: bool = False
    ) -> list[Parse | VbsixError]:
        """Parses many worlds with their utterances, in batches. A request that cannot be parsed gives its error."""
        self._check_best(best)
        found: dict[int, Parse | VbsixError] = {}
        examples: dict[int, Example] = {}
        for place, request in enumerate(requests):
            try:
                examples[place] = self._example(*request)
            except VbsixError as error:
                found[place] = error
        try:
            parses = self._parse_examples(list(examples.values()), best)
            parses = self._explain(parses) if explain else parses
        except VbsixError as error:
            if len(requests) == 1:
                return [error]
            # A language in Python failed for one.
            return [self.parse_each([request], best, explain)[0] for request in requests]
        found |= zip(examples, parses, strict=True)
        return [found[place] for place in range(len(requests))]

    def _parse_examples(
        self,
        examples: Sequence[Example],
        best: int,
        room: int = _USUAL_UTTERANCES,
        begin: Sequence[str] | None = None,
    ) -> list[Parse]:
        """A batch holds examples of about the same length, because it takes as long as its longest example."""
        self._check_best(best)
        order = sorted(range(len(examples)), key=lambda place: len(examples[place].instructions))
        size = self.config.run.evaluation_batch
        parses: dict[int, Parse] = {}
        for first in range(0, len(order), size):
            places = order[first : first + size]
            parses |= zip(
                places, self._parse_batch([examples[place] for place in places], best, room, begin), strict=True
            )
        return [parses[place] for place in range(len(examples))]

    def _check_best(self, best: int) -> None:
        beam = self.config.run.evaluation_beam
        if not 1 <= best <= beam:
            raise VbsixError(f"{best} readings cannot be given: ask for 1 to {beam}, the beam of this model.")

    def _parse_batch(
        self, examples: Sequence[Example], best: int, room: int, begin: Sequence[str] | None
    ) -> list[Parse]:
        while room < max(len(example.instructions) for example in examples):
            room *= 2
        allowed = None if begin is None else self._allowed(begin, room)
        # Sizes are powers of two, so that few are compiled.
        size = min(self.config.run.evaluation_batch, 1 << (len(examples) - 1).bit_length())
        filled = [*examples, *[examples[-1]] * (size - len(examples))]
        arrays = to_arrays(self.domain, filled, self.words, room, self.config.data.max_words)
        with self.domain.alone():
            predicted = predict_requests(
                self.domain,
                self.policy,
                self.words.vectors,
                arrays,
                allowed,
                beam=self.config.run.evaluation_beam,
                best=best,
            )
            predicted = jax.tree.map(np.asarray, predicted)
            self.domain.raise_failure()
            chosen = len(begin or ())
            return [self._parse(example, choose(predicted, place), chosen) for place, example in enumerate(examples)]

    def fingerprint(self) -> str:
        """What tells this parser from others: a hash of all that its answers depend on."""
        return sha256((checksum(self._tensors()) + json.dumps(self._metadata(), sort_keys=True)).encode())

    def word_ids(self, utterances: Sequence[str], room: int) -> Int[np.ndarray, "M T"]:
        """The ids of the words that are read of each utterance, padded to `room` utterances."""
        _require_words(utterances)
        words = np.zeros((room, self.config.data.max_words), np.int32)
        for row, utterance in zip(words, utterances, strict=False):
            known = self.words.encode(utterance)[: len(row)]
            row[: len(known)] = known
        return words

    def unknown_words(self, utterances: Sequence[str]) -> tuple[str, ...]:
        """The words of utterances that the model does not know, each once."""
        return tuple(dict.fromkeys(word for utterance in utterances for word in self.words.unknown(utterance)))

    def export(self, path: str | Path, half: bool = False, *, critic: bool = False) -> None:
        """Writes the model as one file from which `vbsix.load` makes the same parser.

        The model of a language in plain Python holds up to four contexts of the training data: see `behaviour`.

        Args:
            path: a file, by custom `*.safetensors`.
            half: numbers of half the precision, in a file of half the size.
            critic: whether the file also holds the critic, which parsing does not need.

        Raises:
            VbsixError: there is no critic, or a number is too large for half precision.
        """
        tensors = self._tensors()
        if critic:
            tensors |= self._critic_tensors()
        if half:
            with np.errstate(over="ignore"):
                tensors = {name: array.astype(np.float16) for name, array in tensors.items()}
        require_finite(tensors, "the model as exported")
        write_tensors(Path(path), tensors, {**self._metadata(), "provenance": self.provenance})

    def _tensors(self) -> dict[str, np.ndarray]:
        return {**to_tensors(self.policy), "words": self.words.vectors}

    def _metadata(self) -> dict[str, Any]:
        metadata = {"config": asdict(self.config), **self.words.to_json()}
        metadata |= identify(self.domain)._replace(behaviour=self.behaviour).to_json()
        if self.confidence_model is not None:
            metadata["confidence"] = self.confidence_model.to_json()
        return metadata

    def _critic_tensors(self) -> dict[str, np.ndarray]:
        if self.critic is None:
            raise VbsixError(
                "this model has no critic: its method trains none, or it is an ensemble or the policy that was best "
                "on dev."
            )
        return {f"{CRITIC}{name}": array for name, array in to_tensors(self.critic).items()}

    def _example(self, world: Any, utterances: Sequence[str]) -> Example:
        """The request, checked, as an example without a target."""
        if not 1 <= len(utterances) <= MOST_UTTERANCES:
            raise VbsixError(f"{len(utterances)} instructions: expected 1 to {MOST_UTTERANCES}.")
        _require_words(utterances)
        with naming("context"):
            world = self.domain.world_text(world)
            self.domain.parse_world(world)
        return Example("", world, tuple(utterances), None)

    def _allowed(self, commands: Sequence[str], room: int) -> Bool[np.ndarray, "L A"]:
        """The tokens that programs may have at each place to begin with these commands."""
        if not all(command.split() for command in commands):
            raise VbsixError("the commands to begin with: one of them is empty.")
        tokens = " ".join(commands).split()
        length = room * self.domain.max_tokens_per_instruction
        if len(tokens) > length:
            raise VbsixError(f"the commands to begin with have {len(tokens)} tokens, more than {length}.")
        allowed = np.ones((length, len(self.domain.tokens)), bool)
        for place, token in enumerate(tokens):
            if token not in self.domain.tokens:
                raise UnknownName("token", token, self.domain.tokens)
            allowed[place] = np.arange(len(self.domain.tokens)) == self.domain.tokens.index(token)
        return allowed

    @property
    def threshold(self) -> float:
        """How certain each command must be for a parse to count as understood."""
        return FALLBACK_THRESHOLD if self.confidence_model is None else self.confidence_model.threshold

    def doubts(self, reading: Reading, world: str, utterances: Sequence[str]) -> tuple[bool, ...]:
        """For each command whether it is too doubtful to count as understood.

        It is less certain than the threshold, or leaves out how its instruction describes somebody who comes. Commands
        that were given have confidence 1, and are never doubtful.
        """
        steps = zip(utterances, pairwise([world, *reading.worlds]), reading.command_confidences, strict=True)
        return tuple(
            confidence < self.threshold or (confidence < 1 and leaves_out(self.domain.name, text, *worlds))
            for text, worlds, confidence in steps
        )

    def _parse(self, example: Example, predicted: Predictions, chosen: int) -> Parse:
        """The first `chosen` commands were given, and are certain."""
        most = self.config.data.max_words
        readings = self._with_confidence(
            to_readings(self.domain, predicted, len(example.instructions)), example.instructions, predicted, chosen
        )
        worlds = [example.context, *(readings[0].worlds if readings else ())]
        reasons = tuple(
            None if place < chosen or not readings else missing(self.domain.name, text, *worlds[place : place + 2])
            for place, text in enumerate(example.instructions)
        )
        sure = bool(readings) and not any(self.doubts(readings[0], example.context, example.instructions))
        return Parse(
            world=example.context,
            utterances=example.instructions,
            readings=readings,
            understood=sure and not any(reasons),
            reasons=reasons,
            unknown_words=self.unknown_words(example.instructions),
            unread_words=tuple(word for text in example.instructions for word in self.words.unread(text, most)),
            domain=self.domain.name,
        )

    def _with_confidence(
        self, readings: Sequence[Reading], utterances: Sequence[str], predicted: Predictions, chosen: int
    ) -> tuple[Reading, ...]:
        """Readings with their confidence. All that end in one world share that of the first of them."""
        if not readings:
            return ()
        found = np.isfinite(predicted.log_probability)
        log_commands, log_outcome = predicted.log_commands[found, : len(utterances)], predicted.log_denotation[found]
        most = self.config.data.max_words
        words = [self.words.encode(text)[:most] + [UNKNOWN] * len(self.words.unread(text, most)) for text in utterances]
        steps_of = fallback_steps if self.confidence_model is None else self.confidence_model.steps
        steps = steps_of(np.asarray(log_commands, float), np.asarray(log_outcome, float), words)
        steps[:, :chosen] = 1.0
        ends = [reading.worlds[-1] for reading in readings]
        firsts = [ends.index(end) for end in dict.fromkeys(ends)]
        shared = _share_out(float(np.prod(steps[0])), np.exp(log_outcome[firsts] - log_outcome[0]))
        by_end = {ends[first]: confidence for first, confidence in zip(firsts, shared, strict=True)}
        return tuple(
            replace(reading, confidence=by_end[end], command_confidences=tuple(map(float, row)))
            for reading, end, row in zip(readings, ends, steps, strict=True)
        )


def _share_out(best: float, ratios: Float[np.ndarray, " O"]) -> list[float]:
    """The confidences of outcomes, given the first one's and how probable all are, compared with the first.

    The others share what is left in proportion to their probability, each at most what its probability allows.
    """
    others = ratios[1:]
    allowed = best * np.minimum(others, 1.0)
    return [best, *np.minimum(allowed, (1 - best) * others / max(float(others.sum()), 1e-30)).tolist()]


@functools.partial(jax.jit, static_argnums=0, static_argnames=("beam", "best"))
def predict_requests(
    domain: Domain,
    policy: PolicyNetwork | Ensemble,
    projections: Float[Any, "V projected"],
    requests: Arrays,
    allowed: Bool[Any, "L A"] | None = None,
    *,
    beam: int,
    best: int,
) -> Predictions:
    """`predict` for a batch of requests, shared out over the cores of a CPU; `allowed` is the same for all."""

    def of_request(policy: Any, projections: Any, allowed: Any, request: Arrays, longest: Any) -> Predictions:
        return predict(domain, policy, projections, request, allowed, beam=beam, best=best, longest=longest)

    return map_requests(of_request, domain, (policy, projections, allowed), requests)


def _require_words(utterances: Sequence[str]) -> None:
    for number, utterance in enumerate(utterances, start=1):
        if not utterance.strip():
            raise VbsixError(f"instruction {number} is empty.")


def require_finite(tensors: dict[str, np.ndarray], where: str) -> None:
    """Raises an error that names the tensors with other numbers."""
    wrong = sorted(name for name, array in tensors.items() if not np.isfinite(array).all())
    if wrong:
        raise VbsixError(f"{where}: not finite numbers: {', '.join(wrong)}.")
