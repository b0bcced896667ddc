"""The types that denotations are made of, and where a target has another one."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
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

    def add(self, value: Any) -> None:
        self.types.add(_type(value))
        if isinstance(value, list | tuple):
            self.lengths.add(len(value))
            self.items += [Kinds() for _ in value[len(self.items) :]]
            for kinds, item in zip(self.items, value, strict=False):
                kinds.add(item)
        elif isinstance(value, dict):
            self.common = {*value} if self.common is None else self.common & {*value}
            for name, item in value.items():
                self.fields.setdefault(name, Kinds()).add(item)

    def difference(self, value: Any) -> Difference | None:
        """The first place at which a value has a type that none of those added has there; None if there is none."""
        return _difference([self], value, "")


def _difference(known: Sequence[Kinds], value: Any, place: str) -> Difference | None:
    """Compares a value with all that may stand at its place."""
    types = set[str]().union(*(kinds.types for kinds in known))
    if not types:
        return None  # inside lists that are always empty
    if _type(value) not in types:
        return Difference(place, _name(value), _names(types))
    if isinstance(value, list | tuple):
        inside = _list_differences(known, value, place)
    elif isinstance(value, dict):
        inside = (_field_difference(known, value, name, place) for name in [*value, *_common(known)])
    else:
        return None
    return next((found for found in inside if found), None)


def _list_differences(known: Sequence[Kinds], value: Sequence[Any], place: str) -> Iterator[Difference | None]:
    """Compares the items of a list, each with what stood at its place, if lists are records, or else anywhere."""
    records = [kinds for kinds in known if kinds.items]
    items = [item for kinds in records for item in kinds.items]
    lengths = set[int]().union(*(kinds.lengths for kinds in records))
    is_record = len(lengths) == 1 and not set.intersection(*(item.types for item in items))
    if is_record and len(value) not in lengths:
        yield Difference(place, f"a list of {len(value)}", f"a list of {lengths.pop()}")
        return
    for number, item in enumerate(value):
        beside = [kinds.items[number] for kinds in records] if is_record else items
        yield _difference(beside, item, f"{place}[{number}]")


def _field_difference(known: Sequence[Kinds], value: dict[Any, Any], name: Any, place: str) -> Difference | None:
    """Compares a field; where objects have no field in common, with all their fields."""
    inside = f"{place}[{name!r}]"
    if _common(known):
        fields = [kinds.fields[name] for kinds in known if name in kinds.fields]
    else:
        fields = [field for kinds in known for field in kinds.fields.values()]
        if not fields:
            return None
    if not fields:
        return Difference(inside, _name(value[name]), MISSING)
    if name not in value:
        return Difference(inside, MISSING, _names(set[str]().union(*(field.types for field in fields))))
    return _difference(fields, value[name], inside)


def _common(known: Sequence[Kinds]) -> list[Any]:
    """The fields that all objects have."""
    common = [kinds.common for kinds in known if kinds.common is not None]
    return sorted(set.intersection(*common), key=str) if common else []


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
