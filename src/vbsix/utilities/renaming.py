"""Names that were changed: the old ones are accepted, with a note."""

from __future__ import annotations

import functools
import json
import logging
import warnings
from collections.abc import Callable, Container
from typing import ParamSpec, TypeVar

Parameters = ParamSpec("Parameters")
Result = TypeVar("Result")

OLD_FIELDS = {"world": "context", "utterances": "instructions"}
"""Fields of requests in JSON that were renamed."""
_logger = logging.getLogger("vbsix")


def renamed(**names: str) -> Callable[[Callable[Parameters, Result]], Callable[Parameters, Result]]:
    """Has a function accept old names of its parameters, each given with the new one."""

    def decorate(function: Callable[Parameters, Result]) -> Callable[Parameters, Result]:
        @functools.wraps(function)
        def call(*args: Parameters.args, **kwargs: Parameters.kwargs) -> Result:
            for old in names.keys() & kwargs.keys():
                if names[old] in kwargs:
                    raise TypeError(f"{function.__name__}: {names[old]} is given twice, once under its old name {old}.")
                warnings.warn(f"{old} is now called {names[old]}.", FutureWarning, stacklevel=2)
                kwargs[names[old]] = kwargs.pop(old)
            return function(*args, **kwargs)

        return call

    return decorate


@functools.cache
def note_old_name(old: str, new: str) -> None:
    """Notes, once, that an old name was given."""
    _logger.warning("note: %s is now called %s.", old, new)


def note_old_fields(given: Container[str]) -> None:
    """Notes which fields of a request have their old names."""
    for old, new in OLD_FIELDS.items():
        if old in given and new not in given:
            note_old_name(json.dumps(old), json.dumps(new))
