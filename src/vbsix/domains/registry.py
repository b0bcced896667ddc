"""Domains by name. Built-in ones are imported when first asked for."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator, Mapping
from typing import Any

from vbsix.domains.base import Domain
from vbsix.domains.names import BUILT_IN, FROM_FILES
from vbsix.domains.symmetry import symmetry_problems
from vbsix.utilities.errors import UnknownName, VbsixError

_registered: dict[str, Domain] = {}
_origins: dict[str, str] = {}
"""Where domains were imported from, by their names."""


def available_domains() -> tuple[str, ...]:
    """Names that `get_domain` knows, sorted, without those that need files of their own, such as sail."""
    return tuple(sorted({*BUILT_IN, *_registered} - {*FROM_FILES}))


def get_domain(name: str) -> Domain:
    """The domain of that name. Raises `UnknownName` naming the known ones."""
    if not isinstance(name, str) or name not in (*available_domains(), *FROM_FILES):
        raise UnknownName("domain", str(name), (*available_domains(), *FROM_FILES))
    if name not in _registered:
        module, _, attribute = {**BUILT_IN, **FROM_FILES}[name].partition(":")
        _registered[name] = getattr(importlib.import_module(module), attribute)()
    return _registered[name]


def is_built_in(domain: Domain) -> bool:
    """Whether a domain is one of ours."""
    kind = type(domain.unwrapped)
    return f"{kind.__module__}:{kind.__name__}" in BUILT_IN.values()


def register_domain(domain: Domain) -> None:
    """Makes a domain known by its name. A name can be taken once; the same object may be given again."""
    if not isinstance(domain, Domain):
        raise VbsixError(f"register_domain wants an instance of vbsix.Domain, not {domain!r}.")
    for problem in declaration_problems(domain):
        raise VbsixError(problem)
    if _registered.get(domain.name) is not domain and domain.name in (*available_domains(), *FROM_FILES):
        kind = type(getattr(domain, "language", domain)).__name__
        taken = ", ".join(sorted({*available_domains(), *FROM_FILES}))
        raise VbsixError(
            f"{kind}: the domain name {domain.name!r} is taken; give the class another `name`. Taken: {taken}."
        )
    _registered[domain.name] = domain


def declaration_problems(domain: Domain) -> Iterator[str]:
    """What is wrong with what a domain declares of itself."""
    kind = type(getattr(domain, "language", domain)).__name__
    name, tokens = getattr(domain, "name", None), getattr(domain, "tokens", None)
    if not isinstance(name, str) or not name:
        yield f"{kind}.name must be a text that names the domain, not {name!r}."
    if not isinstance(tokens, tuple) or not tokens or not all(isinstance(token, str) and token for token in tokens):
        yield f"{kind}.tokens must be a tuple of texts, not {tokens!r}."
    elif any(token.split() != [token] for token in tokens):
        yield f"{kind}.tokens: a token has white space in it."
    elif len(set(tokens)) < len(tokens):
        yield f"{kind}.tokens: a token stands there twice."
    for size in ("max_tokens_per_instruction", "slots", "objects", "elements", "values"):
        number, least = getattr(domain, size, None), int(size == "max_tokens_per_instruction")
        if not isinstance(number, int) or number < least:
            yield f"{kind}.{size} must be a whole number from {least} on, not {number!r}."
    attributes = getattr(domain, "attributes", None)
    if (
        not isinstance(attributes, Mapping)
        or not attributes
        or not all(isinstance(name, str) and isinstance(count, int) and count > 0 for name, count in attributes.items())
    ):
        yield f"{kind}.attributes must map names to how many ids they have, not {attributes!r}."
    for problem in symmetry_problems(domain.symmetries, tokens if isinstance(tokens, tuple) else ()):
        yield f"{kind}.symmetries: {problem}."


def import_domain(name: str) -> Domain:
    """The domain of that name; or, where it reads `module:Class`, the one that is found there, made known.

    What is found is a `Domain`, a class of one, or a class that `PythonDomain` takes. The module's code runs, so the
    name must be one that the user gave, and never one out of a file. The current folder is imported
    from where no installed module has that name.
    """
    if ":" not in name:
        return get_domain(name)
    if (known := next((domain for domain, origin in _origins.items() if origin == name), None)) is not None:
        return _registered[known]
    domain = _find(*name.split(":", 1))
    register_domain(domain)
    _origins[domain.name] = name
    return domain


def as_domain(domain: Any) -> Domain:
    """A domain given as itself, by name, as its class, or as a class that `PythonDomain` takes."""
    if isinstance(domain, str):
        return import_domain(domain)
    if isinstance(domain, type) and issubclass(domain, Domain):
        domain = domain()
    from vbsix.domains.python import PythonDomain

    return domain if isinstance(domain, Domain) else PythonDomain(domain)


def origin_of(name: str) -> str | None:
    """What a domain was imported as, as in `module:Class`; None if it was not."""
    return _origins.get(name)


def _find(module_name: str, attribute: str) -> Domain:
    if "" not in sys.path:
        sys.path.append("")  # the last: a folder of a stranger's must not stand in for what is installed
    from vbsix.domains.interning import describe_error
    from vbsix.domains.python import PythonDomain
    from vbsix.domains.requirements import make

    try:
        module = importlib.import_module(module_name)
    except Exception as error:
        raise VbsixError(f"{module_name} cannot be imported: {describe_error(error)}") from error
    if not hasattr(module, attribute):
        raise VbsixError(f"{module_name} has no {attribute}; name a domain as MODULE:CLASS.")
    found = getattr(module, attribute)
    for domain in _registered.values():  # the module may have made it known itself
        language = getattr(domain, "language", domain)
        if found is domain or found is language or found is type(language):
            return domain
    if isinstance(found, type) and issubclass(found, Domain):
        found = make(found)
    return found if isinstance(found, Domain) else PythonDomain(found)
