"""Does a plain-Python language have states that are values, and methods that are functions of them?"""

from __future__ import annotations

import copy
import random
from collections.abc import Iterator, Sequence
from typing import Any

from vbsix.domains.denotations import freeze
from vbsix.domains.interning import VALUES, describe_error
from vbsix.domains.python import PythonDomain
from vbsix.utilities.errors import shorten

_SHOWN = 200
"""How much of a state a message shows."""
_VALUES = f"equal states must be equal by == and hash: {VALUES}"


def language_problems(
    domain: PythonDomain, texts: Sequence[str], instructions: int, chance: random.Random
) -> Iterator[str]:
    """Of a plain-Python language: its states must be values, and its methods functions of them."""
    language = domain.language
    asked, call = None, ""  # the state and the call that messages name
    seen_of: dict[Any, Any] = {}
    valid_of: dict[Any, list[bool]] = {}

    def is_new_behaviour(one: Any) -> bool:
        nonlocal asked, call
        asked, call = one, "instructions_done(state)"
        done = language.instructions_done(one)
        call = "denotation(state)"
        denotation = freeze(language.denotation(one))
        call = domain.features.call
        seen = done, denotation, domain.features.state(one)
        return seen_of.setdefault(one, seen) != seen

    try:
        for text in texts:
            context = domain.context(text)
            asked, call = None, f"start({shorten(text)})"
            before_start = copy.deepcopy(context)
            state = language.start(context)
            if context != before_start:
                yield _changed_context(before_start, context)
                return
            again = language.start(context)
            if not _equal(state, again):
                yield f"{call} gave two states that are not equal when called twice; {_VALUES}."
                return
            if is_new_behaviour(state) or is_new_behaviour(again):
                yield _differing(domain, state)
                return
            for _ in range(instructions * domain.max_tokens_per_instruction):
                asked, call = state, "instructions_done(state)"
                if language.instructions_done(state) >= instructions:
                    break
                before, successors = _Snapshot(state), []
                for token in domain.tokens:
                    asked, call = state, f"step(state, {token!r})"
                    successors.append(language.step(state, token))
                    if before.differs():
                        yield (
                            f"{call} changed the state that it was given: {shorten(before.text, _SHOWN)}. "
                            f"Return a new state; {VALUES}."
                        )
                        return
                    again = language.step(state, token)
                    if not _equal(successors[-1], again):
                        yield (
                            f"{call} gave two different results when called twice; it must depend on its arguments "
                            f"alone, and {_VALUES}. The state: {shorten(before.text, _SHOWN)}."
                        )
                        return
                    if again is False:
                        yield f"{call} returned False; return None where a token is invalid."
                        return
                    if again is not None and (is_new_behaviour(successors[-1]) or is_new_behaviour(again)):
                        yield _differing(domain, again)
                        return
                if context != before_start:
                    yield _changed_context(before_start, context)
                    return
                offered = getattr(language, "valid_tokens", None)
                if offered is not None:
                    asked, call = state, "valid_tokens(state)"
                    tokens = offered(state)
                    if isinstance(tokens, str):
                        yield f"{call} returned the text {tokens!r}; return a list of tokens."
                        return
                    for token, successor in zip(domain.tokens, successors, strict=True):
                        if successor is not None and token not in tokens:
                            yield (
                                f"{call} leaves out {token!r}, which step takes in the state "
                                f"{shorten(before.text, _SHOWN)}."
                            )
                            return
                valid = [one is not None for one in successors]
                if valid_of.setdefault(state, valid) != valid:
                    yield _differing(domain, state)
                    return
                state = chance.choice([one for one in successors if one is not None] or [state])
                asked, call = state, "denotation(state)"
                denotation = language.denotation(state)
                call = f"denotation(state) gave {shorten(repr(denotation))}, which JSON does not have: writing it"
                if not domain.is_json(denotation):
                    yield (
                        f"denotation(state) gave {shorten(repr(denotation))}, which is not equal to itself any more "
                        "when it was written as JSON, so that no target in a file can equal it."
                    )
                    return
    except Exception as error:  # whatever the user's own methods do
        where = "" if asked is None else f"; the state: {shorten(repr(asked), _SHOWN)}"
        yield f"{call} raised {describe_error(error)}{where}."


def _changed_context(before: Any, after: Any) -> str:
    return (
        f"start or step changed the context, from {shorten(repr(before))} to {shorten(repr(after))}: copy it in start."
    )


def _differing(domain: PythonDomain, state: Any) -> str:
    return (
        "Two states that are equal behave differently, and a search would take them for one: == must compare all that "
        f"step, instructions_done, denotation and {domain.features.call} depend on. "
        f"One: {shorten(repr(state), _SHOWN)}."
    )


class _Snapshot:
    """A state as it was, to notice that it was changed, even where it has neither `__repr__` nor a full `__eq__`."""

    def __init__(self, state: Any):
        self.state, self.text, self.hash = state, repr(state), hash(state)
        try:
            copies = [_parts(copy.deepcopy(state)) for _ in range(2)]
        except Exception:  # a state that cannot be copied is compared by its text and its hash
            copies = [{}, {}]
        # A part whose copies differ is compared by identity: a map or a graph that states share.
        self.parts = {name: part for name, part in copies[0].items() if part == copies[1][name]}

    def differs(self) -> bool:
        if repr(self.state) != self.text or hash(self.state) != self.hash:
            return True
        parts = _parts(self.state)
        return any(name not in parts or parts[name] != part for name, part in self.parts.items())


def _parts(state: Any) -> dict[Any, Any]:
    """A state, its items if it is a tuple, and its attributes."""
    items = dict(enumerate(state)) if isinstance(state, tuple) else {}
    return {None: state, **items, **getattr(state, "__dict__", {})}


def _equal(one: Any, other: Any) -> bool:
    """Whether two results of `step` are equal. An `__eq__` is not asked about None, which it need not know."""
    if one is None or other is None:
        return one is other
    return one == other and hash(one) == hash(other)
