"""What policy and critic read: utterances, by a bidirectional LSTM, and the program stack.

An utterance encoder of one's own is a subclass of `Encoder`, registered with `vbsix.register_encoder`.
"""

from __future__ import annotations

import abc
import operator
from collections.abc import Sequence
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, PRNGKeyArray

from vbsix.domains.base import Domain, Observation
from vbsix.models.config import ENCODERS, NetworkConfig
from vbsix.models.layers import CONSTANTS, AttributeEmbedding, Dense, draw_embeddings, hot, one_hot, orthogonal


class Utterances(NamedTuple):
    """The encoded utterances of one example."""

    summary: Float[Array, "M units"]
    """The last state of either direction; zeros for an utterance without words."""
    memory: Float[Array, "M T units"]
    """The states at each word, zeros at padding."""
    mask: Bool[Array, "M T"]
    """Where there is a word."""


class Encoder(eqx.Module):
    """Reads utterances. Summary and states have a length of 2 * `network.lstm`.

    A trained parser keeps for each word what `project` makes of its vector. An encoder whose first layer is linear can
    fold that layer into the words: then models are smaller, and hold no word vectors.
    """

    def encode(self, words: Float[Array, "M T word"], mask: Bool[Array, "M T"]) -> Utterances:
        """Reads utterances given as word vectors."""
        return self.encode_projected(self.project(words), mask)

    @abc.abstractmethod
    def encode_projected(self, projected: Float[Array, "M T projected"], mask: Bool[Array, "M T"]) -> Utterances:
        """Reads utterances given as projected words."""

    def project(self, words: Float[Array, "*batch word"]) -> Float[Array, "*batch projected"]:
        """What replaces the vectors of words in a trained parser."""
        return words

    def without_projection(self) -> Encoder:
        """The encoder without the parameters that only `project` needs."""
        return self

    def with_projection(self, words: Float[Array, "n word"], projected: Float[Array, "n projected"]) -> Encoder:
        """The encoder with these parameters again, found from words and what `project` made of them."""
        return self


class UtteranceEncoder(Encoder):
    """A bidirectional LSTM. Gates are input, forget, cell and output; directions are forward and backward."""

    input: Float[Array, "2 word gates"]
    recurrent: Float[Array, "2 lstm gates"]
    bias: Float[Array, "2 gates"]

    def __init__(self, config: NetworkConfig, *, key: PRNGKeyArray):
        size = config.lstm
        input_key, recurrent_key = jax.random.split(key)
        draw_each = jax.nn.initializers.glorot_uniform(in_axis=1, out_axis=2, batch_axis=0)
        if config.initialisation == "reference":  # each gate by itself
            by_gate = draw_each(input_key, (8, config.word, size)).reshape(2, 4, config.word, size)
            self.input = by_gate.transpose(0, 2, 1, 3).reshape(2, config.word, 4 * size)
        else:
            self.input = draw_each(input_key, (2, config.word, 4 * size))
        by_gate = jax.vmap(lambda gate_key: orthogonal(gate_key, size))(jax.random.split(recurrent_key, 8))
        self.recurrent = by_gate.reshape(2, 4, size, size).transpose(0, 2, 1, 3).reshape(2, size, 4 * size)
        # A forget gate that begins open lets the first words of an utterance reach its summary, and be learnt from.
        self.bias = jnp.zeros((2, 4, size)).at[:, 1].set(1.0).reshape(2, 4 * size)

    def project(self, words: Float[Array, "*batch word"]) -> Float[Array, "*batch projected"]:
        """What words contribute to the gates of both directions."""
        weight = self.input.transpose(1, 0, 2).reshape(self.input.shape[1], -1)
        products = words @ weight
        return products + jnp.broadcast_to(self.bias.reshape(-1), products.shape)

    def without_projection(self) -> UtteranceEncoder:
        return eqx.tree_at(lambda encoder: (encoder.input, encoder.bias), self, (None, None))

    def with_projection(
        self, words: Float[Array, "n word"], projected: Float[Array, "n projected"]
    ) -> UtteranceEncoder:
        inputs = np.concatenate([words, np.ones((len(words), 1))], axis=1)
        solution = np.linalg.lstsq(inputs, np.asarray(projected, np.float64), rcond=None)[0].astype(np.float32)
        weight = jnp.asarray(solution[:-1]).reshape(words.shape[1], 2, -1).transpose(1, 0, 2)
        fields = weight, jnp.asarray(solution[-1]).reshape(2, -1)
        return eqx.tree_at(
            lambda encoder: (encoder.input, encoder.bias), self, fields, is_leaf=lambda leaf: leaf is None
        )

    def encode_projected(self, projected: Float[Array, "M T projected"], mask: Bool[Array, "M T"]) -> Utterances:
        summary, memory = jax.vmap(self._read)(projected, mask)
        return Utterances(summary, memory, mask)

    def _read(
        self, projected: Float[Array, "T projected"], mask: Bool[Array, " T"]
    ) -> tuple[Float[Array, " units"], Float[Array, "T units"]]:
        """The last states and all states of one utterance."""

        @jax.checkpoint  # its parts are cheaper to compute again for the gradient than to keep one by one
        def read_word(states, word):
            state, cell = states
            gates, is_word = word
            gates += jnp.einsum("dl,dlg->dg", state, self.recurrent)
            enter, keep, new, leave = jnp.split(gates, 4, axis=1)
            new_cell = jax.nn.sigmoid(keep) * cell + jax.nn.sigmoid(enter) * jnp.tanh(new)
            new_state = jax.nn.sigmoid(leave) * jnp.tanh(new_cell)
            # Padding, behind the last word or before the first one read backward, leaves the states as they are.
            state, cell = jax.tree.map(
                lambda after, before: jnp.where(is_word[:, None], after, before), (new_state, new_cell), (state, cell)
            )
            return (state, cell), state

        gates = projected.reshape(mask.shape[0], 2, -1)
        start = jnp.zeros(self.recurrent.shape[:2], projected.dtype)
        words = _turn(gates), _turn(jnp.stack([mask, mask], 1))
        (last, _), states = jax.lax.scan(read_word, (start, start), words, unroll=WORDS_AT_ONCE)
        memory = _turn(states).reshape(mask.shape[0], -1)
        return last.reshape(-1), jnp.where(mask[:, None], memory, 0.0)


WORDS_AT_ONCE = 5
"""Read in one round of the loop over words: its own cost is as large as that of reading a word."""


def create_encoder(config: NetworkConfig, key: PRNGKeyArray) -> Encoder:
    """The utterance encoder that the settings name."""
    return ENCODERS.get(config.encoder)(config, key=key)


def encode_all(
    encoders: Sequence[Encoder], words: Float[Array, "M T word"], mask: Bool[Array, "M T"]
) -> list[Utterances]:
    """What each encoder makes of the same utterances, all in one go."""
    together = jax.tree.map(lambda *leaves: jnp.stack(leaves), *encoders)
    encoded = jax.vmap(lambda encoder: encoder.encode(words, mask))(together)
    return [jax.tree.map(operator.itemgetter(place), encoded) for place in range(len(encoders))]


def _turn(both: Array) -> Array:
    """Turns the backward direction, the second of axis 1, round in time."""
    return jnp.stack([both[:, 0], both[::-1, 1]], axis=1)


class StackTable(eqx.Module):
    """A linear map of the embedded stack, ready to be applied to many states."""

    slot: Float[Array, "rows slot"]
    """A row for each constant, for each (place, attribute, id) of the objects, and for there being objects."""
    counts: tuple[int, ...] = eqx.field(static=True)
    weight: Float[Array, "stack outputs"]

    def __call__(self, observation: Observation) -> Float[Array, " outputs"]:
        return self.slots(observation).reshape(-1) @ self.weight

    def slots(self, observation: Observation) -> Float[Array, "slots slot"]:
        """The embedding of each slot; an empty one is zero."""
        ids = observation.objects
        objects = jax.vmap(lambda ids: hot(ids, self.counts))(ids)
        constants = one_hot(observation.values, len(self.slot) - objects.shape[1] - 1)
        occupied = jnp.any(ids > 0, axis=(1, 2))
        rows = jnp.concatenate([constants, objects, occupied[:, None]], axis=1)
        return rows.astype(self.slot.dtype) @ self.slot


class StackEncoder(eqx.Module):
    """Embeds each slot: a constant by a vector, objects by a linear layer over their attribute embeddings."""

    constants: Float[Array, "values slot"]
    attributes: AttributeEmbedding
    objects: Dense
    width: int = eqx.field(static=True)
    """Length of the concatenated slots."""

    def __init__(self, domain: Domain, config: NetworkConfig, *, key: PRNGKeyArray):
        constants_key, attributes_key, objects_key = jax.random.split(key, 3)
        self.constants = draw_embeddings(
            constants_key, CONSTANTS, domain.values, config.slot, config.embedding_init_std, config
        )
        self.attributes = AttributeEmbedding(domain, config, key=attributes_key)
        self.objects = Dense(self.attributes.width(domain.objects), config.slot, key=objects_key)
        self.width = domain.slots * config.slot

    def table(self, weight: Float[Array, "stack outputs"]) -> StackTable:
        """The linear map `weight` of the concatenated slots."""
        objects = self.attributes.table(self.objects.weight)
        rows = jnp.concatenate([self.constants, objects.rows, self.objects.bias[None]])
        return StackTable(rows, objects.counts, weight)
