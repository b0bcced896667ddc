"""What search, networks and data ask of a domain: the socket for a language of one's own."""

from __future__ import annotations

import abc
import json
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any, NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Bool, Int, UInt32

from vbsix.domains.symmetry import Symmetry
from vbsix.utilities.errors import InvalidWorld

State = Any
"""A pytree of small integer arrays; what is in it is the domain's own affair."""

Target = Any
"""What a finished state is compared with; SCONE's targets are worlds."""


class Observation(NamedTuple):
    """What the networks see of a state's working memory (SCONE's program stack), top first."""

    values: Int[Array, " slots"]
    """Id of the constant in each slot, 0 where there is none."""
    objects: Int[Array, "slots objects attributes"]
    """Attribute ids of the objects in each slot, 0 where there is none."""


class ContextObservation(NamedTuple):
    """What a policy with context sees of a state besides its working memory."""

    commands: Int[Array, "commands fields"]
    """Ids of the fields of the last commands, the newest first; 0 where there is none."""
    world: Int[Array, "elements attributes"]
    """Attribute ids of the current world's elements."""


class Domain(abc.ABC):
    """A world, a language over it, and an executor, as pure functions over one state.

    Everything here is written for a single state and batched by `jax.vmap` outside. Shapes are fixed by the domain
    and by the number of instructions given to `start`. `vbsix.testing.check_domain` verifies what search relies on.
    """

    name: str
    tokens: tuple[str, ...]
    """The program vocabulary."""
    max_tokens_per_instruction: int
    """A program of M instructions has at most M times this many tokens."""
    slots: int
    """Slots of the working memory that the networks see."""
    objects: int
    """Objects that they see in each slot."""
    elements: int
    """Elements of a world that they see."""
    values: int
    """Number of constants that can stand in a slot; `Observation.values` runs from 0 (none) to this."""
    attributes: Mapping[str, int]
    """For each attribute of an object, how many ids it has besides 0 (none)."""
    commands: int = 0
    """How many of the last commands a policy with context sees."""
    command_fields: Mapping[str, int] = {}
    """For each field of such a command, how many ids it has besides 0 (none)."""
    symmetries: Sequence[Symmetry] = ()
    """Constants that are interchangeable. With any, `permute` is needed, too."""
    compiled: bool = True
    """False for a domain with JAX callbacks: these are never run on several devices at once."""

    @property
    def unwrapped(self) -> Domain:
        """The domain without a wrapper such as `without_no_ops`."""
        return self

    @abc.abstractmethod
    def start(self, world: Any, instructions: int) -> State:
        """The state before the first token; `instructions` bounds how many commands can follow."""

    @abc.abstractmethod
    def expand(self, state: State) -> tuple[State, Bool[Array, " A"]]:
        """All successors, one per token, stacked along a new first axis, and which of them are valid."""

    def is_dead_end(self, state: State) -> Bool[Array, ""]:
        """Whether no tokens at all end a command from here. Search does without such states; none need be found."""
        del state
        return jnp.bool_(False)

    @abc.abstractmethod
    def instructions_done(self, state: State) -> Int[Array, ""]:
        """How many instructions have their command. Equal to M: the program is finished."""

    @abc.abstractmethod
    def matches(self, state: State, target: Target) -> Bool[Array, ""]:
        """Whether the state's denotation equals the target."""

    @abc.abstractmethod
    def key(self, state: State) -> UInt32[Array, "2"]:
        """64-bit identity: equal for equal states, different otherwise with overwhelming probability."""

    def denotation_key(self, state: State) -> UInt32[Array, "2"]:
        """The same for finished states that match the same targets, so that their programs are added up in a
        reading's confidence and in an ensemble's prediction.

        States that are not equal are distinguished unless a domain knows better.
        """
        return self.key(state)

    @abc.abstractmethod
    def observe(self, state: State) -> Observation:
        """What the policy sees of the state."""

    @abc.abstractmethod
    def observe_world(self, state: State) -> Int[Array, "elements attributes"]:
        """Attribute ids of the current world's elements, for the critic."""

    @abc.abstractmethod
    def observe_target(self, target: Target) -> Int[Array, "elements attributes"]:
        """Attribute ids of the target's elements, for the critic."""

    def with_context(self) -> Domain:
        """The domain for policies with context, always the same object. Its states tell apart all that
        `observe_context` shows; a domain whose states do so anyway is its own.
        """
        return self

    def observe_context(self, state: State) -> ContextObservation:
        """What a policy with context sees of a state of `with_context()`; by default the world alone.

        Like all that a policy sees, it must be the same for states with equal keys.
        """
        return ContextObservation(jnp.zeros((0, 0), jnp.int32), self.observe_world(state))

    def permute(self, world: Any, target: Target, tokens: Int[Array, " A"]) -> tuple[Any, Target]:
        """A world and a target with interchangeable constants exchanged: `tokens` has the new token of each token."""
        raise NotImplementedError(f"{type(self).__name__} declares symmetries, but has no method permute.")

    @abc.abstractmethod
    def parse_world(self, text: str) -> Any:
        """A world from its text form, as NumPy arrays. Raises `InvalidWorld`."""

    @abc.abstractmethod
    def format_world(self, world: Any) -> str:
        """The text form of a world; the inverse of `parse_world`."""

    def parse_target(self, text: str) -> Target:
        """A target from its text form, as NumPy arrays. Targets are worlds unless a domain says otherwise."""
        return self.parse_world(text)

    def format_target(self, target: Target) -> str:
        """The text form of a target; the inverse of `parse_target`."""
        return self.format_world(target)

    def to_text(self, value: Any) -> str:
        """The text form of a world or a target that stands in a file as JSON: a text itself, or else its JSON."""
        return value if isinstance(value, str) else json.dumps(value, sort_keys=True, ensure_ascii=False)

    def world_text(self, world: Any) -> str:
        """The text form of a world that may be given as JSON; a text has it already. Raises `InvalidWorld`."""
        try:
            return world if isinstance(world, str) else self.to_text(world)
        except (TypeError, ValueError) as error:
            raise InvalidWorld(f"neither a text nor JSON: {error}") from None

    def is_right(self, reached: str, target: str) -> bool:
        """Whether a denotation matches a target, both as `format_target` writes them: `matches` for texts.

        Equal texts match. A domain with targets that several denotations match has to override it.
        """
        return reached == target

    @abc.abstractmethod
    def world(self, state: State) -> Any:
        """The denotation of a state as `format_target` takes it: in SCONE, the current world."""

    @abc.abstractmethod
    def format_state(self, state: State) -> list[str]:
        """The state's working memory as texts, bottom of the stack first."""

    @abc.abstractmethod
    def explain(self, state: State, token: str) -> str | None:
        """Why `token` is invalid in `state`, for a person; None if it is valid."""

    def observation_spec(self) -> list[Any]:
        """What the networks see, as JSON: a model fits a domain with the same specification."""
        return [[name, count] for name, count in self.attributes.items()]

    def alone(self) -> AbstractContextManager[Any]:
        """Held around a compiled call and `raise_failure`, so that each thread gets its own failures."""
        return nullcontext()

    def raise_failure(self) -> None:
        """Raises what went wrong on the host while a compiled function ran; to be called when its result is there.

        In a domain that is all JAX nothing can.
        """
        return None
