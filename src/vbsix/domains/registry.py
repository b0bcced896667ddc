"""Domains by name. Built-in ones are imported when first asked for."""

from __future__ import annotations

import importlib

from vbsix.domains.base import Domain
from vbsix.errors import UnknownName, VbsixError

_BUILT_IN = {
    "alchemy": "vbsix.domains.alchemy:Alchemy",
    "scene": "vbsix.domains.scene:Scene",
    "tangrams": "vbsix.domains.tangrams:Tangrams",
}
_registered: dict[str, Domain] = {}


def available_domains() -> tuple[str, ...]:
    """Names that `get_domain` knows, sorted."""
    return tuple(sorted({*_BUILT_IN, *_registered}))


def get_domain(name: str) -> Domain:
    """The domain of that name. Raises `UnknownName` naming the known ones."""
    if not isinstance(name, str) or name not in available_domains():
        raise UnknownName("domain", str(name), available_domains())
    if name not in _registered:
        module, _, attribute = _BUILT_IN[name].partition(":")
        _registered[name] = getattr(importlib.import_module(module), attribute)()
    return _registered[name]


def register_domain(domain: Domain) -> None:
    """Makes a domain known by its name. A name can be taken once; the same object may be given again."""
    if not isinstance(domain, Domain):
        raise VbsixError(f"register_domain wants an instance of vbsix.Domain, not {domain!r}.")
    name, tokens = getattr(domain, "name", None), getattr(domain, "tokens", None)
    if not isinstance(name, str) or not name:
        raise VbsixError(f"{type(domain).__name__}.name must be a text that names the domain, not {name!r}.")
    if not isinstance(tokens, tuple) or not tokens or not all(isinstance(token, str) and token for token in tokens):
        raise VbsixError(f"{type(domain).__name__}.tokens must be a tuple of texts, not {tokens!r}.")
    if len(set(tokens)) < len(tokens):
        raise VbsixError(f"{type(domain).__name__}.tokens: a token stands there twice.")
    taken = _registered.get(domain.name)
    if taken is not domain and domain.name in available_domains():
        raise VbsixError(f"the domain name {domain.name!r} is taken. Taken: {', '.join(available_domains())}.")
    _registered[domain.name] = domain
