"""REINFORCE: the reward of sampled programs."""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from vbsix.domains.base import State
from vbsix.search.sampling import sample_programs, sampling_distribution
from vbsix.training.mml import sequence_log_probability
from vbsix.training.objective import Context, Metrics, always, with_longest
from vbsix.utilities.settings import Number


def reinforce_objective(context: Context) -> tuple[Float[Array, ""], Metrics]:
    """Samples programs and reinforces those that are correct.

    With `sample_gradient = mixture` the loss is that of what was sampled from. With the policy's own log-probability,
    as in the reference code, tokens that only the uniform part of the mixture samples, for no reward, would become ever
    less probable, without end.
    """
    training = context.config.training
    samples = sample_programs(
        context.domain,
        context.frozen.policy,
        context.problem,
        context.key,
        instructions=context.instructions,
        size=training.samples,
        epsilon=training.sample_epsilon,
    )
    from_mixture = training.sample_gradient == "mixture"

    def log_probabilities(state: State, valid: Bool[Array, " A"]) -> Float[Array, " A"]:
        if from_mixture:
            return sampling_distribution(context.heads.policy, state, valid, training.sample_epsilon)
        return context.heads.policy(state, valid)

    log_policy = jax.vmap(jax.vmap(log_probabilities))(samples.states, samples.valid)
    log_probability = sequence_log_probability(log_policy, samples.tokens)
    counted = None if from_mixture else samples.finished
    loss = reinforce_loss(log_probability, samples.reward, training.baseline, counted)
    hits = with_longest({"hit": always(jnp.any(samples.reward > 0))}, context.example)
    return loss, hits | {"policy_loss": always(loss), "reward": always(jnp.mean(samples.reward))}


def reinforce_loss(
    log_probability: Float[Array, " n"],
    reward: Float[Array, " n"],
    baseline: Number,
    counted: Bool[Array, " n"] | None = None,
) -> Float[Array, ""]:
    """-(reward - baseline) log p(z), averaged over the samples, or over those that count."""
    terms = (reward - baseline) * log_probability
    if counted is None:
        return -jnp.mean(terms)
    return -jnp.sum(jnp.where(counted, terms, 0.0)) / jnp.maximum(jnp.sum(counted), 1)
