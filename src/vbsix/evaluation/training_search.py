"""Searches for training examples with trained networks, for analysis."""

from __future__ import annotations

import jax
from jaxtyping import Array

from vbsix.config.schema import Config
from vbsix.data.examples import Arrays
from vbsix.domains.base import Domain
from vbsix.models.heads import Heads, Networks, make_heads, read_example
from vbsix.search import Graph, Problem, search_graph

MOST_SEARCHED = 100
"""Training rows that are searched for."""


def search_training_example(
    domain: Domain, config: Config, networks: Networks, vectors: Array, example: Arrays
) -> tuple[Heads, Graph]:
    """A search as in the last step of training, and the networks that it used."""
    heads = make_heads(domain, networks, read_example(domain, networks, vectors, example))
    critic_ranks = config.training.steps > config.training.value_ranking_start
    graph = search_graph(
        domain,
        heads.actor,
        heads.critic if critic_ranks else None,
        Problem.of(example),
        jax.random.key(0),
        instructions=example.words.shape[0],
        config=config.search,
    )
    return heads, graph
