"""Loading and compiling behind the page, which is there from the first second and says what it waits for."""

from __future__ import annotations

import contextlib
import ctypes
import itertools
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, get_args

from vbsix.data.synthetic.corpus import has_corpus
from vbsix.domains.names import base_name
from vbsix.parsing.attention import attends
from vbsix.playground import answers
from vbsix.playground.examples import EXAMPLES
from vbsix.playground.messages import AttentionRequest, Beam, ParseRequest, SearchRequest
from vbsix.playground.models import Model
from vbsix.utilities.errors import VbsixError

Load = Callable[[], Mapping[str, Model]]


class Preparation:
    """The models of a server while they are loaded and compiled, in a thread of its own.

    Attributes:
        models: by name.
        ready: the models whose usual parses are compiled; others cannot be asked yet.
        doing: what is being prepared; None once all models are ready.
        is_loading: whether the models are being loaded, so that their names are not known yet.
    """

    def __init__(self, models: Mapping[str, Model] | None = None):
        self.models: dict[str, Model] = dict(models or {})
        self.ready: set[str] = set(self.models)
        self.doing: str | None = None if models is not None else "loading the models"
        self.failure: VbsixError | None = None
        self.is_loading = models is None
        self._began = time.monotonic()

    @property
    def words(self) -> str | None:
        """What the page says while it waits."""
        if self.failure is not None:
            return str(self.failure)
        if self.doing is None:
            return None
        return f"{self.doing} ({time.monotonic() - self._began:.0f} s)"

    def start(self, load: Load, say: Callable[[str], None], fail: Callable[[], None]) -> None:
        """Loads and compiles, in a thread of its own.

        Args:
            load: gives the models.
            say: hears of the progress.
            fail: is called where the models cannot be loaded; `failure` says why.
        """
        threading.Thread(target=self._prepare, args=(load, say, fail), daemon=True).start()

    def _prepare(self, load: Load, say: Callable[[str], None], fail: Callable[[], None]) -> None:
        try:
            self.models.update(load())
            self.is_loading = False
        except Exception as error:
            known = isinstance(error, VbsixError)
            self.failure = error if known else VbsixError(f"the models cannot be loaded: {error!r}")
            fail()
            return
        for number, model in enumerate(in_order(self.models.values()), start=1):
            name = model.name
            self.doing = f"compiling {name}, model {number} of {len(self.models)}"
            try:
                compile_parses(model, answers.ROOMS[0])
                said = f"{name} is ready after {time.monotonic() - self._began:.0f} s"
            except Exception as error:  # then requests compile what they need, and say what is wrong
                said = f"{name} could not be compiled: {error}"
            self.ready.add(name)
            say(said)
        self.doing = None
        try:
            compile_searches(self.models)
            say("searches with any beam are ready")
        except Exception as error:
            say(f"searches could not be compiled: {error}")


def in_order(models: Iterable[Model]) -> list[Model]:
    """A model of each domain first, those of the smallest languages before others: they compile fastest."""
    domains = Counter[str]()
    ranked = []
    for model in models:
        ranked.append((domains[model.domain], len(model.parser.domain.tokens), model))
        domains[model.domain] += 1
    return [model for *_, model in sorted(ranked, key=lambda one: one[:2])]


def compile_parses(model: Model, room: int) -> None:
    """Compiles what a key press needs with up to `room` instructions, so that the first is as quick as all others."""
    if has_corpus(model.domain):
        search = _usual_search(model)
        said = (search.utterances * room)[:room]
        answers.answer_parse(model, ParseRequest(**_said(search, said), explain=False))
        _give_back_memory()


def compile_searches(models: Mapping[str, Model]) -> None:
    """Compiles the rest, in the order in which it is usually asked for: explanations follow each pause in typing."""
    for model in in_order(models.values()):
        if has_corpus(model.domain):
            search = _usual_search(model)
            answers.answer_parse(model, ParseRequest(**_said(search, search.utterances), explain=True))
            _compile_attention(model, search)
    for room in answers.ROOMS[1:]:
        for model in in_order(models.values()):
            compile_parses(model, room)
    usual = [(16, True)]
    rest = [choice for choice in itertools.product(get_args(Beam), (True, False)) if choice not in usual]
    for beam, critic in [*usual, *rest]:
        for model in models.values():
            if has_corpus(model.domain) and (critic or model.parser.critic is not None):
                request = _usual_search(model).model_copy(update={"beam": beam, "critic": critic})
                answers.answer_search(model, request)
    _give_back_memory()


def _compile_attention(model: Model, search: SearchRequest) -> None:
    if not attends(model.parser):
        return
    said = _said(search, search.utterances)
    for reading in answers.answer_parse(model, ParseRequest(**said, explain=False)).readings[:1]:
        commands = [" ".join(command.tokens) for command in reading.commands]
        answers.answer_attention(model, AttentionRequest(**said, commands=commands))


def _give_back_memory() -> None:
    """Compiling leaves gigabytes of unused memory behind, which glibc keeps unless asked to return it."""
    with contextlib.suppress(AttributeError, OSError, TypeError):  # other systems have no such call
        ctypes.CDLL(None).malloc_trim(0)


def _said(search: SearchRequest, instructions: Sequence[str]) -> dict[str, Any]:
    """Fields of a request about the world of a search, by the names that requests have."""
    return {"model": search.model, "context": search.world, "instructions": list(instructions)}


def _usual_search(model: Model) -> SearchRequest:
    if examples := EXAMPLES.get(base_name(model.domain)):
        one = examples[0]
        world, target, said = one.world, one.target, one.utterances
    else:
        row = answers.random_rows(model.domain)[0].row
        world, target, said = str(row.worlds[0]), str(row.worlds[-1]), row.utterances
    given: dict[str, Any] = {"model": model.name, "context": world, "target": target, "instructions": list(said)}
    return SearchRequest(**given)
