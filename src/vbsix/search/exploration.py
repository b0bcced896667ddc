"""How a search leaves the beaten track: random slots, as in the paper, or a beam that is drawn at random."""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray


def behaviour(log_policy: Float[Array, " A"], valid: Bool[Array, " A"], epsilon: float) -> Float[Array, " A"]:
    """The log of (1 - ε)·π + ε·uniform over the valid tokens. What π gives to others is lost, and so are they."""
    if epsilon == 0:
        return log_policy
    log_uniform = jnp.where(valid, jnp.log(epsilon) - jnp.log(jnp.maximum(jnp.sum(valid), 1)), -jnp.inf)
    return jnp.logaddexp(jnp.log1p(-epsilon) + log_policy, log_uniform)


def explore_slots(
    key: PRNGKeyArray, ranking: Int[Array, " K"], available: Bool[Array, " N"], epsilon: float
) -> Int[Array, " K"]:
    """ε-greedy: a slot takes its rank or, with probability ε, a random state that no other slot takes by rank."""
    if epsilon == 0:
        return ranking
    size, count = ranking.shape[0], available.shape[0]
    flag_key, noise_key = jax.random.split(key)
    flagged = jax.random.bernoulli(flag_key, epsilon, (size,))
    taken = jnp.where(flagged | (ranking < 0), count, ranking)
    remaining = available.at[taken].set(False, mode="drop")
    noise = jnp.where(remaining, jax.random.uniform(noise_key, (count,)), -1.0)
    drawn, picks = jax.lax.top_k(noise, size)
    turn = jnp.cumsum(flagged) - 1
    random = jnp.where(drawn[turn] >= 0, picks[turn], -1)
    return jnp.where(flagged, random, ranking)


def among_best(score: Float[Array, " N"], size: int) -> Bool[Array, " N"]:
    """Which scores are among so many largest."""
    _, best = jax.lax.top_k(score, min(size, score.shape[0]))
    return jnp.zeros(score.shape[0], bool).at[best].set(True)


def perturb(key: PRNGKeyArray, perturbed: Float[Array, " K"], log_prefixes: Float[Array, "K A"]) -> Float[Array, "K A"]:
    """Gumbel noise for the successors of a beam, such that the best of each state is as good as the state itself.

    The K largest of all log-probabilities with such noise are a sample of K prefixes without replacement, in
    proportion to their probability (Kool, van Hoof and Welling 2019). The noise of a state is the largest of its
    prefixes', so that merged states are drawn in proportion to their summed probability, as far as the beams hold it.

    Args:
        key: randomness.
        perturbed: what the states of the beam have, -inf in an empty slot.
        log_prefixes: log-probabilities of their successors, -inf where there is none.
    """
    noisy = log_prefixes + jax.random.gumbel(key, log_prefixes.shape)
    best = jnp.max(noisy, axis=1, keepdims=True)
    exists, mine = jnp.isfinite(noisy), perturbed[:, None]
    # -log(exp(-mine) - exp(-best) + exp(-noisy)) in a form that neither overflows nor cancels.
    behind = jnp.where(exists & (noisy < best), noisy - best, -jnp.inf)
    gap = jnp.where(noisy < best, mine - noisy + jnp.log1p(-jnp.exp(behind)), -jnp.inf)
    return jnp.where(exists, mine - jax.nn.relu(gap) - jnp.log1p(jnp.exp(-jnp.abs(gap))), -jnp.inf)
