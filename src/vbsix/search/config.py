"""How to search."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True)
class SearchConfig:
    """How to search. The defaults are the paper's VBSiX."""

    space: Literal["program", "execution"] = "execution"
    """Whether states with the same execution result are merged."""
    beam: int = 32
    """K, how many states an iteration keeps."""
    rerank: int = 128
    """K0, how many states the actor score hands to the critic, which has no choice where that is no more than K."""
    exploration: Literal["slots", "sampling"] = "slots"
    """`slots`: some slots of the beam take a random state instead of the best, as in the paper; `sampling`: the beam,
    or with a critic what is handed to it, is a sample of states without replacement, in proportion to the probability
    that the policy, with some random tokens, reaches them."""
    epsilon: float = 0.15
    """Of `slots`, the probability that a slot takes a random state; of `sampling`, that a token is random."""
    pool: Literal["all", "rerank"] = "all"
    """Of `slots`: whether a random state is any that the beam leads to, or one of the K0 of largest actor score."""
    prune: bool = False
    """Whether states are left out that the domain knows to be dead ends, such as a stack that no action can use up."""
    quota: int = 0
    """Slots of the beam that each instruction's states have for themselves, best states first, so that neither those
    far ahead nor those behind push the others out; 0 for none."""
    critic_instructions: int = 2
    """The critic ranks states of this many last instructions."""
    critic_score: Literal["sum", "product"] = "sum"
    """Whether the critic's value is added to the actor score, as in the paper, which favours the instructions where it
    ranks, or multiplies it, which favours the others unless `critic_instructions` covers all."""
    program_beam: int = 8
    """How many programs are extracted from the graph."""
    negatives: int = 64
    """How many incorrect terminal states get a program."""
