"""What the networks are trained to do with the programs that search finds, for one example.

Losses are to be minimised. Weights and labels are constants in the gradient.
"""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax.lax import stop_gradient
from jaxtyping import Array, Bool, Float, Int

from vbsix.search import Graph, Programs
from vbsix.search.beam import CORRECT
from vbsix.search.graph import next_vertex
from vbsix.search.merging import merge_prefixes


def mml_weights(log_probability: Float[Array, " P"], beta: float = 1.0) -> Float[Array, " P"]:
    """q(z) ∝ p(z)^β over the programs given; -inf marks a place without a program. β = 1 is MML's own weight."""
    found = jnp.isfinite(log_probability)
    scaled = jnp.where(found, beta * log_probability, -jnp.inf)
    return jnp.where(jnp.any(found), jax.nn.softmax(jnp.where(jnp.any(found), scaled, 0.0)), 0.0)


def mml_loss(
    log_probability: Float[Array, " P"], found: Bool[Array, " P"], *, alpha: float = 0.0, beta: float = 1.0
) -> Float[Array, ""]:
    """-Σ q(z) log p(z) over correct programs, whose gradient is that of -log Σ p(z) for alpha 0 and beta 1.

    Args:
        log_probability: log p(z), with a gradient.
        found: which places hold a program.
        alpha: weighs the example by (Σ p(z))^alpha: 0 for MML, 1 for expected reward (Guu et al. 2017).
        beta: see `mml_weights`; below 1, improbable programs count for more (Guu's meritocratic update).
    """
    constant = stop_gradient(jnp.where(found, log_probability, -jnp.inf))
    weights = mml_weights(constant, beta)
    if alpha:
        weights *= jnp.exp(alpha * jax.nn.logsumexp(constant))
    return -jnp.sum(weights * jnp.where(found, log_probability, 0.0))


class Flow(NamedTuple):
    """Sums over all paths of the layered graph that end in a correct terminal state."""

    log_reward: Float[Array, "L K"]
    """For each state of each beam, the log of the probability mass of what leads on to a correct terminal state."""
    posterior: Float[Array, "L K A"]
    """For each transition, the share of the mass of all correct paths that runs through it."""


LAYERS_AT_ONCE = 5
"""Summed up in one round of the loop over layers, whose own cost is as large."""


def correct_flow(graph: Graph, log_policy: Float[Array, "L K A"] | None = None) -> Flow:
    """Forward and backward sums, with the probabilities that the search ranked by, or with another policy's."""
    beam = graph.beam.log_chart.shape[1]
    following = next_vertex(graph)
    slots = jnp.where(following >= 0, following % beam, -1)
    if log_policy is None:
        log_policy, log_chart = graph.expansion.log_policy, graph.beam.log_chart
    else:
        log_chart = _forward(log_policy, slots)
    layers = jnp.where(graph.expansion.kind == CORRECT, log_policy, -jnp.inf), log_policy, slots

    def log_transitions(log_reward_after, layer):
        log_ending, log_policy, slot = layer
        after = jnp.where(slot >= 0, log_reward_after[jnp.maximum(slot, 0)], -jnp.inf)
        return jnp.logaddexp(log_ending, log_policy + after)

    def back(log_reward_after, layer):
        log_reward = jax.nn.logsumexp(log_transitions(log_reward_after, layer), axis=-1)
        return log_reward, log_reward

    nothing = jnp.full(beam, -jnp.inf)
    log_reward = jax.lax.scan(back, nothing, layers, reverse=True, unroll=LAYERS_AT_ONCE)[1]
    log_transition = jax.vmap(log_transitions)(jnp.concatenate([log_reward[1:], nothing[None]]), layers)
    total = log_reward[0, 0]
    log_posterior = log_chart[:, :, None] + log_transition - jnp.where(jnp.isfinite(total), total, 0.0)
    return Flow(log_reward, jnp.where(graph.beam.alive[:, :, None], jnp.exp(log_posterior), 0.0))


def _forward(log_policy: Float[Array, "L K A"], slots: Int[Array, "L K A"]) -> Float[Array, "L K"]:
    """The log-probability of reaching each state of each beam by its policy, from the first state of the first."""
    beam = log_policy.shape[1]

    def on(log_chart, layer):
        log_policy, slots = layer
        log_prefixes = jnp.where(slots >= 0, log_chart[:, None] + log_policy, -jnp.inf).reshape(-1)
        merged = merge_prefixes(log_prefixes, jnp.ones_like(log_prefixes), jnp.maximum(slots, 0).reshape(-1))
        return merged.log_sum[:beam], log_chart

    start = jnp.full(beam, -jnp.inf).at[0].set(0.0)
    return jax.lax.scan(on, start, (log_policy, slots))[1]


def graph_loss(
    log_policy: Float[Array, "*states A"],
    posterior: Float[Array, "*states A"],
    log_found: Float[Array, ""],
    *,
    alpha: float = 0.0,
) -> Float[Array, ""]:
    """The MML loss over all paths of the layered graph at once: Σ over transitions of posterior · -log π.

    The posterior is that of what the search ranked by: of π, or, where it samples, of π with some random tokens. The
    latter gives improbable programs more weight, so that what exploration finds is learned.

    Args:
        log_policy: log π, with a gradient.
        posterior: see `Flow`.
        log_found: the log of the probability of all correct paths.
        alpha: see `mml_loss`.
    """
    weights = stop_gradient(posterior * jnp.exp(alpha * log_found) if alpha else posterior)
    return -jnp.sum(weights * jnp.where(posterior > 0, log_policy, 0.0))


def reinforce_loss(
    log_probability: Float[Array, " n"], reward: Float[Array, " n"], baseline: float
) -> Float[Array, ""]:
    """-(reward - baseline) log p(z), averaged over the samples."""
    return -jnp.mean((reward - baseline) * log_probability)


def value_loss(logits: Float[Array, " N"], labels: Float[Array, " N"], mask: Bool[Array, " N"]) -> Float[Array, ""]:
    """The critic's log-loss, summed over states."""
    log_loss = -labels * jax.nn.log_sigmoid(logits) - (1 - labels) * jax.nn.log_sigmoid(-logits)
    return jnp.sum(jnp.where(mask, log_loss, 0.0))


def sequence_log_probability(log_policy: Float[Array, "P L A"], tokens: Int[Array, "P L"]) -> Float[Array, " P"]:
    """The log-probability of each sequence of tokens, given log π in the state before each."""
    chosen = jnp.take_along_axis(log_policy, jnp.maximum(tokens, 0)[..., None], axis=-1)[..., 0]
    return jnp.sum(jnp.where(tokens >= 0, chosen, 0.0), axis=-1)


def suffix_log_probability(graph: Graph, programs: Programs) -> Float[Array, "P L"]:
    """The log-probability of what follows each state of the programs, the state's own token included."""
    tokens = graph.expansion.log_policy.shape[-1]
    flat = graph.expansion.log_policy.reshape(-1, tokens)
    chosen = flat[jnp.maximum(programs.vertices, 0), jnp.maximum(programs.tokens, 0)]
    chosen = jnp.where(programs.tokens >= 0, chosen, 0.0)
    return jnp.cumsum(chosen[:, ::-1], axis=1)[:, ::-1]
