"""An utterance encoder of one's own: a bag of words instead of an LSTM."""

from __future__ import annotations

import jax
import jax.numpy as jnp

import vbsix
from vbsix.models import Encoder, Utterances
from vbsix.models.layers import Dense


class BagOfWords(Encoder):
    layer: Dense

    def __init__(self, config, *, key):
        self.layer = Dense(config.word, 2 * config.lstm, key=key)

    def encode_projected(self, projected, mask):
        """Words come as vectors: this encoder leaves `project` as it is."""
        states = jnp.tanh(jax.vmap(jax.vmap(self.layer))(projected))
        states = jnp.where(mask[..., None], states, 0.0)
        summary = jnp.sum(states, axis=1) / jnp.maximum(jnp.sum(mask, axis=1, keepdims=True), 1)
        return Utterances(summary, states, mask)


vbsix.register_encoder("bag-of-words", BagOfWords)


def main(**settings):
    return vbsix.train("tangrams", method="execution-only", network__encoder="bag-of-words", **settings)


if __name__ == "__main__":
    print(main().accuracy)
