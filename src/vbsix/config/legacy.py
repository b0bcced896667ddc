"""Configurations that were saved by vbsix 0.1: the old names of settings and methods."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from vbsix.config.schema import Config, flatten, override

RENAMED = {
    "data.rests": "data.suffixes",
    "data.own_words": "data.oov_min_count",
    "network.embedding_spread": "network.embedding_init_std",
    "network.token_spread": "network.token_init_std",
    "search.exploration": "search.selection",
    "search.prune": "search.prune_dead_ends",
    "search.critic_instructions": "search.critic_window",
    "training.short_first": "training.curriculum_steps",
}
VALUES = {
    "search.selection": {"slots": "epsilon-greedy", "sampling": "stochastic"},
    "training.objective": {"expert": "expert-mml"},
    "training.labels": {"suffix": "paper"},
}
REMOVED = {
    *("network.slots", "network.objects", "network.elements", "network.own_encoders"),
    *("search.pool", "search.quota", "search.critic_score", "training.alpha", "training.teacher_threshold"),
}
"""Settings that no longer exist."""
OLD_DEFAULTS = {
    "network.renormalise": False,
    "search.selection": "epsilon-greedy",
    "search.epsilon": 0.15,
    "training.programs": "extracted",
    "training.labels": "paper",
}
"""Defaults of 0.1 that are different now; files of 0.1 may leave settings out that were added later."""

_OOV_SUFFIXES = "oov-words+suffixes"
METHODS = {
    **{name: (name, "stochastic", "") for name in ("vbsix", "mml", "execution-only", "value-only")},
    **{name: (name, "stochastic", "") for name in ("expert-mml", "reinforce")},
    "paper-vbsix": ("vbsix", "published-0.1", ""),
    "paper-mml": ("mml", "published-0.1", ""),
    "mml-64": ("mml", "stochastic", "beam-64"),
    "execution-256": ("execution-only", "stochastic", "beam-256"),
    "vbsix-words": ("vbsix", "stochastic", "oov-words"),
    "vbsix-spread": ("vbsix", "stochastic", "oov-words+init-0.1"),
    "execution-256-words": ("execution-only", "stochastic", "beam-256+oov-words"),
    "mml-rests": ("mml", "stochastic", _OOV_SUFFIXES),
    "execution-only-rests": ("execution-only", "stochastic", _OOV_SUFFIXES),
    "value-only-rests": ("value-only", "stochastic", _OOV_SUFFIXES),
    "vbsix-rests": ("vbsix", "stochastic", _OOV_SUFFIXES),
    "execution-256-rests": ("execution-only", "stochastic", f"beam-256+{_OOV_SUFFIXES}"),
    "mml-orig": ("mml", "stochastic", "prior-work"),
    "vbsix-orig": ("vbsix", "stochastic", "prior-work"),
}
"""Method, recipe and variant by the method names of 0.1."""


def read_config(tables: Mapping[str, Any], method: str | None = None) -> Config:
    """The config that a run or a model was saved with, by this version or by 0.1.

    Args:
        tables: nested tables of settings.
        method: the method's name in a file of 0.1, which kept it beside the config.

    Settings that no longer exist are left out: they changed what was learned, not how a policy predicts. Parts of the
    user's own need not be registered until they are used: a parser uses no objective.
    """
    saved = {name: value for name, value in flatten(tables) if name not in REMOVED}
    settings = saved if "method" in saved else upgrade(saved, method or "custom")
    return override(Config(), settings, registered=False)


def upgrade(saved: Mapping[str, Any], method: str) -> dict[str, Any]:
    """Settings of 0.1 under their new names."""
    names = METHODS.get(method, (method, "custom", ""))
    settings: dict[str, Any] = {**OLD_DEFAULTS, **dict(zip(("method", "recipe", "variant"), names, strict=True))}
    for name, value in saved.items():
        name = RENAMED.get(name, name)
        settings[name] = VALUES.get(name, {}).get(value, value) if isinstance(value, str) else value
    return settings
