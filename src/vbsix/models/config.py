"""The networks: sizes, initialisation, and which encoder and policy to use."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from vbsix.utilities.registry import Registry
from vbsix.utilities.settings import setting

ENCODERS = Registry("encoder", {"lstm": "vbsix.models.encoder:UtteranceEncoder"})
"""Utterance encoders by name."""
POLICIES = Registry("policy", {"stack": "vbsix.models.policy:Policy"})
"""Policy networks by name."""


@dataclass(frozen=True)
class NetworkConfig:
    """The networks. Sizes are those of Guu et al. (2017), which the paper adopts."""

    encoder: str = setting("lstm", "The utterance encoder.", choices=ENCODERS)
    policy: str = setting("stack", "The policy network.", choices=POLICIES)
    word: int = setting(100, "Length of a word vector. Word vectors are fixed.", least=1)
    lstm: int = setting(64, "Units of the LSTM in each direction.", least=1)
    slot: int = setting(32, "Length of a stack slot's embedding.", least=1)
    attribute: int = setting(32, "Length of the embedding of an object's attribute.", least=1)
    hidden: int = setting(128, "Units of the two ReLU layers.", least=1)
    token: int = setting(150, "Length of a program token's embedding.", least=1)
    initialisation: Literal["small", "reference"] = setting(
        "small",
        "How parameters are initialised. `small`: embeddings from N(0, std) with the two settings below. `reference`: "
        "as in Guu et al.'s code: all embeddings from N(-0.015, 0.566), the same for all seeds, and each LSTM gate by "
        "itself.",
    )
    embedding_init_std: float = setting(
        0.3,
        "Standard deviation of the initial embeddings of stack and world. Small, so that the first layer attends to "
        "the utterance, whose encoding has that size, and not to the stack alone.",
        least=0,
    )
    token_init_std: float = setting(
        0.02,
        "Standard deviation of the initial token embeddings. Small, so that the first policy is nearly uniform: a "
        "peaked one may never find a program to learn from.",
        least=0,
    )
    output_biases: bool = setting(
        False, "Whether the policy's last three linear maps (W₁, W₂, W₃) have biases, as in the reference code."
    )
    renormalise: bool = setting(
        True, "Normalise the policy over the tokens that are valid in a state, instead of over all tokens."
    )
