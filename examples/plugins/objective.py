"""An objective of one's own: hard EM, which learns only from the most probable program found."""

from __future__ import annotations

import jax.numpy as jnp

import vbsix
from vbsix.training.mml import policy_loss, search_example, search_metrics


def hard_em(context):
    """The loss on one example, and its metrics; `context` is a `vbsix.training.objective.Context`."""
    found = search_example(context, context.frozen.policy, None)
    is_best = jnp.arange(found.programs.log_probability.shape[0]) == 0
    best = found.programs._replace(log_probability=jnp.where(is_best, found.programs.log_probability, -jnp.inf))
    loss, metrics = policy_loss(context, context.heads.policy, found._replace(programs=best))
    return loss, metrics | search_metrics(context, found.graph)


vbsix.register_objective("hard-em", hard_em)


def main(**settings):
    return vbsix.train(
        "tangrams",
        method="execution-only",
        training__objective="hard-em",
        training__programs="extracted",
        **settings,
    )


if __name__ == "__main__":
    print(main().accuracy)
