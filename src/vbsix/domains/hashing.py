"""Keys of states: hashes of the words that they are made of."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Int, UInt32


def hash_words(words: Int[Array, " n"]) -> UInt32[Array, "2"]:
    """Two 32-bit lanes: each word is mixed by itself, then a random odd combination is mixed again."""
    random = np.random.default_rng(2019)
    offsets = random.integers(0, 2**32, words.shape[0], dtype=np.uint32)
    weights = random.integers(0, 2**32, (2, words.shape[0]), dtype=np.uint32) | np.uint32(1)
    mixed = mix(words.astype(jnp.uint32) + offsets)
    return mix(jnp.sum(mixed[None, :] * weights, axis=1, dtype=jnp.uint32))


def mix(x: UInt32[Array, "..."]) -> UInt32[Array, "..."]:
    """A bijection of 32-bit words in which every bit of the input reaches most bits of the output."""
    x = (x ^ (x >> 16)) * np.uint32(0x7FEB352D)
    return x ^ (x >> 15)
