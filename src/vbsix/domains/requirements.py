"""What a plain-Python class needs to be a language."""

from __future__ import annotations

import math
from typing import Any

from vbsix.domains.denotations import TOLERANCE
from vbsix.domains.interning import describe_error
from vbsix.utilities.errors import InvalidDomain, VbsixError


def make(kind: type) -> Any:
    """An object of a class that needs nothing to be made."""
    try:
        return kind()
    except Exception as error:
        raise VbsixError(
            f"{kind.__name__}() raised {describe_error(error)}. If it needs arguments, create the object yourself."
        ) from error


def require_language(language: Any) -> None:
    """Says what a class lacks to be a language."""
    kind = type(language).__name__
    for method in ("start", "step", "instructions_done", "denotation"):
        if not callable(getattr(language, method, None)):
            raise VbsixError(f"{kind} has no method {method}, which PythonDomain needs.")
    most = getattr(language, "max_tokens_per_instruction", None)
    if not isinstance(most, int) or most < 1:
        raise VbsixError(f"{kind}.max_tokens_per_instruction must be a whole number from 1 on, not {most!r}.")
    tokens = getattr(language, "tokens", None)
    if not isinstance(tokens, list | tuple) or not tokens or not all(isinstance(token, str) for token in tokens):
        raise VbsixError(f"{kind}.tokens must be a list of texts, not {tokens!r}.")
    tolerance = getattr(language, "tolerance", TOLERANCE)
    if isinstance(tolerance, bool) or not isinstance(tolerance, int | float) or not 0 <= tolerance < math.inf:
        raise VbsixError(f"{kind}.tolerance must be a number from 0 on, not {tolerance!r}.")


def require_hashable(language: Any, state: Any) -> None:
    try:
        hash(state)
    except Exception as error:
        problem = f"start(context) gave a state that cannot be hashed: {describe_error(error)}."
        raise InvalidDomain(type(language).__name__, [problem]) from error
