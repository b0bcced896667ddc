"""Searches with a model's policy and critic, compiled once for all requests of a size."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any, Literal

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, PRNGKeyArray

from vbsix.domains.base import Domain, State
from vbsix.models import Critic, Ensemble, PolicyNetwork
from vbsix.models.critic import CriticTables, TrainedCritic
from vbsix.models.functions import ValueFunction
from vbsix.models.heads import critic_tables, policy_head, sigmoid_head
from vbsix.playground.models import Model
from vbsix.search import Graph, Problem, Programs, SearchConfig, program_search
from vbsix.show.inspection import Inspection, inspect_search
from vbsix.utilities.errors import naming

MOST_UTTERANCES = 5
"""Longest search; shorter ones run in the same compiled function."""
PROGRAMS = 8
"""How many programs are given."""
EXTRACTED = 64
"""How many are extracted, so that the best of them are the best of the graph."""
DRAWN = 28
"""States of the drawing."""
DROPPED = 12
"""States of each iteration that fell out of the beam and are given; of all others each is."""


def search(
    model: Model,
    world: str,
    target: str,
    utterances: Sequence[str],
    *,
    space: Literal["program", "execution"],
    beam: int,
    critic: bool,
) -> tuple[Inspection, Inspection]:
    """Searches for programs that lead from a world to a target.

    Args:
        model: its policy searches, and its critic ranks.
        world: where it begins.
        target: where it should end.
        utterances: the instructions.
        space: whether states with the same execution result are merged.
        beam: how many states each iteration keeps.
        critic: whether the critic ranks; its scores are given in any case.

    Returns:
        What there is to list, and the part of it that is worth drawing.
    """
    domain, parser = model.parser.domain, model.parser
    words = parser.word_ids(utterances, MOST_UTTERANCES)
    config = SearchConfig(space=space, beam=beam, selection="epsilon-greedy", epsilon=0.0, program_beam=EXTRACTED)
    with naming("context"):
        start = domain.parse_world(world)
    with naming("target"):
        end = domain.parse_target(target)
    problem = Problem(start, jnp.int32(len(utterances)), end)
    with domain.alone():
        programs, graph, tables = _search(
            domain,
            parser.policy,
            parser.words.vectors,
            parser.critic,
            words,
            problem,
            jax.random.key(0),
            config=config,
            critic_ranks=critic and parser.critic is not None,
        )
        best = jax.tree.map(lambda leaf: np.asarray(leaf)[:PROGRAMS], programs)
        domain.raise_failure()
        window_start = np.int32(len(utterances) - config.critic_window)
        reader = parser.critic and functools.partial(_values, domain, parser.critic.network, tables, window_start)
        inspect = functools.partial(inspect_search, domain, graph, best, space=space, values=reader)
        listed, drawn = inspect(dropped=DROPPED), inspect(limit=DRAWN)
    return listed, drawn


@functools.partial(jax.jit, static_argnums=0, static_argnames=("config", "critic_ranks"))
def _search(
    domain: Domain,
    policy: PolicyNetwork | Ensemble,
    projections: Float[Any, "V projected"],
    critic: TrainedCritic | None,
    words: Int[Any, "M T"],
    problem: Problem,
    key: PRNGKeyArray,
    *,
    config: SearchConfig,
    critic_ranks: bool,
) -> tuple[Programs, Graph, CriticTables | None]:
    actor, tables, value = policy_head(domain, policy, projections, words), None, None
    if critic is not None and not isinstance(policy, Ensemble):
        tables = critic_tables(domain, policy, projections, critic, words, problem.instructions, problem.target)
        value = _value_head(domain, critic.network, tables) if critic_ranks else None
    programs, graph = program_search(domain, actor, value, problem, key, instructions=len(words), config=config)
    return programs, graph, tables


def _value_head(domain: Domain, critic: Critic, tables: CriticTables) -> ValueFunction:
    return sigmoid_head(critic.for_example(domain, tables))


@functools.partial(jax.jit, static_argnums=0)
def _values(
    domain: Domain, critic: Critic, tables: CriticTables, window_start: Int[Any, ""], states: State
) -> Float[Array, " N"]:
    """The critic's scores of states, NaN outside of its window."""
    inside = jax.vmap(domain.instructions_done)(states) >= window_start
    return jnp.where(inside, jax.vmap(_value_head(domain, critic, tables))(states), jnp.nan)
