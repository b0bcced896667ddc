"""Ours: sums over all correct paths of the layered graph at once, instead of over extracted programs.

The layered graph has a vertex for each state and iteration. Paths through a state that fell out of the beam and came
back are not counted.
"""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax.lax import stop_gradient
from jaxtyping import Array, Float, Int

from vbsix.search.beam import CORRECT, Graph
from vbsix.search.graph import next_vertex
from vbsix.search.merging import merge_prefixes
from vbsix.utilities.settings import Number, is_off

LAYERS_AT_ONCE = 5
"""Layers in one round of the loop, whose overhead is as large as the work on one layer."""


class CorrectPaths(NamedTuple):
    """Sums over all paths of the layered graph that end in a correct terminal state."""

    log_reward: Float[Array, "L K"]
    """For each state of each beam, the log-probability of reaching a correct terminal state from it."""
    posterior: Float[Array, "L K A"]
    """For each transition, the share of the probability of all correct paths that runs through it."""


def forward_backward(graph: Graph, log_policy: Float[Array, "L K A"] | None = None) -> CorrectPaths:
    """Forward and backward sums, with the probabilities that the search used, or with another policy's."""
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
    return CorrectPaths(log_reward, jnp.where(graph.beam.alive[:, :, None], jnp.exp(log_posterior), 0.0))


def tempered_paths(
    graph: Graph,
    log_policy: Float[Array, "L K A"] | None = None,
    exponent: Number = 1.0,
    length_penalty: Number = 0.0,
) -> CorrectPaths:
    """`forward_backward` with a posterior of path probabilities raised to an exponent; rewards are not.

    With 0, all correct paths count the same; with 1, it is the posterior; the larger, the more the best path counts. A
    length penalty divides the weight of a path by e to its power for each token.
    """
    paths = forward_backward(graph, log_policy)
    if isinstance(exponent, int | float) and exponent == 1 and is_off(length_penalty):
        return paths
    weighed = graph.expansion.log_policy if log_policy is None else log_policy
    tempered = jnp.where(jnp.isfinite(weighed), exponent * weighed - length_penalty, -jnp.inf)
    return paths._replace(posterior=forward_backward(graph, tempered).posterior)


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


def graph_loss(log_policy: Float[Array, "*states A"], posterior: Float[Array, "*states A"]) -> Float[Array, ""]:
    """The MML loss over all paths of the layered graph: Σ over transitions of posterior · -log π.

    The posterior is a fixed weight. By default it is that of what the search used: of π or, in a stochastic search,
    of π mixed with a uniform distribution. The mixture gives improbable programs more weight, so that what exploration
    finds is learned. `training.beta` and `training.length_penalty` change it.
    """
    return -jnp.sum(stop_gradient(posterior) * jnp.where(posterior > 0, log_policy, 0.0))
