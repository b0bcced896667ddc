"""The networks: written for one example and one of its states, batched by `jax.vmap` outside."""

from vbsix.models.config import NetworkConfig
from vbsix.models.critic import Critic
from vbsix.models.policy import Policy

__all__ = ["Critic", "NetworkConfig", "Policy"]
