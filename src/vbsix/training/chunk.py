"""Many training steps of many learners in one compiled call.

A learner is a seed of a run. Learners may be of several runs that are compiled together: such runs differ in numbers
that the compiled function takes as inputs, and in the examples that they train on (see `config/variation.py`).
"""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from vbsix.config.schema import Config, to_settings
from vbsix.config.variation import inputs, varied, with_inputs
from vbsix.data.examples import Arrays
from vbsix.domains.base import Domain
from vbsix.search.packing import scan_packed
from vbsix.training.objective import Metrics
from vbsix.training.step import Learner, Span, create_learner, train_step
from vbsix.training.symmetry import Renaming

LEARNERS = "learners"
"""The axis over learners that take a step at the same time."""


class Members(NamedTuple):
    """What each learner of a compiled call has of its own; leaves have a leading axis over learners."""

    seed: Int[Any, " S"]
    settings: Mapping[str, Any] = {}
    """The settings in which runs differ, by name."""
    span: Span | None = None
    """The examples of each; None if all train on all."""


def make_members(
    configs: Sequence[Config], seeds: Sequence[Sequence[int]], spans: Sequence[Span] | None = None
) -> Members:
    """The learners of several runs, given the runs' settings and seeds; and their examples, where these differ."""
    counts = [len(of_run) for of_run in seeds]
    kinds = inputs()
    settings = {}
    for name in varied(configs):
        if kinds.get(name) == "step":
            values = np.array([to_settings(config)[name] for config in configs])
            is_whole = values.dtype.kind == "i"
            small = np.minimum(values, np.iinfo(np.int32).max) if is_whole else values  # steps that never come
            settings[name] = np.repeat(small.astype(np.int32 if is_whole else np.float32), counts)
    of_learner = None
    if spans is not None:
        of_learner = Span._make(np.repeat(np.array(part, np.int32), counts) for part in zip(*spans, strict=True))
    return Members(np.concatenate([np.asarray(of_run, np.int32) for of_run in seeds]), settings, of_learner)


def learners_at_once(seeds: Sequence[Sequence[int]]) -> int | None:
    """How many learners take a step at the same time, given the seeds of each run; None for all.

    A GPU takes all. A CPU takes one run after the other: more at once gain nothing, and no longer fit its caches.
    """
    counts = {len(of_run) for of_run in seeds}
    return counts.pop() if jax.default_backend() == "cpu" and len(seeds) > 1 and len(counts) == 1 else None


@functools.partial(jax.jit, static_argnums=(0, 1))
def create_learners(domain: Domain, config: Config, seeds: Int[Array, " S"]) -> Learner:
    """One learner for each seed of a run, stacked along a first axis."""
    return jax.vmap(lambda seed: create_learner(domain, config, seed))(seeds)


def learner_shapes(domain: Domain, config: Config, seeds: Sequence[int]) -> Learner:
    """The shapes and types of what `create_learners` returns."""
    return jax.eval_shape(lambda seeds: create_learners(domain, config, seeds), jnp.asarray(seeds))


@functools.partial(
    jax.jit, static_argnums=(0, 1), static_argnames=("steps", "critic_ranks", "at_once"), donate_argnums=2
)
def train_chunk(
    domain: Domain,
    config: Config,
    learners: Learner,
    members: Members,
    vectors: Float[Array, "V word"],
    examples: Arrays,
    first_step: Int[Array, ""],
    renaming: Renaming | None = None,
    *,
    steps: int,
    critic_ranks: bool | None,
    at_once: int | None = None,
) -> tuple[Learner, Metrics]:
    """Trains all learners for some steps.

    The randomness of a step depends on its number and its seed alone, so that a run can be interrupted anywhere.

    Args:
        domain: the language.
        config: the settings of the first run; the members have those in which runs differ.
        learners: the learners so far.
        members: what each of them has of its own.
        vectors: the vectors of all words.
        examples: all training examples, of all runs.
        first_step: the number of the first step.
        renaming: how to permute interchangeable constants; None to leave examples as they are.
        steps: how many steps.
        critic_ranks: whether the critic ranks; None if it does in some of the runs.
        at_once: how many learners take a step at the same time; None for all. See `learners_at_once`.

    Returns:
        The learners, and each metric of each learner summed over the steps.
    """
    # A GPU would have to wait for the number of iterations to come to the host.
    axis = LEARNERS if at_once is None and jax.default_backend() == "cpu" else None

    def step(learners: Learner, number: Int[Array, ""]) -> tuple[Learner, Metrics]:
        def of_learner(learner: Learner, member: Members) -> tuple[Learner, Metrics]:
            own = with_inputs(config, member.settings)
            key = jax.random.fold_in(jax.random.fold_in(jax.random.key(1), member.seed), number)
            ranks = number >= own.training.value_ranking_start if critic_ranks is None else critic_ranks
            return train_step(
                *(domain, own, learner, vectors, examples, key, number),
                critic_ranks=ranks,
                span=member.span,
                axis=axis,
                renaming=renaming,
            )

        if at_once is None:
            return jax.vmap(of_learner, axis_name=LEARNERS)(learners, members)
        # `batch_size` of `lax.map` would do the same, but fails on leaves without numbers.
        count, size = len(members.seed), at_once
        parts = jax.tree.map(lambda leaf: leaf.reshape(count // size, size, *leaf.shape[1:]), (learners, members))
        trained = jax.lax.map(lambda part: jax.vmap(of_learner)(*part), parts)
        return jax.tree.map(lambda leaf: leaf.reshape(count, *leaf.shape[2:]), trained)

    learners, metrics = scan_packed(step, learners, first_step + jnp.arange(steps))
    return learners, jax.tree.map(lambda leaf: jnp.sum(leaf, axis=0), metrics)
