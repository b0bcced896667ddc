"""Graphs of searches of the toy system, as committed data: the same key gives the same graph, in every version.

`PYTHONPATH=tests python tests/search/test_golden_graphs.py` writes the data, after a change of searches that is meant.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from reference.comparison import quick_jit
from reference.tables import TableDomain
from search.test_toy import INSTRUCTIONS, LONGEST, S0, S5, S6, S7, S8, T, toy

from vbsix.search import Graph, Problem, SearchConfig, search_graph

FILE = Path(__file__).with_name("golden_graphs.json")
SEARCHES = {
    "program space, greedy": SearchConfig("program", 4, "epsilon-greedy", 0.0),
    "execution space, epsilon-greedy, critic": SearchConfig("execution", 3, "epsilon-greedy", 0.4, rerank=5),
    "execution space, stochastic, critic": SearchConfig("execution", 3, "stochastic", 0.2, rerank=4),
}
VALUES = {S5: 0.3, S6: 0.1, S7: 0.6, S8: 0.8}
KEYS = 3
"""Three examples of a batch, each with a key of its own."""


def search(config: SearchConfig) -> Graph:
    domain = TableDomain(toy(VALUES), LONGEST // INSTRUCTIONS)
    problem = Problem(jnp.int32(S0), jnp.int32(INSTRUCTIONS), jnp.int32(T))
    critic = None if config.space == "program" else domain.critic

    def of_key(key):
        return search_graph(domain, domain.policy, critic, problem, key, instructions=INSTRUCTIONS, config=config)

    return quick_jit(jax.vmap(of_key))(jax.random.split(jax.random.key(7), KEYS))


def exact(graph: Graph) -> dict[str, Any]:
    """All that must be the same bit for bit; states and transitions of empty slots are left out."""
    beam, expansion = graph.beam, graph.expansion
    alive = np.asarray(beam.alive)
    return {
        "states": np.where(alive, beam.states, -1).tolist(),
        "chosen": np.asarray(beam.chosen).tolist(),
        "paths": np.asarray(beam.paths).astype(int).tolist(),
        "kind": np.where(alive[..., None], expansion.kind, 0).tolist(),
        "merged with": np.where(alive[..., None], expansion.representative, -1).tolist(),
    }


def log_chart(graph: Graph) -> Any:
    """log P_t, with 0 in empty slots. Its last digits depend on the processor."""
    return np.where(np.asarray(graph.beam.alive), graph.beam.log_chart, 0.0)


@pytest.mark.parametrize("name", SEARCHES)
def test_a_search_gives_the_graph_that_it_always_gave(name):
    golden, graph = json.loads(FILE.read_text())[name], search(SEARCHES[name])
    np.testing.assert_allclose(log_chart(graph), golden.pop("log_chart"), atol=1e-6)
    assert exact(graph) == golden


def test_the_graphs_have_merges_hits_and_examples_that_differ():
    golden = json.loads(FILE.read_text())
    assert golden.keys() == SEARCHES.keys()
    for name, graph in golden.items():
        kinds, paths = np.array(graph["kind"]), np.array(graph["paths"])
        assert {0, 1, 2, 3} <= set(kinds.ravel().tolist()), "invalid, live, correct and incorrect transitions"
        assert (paths.max() > 1) == ("execution" in name)
        assert (graph["chosen"][0] != graph["chosen"][1]) == ("greedy" not in name or "epsilon" in name)


def write() -> None:
    """Writes the data."""
    graphs = {name: search(config) for name, config in SEARCHES.items()}
    digits = {name: np.round(log_chart(graph).astype(float), 7).tolist() for name, graph in graphs.items()}
    found = {name: exact(graph) | {"log_chart": digits[name]} for name, graph in graphs.items()}
    FILE.write_text("{\n" + ",\n".join(f'"{name}": {json.dumps(graph)}' for name, graph in found.items()) + "\n}\n")


if __name__ == "__main__":
    write()
