"""The states of a plain-Python language: numbered, described and expanded once each."""

from __future__ import annotations

import sysconfig
import traceback
import zlib
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from operator import index
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from jaxtyping import Int

from vbsix.domains.denotations import Denotations
from vbsix.domains.features import Features
from vbsix.utilities.errors import VbsixError, shorten

TABLE, NUMBER, DONE, DENOTATION, CONTENT, SEEN = range(6)
"""What a row has of a state: the number of its table, its number there, the instructions done, the number of its
denotation, a checksum of what the networks see, and that itself."""
VALUES = "use a NamedTuple or a frozen dataclass whose fields are tuples, not lists"
"""What states should be."""
_NOT_EXPANDED, _INVALID = -2, -1
_SHOWN = 200
"""How much of a state a message shows."""


T = TypeVar("T")


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


@contextmanager
def guarded(language: Any, call: str, state: Any = None) -> Iterator[None]:
    """Has an error of a user's method name the method, and what it was called with."""
    try:
        yield
    except Exception as error:
        raise failure(language, call, error, state) from error


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
