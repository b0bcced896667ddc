"""Parts of your own: encoders, policy networks, objectives and selection rules, by name.

A setting names the part: `network.encoder`, `network.policy`, `training.objective`, `search.selection`. A run's files
hold the name alone, so whoever loads the run registers the part first.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from vbsix.config.schema import OBJECTIVES
from vbsix.models.config import ENCODERS, POLICIES
from vbsix.models.encoder import Encoder
from vbsix.search.config import SELECTION_RULES
from vbsix.search.select import RuleFactory
from vbsix.training.objective import Loss, Objective


def register_encoder(name: str, encoder: type[Encoder]) -> None:
    """Adds an utterance encoder, a subclass of `vbsix.models.Encoder`, for `network.encoder`."""
    ENCODERS.register(name, encoder)


def register_policy(name: str, policy: Callable[..., Any]) -> None:
    """Adds a policy network for `network.policy`.

    `policy(domain, config, key=key)` makes a `vbsix.models.PolicyNetwork`; for Expert-MML it takes `sees_target=True`.
    """
    POLICIES.register(name, policy)


def register_objective(name: str, objective: Objective | Loss) -> None:
    """Adds an objective for `training.objective`.

    Either the loss on one example, or a `vbsix.training.objective.Objective`, which also says whether the objective
    trains an expert, can train a critic, and learns from samples.
    """
    OBJECTIVES.register(name, objective if isinstance(objective, Objective) else Objective(objective))


def register_selection_rule(name: str, rule: RuleFactory) -> None:
    """Adds a selection rule, see `vbsix.search.select.RuleFactory`, for `search.selection`."""
    SELECTION_RULES.register(name, rule)
