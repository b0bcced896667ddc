"""Denotations and targets of a plain-Python language: which of them are equal."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from math import inf, isfinite
from typing import Any

import numpy as np
from jaxtyping import Float

from vbsix.utilities.errors import VbsixError

TOLERANCE = 1e-6
"""How far a number in a denotation may be from the target's, unless the language says otherwise."""
MOST = 1e300
"""Larger numbers count as this one where the nearest target is looked for."""
Number = int | float


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
        came_late = self._need_tolerance and bool(self._numbers)
        if came_late:
            self._numbers.clear()
        number = self._numbers.get(frozen)
        number = self._targets[frozen] = self._new() if number is None else number
        self._by_shape.setdefault(shape, {})[numbers] = number
        self._lists.pop(shape, None)
        return number, came_late

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
        nearest = [known[place] for place in np.flatnonzero(distances == distances.min())]  # several beyond MOST
        return next((targets[one] for one in nearest if are_near(numbers, one, self.tolerance)), -1)


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
        _refuse_nan(value)
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


def close_neighbours(values: Sequence[Any], tolerance: float) -> dict[int, int]:
    """Which values are so near to another one that a denotation may match both, each with its nearest neighbour.

    Both are places in `values`, which are different. Values that `freeze` makes equal are one target.
    """
    from scipy.spatial import KDTree  # slow to import, and only checks of data need it

    places: dict[Hashable, dict[tuple[Number, ...], int]] = {}
    for place in {freeze(value, tolerance): place for place, value in reversed([*enumerate(values)])}.values():
        shape, numbers = split(values[place])
        if numbers:
            places.setdefault(shape, {})[numbers] = place
    found: dict[int, int] = {}
    reach = 2 * tolerance * (1 - 1e-6)  # rounded values are at twice the tolerance from each other, or a hair below
    for same in places.values():
        known = list(same)
        if len(known) > 1:
            points = np.array([list(map(_to_float, numbers)) for numbers in known])
            _, neighbours = KDTree(points).query(points, k=2, p=inf)
            for numbers, pair in zip(known, np.asarray(neighbours).tolist(), strict=True):
                other = next(known[one] for one in pair if known[one] != numbers)
                if are_near(numbers, other, reach):
                    found[same[numbers]] = same[other]
    return found


def split(value: Any) -> tuple[Hashable, tuple[Number, ...]]:
    """JSON as a shape, which is what `freeze` gives without the numbers, and the numbers in it."""
    numbers: list[Number] = []
    return _shape(value, numbers), tuple(numbers)


def _shape(value: Any, numbers: list[Number]) -> Hashable:
    if isinstance(value, bool):
        return bool, value
    if isinstance(value, int | float):
        _refuse_nan(value)
        numbers.append(value)
        return float
    if isinstance(value, list | tuple):
        return tuple([_shape(item, numbers) for item in value])
    if isinstance(value, dict):
        return dict, tuple((name, _shape(value[name], numbers)) for name in sorted(value, key=str))
    return value


def _has_fraction(numbers: Sequence[Number]) -> bool:
    return any(isinstance(one, float) and not one.is_integer() for one in numbers)


def _refuse_nan(number: Number) -> None:
    if number != number:
        raise VbsixError("NaN equals nothing, not even itself")


def _distance(one: Number, other: Number) -> Number:
    if one == other:  # also infinity
        return 0
    try:
        return abs(one - other)
    except OverflowError:  # an integer beyond all numbers with fractions
        return inf


def _to_float(number: Number) -> float:
    return float(max(-MOST, min(MOST, number)))
