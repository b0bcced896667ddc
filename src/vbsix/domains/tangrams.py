"""Tangrams: a row of up to five different shapes."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np

from vbsix.domains.machine import GONE, LAST, NUMBER, OBJECT, ONE, Action, Machine, at, find, positions, put
from vbsix.domains.stack import StackDomain
from vbsix.domains.worlds import split_positions
from vbsix.utilities.errors import InvalidWorld, shorten

SHAPES = 5

# A place of the row is shape + 1, and 0 behind the last shape.


def add(machine: Machine):
    kind, payload = machine.pop("a removed shape", GONE, OBJECT)
    number = machine.pop_number()
    machine.require(kind == GONE, lambda: "the shape is in the row already")
    size = jnp.sum(machine.world != 0)
    position = jnp.where(number == LAST, size + 1, number)
    machine.require(position <= size + 1, lambda: f"position {int(position)} is beyond the end of a row of {int(size)}")
    places = positions(machine.world)
    shifted = jnp.concatenate([jnp.zeros(1, jnp.int32), machine.world[:-1]])
    world = jnp.where(places < position, machine.world, shifted)
    return put(world, position, payload + 1), (position, payload)


def swap(machine: Machine):
    second, first = machine.pop_object(), machine.pop_object()
    machine.require(first != second, lambda: "a shape cannot change places with itself")
    one, other = at(machine.world, first), at(machine.world, second)
    return put(put(machine.world, first, other), second, one), (other - 1, one - 1)


def remove(machine: Machine):
    position = machine.pop_object()
    closed_up = jnp.concatenate([machine.world[1:], jnp.zeros(1, jnp.int32)])
    world = jnp.where(positions(machine.world) < position, machine.world, closed_up)
    return world, (at(machine.world, position) - 1,)


class Tangrams(StackDomain):
    """A row of up to five different shapes."""

    name = "tangrams"
    noun = "shape"
    largest_number = SHAPES
    actions = {
        "AAdd": Action(add, ((NUMBER,), (GONE,)), (NUMBER, OBJECT)),
        "ASwap": Action(swap, (ONE, ONE), (OBJECT, OBJECT)),
        "ARemove": Action(remove, (ONE,), (OBJECT,)),
    }
    history_tokens = 3
    elements = SHAPES
    attributes = {"position": SHAPES + 1, "shape": SHAPES}

    def present(self, world):
        return world != 0

    def locate(self, world, identity):
        return find(world == identity + 1)

    def appearance(self, world):
        return world

    def describe(self, world):
        return jnp.stack([jnp.where(world == 0, 0, positions(world) + 1), world], axis=-1)

    def describe_gone(self, identity):
        return jnp.stack([jnp.int32(1), identity + 1])

    def parse_world(self, text):
        world = np.zeros(SHAPES, np.int32)
        for place, content in enumerate(split_positions(text, fewest=0, most=SHAPES)):
            if content not in tuple("01234"):
                raise InvalidWorld(f"position {place + 1} ({shorten(content)}): expected a shape from 0 to 4")
            if int(content) + 1 in world:
                raise InvalidWorld(f"position {place + 1}: shape {content} is in the row already")
            world[place] = int(content) + 1
        return world

    def format_world(self, world):
        return " ".join(f"{n}:{code - 1}" for n, code in enumerate(np.asarray(world).tolist(), start=1) if code)


class TangramsWhere(Tangrams):
    """Tangrams, with tokens for where the shapes of earlier commands were."""

    name = "tangrams-where"
    position_tokens = 2
