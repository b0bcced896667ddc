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
        "execution", "`execution`: prefixes that lead to the same state are one candidate. `program`: each is its own."
    )
    beam: int = setting(32, "K, the number of states that an iteration keeps.", least=1)
    selection: str = setting(
        "stochastic",
        "How the states of the next beam are selected. `epsilon-greedy`: the best by score, and in some places a "
        "random state instead (the paper). `stochastic`: a sample without replacement, in proportion to probability; "
        "where a critic ranks, it chooses the beam from a larger sample.",
        choices=SELECTION_RULES,
    )
    epsilon: float = setting(
        0.1,
        "`epsilon-greedy`: the probability that a place in the beam takes a random state. `stochastic`: the weight of "
        "a uniform distribution over valid tokens, mixed into the policy.",
        least=0,
        most=1,
        input_of="step",
    )
    rerank: int = setting(
        128,
        "K₀, the number of states that the critic ranks: those with the best actor scores (`epsilon-greedy`) or a "
        "sample (`stochastic`). If it is below K, K is used.",
        least=1,
    )
    critic_window: int = setting(2, "The critic ranks states of the last n instructions.", least=0, input_of="step")
    prune_dead_ends: bool = setting(
        False, "Drop dead ends: states from which the domain knows that no tokens can complete the command."
    )
    skip_no_ops: bool = setting(
        False,
        "Do not offer commands that leave the denotation as it was, neither in training nor in prediction.",
    )
    program_beam: int = setting(
        8, "How many programs are extracted from the graph, at most; 0 for as many as the beam has states.", least=0
    )
    negatives: int = setting(
        64,
        "How many incorrect final states (the most probable) the critic learns from, each with a program that leads to "
        'it; only with `training.labels="paper"`.',
        least=1,
    )

    @property
    def programs(self) -> int:
        """How many programs are extracted."""
        return self.program_beam or self.beam
