"""Expert-MML: an expert policy that sees the target searches, and the policy learns from what it finds."""

from __future__ import annotations

import jax
from jax.lax import stop_gradient
from jaxtyping import Array, Float

from vbsix.search.beam import INVALID
from vbsix.training.mml import Found, correct_paths, policy_loss, search_example, search_metrics
from vbsix.training.objective import Context, Metrics, always


def expert_mml_objective(context: Context) -> tuple[Float[Array, ""], Metrics]:
    """The expert searches, and learns from what it finds by MML; so does the policy, with its own probabilities."""
    assert context.heads.expert is not None and context.frozen.expert is not None
    found = search_example(context, context.frozen.expert, None)
    loss, metrics = policy_loss(context, context.heads.policy, weigh_by_policy(context, found))
    expert_loss, _ = policy_loss(context, context.heads.expert, found)
    metrics["expert_loss"] = always(expert_loss)
    return loss + expert_loss, metrics | search_metrics(context, found.graph)


def weigh_by_policy(context: Context, found: Found) -> Found:
    """What the expert found, with the policy's posterior in place of the expert's.

    Extracted programs need no change: `mml_loss` weighs them by the policy that it trains.
    """
    if found.paths is None:
        return found
    valid = found.graph.expansion.kind != INVALID
    log_policy = jax.vmap(jax.vmap(context.frozen.policy))(found.graph.beam.states, valid)
    return found._replace(paths=stop_gradient(correct_paths(context, found.graph, log_policy)))
