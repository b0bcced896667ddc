"""The accuracy of many seeds' policies, by batched prediction."""

from __future__ import annotations

import functools
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from vbsix.config.schema import Config
from vbsix.data.dataset import Dataset
from vbsix.data.examples import Arrays
from vbsix.domains.base import Domain
from vbsix.models import PolicyNetwork
from vbsix.search.prediction import predict
from vbsix.search.sharding import sharded_map
from vbsix.utilities.trees import choose

Accuracies = dict[str, dict[str, list[float]]]
"""Split, then number of utterances, then one fraction for each seed."""
WHOLE = "all"
"""Stands for a number of utterances where whole rows are evaluated, however long they are."""


class Predicted(NamedTuple):
    """The most probable program of each seed's policy for each example."""

    tokens: Int[np.ndarray, "S N L"]
    """Token ids, then -1."""
    right: Bool[np.ndarray, "S N M"]
    """Whether the world after each command is the one given for it."""
    instructions: Int[np.ndarray, " N"]
    log_commands: Float[np.ndarray, "S N M"] | None = None
    """Of each command, given those before it."""
    log_outcome: Float[np.ndarray, "S N"] | None = None
    """Of all programs found that end in the same world; -inf where none was found."""

    @property
    def correct(self) -> Bool[np.ndarray, "S N"]:
        """Whether the last world is right."""
        return self.right[:, np.arange(len(self.instructions)), self.instructions - 1]


def evaluate_splits(dataset: Dataset, policies: PolicyNetwork, config: Config) -> Accuracies:
    """The accuracy of each seed's policy on each split, by number of utterances."""
    return {
        name: {
            (str(length) if length else WHOLE): accuracy(
                dataset.domain,
                policies,
                dataset.words.vectors,
                dataset.arrays(split.examples(length)),
                beam=config.run.evaluation_beam,
                batch=config.run.evaluation_batch,
            )
            for length in config.data.evaluation
        }
        for name, split in dataset.splits.items()
    }


def accuracy(
    domain: Domain,
    policies: PolicyNetwork,
    vectors: Float[Any, "V word"],
    examples: Arrays,
    *,
    beam: int,
    batch: int,
) -> list[float]:
    """The share of examples whose most probable program leads to their target, for each seed's policy."""
    predicted = predict_examples(domain, policies, vectors, examples, beam=beam, batch=batch)
    return [float(share) for share in np.mean(predicted.correct, axis=1)]


def predict_examples(
    domain: Domain,
    policies: PolicyNetwork,
    vectors: Float[Any, "V word"],
    examples: Arrays,
    worlds: Any = None,
    *,
    beam: int,
    batch: int,
) -> Predicted:
    """Predicts in batches of one size.

    Args:
        domain: the language.
        policies: leaves have a leading axis over seeds.
        vectors: the vectors of all words.
        examples: what to predict.
        worlds: the right world after each command, leaves [N, M, ...]; None for the target after each.
        beam: K.
        batch: examples predicted in one call.
    """
    count = examples.instructions.shape[0]
    batch = min(batch, count)
    if worlds is None:  # as a tree of the same shape, so that the same compiled function serves both cases
        most = examples.words.shape[1]
        worlds = jax.tree.map(lambda leaf: np.repeat(np.asarray(leaf)[:, None], most, axis=1), examples.target)
    parts = []
    for first in range(0, count, batch):
        index = np.minimum(np.arange(first, first + batch), count - 1)  # the last batch is filled up with its end
        part = jax.tree.map(lambda leaf, index=index: jnp.asarray(leaf)[index], (examples, worlds))
        with domain.alone():
            found = predict_batch(domain, policies, jnp.asarray(vectors), *part, beam=beam)
            parts.append(jax.tree.map(np.asarray, found))
            domain.raise_failure()
    tokens, right, *logs = (np.concatenate(each, axis=1)[:, :count] for each in zip(*parts, strict=True))
    return Predicted(tokens, right, np.asarray(examples.instructions), *logs)


@functools.partial(jax.jit, static_argnums=0, static_argnames=("beam",))
def predict_batch(
    domain: Domain,
    policies: PolicyNetwork,
    vectors: Float[Array, "V word"],
    examples: Arrays,
    worlds: Any = None,
    *,
    beam: int,
) -> tuple[Int[Array, "S N L"], Bool[Array, "S N M"], Float[Array, "S N M"], Float[Array, "S N"]]:
    """Tokens of the most probable program of each seed for each example, which of its worlds are right, and the
    log-probabilities of its commands and of its outcome.
    """
    projections = jax.vmap(lambda policy: policy.utterances.project(vectors))(policies)

    def of_example(policy: PolicyNetwork, projections: Float[Array, "V projected"], example: Arrays, worlds: Any):
        predicted = predict(domain, policy, projections, example, beam=beam)
        states = choose(predicted.states, 0)
        if worlds is None:
            right = jax.vmap(lambda state: domain.matches(state, example.target))(states)
        else:
            right = jax.vmap(domain.matches)(states, worlds)
        right &= jnp.isfinite(predicted.log_probability[0])
        return predicted.tokens[0], right, predicted.log_commands[0], predicted.log_denotation[0]

    def of_shard(needed: tuple[PolicyNetwork, Array], shard: tuple[Arrays, Any]):
        of_seed = lambda policy, projections: jax.vmap(lambda *one: of_example(policy, projections, *one))(*shard)  # noqa: E731
        return jax.vmap(of_seed)(*needed)

    return sharded_map(of_shard, domain, len(examples.words))((policies, projections), (examples, worlds))
