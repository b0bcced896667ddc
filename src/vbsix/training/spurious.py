"""Programs that come to the right world through wrong ones.

The worlds in between are looked at after training alone: nothing learns from them.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from vbsix.data.examples import Arrays
from vbsix.domains.base import Domain, State
from vbsix.evaluation import predict_tokens
from vbsix.search import Graph, Problem, beam_search
from vbsix.search.merging import choose
from vbsix.training.config import Config
from vbsix.training.objectives import correct_flow
from vbsix.training.step import Heads, Networks, make_heads, read_example
from vbsix.training.task import Split, Task

MOST_SEARCHED = 100
"""Rows of which `spurious_finds` looks for programs."""
FOUND = "train"
"""Stands for the programs that searches find for training rows."""
Predictions = dict[str, np.ndarray]
"""For each split, token ids [S, N, L]."""
Shares = list[float | None]
"""For each seed; None where there is nothing to share."""


def predict_longest(task: Task, networks: Networks) -> Predictions:
    """Each seed's programs for the longest examples of each split."""
    return {
        name: predict_tokens(
            task.domain,
            networks.policy,
            task.words.vectors,
            task.arrays(split.examples(_longest(task))),
            beam=task.config.run.evaluation_beam,
            batch=task.config.run.evaluation_batch,
        )
        for name, split in task.splits.items()
    }


def find_spurious(task: Task, networks: Networks, predictions: Predictions) -> dict[str, Shares]:
    """How many of each seed's right programs pass through wrong worlds, and of those that it finds for training."""
    longest = _longest(task)
    shares = {name: spurious_shares(task, task.splits[name], longest, tokens) for name, tokens in predictions.items()}
    return shares | {FOUND: spurious_finds(task, networks, min(longest, task.most_instructions))}


def _longest(task: Task) -> int:
    return max(task.config.data.evaluation)


def spurious_shares(task: Task, split: Split, length: int, tokens: Int[np.ndarray, "S N L"]) -> Shares:
    """For each seed, how many of its right programs are spurious; None if none is right.

    Args:
        task: the data.
        split: where the rows are from; those with an unknown world in between are passed over.
        length: how many of the rows' first utterances the programs are for; of whole rows (0) it is not known.
        tokens: each seed's program for each row.
    """
    right = _right_worlds(task, split, length, tokens)
    return [float(1 - of_seed.all(axis=1).mean()) if len(of_seed) else None for of_seed in right]


def worlds_between(task: Task, split: Split, length: int, tokens: Int[np.ndarray, "S N L"]) -> dict[str, Shares]:
    """For each number of utterances but the last, how many of each seed's right programs have the right world there."""
    right = _right_worlds(task, split, length, tokens)
    return {
        str(end): [float(of_seed[:, end - 1].mean()) if len(of_seed) else None for of_seed in right]
        for end in range(1, length)
    }


def _right_worlds(
    task: Task, split: Split, length: int, tokens: Int[np.ndarray, "S N L"]
) -> list[Bool[np.ndarray, "_ M"]]:
    """For each seed, whether the world after each command is right, of those programs whose last one is."""
    if not (known := _known(split, length)):
        return [np.zeros((0, length), bool)] * len(tokens)
    examples, between = _with_worlds_between(task, split, known, length)
    with task.domain.alone():
        right = np.asarray(passes_through(task.domain, examples.world, between, jnp.asarray(tokens[:, known])))
        task.domain.raise_failure()
    return [of_seed[of_seed[:, -1]] for of_seed in right]


def spurious_finds(task: Task, networks: Networks, length: int) -> Shares:
    """For each seed, how much of what its searches find for training rows is spurious; None if nothing is found.

    Programs count by the probability that the policy which searches gives them, an expert if there is one.

    Args:
        task: the data.
        networks: leaves have a leading axis over seeds.
        length: how many of the rows' first utterances are searched for.
    """
    seeds = jax.tree.leaves(networks)[0].shape[0]
    known = _known(task.train, length)[:MOST_SEARCHED]
    if not known:
        return [None] * seeds
    examples, between = _with_worlds_between(task, task.train, known, length)
    with task.domain.alone():
        found = _search(task.domain, task.config, networks, jnp.asarray(task.words.vectors), examples, between)
        hit, share = map(np.asarray, found)
        task.domain.raise_failure()
    return [float(share[seed][hit[seed]].mean()) if hit[seed].any() else None for seed in range(seeds)]


@functools.partial(jax.jit, static_argnums=(0, 1))
def _search(
    domain: Domain, config: Config, networks: Networks, vectors: Array, examples: Arrays, between: Any
) -> tuple[Bool[Array, "S N"], Float[Array, "S N"]]:
    """Whether a search finds a program, and how much of what it finds is spurious."""

    def of_seed(networks: Networks):
        def of_example(case: tuple[Arrays, Any]):
            example, worlds = case
            _, graph = search_example(domain, config, networks, vectors, example)
            return graph.hit, spurious_share(domain, graph, worlds)

        return jax.lax.map(of_example, (examples, between), batch_size=config.training.batch)

    return jax.lax.map(of_seed, networks)


def search_example(
    domain: Domain, config: Config, networks: Networks, vectors: Array, example: Arrays
) -> tuple[Heads, Graph]:
    """A search as in training, and the networks that it was made with."""
    heads = make_heads(domain, networks, read_example(domain, networks, vectors, example))
    graph = beam_search(
        domain,
        heads.actor,
        heads.critic,
        Problem(example.world, example.instructions, example.target),
        jax.random.key(0),
        instructions=example.words.shape[0],
        config=config.search,
    )
    return heads, graph


def spurious_share(domain: Domain, graph: Graph, worlds: Any) -> Float[Array, ""]:
    """How much of the probability of all correct paths of a graph is of those that pass through a wrong world.

    Args:
        domain: the language.
        graph: of a search.
        worlds: those wanted after each command; leaves [M, ...].
    """

    def is_faithful(state: State) -> Bool[Array, " A"]:
        def ends_right(successor: State) -> Bool[Array, ""]:
            done = domain.instructions_done(successor)
            wanted = choose(worlds, jnp.maximum(done - 1, 0))
            return (done == domain.instructions_done(state)) | domain.matches(successor, wanted)

        return jax.vmap(ends_right)(domain.expand(state)[0])

    faithful = jax.vmap(jax.vmap(is_faithful))(graph.beam.states)
    log_policy = jnp.where(faithful, graph.expansion.log_policy, -jnp.inf)
    log_all, log_faithful = (correct_flow(graph, each).log_reward[0, 0] for each in (None, log_policy))
    return jnp.where(jnp.isfinite(log_all), 1.0 - jnp.exp(log_faithful - jnp.where(graph.hit, log_all, 0.0)), 0.0)


def _known(split: Split, length: int) -> list[int]:
    """The rows that tell the world after each of their first utterances."""
    return [
        place
        for place, row in enumerate(split.rows)
        if 0 < length <= len(row.utterances) and None not in row.worlds[: length + 1]
    ]


def _with_worlds_between(task: Task, split: Split, places: Sequence[int], length: int) -> tuple[Arrays, Any]:
    """Examples of some rows, and the worlds after each utterance: leaves [N, M, ...]."""
    rows = Split([split.rows[place] for place in places])
    by_length = [task.arrays(rows.examples(end)) for end in range(1, length + 1)]
    between = jax.tree.map(lambda *leaves: np.stack(leaves, axis=1), *(arrays.target for arrays in by_length))
    return by_length[-1], between


@functools.partial(jax.jit, static_argnums=0)
def passes_through(domain: Domain, starts: Any, worlds: Any, tokens: Int[Array, "S N L"]) -> Bool[Array, "S N M"]:
    """Whether the world after each command of each program is the one wanted.

    Args:
        domain: the language.
        starts: first worlds; leaves [N, ...].
        worlds: those wanted after each command; leaves [N, M, ...].
        tokens: valid programs, padded with -1.
    """
    commands = jax.tree.leaves(worlds)[0].shape[1]

    def of_program(start: Any, worlds: Any, tokens: Int[Array, " L"]) -> Bool[Array, " M"]:
        def step(carry: tuple[State, Bool[Array, " M"]], token: Int[Array, ""]):
            state, right = carry
            successors, valid = domain.expand(state)
            moved = (token >= 0) & valid[token]
            after = jax.tree.map(lambda new, old: jnp.where(moved, new[token], old), successors, state)
            done = domain.instructions_done(after)
            ended = (done > domain.instructions_done(state)) & (jnp.arange(commands) == done - 1)
            return (after, right | (ended & jax.vmap(lambda world: domain.matches(after, world))(worlds))), None

        nothing = jnp.zeros(commands, bool)
        return jax.lax.scan(step, (domain.start(start, commands), nothing), tokens)[0][1]

    return jax.vmap(lambda programs: jax.vmap(of_program)(starts, worlds, programs))(tokens)
