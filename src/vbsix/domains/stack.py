"""Domains over the stack machine: constants, properties and actions over a world with one code per position."""

from __future__ import annotations

import abc
import copy
import functools
import operator
from collections.abc import Mapping
from itertools import product
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Int, UInt32

from vbsix.domains.base import ContextObservation, Domain, Observation
from vbsix.domains.hashing import hash_words
from vbsix.domains.machine import (
    ALL,
    AMOUNT,
    COLOUR,
    FIELD,
    FRACTION,
    GONE,
    LAST,
    LIST,
    MOST_COMMANDS_WITH_CONTEXT,
    NUMBER,
    OBJECT,
    PLACE,
    STACK_LIMIT,
    Action,
    Codes,
    Machine,
    Operation,
    Property,
    Scalar,
    StackState,
    Takes,
    all_objects,
    at,
    constant,
    entry_action,
    entry_argument,
    index,
    perform,
    positions,
    ranks,
    recall,
    recall_position,
    repeat,
)
from vbsix.utilities.errors import VbsixError

OBJECTS_SEEN = 7
"""How many objects of a list the networks see."""
COMMANDS_SEEN = 4
"""How many of the last commands a policy with context sees."""


def promising_stacks(domain: type[StackDomain]) -> Bool[np.ndarray, "kinds kinds kinds"]:
    """Which stacks, by the kinds of their elements, top first, some tokens could use up; 0 is an empty place.

    Of most stacks no action is made whatever follows, such as those with a number on top of a colour.
    """
    recalled = {kind for action in domain.actions.values() for kind in action.arguments}
    if AMOUNT in recalled:
        recalled = recalled - {AMOUNT} | {NUMBER, FRACTION}
    if domain.position_tokens:
        recalled |= {NUMBER}
    constants = {COLOUR} if domain.colours else set()
    constants |= {FRACTION} if domain.fractions else set()
    pushes: list[tuple[Takes, int]] = [((), kind) for kind in constants | {NUMBER, LIST}]
    pushes += [(((LIST,), (NUMBER,)), OBJECT)]
    pushes += [(property_.takes, property_.gives) for property_ in domain.properties.values()]
    pushes += [(((NUMBER,),), kind) for kind in recalled | ({GONE} if OBJECT in recalled else set())]
    arguments = [stack for action in domain.actions.values() for stack in product(*action.takes)]
    promising = {*arguments, *((*stack, NUMBER) for stack in arguments if len(stack) < STACK_LIMIT)}  # itself, and H0
    stacks = [stack for size in range(STACK_LIMIT + 1) for stack in product(range(1, GONE + 1), repeat=size)]
    found = 0
    while found < len(promising):
        found = len(promising)
        for stack, (takes, gives) in product(stacks, pushes):
            below = stack[: len(stack) - len(takes)]
            fits = len(stack) >= len(takes) and all(map(operator.contains, takes, stack[len(below) :]))
            if fits and (*below, gives) in promising:
                promising.add(stack)
    table = np.zeros((GONE + 1,) * STACK_LIMIT, bool)
    for stack in promising:
        table[(*stack[::-1], *(0,) * (STACK_LIMIT - len(stack)))] = True
    return table


class StackDomain(Domain):
    """A SCONE domain: constants, properties and actions over a world with one code per position."""

    max_tokens_per_instruction = 7
    slots = STACK_LIMIT
    objects = OBJECTS_SEEN
    commands = COMMANDS_SEEN
    context = False
    """Whether a policy with context sees the states."""

    noun: ClassVar[str]
    """What an object is called in messages."""
    colours: ClassVar[str] = ""
    """Letters of the colours; the payload of a colour is its place, from 1."""
    largest_number: ClassVar[int]
    fractions: ClassVar[tuple[str, ...]] = ()
    properties: ClassVar[Mapping[str, Property]] = {}
    actions: ClassVar[Mapping[str, Action]]
    history_tokens: ClassVar[int]
    """How many of H0, H1, ... there are."""
    position_tokens: ClassVar[int] = 0
    """How many of W1, W2 there are, which push where an argument of an earlier command was."""
    promising: ClassVar[Bool[np.ndarray, "kinds kinds kinds"]]
    """See `promising_stacks`."""

    def __init_subclass__(cls):
        numbers = {str(n): constant(NUMBER, n) for n in range(1, cls.largest_number + 1)}
        cls.operations: Mapping[str, Operation] = {
            **{letter: constant(COLOUR, n) for n, letter in enumerate(cls.colours, start=1)},
            **numbers,
            "-1": constant(NUMBER, LAST),
            **{fraction: constant(FRACTION, n) for n, fraction in enumerate(cls.fractions)},
            "all-objects": all_objects,
            "index": index,
            **{token: property_.run for token, property_ in cls.properties.items()},
            **{token: perform(code, action) for code, (token, action) in enumerate(cls.actions.items(), start=1)},
            "H0": repeat,
            **{f"H{place}": recall(place) for place in range(1, cls.history_tokens)},
            **{f"W{place}": recall_position(place) for place in range(1, cls.position_tokens + 1)},
        }
        cls.tokens = tuple(cls.operations)
        cls.values = len(cls.colours) + (cls.largest_number + 1) + len(cls.fractions)
        cls.promising = promising_stacks(cls)
        cls.command_fields = {"action": len(cls.actions)}
        for place in ("first", "second"):
            cls.command_fields |= {f"{place} number": cls.largest_number, f"{place} position then": cls.elements}
            cls.command_fields |= {f"{place} {name} now": count for name, count in cls.attributes.items()}

    # What a domain says of its own world.

    @abc.abstractmethod
    def present(self, world: Int[Any, " W"]) -> Bool[Array, " W"]:
        """Which positions hold an object."""

    @abc.abstractmethod
    def locate(self, world: Int[Any, " W"], identity: Scalar) -> Scalar:
        """The position of an object now, 0 if it has left the world."""

    @abc.abstractmethod
    def appearance(self, world: Int[Any, " W"]) -> Int[Any, " W"]:
        """What counts for the equality of worlds."""

    @abc.abstractmethod
    def describe(self, world: Int[Any, " W"]) -> Int[Array, "W attributes"]:
        """Attribute ids of what is at each position."""

    @abc.abstractmethod
    def describe_gone(self, identity: Scalar) -> Int[Array, " attributes"]:
        """Attribute ids of an object that has left the world."""

    @property
    def records_positions(self) -> bool:
        """Whether the history also records where objects were."""
        return self.context or self.position_tokens > 0

    # The domain interface.

    def start(self, world: Int[Any, " W"], instructions: int) -> StackState:
        if self.context and instructions > MOST_COMMANDS_WITH_CONTEXT:
            raise VbsixError(f"a policy with context reads at most {MOST_COMMANDS_WITH_CONTEXT} instructions.")
        zeros = functools.partial(jnp.zeros, dtype=jnp.int32)
        return StackState(jnp.asarray(world, jnp.int32), zeros(STACK_LIMIT), zeros(instructions))

    def expand(self, state: StackState) -> tuple[StackState, Bool[Array, " A"]]:
        machines = [self._execute(state, token) for token in self.tokens]
        successors = jax.tree.map(lambda *leaves: jnp.stack(leaves), *[machine.successor() for machine in machines])
        return successors, jnp.stack([machine.valid for machine in machines])

    def is_dead_end(self, state: StackState) -> Bool[Array, ""]:
        kinds = state.stack // FIELD
        return ~jnp.asarray(self.promising)[kinds[0], kinds[1], kinds[2]]

    def explain(self, state: StackState, token: str) -> str | None:
        state = jax.tree.map(jnp.asarray, state)
        for condition, reason in self._execute(state, token).requirements:
            if not condition:
                return f"{token}: {reason()}"
        return None

    def _execute(self, state: StackState, token: str) -> Machine:
        machine = Machine(self, state.world, [state.stack[place] for place in range(STACK_LIMIT)], state.history)
        commands = state.history.shape[-1]
        machine.require(state.history[-1] == 0, lambda: f"all {commands} instructions have their command")
        self.operations[token](machine)
        return machine

    def instructions_done(self, state: StackState) -> Scalar:
        return jnp.sum(state.history != 0)

    def world(self, state: StackState) -> Int[Any, " W"]:
        return state.world

    def matches(self, state: StackState, target: Int[Any, " W"]) -> Bool[Array, ""]:
        return jnp.all(self.appearance(state.world) == self.appearance(target))

    def key(self, state: StackState) -> UInt32[Array, "2"]:
        return hash_words(jnp.concatenate([state.world, state.stack, state.history]))

    def denotation_key(self, state: StackState) -> UInt32[Array, "2"]:
        return hash_words(self.appearance(state.world))

    def observe(self, state: StackState) -> Observation:
        slots = [self._observe_element(state.world, state.stack[place]) for place in range(STACK_LIMIT)]
        return Observation(*[jnp.stack(parts) for parts in zip(*slots, strict=True)])

    def _observe_element(self, world: Int[Any, " W"], element: Scalar) -> tuple[Any, Int[Array, "objects attributes"]]:
        kind, payload = element // FIELD, element % FIELD
        first_of = {COLOUR: 0, NUMBER: len(self.colours) + 1, FRACTION: len(self.colours) + self.largest_number + 2}
        value = sum(jnp.where(kind == k, payload + first, 0) for k, first in first_of.items())
        mask = jnp.where(kind == LIST, payload, jnp.where(kind == OBJECT, 1 << (payload - 1), 0))
        places = np.arange(1, OBJECTS_SEEN + 1, dtype=np.int32)
        chosen = ranks(mask, world.shape[-1])[None, :] == places[:, None]
        objects = jnp.sum(jnp.where(chosen[:, :, None], self.describe(world)[None], 0), axis=1)
        gone = jnp.where((kind == GONE) & (places == 1)[:, None], self.describe_gone(payload)[None, :], 0)
        return value, objects + gone

    def observe_world(self, state: StackState) -> Int[Array, "elements attributes"]:
        return self.describe(state.world)

    def observe_target(self, target: Int[Any, " W"]) -> Int[Array, "elements attributes"]:
        return self.describe(target)

    def permute(self, world: Any, target: Any, tokens: Int[Array, " A"]) -> tuple[Any, Any]:
        return self.permute_world(world, tokens), self.permute_world(target, tokens)

    def permute_world(self, world: Int[Any, " W"], tokens: Int[Array, " A"]) -> Int[Any, " W"]:
        """A world with its colours exchanged."""
        raise NotImplementedError

    def permute_colours(self, colours: Codes, tokens: Int[Array, " A"]) -> Codes:
        """The colours, 0 for none, with each exchanged for that of its new token. Colours are the first tokens."""
        return jnp.concatenate([jnp.zeros(1, jnp.int32), tokens[: len(self.colours)] + 1])[colours]

    @functools.cached_property
    def _with_context(self) -> StackDomain:
        domain = copy.copy(self)
        domain.context = True
        return domain

    def with_context(self) -> StackDomain:
        return self if self.context else self._with_context

    def argument_kind(self, entry: Scalar, place: int) -> Scalar:
        """The kind of an argument of a history entry: NUMBER, FRACTION or OBJECT, or 0 if there is none."""
        kind = jnp.int32(0)
        for code, action in enumerate(self.actions.values(), start=1):
            if len(action.arguments) >= place:
                recorded = action.arguments[place - 1]
                if recorded == AMOUNT:
                    recorded = jnp.where(entry_argument(entry, place) == ALL, FRACTION, NUMBER)
                kind += jnp.where(entry_action(entry) == code, recorded, 0)
        return kind

    def observe_context(self, state: StackState) -> ContextObservation:
        done = jnp.sum(state.history != 0)
        entries = jnp.stack([at(state.history, done - age) for age in range(COMMANDS_SEEN)])
        commands = jax.vmap(lambda entry: self._observe_command(state.world, entry))(entries)
        return ContextObservation(commands, self.describe(state.world))

    def _observe_command(self, world: Int[Any, " W"], entry: Scalar) -> Int[Array, " fields"]:
        fields = [entry_action(entry)[None]]
        for place in (1, 2):
            kind, recorded = self.argument_kind(entry, place), entry_argument(entry, place)
            identity, then = recorded % PLACE, recorded // PLACE
            here = positions(world) == self.locate(world, identity)
            now = jnp.sum(jnp.where(here[:, None], self.describe(world), 0), axis=0)
            now = jnp.where(jnp.any(here), now, self.describe_gone(identity))
            numbers = jnp.stack([jnp.where(kind == NUMBER, recorded, 0), jnp.where(kind == OBJECT, then, 0)])
            fields += [numbers, jnp.where(kind == OBJECT, now, 0)]
        return jnp.concatenate(fields)

    def format_element(self, element: int | Scalar) -> str:
        """A stack element as text: `number:-1`, `list:[1,4,7]`, ..."""
        kind, payload = divmod(int(element), FIELD)
        match kind:
            case _ if kind == COLOUR:
                return f"color:{self.colours[payload - 1]}"
            case _ if kind == NUMBER:
                return f"number:{-1 if payload == LAST else payload}"
            case _ if kind == FRACTION:
                return f"fraction:{self.fractions[payload]}"
            case _ if kind == OBJECT:
                return f"object:{payload}"
            case _ if kind == LIST:
                return f"list:[{','.join(str(n + 1) for n in range(payload.bit_length()) if payload >> n & 1)}]"
            case _:
                return f"gone:{payload}"

    def format_state(self, state: StackState) -> list[str]:
        return [self.format_element(element) for element in np.asarray(state.stack)[::-1] if element]
