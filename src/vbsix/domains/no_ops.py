"""A domain without the commands that change nothing, for any domain."""

from __future__ import annotations

import functools
from contextlib import AbstractContextManager
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Int, UInt32

from vbsix.domains.base import ContextObservation, Domain, Observation, Target
from vbsix.domains.base import State as InnerState
from vbsix.domains.hashing import hash_words

_DECLARED = """
    name tokens max_tokens_per_instruction slots objects elements values attributes commands command_fields symmetries
    compiled
""".split()


class State(NamedTuple):
    """A state, and what the command at hand is compared with when it is complete."""

    state: InnerState
    before: UInt32[Array, "*n 2"]
    """`denotation_key` before the command."""


@functools.cache
def without_no_ops(domain: Domain) -> Domain:
    """The domain in which a token is not valid that completes a command whose denotation is what it was before the
    command; always the same object for the same domain.
    """
    return domain if isinstance(domain, _WithoutNoOps) else _WithoutNoOps(domain)


class _WithoutNoOps(Domain):
    def __init__(self, domain: Domain):
        self.domain = domain
        for name in _DECLARED:
            setattr(self, name, getattr(domain, name))

    @property
    def unwrapped(self) -> Domain:
        return self.domain

    def start(self, world: Any, instructions: int) -> State:
        state = self.domain.start(world, instructions)
        return State(state, self.domain.denotation_key(state))

    def expand(self, state: State) -> tuple[State, Bool[Array, " A"]]:
        successors, valid = self.domain.expand(state.state)
        done = self.domain.instructions_done(state.state)
        completes = jax.vmap(self.domain.instructions_done)(successors) > done
        after = jax.vmap(self.domain.denotation_key)(successors)
        changes = jnp.any(after != state.before[None], axis=-1)
        return State(successors, jnp.where(completes[:, None], after, state.before[None])), valid & (
            ~completes | changes
        )

    def key(self, state: State) -> UInt32[Array, "2"]:
        # Which tokens are valid depends on both parts, so two states are one only if both are equal.
        return hash_words(jnp.concatenate([self.domain.key(state.state), state.before]).astype(jnp.int32))

    def with_context(self) -> Domain:
        return without_no_ops(self.domain.with_context())

    # All else is that of the domain.

    def is_dead_end(self, state: State) -> Bool[Array, ""]:
        return self.domain.is_dead_end(state.state)

    def instructions_done(self, state: State) -> Int[Array, ""]:
        return self.domain.instructions_done(state.state)

    def matches(self, state: State, target: Target) -> Bool[Array, ""]:
        return self.domain.matches(state.state, target)

    def denotation_key(self, state: State) -> UInt32[Array, "2"]:
        return self.domain.denotation_key(state.state)

    def observe(self, state: State) -> Observation:
        return self.domain.observe(state.state)

    def observe_world(self, state: State) -> Int[Array, "elements attributes"]:
        return self.domain.observe_world(state.state)

    def observe_target(self, target: Target) -> Int[Array, "elements attributes"]:
        return self.domain.observe_target(target)

    def observe_context(self, state: State) -> ContextObservation:
        return self.domain.observe_context(state.state)

    def permute(self, world: Any, target: Target, tokens: Int[Array, " A"]) -> tuple[Any, Target]:
        return self.domain.permute(world, target, tokens)

    def parse_world(self, text: str) -> Any:
        return self.domain.parse_world(text)

    def format_world(self, world: Any) -> str:
        return self.domain.format_world(world)

    def parse_target(self, text: str) -> Target:
        return self.domain.parse_target(text)

    def format_target(self, target: Target) -> str:
        return self.domain.format_target(target)

    def is_right(self, reached: str, target: str) -> bool:
        return self.domain.is_right(reached, target)

    def to_text(self, value: Any) -> str:
        return self.domain.to_text(value)

    def world(self, state: State) -> Any:
        return self.domain.world(state.state)

    def format_state(self, state: State) -> list[str]:
        return self.domain.format_state(state.state)

    def explain(self, state: State, token: str) -> str | None:
        _, valid = self.expand(jax.tree.map(jnp.asarray, state))
        if valid[self.tokens.index(token)]:
            return None
        return self.domain.explain(state.state, token) or f"{token}: the command would change nothing"

    def observation_spec(self) -> list[Any]:
        return self.domain.observation_spec()

    def alone(self) -> AbstractContextManager[Any]:
        return self.domain.alone()

    def raise_failure(self) -> None:
        self.domain.raise_failure()
