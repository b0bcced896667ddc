"""Many training steps of many seeds in one compiled call."""

from __future__ import annotations

import functools
from collections.abc import Sequence

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from vbsix.config.schema import Config
from vbsix.data.examples import Arrays
from vbsix.domains.base import Domain
from vbsix.search.packing import scan_packed
from vbsix.training.objective import Metrics
from vbsix.training.step import Learner, create_learner, train_step


@functools.partial(jax.jit, static_argnums=(0, 1))
def create_learners(domain: Domain, config: Config, seeds: Int[Array, " S"]) -> Learner:
    """One learner for each seed, stacked along a first axis."""
    return jax.vmap(lambda seed: create_learner(domain, config, seed))(seeds)


def learner_shapes(domain: Domain, config: Config, seeds: Sequence[int]) -> Learner:
    """The shapes and types of what `create_learners` returns."""
    return jax.eval_shape(lambda seeds: create_learners(domain, config, seeds), jnp.asarray(seeds))


@functools.partial(jax.jit, static_argnums=(0, 1), static_argnames=("steps", "critic_ranks"), donate_argnums=2)
def train_chunk(
    domain: Domain,
    config: Config,
    learners: Learner,
    seeds: Int[Array, " S"],
    vectors: Float[Array, "V word"],
    examples: Arrays,
    first_step: Int[Array, ""],
    *,
    steps: int,
    critic_ranks: bool,
) -> tuple[Learner, Metrics]:
    """Trains all seeds for some steps.

    The randomness of a step depends on its number and its seed alone, so that a run can be interrupted anywhere.

    Returns:
        The learners, and each metric of each seed summed over the steps.
    """

    def step(learners: Learner, number: Int[Array, ""]) -> tuple[Learner, Metrics]:
        def of_seed(learner: Learner, seed: Int[Array, ""]) -> tuple[Learner, Metrics]:
            key = jax.random.fold_in(jax.random.fold_in(jax.random.key(1), seed), number)
            return train_step(domain, config, learner, vectors, examples, key, number, critic_ranks=critic_ranks)

        return jax.vmap(of_seed)(learners, seeds)

    learners, metrics = scan_packed(step, learners, first_step + jnp.arange(steps))
    return learners, jax.tree.map(lambda leaf: jnp.sum(leaf, axis=0), metrics)
