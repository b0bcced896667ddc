"""What the networks see of the states and targets of a plain-Python language."""

from __future__ import annotations

import dataclasses
import re
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import accumulate
from typing import Any, NamedTuple

import numpy as np

from vbsix.utilities.errors import VbsixError

PARTS, PART_IDS = 12, 64
"""How many parts of a state are seen where the language does not describe it, and how many ids each has."""


class Features(NamedTuple):
    """What the networks see of a language; sizes are those of `Domain`."""

    slots: int
    objects: int
    elements: int
    values: int
    attributes: Mapping[str, int]
    state: Callable[[Any], list[int]]
    """Of a state, flat: the slots' values, their objects, the world's elements."""
    target: Callable[[Any], list[int]]
    """Of a target, flat: the elements."""
    call: str
    """The method behind it, for messages."""

    @property
    def width(self) -> int:
        """How many numbers are seen of a state."""
        return self.slots + (self.slots * self.objects + self.elements) * len(self.attributes)


def choose_features(language: Any) -> Features:
    """The features that a language defines, or else the parts of its states."""
    if hasattr(language, "observe"):
        return _own_features(language)
    if hasattr(language, "describe"):
        return _described(language)
    return _at_parts()


def _own_features(language: Any) -> Features:
    """The language has the methods of a domain in JAX."""
    wanted = "observe_world", "observe_target", "slots", "objects", "elements", "values", "attributes"
    if lacking := [name for name in wanted if not hasattr(language, name)]:
        raise VbsixError(f"{type(language).__name__}: with observe(state) goes {', '.join(lacking)}, which it lacks.")

    def state(state: Any) -> list[int]:
        return [*_flat(language.observe(state)), *_flat([language.observe_world(state)])]

    return Features(
        slots=language.slots,
        objects=language.objects,
        elements=language.elements,
        values=language.values,
        attributes=language.attributes,
        state=state,
        target=lambda target: _flat([language.observe_target(target)]),
        call="observe(state)",
    )


def _flat(arrays: Sequence[Any]) -> list[int]:
    return [number for array in arrays for number in np.asarray(array, np.int32).reshape(-1).tolist()]


def _described(language: Any) -> Features:
    """The language names its features."""
    declared = getattr(language, "attributes", None)
    ids = {name: _ids(name, values) for name, values in declared.items()} if isinstance(declared, Mapping) else {}
    if not ids:
        raise VbsixError(
            f"{type(language).__name__}: with describe(state) goes `attributes`, which maps each name that it gives to "
            "its categories, or to n for the integers from 0 to n - 1."
        )

    def encode(description: Any) -> list[int]:
        if not isinstance(description, Mapping):
            raise VbsixError(f"expected a mapping of names to values, not {description!r}")
        if not description.keys() <= ids.keys():
            raise VbsixError(f"{sorted(description.keys() - ids.keys())} not in `attributes`")
        try:
            return [known[description.get(name)] for name, known in ids.items()]
        except (KeyError, TypeError):
            wrong = next(name for name, known in ids.items() if not _is_known(description.get(name), known))
            known = ", ".join(map(repr, list(ids[wrong])[1:]))
            raise VbsixError(
                f"{wrong} is {description[wrong]!r}, `attributes` has {known}; None stands for nothing"
            ) from None

    describe_target = getattr(language, "describe_target", lambda target: {})
    counts = {name: len(known) - 1 for name, known in ids.items()}
    return _one_slot_each(
        counts, lambda state: encode(language.describe(state)), lambda target: encode(describe_target(target))
    )


def _ids(name: str, values: Any) -> dict[Any, int]:
    """An id for each value of an attribute; None has 0."""
    if isinstance(values, str):
        raise VbsixError(
            f"`attributes`: {name} needs a list of categories, such as [{values!r}], not the text {values!r}."
        )
    try:
        known = range(values) if isinstance(values, int) else tuple(values)
        ids = {None: 0, **{value: number for number, value in enumerate(known, start=1)}}
    except TypeError:
        raise VbsixError(f"`attributes`: {name} needs a list of categories or a number, not {values!r}.") from None
    if not known:
        raise VbsixError(f"`attributes`: {name} has no values.")
    if None in known:
        raise VbsixError(f"`attributes`: {name} has None among its categories, which stands for nothing already.")
    if len(ids) <= len(known):
        raise VbsixError(f"`attributes`: {name} has a category twice.")
    return ids


def _is_known(value: Any, known: Mapping[Any, int]) -> bool:
    try:
        return value in known
    except TypeError:
        return False


def _at_parts() -> Features:
    """What is inside a state, piece by piece; texts and large numbers may share an id."""

    def encode(thing: Any) -> list[int]:
        ids = [_part_id(part) for _, part in zip(range(PARTS), _parts(thing), strict=False)]
        return ids + [0] * (PARTS - len(ids))

    return _one_slot_each({f"part {n}": PART_IDS for n in range(1, PARTS + 1)}, encode, encode)


def _parts(thing: Any) -> Iterator[Any]:
    if dataclasses.is_dataclass(thing) and not isinstance(thing, type):
        thing = [getattr(thing, field.name) for field in dataclasses.fields(thing)]
    elif isinstance(thing, Mapping):
        thing = [thing[name] for name in sorted(thing, key=str)]
    elif isinstance(thing, frozenset):
        thing = sorted(thing, key=str)
    elif type(thing).__repr__ is object.__repr__ and type(thing).__str__ is object.__str__:
        thing = _fields(thing)
    if isinstance(thing, list | tuple):
        for part in thing:
            yield from _parts(part)
    else:
        yield thing


def _fields(thing: Any) -> list[Any]:
    """What an object holds that does not say what it is."""
    slots = [name for kind in type(thing).__mro__ for name in getattr(kind, "__slots__", ())]
    held = {name: getattr(thing, name) for name in slots if hasattr(thing, name)} | getattr(thing, "__dict__", {})
    return [type(thing).__name__, *(held[name] for name in sorted(held))]


def _part_id(part: Any) -> int:
    if part is None:
        return 0
    if isinstance(part, int):
        return 1 + int(part) % PART_IDS
    text = str(part)
    if re.search(r" at 0x[0-9a-f]+>", text):
        raise VbsixError(f"{text} is another text in each run: give describe(state)")
    return 1 + zlib.crc32(text.encode()) % PART_IDS


def _one_slot_each(
    counts: Mapping[str, int], state: Callable[[Any], list[int]], target: Callable[[Any], list[int]]
) -> Features:
    """Each named thing has a slot of its own, where its values are constants, and is an attribute of one element."""
    offsets = [0, *accumulate(counts.values())]

    def both(thing: Any) -> list[int]:
        ids = state(thing)
        return [id_ + first if id_ else 0 for id_, first in zip(ids, offsets, strict=False)] + ids

    return Features(len(counts), 0, 1, offsets[-1], dict(counts), both, target, "describe(state)")
