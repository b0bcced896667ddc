"""MML on the correct paths of a search, weighed by another policy than the one that searched."""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jax.lax import stop_gradient
from jaxtyping import Array, Float, Int

from vbsix.models.functions import PolicyFunction
from vbsix.training.mml import (
    Found,
    correct_paths,
    expanded_states,
    most_important,
    policy_loss,
    search_example,
    with_critic,
)
from vbsix.training.objective import Context, Metrics, always, over


def taught_mml_objective(context: Context) -> tuple[Float[Array, ""], Metrics]:
    """Ours: MML on the paths that search finds, with the posterior of teachers.

    Teachers are evaluated on the vertices that matter most to the learner, at most `policy_states`. Paths through
    others are left out.
    """
    assert context.teacher is not None
    found = search_example(context, context.frozen.policy, context.frozen.critic)
    assert found.paths is not None, "teachers weigh the paths of the graph"
    weight = jnp.sum(found.paths.posterior, axis=-1).reshape(-1)
    vertices, _ = most_important(weight, min(context.config.training.policy_states, weight.size))
    taught = weigh_by(context, found, context.teacher, vertices)
    assert taught.paths is not None
    loss, metrics = policy_loss(context, context.heads.policy, taught)
    log_probability = taught.paths.log_reward[0, 0]
    probability = jnp.exp(log_probability)
    learns = jnp.isfinite(log_probability) & (probability >= context.config.training.teacher_threshold)
    metrics |= {
        "dropped_weight": always(jnp.sum(weight) - jnp.sum(weight[vertices])),
        "teacher_probability": over(probability, found.graph.hit),
        "taught": over(learns.astype(jnp.float32), found.graph.hit),
    }
    return with_critic(context, found, jnp.where(learns, loss, 0.0), metrics)


def weigh_by(context: Context, found: Found, policy: PolicyFunction, vertices: Int[Array, " n"]) -> Found:
    """What was found with the posterior of another policy, over paths through these vertices alone."""
    kind = found.graph.expansion.kind
    log_policy = jax.vmap(policy)(*expanded_states(found.graph, vertices))
    every = jnp.full((kind.shape[0] * kind.shape[1], kind.shape[2]), -jnp.inf).at[vertices].set(log_policy)
    return found._replace(paths=stop_gradient(correct_paths(context, found.graph, every.reshape(kind.shape))))
