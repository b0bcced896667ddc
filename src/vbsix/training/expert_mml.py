"""Expert-MML: an expert policy that sees the target searches, and the policy learns from what it finds."""

from __future__ import annotations

import jax.numpy as jnp
from jaxtyping import Array, Float

from vbsix.training.mml import Found, policy_loss, search_example, search_metrics
from vbsix.training.objective import Context, Metrics, always
from vbsix.training.taught_mml import weigh_by


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
    return weigh_by(context, found, context.frozen.policy, jnp.arange(found.graph.beam.log_chart.size))
