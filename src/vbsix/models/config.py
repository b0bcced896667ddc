"""The sizes of the networks."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class NetworkConfig:
    """Sizes of Guu et al. 2017, which the paper adopts, and how the parameters are drawn."""

    word: int = 100
    """Length of a word's vector, which is given and not trained."""
    lstm: int = 64
    """Units of the LSTM in each direction."""
    slot: int = 32
    """Length of a stack slot's embedding."""
    attribute: int = 32
    """Length of the embedding of an object's attribute."""
    hidden: int = 128
    """Units of the two ReLU layers."""
    token: int = 150
    """Length of a program token's embedding."""
    embedding_spread: float = 0.3
    """Standard deviation of the first embeddings of what stack and worlds hold. Small, so that the first layer listens
    to the utterance, whose encoding is of that size, and not to the stack alone."""
    token_spread: float = 0.02
    """Standard deviation of the first token embeddings. Small, so that the first policy is nearly uniform: a peaked
    one may never find a program to learn from."""
    renormalise: bool = False
    """Whether the policy shares out its probability among the tokens that are valid in a state, instead of all."""
    own_encoders: bool = False
    """Whether the critic has an utterance and a stack encoder of its own instead of reading the policy's."""
