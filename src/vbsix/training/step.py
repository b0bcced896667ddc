"""One training step: the paper's Algorithm 2 for a batch of examples and one seed.

Methods differ in objective, search space and critic (`config/presets.py`). The objectives (`objectives.py`) are
`mml.py` (MML, VBSiX and its ablations), `expert_mml.py` and `reinforce.py`. The loop around the step is `runs/loop.py`.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import optax
from jax.lax import stop_gradient
from jaxtyping import Array, Bool, Float, Int, Key, PRNGKeyArray

from vbsix.config.schema import OBJECTIVES, Config
from vbsix.data.examples import Arrays
from vbsix.domains.base import Domain
from vbsix.models.heads import Networks, create_networks, make_heads, read_example
from vbsix.models.policy import PolicyNetwork
from vbsix.search.sharding import sharded_sum
from vbsix.training.objective import Context, Mean, Metrics
from vbsix.training.symmetry import Renaming, permute_example, sample_permutation
from vbsix.utilities.settings import is_off
from vbsix.utilities.trees import choose

_PERMUTATION = 3
"""What the randomness of permutations is derived with, so that a run without them is the same as ever."""
Keys = Key[Array, " n"]
"""Randomness of the examples of a batch."""


class Span(NamedTuple):
    """A stretch of the training examples, for runs that are compiled together and train on different rows."""

    first: int | Int[Array, ""]
    count: int | Int[Array, ""]
    shortest: int | Int[Array, ""]
    """How many of them, the first ones, a curriculum begins with."""


def whole_span(examples: Arrays) -> Span:
    """All examples. A curriculum begins with the fewest instructions that a tenth of the examples do not exceed."""
    count = examples.instructions.shape[0]
    shortest = jnp.sum(jnp.asarray(examples.instructions <= examples.instructions[(count - 1) // 10]))
    return Span(0, count, shortest)


class Learner(NamedTuple):
    """A seed's networks, and the state of each network's optimiser."""

    networks: Networks
    optimiser: Networks
    average: PolicyNetwork | None = None
    """The policy's averaged parameters; None without weight averaging."""

    @property
    def evaluated(self) -> Networks:
        """The networks that are evaluated and kept: with the averaged policy, where there is one."""
        return self.networks if self.average is None else self.networks._replace(policy=self.average)


def create_learner(domain: Domain, config: Config, seed: Int[Array, ""]) -> Learner:
    """Algorithm 2, line 2: a seed's learner before the first step.

    An objective need not be registered to load a policy. Then there is no expert.
    """
    name = config.training.objective
    networks = create_networks(
        domain,
        config.network,
        jax.random.fold_in(jax.random.key(0), seed),
        critic=config.training.critic,
        expert=name in OBJECTIVES.names() and OBJECTIVES.get(name).expert,
    )
    adam = optax.adam(config.training.learning_rate)
    states = [network and adam.init(eqx.filter(network, eqx.is_array)) for network in networks]
    average = None if is_off(config.training.averaging) else networks.policy
    return Learner(networks, Networks._make(states), average)


def train_step(
    domain: Domain,
    config: Config,
    learner: Learner,
    vectors: Float[Array, "V word"],
    examples: Arrays,
    key: PRNGKeyArray,
    step: Int[Array, ""],
    *,
    critic_ranks: bool | Bool[Array, ""],
    span: Span | None = None,
    axis: str | None = None,
    renaming: Renaming | None = None,
) -> tuple[Learner, Metrics]:
    """Algorithm 2, lines 4-8: samples a batch, searches, and updates the networks.

    Args:
        domain: the language.
        config: all settings.
        learner: the networks so far.
        vectors: the vectors of all words.
        examples: training examples; with a curriculum, sorted by length.
        key: randomness of this step and seed.
        step: the number of the step, for the learning rate, the curriculum, and metrics that only some steps compute.
        critic_ranks: whether the critic ranks states at this step.
        span: which of the examples are sampled from; None for all.
        axis: the name of the axis over learners, if searches shall end with the longest example of all their batches.
        renaming: how to permute interchangeable constants; None to leave examples as they are.
    """
    size = config.training.batch
    batch_key, search_key, dropout_key = jax.random.split(key, 3)
    span = span or whole_span(examples)
    chosen = span.first + jax.random.randint(batch_key, (size,), 0, _count_examples(config, span, step))
    batch = choose(jax.tree.map(jnp.asarray, examples), chosen)
    if renaming is not None:
        permutation_keys = jax.random.split(jax.random.fold_in(key, _PERMUTATION), size)
        tokens = jax.vmap(lambda key: sample_permutation(renaming, key))(permutation_keys)
        batch = jax.vmap(lambda example, tokens: permute_example(domain, renaming, example, tokens))(batch, tokens)
    keys = jax.random.split(search_key, size), jax.random.split(dropout_key, size)
    loss_of = OBJECTIVES.get(config.training.objective).loss

    def of_shard(needed: tuple[Networks, Array], shard: tuple[Arrays, Keys, Keys]) -> tuple[Networks, Metrics]:
        """The gradient and the metrics of some of the batch's examples."""
        networks, vectors = needed
        longest = None if axis is None else jax.lax.pmax(jnp.max(shard[0].instructions), axis)

        def loss(networks: Networks) -> tuple[Float[Array, ""], Metrics]:
            def of_example(example: Arrays, key: PRNGKeyArray, dropout_key: PRNGKeyArray):
                tables = read_example(
                    domain,
                    networks,
                    vectors,
                    example,
                    config.training.dropout,
                    dropout_key,
                    word_dropout=config.training.word_dropout,
                    context_dropout=config.training.context_dropout,
                )
                heads = make_heads(domain, networks, tables)
                frozen = make_heads(domain, stop_gradient(networks), stop_gradient(tables))
                given = domain, config, heads, frozen, example, key, step, critic_ranks, longest
                return loss_of(Context(*given))

            losses, metrics = jax.vmap(of_example)(*shard)
            return jnp.sum(losses) / size, jax.tree.map(jnp.sum, metrics)

        return jax.grad(loss, has_aux=True)(networks)

    gradients, metrics = sharded_sum(of_shard, domain, size)((learner.networks, vectors), (batch, *keys))
    metrics["gradient_norm"] = Mean(optax.tree.norm(gradients), jnp.float32(1))
    return update(config, learner, gradients, metrics, step), metrics


def update(config: Config, learner: Learner, gradients: Networks, metrics: Metrics, step: Int[Array, ""]) -> Learner:
    """Algorithm 2, line 8: one step of Adam for each network.

    Ours: a batch without a hit changes neither the policy nor the expert, nor their Adam states; nor the critic, unless
    `critic_updates` is `always`. Adam divides by the recent size of gradients, so the first hit after many batches
    without one would otherwise cause a very large update. Objectives that learn from samples (REINFORCE) or do not
    measure hits update on every batch.
    """
    adam, scale = optax.adam(config.training.learning_rate), _learning_rate_scale(config, step)
    gated = not OBJECTIVES.get(config.training.objective).samples and "hit" in metrics
    hit = metrics["hit"].total > 0 if gated else jnp.bool_(True)
    applies = hit, hit | (config.training.critic_updates == "always"), hit

    def of_network(network: Any, state: Any, gradient: Any, applies: Bool[Array, ""]) -> tuple[Any, Any]:
        if network is None:
            return None, None
        updates, new_state = adam.update(gradient, state)
        updates = updates if scale is None else optax.tree.scale(scale, updates)
        new = eqx.apply_updates(network, updates), new_state
        return jax.tree.map(lambda after, before: jnp.where(applies, after, before), new, (network, state))

    after = [of_network(*one) for one in zip(learner.networks, learner.optimiser, gradients, applies, strict=True)]
    networks, states = zip(*after, strict=True)
    updated = Networks._make(networks)
    return Learner(updated, Networks._make(states), _average(config, learner.average, updated.policy, step))


def _average(config: Config, average: Any, policy: Any, step: Int[Array, ""]) -> Any:
    """Ours: the mean of the policies so far, and an exponential average as soon as the mean would be longer."""
    if average is None:
        return None
    kept = jnp.minimum(config.training.averaging, step / (step + 1.0))
    return jax.tree.map(lambda before, now: kept * before + (1.0 - kept) * now, average, policy)


def _count_examples(config: Config, span: Span, step: Int[Array, ""]) -> int | Int[Array, ""]:
    """How many examples a step samples from; a curriculum begins with the shortest."""
    if is_off(config.training.curriculum_steps):
        return span.count
    return jnp.where(step < config.training.curriculum_steps, span.shortest, span.count)


def _learning_rate_scale(config: Config, step: Int[Array, ""]) -> Float[Array, ""] | None:
    """The share of the learning rate at a step; None where it does not decay."""
    steps, share = config.training.steps, config.training.decay_share
    return None if is_off(share) else jnp.clip((steps - step) / (share * steps), 0.0, 1.0)
