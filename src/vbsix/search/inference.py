"""Inference: which worlds a policy believes that the instructions of an example led to, given the last world."""

from __future__ import annotations

import functools
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from vbsix.data.examples import Arrays
from vbsix.domains.base import Domain, State
from vbsix.models.ensemble import Ensemble
from vbsix.models.heads import policy_head
from vbsix.models.policy import PolicyNetwork
from vbsix.search.beam import Problem
from vbsix.search.extraction import complete_programs
from vbsix.search.prediction import map_requests, search_greedily, trace
from vbsix.utilities.trees import choose


class Inference(NamedTuple):
    """The most probable sequence of worlds for each example."""

    states: State
    """After each command, in these worlds; leaves [*N, M, ...]."""
    posterior: Float[Array, "*N"]
    """The share of the probability of all correct programs found whose commands lead to these worlds; 0 if no program
    was found.
    """


def infer_worlds(
    domain: Domain,
    policy: PolicyNetwork | Ensemble,
    projections: Float[Any, "V projected"],
    example: Arrays,
    *,
    beam: int,
    longest: Any = None,
) -> Inference:
    """Searches for programs that lead to the target, through the waypoints where these are known, and groups them by
    the world after each command.

    Worlds are the same if their states have the same `denotation_key`. Arguments are those of `predict`; the example
    has a target.
    """
    most = example.words.shape[0]
    head, problem = policy_head(domain, policy, projections, example.words), Problem.of(example)
    graph = search_greedily(domain, head, problem, instructions=most, beam=beam, space="program", longest=longest)
    programs = complete_programs(graph, beam)
    states = trace(domain, graph, programs, most)[2]
    keys = jax.vmap(jax.vmap(domain.denotation_key))(states)
    keys = jnp.where((jnp.arange(most) < example.instructions)[None, :, None], keys, 0)
    same = jnp.all(keys[:, None] == keys[None, :], axis=(-2, -1))
    found = jnp.any(programs.found)
    share = jax.nn.softmax(jnp.where(found, programs.log_probability, 0.0))
    posterior = jnp.sum(jnp.where(same, share[None, :], 0.0), axis=1)
    best = jnp.argmax(jnp.where(programs.found, posterior, -1.0))
    return Inference(choose(states, best), jnp.where(found, posterior[best], 0.0))


@functools.partial(jax.jit, static_argnums=0, static_argnames=("beam",))
def infer_batch(
    domain: Domain,
    policy: PolicyNetwork | Ensemble,
    projections: Float[Any, "V projected"],
    examples: Arrays,
    *,
    beam: int,
) -> Inference:
    """`infer_worlds` for a batch of examples, shared out over the cores of a CPU."""

    def of_example(policy: Any, projections: Any, example: Arrays, longest: Any) -> Inference:
        return infer_worlds(domain, policy, projections, example, beam=beam, longest=longest)

    return map_requests(of_example, domain, (policy, projections), examples)
