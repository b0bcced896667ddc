"""The networks: written for one example and one of its states, batched by `jax.vmap` outside."""

from vbsix.models.config import NetworkConfig
from vbsix.models.critic import Critic
from vbsix.models.policy import Committee, Policy

__all__ = ["Committee", "Critic", "NetworkConfig", "Policy"]
