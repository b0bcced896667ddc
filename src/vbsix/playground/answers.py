"""What the playground answers: parses and searches, with pictures of their worlds."""

from __future__ import annotations

import contextlib
import ctypes
import functools
import itertools
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import get_args

from vbsix.data.synthetic import Synthetic, generate
from vbsix.data.synthetic.corpus import has_corpus
from vbsix.playground.messages import (
    MOST_UTTERANCES,
    READINGS,
    Beam,
    CommandRead,
    ParseAnswer,
    ParseRequest,
    ProgramFound,
    ReadingFound,
    SearchAnswer,
    SearchRequest,
    SpaceSearched,
)
from vbsix.playground.models import Model
from vbsix.playground.searching import search
from vbsix.search.prediction import Reading
from vbsix.show.inspection import Inspection
from vbsix.show.phrases import in_words
from vbsix.show.svg import draw_search, world_html
from vbsix.utilities.errors import naming

ROOMS = (2, 3, 5, MOST_UTTERANCES)
"""For how many utterances parses are compiled: a request takes the least of these, for it takes the least time."""
EXAMPLES = 200
"""How many examples of a domain are there to choose from."""


def warm_up(models: Mapping[str, Model], say: Callable[[str], None] = lambda text: None) -> None:
    """Compiles what the usual requests need, so that the first of them is as quick as all others."""
    for number, model in enumerate(models.values(), start=1):
        say(f"getting ready: {model.name} ({number} of {len(models)})")
        if not has_corpus(model.domain):
            continue
        search = _usual_search(model)
        said = search.utterances * MOST_UTTERANCES
        parses = [ParseRequest(model=model.name, world=search.world, utterances=said[:room]) for room in ROOMS]
        pool = ThreadPoolExecutor()  # in no `with`, which would wait for all calls when it is interrupted
        calls = [pool.submit(answer_search, model, search)]
        calls += [pool.submit(answer_parse, model, request) for request in parses]
        for call in calls:
            call.result()
        pool.shutdown()
    _give_back_memory()


def warm_up_rest(models: Mapping[str, Model], say: Callable[[str], None] = lambda text: None) -> None:
    """Compiles what is asked for less often, while the server is at work: searches of all kinds."""
    for beam, critic in itertools.product(get_args(Beam), (True, False)):
        for model in models.values():
            if has_corpus(model.domain):
                answer_search(model, _usual_search(model).model_copy(update={"beam": beam, "critic": critic}))
    _give_back_memory()
    say("searches with any beam are ready")


def _give_back_memory() -> None:
    """Compiling leaves gigabytes of unused memory behind, which glibc keeps unless asked to return it."""
    with contextlib.suppress(AttributeError, OSError, TypeError):  # other systems have no such call
        ctypes.CDLL(None).malloc_trim(0)


def _usual_search(model: Model) -> SearchRequest:
    row = examples(model.domain)[0].row
    world, target = str(row.worlds[0]), str(row.worlds[-1])
    return SearchRequest(model=model.name, world=world, target=target, utterances=list(row.utterances))


@functools.cache
def examples(domain: str) -> list[Synthetic]:
    """Rows of the built-in corpus to play with."""
    return generate(domain, EXAMPLES, seed=11, utterances=3)


def answer_parse(model: Model, request: ParseRequest) -> ParseAnswer:
    """Parses, with pictures of all worlds."""
    if not request.utterances:
        with naming("world"):
            model.parser.domain.parse_world(request.world)
        return ParseAnswer(readings=[], unknown_words=[], unread_words=[], pictures=_pictures(model, [request.world]))
    best = min(READINGS, model.parser.config.run.evaluation_beam)
    room = next(room for room in ROOMS if len(request.utterances) <= room)
    found = model.parser.parse(request.world, request.utterances, best, room, request.begin)
    worlds = [world for reading in found.readings for world in reading.worlds]
    return ParseAnswer(
        readings=[_reading(model.domain, reading) for reading in found.readings],
        unknown_words=list(found.unknown_words),
        unread_words=list(found.unread_words),
        pictures=_pictures(model, [request.world, *worlds]),
    )


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


def _reading(domain: str, reading: Reading) -> ReadingFound:
    parts = zip(reading.commands, reading.command_probabilities, reading.worlds, strict=True)
    commands = [
        CommandRead(
            tokens=command.split(), words=in_words(domain, command.split()), probability=probability, world=world
        )
        for command, probability, world in parts
    ]
    return ReadingFound(
        commands=commands, probability=reading.probability, confidence=reading.confidence, share=reading.share
    )


def _pictures(model: Model, worlds: Iterable[str]) -> dict[str, str]:
    return {world: _picture(model.domain, world) for world in dict.fromkeys(worlds)}


_picture = functools.lru_cache(4096)(world_html)
