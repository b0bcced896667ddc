"""The chart P_t: equal states are found by their 64-bit keys, and the prefixes that lead to one are summed.

States are found with scatters into hash tables instead of a sort.
"""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, UInt32


class Merged(NamedTuple):
    """Sums over the prefixes that lead to the same state, at the index of their group; elsewhere nothing."""

    log_sum: Float[Array, " N"]
    """The log of their summed probability, -inf if there is none."""
    paths: Float[Array, " N"]
    """How many there are."""


def merge_prefixes(log_prefixes: Float[Array, " N"], paths: Float[Array, " N"], group: Int[Array, " N"]) -> Merged:
    """The chart P_t: sums over the prefixes of each group; -inf marks a transition that no prefix takes."""
    largest = jnp.full_like(log_prefixes, -jnp.inf).at[group].max(log_prefixes)
    shift = jnp.where(jnp.isfinite(largest), largest, 0.0)
    mass = jnp.exp(log_prefixes - shift[group])
    paths = jnp.where(jnp.isfinite(log_prefixes), paths, 0.0)
    sums = jnp.zeros((log_prefixes.shape[0], 2)).at[group].add(jnp.stack([mass, paths], axis=1))
    return Merged(jnp.log(sums[:, 0]) + shift, sums[:, 1])


def representatives(keys: UInt32[Array, "N 2"], live: Bool[Array, " N"]) -> Int[Array, " N"]:
    """For each live entry the index of the first live entry with the same key; the others stand for themselves."""
    found = lookup(keys, live, keys)
    return jnp.where(live & (found >= 0), found, jnp.arange(keys.shape[0], dtype=jnp.int32))


def lookup(keys: UInt32[Array, "N 2"], live: Bool[Array, " N"], queries: UInt32[Array, "Q 2"]) -> Int[Array, " Q"]:
    """For each query the index of the first live entry with that key, -1 if there is none."""
    return jax.lax.platform_dependent(keys, live, queries, cuda=_look_up_at_once, default=_look_up_in_turn)


def _look_up_in_turn(keys: Array, live: Array, queries: Array) -> Int[Array, " Q"]:
    """Of the entries that belong to one place of a table the first gets it. Keys left without a place go to the next
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
            return _with_key(keys, wanted, table[_places(wanted, size, number)])

        return number + 1, waiting & (find(keys) < 0), jnp.maximum(found, find(queries))

    start = jnp.uint32(1), live, jnp.full(queries.shape[0], -1, jnp.int32)
    return jax.lax.while_loop(lambda state: jnp.any(state[1]), settle, start)[2]


TABLES = 6
FACTORS = np.random.default_rng(2019).integers(0, 2**32, (2, TABLES), dtype=np.uint32) | np.uint32(1)
"""Odd numbers by which the two lanes of a key are multiplied to give its place in each table."""


def _look_up_at_once(keys: Array, live: Array, queries: Array) -> Int[Array, " Q"]:
    """The same with a few kernels, which is what costs time on a GPU: all tables are filled side by side.

    A key that has a place in none of them (one in millions) is not found: a state is then kept twice, or a path not
    followed.
    """
    count = keys.shape[0]
    size = 8 << (count - 1).bit_length()
    first_places = np.arange(TABLES, dtype=np.uint32)[None] * np.uint32(size)

    def places(keys: Array) -> Int[Array, "n tables"]:
        product = keys[:, :1] * FACTORS[:1] + keys[:, 1:] * FACTORS[1:]
        return ((product >> np.uint32(33 - size.bit_length())) + first_places).astype(jnp.int32)

    taken = jnp.where(live[:, None], places(keys), TABLES * size)
    order = jnp.broadcast_to(jnp.arange(count, dtype=jnp.int32)[:, None], taken.shape)
    tables = jnp.full(TABLES * size, count, jnp.int32).at[taken].min(order, mode="drop")
    return jnp.max(_with_key(keys, queries[:, None], tables[places(queries)]), axis=1)


def _with_key(keys: Array, wanted: Array, index: Int[Array, "*n"]) -> Int[Array, "*n"]:
    """The indices at which the wanted keys are, -1 in place of the others."""
    same = jnp.all(keys.at[index].get(mode="clip") == wanted, axis=-1)
    return jnp.where(same & (index < keys.shape[0]), index, -1)


def _places(keys: UInt32[Array, "N 2"], size: int, number: UInt32[Array, ""]) -> Int[Array, " N"]:
    """Where a key belongs in table `number`, whose size is a power of two: double hashing over the two lanes."""
    return ((keys[:, 0] + number * keys[:, 1]) & np.uint32(size - 1)).astype(jnp.int32)


def best_of_group(values: Float[Array, " N"], group: Int[Array, " N"]) -> Int[Array, " N"]:
    """The index of the largest value of each group (the first of equals), at the group's own index."""
    count = values.shape[0]
    largest = jnp.full_like(values, -jnp.inf).at[group].max(values)
    order = jnp.where(values == largest[group], jnp.arange(count, dtype=jnp.int32), count)
    return jnp.full(count, count, jnp.int32).at[group].min(order)
