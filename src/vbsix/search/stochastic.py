"""Our selection rule: stochastic beam search, which samples states without replacement (Kool et al. 2019)."""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, PRNGKeyArray

from vbsix.domains.base import State
from vbsix.models.functions import PolicyFunction
from vbsix.search.beam import Candidates
from vbsix.search.config import SearchConfig
from vbsix.search.sampling import mix_with_uniform
from vbsix.search.select import Scorer, SelectionRule, rank


def stochastic(config: SearchConfig, scorer: Scorer | None) -> SelectionRule:
    """A sample of K states in proportion to the probability that the policy, with some random tokens, reaches them.

    With a critic, it ranks a sample of K₀ states. The rule carries the perturbed log-probability of each slot.
    """

    def behaviour(policy: PolicyFunction) -> PolicyFunction:
        def mixed(state: State, valid: Bool[Array, " A"]) -> Float[Array, " A"]:
            return mix_with_uniform(policy(state, valid), valid, config.epsilon)

        return mixed

    def select(key: PRNGKeyArray, candidates: Candidates, perturbed: Float[Array, " K"]):
        noisy = perturb(key, perturbed, candidates.log_transitions)
        noisy = jnp.where(candidates.live, noisy, -jnp.inf).reshape(-1)
        # The largest noise among the prefixes of a state is the state's own.
        merged = jnp.full_like(noisy, -jnp.inf).at[candidates.group].max(noisy)
        chosen = rank(candidates, merged, config, scorer)
        return chosen, jnp.where(chosen >= 0, merged[jnp.maximum(chosen, 0)], -jnp.inf)

    return SelectionRule(select, behaviour)


def perturb(
    key: PRNGKeyArray, perturbed: Float[Array, " K"], log_transitions: Float[Array, "K A"]
) -> Float[Array, "K A"]:
    """Gumbel noise for the successors of a beam, such that the best successor of each state equals the state itself.

    The K largest of all log-probabilities with such noise are a sample of K prefixes without replacement, in
    proportion to their probability (Kool, van Hoof and Welling 2019).

    Args:
        key: randomness.
        perturbed: the perturbed log-probability of each slot, -inf in an empty one.
        log_transitions: log-probabilities of their successors, -inf where there is none.
    """
    noisy = log_transitions + jax.random.gumbel(key, log_transitions.shape)
    best = jnp.max(noisy, axis=1, keepdims=True)
    exists, mine = jnp.isfinite(noisy), perturbed[:, None]
    # -log(exp(-mine) - exp(-best) + exp(-noisy)) in a form that neither overflows nor cancels.
    behind = jnp.where(exists & (noisy < best), noisy - best, -jnp.inf)
    gap = jnp.where(noisy < best, mine - noisy + jnp.log1p(-jnp.exp(behind)), -jnp.inf)
    return jnp.where(exists, mine - jax.nn.relu(gap) - jnp.log1p(jnp.exp(-jnp.abs(gap))), -jnp.inf)
