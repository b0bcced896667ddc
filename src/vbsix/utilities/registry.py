"""Parts of the library that a user can add to, by name."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from typing import Any

from vbsix.utilities.errors import UnknownName, VbsixError


class Registry:
    """Objects by name. Built-in ones are given as `module:attribute` and imported when first asked for."""

    def __init__(self, kind: str, built_in: Mapping[str, str]):
        self.kind = kind
        self._built_in = dict(built_in)
        self._registered: dict[str, Any] = {}

    def names(self) -> tuple[str, ...]:
        """All names, built-in ones first."""
        return (*self._built_in, *(name for name in self._registered if name not in self._built_in))

    def register(self, name: str, thing: Any) -> None:
        """Adds an object. A name can be taken once; the same object may be registered again."""
        if not isinstance(name, str) or not name or name.split() != [name]:
            raise VbsixError(f"the name of a {self.kind} must be a text without white space, not {name!r}.")
        if name in self._built_in or self._registered.get(name, thing) != thing:
            raise VbsixError(f"the {self.kind} {name!r} exists already. Known: {', '.join(self.names())}.")
        self._registered[name] = thing

    def get(self, name: str) -> Any:
        """The object of that name. Raises `UnknownName` with the names that are known."""
        if name not in self._registered:
            if name not in self._built_in:
                raise UnknownName(self.kind, name, self.names())
            module, _, attribute = self._built_in[name].partition(":")
            self._registered[name] = getattr(importlib.import_module(module), attribute)
        return self._registered[name]
