"""A policy network of one's own: a linear model over the utterance and the stack, without attention."""

from __future__ import annotations

import equinox as eqx
import jax
import jax.numpy as jnp

import vbsix
from vbsix.models import Encoder, NetworkConfig
from vbsix.models.encoder import StackEncoder, create_encoder
from vbsix.models.layers import Dense, renormalise


class LinearPolicy(eqx.Module):
    utterances: Encoder
    stack: StackEncoder
    output: Dense
    config: NetworkConfig = eqx.field(static=True)

    def __init__(self, domain, config, *, key):
        encoder_key, stack_key, output_key = jax.random.split(key, 3)
        self.config = config
        self.utterances = create_encoder(config, encoder_key)
        self.stack = StackEncoder(domain, config, key=stack_key)
        self.output = Dense(2 * config.lstm + self.stack.width, len(domain.tokens), key=output_key)

    def prepare(self, utterances):
        """What all states of an example share: logits of each utterance, and a table for the stack."""
        from_utterance, from_stack = jnp.split(self.output.weight, [utterances.summary.shape[1]])
        return utterances.summary @ from_utterance + self.output.bias[None], self.stack.table(from_stack)

    def read(self, projected, mask):
        return self.prepare(self.utterances.encode_projected(projected, mask))

    def for_example(self, domain, tables):
        by_utterance, stack = tables

        def policy(state, valid):
            instruction = jnp.minimum(domain.instructions_done(state), len(by_utterance) - 1)
            log_policy = jax.nn.log_softmax(by_utterance[instruction] + stack(domain.observe(state)))
            return renormalise(log_policy, valid) if self.config.renormalise else log_policy

        return policy


vbsix.register_policy("linear", LinearPolicy)


def main(**settings):
    return vbsix.train("tangrams", method="execution-only", network__policy="linear", **settings)


if __name__ == "__main__":
    print(main().accuracy)
