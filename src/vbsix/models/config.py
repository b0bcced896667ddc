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
    slot: int = setting(
        32, "Length of the embedding of a stack slot. In plain Python, a slot is one value of `describe`.", least=1
    )
    attribute: int = setting(32, "Length of the embedding of an object's attribute.", least=1)
    hidden: int = setting(128, "Units of the two ReLU layers.", least=1)
    token: int = setting(150, "Length of a program token's embedding.", least=1)
    context: int = setting(
        0,
        "Units of the policy that also read the context: the last commands, the world and the earlier utterances. 0 "
        "for a policy without context. Their output weights start at zero. Train with 0 first, then continue with "
        "context (`--from`): a policy that sees the world from the start may learn spurious programs (not "
        "measured).",
        least=0,
    )
    stack_attributes: bool = setting(
        True,
        "Whether the policy sees the attributes of objects on the stack. Without them it sees how many objects there "
        "are, and has to refer to them by the tokens of the language. The context shows them in any case.",
    )
    initialisation: Literal["small", "reference"] = setting(
        "small",
        "How parameters are initialised. `small`: embeddings from N(0, std) with the two settings below. `reference`: "
        "as in Guu et al.'s code: all embeddings from N(-0.015, 0.566), the same for all seeds, and the input weights "
        "of each LSTM gate sampled separately.",
    )
    embedding_init_std: float = setting(
        0.3,
        "Standard deviation of the initial embeddings of stack and world. About as large as the values of the "
        "utterance encoding, so that the stack does not dominate the first layer.",
        least=0,
        input_of="start",
    )
    token_init_std: float = setting(
        0.02,
        "Standard deviation of the initial token embeddings. Small, so that the first policy is nearly uniform: a "
        "peaked one may never find a program to learn from.",
        least=0,
        input_of="start",
    )
    output_biases: bool = setting(
        False, "Whether the last three linear layers of the policy have biases, as in Guu et al.'s code."
    )
    renormalise: bool = setting(
        True, "Normalise the policy over the tokens that are valid in a state, instead of over all tokens."
    )
