"""The critic V: the expected reward of a state, from all the policy sees, the next utterance and both worlds."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, PRNGKeyArray

from vbsix.domains.base import Domain, Observation, State
from vbsix.models.config import NetworkConfig
from vbsix.models.encoder import Encoder, StackEncoder, StackTable, Utterances, create_encoder
from vbsix.models.layers import AttributeEmbedding, AttributeTable, Dense, pick


class CriticTables(NamedTuple):
    """All that the states of an example share. `stack` and `world` are the same for every example."""

    stack: StackTable
    """What the stack contributes to the first layer."""
    world: AttributeTable
    """What the current world contributes to it."""
    first: Float[Array, "M hidden"]
    """What each utterance with the next one, and the target, contribute to it."""


class TrainedCritic(NamedTuple):
    """A critic as a parser keeps it: without the parameters that project words, but with its projections of them."""

    network: Critic
    projections: Float[np.ndarray, "V projected"]


class Critic(eqx.Module):
    """The value network."""

    next_utterance: Encoder
    world: AttributeEmbedding
    """Of both the current and the target world."""
    first: Dense
    """From utterance, stack, next utterance, current world and target world."""
    second: Dense
    third: Dense
    config: NetworkConfig = eqx.field(static=True)

    def __init__(self, domain: Domain, config: NetworkConfig, *, key: PRNGKeyArray):
        keys = iter(jax.random.split(key, 6))
        self.config = config
        self.next_utterance = create_encoder(config, next(keys))
        self.world = AttributeEmbedding(domain, config, key=next(keys))
        worlds = 2 * self.world.width(domain.elements)
        self.first = Dense(4 * config.lstm + domain.slots * config.slot + worlds, config.hidden, key=next(keys))
        self.second = Dense(config.hidden, config.hidden, key=next(keys))
        self.third = Dense(config.hidden, 1, key=next(keys))

    def prepare(
        self,
        stack: StackEncoder,
        utterances: Utterances,
        as_next: Utterances,
        instructions: Int[Array, ""],
        target: Int[Array, "elements attributes"],
    ) -> CriticTables:
        """All that the states of an example share.

        Args:
            stack: the policy's stack encoder, which the critic's loss does not train.
            utterances: as the policy encodes them; the critic's loss does not train that either.
            as_next: the same utterances, as the critic encodes the next utterance.
            instructions: how many utterances the example has; none follows the last one.
            target: the domain's observation of the target.
        """
        summary, stack = jax.lax.stop_gradient((utterances.summary, stack))
        following = jnp.roll(as_next.summary, -1, axis=0)
        has_following = jnp.arange(1, len(following) + 1) < instructions
        following = jnp.where(has_following[:, None], following, 0.0)
        from_utterance, from_stack, from_next, from_world, from_target = self._first_parts(stack.width)
        of_example = self.world.table(from_target)(target) + self.first.bias
        return CriticTables(
            stack=stack.table(from_stack),
            world=self.world.table(from_world),
            first=summary @ from_utterance + following @ from_next + of_example[None, :],
        )

    def logit(
        self,
        tables: CriticTables,
        instruction: Int[Array, ""],
        observation: Observation,
        world: Int[Array, "elements attributes"],
    ) -> Float[Array, ""]:
        """The value of one state of the example before the sigmoid; `world` is what the domain observes of it."""
        current = jnp.arange(tables.first.shape[0]) == instruction
        hidden = jax.nn.relu(pick(current, tables.first) + tables.stack(observation) + tables.world(world))
        return self.third(jax.nn.relu(self.second(hidden)))[0]

    def for_example(self, domain: Domain, tables: CriticTables) -> Callable[[State], Float[Array, ""]]:
        """The critic as a function of one state, before the sigmoid."""
        last = tables.first.shape[0] - 1

        def logit(state: State) -> Float[Array, ""]:
            instruction = jnp.minimum(domain.instructions_done(state), last)
            return self.logit(tables, instruction, domain.observe(state), domain.observe_world(state))

        return logit

    def _first_parts(self, stack: int) -> list[Float[Array, "inputs hidden"]]:
        """The first layer's weights of utterance, stack, next utterance, current world and target world."""
        units = 2 * self.config.lstm
        before_worlds = 2 * units + stack
        before_target = (before_worlds + self.first.weight.shape[0]) // 2
        return jnp.split(self.first.weight, [units, units + stack, before_worlds, before_target])
