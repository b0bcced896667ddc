"""Algorithm 1 of the paper, the function ProgramSearch: build the graph G, then extract programs from it.

Training calls `search_graph` itself, and `find_programs` where it learns from extracted programs.
"""

from __future__ import annotations

from jaxtyping import Array, Bool, Int, PRNGKeyArray

from vbsix.domains.base import Domain
from vbsix.models.functions import PolicyFunction, ValueFunction
from vbsix.search.beam import Graph, Problem, beam_search, outcome_of
from vbsix.search.config import SELECTION_RULES, SearchConfig
from vbsix.search.extraction import Programs, complete_programs, extract_programs
from vbsix.search.graph import join
from vbsix.search.select import ac_scorer


def program_search(
    domain: Domain,
    policy: PolicyFunction,
    critic: ValueFunction | None,
    problem: Problem,
    key: PRNGKeyArray,
    *,
    instructions: int,
    config: SearchConfig,
) -> tuple[Programs, Graph]:
    """Lines 1-4: builds G, then finds paths to correct terminal states in it; arguments as in `search_graph`."""
    graph = search_graph(domain, policy, critic, problem, key, instructions=instructions, config=config)
    return find_programs(domain, graph, problem, config), graph


def search_graph(
    domain: Domain,
    policy: PolicyFunction,
    critic: ValueFunction | None,
    problem: Problem,
    key: PRNGKeyArray,
    *,
    instructions: int,
    config: SearchConfig,
    critic_ranks: bool | Bool[Array, ""] = True,
    longest: Int[Array, ""] | None = None,
) -> Graph:
    """Line 2: `beam_search` with the selection rule that the settings name.

    Args:
        domain: the language.
        policy: π, the actor; the selection rule may change it (`SelectionRule.behaviour`).
        critic: V, or None to rank by actor score alone.
        problem: the example.
        key: randomness of the exploration.
        instructions: the largest number of instructions; sets all shapes.
        config: how to search.
        critic_ranks: whether the critic ranks; False is the same as no critic.
        longest: see `beam_search`.
    """
    scorer = None
    if critic is not None and critic_ranks is not False:
        scorer = ac_scorer(domain, critic, problem, config.critic_window, critic_ranks)
    rule = SELECTION_RULES.get(config.selection)(config, scorer)
    return beam_search(
        domain,
        rule.behaviour(policy),
        problem,
        key,
        select=rule.select,
        outcome=outcome_of(domain, problem, prune_dead_ends=config.prune_dead_ends),
        instructions=instructions,
        beam=config.beam,
        space=config.space,
        longest=longest,
    )


def find_programs(domain: Domain, graph: Graph, problem: Problem, config: SearchConfig) -> Programs:
    """Line 3: the most probable correct programs of the graph."""
    if config.space == "program":  # a tree, whose paths are known without another search
        return complete_programs(graph, config.programs)
    return extract_programs(domain, graph, join(graph, config.space), problem.instructions, config.programs)
