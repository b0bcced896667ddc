"""What an objective is: a loss on one example, given the networks as functions of a state, and what it needs of a run.

An objective of one's own is registered with `vbsix.register_objective`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray

from vbsix.config.schema import Config
from vbsix.data.examples import Arrays
from vbsix.domains.base import Domain
from vbsix.models.heads import Heads
from vbsix.search import Problem
from vbsix.utilities.settings import Number, is_off


class Mean(NamedTuple):
    """A mean under construction: totals and counts are summed over examples and steps."""

    total: Float[Array, "*batch"]
    count: Float[Array, "*batch"]


Metrics = dict[str, Mean]


class Context(NamedTuple):
    """One example of a batch, and what to learn from it with."""

    domain: Domain
    config: Config
    heads: Heads
    """The networks as functions of a state, differentiable."""
    frozen: Heads
    """The networks without gradients, to search with."""
    example: Arrays
    key: PRNGKeyArray
    step: Int[Array, ""]
    critic_ranks: bool | Bool[Array, ""]
    """Whether the critic ranks states at this step."""
    longest: Int[Array, ""] | None = None
    """The largest number of instructions in the batch; see `beam_search`."""

    @property
    def problem(self) -> Problem:
        return Problem.of(self.example)

    @property
    def instructions(self) -> int:
        """The largest number of instructions, which sets all shapes."""
        return self.example.words.shape[0]

    @property
    def beta(self) -> Number:
        """The exponent of the weights of correct programs at this step."""
        training = self.config.training
        if is_off(training.beta_steps):
            return training.beta
        rising = self.step / jnp.maximum(training.beta_steps, 1)
        return training.beta * jnp.where(self.step < training.beta_steps, rising, 1.0)


Loss = Callable[[Context], tuple[Float[Array, ""], Metrics]]
"""The loss on one example, and what was measured. If it measures `hit`, a batch without a hit updates
neither policy nor expert, and the critic only with `critic_updates = always`."""


@dataclass(frozen=True)
class Objective:
    """What the networks are trained with."""

    loss: Loss
    expert: bool = False
    """Whether an expert, a second policy that sees the target, is trained too."""
    critic: bool = True
    """Whether it can train a critic."""
    samples: bool = False
    """Whether it learns from samples, right and wrong ones, not from what a search finds. Then it learns from batches
    without a hit, too."""


def always(value: Any) -> Mean:
    """A metric that every example has."""
    return Mean(jnp.asarray(value, jnp.float32), jnp.float32(1))


def over(values: Float[Array, "*n"] | Int[Array, "*n"], mask: Bool[Array, "*n"]) -> Mean:
    """A metric over some of the values."""
    return Mean(jnp.sum(jnp.where(mask, values, 0.0)), jnp.sum(mask).astype(jnp.float32))


def with_longest(metrics: Metrics, example: Arrays) -> Metrics:
    """Metrics, and the same over examples of the greatest length alone."""
    longest = (example.instructions == example.words.shape[0]).astype(jnp.float32)
    return metrics | {f"{name}_longest": Mean(*(longest * part for part in mean)) for name, mean in metrics.items()}
