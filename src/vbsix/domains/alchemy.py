"""Alchemy: seven beakers of up to four coloured units."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np

from vbsix.domains.changes import ALCHEMY_NAMES
from vbsix.domains.machine import (
    ALL,
    AMOUNT,
    COLOUR,
    FRACTION,
    LAST,
    LIST,
    NUMBER,
    OBJECT,
    ONE,
    Action,
    Machine,
    Property,
    at,
    positions,
    put,
)
from vbsix.domains.stack import StackDomain
from vbsix.domains.symmetry import Symmetry, colour_words
from vbsix.domains.worlds import split_positions
from vbsix.utilities.errors import InvalidWorld, shorten

BEAKERS = 7
CAPACITY = 4
COLOURS = "rygopb"
NAMES = {"r": "red", "y": "yellow", "g": "green", "o": "orange", "p": "purple"}
"""Of the colours that are interchangeable. Brown is not one of them: it is what mixing makes."""
BROWN = COLOURS.index("b") + 1
LETTERS = str.maketrans("0123456", "_" + COLOURS)
"""What a world's text shows for each octal digit; an empty beaker is the number 0."""

# A beaker is an octal number: the first unit is the lowest digit, a digit is a colour, 0 is no unit.


def amount(beaker):
    return sum((beaker >= 8**place).astype(jnp.int32) for place in range(CAPACITY))


def filled(units, colour):
    """A beaker with that many units of one colour."""
    return colour * ((1 << 3 * units) - 1) // 7


def colour_of(beaker):
    """The colour of a beaker that has just one, else 0."""
    first = beaker % 8
    return jnp.where(beaker == filled(amount(beaker), first), first, 0)


def of_colour(machine: Machine) -> None:
    colour = machine.pop_colour()
    name = lambda: ALCHEMY_NAMES[COLOURS[int(colour) - 1]]  # noqa: E731
    machine.push_list(colour_of(machine.world) == colour, lambda: f"no beaker holds only {name()}")


def drain(machine: Machine):
    world, (position, drained), _ = drain_amount(machine)
    return world, (position, drained)


def drain_and_keep_all(machine: Machine):
    """The history records X1/1 as it is, and not the number of units that it was."""
    world, (position, drained), is_all = drain_amount(machine)
    return world, (position, jnp.where(is_all, ALL, drained))


def drain_amount(machine: Machine):
    kind, payload = machine.pop("an amount", NUMBER, FRACTION)
    position = machine.pop_object()
    beaker = at(machine.world, position)
    units = amount(beaker)
    drained = jnp.where(kind == FRACTION, units, payload)
    machine.require(units > 0, lambda: f"beaker {int(position)} is empty")
    machine.require((kind == FRACTION) | (payload != LAST), lambda: "an amount of -1 means nothing")
    machine.require(drained <= units, lambda: f"beaker {int(position)} holds {int(units)}, not {int(drained)}")
    left = beaker % (1 << 3 * jnp.maximum(units - drained, 0))
    return put(machine.world, position, left), (position, drained), kind == FRACTION


def pour(machine: Machine):
    destination, origin = machine.pop_object(), machine.pop_object()
    beaker, other = at(machine.world, origin), at(machine.world, destination)
    machine.require(origin != destination, lambda: "a beaker cannot be poured into itself")
    machine.require(beaker != 0, lambda: f"beaker {int(origin)} is empty")
    machine.require(colour_of(beaker) != 0, lambda: f"beaker {int(origin)} holds mixed colours")
    machine.require(
        amount(beaker) + amount(other) <= CAPACITY,
        lambda: no_room(int(amount(beaker)), int(amount(other)), int(destination)),
    )
    both = other + (beaker << 3 * amount(other))
    return put(put(machine.world, origin, 0), destination, both), (origin, destination)


def no_room(units: int, there: int, position: int) -> str:
    """Why these units do not fit into a beaker."""
    room = CAPACITY - there
    return f"beaker {position} is full" if room == 0 else f"beaker {position} has room for {room}, not {units}"


def mix(machine: Machine):
    position = machine.pop_object()
    beaker = at(machine.world, position)
    machine.require(beaker != 0, lambda: f"beaker {int(position)} is empty")
    machine.require(colour_of(beaker) == 0, lambda: f"beaker {int(position)} is of one colour already")
    return put(machine.world, position, filled(amount(beaker), BROWN)), (position,)


class Alchemy(StackDomain):
    """Seven beakers of up to four coloured units."""

    name = "alchemy"
    noun = "beaker"
    colours = COLOURS
    largest_number = BEAKERS
    fractions = ("X1/1",)
    properties = {"PColor": Property(of_colour, ((COLOUR,),), LIST)}
    actions = {
        "APour": Action(pour, (ONE, ONE), (OBJECT, OBJECT)),
        "AMix": Action(mix, (ONE,), (OBJECT,)),
        "ADrain": Action(drain, (ONE, (NUMBER, FRACTION)), (OBJECT, NUMBER)),
    }
    history_tokens = 3
    elements = BEAKERS
    attributes = {"position": BEAKERS, "colour": len(COLOURS) + 1, "amount": CAPACITY + 1}
    symmetries = (Symmetry(tuple(NAMES), colour_words(NAMES, p=["violet"])),)

    def present(self, world):
        return jnp.ones(BEAKERS, bool)

    def locate(self, world, identity):
        return identity

    def appearance(self, world):
        return world

    def describe(self, world):
        mixed_or_empty = len(COLOURS) + 1
        colour = colour_of(world)
        return jnp.stack([positions(world), jnp.where(colour == 0, mixed_or_empty, colour), amount(world) + 1], axis=-1)

    def describe_gone(self, identity):
        return jnp.zeros(3, jnp.int32)  # beakers never leave

    def permute_world(self, world, tokens):
        units = [world >> 3 * place & 7 for place in range(CAPACITY)]
        return sum(self.permute_colours(colour, tokens) << 3 * place for place, colour in enumerate(units))

    def parse_world(self, text):
        world = np.zeros(BEAKERS, np.int32)
        for place, content in enumerate(split_positions(text, fewest=BEAKERS, most=BEAKERS)):
            if content == "_":
                continue
            if not 1 <= len(content) <= CAPACITY or not set(content) <= set(COLOURS):
                raise InvalidWorld(
                    f"beaker {place + 1} ({shorten(content)}): expected 1 to {CAPACITY} units out of "
                    f"{' '.join(COLOURS)}, or _ for empty"
                )
            world[place] = sum((COLOURS.index(unit) + 1) * 8**n for n, unit in enumerate(content))
        return world

    def format_world(self, world):
        units = [f"{beaker:o}"[::-1].translate(LETTERS) for beaker in np.asarray(world).tolist()]
        return " ".join(f"{n}:{content}" for n, content in enumerate(units, start=1))


class AlchemyWhere(Alchemy):
    """Alchemy, where the history keeps "all of it" as such. Beakers never move, so no token asks where they were."""

    name = "alchemy-where"
    actions = {
        **Alchemy.actions,
        "ADrain": Action(drain_and_keep_all, (ONE, (NUMBER, FRACTION)), (OBJECT, AMOUNT)),
    }
