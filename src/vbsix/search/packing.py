"""What a loop records, as one array: on a GPU each array that is recorded costs a kernel in every round."""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import accumulate
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, UInt32


def scan_packed(body: Callable[[Any, Any], tuple[Any, Any]], start: Any, steps: Any) -> tuple[Any, Any]:
    """The same as `jax.lax.scan`, but that on a GPU no gradient flows through what is recorded.

    On a CPU it is nothing else: there, arrays that nobody reads cost nothing.
    """
    if jax.default_backend() == "cpu":
        return jax.lax.scan(body, start, steps)
    layout: Any = None

    def packed_body(carry: Any, step: Any) -> tuple[Any, UInt32[Array, " words"]]:
        nonlocal layout
        carry, recorded = body(carry, step)
        leaves, tree = jax.tree.flatten(recorded)
        parts = [_to_words(leaf) for leaf in leaves]
        layout = tree, [(part.shape, leaf.dtype) for part, leaf in zip(parts, leaves, strict=True)]
        return carry, jnp.concatenate([part.reshape(-1) for part in parts])

    carry, words = jax.lax.scan(packed_body, start, steps)
    tree, kinds = layout
    ends = list(accumulate(math.prod(shape) for shape, _ in kinds))
    parts = zip(jnp.split(words, ends[:-1], axis=1), kinds, strict=True)
    leaves = [_from_words(part.reshape(len(words), *shape), dtype) for part, (shape, dtype) in parts]
    return carry, jax.tree.unflatten(tree, leaves)


def _to_words(leaf: Array) -> UInt32[Array, "..."]:
    """The bits of an array; numbers of 64 bits become two words each."""
    if leaf.dtype.kind == "b":
        return leaf.astype(jnp.uint32)
    return jax.lax.bitcast_convert_type(leaf, f"uint{min(8 * leaf.dtype.itemsize, 32)}").astype(jnp.uint32)


def _from_words(words: UInt32[Array, "..."], dtype: np.dtype) -> Array:
    if dtype.kind == "b":
        return words.astype(bool)
    return jax.lax.bitcast_convert_type(words.astype(f"uint{min(8 * dtype.itemsize, 32)}"), dtype)
