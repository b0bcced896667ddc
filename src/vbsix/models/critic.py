"""The critic V: the expected reward of a state, from all the policy sees, the next utterance and both worlds."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray

from vbsix.domains.base import Domain, Observation, State
from vbsix.models.config import NetworkConfig
from vbsix.models.encoder import StackEncoder, StackTable, UtteranceEncoder, Utterances, encode_all
from vbsix.models.layers import AttributeEmbedding, AttributeTable, Dense, pick
from vbsix.models.policy import Policy


class CriticTables(NamedTuple):
    """All that the states of an example share. `stack` and `world` are the same for every example."""

    stack: StackTable
    """What the stack brings to the first layer."""
    world: AttributeTable
    """What the current world brings to it."""
    first: Float[Array, "M hidden"]
    """What each utterance with the one after it, and the target, bring to it."""


class OwnEncoders(eqx.Module):
    """Encoders of the current utterance and the stack, for a critic that does not read the policy's."""

    utterances: UtteranceEncoder
    stack: StackEncoder

    def __init__(self, domain: Domain, config: NetworkConfig, *, key: PRNGKeyArray):
        utterances_key, stack_key = jax.random.split(key)
        self.utterances = UtteranceEncoder(config, key=utterances_key)
        self.stack = StackEncoder(domain, config, key=stack_key)


class Critic(eqx.Module):
    """The value network."""

    own: OwnEncoders | None
    next_utterance: UtteranceEncoder
    world: AttributeEmbedding
    """Of the current and the target world alike."""
    first: Dense
    """From utterance, stack, next utterance, current world and target world."""
    second: Dense
    third: Dense
    config: NetworkConfig = eqx.field(static=True)

    def __init__(self, domain: Domain, config: NetworkConfig, *, key: PRNGKeyArray):
        keys = iter(jax.random.split(key, 6))
        self.config = config
        self.own = OwnEncoders(domain, config, key=next(keys)) if config.own_encoders else None
        self.next_utterance = UtteranceEncoder(config, key=next(keys))
        self.world = AttributeEmbedding(domain, config, key=next(keys))
        worlds = 2 * self.world.width(domain.elements)
        self.first = Dense(4 * config.lstm + domain.slots * config.slot + worlds, config.hidden, key=next(keys))
        self.second = Dense(config.hidden, config.hidden, key=next(keys))
        self.third = Dense(config.hidden, 1, key=next(keys))

    @property
    def encoders(self) -> list[UtteranceEncoder]:
        """With which the critic reads utterances itself: as those that come next and, if at all, as current ones."""
        return [self.next_utterance, *([self.own.utterances] if self.own else [])]

    def encode(self, words: Float[Array, "M T word"], mask: Bool[Array, "M T"]) -> list[Utterances]:
        """Reads the utterances of an example, given as word vectors, with these encoders."""
        return encode_all(self.encoders, words, mask)

    def prepare(
        self,
        policy: Policy,
        utterances: Utterances,
        own: Sequence[Utterances],
        instructions: Int[Array, ""],
        target: Int[Array, "elements attributes"],
    ) -> CriticTables:
        """All that the states of an example share.

        Args:
            policy: its stack encoder is read, and not trained by the critic's loss.
            utterances: as the policy has encoded them; likewise.
            own: the same utterances as the critic has encoded them.
            instructions: how many utterances the example has; none follows the last one.
            target: what the domain observes of the target.
        """
        if self.own is None:
            summary, stack = jax.lax.stop_gradient((utterances.summary, policy.stack))
        else:
            summary, stack = own[1].summary, self.own.stack
        following = jnp.roll(own[0].summary, -1, axis=0)
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

    def value(
        self,
        tables: CriticTables,
        instruction: Int[Array, ""],
        observation: Observation,
        world: Int[Array, "elements attributes"],
    ) -> Float[Array, ""]:
        """V, the expected reward, between 0 and 1."""
        return jax.nn.sigmoid(self.logit(tables, instruction, observation, world))

    def for_example(self, domain: Domain, tables: CriticTables) -> Callable[[State], Float[Array, ""]]:
        """The critic as a function of one state, as search takes it."""
        logit = self.logit_for_example(domain, tables)
        return lambda state: jax.nn.sigmoid(logit(state))

    def logit_for_example(self, domain: Domain, tables: CriticTables) -> Callable[[State], Float[Array, ""]]:
        """The same before the sigmoid, as training takes it."""
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
