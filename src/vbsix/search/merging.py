"""Finding equal states among many by their 64-bit keys, with scatters into hash tables instead of a sort."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, UInt32

ROUNDS = 4
"""Tables tried. With tables of at least 8 places a key, one key in about 10^10 searches finds no place of its own;
it then counts as different from its equals, which costs a merge, or a path through it, and nothing else."""


def _places(keys: UInt32[Array, "N 2"], size: int, number: int) -> Int[Array, " N"]:
    """Where a key belongs in table `number`: double hashing over the two independent lanes."""
    return ((keys[:, 0] + np.uint32(number) * (keys[:, 1] | 1)) % np.uint32(size)).astype(jnp.int32)


def _tables(keys: UInt32[Array, "N 2"], live: Bool[Array, " N"]) -> tuple[list[Array], Int[Array, " N"]]:
    """Hash tables that hold, for each distinct live key, the index of its first occurrence; and that index for all."""
    count = keys.shape[0]
    size = 8 << (count - 1).bit_length()
    order = jnp.arange(count, dtype=jnp.int32)
    first, settled, tables = order, ~live, []
    for number in range(ROUNDS):
        place = _places(keys, size, number)
        table = jnp.full(size, count, jnp.int32).at[jnp.where(settled, size, place)].min(order, mode="drop")
        winner = table[place]
        same = ~settled & jnp.all(keys[jnp.minimum(winner, count - 1)] == keys, axis=-1)
        first, settled = jnp.where(same, winner, first), settled | same
        tables.append(table)
    return tables, first


def representatives(keys: UInt32[Array, "N 2"], live: Bool[Array, " N"]) -> Int[Array, " N"]:
    """For each live entry the index of the first live entry with the same key; the others stand for themselves."""
    return _tables(keys, live)[1]


def lookup(keys: UInt32[Array, "N 2"], live: Bool[Array, " N"], queries: UInt32[Array, "Q 2"]) -> Int[Array, " Q"]:
    """For each query the index of the first live entry with that key, -1 if there is none."""
    tables, _ = _tables(keys, live)
    count, found = keys.shape[0], jnp.full(queries.shape[0], -1, jnp.int32)
    for number, table in enumerate(tables):
        winner = table[_places(queries, table.shape[0], number)]
        same = (winner < count) & jnp.all(keys[jnp.minimum(winner, count - 1)] == queries, axis=-1)
        found = jnp.where(same, winner, found)
    return found


def log_sum_by_group(values: Float[Array, " N"], group: Int[Array, " N"]) -> Float[Array, " N"]:
    """The log of Σ exp over each group, at the group's own index; -inf elsewhere and for groups of -inf only."""
    largest = jnp.full_like(values, -jnp.inf).at[group].max(values)
    shift = jnp.where(jnp.isfinite(largest), largest, 0.0)
    total = jnp.zeros_like(values).at[group].add(jnp.exp(values - shift[group]))
    return jnp.log(total) + shift


def best_of_group(values: Float[Array, " N"], group: Int[Array, " N"]) -> Int[Array, " N"]:
    """The index of the largest value of each group (the first of equals), at the group's own index."""
    count = values.shape[0]
    largest = jnp.full_like(values, -jnp.inf).at[group].max(values)
    order = jnp.where(values == largest[group], jnp.arange(count, dtype=jnp.int32), count)
    return jnp.full(count, count, jnp.int32).at[group].min(order)


def choose(tree, index: Int[Array, " n"]):
    """The entries of every leaf at the given indices of the first axis."""
    return jax.tree.map(lambda leaf: leaf[index], tree)
