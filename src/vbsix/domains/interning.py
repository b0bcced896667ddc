"""The states of a plain-Python language: numbered, described and expanded once each."""

from __future__ import annotations

import sysconfig
import traceback
import zlib
from collections.abc import Callable, Collection, Hashable, Sequence
from math import isfinite
from operator import index
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from jaxtyping import Float, Int

from vbsix.domains.features import Features
from vbsix.utilities.errors import VbsixError, shorten

TABLE, NUMBER, DONE, DENOTATION, CONTENT, SEEN = range(6)
"""What a row has of a state: the number of its table, its number there, the instructions done, the number of its
denotation, a checksum of what the networks see, and that itself."""
TOLERANCE = 1e-6
"""How far a number in a denotation may be from the target's, unless the language says otherwise."""
VALUES = "use a NamedTuple or a frozen dataclass whose fields are tuples, not lists"
"""What states should be."""
_NOT_EXPANDED, _INVALID = -2, -1
_SHOWN = 200
"""How much of a state a message shows."""


MOST = 1e300
"""Larger numbers with fractions count as this one."""
Number = int | float
T = TypeVar("T")


class Denotations:
    """Denotations and targets, numbered: a denotation has the number of the target that it matches, if there is one.

    Others have the same number if `freeze` makes them equal. Of several targets within the tolerance, the nearest
    counts.
    """

    def __init__(self, tolerance: float = TOLERANCE) -> None:
        self.tolerance = tolerance
        self._next = 0
        self._numbers: dict[Hashable, int] = {}
        self._targets: dict[Hashable, int] = {}
        self._by_shape: dict[Hashable, dict[tuple[Number, ...], int]] = {}
        """The numbers of targets by their shape and the numbers in it."""
        self._lists: dict[Hashable, tuple[Float[np.ndarray, "targets numbers"], list[tuple[Number, ...]]]] = {}
        """The same numbers as an array and as a list, once that was needed."""
        self._need_tolerance = tolerance >= 1
        """Whether equality by `freeze` is not enough; it is, as long as all numbers are whole."""

    def number(self, denotation: Any) -> int:
        """The number of a denotation."""
        frozen = freeze(denotation, self.tolerance)
        if (number := self._numbers.get(frozen)) is None:
            number = self._find(denotation, frozen)
            number = self._numbers[frozen] = self._new() if number < 0 else number
        return number

    def number_target(self, target: Any) -> tuple[int, bool]:
        """The number of a target, and whether denotations that match it may have another, as they came before it."""
        frozen, (shape, numbers) = freeze(target, self.tolerance), split(target)
        if frozen in self._targets:
            return self._targets[frozen], False
        self._need_tolerance |= _has_fraction(numbers)
        is_late = self._need_tolerance and bool(self._numbers)
        if is_late:
            self._numbers.clear()
        number = self._numbers.get(frozen)
        number = self._targets[frozen] = self._new() if number is None else number
        self._by_shape.setdefault(shape, {})[numbers] = number
        self._lists.pop(shape, None)
        return number, is_late

    def find(self, denotation: Any) -> int:
        """The number of the target that a denotation matches; -1 if there is none."""
        return self._find(denotation, freeze(denotation, self.tolerance))

    def keep(self, wanted: set[int]) -> None:
        """Forgets all others. Numbers are never given again."""
        self._numbers, self._targets = (
            {value: number for value, number in known.items() if number in wanted}
            for known in (self._numbers, self._targets)
        )
        for targets in self._by_shape.values():
            for numbers in [numbers for numbers, number in targets.items() if number not in wanted]:
                del targets[numbers]
        self._by_shape = {shape: targets for shape, targets in self._by_shape.items() if targets}
        self._lists.clear()

    def _new(self) -> int:
        self._next += 1
        return self._next - 1

    def _find(self, denotation: Any, frozen: Hashable) -> int:
        if frozen in self._targets:
            return self._targets[frozen]
        shape, numbers = split(denotation)
        self._need_tolerance |= _has_fraction(numbers)
        targets = self._by_shape.get(shape)
        if not (self._need_tolerance and numbers and targets):
            return -1
        if shape not in self._lists:
            self._lists[shape] = np.array([list(map(_to_float, known)) for known in targets]), list(targets)
        array, known = self._lists[shape]
        distances = np.abs(array - list(map(_to_float, numbers))).max(axis=1)
        nearest = known[int(np.argmin(distances))]
        return targets[nearest] if are_near(numbers, nearest, self.tolerance) else -1


class StateTable:
    """States with a row for the device each (see `TABLE`), and with their successors.

    They are kept from search to search, so that `step` is called once for each state and token.
    """

    def __init__(self, table: int, language: Any, look: Features, denotations: Denotations, instructions: int):
        self._language, self._look, self._denotations = language, look, denotations
        self._table, self._instructions = table, instructions
        self._places = {token: place for place, token in enumerate(language.tokens)}
        self._numbers: dict[Any, int] = {}
        self._first: dict[int, int] = {}
        self.states: list[Any] = []
        self._described = 0
        self.rows = np.zeros((64, SEEN + look.width), np.int32)
        self._successors = np.full((64, len(language.tokens)), _NOT_EXPANDED, np.int32)

    @property
    def size(self) -> int:
        """How many states it holds, or contexts where several have the same first state."""
        return max(len(self.states), len(self._first))

    def start(self, contexts: Sequence[Any], numbers: Sequence[int]) -> Int[np.ndarray, " contexts"]:
        """The numbers of the first states of contexts, which have numbers themselves."""
        context = None
        try:
            for context, number in zip(contexts, numbers, strict=True):
                if number not in self._first:
                    self._first[number] = self._number(self._language.start(context))
        except Exception as error:
            raise failure(self._language, f"start({shorten(repr(context))})", error) from error
        self._describe_new()
        return np.array([self._first[number] for number in numbers], np.int32)

    def expand(self, numbers: Int[np.ndarray, "*n"]) -> Int[np.ndarray, "*n A"]:
        """The numbers of all successors, -1 where a token is invalid. A finished program has none."""
        successors = self._successors[numbers]
        is_new = successors[..., 0] == _NOT_EXPANDED
        if is_new.any():
            new = np.unique(numbers[is_new])
            finished = self.rows[new, DONE] >= self._instructions
            going_on = new[~finished]
            found = [self._step_all(self.states[number]) for number in going_on.tolist()]
            self._describe_new()
            self._successors[new[finished]] = _INVALID
            if found:
                self._successors[going_on] = found
            successors = self._successors[numbers]
        return successors

    def _step_all(self, state: Any) -> list[int]:
        successors = [_INVALID] * len(self._places)
        for token, number in step_all(self._language, self._places, state, self._number).items():
            successors[self._places[token]] = number
        return successors

    def _number(self, state: Any) -> int:
        """The number of a state, which is the number of any equal one."""
        count = len(self.states)
        number = self._numbers.setdefault(state, count)
        if number == count:
            self.states.append(state)
        return number

    def _describe_new(self) -> None:
        """Gives rows to the states that have none yet."""
        first, count = self._described, len(self.states)
        if count > len(self.rows):
            size = 1 << count.bit_length()
            self.rows = np.resize(self.rows, (size, self.rows.shape[1]))
            self._successors = np.resize(self._successors, (size, self._successors.shape[1]))
            self._successors[first:] = _NOT_EXPANDED
        if count > first:
            new = self.rows[first:count]
            new[:] = [self._row(number) for number in range(first, count)]
            new[:, CONTENT] = [zlib.crc32(row.tobytes()) & 0x7FFFFFFF for row in new[:, SEEN:]]
        self._described = count

    def _row(self, number: int) -> list[int]:
        state, call = self.states[number], "instructions_done(state)"
        try:
            done = index(self._language.instructions_done(state))
            call = "denotation(state)"
            denotation = self._denotations.number(self._language.denotation(state))
            call = self._look.call
            seen = self._look.state(state)
            if len(seen) != self._look.width:
                raise ValueError(f"{len(seen)} numbers, where the sizes that are declared make {self._look.width}")
            return [self._table, number, done, denotation, 0, *seen]
        except Exception as error:
            raise failure(self._language, call, error, state) from error


def step_all(language: Any, tokens: Collection[str], state: Any, use: Callable[[Any], T]) -> dict[str, T]:
    """The valid tokens of a state, each with what `use` makes of the state that it leads to.

    Raises:
        VbsixError: a method of the language raised an error, or gave what it must not give.
    """
    call, used = "valid_tokens(state)", {}
    try:
        for token in tokens if (offered := getattr(language, "valid_tokens", None)) is None else offered(state):
            if token not in tokens:
                raise VbsixError(f"{token!r} is no token")
            call = f"step(state, {token!r})"
            successor = language.step(state, token)
            if successor is False:
                raise VbsixError("it returned False; return None where a token is invalid")
            if successor is not None:
                used[token] = use(successor)
    except Exception as error:  # whatever the user's own methods do
        raise failure(language, call, error, state) from error
    return used


def freeze(value: Any, tolerance: float = TOLERANCE) -> Hashable:
    """JSON as something hashable: lists as tuples, objects as the set of their items.

    True is not 1, but 1.0 is. Numbers with fractions are rounded to a tenth of the tolerance.
    """
    if isinstance(value, str | int) and not isinstance(value, bool):
        return value
    if isinstance(value, list | tuple):
        return tuple([freeze(item, tolerance) for item in value])
    if isinstance(value, bool):
        return bool, value
    if isinstance(value, dict):
        return frozenset((name, freeze(item, tolerance)) for name, item in value.items())
    if isinstance(value, float):
        if value != value:
            raise VbsixError("NaN equals nothing, not even itself")
        unit = tolerance / 10
        if not isfinite(value) or not unit or not isfinite(value / unit):
            return value
        whole = round(value)
        return whole if abs(value - whole) <= unit / 2 else round(value / unit) * unit
    return value


def is_match(denotation: Any, target: Any, tolerance: float) -> bool:
    """Whether a denotation equals a target, with numbers that differ by no more than the tolerance."""
    (shape, numbers), (wanted_shape, wanted) = split(denotation), split(target)
    return shape == wanted_shape and are_near(numbers, wanted, tolerance)


def are_near(numbers: Sequence[Number], others: Sequence[Number], tolerance: float) -> bool:
    """Whether each number differs from the other by no more than the tolerance."""
    return all(_distance(one, other) <= tolerance for one, other in zip(numbers, others, strict=True))


def split(value: Any) -> tuple[Hashable, tuple[Number, ...]]:
    """JSON as a shape, which is what `freeze` gives without the numbers, and the numbers in it."""
    numbers: list[Number] = []
    return _shape(value, numbers), tuple(numbers)


def _shape(value: Any, numbers: list[Number]) -> Hashable:
    if isinstance(value, bool):
        return bool, value
    if isinstance(value, int | float):
        numbers.append(value)
        return float
    if isinstance(value, list | tuple):
        return tuple([_shape(item, numbers) for item in value])
    if isinstance(value, dict):
        return dict, tuple((name, _shape(value[name], numbers)) for name in sorted(value, key=str))
    return value


def _has_fraction(numbers: Sequence[Number]) -> bool:
    return any(isinstance(one, float) and not one.is_integer() for one in numbers)


def _distance(one: Number, other: Number) -> Number:
    is_exact = isinstance(one, int) and isinstance(other, int)
    return abs(one - other) if is_exact else abs(_to_float(one) - _to_float(other))


def _to_float(number: Number) -> float:
    return float(max(-MOST, min(MOST, number)))


def failure(language: Any, call: str, error: Exception, state: Any = None) -> VbsixError:
    """The error of a user's method, with what it was called with."""
    where = "" if state is None else f" The state: {shorten(str(state), _SHOWN)[1:-1]}"
    return VbsixError(f"{type(language).__name__}.{call} raised {describe_error(error)}.{where}")


def describe_error(error: BaseException) -> str:
    """An error in one line, with file and line of the code that raised it; ours say what is wrong by themselves."""
    lines = str(error).splitlines()
    if lines and isinstance(error, VbsixError):
        return f"an error: {lines[0]}"
    remedy = f"; {VALUES}" if lines and isinstance(error, TypeError) and "unhashable" in lines[0] else ""
    return f"{type(error).__name__}{': ' if lines else ''}{''.join(lines[:1])}{_place(error)}{remedy}"


def _place(error: BaseException) -> str:
    """File and line in the user's own code, where an error came from it."""
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if _is_users(frame.filename)]
    return f" ({frames[-1].filename}:{frames[-1].lineno})" if frames else ""


def _is_users(file: str) -> bool:
    """Whether a file is neither ours, nor Python's, nor of an installed package."""
    others = Path(__file__).parents[1], *map(Path, map(sysconfig.get_path, ("stdlib", "purelib", "platlib")))
    return not file.startswith("<") and not any(Path(file).is_relative_to(other) for other in others)
