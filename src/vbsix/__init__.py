"""VBSiX: mapping instructions to programs by value-based search in execution space.

Names are imported when first used, so that `import vbsix` is quick and starts no JAX backend.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from vbsix.api import evaluate, resume, sweep, train
    from vbsix.data.words import UtteranceVectors, Words
    from vbsix.domains.base import Domain
    from vbsix.domains.execution import Step, execute
    from vbsix.domains.hashing import hash_words
    from vbsix.domains.python import PythonDomain
    from vbsix.domains.registry import available_domains, get_domain, register_domain
    from vbsix.domains.symmetry import Symmetry
    from vbsix.parsing.loading import load
    from vbsix.parsing.parser import Parser
    from vbsix.plugins import register_encoder, register_objective, register_policy, register_selection_rule
    from vbsix.runs.loop import Interrupted
    from vbsix.show.drawing import Drawing, draw_world
    from vbsix.show.searching import Search, search_programs
    from vbsix.trained import Progress, TrainedRun, TrainedSweep
    from vbsix.utilities.errors import (
        InvalidData,
        InvalidDomain,
        InvalidProgram,
        InvalidWorld,
        UnknownName,
        VbsixError,
    )

__version__ = "0.2.0"

_MODULES = {
    "vbsix.api": ["evaluate", "resume", "sweep", "train"],
    "vbsix.data.words": ["UtteranceVectors", "Words"],
    "vbsix.domains.base": ["Domain"],
    "vbsix.domains.execution": ["Step", "execute"],
    "vbsix.domains.hashing": ["hash_words"],
    "vbsix.domains.python": ["PythonDomain"],
    "vbsix.domains.registry": ["available_domains", "get_domain", "register_domain"],
    "vbsix.domains.symmetry": ["Symmetry"],
    "vbsix.parsing.loading": ["load"],
    "vbsix.parsing.parser": ["Parser"],
    "vbsix.plugins": ["register_encoder", "register_objective", "register_policy", "register_selection_rule"],
    "vbsix.runs.loop": ["Interrupted"],
    "vbsix.show.drawing": ["Drawing", "draw_world"],
    "vbsix.show.searching": ["Search", "search_programs"],
    "vbsix.trained": ["Progress", "TrainedRun", "TrainedSweep"],
    "vbsix.utilities.errors": [
        "InvalidData",
        "InvalidDomain",
        "InvalidProgram",
        "InvalidWorld",
        "UnknownName",
        "VbsixError",
    ],
}
_MODULE_OF = {name: module for module, names in _MODULES.items() for name in names}

__all__ = [
    "Domain",
    "Drawing",
    "Interrupted",
    "InvalidData",
    "InvalidDomain",
    "InvalidProgram",
    "InvalidWorld",
    "Parser",
    "Progress",
    "PythonDomain",
    "Search",
    "Step",
    "Symmetry",
    "TrainedRun",
    "TrainedSweep",
    "UnknownName",
    "UtteranceVectors",
    "VbsixError",
    "Words",
    "__version__",
    "available_domains",
    "draw_world",
    "evaluate",
    "execute",
    "get_domain",
    "hash_words",
    "load",
    "register_domain",
    "register_encoder",
    "register_objective",
    "register_policy",
    "register_selection_rule",
    "resume",
    "search_programs",
    "sweep",
    "train",
]


def __getattr__(name: str) -> object:
    if name not in _MODULE_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = getattr(importlib.import_module(_MODULE_OF[name]), name)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
