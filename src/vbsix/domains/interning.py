"""The states of a plain-Python language during some searches: numbered, described and expanded once each."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from operator import index
from typing import Any

import numpy as np
from jaxtyping import Int

from vbsix.domains.features import Features
from vbsix.utilities.errors import VbsixError, shorten

_NOT_EXPANDED, _INVALID = -2, -1
_SHOWN = 200
"""How much of a state a message shows."""


class StateTable:
    """States that begin with some contexts, each with a row for the device and with its successors.

    A row has the state's number, the instructions done, the number of the target that the denotation equals (-1 for
    none), and what the networks see.
    """

    def __init__(self, language: Any, look: Features, targets: Mapping[Hashable, int], instructions: int):
        self._language, self._look, self._targets, self._instructions = language, look, targets, instructions
        self._numbers: dict[Any, int] = {}
        self.states: list[Any] = []
        self._described = 0
        self.rows = np.zeros((64, 3 + look.width), np.int32)
        self._successors = np.full((64, len(language.tokens)), _NOT_EXPANDED, np.int32)

    def start(self, contexts: Sequence[Any]) -> Int[np.ndarray, " contexts"]:
        """The numbers of the first states."""
        first, context = [], None
        try:
            for context in contexts:
                first.append(self._number(self._language.start(context)))
        except Exception as error:
            raise failure(self._language, f"start({shorten(repr(context))})", error) from error
        self._describe_new()
        return np.array(first, np.int32)

    def expand(self, numbers: Int[np.ndarray, " n"]) -> Int[np.ndarray, "n A"]:
        """The numbers of all successors, -1 where a token is invalid. A finished program has none."""
        new = np.unique(numbers[self._successors[numbers, 0] == _NOT_EXPANDED])
        finished = self.rows[new, 1] >= self._instructions
        going_on = new[~finished]
        found = [self._step_all(self.states[number]) for number in going_on.tolist()]
        self._describe_new()
        self._successors[new[finished]] = _INVALID
        if found:
            self._successors[going_on] = found
        return self._successors[numbers]

    def _step_all(self, state: Any) -> list[int]:
        step, number_of, token = self._language.step, self._number, ""
        successors = []
        try:
            for token in self._language.tokens:
                successor = step(state, token)
                successors.append(_INVALID if successor is None else number_of(successor))
        except Exception as error:
            raise failure(self._language, f"step(state, {token!r})", error, state) from error
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
            self.rows[first:count] = [self._row(number) for number in range(first, count)]
        self._described = count

    def _row(self, number: int) -> list[int]:
        state, call = self.states[number], "instructions_done(state)"
        try:
            done = index(self._language.instructions_done(state))
            call = "denotation(state)"
            target = find(self._targets, self._language.denotation(state))
            call = self._look.call
            seen = self._look.state(state)
            if len(seen) != self._look.width:
                raise ValueError(f"{len(seen)} numbers, where the sizes that are declared make {self._look.width}")
            return [number, done, -1 if target is None else target, *seen]
        except Exception as error:
            raise failure(self._language, call, error, state) from error


def find(targets: Mapping[Hashable, int], denotation: Any) -> int | None:
    """The number of the target that equals a denotation."""
    return targets.get(freeze(denotation))


def freeze(value: Any) -> Hashable:
    """JSON as something hashable: lists as tuples, objects as the set of their items. True is not 1, but 1.0 is."""
    if isinstance(value, bool):
        return bool, value
    if isinstance(value, list | tuple):
        return tuple(map(freeze, value))
    if isinstance(value, dict):
        return frozenset((name, freeze(item)) for name, item in value.items())
    return value


def failure(language: Any, call: str, error: Exception, state: Any = None) -> VbsixError:
    """The error of a user's method, with what it was called with."""
    where = "" if state is None else f" The state: {shorten(str(state), _SHOWN)[1:-1]}"
    return VbsixError(f"{type(language).__name__}.{call} raised {describe_error(error)}.{where}")


def describe_error(error: Exception) -> str:
    """An error in one line; ours say what is wrong by themselves."""
    lines = str(error).splitlines()
    if lines and isinstance(error, VbsixError):
        return f"an error: {lines[0]}"
    return f"{type(error).__name__}: {lines[0]}" if lines else type(error).__name__
