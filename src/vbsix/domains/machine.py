"""The stack machine that the three SCONE languages share: elements, history, typed arguments, limits.

A domain on top of it (`vbsix.domains.stack`) gives a table with one row per token. A row is a function that takes a
`Machine`, pops its arguments, states what it requires and pushes its result; an action returns the new world and its
history entry. The same rows run compiled, where requirements become a validity mask, and by hand, where the first one
that fails explains why a token was rejected.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Int, Shaped

if TYPE_CHECKING:
    from vbsix.domains.stack import StackDomain

STACK_LIMIT = 3

# A stack element is kind * FIELD + payload; an empty place is 0. A list of objects is a bit mask of positions.
FIELD = 1 << 12
COLOUR, NUMBER, FRACTION, OBJECT, LIST, GONE = range(1, 7)
ONE = (OBJECT, LIST)
"""What will do where one object is wanted."""
LAST = 0
"""Payload of the number -1."""
AMOUNT = GONE + 1
"""An argument in the history that is a number, or `ALL` for the fraction; the stack has the one or the other."""
ALL = 0

Scalar = Int[Any, ""]
Codes = Int[Any, "*shape"]


class StackState(NamedTuple):
    """A state of the executor; the index of the utterance being parsed is the number of history entries."""

    world: Int[Any, "*batch W"]
    """One code per position, the domain's own."""
    stack: Int[Any, "*batch 3"]
    """Element codes, top first."""
    history: Int[Any, "*batch M"]
    """Entry codes of the commands done, in order, then zeros."""


Takes = tuple[tuple[int, ...], ...]
"""The kinds that will do as each argument, the last one on top of the stack."""


class Action(NamedTuple):
    """A token that changes the world and ends a command."""

    run: Callable[[Machine], tuple[Array, tuple[Any, ...]]]
    """Pops the arguments, gives the new world and the arguments as the history records them."""
    takes: Takes
    arguments: tuple[int, ...]
    """What the recorded arguments are: NUMBER, AMOUNT, or OBJECT for an identity."""


Operation = Callable[["Machine"], None]


class Property(NamedTuple):
    """A token that replaces its arguments by what it finds in the world."""

    run: Operation
    takes: Takes
    gives: int
    """The kind of its result."""


def positions(array: Shaped[Any, " W"]) -> np.ndarray:
    """1, 2, ... for the places of an array."""
    return np.arange(1, array.shape[-1] + 1, dtype=np.int32)


def at(array: Int[Array, " W"], position: Scalar) -> Scalar:
    """The entry at a 1-based position, 0 outside. A masked sum: cheaper than a gather at these sizes."""
    return jnp.sum(jnp.where(positions(array) == position, array, 0))


def put(array: Int[Array, " W"], position: Scalar, value: Any) -> Int[Array, " W"]:
    """The array with the entry at a 1-based position replaced."""
    return jnp.where(positions(array) == position, value, array)


def find(flags: Bool[Array, " W"]) -> Scalar:
    """The position of the only flag that is up, 0 if none is."""
    return jnp.sum(jnp.where(flags, positions(flags), 0))


def bits(flags: Bool[Array, " W"]) -> Scalar:
    """The bit mask of the flags; position p is bit p - 1."""
    return jnp.sum(jnp.where(flags, 1 << (positions(flags) - 1), 0))


def ranks(mask: Scalar, width: int) -> Int[Array, " width"]:
    """For each position in the mask its place in the list (1-based), 0 for those outside."""
    up = (mask >> np.arange(width, dtype=np.int32)) & 1
    return jnp.cumsum(up) * up


class Machine:
    """One token being executed on one state: a stack to pop from and push to, and a list of requirements."""

    def __init__(self, domain: StackDomain, world: Array, stack: list[Any], history: Array):
        self.domain, self.world, self.stack, self.history = domain, world, stack, history
        self.requirements: list[tuple[Any, Callable[[], str]]] = []

    def require(self, condition: Any, reason: Callable[[], str]) -> None:
        """The token is invalid unless `condition` holds; `reason` is called on concrete values only."""
        self.requirements.append((condition, reason))

    @property
    def valid(self) -> Any:
        return functools.reduce(jnp.logical_and, [condition for condition, _ in self.requirements], True)

    def push(self, kind: int | Scalar, payload: Any) -> None:
        if len(self.stack) == STACK_LIMIT:
            self.require(self.stack.pop() == 0, lambda: f"the stack holds {STACK_LIMIT} elements already")
        self.stack.insert(0, kind * FIELD + payload)

    def pop(self, wanted: str, *kinds: int) -> tuple[Scalar, Scalar]:
        """Kind and payload of the top element, which must be of one of the kinds."""
        element = self.stack.pop(0) if self.stack else jnp.int32(0)
        kind = element // FIELD
        self.require(element != 0, lambda: f"needs {wanted}, but the stack is empty")
        gone = (kind == GONE) & (GONE not in kinds)
        self.require(~gone, lambda: f"needs {wanted}, but this {self.domain.noun} has left the world")
        fits = functools.reduce(jnp.logical_or, [kind == k for k in kinds])
        self.require(fits, lambda: f"needs {wanted}, not {self.domain.format_element(int(element))}")
        return kind, element % FIELD

    def pop_number(self) -> Scalar:
        """A number; `LAST` stands for -1."""
        return self.pop("a number", NUMBER)[1]

    def pop_colour(self) -> Scalar:
        return self.pop("a colour", COLOUR)[1]

    def pop_list(self) -> Scalar:
        """A list as a bit mask."""
        return self.pop("a list", LIST)[1]

    def pop_object(self) -> Scalar:
        """The position of an object that is in the world; a list of exactly one will do."""
        kind, payload = self.pop(f"a {self.domain.noun}", OBJECT, LIST)
        mask = jnp.where(kind == LIST, payload, 1 << (payload - 1))
        only = jax.lax.population_count(mask) == 1
        self.require(only, lambda: f"needs one {self.domain.noun}, but the list has {int(mask).bit_count()}")
        return jax.lax.population_count(mask - 1) + 1

    def pop_entry(self) -> Scalar:
        """The history entry whose number is on the stack."""
        number = self.pop_number()
        done = jnp.sum(self.history != 0)
        position = jnp.where(number == LAST, done, number)
        self.require(
            (position >= 1) & (position <= done),
            lambda: f"there is no command {int(number) or -1}: {int(done)} done so far",
        )
        return at(self.history, position)

    def push_list(self, flags: Bool[Array, " W"], what: Callable[[], str]) -> None:
        """Pushes the list of the objects flagged, of which there must be one."""
        self.require(jnp.any(flags), what)
        self.push(LIST, bits(flags))

    def argument(self, entry: Codes, place: int) -> Codes:
        """An argument of a history entry: a number, or an object's identity."""
        recorded = entry_argument(entry, place)
        return recorded % PLACE if self.domain.records_positions else recorded

    def record(self, action: Action, arguments: tuple[Any, ...], world: Array) -> tuple[Any, ...]:
        """What the history records of an action's arguments; `world` is the world after it.

        Where positions are recorded, that of an object is its position before the action; of one that is new, the
        position after it.
        """
        if not self.domain.records_positions:
            return arguments

        def with_position(kind: int, argument: Any) -> Any:
            if kind != OBJECT:
                return argument
            before, after = (self.domain.locate(each, argument) for each in (self.world, world))
            return argument + PLACE * jnp.where(before == 0, after, before)

        return tuple(map(with_position, action.arguments, arguments))

    def require_empty(self) -> None:
        """An action must use up the stack."""
        rest = functools.reduce(jnp.logical_or, [element != 0 for element in self.stack], False)
        self.require(~jnp.asarray(rest), lambda: "it does not use up what is on the stack")

    def end_command(self, world: Array, entry: Scalar) -> None:
        """Takes over an action's new world and records it; the stack is empty then."""
        done = jnp.sum(self.history != 0)
        self.world, self.history, self.stack = world, put(self.history, done + 1, entry), []

    def fork(self) -> Machine:
        """The same situation with no requirements yet."""
        return Machine(self.domain, self.world, list(self.stack), self.history)

    def successor(self) -> StackState:
        stack = [*self.stack, *[jnp.int32(0)] * (STACK_LIMIT - len(self.stack))]
        return StackState(self.world, jnp.stack(stack), self.history)


# A history entry is action * FIELD**2 + first argument * FIELD + second argument, and never 0: actions count from 1.
# Where positions are recorded, an argument that is an object is identity + PLACE * its position.
PLACE = 1 << 8
MOST_COMMANDS_WITH_CONTEXT = 240
"""Each can make a person with an identity of its own, which must stay below `PLACE`."""


def encode_entry(action: int, arguments: tuple[Any, ...]) -> Scalar:
    first, second = (*arguments, 0, 0)[:2]
    return (action * FIELD + first) * FIELD + second


def entry_action(entry: Codes) -> Codes:
    return entry // FIELD**2


def entry_argument(entry: Codes, place: int) -> Codes:
    return entry // FIELD % FIELD if place == 1 else entry % FIELD


# Rows of the table that all domains share.


def constant(kind: int, payload: int) -> Operation:
    """Pushes a constant."""
    return lambda machine: machine.push(kind, payload)


def all_objects(machine: Machine) -> None:
    """Pushes the list of all objects of the world."""
    machine.push_list(machine.domain.present(machine.world), lambda: f"there is no {machine.domain.noun}")


def index(machine: Machine) -> None:
    """Replaces a list and a number by the object at that place of the list."""
    number = machine.pop_number()
    mask = machine.pop_list()
    size = jax.lax.population_count(mask)
    place = jnp.where(number == LAST, size, number)
    machine.require(place <= size, lambda: f"there is no place {int(place)} in a list of {int(size)}")
    machine.push(OBJECT, find(ranks(mask, machine.world.shape[-1]) == place))


def perform(code: int, action: Action) -> Operation:
    """Runs an action."""

    def operation(machine: Machine) -> None:
        world, arguments = action.run(machine)
        machine.require_empty()
        machine.end_command(world, encode_entry(code, machine.record(action, arguments, world)))

    return operation


def repeat(machine: Machine) -> None:
    """H0: runs the action of an earlier command on the arguments now on the stack."""
    past = entry_action(machine.pop_entry())
    new_world, new_entry = jnp.zeros_like(machine.world), jnp.int32(0)
    for code, action in enumerate(machine.domain.actions.values(), start=1):
        chosen, attempt = past == code, machine.fork()
        world, arguments = action.run(attempt)
        attempt.require_empty()
        for condition, reason in attempt.requirements:
            machine.require(~chosen | condition, reason)
        new_world += jnp.where(chosen, world, 0)
        new_entry += jnp.where(chosen, encode_entry(code, machine.record(action, arguments, world)), 0)
    machine.end_command(new_world, new_entry)


def recall(place: int) -> Operation:
    """H1 and on: pushes an argument of an earlier command, an object as it is now."""

    def operation(machine: Machine) -> None:
        entry = machine.pop_entry()
        kind = machine.domain.argument_kind(entry, place)
        machine.require(kind != 0, lambda: f"that command has no argument {place}")
        argument = machine.argument(entry, place)
        position = machine.domain.locate(machine.world, argument)
        here = position != 0
        kind = jnp.where((kind == OBJECT) & ~here, GONE, kind)
        machine.push(kind, jnp.where(kind == OBJECT, position, argument))

    return operation


def recall_position(place: int) -> Operation:
    """W1 and on: pushes the position that an argument of an earlier command had when the command came."""

    def operation(machine: Machine) -> None:
        entry = machine.pop_entry()
        is_object = machine.domain.argument_kind(entry, place) == OBJECT
        machine.require(is_object, lambda: f"argument {place} of that command is no {machine.domain.noun}")
        machine.push(NUMBER, entry_argument(entry, place) // PLACE)

    return operation
