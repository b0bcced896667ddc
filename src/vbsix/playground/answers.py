"""What the playground answers: parses and searches, with pictures of their worlds."""

from __future__ import annotations

import functools
import random
import re
from collections import Counter
from collections.abc import Iterable

from vbsix.data.synthetic import Synthetic, generate
from vbsix.data.synthetic.corpus import has_corpus
from vbsix.domains.alchemy import COLOURS
from vbsix.domains.execution import execute
from vbsix.domains.names import base_name
from vbsix.parsing.attention import attention
from vbsix.playground.messages import (
    MOST_UTTERANCES,
    READINGS,
    AttentionAnswer,
    AttentionRequest,
    CommandRead,
    ExplainRequest,
    Explanation,
    OutcomeFound,
    ParseAnswer,
    ParseRequest,
    ProgramFound,
    ReadingFound,
    SearchAnswer,
    SearchRequest,
    SpaceSearched,
    TokenAttention,
)
from vbsix.playground.models import Model
from vbsix.playground.searching import search
from vbsix.search.prediction import Parse, Reading
from vbsix.show.inspection import Inspection
from vbsix.show.phrases import tell_all
from vbsix.show.svg import draw_search, world_html
from vbsix.show.svg.worlds import ALCHEMY_NAMES, NAMES
from vbsix.utilities.errors import InvalidProgram, naming

ROOMS = (3, MOST_UTTERANCES)
"""For how many utterances parses are compiled: a request takes the least of these, for it takes the least time."""
WORLDS = 200
"""How many random worlds of a domain there are."""
OTHER_WORLDS, LEAST_WORLDS, LEAST_SHARE = 48, 6, 0.6
"""In how many worlds an instruction is read to learn what it usually means; in how many it must mean that, and in what
share of those in which it is understood."""


@functools.cache
def random_rows(domain: str) -> list[Synthetic]:
    """Rows of the built-in corpus, whose worlds are there to play with."""
    return generate(domain, WORLDS, seed=11, utterances=3)


def answer_parse(model: Model, request: ParseRequest) -> ParseAnswer:
    """Parses, with pictures of all worlds."""
    if not request.utterances:
        with naming("world"):
            model.parser.domain.parse_world(request.world)
        return ParseAnswer(
            readings=[],
            outcomes=[],
            understood=False,
            unknown_words=[],
            unread_words=[],
            pictures=_pictures(model, [request.world]),
        )
    best = min(READINGS, model.parser.config.run.evaluation_beam)
    room = next(room for room in ROOMS if len(request.utterances) <= room)
    found = model.parser.parse(request.world, request.utterances, best, room, request.begin)
    worlds = [world for reading in found.readings for world in reading.worlds]
    places = {id(reading): place for place, reading in enumerate(found.readings)}
    return ParseAnswer(
        readings=[_reading(model, found, reading) for reading in found.readings],
        outcomes=[
            OutcomeFound(
                world=outcome.world,
                confidence=outcome.confidence,
                readings=[places[id(reading)] for reading in outcome.readings],
            )
            for outcome in found.outcomes
        ],
        understood=found.understood,
        unknown_words=list(found.unknown_words),
        unread_words=list(found.unread_words),
        pictures=_pictures(model, [request.world, *worlds]),
    )


def answer_explain(model: Model, request: ExplainRequest) -> Explanation:
    """Why an instruction cannot be done in a world: what it means in most other worlds, executed in this one."""
    domain = model.parser.domain
    with naming("world"):
        domain.parse_world(request.world)
    if not has_corpus(model.domain):
        return Explanation(reason=None)
    try:
        execute(domain, request.world, _usual_meaning(model, request.utterance))
    except InvalidProgram as error:
        reason = error.reason.removeprefix(f"{error.token}: ")
        if not reason.startswith("needs "):  # "needs one beaker": here the instruction refers to it in another way
            return Explanation(reason=_in_plain_words(reason, model.domain))
    return Explanation(reason=None)


@functools.lru_cache(4096)
def _usual_meaning(model: Model, utterance: str) -> str:
    """The command that an instruction has in most worlds in which it is understood; empty if there is none."""
    for worlds in _other_worlds(model.domain):
        parses = model.parser.parse_many([(world, [utterance]) for world in worlds], room=ROOMS[0], begin=())
        meanings = Counter(parse.readings[0].commands[0] for parse in parses if parse.understood)
        command, count = meanings.most_common(1)[0] if meanings else ("", 0)
        if count >= max(LEAST_WORLDS, LEAST_SHARE * meanings.total()):
            return command
    return ""


@functools.cache
def _other_worlds(domain: str) -> list[list[str]]:
    """Worlds of the corpus and, in alchemy, worlds in which every beaker can be poured into every other one."""
    rows = [one.row for one in random_rows(domain)[:OTHER_WORLDS]]
    corpus = [str(row.worlds[place % len(row.worlds)]) for place, row in enumerate(rows)]
    return [corpus, _roomy_worlds()] if base_name(domain) == "alchemy" else [corpus]


def _roomy_worlds() -> list[str]:
    """One or two units of one colour in each beaker: pouring is rarely possible in the worlds of the corpus."""
    generator, worlds = random.Random(0), []
    for place in range(OTHER_WORLDS):
        colours = [*COLOURS, generator.choice(COLOURS)]
        generator.shuffle(colours)
        units = 1 + place % 2
        worlds.append(" ".join(f"{number}:{colour * units}" for number, colour in enumerate(colours, start=1)))
    return worlds


def _colour(thing: str, name: str) -> str:
    return f"only {name}" if thing == "only" else f"a {name} {thing.removeprefix('a ')}"


def _in_plain_words(reason: str, domain: str) -> str:
    """A reason with the names of colours in place of their letters."""
    names = ALCHEMY_NAMES if base_name(domain) == "alchemy" else NAMES
    reason = re.sub(r"\ba (shirt|hat) e\b", r"no \1", reason)
    return re.sub(r"\b(a shirt|a hat|only) ([rygopb])\b", lambda found: _colour(found[1], names[found[2]]), reason)


def answer_attention(model: Model, request: AttentionRequest) -> AttentionAnswer:
    """Which words the policy attends to when it chooses each token."""
    found = attention(model.parser, request.world, request.utterances, request.commands, MOST_UTTERANCES)
    commands = [
        [
            TokenAttention(token=token, weights=[round(float(weight), 4) for weight in weights])
            for token, weights in zip(command.split(), rows, strict=True)
        ]
        for command, rows in zip(request.commands, found, strict=True)
    ]
    return AttentionAnswer(commands=commands)


def answer_search(model: Model, request: SearchRequest) -> SearchAnswer:
    """Searches in both spaces."""
    answers, worlds = {}, {request.world, request.target}
    for space in ("execution", "program"):
        listed, drawn = search(
            model,
            request.world,
            request.target,
            request.utterances,
            space=space,
            beam=request.beam,
            critic=request.critic,
        )
        drawing = draw_search(drawn, target=request.target, utterances=request.utterances, policy=model.name)
        answers[space] = _space(listed, drawing)
        worlds |= {state.world for state in listed.states}
    return SearchAnswer(**answers, pictures=_pictures(model, worlds))


def _space(found: Inspection, drawing: str) -> SpaceSearched:
    return SpaceSearched(
        programs=[ProgramFound(tokens=list(one.tokens), log_probability=one.log_probability) for one in found.programs],
        iterations=list(found.iterations),
        states=list(found.states),
        transitions=list(found.transitions),
        left_out=found.left_out,
        drawing=drawing,
    )


def _reading(model: Model, found: Parse, reading: Reading) -> ReadingFound:
    words = tell_all(model.domain, found.world, reading.worlds, reading.commands)
    parts = zip(reading.commands, words, reading.command_confidences, reading.worlds, strict=True)
    commands = [
        CommandRead(
            tokens=command.split(),
            words=said,
            confidence=confidence,
            doubtful=confidence < model.parser.threshold,
            world=world,
        )
        for command, said, confidence, world in parts
    ]
    return ReadingFound(commands=commands, probability=reading.probability, confidence=reading.confidence)


def _pictures(model: Model, worlds: Iterable[str]) -> dict[str, str]:
    return {world: _picture(model.domain, world) for world in dict.fromkeys(worlds)}


_picture = functools.lru_cache(4096)(world_html)
