"""Many training steps of many seeds as one compiled call, and evaluation likewise."""

from __future__ import annotations

import functools
from collections.abc import Sequence

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from vbsix.data.examples import Arrays
from vbsix.domains.base import Domain
from vbsix.execution import run_batch
from vbsix.models import Policy
from vbsix.search import Programs, predict
from vbsix.search.packing import scan_packed
from vbsix.training.config import Config
from vbsix.training.devices import line_up
from vbsix.training.step import Learner, Metrics, create_learner, train_step


@functools.partial(jax.jit, static_argnums=(0, 1))
def create_learners(domain: Domain, config: Config, seeds: Int[Array, " S"]) -> Learner:
    """One learner for each seed, stacked along a first axis."""
    return jax.vmap(lambda seed: create_learner(domain, config, seed))(seeds)


def learner_shapes(domain: Domain, config: Config, seeds: Sequence[int]) -> Learner:
    """What `create_learners` gives, without the numbers."""
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

    The randomness of a step depends on its number and its seed alone, so that a run can be cut anywhere.

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


@functools.partial(jax.jit, static_argnums=0, static_argnames=("beam", "best"))
def predict_batch(
    domain: Domain,
    policies: Policy,
    vectors: Float[Array, "V word"],
    examples: Arrays,
    *,
    beam: int,
    best: int = 1,
) -> Programs:
    """The most probable programs of each example under each seed's policy; leaves [S, N, best, ...]."""

    def of_example(policy: Policy, vectors: Float[Array, "V word"], example: Arrays) -> Programs:
        words, mask = vectors[example.words], example.words > 0
        actor = policy.for_example(domain, policy.prepare(policy.encode(words, mask)))
        most = example.words.shape[0]
        return predict(domain, actor, example.world, example.instructions, most=most, beam=beam, best=best)

    def of_part(needed: tuple[Policy, Array], part: Arrays) -> Programs:
        policies, vectors = needed
        return jax.vmap(lambda policy: jax.vmap(lambda example: of_example(policy, vectors, example))(part))(policies)

    return line_up(of_part, domain, len(examples.words))((policies, vectors), examples)


@functools.partial(jax.jit, static_argnums=0)
def is_correct(domain: Domain, examples: Arrays, tokens: Int[Array, "S N L"]) -> Array:
    """Whether each seed's program for each example leads to the example's target; an empty program does not."""
    starts = jax.vmap(lambda world: domain.start(world, examples.words.shape[1]))(examples.world)

    def of_seed(tokens: Int[Array, "N L"]) -> Array:
        states, valid = run_batch(domain, starts, tokens)
        return valid & (tokens[:, 0] >= 0) & jax.vmap(domain.matches)(states, examples.target)

    return jax.vmap(of_seed)(tokens)
