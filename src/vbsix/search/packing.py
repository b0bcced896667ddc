"""What a loop records, as one array: on a GPU each array that is recorded costs a kernel in every round."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from itertools import accumulate
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Int, UInt32

from vbsix.utilities.trees import choose


def scan_packed(
    body: Callable[[Any, Any], tuple[Any, Any]],
    start: Any,
    steps: Any,
    *,
    end: Int[Array, ""] | None = None,
    rest: Any = None,
) -> tuple[Any, Any]:
    """`jax.lax.scan` with two differences: it can stop early, and no gradient flows through what is recorded on a GPU.

    On a CPU nothing is packed: there, arrays that nobody reads cost nothing.

    Args:
        body: as in `jax.lax.scan`.
        start: as in `jax.lax.scan`.
        steps: as in `jax.lax.scan`.
        end: how many rounds to run; None for all.
        rest: what the rounds from `end` on record.
    """
    if jax.default_backend() == "cpu":
        return _loop(body, start, steps, end, rest)
    layout: Any = None

    def pack(recorded: Any) -> UInt32[Array, " words"]:
        nonlocal layout
        leaves, tree = jax.tree.flatten(recorded)
        parts = [_to_words(leaf) for leaf in leaves]
        layout = tree, [(part.shape, leaf.dtype) for part, leaf in zip(parts, leaves, strict=True)]
        return jnp.concatenate([part.reshape(-1) for part in parts])

    def packed_body(carry: Any, step: Any) -> tuple[Any, UInt32[Array, " words"]]:
        carry, recorded = body(carry, step)
        return carry, pack(recorded)

    carry, words = _loop(packed_body, start, steps, end, None if end is None else pack(rest))
    tree, kinds = layout
    ends = list(accumulate(math.prod(shape) for shape, _ in kinds))
    parts = zip(jnp.split(words, ends[:-1], axis=1), kinds, strict=True)
    leaves = [_from_words(part.reshape(len(words), *shape), dtype) for part, (shape, dtype) in parts]
    return carry, jax.tree.unflatten(tree, leaves)


def _loop(
    body: Callable[[Any, Any], tuple[Any, Any]], start: Any, steps: Any, end: Int[Array, ""] | None, rest: Any
) -> tuple[Any, Any]:
    if end is None:
        return jax.lax.scan(body, start, steps)
    count = len(jax.tree.leaves(steps)[0])
    records = jax.tree.map(lambda leaf: jnp.broadcast_to(leaf, (count, *leaf.shape)), rest)

    def one_round(state: tuple[Array, Any, Any]) -> tuple[Array, Any, Any]:
        number, carry, records = state
        carry, recorded = body(carry, choose(steps, number))
        update = functools.partial(jax.lax.dynamic_update_index_in_dim, index=number, axis=0)
        return number + 1, carry, jax.tree.map(update, records, recorded)

    return jax.lax.while_loop(lambda state: state[0] < end, one_round, (jnp.int32(0), start, records))[1:]


def _to_words(leaf: Array) -> UInt32[Array, "..."]:
    """The bits of an array; numbers of 64 bits become two words each."""
    if leaf.dtype.kind == "b":
        return leaf.astype(jnp.uint32)
    return jax.lax.bitcast_convert_type(leaf, f"uint{min(8 * leaf.dtype.itemsize, 32)}").astype(jnp.uint32)


def _from_words(words: UInt32[Array, "..."], dtype: np.dtype) -> Array:
    if dtype.kind == "b":
        return words.astype(bool)
    return jax.lax.bitcast_convert_type(words.astype(f"uint{min(8 * dtype.itemsize, 32)}"), dtype)
