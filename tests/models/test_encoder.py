"""The encoders of utterances and stacks."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from models.cases import LENGTHS, Case, draw, take
from reference import networks as reference

from vbsix.models import NetworkConfig
from vbsix.models.encoder import StackEncoder, UtteranceEncoder, encode_all
from vbsix.models.layers import orthogonal

CONFIG = NetworkConfig()


def encoder() -> UtteranceEncoder:
    return draw(lambda: UtteranceEncoder(CONFIG, key=jax.random.key(0)))


def test_utterances_are_read_as_in_the_reference(case: Case):
    encoded = encoder().encode(case.words, case.mask)
    for index, length in enumerate(LENGTHS):
        summary, memory = reference.read(reference.in_double(encoder()), case.utterance(index))
        np.testing.assert_allclose(encoded.summary[index], summary, atol=1e-5)
        np.testing.assert_allclose(
            encoded.memory[index, :length], np.reshape(memory, (length, 2 * CONFIG.lstm)), atol=1e-5
        )


def test_padding_and_empty_utterances_are_zeros(case: Case):
    encoded = encoder().encode(case.words, case.mask)
    assert not np.any(np.asarray(encoded.memory)[~np.asarray(case.mask)])
    assert not np.any(encoded.summary[LENGTHS.index(0)])


def test_what_stands_in_padding_does_not_matter(case: Case):
    junk = jnp.where(case.mask[:, :, None], case.words, 1e3)
    for one, other in zip(encoder().encode(case.words, case.mask), encoder().encode(junk, case.mask), strict=True):
        np.testing.assert_array_equal(one, other)


def test_projected_words_stand_in_for_their_vectors(case: Case):
    projected = encoder().project(case.words)
    assert projected.shape == (*case.mask.shape, 2 * 4 * CONFIG.lstm)
    # A vocabulary is projected word by word, without the sentence around it.
    np.testing.assert_allclose(projected[2, 3], encoder().project(case.words[2, 3]), atol=1e-5)
    summary = encoder().encode(case.words, case.mask).summary
    np.testing.assert_allclose(encoder().encode_projected(projected, case.mask).summary, summary, atol=1e-5)


def embed(stack_encoder: StackEncoder, case: Case):
    """The slots of all states of a case."""
    table = stack_encoder.table(jnp.zeros((stack_encoder.width, 1)))
    return jax.jit(jax.vmap(table.slots))(case.observations)


def test_stacks_are_embedded_as_in_the_reference(case: Case):
    stack_encoder = draw(lambda: StackEncoder(case.domain, CONFIG, key=jax.random.key(0)))
    in_double, embedded = reference.in_double(stack_encoder), embed(stack_encoder, case)
    expected = [reference.stack(in_double, take(case.observations, n), CONFIG) for n in range(len(embedded))]
    np.testing.assert_allclose(embedded.reshape(len(embedded), -1), expected, atol=1e-5)


def test_an_empty_slot_is_exactly_zero(case: Case):
    slots = embed(draw(lambda: StackEncoder(case.domain, CONFIG, key=jax.random.key(0))), case)
    empty = np.asarray((case.observations.values == 0) & ~jnp.any(case.observations.objects > 0, axis=(2, 3)))
    assert empty.any() and not empty.all()
    np.testing.assert_array_equal(np.any(np.asarray(slots), axis=2), ~empty)


def test_the_states_show_every_kind_of_slot(case: Case):
    seen = jnp.sum(jnp.any(case.observations.objects > 0, axis=3), axis=2)
    assert {0, 1} < set(np.unique(seen).tolist()), "one object, and lists"
    assert len(np.unique(case.observations.values)) > 3, "constants"
    gone = case.observations.objects[:, :, 0, 0] == 1
    assert case.domain.name == "alchemy" or np.any(gone), "an object that has left the world"


def test_encoders_read_together_as_they_do_alone(tangrams: Case):
    encoders = [
        draw(lambda key=key: UtteranceEncoder(CONFIG, key=key)) for key in jax.random.split(jax.random.key(1), 3)
    ]
    together = jax.jit(lambda encoders: encode_all(encoders, tangrams.words, tangrams.mask))(encoders)
    for encoder, found in zip(encoders, together, strict=True):
        expected = encoder.encode(tangrams.words, tangrams.mask)
        jax.tree.map(lambda one, other: np.testing.assert_allclose(one, other, atol=1e-6), found, expected)


@pytest.mark.parametrize("size", [1, 5, 64])
def test_recurrent_weights_are_drawn_as_jax_does(size):
    drawn = jax.jit(orthogonal, static_argnums=1)(jax.random.key(3), size)
    expected = jax.nn.initializers.orthogonal()(jax.random.key(3), (size, size))
    np.testing.assert_allclose(drawn, expected, atol=1e-5)
    np.testing.assert_allclose(drawn.T @ drawn, np.eye(size), atol=1e-5)


@pytest.mark.parametrize("initialisation", ["small", "reference"])
def test_input_weights_keep_to_glorots_limit(initialisation):
    """With the reference initialisation each gate is a matrix of its own, so that its limit is larger."""
    config = NetworkConfig(word=100, lstm=64, initialisation=initialisation)
    weights = np.asarray(UtteranceEncoder(config, key=jax.random.key(0)).input)
    limit = np.sqrt(6 / (100 + (64 if initialisation == "reference" else 4 * 64)))
    for direction in range(2):
        for gate in np.split(weights[direction], 4, axis=1):
            assert 0.99 * limit < np.abs(gate).max() <= limit
            assert np.std(gate) == pytest.approx(limit / np.sqrt(3), rel=0.05), "uniform"
    blocks = [block for direction in weights for block in np.split(direction, 4, axis=1)]
    assert len({block.tobytes() for block in blocks}) == 8


def test_networks_are_drawn_without_lapack():
    """Its calls wait for threads of the pool that they are made from: two of them on two cores, for ever."""
    draw_networks = jax.jit(jax.vmap(lambda key: UtteranceEncoder(CONFIG, key=key)))
    text = draw_networks.lower(jax.random.split(jax.random.key(0), 2)).as_text()
    assert "lapack" not in text and "stablehlo.dot_general" in text
