"""Ordinary Python classes as domains, with no JAX in them.

States stay on the host, where equal ones get the same number; compiled searches handle the numbers. The transitions of
all beams of a batch are served by one call of the host an iteration, which runs the class's `step` once for each new
state and token, and remembers the result for later searches. All that searches and networks need of a state travels
with its number, so that nothing else calls the host.
"""

from __future__ import annotations

import json
import threading
import traceback
from collections.abc import Sequence
from contextlib import AbstractContextManager
from itertools import accumulate
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Int, UInt32

from vbsix.domains.base import Domain, Observation
from vbsix.domains.denotations import TOLERANCE, Denotations, freeze, is_match
from vbsix.domains.features import choose_features
from vbsix.domains.hashing import hash_words, mix
from vbsix.domains.host_calls import call_host, number_host
from vbsix.domains.interning import DENOTATION, DONE, NUMBER, SEEN, TABLE, StateTable, describe_error
from vbsix.domains.names import BUILT_IN, FROM_FILES
from vbsix.domains.requirements import make, require_hashable, require_language
from vbsix.domains.symmetry import rename
from vbsix.utilities.errors import InvalidDomain, InvalidWorld, VbsixError, shorten

FULL_TABLE, KEPT_TABLES, KEPT_STATES = 1 << 19, 4, 1 << 20
"""States with which a table is full, so that the next search begins another one. Some tables are always kept; beyond,
the oldest are forgotten where all of them hold too many states. An object may have its own limits, where there is
memory for more: without room for the states of all examples, each pass over the data computes them again."""
KEPT_TEXTS = 1 << 20
"""With more contexts, or more targets, the half that was read longest ago is forgotten."""


TABLE_BITS = 23
"""Of the number of a state in its table: a full table must hold fewer."""
_START, _EXPAND, _PERMUTE = range(3)
"""What compiled functions ask the host for."""

Row = Int[Any, " row"]
"""A state as compiled functions know it; see `interning.TABLE`."""


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
    is seldom as good. `name` names the domain; the class's own name does else. `valid_tokens(state)` is optional: it
    gives the tokens to try in a state, and saves calls of `step` with the others. `tolerance` is how far a number in a
    denotation may be from the target's; without, one millionth. `symmetries` lists
    constants that are interchangeable, each a `Symmetry`; in contexts and targets, they are the texts that equal their
    tokens.

    A class that knows better can give `observe`, `observe_world` and `observe_target` as `Domain` has them, as nested
    lists, with `slots`, `objects`, `elements`, `values` and `attributes`.
    """

    def __init__(self, language: Any):
        """Wraps a class, or an object of it."""
        self.language = language = make(language) if isinstance(language, type) else language
        require_language(language)
        self.name = getattr(language, "name", type(language).__name__.lower())
        if self.name in (*BUILT_IN, *FROM_FILES):  # which decides on its pictures, data and settings
            problem = "this is the name of a built-in domain. Rename the class, or give it another `name`."
            raise InvalidDomain(self.name, [problem])
        self.tokens = tuple(language.tokens)
        self.max_tokens_per_instruction = language.max_tokens_per_instruction
        self.features = look = choose_features(language)
        self.slots, self.objects, self.elements = look.slots, look.objects, look.elements
        self.values, self.attributes = look.values, look.attributes
        self.symmetries = tuple(getattr(language, "symmetries", ()))
        self._width = SEEN + look.width
        self._host = number_host(self)
        self._contexts: dict[int, str] = {}
        self._context_numbers: dict[str, int] = {}
        self._next_context = 0
        self.tolerance = getattr(language, "tolerance", TOLERANCE)
        self._denotations = Denotations(self.tolerance)
        self._targets: dict[int, Any] = {}
        self._tables: dict[int, StateTable] = {}
        self._current: dict[int, int] = {}
        self._made = 0
        self._failure: VbsixError | KeyboardInterrupt | None = None
        self.full_table, self.kept_states = FULL_TABLE, KEPT_STATES
        self._lock = threading.RLock()
        self._alone = threading.RLock()

    # For compiled functions.

    def start(self, world: Int[Any, ""], instructions: int) -> Row:
        return self._call(_START, instructions, [(self._width,)], jnp.asarray(world))[0]

    def expand(self, state: Row) -> tuple[Int[Array, "A row"], Bool[Array, " A"]]:
        table, number = jnp.asarray(state)[:DONE]
        rows, valid = self._call(_EXPAND, 0, [(len(self.tokens), self._width), (len(self.tokens),)], table, number)
        return rows, valid != 0

    def permute(
        self, world: Int[Any, ""], target: PythonTarget, tokens: Int[Array, " A"]
    ) -> tuple[Int[Array, ""], PythonTarget]:
        # One call: a target must be known before the states that may match it are made.
        given = jnp.asarray(world), target.number, tokens
        numbers, seen = self._call(_PERMUTE, 0, [(2,), (self.elements, len(self.attributes))], *given)
        return numbers[0], PythonTarget(numbers[1], seen)

    def _call(self, call: int, detail: int, shapes: Sequence[tuple[int, ...]], *arguments: Any) -> list[Array]:
        return call_host(self._host, call, detail, shapes, *arguments)

    def instructions_done(self, state: Row) -> Int[Array, ""]:
        return jnp.asarray(state)[DONE]

    def matches(self, state: Row, target: PythonTarget) -> Bool[Array, ""]:
        return jnp.asarray(state)[DENOTATION] == target.number

    def key(self, state: Row) -> UInt32[Array, "2"]:
        # The first lane tells states apart. The second depends on what is seen of them, and not on which state was met
        # first: what is chosen by it is the same in each run, however the threads of a search take turns.
        table, number, _, _, content = jnp.asarray(state)[:SEEN].astype(jnp.uint32)
        return mix(jnp.stack([(table << TABLE_BITS) + number, content]))

    def denotation_key(self, state: Row) -> UInt32[Array, "2"]:
        return hash_words(jnp.asarray(state)[DENOTATION, None])

    def observe(self, state: Row) -> Observation:
        values, objects, _ = self._seen(state)
        return Observation(values, objects.reshape(self.slots, self.objects, len(self.attributes)))

    def observe_world(self, state: Row) -> Int[Array, "elements attributes"]:
        return self._seen(state)[2].reshape(self.elements, len(self.attributes))

    def observe_target(self, target: PythonTarget) -> Int[Array, "elements attributes"]:
        return target.seen

    def _seen(self, state: Row) -> list[Array]:
        sizes = SEEN, self.slots, self.slots * self.objects * len(self.attributes)
        return jnp.split(jnp.asarray(state), list(accumulate(sizes)))[1:]

    # Text in and out: all of it is JSON.

    def context(self, text: str) -> Any:
        """A context from its text form."""
        return _from_json(text)

    def is_json(self, value: Any) -> bool:
        """Whether a value, written as JSON and read again, is equal to what it was."""
        return freeze(json.loads(self.to_text(value))) == freeze(value)

    def is_match(self, denotation: Any, target: Any) -> bool:
        """Whether a denotation equals a target."""
        return is_match(denotation, target, self.tolerance)

    def is_right(self, reached: str, target: str) -> bool:
        return reached == target or self.is_match(_from_json(reached), _from_json(target))

    def to_text(self, value: Any) -> str:
        return json.dumps(value, sort_keys=True, ensure_ascii=False)

    def parse_world(self, text: str) -> Int[np.ndarray, ""]:
        context = _from_json(text)
        canonical = self.to_text(context)
        if canonical not in self._context_numbers:
            try:
                state = self.language.start(context)
            except Exception as error:
                raise InvalidWorld(f"start({shorten(text)}) raised {describe_error(error)}") from error
            require_hashable(self.language, state)
        with self._lock:
            number = self._context_numbers.pop(canonical, self._next_context)  # what is read again is the newest
            self._next_context += number == self._next_context
            self._context_numbers[canonical] = number
            self._contexts[number] = canonical
            if len(self._contexts) > KEPT_TEXTS:
                self._context_numbers = _newer_half(self._context_numbers)
                self._contexts = {number: text for text, number in self._context_numbers.items()}
        return np.array(number, np.int32)

    def format_world(self, world: Int[Any, ""]) -> str:
        return self._context_text(int(world))

    def parse_target(self, text: str) -> PythonTarget:
        target = _from_json(text)
        try:
            seen = self.features.target(target)
        except Exception as error:
            raise InvalidWorld(f"the target {shorten(text)} cannot be described: {describe_error(error)}") from error
        with self._lock:
            number, came_late = self._denotations.number_target(target)
            if came_late:
                self._current.clear()  # states get rows once more, with the number of the target that they match
            self._targets[number] = self._targets.pop(number, target)
            if len(self._targets) > KEPT_TEXTS:
                self._targets = _newer_half(self._targets)
                self._forget_denotations()
        shape = self.elements, len(self.attributes)
        return PythonTarget(np.array(number, np.int32), np.array(seen, np.int32).reshape(shape))

    def format_target(self, target: Any) -> str:
        """Of a target or a denotation; equal ones have the text of the first that was read."""
        if isinstance(target, PythonTarget):
            return self.to_text(self._target(int(target.number)))
        with self._lock:
            found = self._targets.get(self._denotations.find(target), target)
        return self.to_text(found)

    def world(self, state: Row) -> Any:
        return self.language.denotation(self.host_state(state))

    def format_state(self, state: Row) -> list[str]:
        return [str(self.host_state(state))]

    def explain(self, state: Row, token: str) -> str | None:
        here = self.host_state(state)
        return None if self.language.step(here, token) is not None else f"{token}: not valid in the state {here}"

    def _context_text(self, number: int) -> str:
        with self._lock:
            if number not in self._contexts:
                raise VbsixError(f"{self.name}: a context is no longer kept: too many others were read after it.")
            return self._contexts[number]

    def _target(self, number: int) -> Any:
        with self._lock:
            if number not in self._targets:
                raise VbsixError(f"{self.name}: a target is no longer kept: too many others were read after it.")
            return self._targets[number]

    def host_state(self, state: Row) -> Any:
        """The object that stands behind a state of the last searches."""
        return self._table(int(state[TABLE])).states[int(state[NUMBER])]

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

    def answer(self, call: int, detail: int, arguments: Sequence[np.ndarray], results: Sequence[np.ndarray]) -> None:
        """Serves a call of a compiled function; see `host_calls`."""
        try:
            if call == _PERMUTE:
                self._permute_on_host(*arguments, *results)
                return
            with self._lock:
                if call == _START:
                    self._start_on_host(detail, *arguments, *results)
                else:
                    self._expand_on_host(*arguments, *results)
        except BaseException as error:  # Ctrl-C and sys.exit, too: nothing may be raised into a compiled function
            for result in results:
                result[...] = 0  # nothing is valid
            with self._lock:
                self._keep(error)

    def _start_on_host(self, instructions: int, worlds: np.ndarray, rows: np.ndarray) -> None:
        distinct, places = np.unique(worlds, return_inverse=True)
        table, numbers = self._open_table(instructions), distinct.tolist()
        first = table.start([json.loads(self._context_text(world)) for world in numbers], numbers)
        rows[...] = table.rows[first][places.reshape(worlds.shape)]

    def _expand_on_host(self, tables: np.ndarray, numbers: np.ndarray, rows: np.ndarray, valid: np.ndarray) -> None:
        if self._failure is not None:
            valid[...] = rows[...] = 0
            return
        known = np.unique(tables).tolist()
        for number in known:  # one, in all of our own searches
            here = ... if len(known) == 1 else tables == number
            table = self._table(number)
            successors = table.expand(numbers[here])
            rows[here] = table.rows.take(successors, axis=0, mode="clip")  # an invalid one is any of this table
            valid[here] = successors >= 0

    def _permute_on_host(
        self, worlds: np.ndarray, targets: np.ndarray, tokens: np.ndarray, numbers: np.ndarray, seen: np.ndarray
    ) -> None:
        for place in np.ndindex(worlds.shape):
            order = zip(self.tokens, tokens[place].tolist(), strict=True)
            names = {old: self.tokens[new] for old, new in order if old != self.tokens[new]}
            context, target = self._context_text(int(worlds[place])), self._target(int(targets[place]))
            self.parse_world(context)  # read again, so that the examples are not forgotten for what is made of them
            self.parse_target(self.to_text(target))
            world = self.parse_world(self.to_text(rename(json.loads(context), names)))
            target = self.parse_target(self.to_text(rename(target, names)))
            numbers[place], seen[place] = (world, target.number), target.seen

    def _open_table(self, instructions: int) -> StateTable:
        """The table for searches of this length, with what earlier ones found; a new one if it is full."""
        table = self._tables.get(self._current.get(instructions, -1))
        if table is None or table.size >= self.full_table:
            table = StateTable(self._made, self.language, self.features, self._denotations, instructions)
            self._tables[self._made] = table
            self._current[instructions] = self._made
            self._made += 1
            before = len(self._tables)
            while len(self._tables) > KEPT_TABLES and sum(one.size for one in self._tables.values()) > self.kept_states:
                del self._tables[min(self._tables)]
            if len(self._tables) < before:
                self._forget_denotations()
        return table

    def _forget_denotations(self) -> None:
        """Forgets those that neither a target nor a state has."""
        kept = [one.rows[: len(one.states), DENOTATION].tolist() for one in self._tables.values()]
        self._denotations.keep({*self._targets}.union(*kept))

    def _keep(self, error: BaseException) -> None:
        described = VbsixError(f"{self.name}: a search raised {describe_error(error)}.")
        known = error if isinstance(error, VbsixError | KeyboardInterrupt) else described
        if error.__traceback__ is not None:  # its frames have arrays whose memory is gone after the call
            traceback.clear_frames(error.__traceback__)
            error.__traceback__ = error.__traceback__.tb_next
        self._failure = self._failure or known
        self._current.clear()  # what the failure left half done is not built upon

    def _table(self, number: int) -> StateTable:
        if number not in self._tables:
            raise VbsixError(
                f"{self.name}: the states of this search are no longer kept: too many searches came after it."
            )
        return self._tables[number]


def _newer_half(values: dict[Any, Any]) -> dict[Any, Any]:
    return dict(list(values.items())[len(values) // 2 :])


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
