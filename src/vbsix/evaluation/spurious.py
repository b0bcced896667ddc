"""Spurious programs: those that lead to the right world through a wrong one.

Intermediate worlds are read after training alone. Nothing learns from them.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from vbsix.config.schema import Config
from vbsix.data.dataset import Dataset, Split
from vbsix.data.examples import Arrays, Row
from vbsix.domains.base import Domain, State
from vbsix.domains.execution import ends_command_elsewhere
from vbsix.evaluation.accuracy import Predicted, predict_examples
from vbsix.evaluation.training_search import MOST_SEARCHED, search_training_example
from vbsix.models.heads import Networks
from vbsix.search import Graph
from vbsix.training.forward_backward import forward_backward

FOUND = "train"
"""Stands for the programs that searches find for training rows."""
Shares = list[float | None]
"""For each seed; None where there is nothing to count."""


def is_spurious(right: Sequence[bool | None]) -> bool | None:
    """Whether a program is spurious, given whether the world after each command is right.

    Only a correct program, one whose last world is right, can be spurious. None where that is not known: where a world
    in between is not, or where there is none, since the program has one command.
    """
    return None if len(right) < 2 or None in right or not right[-1] else not all(right)


def predict_longest(dataset: Dataset, networks: Networks, config: Config) -> dict[str, Predicted]:
    """Each seed's predictions for the longest examples of each split, compared with all worlds that are known."""
    length = max(config.data.evaluation)
    predictions = {}
    for name, split in dataset.splits.items():
        examples = split.examples(length)
        predictions[name] = predict_examples(
            dataset.domain,
            networks.policy,
            dataset.words.vectors,
            dataset.arrays(examples),
            _worlds(dataset, split.rows, length),
            beam=config.run.evaluation_beam,
            batch=config.run.evaluation_batch,
        )
    return predictions


def spurious_shares(
    dataset: Dataset, networks: Networks, config: Config, predictions: Mapping[str, Predicted]
) -> dict[str, Shares]:
    """The spurious share of each seed's correct predictions, and of what its searches find for training rows."""
    length = max(config.data.evaluation)
    shares = {name: spurious_predictions(dataset, name, length, found) for name, found in predictions.items()}
    return shares | {FOUND: spurious_finds(dataset, networks, config, min(length, dataset.most_instructions))}


def spurious_predictions(dataset: Dataset, split: str, length: int, found: Predicted) -> Shares:
    """The spurious share of each seed's correct predictions for the examples of one length of a split."""
    return [
        _mean(is_spurious(row[:count].tolist()) for row, count in zip(right[correct], counts[correct], strict=True))
        for right, correct, counts in _of_known(dataset, split, length, found)
    ]


def intermediate_accuracy(
    dataset: Dataset, config: Config, predictions: Mapping[str, Predicted]
) -> dict[str, dict[str, Shares]]:
    """For each split and each number of utterances but the last, the share of correct predictions right there."""
    length = max(config.data.evaluation)
    return {
        name: {
            str(end): [
                _mean(right[correct][:, end - 1]) for right, correct, _ in _of_known(dataset, name, length, found)
            ]
            for end in range(1, length)
        }
        for name, found in predictions.items()
    }


def _of_known(
    dataset: Dataset, split: str, length: int, found: Predicted
) -> Iterator[tuple[Bool[np.ndarray, "n M"], Bool[np.ndarray, " n"], Int[np.ndarray, " n"]]]:
    """For each seed and the rows with all worlds known: which worlds are right, whether the last is, and how many."""
    known = _known(dataset.splits[split], length)
    for right, correct in zip(found.right, found.correct, strict=True):
        yield right[known], correct[known], found.instructions[known]


def spurious_finds(dataset: Dataset, networks: Networks, config: Config, length: int) -> Shares:
    """For each seed, the spurious share of what its searches find for training rows; None if nothing is found.

    Programs count by the probability that the policy which searches gives them, an expert if there is one.

    Args:
        dataset: the data.
        networks: leaves have a leading axis over seeds.
        config: how to search.
        length: how many of the rows' first utterances are searched for.
    """
    seeds = jax.tree.leaves(networks)[0].shape[0]
    rows = [dataset.train.rows[place] for place in _known(dataset.train, length)[:MOST_SEARCHED]]
    if not rows:
        return [None] * seeds
    count, batch = len(rows), config.training.batch
    rows += rows[-1:] * (-count % batch)  # batches of one size, for each is compiled
    examples, worlds = dataset.arrays(Split(rows).examples(length)), _worlds(dataset, rows, length)
    with dataset.domain.alone():
        found = _search(dataset.domain, config, networks, jnp.asarray(dataset.words.vectors), examples, worlds)
        hit, share = (np.asarray(part)[:, :count] for part in found)
        dataset.domain.raise_failure()
    return [_mean(share[seed][hit[seed]]) for seed in range(seeds)]


@functools.partial(jax.jit, static_argnums=(0, 1))
def _search(
    domain: Domain, config: Config, networks: Networks, vectors: Array, examples: Arrays, worlds: Any
) -> tuple[Bool[Array, "S N"], Float[Array, "S N"]]:
    """Whether a search finds a program, and the spurious share of what it finds."""

    def of_seed(networks: Networks):
        def of_example(case: tuple[Arrays, Any]):
            example, worlds = case
            _, graph = search_training_example(domain, config, networks, vectors, example)
            return graph.hit, spurious_posterior(domain, graph, worlds)

        return jax.lax.map(of_example, (examples, worlds), batch_size=config.training.batch)

    return jax.lax.map(of_seed, networks)


def spurious_posterior(domain: Domain, graph: Graph, worlds: Any) -> Float[Array, ""]:
    """The share of the probability of all correct paths of a graph that runs through a wrong world.

    Args:
        domain: the language.
        graph: of a search.
        worlds: the right world after each command; leaves [M, ...].
    """

    def goes_wrong(state: State) -> Bool[Array, " A"]:
        successors, _ = domain.expand(state)
        return jax.vmap(lambda after: ends_command_elsewhere(domain, state, after, worlds))(successors)

    wrong = jax.vmap(jax.vmap(goes_wrong))(graph.beam.states)
    log_policy = jnp.where(wrong, -jnp.inf, graph.expansion.log_policy)
    log_all, log_right = (forward_backward(graph, each).log_reward[0, 0] for each in (None, log_policy))
    return jnp.where(jnp.isfinite(log_all), 1.0 - jnp.exp(log_right - jnp.where(graph.hit, log_all, 0.0)), 0.0)


def _known(split: Split, length: int) -> list[int]:
    """The rows that have the world after each of their first utterances; after all of several, if the length is 0."""
    return [
        place
        for place, row in enumerate(split.rows)
        if (length or 2) <= len(row.utterances) and None not in row.worlds[: (length or len(row.utterances)) + 1]
    ]


def _worlds(dataset: Dataset, rows: Sequence[Row], length: int) -> Any:
    """The world after each of the first utterances, leaves [N, M, ...]; the last one stands for those not known.

    With length 0, after all utterances of each row; rows that are shorter than the longest repeat their last one.
    """
    parse = functools.cache(dataset.domain.parse_target)
    most = length or max(len(row.utterances) for row in rows)
    targets = []
    for row in rows:
        last = str(row.worlds[length or -1])
        known = row.worlds[1 : (length or len(row.utterances)) + 1]
        targets += [parse(world if world is not None else last) for world in (*known, *[last] * (most - len(known)))]
    return jax.tree.map(lambda *leaves: np.stack(leaves).reshape(len(rows), most, *np.shape(leaves[0])), *targets)


def _mean(values: Any) -> float | None:
    found = [float(value) for value in values if value is not None]
    return float(np.mean(found)) if found else None
