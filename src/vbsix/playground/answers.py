"""What the playground answers: parses and searches, with pictures of their worlds."""

from __future__ import annotations

import functools
from collections.abc import Iterable

from vbsix.data.synthetic import Synthetic, generate
from vbsix.parsing.attention import attention
from vbsix.playground.messages import (
    MOST_UTTERANCES,
    READINGS,
    AttentionAnswer,
    AttentionRequest,
    CommandRead,
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
from vbsix.utilities.errors import naming

ROOMS = (3, MOST_UTTERANCES)
"""For how many utterances parses are compiled: a request takes the least of these, for it takes the least time."""
WORLDS = 200
"""How many random worlds of a domain there are."""


@functools.cache
def random_rows(domain: str) -> list[Synthetic]:
    """Rows of the built-in corpus, whose worlds are there to play with."""
    return generate(domain, WORLDS, seed=11, utterances=3)


def answer_parse(model: Model, request: ParseRequest) -> ParseAnswer:
    """Parses, with pictures of all worlds."""
    if not request.utterances:
        with naming("context"):
            model.parser.domain.parse_world(request.world)
        return ParseAnswer(
            readings=[],
            outcomes=[],
            understood=False,
            reasons=[],
            unknown_words=[],
            unread_words=[],
            pictures=_pictures(model, [request.world]),
        )
    best = min(READINGS, model.parser.config.run.evaluation_beam)
    room = next(room for room in ROOMS if len(request.utterances) <= room)
    found = model.parser.parse(request.world, request.utterances, best, room, request.begin, request.explain)
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
        reasons=list(found.reasons),
        unknown_words=list(found.unknown_words),
        unread_words=list(found.unread_words),
        pictures=_pictures(model, [request.world, *worlds]),
    )


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
    doubts = model.parser.doubts(reading, found.world, found.utterances)
    parts = zip(reading.commands, words, reading.command_confidences, doubts, reading.worlds, strict=True)
    commands = [
        CommandRead(
            tokens=command.split(),
            words=said,
            confidence=confidence,
            doubtful=doubtful,
            world=world,
        )
        for command, said, confidence, doubtful, world in parts
    ]
    return ReadingFound(commands=commands, probability=reading.probability, confidence=reading.confidence)


def _pictures(model: Model, worlds: Iterable[str]) -> dict[str, str]:
    return {world: _picture(model.domain, world) for world in dict.fromkeys(worlds)}


_picture = functools.lru_cache(4096)(world_html)
