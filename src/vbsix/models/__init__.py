"""The networks: written for one example and one of its states, batched by `jax.vmap` outside."""

from vbsix.models.config import NetworkConfig
from vbsix.models.critic import Critic
from vbsix.models.encoder import Encoder, Utterances
from vbsix.models.ensemble import Ensemble
from vbsix.models.functions import PolicyFunction, ValueFunction
from vbsix.models.policy import Policy, PolicyNetwork

__all__ = [
    "Critic",
    "Encoder",
    "Ensemble",
    "NetworkConfig",
    "Policy",
    "PolicyFunction",
    "PolicyNetwork",
    "Utterances",
    "ValueFunction",
]
