"""Constants of a language that can be exchanged for each other, and the words for them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Symmetry:
    """Constants that are interchangeable: nothing in the language treats one of them differently from another.

    Exchange them in a program and in its first world, and the program leads to the same world with them exchanged. Such
    are colours that nothing mixes, or names. Exchanged in the words as well, an example becomes another true example.
    """

    constants: Sequence[str]
    """Tokens of the language."""
    words: Mapping[str, Sequence[str]]
    """The words that name each constant: its usual word, then other forms, such as the plural. Forms at the same place
    correspond; where a constant has no such form, its usual word stands in."""


def symmetry_problems(symmetries: Sequence[Any], tokens: Sequence[str]) -> Iterator[str]:
    """What is wrong with the symmetries of a language with these tokens."""
    if wrong := [one for one in symmetries if not isinstance(one, Symmetry)]:
        yield f"expected a list of `vbsix.Symmetry`, not {wrong[0]!r}"
        return
    named: Counter[str] = Counter()
    for symmetry in symmetries:
        if len(symmetry.constants) < 2:
            yield f"a symmetry needs two or more constants, not {tuple(symmetry.constants)!r}"
        for constant in symmetry.constants:
            if constant not in tokens:
                yield f"{constant!r} is not a token"
            forms = symmetry.words.get(constant)
            if isinstance(forms, str) or not forms:
                yield f"`words` must give a list of words for {constant!r}, not {forms!r}"
                continue
            if wrong := [form for form in forms if form.split() != [form] or form != form.lower()]:
                yield f"{wrong[0]!r} for {constant!r} is not a single word in lower case"
            named.update(set(forms))
    constants = Counter(constant for symmetry in symmetries for constant in symmetry.constants)
    for name in [name for name, count in constants.items() if count > 1]:
        yield f"{name!r} is among the constants twice"
    for word in [word for word, count in named.items() if count > 1]:
        yield f"the word {word!r} names two constants"


def colour_words(names: Mapping[str, str], **more: Sequence[str]) -> dict[str, tuple[str, ...]]:
    """The words for colours that SCONE's texts use, given the letter and the name of each; `more` by letter."""
    return {
        letter: (name, f"{name}s", f"{name}-shirted", f"{name}-hatted", *more.get(letter, ()))
        for letter, name in names.items()
    }


def rename(value: Any, names: Mapping[str, str]) -> Any:
    """JSON with all texts in it that are names replaced."""
    if isinstance(value, str):
        return names.get(value, value)
    if isinstance(value, list | tuple):
        return [rename(item, names) for item in value]
    if isinstance(value, dict):
        return {names.get(name, name): rename(item, names) for name, item in value.items()}
    return value
