"""Several policies as one."""

from __future__ import annotations

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from vbsix.domains.base import Domain, State
from vbsix.models.functions import AttentionFunction, PolicyFunction
from vbsix.models.policy import PolicyNetwork


class Ensemble(eqx.Module):
    """Policies whose probabilities are averaged, token by token."""

    members: PolicyNetwork
    """Leaves are stacked along a first axis."""

    @property
    def size(self) -> int:
        return jax.tree.leaves(self.members)[0].shape[0]

    def read(self, projected: Float[Array, "M T projected"], mask: Bool[Array, "M T"]) -> Any:
        """The tables of all members; the members' projections of a word are concatenated."""
        own = jnp.stack(jnp.split(projected, self.size, axis=-1))
        return jax.vmap(lambda member, projected: member.read(projected, mask))(self.members, own)

    def for_example(self, domain: Domain, tables: Any) -> PolicyFunction:
        """The ensemble as a function of one state and its valid tokens."""

        def policy(state: State, valid: Bool[Array, " A"]) -> Float[Array, " A"]:
            def of_member(member: PolicyNetwork, tables: Any) -> Float[Array, " A"]:
                return member.for_example(domain, tables)(state, valid)

            log_policies = jax.vmap(of_member)(self.members, tables)
            return jax.nn.logsumexp(log_policies, axis=0) - jnp.log(log_policies.shape[0])

        return policy

    def attention_for_example(self, domain: Domain, tables: Any) -> AttentionFunction:
        """The mean attention of the members, which must have one."""

        def of_member(member: Any, tables: Any, state: State) -> Float[Array, "M T"]:
            return member.attention_for_example(domain, tables)(state)

        return lambda state: jnp.mean(jax.vmap(of_member, (0, 0, None))(self.members, tables, state), axis=0)
