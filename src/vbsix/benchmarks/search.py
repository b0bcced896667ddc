"""Speed of the searches: searches a second, a search being one example through `program_search`.

Networks have initial parameters, rows are generated, and words are read beforehand: an example is read once, its states
are many. An empty beam, as most are under an untrained policy, takes as long as a full one; the result reports how full
they are.

The time of each part is measured by itself, for all iterations in one compiled loop, on the states that a search in
execution space reached. Shares are of the sum of the parts and the rest, which is what the parts leave of the search's
time: ranking and exploration.

The memory is that of the paper's own search, in execution space with a critic, which needs the most.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, PRNGKeyArray

from vbsix.benchmarks import measure, peak_memory
from vbsix.data.examples import PAPER_SETTINGS, Arrays, prefixes, to_arrays
from vbsix.data.synthetic import generate
from vbsix.data.words import random_words
from vbsix.domains.base import Domain
from vbsix.domains.registry import get_domain
from vbsix.models import NetworkConfig
from vbsix.models.critic import CriticTables
from vbsix.models.heads import Heads, Networks, Tables, create_networks, make_heads, read_example
from vbsix.models.policy import PolicyTables
from vbsix.search import (
    Graph,
    Problem,
    Programs,
    SearchConfig,
    complete_programs,
    extract_programs,
    join,
    program_search,
)
from vbsix.search.beam import INVALID, LIVE
from vbsix.search.merging import merge_prefixes, representatives
from vbsix.utilities.machine import environment
from vbsix.utilities.trees import choose

COMBINATIONS = "program", "program+critic", "execution", "execution+critic"
PARTS = "executor", "merging", "policy", "critic", "extraction", "rest"


@dataclass(frozen=True)
class Sizes:
    """How much is searched at a time, and with what networks; the paper's by default."""

    examples: int = 8
    instructions: int = 5
    seeds: int = 6
    """For the memory; the time is that of one seed."""
    search: SearchConfig = field(default_factory=lambda: SearchConfig(selection="epsilon-greedy", epsilon=0.15))
    network: NetworkConfig = field(default_factory=lambda: NetworkConfig(renormalise=False))


PAPER = Sizes()


class Prepared(NamedTuple):
    """A seed's networks, and what they computed once from the words of all examples."""

    networks: Networks
    tables: Tables
    key: PRNGKeyArray
    """Randomness of each example's search."""

    def heads(self, domain: Domain) -> Heads:
        return make_heads(domain, self.networks, self.tables)


POLICY_AXES = PolicyTables._make([None, 0, None, 0, 0, 0, None, None, None])
TABLE_AXES = Tables(POLICY_AXES, CriticTables._make([None, None, 0]), None)
PREPARED_AXES = Prepared._make([None, TABLE_AXES, 0])
"""Where the examples have an axis; None: they share it."""


def bench_search(name: str, sizes: Sizes = PAPER) -> dict[str, Any]:
    """Measures the four searches of one domain."""
    domain = get_domain(name)
    vectors, examples = _make_up_examples(domain, sizes)
    read = partial(_read, domain, sizes.network, vectors, examples)
    prepared = jax.jit(read)(jax.random.key(0))
    searches = {combination: _search(domain, combination, sizes) for combination in COMBINATIONS}
    timings = {combination: measure(search, prepared, examples) for combination, search in searches.items()}
    _, graph = jax.jit(searches["execution"])(prepared, examples)
    parts = {part: measure(*call).seconds for part, call in _parts(domain, sizes, prepared, examples, graph).items()}
    results: dict[str, Any] = {
        combination: {
            "searches_per_second": sizes.examples / timing.seconds,
            "fastest_searches_per_second": sizes.examples / timing.fastest,
            "slowest_searches_per_second": sizes.examples / timing.slowest,
            "compile_seconds": timing.compile_seconds,
            "shares": _shares(combination, parts, timing.seconds),
        }
        for combination, timing in timings.items()
    }
    for critic in "", "+critic":
        ratio = timings[f"execution{critic}"].seconds / timings[f"program{critic}"].seconds
        results[f"execution{critic}"]["execution_over_program"] = ratio
    return {
        **results,
        "memory_bytes": _memory(searches["execution+critic"], read, examples, sizes.seeds),
        "memory_seeds": sizes.seeds,
        "examples": sizes.examples,
        "instructions": sizes.instructions,
        "beam": sizes.search.beam,
        "rerank": sizes.search.rerank,
        "beam_filled": float(jnp.mean(graph.beam.alive)),
        **environment(),
    }


def _search(domain: Domain, combination: str, sizes: Sizes) -> Callable[[Prepared, Arrays], tuple[Programs, Graph]]:
    """The search of all examples."""
    space, _, critic_ranks = combination.partition("+")

    def search(prepared: Prepared, example: Arrays) -> tuple[Programs, Graph]:
        return program_search(
            domain,
            prepared.heads(domain).policy,
            prepared.heads(domain).critic if critic_ranks else None,
            Problem(example.world, example.instructions, example.target),
            prepared.key,
            instructions=sizes.instructions,
            config=replace(sizes.search, space=space),
        )

    return jax.vmap(search, in_axes=(PREPARED_AXES, 0))


def _parts(domain: Domain, sizes: Sizes, prepared: Prepared, examples: Arrays, graph: Graph) -> dict[str, tuple]:
    """The parts of a search, each a function and its arguments; they are written for one example."""
    config = sizes.search

    def executor(layer: Graph):
        successors, valid = jax.vmap(domain.expand)(layer.beam.states)
        flat = jax.tree.map(lambda leaf: leaf.reshape(-1, *leaf.shape[2:]), successors)
        # Of the successors, a search writes out those that it chooses; all are measured up to there.
        return choose(flat, jnp.maximum(layer.beam.chosen, 0)), valid, jax.vmap(domain.key)(flat)

    def merging(merges: bool, layer: Graph):
        kind = layer.expansion.kind.reshape(-1)
        log_prefixes = (layer.beam.log_chart[:, None] + layer.expansion.log_policy).reshape(-1)
        values = jnp.where(kind == LIVE, log_prefixes, -jnp.inf)
        group = jnp.arange(kind.size, dtype=jnp.int32)
        if merges:
            group = representatives(layer.expansion.successor_keys.reshape(-1, 2), kind != INVALID)
        return group, merge_prefixes(values, jnp.repeat(layer.beam.paths, layer.expansion.kind.shape[1]), group)

    def policy(prepared: Prepared, graph: Graph):
        of_state = prepared.heads(domain).policy
        expanded = graph.beam.states, graph.expansion.kind != INVALID
        return jax.lax.map(lambda layer: jax.vmap(of_state)(*layer), expanded)

    def critic(prepared: Prepared, graph: Graph):
        of_state = prepared.heads(domain).critic
        assert of_state is not None
        # The states of a beam again and again are as many as the actor hands to the critic.
        candidates = jnp.arange(config.rerank) % config.beam
        return jax.lax.map(lambda states: jax.vmap(of_state)(choose(states, candidates)), graph.beam.states)

    def extraction(example: Arrays, graph: Graph):
        return extract_programs(domain, graph, join(graph, "execution"), example.instructions, config.programs)

    def of_layers(part: Callable[[Graph], Any]) -> Callable[[Graph], Any]:
        return jax.vmap(lambda graph: jax.lax.map(part, graph))

    of_prepared = (PREPARED_AXES, 0)
    return {
        "executor": (of_layers(executor), graph),
        "merging in program": (of_layers(partial(merging, False)), graph),
        "merging in execution": (of_layers(partial(merging, True)), graph),
        "policy": (jax.vmap(policy, of_prepared), prepared, graph),
        "critic": (jax.vmap(critic, of_prepared), prepared, graph),
        "extraction in program": (jax.vmap(lambda graph: complete_programs(graph, config.programs)), graph),
        "extraction in execution": (jax.vmap(extraction), examples, graph),
    }


def _shares(combination: str, parts: dict[str, float], total: float) -> dict[str, float]:
    """The share of each part in the time of a search."""
    space, _, critic_ranks = combination.partition("+")
    seconds = {part: parts.get(part, parts.get(f"{part} in {space}", 0.0)) for part in PARTS}
    if not critic_ranks:
        seconds["critic"] = 0.0
    seconds["rest"] = max(0.0, total - sum(seconds.values()))
    return {part: of_part / sum(seconds.values()) for part, of_part in seconds.items()}


def _memory(search: Callable, read: Callable[[PRNGKeyArray], Prepared], examples: Arrays, seeds: int) -> int | None:
    """Bytes of a search of all examples for several seeds: what it takes, gives and needs in between, if known."""
    prepareds = jax.eval_shape(jax.vmap(read), jax.random.split(jax.random.key(0), seeds))
    compiled = jax.jit(jax.vmap(search, in_axes=(0, None))).lower(prepareds, examples).compile()
    return peak_memory(compiled)


def _make_up_examples(domain: Domain, sizes: Sizes) -> tuple[Array, Arrays]:
    """The vectors of all words, and examples."""
    rows = [made_up.row for made_up in generate(domain.name, sizes.examples, seed=0, utterances=sizes.instructions)]
    words = random_words((text for row in rows for text in row.utterances), dimensions=sizes.network.word)
    examples = prefixes(rows, [sizes.instructions])
    arrays = to_arrays(domain, examples, words, sizes.instructions, PAPER_SETTINGS[domain.name].max_words)
    return jnp.asarray(words.vectors), jax.tree.map(jnp.asarray, arrays)


def _read(domain: Domain, config: NetworkConfig, vectors: Array, examples: Arrays, key: PRNGKeyArray) -> Prepared:
    """Creates networks and has them read all examples."""
    network_key, search_key = jax.random.split(key)
    networks = create_networks(domain, config, network_key, critic=True, expert=False)
    tables = jax.vmap(lambda example: read_example(domain, networks, vectors, example), out_axes=TABLE_AXES)(examples)
    return Prepared(networks, tables, jax.random.split(search_key, examples.instructions.shape[0]))
