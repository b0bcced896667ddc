"""Ordinary Python classes as domains, with no JAX in them.

States stay on the host, where equal ones get the same number; compiled searches handle the numbers. The transitions of
all beams of a batch are served by one callback an iteration, which runs the class's `step` once for each new state and
token. All that searches and networks need of a state travels with its number, so that nothing else calls back.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Hashable
from contextlib import AbstractContextManager
from functools import partial
from itertools import accumulate
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Int, UInt32

from vbsix.domains.base import Domain, Observation
from vbsix.domains.features import choose_features
from vbsix.domains.hashing import hash_words
from vbsix.domains.interning import StateTable, describe_error, find, freeze
from vbsix.domains.symmetry import rename
from vbsix.utilities.errors import InvalidWorld, VbsixError, shorten

KEPT_TABLES, MOST_TABLES, KEPT_STATES = 4, 64, 1 << 19
"""Some tables of states are always kept; beyond, the oldest are forgotten where there are too many or too large."""


Row = Int[Any, " row"]
"""A state as compiled functions know it: the number of its table, its number there, the instructions done, the number
of the target that its denotation equals (-1: none), and what the networks see."""
_TABLE, _NUMBER, _DONE, _TARGET, _SEEN = range(5)


class PythonTarget(NamedTuple):
    """A target as compiled functions know it."""

    number: Int[Any, "*batch"]
    seen: Int[Any, "*batch elements attributes"]


class PythonDomain(Domain):
    """A domain whose language is an ordinary Python class.

    The class has `tokens`, `max_tokens_per_instruction` and the methods

    - `start(context)`: the state before the first token; a context is JSON as it stands in the data;
    - `step(state, token)`: the next state, or None where the token is not valid;
    - `instructions_done(state)`: how many instructions have their command;
    - `denotation(state)`: what is compared with the target, which is JSON as it stands in the data (a tuple equals a
      list).

    States are hashable and never change; equal states are one state of the search. With `attributes`, a mapping of
    names to categories or to a number n (for the integers from 0 to n - 1), the class says what the networks may see:
    `describe(state)` and, for methods with a critic, `describe_target(target)` give a mapping of these names to values;
    None and what is left out stand for nothing. Without, the networks see the first parts of the state itself, which
    is seldom as good. `name` names the domain; the class's own name does else. `symmetries` lists constants that are
    interchangeable, each a `Symmetry`; in contexts and targets, they are the texts that equal their tokens.

    A class that knows better can give `observe`, `observe_world` and `observe_target` as `Domain` has them, as nested
    lists, with `slots`, `objects`, `elements`, `values` and `attributes`.
    """

    compiled = False

    def __init__(self, language: Any):
        """Wraps a class, or an object of it."""
        self.language = language = make(language) if isinstance(language, type) else language
        _require_language(language)
        self.name = getattr(language, "name", type(language).__name__.lower())
        self.tokens = tuple(language.tokens)
        self.max_tokens_per_instruction = language.max_tokens_per_instruction
        self.features = look = choose_features(language)
        self.slots, self.objects, self.elements = look.slots, look.objects, look.elements
        self.values, self.attributes = look.values, look.attributes
        self.symmetries = tuple(getattr(language, "symmetries", ()))
        self._width = _SEEN + look.width
        self._contexts: list[Any] = []
        self._context_numbers: dict[str, int] = {}
        self._targets: list[Any] = []
        self._target_numbers: dict[Hashable, int] = {}
        self._tables: dict[int, StateTable] = {}
        self._started = 0
        self._failure: VbsixError | None = None
        self._lock = threading.Lock()
        self._alone = threading.RLock()

    # For compiled functions.

    def start(self, world: Int[Any, ""], instructions: int) -> Row:
        row = jax.ShapeDtypeStruct((self._width,), jnp.int32)
        callback = partial(self._start_on_host, instructions)
        return jax.pure_callback(callback, row, jnp.asarray(world), vmap_method="broadcast_all")

    def expand(self, state: Row) -> tuple[Int[Array, "A row"], Bool[Array, " A"]]:
        count = len(self.tokens)
        shapes = jax.ShapeDtypeStruct((count, self._width), jnp.int32), jax.ShapeDtypeStruct((count,), bool)
        table, number = jnp.asarray(state)[:_DONE]
        rows, valid = jax.pure_callback(self._expand_on_host, shapes, table, number, vmap_method="broadcast_all")
        return rows, valid

    def permute(
        self, world: Int[Any, ""], target: PythonTarget, tokens: Int[Array, " A"]
    ) -> tuple[Int[Array, ""], PythonTarget]:
        # One callback: a target must be known before the states that may match it are made.
        shapes = jax.ShapeDtypeStruct((2,), jnp.int32), jax.ShapeDtypeStruct(target.seen.shape, jnp.int32)
        given = jnp.asarray(world), target.number, tokens
        numbers, seen = jax.pure_callback(self._permute_on_host, shapes, *given, vmap_method="broadcast_all")
        return numbers[0], PythonTarget(numbers[1], seen)

    def instructions_done(self, state: Row) -> Int[Array, ""]:
        return jnp.asarray(state)[_DONE]

    def matches(self, state: Row, target: PythonTarget) -> Bool[Array, ""]:
        return jnp.asarray(state)[_TARGET] == target.number

    def key(self, state: Row) -> UInt32[Array, "2"]:
        return hash_words(jnp.asarray(state)[:_DONE])

    def denotation_key(self, state: Row) -> UInt32[Array, "2"]:
        return hash_words(jnp.asarray(state)[_TARGET, None])

    def observe(self, state: Row) -> Observation:
        values, objects, _ = self._seen(state)
        return Observation(values, objects.reshape(self.slots, self.objects, len(self.attributes)))

    def observe_world(self, state: Row) -> Int[Array, "elements attributes"]:
        return self._seen(state)[2].reshape(self.elements, len(self.attributes))

    def observe_target(self, target: PythonTarget) -> Int[Array, "elements attributes"]:
        return target.seen

    def _seen(self, state: Row) -> list[Array]:
        sizes = _SEEN, self.slots, self.slots * self.objects * len(self.attributes)
        return jnp.split(jnp.asarray(state), list(accumulate(sizes)))[1:]

    # Text in and out: all of it is JSON.

    def context(self, text: str) -> Any:
        """A context from its text form."""
        return _from_json(text)

    def is_json(self, value: Any) -> bool:
        """Whether a value, written as JSON and read again, is equal to what it was."""
        return freeze(json.loads(self.to_text(value))) == freeze(value)

    def to_text(self, value: Any) -> str:
        return json.dumps(value, sort_keys=True, ensure_ascii=False)

    def parse_world(self, text: str) -> Int[np.ndarray, ""]:
        context = _from_json(text)
        canonical = self.to_text(context)
        if canonical not in self._context_numbers:
            try:
                hash(self.language.start(context))
            except Exception as error:
                raise InvalidWorld(f"start({shorten(text)}) raised {describe_error(error)}") from error
            with self._lock:
                if self._context_numbers.setdefault(canonical, len(self._contexts)) == len(self._contexts):
                    self._contexts.append(context)
        return np.array(self._context_numbers[canonical], np.int32)

    def format_world(self, world: Int[Any, ""]) -> str:
        return self.to_text(self._contexts[int(world)])

    def parse_target(self, text: str) -> PythonTarget:
        target = _from_json(text)
        try:
            seen = self.features.target(target)
        except Exception as error:
            raise InvalidWorld(f"the target {shorten(text)} cannot be described: {describe_error(error)}") from error
        with self._lock:
            number = self._target_numbers.setdefault(freeze(target), len(self._targets))
            if number == len(self._targets):
                self._targets.append(target)
        shape = self.elements, len(self.attributes)
        return PythonTarget(np.array(number, np.int32), np.array(seen, np.int32).reshape(shape))

    def format_target(self, target: Any) -> str:
        """Of a target or a denotation; equal ones have the text of the first that was read."""
        number = target.number if isinstance(target, PythonTarget) else find(self._target_numbers, target)
        return self.to_text(target if number is None else self._targets[int(number)])

    def world(self, state: Row) -> Any:
        return self.language.denotation(self.host_state(state))

    def format_state(self, state: Row) -> list[str]:
        return [str(self.host_state(state))]

    def explain(self, state: Row, token: str) -> str | None:
        here = self.host_state(state)
        return None if self.language.step(here, token) is not None else f"{token}: not valid in the state {here}"

    def host_state(self, state: Row) -> Any:
        """The object that stands behind a state of the last searches."""
        return self._table(int(state[_TABLE])).states[int(state[_NUMBER])]

    # On the host.

    def observation_spec(self) -> list[Any]:
        if not hasattr(self.language, "describe") or hasattr(self.language, "observe"):
            return super().observation_spec()
        named = self.language.attributes.items()
        return [[name, values if isinstance(values, int) else [*map(repr, values)]] for name, values in named]

    def alone(self) -> AbstractContextManager[Any]:
        return self._alone

    def raise_failure(self) -> None:
        """A callback must not raise: what went wrong in one is kept until now, and nothing is valid meanwhile."""
        with self._lock:
            failure, self._failure = self._failure, None
        if failure is not None:
            raise failure

    def _start_on_host(self, instructions: int, worlds: Any) -> np.ndarray:
        worlds = np.asarray(worlds)
        distinct, places = np.unique(worlds, return_inverse=True)
        rows = np.zeros((len(distinct), self._width), np.int32)
        with self._lock:
            rows[:, _TABLE], self._started = self._started, self._started + 1
            table = StateTable(self.language, self.features, self._target_numbers, instructions)
            try:
                first = table.start([self._contexts[world] for world in distinct.tolist()])
                rows[:, _NUMBER:] = table.rows[first]
            except Exception as error:
                self._keep(error)
            self._tables[self._started - 1] = table
            while len(self._tables) > KEPT_TABLES and self._holds_too_much():
                del self._tables[min(self._tables)]
        return rows[places.reshape(worlds.shape)]

    def _permute_on_host(self, worlds: Any, targets: Any, tokens: Any) -> tuple[np.ndarray, np.ndarray]:
        worlds, targets, tokens = (np.asarray(each) for each in (worlds, targets, tokens))
        numbers = np.stack([worlds, targets], axis=-1)
        seen = np.zeros((*worlds.shape, self.elements, len(self.attributes)), np.int32)
        try:
            for place in np.ndindex(worlds.shape):
                order = zip(self.tokens, tokens[place].tolist(), strict=True)
                names = {old: self.tokens[new] for old, new in order if old != self.tokens[new]}
                world = self.parse_world(self.to_text(rename(self._contexts[worlds[place]], names)))
                target = self.parse_target(self.to_text(rename(self._targets[targets[place]], names)))
                numbers[place], seen[place] = (world, target.number), target.seen
        except Exception as error:
            with self._lock:
                self._keep(error)
        return numbers, seen

    def _expand_on_host(self, tables: Any, numbers: Any) -> tuple[np.ndarray, np.ndarray]:
        tables, numbers = np.asarray(tables), np.asarray(numbers)
        rows = np.zeros((*numbers.shape, len(self.tokens), self._width), np.int32)
        rows[..., _TABLE] = tables[..., None]
        valid = np.zeros(rows.shape[:-1], bool)
        with self._lock:
            try:
                for number in np.unique(tables).tolist() if self._failure is None else ():
                    table, here = self._table(number), tables == number
                    successors = table.expand(numbers[here])
                    rows[here, :, _NUMBER:], valid[here] = table.rows[np.maximum(successors, 0)], successors >= 0
            except Exception as error:
                self._keep(error)
        return rows, valid

    def _keep(self, error: Exception) -> None:
        described = VbsixError(f"{self.name}: a search raised {describe_error(error)}.")
        known = error if isinstance(error, VbsixError) else described
        self._failure = self._failure or known

    def _holds_too_much(self) -> bool:
        return len(self._tables) > MOST_TABLES or sum(len(one.states) for one in self._tables.values()) > KEPT_STATES

    def _table(self, number: int) -> StateTable:
        if number not in self._tables:
            raise VbsixError(
                f"{self.name}: the states of this search are no longer kept: too many searches came after it."
            )
        return self._tables[number]


def make(kind: type) -> Any:
    """An object of a class that needs nothing to be made."""
    try:
        return kind()
    except Exception as error:
        raise VbsixError(
            f"{kind.__name__}() raised {describe_error(error)}. If it needs arguments, create the object yourself."
        ) from error


def _require_language(language: Any) -> None:
    """Says what a class lacks to be a language."""
    kind = type(language).__name__
    for method in ("start", "step", "instructions_done", "denotation"):
        if not callable(getattr(language, method, None)):
            raise VbsixError(f"{kind} has no method {method}, which PythonDomain needs.")
    most = getattr(language, "max_tokens_per_instruction", None)
    if not isinstance(most, int) or most < 1:
        raise VbsixError(f"{kind}.max_tokens_per_instruction must be a whole number from 1 on, not {most!r}.")
    tokens = getattr(language, "tokens", None)
    if not isinstance(tokens, list | tuple) or not tokens or not all(isinstance(token, str) for token in tokens):
        raise VbsixError(f"{kind}.tokens must be a list of texts, not {tokens!r}.")


def _from_json(text: str) -> Any:
    """The value of a JSON text; what does not begin as JSON does is a text itself."""
    try:
        return json.loads(text)
    except RecursionError:
        raise InvalidWorld(f"not JSON: {shorten(text)} is nested too deep") from None
    except ValueError as error:
        if text.lstrip()[:1] in ("{", "[", '"'):
            raise InvalidWorld(f"not JSON: {shorten(text)}: {error}") from None
        return text
