"""Expert-MML: an expert policy that sees the target searches, and the policy learns from what it finds."""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jax.lax import stop_gradient
from jaxtyping import Array, Float

from vbsix.training.mml import Found, correct_paths, expanded_states, policy_loss, search_example, search_metrics
from vbsix.training.objective import Context, Metrics, always


def expert_mml_objective(context: Context) -> tuple[Float[Array, ""], Metrics]:
    """MML for the expert on what it finds, and for the policy on the same, weighed by its own probabilities."""
    assert context.heads.expert is not None
    found = search_example(context, context.frozen.actor, None)
    loss, metrics = policy_loss(context, context.heads.policy, weigh_by_policy(context, found))
    expert_loss, _ = policy_loss(context, context.heads.expert, found)
    metrics["expert_loss"] = always(expert_loss)
    return loss + expert_loss, metrics | search_metrics(context, found.graph)


def weigh_by_policy(context: Context, found: Found) -> Found:
    """The expert's finds with the policy's own posterior; MML on extracted programs weighs by itself."""
    if found.paths is None:
        return found
    every = jnp.arange(found.graph.beam.log_chart.size)
    log_policy = jax.vmap(context.frozen.policy)(*expanded_states(found.graph, every))
    log_policy = log_policy.reshape(found.graph.expansion.kind.shape)
    return found._replace(paths=stop_gradient(correct_paths(context, found.graph, log_policy)))
