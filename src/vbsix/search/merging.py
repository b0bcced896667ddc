"""Finding equal states among many by their 64-bit keys, with scatters into hash tables instead of a sort."""

from __future__ import annotations

import functools
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, UInt32


def representatives(keys: UInt32[Array, "N 2"], live: Bool[Array, " N"]) -> Int[Array, " N"]:
    """For each live entry the index of the first live entry with the same key; the others stand for themselves."""
    return jnp.where(live, lookup(keys, live, keys), jnp.arange(keys.shape[0], dtype=jnp.int32))


ROUNDS = 4
"""On a GPU, where to ask whether all are settled costs more than to go on, keys that find no place in so many tables
(one in millions) stay apart: a state is then kept twice, or a path not followed."""


def lookup(keys: UInt32[Array, "N 2"], live: Bool[Array, " N"], queries: UInt32[Array, "Q 2"]) -> Int[Array, " Q"]:
    """For each query the index of the first live entry with that key, -1 if there is none.

    Of the entries that belong to one place of a table the first gets it. Keys left without a place go to the next
    table, of which there are as many as it takes, two or three as a rule: each settles at least one key.
    """
    count = keys.shape[0]
    size = 4 << (count - 1).bit_length()
    order = jnp.arange(count, dtype=jnp.int32)

    def settle(state):
        number, waiting, found = state
        place = jnp.where(waiting, _places(keys, size, number), size)
        table = jnp.full(size, count, jnp.int32).at[place].min(order, mode="drop")

        def find(wanted):
            first = table[_places(wanted, size, number)]
            same = jnp.all(keys.at[first].get(mode="clip") == wanted, axis=-1)
            return jnp.where(same & (first < count), first, -1)

        return number + 1, waiting & (find(keys) < 0), jnp.maximum(found, find(queries))

    def settle_all(*state):
        return jax.lax.while_loop(lambda state: jnp.any(state[1]), settle, state)

    def settle_most(*state):
        return functools.reduce(lambda state, _: settle(state), range(ROUNDS), state)

    start = jnp.uint32(1), live, jnp.full(queries.shape[0], -1, jnp.int32)
    return jax.lax.platform_dependent(*start, cuda=settle_most, default=settle_all)[2]


def _places(keys: UInt32[Array, "N 2"], size: int, number: UInt32[Array, ""]) -> Int[Array, " N"]:
    """Where a key belongs in table `number`, whose size is a power of two: double hashing over the two lanes."""
    return ((keys[:, 0] + number * keys[:, 1]) & np.uint32(size - 1)).astype(jnp.int32)


class Merged(NamedTuple):
    """What prefixes that lead to the same state come to, at the index of their group; elsewhere nothing."""

    log_sum: Float[Array, " N"]
    """The log of their summed probability, -inf if there is none."""
    paths: Float[Array, " N"]
    """How many there are."""
    best: Int[Array, " N"]
    """The most probable one, the first of equals."""


def merge_prefixes(log_prefixes: Float[Array, " N"], paths: Float[Array, " N"], group: Int[Array, " N"]) -> Merged:
    """Sums over the prefixes of each group; -inf marks a transition that no prefix takes."""
    largest = jnp.full_like(log_prefixes, -jnp.inf).at[group].max(log_prefixes)
    shift = jnp.where(jnp.isfinite(largest), largest, 0.0)
    mass = jnp.exp(log_prefixes - shift[group])
    paths = jnp.where(jnp.isfinite(log_prefixes), paths, 0.0)
    sums = jnp.zeros((log_prefixes.shape[0], 2)).at[group].add(jnp.stack([mass, paths], axis=1))
    return Merged(jnp.log(sums[:, 0]) + shift, sums[:, 1], best_of_group(log_prefixes, group))


def best_of_group(values: Float[Array, " N"], group: Int[Array, " N"]) -> Int[Array, " N"]:
    """The index of the largest value of each group (the first of equals), at the group's own index."""
    count = values.shape[0]
    largest = jnp.full_like(values, -jnp.inf).at[group].max(values)
    order = jnp.where(values == largest[group], jnp.arange(count, dtype=jnp.int32), count)
    return jnp.full(count, count, jnp.int32).at[group].min(order)


def choose(tree, index: Int[Array, " n"]):
    """The entries of every leaf at the given indices of the first axis."""
    return jax.tree.map(lambda leaf: leaf[index], tree)
