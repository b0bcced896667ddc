"""VBSiX: mapping instructions to programs by value-based search in execution space.

Names are imported when first used, so that `import vbsix` is quick and starts no JAX backend.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from vbsix.domains.base import Domain
    from vbsix.domains.hashing import hash_words
    from vbsix.domains.python import PythonDomain
    from vbsix.domains.registry import available_domains, get_domain, register_domain
    from vbsix.errors import InvalidData, InvalidDomain, InvalidProgram, InvalidWorld, UnknownName, VbsixError
    from vbsix.execution import Step, execute
    from vbsix.loading import load, load_committee
    from vbsix.parser import Parser

__version__ = "0.1.0"

__all__ = [
    "Domain",
    "InvalidData",
    "InvalidDomain",
    "InvalidProgram",
    "InvalidWorld",
    "Parser",
    "PythonDomain",
    "Step",
    "UnknownName",
    "VbsixError",
    "__version__",
    "available_domains",
    "execute",
    "get_domain",
    "hash_words",
    "load",
    "load_committee",
    "register_domain",
]

_HOMES = {
    "vbsix.domains.base": ["Domain"],
    "vbsix.domains.python": ["PythonDomain"],
    "vbsix.domains.registry": ["available_domains", "get_domain", "register_domain"],
    "vbsix.domains.hashing": ["hash_words"],
    "vbsix.errors": ["InvalidData", "InvalidDomain", "InvalidProgram", "InvalidWorld", "UnknownName", "VbsixError"],
    "vbsix.execution": ["Step", "execute"],
    "vbsix.loading": ["load", "load_committee"],
    "vbsix.parser": ["Parser"],
}
_MODULE_OF = {name: module for module, names in _HOMES.items() for name in names}


def __getattr__(name: str) -> object:
    if name not in _MODULE_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = getattr(importlib.import_module(_MODULE_OF[name]), name)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
