"""What a policy with context reads besides the current utterance and the stack.

Units of their own read utterance, stack and context. Their output weights start at zero, so that a trained policy that
gets them computes what it computed before.
"""

from __future__ import annotations

from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, PRNGKeyArray

from vbsix.domains.base import ContextObservation, Domain
from vbsix.models.config import NetworkConfig
from vbsix.models.encoder import Utterances
from vbsix.models.layers import AttributeTable, Dense, pick

UTTERANCES_SEEN = 4
"""How many earlier utterances are seen."""
ROW_STD = 0.1
"""Standard deviation of the initial weights of ids. Some 40 of them are added up for a state."""


class ContextTables(NamedTuple):
    """All that the states of an example share."""

    first: Float[Array, "M context"]
    """What each utterance with the earlier ones contributes to the units."""
    stack: Float[Array, "stack context"]
    commands: AttributeTable | None
    world: AttributeTable
    output: Float[Array, "context hidden"]

    def __call__(
        self, instruction: Int[Array, ""], slots: Float[Array, " stack"], seen: ContextObservation
    ) -> Float[Array, " hidden"]:
        """What one state's context contributes to the second layer; `slots` is the embedded stack."""
        current = jnp.arange(self.first.shape[0]) == instruction
        units = pick(current, self.first) + slots @ self.stack + self.world(seen.world)
        if self.commands is not None:
            units += self.commands(seen.commands)
        return jax.nn.relu(units) @ self.output


class ContextReader(eqx.Module):
    """Units that read utterance, stack, last commands, world and earlier utterances."""

    utterances: Dense
    """From the current utterance and the earlier ones, the newest first."""
    stack: Float[Array, "stack context"]
    commands: AttributeTable | None
    world: AttributeTable
    output: Float[Array, "context hidden"]
    """Starts at zero."""

    def __init__(self, domain: Domain, config: NetworkConfig, *, key: PRNGKeyArray):
        keys = jax.random.split(key, 4)
        units = config.context

        def table(key: PRNGKeyArray, places: int, counts: tuple[int, ...]) -> AttributeTable:
            return AttributeTable(ROW_STD * jax.random.normal(key, (places * sum(counts), units)), counts)

        fields = tuple(domain.command_fields.values())
        self.utterances = Dense(2 * config.lstm * (1 + UTTERANCES_SEEN), units, key=keys[0])
        self.stack = Dense(domain.slots * config.slot, units, key=keys[1]).weight
        self.commands = table(keys[2], domain.commands, fields) if domain.commands else None
        self.world = table(keys[3], domain.elements, tuple(domain.attributes.values()))
        self.output = jnp.zeros((units, config.hidden))

    def prepare(self, utterances: Utterances) -> ContextTables:
        """All that the states of an example share."""
        summary = utterances.summary
        ages = [jnp.pad(summary, ((age, 0), (0, 0)))[: len(summary)] for age in range(1 + UTTERANCES_SEEN)]
        first = jax.vmap(self.utterances)(jnp.concatenate(ages, axis=1))
        return ContextTables(first, self.stack, self.commands, self.world, self.output)
