"""What a selection rule is, and the paper's rule: rank by actor score or AC-score, then ε-greedy.

To add a rule, register a function like `epsilon_greedy` with `vbsix.register_selection_rule`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray

from vbsix.domains.base import Domain, State
from vbsix.models.functions import PolicyFunction, ValueFunction
from vbsix.search.beam import Candidates, Problem, Select
from vbsix.search.config import SearchConfig
from vbsix.utilities.settings import Number, is_off
from vbsix.utilities.trees import choose

Scorer = Callable[[State, Float[Array, " n"], Float[Array, " n"]], Float[Array, " n"]]
"""Scores of states, given their log P_t and what the rule ranks by without a critic."""


class SelectionRule(NamedTuple):
    """A selection rule, made for one search: how the next beam is selected, and which policy expands."""

    select: Select
    behaviour: Callable[[PolicyFunction], PolicyFunction] = lambda policy: policy
    """Turns π into the policy that the search expands with; by default π itself."""


RuleFactory = Callable[[SearchConfig, Scorer | None], SelectionRule]
"""What is registered under the name of a rule: makes it from the settings and the AC-scorer, which is None where no
critic ranks."""


def epsilon_greedy(config: SearchConfig, scorer: Scorer | None) -> SelectionRule:
    """The paper's rule: the K best, and in some slots a random candidate instead."""

    def select(key: PRNGKeyArray, candidates: Candidates, carried: Float[Array, " K"]):
        best = rank(candidates, candidates.log_chart, config, scorer)
        return explore_slots(key, best, jnp.isfinite(candidates.log_chart), config.epsilon), carried

    return SelectionRule(select)


def greedy(beam: int) -> Select:
    """What prediction selects: the K most probable candidates, without exploration."""
    return epsilon_greedy(SearchConfig(beam=beam, epsilon=0.0), None).select


def rank(
    candidates: Candidates, order_by: Float[Array, " N"], config: SearchConfig, scorer: Scorer | None
) -> Int[Array, " K"]:
    """The K best candidates, -1 where there are fewer. Ties go to the larger `order_by`, then to the first transition.

    Args:
        candidates: the successors of a beam.
        order_by: what ranks the candidates without a critic and makes the shortlist with one: log P_t, or what a rule
            puts in its place.
        config: K, and K₀ (at least K), the length of the shortlist that the scorer ranks.
        scorer: the AC-scorer; None ranks by `order_by`.
    """
    if scorer is None:
        score, best = jax.lax.top_k(order_by, config.beam)
    else:
        _, shortlist = jax.lax.top_k(order_by, min(max(config.rerank, config.beam), order_by.shape[0]))
        score = scorer(choose(candidates.states, shortlist), candidates.log_chart[shortlist], order_by[shortlist])
        # The shortlist is sorted by `order_by` and top_k is stable. Ties are common: P_t underflows in float32.
        score, order = jax.lax.top_k(score, config.beam)
        best = shortlist[order]
    return jnp.where(jnp.isfinite(score), best, -1)


def ac_scorer(
    domain: Domain, critic: ValueFunction, problem: Problem, window: Number, ranks: bool | Bool[Array, ""] = True
) -> Scorer:
    """Algorithm 1, lines 23-24: the AC-Scorer; V counts only in the critic's window.

    `ranks` says whether the critic ranks at this step; an array where runs that are compiled together start to rank at
    different steps.
    """

    def score(states: State, log_chart: Float[Array, " n"], order_by: Float[Array, " n"]) -> Float[Array, " n"]:
        scored = ac_score(log_chart, in_critic_window(domain, problem, states, window), jax.vmap(critic)(states))
        return scored if ranks is True else jnp.where(ranks, scored, order_by)

    return score


def ac_score(
    log_chart: Float[Array, " n"], in_window: Bool[Array, " n"], value: Float[Array, " n"]
) -> Float[Array, " n"]:
    """The AC-score: the actor score P_t[s] plus, in the critic's window, V(s, y)."""
    return jnp.where(jnp.isfinite(log_chart), jnp.exp(log_chart) + jnp.where(in_window, value, 0.0), -jnp.inf)


def in_critic_window(domain: Domain, problem: Problem, states: State, window: Number) -> Bool[Array, " n"]:
    """Whether states belong to the last instructions, where the critic ranks."""
    return jax.vmap(domain.instructions_done)(states) >= problem.instructions - window


def explore_slots(
    key: PRNGKeyArray, ranking: Int[Array, " K"], available: Bool[Array, " N"], epsilon: Number
) -> Int[Array, " K"]:
    """ε-greedy: slot i takes candidate i of the ranking or, with probability ε, a random one that no other takes so.

    The reference code fills one slot after the other, and a random sample may be the candidate of a later slot; that
    slot then takes a random one too. The set of candidates that make the beam has the same distribution.
    """
    if is_off(epsilon):
        return ranking
    size, count = ranking.shape[0], available.shape[0]
    flag_key, noise_key = jax.random.split(key)
    flagged = jax.random.bernoulli(flag_key, epsilon, (size,))
    taken = jnp.where(flagged | (ranking < 0), count, ranking)
    remaining = available.at[taken].set(False, mode="drop")
    noise = jnp.where(remaining, jax.random.uniform(noise_key, (count,)), -1.0)
    sampled, picks = jax.lax.top_k(noise, size)
    turn = jnp.cumsum(flagged) - 1
    random = jnp.where(sampled[turn] >= 0, picks[turn], -1)
    return jnp.where(flagged, random, ranking)
