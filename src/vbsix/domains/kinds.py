"""The types that denotations are made of, and where a target has another one."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

NAMES = {
    "str": "a text",
    "number": "a number",
    "bool": "true or false",
    "NoneType": "null",
    "list": "a list",
    "dict": "an object",
}
MISSING = "missing"


class Difference(NamedTuple):
    """Where the type of a target differs from those of all denotations."""

    place: str
    """As Python writes it after a name: `[0]["lamps"]`."""
    found: str
    expected: str

    def __str__(self) -> str:
        return f"target{self.place} is {self.found}, denotation(state){self.place} is {self.expected}"

    @property
    def pattern(self) -> tuple[str, str, str]:
        """The same for the same types at another place of a list."""
        return re.sub(r"\[\d+\]", "[]", self.place), self.found, self.expected

    @property
    def is_beside_null(self) -> bool:
        """Whether denotations may be null there, and so perhaps of another type after a rare command."""
        return NAMES["NoneType"] in self.expected


class Kinds:
    """The types of some values, and those of what is inside them.

    Lists of one length whose items have no type in common are records: each place has types of its own.
    """

    def __init__(self) -> None:
        self.types: set[str] = set()
        self.lengths: set[int] = set()
        self.items: list[Kinds] = []
        self.fields: dict[Any, Kinds] = {}
        self.common: set[Any] | None = None
        """The fields that all objects have."""
        self._any_item: Kinds | None = None
        self._any_field: Kinds | None = None

    def add(self, value: Any) -> None:
        self.types.add(_type(value))
        self._any_item = self._any_field = None
        if isinstance(value, list | tuple):
            self.lengths.add(len(value))
            for kinds, item in zip(self._first_items(len(value)), value, strict=True):
                kinds.add(item)
        elif isinstance(value, dict):
            self._share_fields({*value})
            for name, item in value.items():
                self.fields.setdefault(name, Kinds()).add(item)

    def difference(self, value: Any, place: str = "") -> Difference | None:
        """The first place at which a value has a type that none of those added has there; None if there is none.

        Any type may be where there was nothing but null, and inside lists that were always empty.
        """
        if self.types <= {"NoneType"}:
            return None
        if _type(value) not in self.types:
            return Difference(place, _name(value), _names(self.types))
        if isinstance(value, list | tuple):
            inside = self._item_differences(value, place)
        elif isinstance(value, dict):
            inside = self._field_differences(value, place)
        else:
            return None
        return next((found for found in inside if found), None)

    def _item_differences(self, value: Sequence[Any], place: str) -> Iterator[Difference | None]:
        """Compares the items of a list, each with what stood at its place, if lists are records, or else anywhere."""
        is_record = len(self.lengths) == 1 and self.items and not set.intersection(*(one.types for one in self.items))
        if is_record and len(value) not in self.lengths:
            yield Difference(place, f"a list of {len(value)}", f"a list of {len(self.items)}")
            return
        anywhere = self._any_item = self._any_item or _merge(self.items)
        for number, item in enumerate(value):
            yield (self.items[number] if is_record else anywhere).difference(item, f"{place}[{number}]")

    def _field_differences(self, value: dict[Any, Any], place: str) -> Iterator[Difference | None]:
        """Compares the fields of an object; where objects have no field in common, each with all of theirs."""
        if not self.common:
            anywhere = self._any_field = self._any_field or _merge(self.fields.values())
            for name, item in value.items():
                yield anywhere.difference(item, f"{place}[{name!r}]")
            return
        for name in [*value, *sorted(self.common - {*value}, key=str)]:
            inside = f"{place}[{name!r}]"
            if name not in self.fields:
                yield Difference(inside, _name(value[name]), MISSING)
            elif name not in value:
                yield Difference(inside, MISSING, _names(self.fields[name].types))
            else:
                yield self.fields[name].difference(value[name], inside)

    def _include(self, other: Kinds) -> None:
        """Adds all that was added to another."""
        self.types |= other.types
        self.lengths |= other.lengths
        for kinds, item in zip(self._first_items(len(other.items)), other.items, strict=True):
            kinds._include(item)
        if other.common is not None:
            self._share_fields(other.common)
        for name, field in other.fields.items():
            self.fields.setdefault(name, Kinds())._include(field)

    def _first_items(self, count: int) -> list[Kinds]:
        self.items += [Kinds() for _ in range(len(self.items), count)]
        return self.items[:count]

    def _share_fields(self, names: set[Any]) -> None:
        self.common = names if self.common is None else self.common & names


def _merge(several: Iterable[Kinds]) -> Kinds:
    merged = Kinds()
    for kinds in several:
        merged._include(kinds)
    return merged


def _type(value: Any) -> str:
    if isinstance(value, list | tuple):
        return "list"
    if isinstance(value, int | float) and not isinstance(value, bool):
        return "number"
    return next((kind.__name__ for kind in (str, bool, dict) if isinstance(value, kind)), type(value).__name__)


def _name(value: Any) -> str:
    return _names({_type(value)})


def _names(types: set[str]) -> str:
    return " or ".join(sorted(NAMES.get(kind, kind) for kind in types))
