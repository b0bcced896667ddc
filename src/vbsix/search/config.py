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
    """K0, how many states the actor score hands to the critic."""
    epsilon: float = 0.15
    """Probability that a slot of the beam takes a random state instead of the best."""
    critic_instructions: int = 2
    """The critic ranks states of this many last instructions."""
    program_beam: int = 8
    """How many programs are extracted from the graph."""
    negatives: int = 64
    """How many incorrect terminal states get a program."""
