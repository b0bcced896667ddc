"""The networks in plain loops, one state at a time and without tables. `in_double` gives what they take."""

from __future__ import annotations

import jax
import numpy as np

Vector = np.ndarray


def policy(network, utterance: list[Vector], observation, target=None, earlier=(), seen=None) -> Vector:
    """log π of all tokens; the utterance is a list of word vectors without padding.

    A policy with context also takes all earlier utterances, in order, and what else it sees.
    """
    summary, memory = read(network.utterances, utterance)
    inputs = [summary, stack(network.stack, observation, network.config)]
    if target is not None:
        inputs.append(attributes(network.target, np.asarray(target)))
    second = dense(network.second, relu(dense(network.first, np.concatenate(inputs))))
    if seen is not None:
        second = second + context_units(network, [utterance, *earlier[::-1]], inputs[1], seen) @ network.context.output
    query = relu(second)
    biases = network.biases
    of_query, of_words, of_attention = (biases.query, biases.words, biases.attention) if biases else (0, 0, 0)
    context = attend(memory, network.attention @ query + of_attention)
    wanted = network.from_query @ query + of_query + network.from_words @ context + of_words
    logits = [embedding @ wanted for embedding in network.tokens]
    return np.array(logits) - np.logaddexp.reduce(logits)


def context_units(network, newest_first: list[list[Vector]], slots: Vector, seen) -> Vector:
    """The units that read the context."""
    reader = network.context
    summaries = [read(network.utterances, utterance)[0] for utterance in newest_first[:5]]
    summaries += [np.zeros_like(summaries[0])] * (5 - len(summaries))
    units = dense(reader.utterances, np.concatenate(summaries)) + slots @ reader.stack
    for table, things in ((reader.commands, seen.commands), (reader.world, seen.world)):
        for place, thing in enumerate(np.asarray(things)):
            for attribute, identifier in enumerate(thing):
                first = place * sum(table.counts) + sum(table.counts[:attribute])
                units = units + (table.rows[first + identifier - 1] if identifier > 0 else 0)
    return relu(units)


def critic_logit(network, policy_network, utterance, next_utterance, observation, current, target) -> float:
    """V before the sigmoid; `next_utterance` is None after the last one."""
    summary, _ = read(policy_network.utterances, utterance)
    following, _ = read(network.next_utterance, next_utterance or [])
    inputs = [
        summary,
        stack(policy_network.stack, observation, network.config),
        following,
        attributes(network.world, np.asarray(current)),
        attributes(network.world, np.asarray(target)),
    ]
    hidden = relu(dense(network.second, relu(dense(network.first, np.concatenate(inputs)))))
    return float(dense(network.third, hidden)[0])


def read(encoder, utterance: list[Vector]) -> tuple[Vector, list[Vector]]:
    """The last states of both directions and, for each word, the states there."""
    forward = lstm(encoder, 0, utterance)
    backward = lstm(encoder, 1, utterance[::-1])[::-1]
    size = encoder.recurrent.shape[1]
    if not utterance:
        return np.zeros(2 * size), []
    memory = [np.concatenate(states) for states in zip(forward, backward, strict=True)]
    return np.concatenate([forward[-1], backward[0]]), memory


def lstm(encoder, direction: int, utterance: list[Vector]) -> list[Vector]:
    """The state after each word."""
    size = encoder.recurrent.shape[1]
    state, cell, states = np.zeros(size), np.zeros(size), []
    for word in utterance:
        gates = word @ encoder.input[direction]
        gates = gates + state @ encoder.recurrent[direction] + encoder.bias[direction]
        enter, keep, new, leave = (gates[k * size : (k + 1) * size] for k in range(4))
        cell = sigmoid(keep) * cell + sigmoid(enter) * np.tanh(new)
        state = sigmoid(leave) * np.tanh(cell)
        states.append(state)
    return states


def attend(memory: list[Vector], wanted: Vector) -> Vector:
    """The mean of the states at the words, weighted by the exponential of their product with what is wanted."""
    if not memory:
        return np.zeros_like(wanted)
    scores = [state @ wanted for state in memory]
    weights = [np.exp(score - max(scores)) for score in scores]
    return sum(weight * state for weight, state in zip(weights, memory, strict=True)) / sum(weights)


def stack(encoder, observation, config) -> Vector:
    """The slots, top first, one behind the other; empty ones are zero."""
    slots = []
    for value, objects in zip(np.asarray(observation.values), np.asarray(observation.objects), strict=True):
        slot = encoder.constants[value - 1] if value > 0 else np.zeros(config.slot)
        if any(identifier > 0 for thing in objects for identifier in thing):
            slot = slot + dense(encoder.objects, attributes(encoder.attributes, objects))
        slots.append(slot)
    return np.concatenate(slots)


def attributes(embedding, things) -> Vector:
    """The attribute embeddings of things one behind the other."""
    nothing = np.zeros(embedding.vectors.shape[1])
    parts = []
    for thing in things:
        for attribute, identifier in enumerate(thing):
            first = sum(embedding.counts[:attribute])
            parts.append(embedding.vectors[first + identifier - 1] if identifier > 0 else nothing)
    return np.concatenate(parts)


def dense(layer, x: Vector) -> Vector:
    return x @ layer.weight + layer.bias


def relu(x: Vector) -> Vector:
    return np.maximum(x, 0)


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def in_double(network):
    """A network's parameters as NumPy arrays in double precision, for the functions here."""
    return jax.tree.map(lambda leaf: np.asarray(leaf, np.float64), network)
