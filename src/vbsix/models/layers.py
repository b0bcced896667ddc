"""Linear layers, embeddings, and linear layers over embedded ids, which are tables."""

from __future__ import annotations

from itertools import accumulate

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray

from vbsix.domains.base import Domain
from vbsix.models.config import NetworkConfig

glorot = jax.nn.initializers.glorot_uniform()
MASKED = -1e9
"""A score so low that its exponential is 0, but finite, so that no gradient becomes NaN."""


def orthogonal(key: PRNGKeyArray, size: int) -> Float[Array, "size size"]:
    """A random orthogonal matrix: normal numbers whose columns are made orthonormal one after the other.

    The result is that of `jax.nn.initializers.orthogonal`. That one calls LAPACK, which on a CPU deadlocks when as many
    calls run at once as there are threads.
    """
    drawn = jax.random.normal(key, (size, size))

    def add(column: Int[Array, ""], done: Float[Array, "size size"]) -> Float[Array, "size size"]:
        new = drawn[:, column]
        for _ in range(2):  # once leaves too much to rounding
            new -= jnp.matmul(done, jnp.matmul(done.T, new, precision="highest"), precision="highest")
        return done.at[:, column].set(new / jnp.linalg.norm(new))

    return jax.lax.fori_loop(0, size, add, jnp.zeros_like(drawn))


REFERENCE_MEAN, REFERENCE_STD, REFERENCE_SEED = -0.015, 0.566, 2017
"""Guu et al.'s code draws embeddings with the mean and the standard deviation of GloVe, and with a fixed seed."""


TOKENS, CONSTANTS, ATTRIBUTES = range(3)
"""The tables of embeddings."""


def draw_embeddings(
    key: PRNGKeyArray, table: int, rows: int, size: int, std: float, config: NetworkConfig
) -> Float[Array, "rows size"]:
    """Initial embeddings. With the reference initialisation a table is the same for every key: the attributes of stack,
    world and target start as one, since the reference code shares their table.
    """
    if config.initialisation == "reference":
        key = jax.random.fold_in(jax.random.key(REFERENCE_SEED), table)
        return REFERENCE_MEAN + REFERENCE_STD * jax.random.normal(key, (rows, size))
    return std * jax.random.normal(key, (rows, size))


def renormalise(log_policy: Float[Array, " A"], valid: Bool[Array, " A"]) -> Float[Array, " A"]:
    """The log of π over the valid tokens only; the others have a probability of 0."""
    return jax.nn.log_softmax(jnp.where(valid, log_policy, MASKED))


class Dense(eqx.Module):
    """A linear layer with a bias."""

    weight: Float[Array, "inputs outputs"]
    bias: Float[Array, " outputs"]

    def __init__(self, inputs: int, outputs: int, *, key: PRNGKeyArray):
        self.weight = glorot(key, (inputs, outputs)) if inputs else jnp.zeros((0, outputs))
        self.bias = jnp.zeros(outputs)

    def __call__(self, x: Float[Array, " inputs"]) -> Float[Array, " outputs"]:
        return x @ self.weight + self.bias


def one_hot(ids: Int[Array, " places"], count: int) -> Bool[Array, "places count"]:
    """A flag for each id from 1 to `count` at each place; none is set for id 0."""
    return ids[:, None] == jnp.arange(1, count + 1)[None, :]


def hot(ids: Int[Array, "places attributes"], counts: tuple[int, ...]) -> Bool[Array, " rows"]:
    """A flag for each (place, attribute, id), of which there are as many as `counts` has for the attribute."""
    return jnp.concatenate([one_hot(ids[:, k], count) for k, count in enumerate(counts)], axis=1).reshape(-1)


def pick(flags: Bool[Array, " n"], rows: Float[Array, "n outputs"]) -> Float[Array, " outputs"]:
    """The one row that is flagged: a sum that becomes part of what is done with it, unlike a gather or a product."""
    return jnp.sum(jnp.where(flags[:, None], rows, 0.0), axis=0)


class AttributeTable(eqx.Module):
    """A linear map of concatenated attribute embeddings, as a sum of one row for each (place, attribute, id)."""

    rows: Float[Array, "rows outputs"]
    counts: tuple[int, ...] = eqx.field(static=True)

    def __call__(self, ids: Int[Array, "places attributes"]) -> Float[Array, " outputs"]:
        # A product with a multi-hot vector: for tables this small faster than gathering rows, and so is its gradient.
        return hot(ids, self.counts).astype(self.rows.dtype) @ self.rows


class AttributeEmbedding(eqx.Module):
    """Embeddings of the ids of all attributes, one attribute behind the other; id 0 (none) embeds to zero."""

    vectors: Float[Array, "ids attribute"]
    counts: tuple[int, ...] = eqx.field(static=True)

    def __init__(self, domain: Domain, config: NetworkConfig, *, key: PRNGKeyArray):
        self.counts = tuple(domain.attributes.values())
        self.vectors = draw_embeddings(
            key, ATTRIBUTES, sum(self.counts), config.attribute, config.embedding_init_std, config
        )

    def width(self, places: int) -> int:
        """Length of the concatenated embeddings of things at that many places."""
        return places * len(self.counts) * self.vectors.shape[1]

    def table(self, weight: Float[Array, "inputs outputs"]) -> AttributeTable:
        """The linear map `weight` of concatenated embeddings."""
        places = weight.shape[0] // self.width(1)
        by_attribute = weight.reshape(places, len(self.counts), self.vectors.shape[1], weight.shape[1])
        vectors = jnp.split(self.vectors, list(accumulate(self.counts))[:-1])
        rows = [jnp.einsum("ia,pao->pio", of_one, by_attribute[:, k]) for k, of_one in enumerate(vectors)]
        return AttributeTable(jnp.concatenate(rows, axis=1).reshape(-1, weight.shape[1]), self.counts)
