"""Speed of the searches: searches a second, a search being one example through `program_search`.

Networks are freshly drawn, rows made up, and words read beforehand: an example is read once, its states are many.

Where the time goes is measured part by part. Each part runs alone, for all iterations in one compiled loop, on the
states that the search has met. It is not compiled there as it is within the search, so shares are of the sum of the
parts and the rest, which is what the parts leave of the search's time, if anything: ranking and exploration.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, PRNGKeyArray

from vbsix.benchmarks import environment, measure
from vbsix.data.examples import PAPER_SETTINGS, Arrays, prefixes, to_arrays
from vbsix.data.synthetic import generate
from vbsix.data.words import random_words
from vbsix.domains.base import Domain
from vbsix.domains.registry import get_domain
from vbsix.models import Critic, NetworkConfig, Policy
from vbsix.models.critic import CriticTables
from vbsix.models.policy import PolicyTables
from vbsix.search import Graph, Problem, Programs, SearchConfig, complete_programs, extract_programs, join
from vbsix.search import program_search as search_programs
from vbsix.search.beam import INVALID, LIVE
from vbsix.search.merging import best_of_group, choose, log_sum_by_group, representatives

PARTS = "executor", "merging", "policy", "critic", "extraction", "rest"
COMBINATIONS = "program", "program+critic", "execution", "execution+critic"


@dataclass(frozen=True)
class Sizes:
    """How much is searched at a time; the paper's by default."""

    examples: int = 8
    instructions: int = 5
    seeds: int = 6
    """For the memory; the time is that of one seed."""
    search: SearchConfig = SearchConfig()
    network: NetworkConfig = NetworkConfig()


class Reading(NamedTuple):
    """A seed's networks, and what they made of the words of all examples."""

    policy: Policy
    critic: Critic
    policy_tables: PolicyTables
    critic_tables: CriticTables
    key: PRNGKeyArray
    """Randomness of each example's search."""


TABLE_AXES = PolicyTables._make([None, 0, None, 0, 0, 0]), CriticTables._make([None, None, 0])
READING_AXES = Reading._make([None, None, *TABLE_AXES, 0])
"""Where a reading has its axis of examples; None: they share it."""

Part = Callable[[Reading, Arrays, Graph], Any]


def bench_search(name: str, sizes: Sizes = Sizes()) -> dict[str, Any]:
    """Measures the four searches of one domain."""
    domain = get_domain(name)
    vectors, examples = _make_up_examples(domain, sizes)

    def read(seed: Array) -> Reading:
        return _read(domain, sizes.network, vectors, examples, jax.random.key(seed))

    results = {combination: _bench(domain, combination, sizes, read, examples) for combination in COMBINATIONS}

    def ratio(ending: str) -> float:
        return results["program" + ending]["searches_per_second"] / results["execution" + ending]["searches_per_second"]

    return {
        **results,
        "execution_over_program": ratio(""),
        "execution_over_program_with_critic": ratio("+critic"),
        "examples": sizes.examples,
        "instructions": sizes.instructions,
        "seeds_in_memory": sizes.seeds,
        "beam": sizes.search.beam,
        "rerank": sizes.search.rerank,
        **environment(),
    }


def _bench(
    domain: Domain, combination: str, sizes: Sizes, read: Callable[[Array], Reading], examples: Arrays
) -> dict[str, Any]:
    space, _, ranks = combination.partition("+")
    config = replace(sizes.search, space=space)

    def search(reading: Reading, example: Arrays) -> tuple[Programs, Graph]:
        critic = reading.critic.for_example(domain, reading.critic_tables) if ranks else None
        return search_programs(
            domain,
            reading.policy.for_example(domain, reading.policy_tables),
            critic,
            Problem(example.world, example.instructions, example.target),
            reading.key,
            instructions=sizes.instructions,
            config=config,
        )

    search_all = jax.vmap(search, in_axes=(READING_AXES, 0))
    reading = jax.jit(read)(jnp.int32(0))
    timing = measure(search_all, reading, examples)
    _, graph = jax.jit(search_all)(reading, examples)
    parts = {
        part: measure(jax.vmap(function, in_axes=(READING_AXES, 0, 0)), reading, examples, graph).seconds
        for part, function in _parts(domain, config, bool(ranks)).items()
    }
    parts["rest"] = max(0.0, timing.seconds - sum(parts.values()))
    return {
        "searches_per_second": sizes.examples / timing.seconds,
        "fastest_searches_per_second": sizes.examples / timing.fastest,
        "slowest_searches_per_second": sizes.examples / timing.slowest,
        "compile_seconds": timing.compile_seconds,
        "shares": {part: parts.get(part, 0.0) / sum(parts.values()) for part in PARTS},
        "hits": float(jnp.mean(jax.vmap(lambda graph: graph.hit)(graph))),
        "memory_bytes": _memory(search_all, read, examples, sizes.seeds),
    }


def _parts(domain: Domain, config: SearchConfig, critic_ranks: bool) -> dict[str, Part]:
    """The parts of a search of one example, each for all iterations."""

    def executor(reading: Reading, example: Arrays, graph: Graph):
        def of_beam(layer: Graph):
            successors, valid = jax.vmap(domain.expand)(layer.beam.states)
            flat = jax.tree.map(lambda leaf: leaf.reshape(-1, *leaf.shape[2:]), successors)
            # A search keeps some of the successors only; to return all would measure the writing of them.
            return choose(flat, jnp.maximum(layer.beam.chosen, 0)), valid, jax.vmap(domain.key)(flat)

        return jax.lax.map(of_beam, graph)

    def merging(reading: Reading, example: Arrays, graph: Graph):
        def of_beam(layer: Graph):
            kind = layer.expansion.kind.reshape(-1)
            log_prefixes = (layer.beam.log_chart[:, None] + layer.expansion.log_policy).reshape(-1)
            values = jnp.where(kind == LIVE, log_prefixes, -jnp.inf)
            group = jnp.arange(kind.size, dtype=jnp.int32)
            if config.space == "execution":
                group = representatives(layer.expansion.successor_keys.reshape(-1, 2), kind != INVALID)
            return group, log_sum_by_group(values, group), best_of_group(values, group)

        return jax.lax.map(of_beam, graph)

    def policy(reading: Reading, example: Arrays, graph: Graph):
        of_state = reading.policy.for_example(domain, reading.policy_tables)
        return jax.lax.map(jax.vmap(of_state), graph.beam.states)

    def critic(reading: Reading, example: Arrays, graph: Graph):
        of_state = reading.critic.for_example(domain, reading.critic_tables)
        # As many states as the actor hands to the critic: those of the beam again and again.
        again = jnp.arange(config.rerank) % config.beam
        return jax.lax.map(lambda states: jax.vmap(of_state)(choose(states, again)), graph.beam.states)

    def extraction(reading: Reading, example: Arrays, graph: Graph):
        if config.space == "program":
            return complete_programs(graph, config.program_beam)
        return extract_programs(domain, graph, join(graph, config.space), example.instructions, config.program_beam)

    parts = {"executor": executor, "merging": merging, "policy": policy, "extraction": extraction}
    return parts | ({"critic": critic} if critic_ranks else {})


def _memory(search_all: Callable, read: Callable[[Array], Reading], examples: Arrays, seeds: int) -> int:
    """Bytes of a search of all examples for several seeds: what it takes, returns and needs in between."""
    readings = jax.eval_shape(jax.vmap(read), jnp.arange(seeds))
    compiled = jax.jit(jax.vmap(search_all, in_axes=(0, None))).lower(readings, examples).compile()
    sizes = compiled.memory_analysis()
    return sizes.argument_size_in_bytes + sizes.output_size_in_bytes + sizes.temp_size_in_bytes


def _make_up_examples(domain: Domain, sizes: Sizes) -> tuple[Array, Arrays]:
    """The vectors of the words, and the examples."""
    rows = [made_up.row for made_up in generate(domain.name, sizes.examples, seed=0, utterances=sizes.instructions)]
    words = random_words((text for row in rows for text in row.utterances), dimensions=sizes.network.word)
    examples = prefixes(rows, [sizes.instructions])
    arrays = to_arrays(domain, examples, words, sizes.instructions, PAPER_SETTINGS[domain.name].max_words)
    return jnp.asarray(words.vectors), jax.tree.map(jnp.asarray, arrays)


def _read(domain: Domain, config: NetworkConfig, vectors: Array, examples: Arrays, key: PRNGKeyArray) -> Reading:
    """Draws networks and reads all examples."""
    policy_key, critic_key, search_key = jax.random.split(key, 3)
    policy, critic = Policy(domain, config, key=policy_key), Critic(domain, config, key=critic_key)

    def tables(example: Arrays) -> tuple[PolicyTables, CriticTables]:
        words, mask = vectors[example.words], example.words > 0
        utterances = policy.encode(words, mask)
        target = domain.observe_target(example.target)
        of_critic = critic.prepare(policy, utterances, words, example.instructions, target)
        return policy.prepare(utterances), of_critic

    of_policy, of_critic = jax.vmap(tables, out_axes=TABLE_AXES)(examples)
    return Reading(policy, critic, of_policy, of_critic, jax.random.split(search_key, examples.instructions.shape[0]))
