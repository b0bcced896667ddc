"""Random policies and critics: hand-written functions of a state's key, the same wherever the state turns up."""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from vbsix import Domain
from vbsix.domains.hashing import mix


class Model(NamedTuple):
    """Parameters of a random policy and of the critic that goes with it."""

    seed: Any
    sharpness: Any
    """Range of the random part of the logits: 0.3 is nearly uniform, 8 is peaked."""
    bias: Any
    """Added to the logits of the tokens."""
    guidance: Any
    """Added to the logit of the token of `path` in each of its states, so that some programs are completed."""
    path_keys: Any
    """[n, 2], the states on the way to the target."""
    path_tokens: Any
    """[n], then -1."""
    trust: Any
    """The largest value of the critic: by a small one the actor still has its say."""


def policy(domain: Domain, model: Model):
    """log π(a | s): logits from a hash of the state, the token and the seed."""
    tokens = np.arange(len(domain.tokens), dtype=np.int32)

    def log_policy(state, valid=None):
        key = domain.key(state)
        here = jnp.all(model.path_keys == key[None], axis=1)
        guided = jnp.any(here[:, None] & (model.path_tokens[:, None] == tokens[None]), axis=0)
        noise = _uniform(key, tokens.astype(np.uint32), model.seed)
        return jax.nn.log_softmax(model.bias + model.sharpness * noise + model.guidance * guided)

    return log_policy


def critic(domain: Domain, model: Model):
    """V(s, y), between 0 and the critic's trust."""
    only = np.zeros(1, np.uint32)
    return lambda state: model.trust * _uniform(domain.key(state), only, model.seed + np.uint32(1))[0]


def _uniform(key: jax.Array, which: np.ndarray, seed: jax.Array) -> jax.Array:
    noise = mix(key[1] ^ mix(key[0] ^ mix(which * np.uint32(2654435761) + seed)))
    return (noise >> 8).astype(jnp.float32) / 2.0**24
