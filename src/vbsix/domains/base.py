"""What search, networks and data ask of a domain: the socket for a language of one's own."""

from __future__ import annotations

import abc
from collections.abc import Mapping
from typing import Any, ClassVar, NamedTuple

from jaxtyping import Array, Bool, Int, UInt32

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


class Domain(abc.ABC):
    """A world, a language over it, and an executor, as pure functions over one state.

    Everything here is written for a single state and batched by `jax.vmap` outside. Shapes are fixed by the domain
    and by the number of instructions given to `start`. `vbsix.testing.check_domain` verifies what search relies on.
    """

    name: ClassVar[str]
    tokens: ClassVar[tuple[str, ...]]
    """The program vocabulary."""
    max_tokens_per_instruction: ClassVar[int]
    """A program of M instructions has at most M times this many tokens."""
    values: ClassVar[int]
    """Number of constants that can stand in a slot; `Observation.values` runs from 0 (none) to this."""
    attributes: ClassVar[Mapping[str, int]]
    """For each attribute of an object, how many ids it has besides 0 (none)."""

    @abc.abstractmethod
    def start(self, world: Any, instructions: int) -> State:
        """The state before the first token; `instructions` bounds how many commands can follow."""

    @abc.abstractmethod
    def expand(self, state: State) -> tuple[State, Bool[Array, " A"]]:
        """All successors, one per token, stacked along a new first axis, and which of them are valid."""

    @abc.abstractmethod
    def instructions_done(self, state: State) -> Int[Array, ""]:
        """How many instructions have their command. Equal to M: the program is finished."""

    @abc.abstractmethod
    def matches(self, state: State, target: Target) -> Bool[Array, ""]:
        """Whether the state's denotation equals the target."""

    @abc.abstractmethod
    def key(self, state: State) -> UInt32[Array, "2"]:
        """64-bit identity: equal for equal states, different otherwise with overwhelming probability."""

    @abc.abstractmethod
    def observe(self, state: State) -> Observation:
        """What the policy sees of the state."""

    @abc.abstractmethod
    def observe_world(self, state: State) -> Int[Array, "elements attributes"]:
        """Attribute ids of the current world's elements, for the critic."""

    @abc.abstractmethod
    def observe_target(self, target: Target) -> Int[Array, "elements attributes"]:
        """Attribute ids of the target's elements, for the critic."""

    @abc.abstractmethod
    def parse_world(self, text: str) -> Any:
        """A world from its text form, as NumPy arrays. Raises `InvalidWorld`."""

    @abc.abstractmethod
    def format_world(self, world: Any) -> str:
        """The text form of a world; the inverse of `parse_world`."""

    @abc.abstractmethod
    def world(self, state: State) -> Any:
        """The current world of a state, as `parse_world` gives it."""

    @abc.abstractmethod
    def format_state(self, state: State) -> list[str]:
        """The state's working memory as texts, bottom of the stack first."""

    @abc.abstractmethod
    def explain(self, state: State, token: str) -> str | None:
        """Why `token` is invalid in `state`, for a person; None if it is valid."""
