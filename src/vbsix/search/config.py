"""How to search."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from vbsix.utilities.registry import Registry
from vbsix.utilities.settings import setting

SELECTION_RULES = Registry(
    "selection rule",
    {
        "epsilon-greedy": "vbsix.search.select:epsilon_greedy",
        "stochastic": "vbsix.search.stochastic:stochastic",
    },
)
"""Selection rules by name; see `vbsix.search.select.RuleFactory`."""


@dataclass(frozen=True)
class SearchConfig:
    """How to search. The defaults are VBSiX with our recipe."""

    space: Literal["program", "execution"] = setting(
        "execution", "In execution space, prefixes with the same execution result are one state."
    )
    beam: int = setting(32, "K, the number of states that an iteration keeps.", least=1)
    selection: str = setting(
        "stochastic",
        "How the states of the next beam are selected. `epsilon-greedy`: the best by score, and in some slots a random "
        "state instead (the paper). `stochastic`: a sample without replacement, in proportion to probability; with a "
        "critic, the sample is what the critic ranks.",
        choices=SELECTION_RULES,
    )
    epsilon: float = setting(
        0.1,
        "`epsilon-greedy`: the probability that a slot takes a random state. `stochastic`: the weight of a uniform "
        "distribution over valid tokens, mixed into the policy.",
        least=0,
        most=1,
    )
    rerank: int = setting(
        128, "K₀, the number of states with the best actor scores that the critic ranks; at least K.", least=1
    )
    critic_window: int = setting(2, "The critic ranks states of this many last instructions.", least=0)
    prune_dead_ends: bool = setting(
        False, "Drop states that the domain knows to be dead ends, such as a stack that no action can use up."
    )
    program_beam: int = setting(8, "Programs that are extracted from the graph.", least=1)
    negatives: int = setting(64, "Incorrect terminal states that get a program, the most probable first.", least=1)
