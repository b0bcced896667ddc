"""Scene: people with coloured shirts and hats on a stage of ten positions."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np

from vbsix.domains.changes import NAMES
from vbsix.domains.machine import (
    COLOUR,
    LAST,
    LIST,
    NUMBER,
    OBJECT,
    ONE,
    PLACE,
    Action,
    Machine,
    Property,
    at,
    entry_action,
    find,
    positions,
    put,
)
from vbsix.domains.stack import StackDomain
from vbsix.domains.symmetry import Symmetry, colour_words
from vbsix.domains.worlds import split_positions
from vbsix.utilities.errors import InvalidWorld, shorten, with_article

STAGE = 10
COLOURS = "rygopbe"
NO_HAT = COLOURS.index("e") + 1
LETTERS = "_" + COLOURS.replace("e", "_")
"""What a world's text shows for each shirt or hat."""

# A person is identity * 64 + hat * 8 + shirt, nobody is 0. The identity is hidden: worlds are compared without it.


def shirt(person):
    return person % 8


def hat(person):
    return person // 8 % 8


def identity(person):
    return person // 64


def person(identity, shirt, hat):
    return identity * 64 + hat * 8 + shirt


def wear(what: str, colour: int) -> str:
    """A shirt or a hat in words."""
    name = NAMES.get(COLOURS[colour - 1])
    return f"no {what}" if name is None else with_article(f"{name} {what}")


def has_shirt(machine: Machine) -> None:
    colour = machine.pop_colour()
    machine.push_list(shirt(machine.world) == colour, lambda: f"nobody has {wear('shirt', int(colour))}")


def has_hat(machine: Machine) -> None:
    colour = machine.pop_colour()
    machine.push_list(hat(machine.world) == colour, lambda: f"nobody has {wear('hat', int(colour))}")


def has_shirt_and_hat(machine: Machine) -> None:
    hat_colour, shirt_colour = machine.pop_colour(), machine.pop_colour()
    machine.push_list(
        (shirt(machine.world) == shirt_colour) & (hat(machine.world) == hat_colour),
        lambda: f"nobody has {wear('shirt', int(shirt_colour))} and {wear('hat', int(hat_colour))}",
    )


def beside(step: int):
    """The position to the left (-1) or right (+1) of a person."""

    def operation(machine: Machine) -> None:
        position = machine.pop_object() + step
        machine.require((position >= 1) & (position <= STAGE), lambda: f"position {int(position)} is off the stage")
        machine.push(NUMBER, position)

    return operation


def pop_free_position(machine: Machine):
    number = machine.pop_number()
    position = jnp.where(number == LAST, STAGE, number)
    machine.require(at(machine.world, position) == 0, lambda: f"position {int(position)} is occupied")
    return position


def leave(machine: Machine):
    position = machine.pop_object()
    return put(machine.world, position, 0), (identity(at(machine.world, position)),)


def swap_hats(machine: Machine):
    second, first = machine.pop_object(), machine.pop_object()
    machine.require(first != second, lambda: "a person cannot swap hats with themselves")
    one, other = at(machine.world, first), at(machine.world, second)
    world = put(machine.world, first, person(identity(one), shirt(one), hat(other)))
    world = put(world, second, person(identity(other), shirt(other), hat(one)))
    return world, (identity(other), identity(one))


def move(machine: Machine):
    destination, origin = pop_free_position(machine), machine.pop_object()
    who = at(machine.world, origin)
    return put(put(machine.world, origin, 0), destination, who), (identity(who), destination)


def create(machine: Machine):
    hat_colour, shirt_colour = machine.pop_colour(), machine.pop_colour()
    position = pop_free_position(machine)
    machine.require(shirt_colour != NO_HAT, lambda: "a shirt has a colour, 'e' is for hats")
    new = next_identity(machine)
    if machine.domain.records_positions:
        machine.require(new < PLACE, lambda: f"{PLACE} people have been on stage, and the history tells no more apart")
    return put(machine.world, position, person(new, shirt_colour, hat_colour)), (new,)


def next_identity(machine: Machine):
    """One more than the largest so far: who is not on stage has left or was created, so the history knows."""
    on_stage = jnp.where(machine.world == 0, 0, identity(machine.world) + 1)
    left = entry_action(machine.history) == 1 + list(Scene.actions).index("ALeave")
    gone = jnp.where(left, machine.argument(machine.history, 1) + 1, 0)
    return jnp.maximum(jnp.max(on_stage), jnp.max(gone))


class Scene(StackDomain):
    """People with coloured shirts and hats on a stage of ten positions."""

    name = "scene"
    noun = "person"
    colours = COLOURS
    largest_number = STAGE
    properties = {
        "PShirt": Property(has_shirt, ((COLOUR,),), LIST),
        "PHat": Property(has_hat, ((COLOUR,),), LIST),
        "PLeft": Property(beside(-1), (ONE,), NUMBER),
        "PRight": Property(beside(+1), (ONE,), NUMBER),
        "DShirtHat": Property(has_shirt_and_hat, ((COLOUR,), (COLOUR,)), LIST),
    }
    actions = {
        "ALeave": Action(leave, (ONE,), (OBJECT,)),
        "ASwapHats": Action(swap_hats, (ONE, ONE), (OBJECT, OBJECT)),
        "AMove": Action(move, (ONE, (NUMBER,)), (OBJECT, NUMBER)),
        "ACreate": Action(create, ((NUMBER,), (COLOUR,), (COLOUR,)), (OBJECT,)),
    }
    history_tokens = 4
    elements = STAGE
    attributes = {"position": STAGE + 1, "shirt": len(COLOURS), "hat": len(COLOURS)}
    symmetries = (Symmetry(tuple(NAMES), colour_words(NAMES)),)

    def present(self, world):
        return world != 0

    def locate(self, world, identity_):
        return find((world != 0) & (identity(world) == identity_))

    def appearance(self, world):
        return world % 64

    def describe(self, world):
        return jnp.stack([positions(world) + 1, shirt(world), hat(world)], axis=-1)

    def describe_gone(self, identity_):
        return jnp.array([1, 0, 0])

    def permute_world(self, world, tokens):
        shirts, hats = (self.permute_colours(part(world), tokens) for part in (shirt, hat))
        return person(identity(world), shirts, hats)

    def parse_world(self, text):
        world = np.zeros(STAGE, np.int32)
        people = 0
        for place, content in enumerate(split_positions(text, fewest=STAGE, most=STAGE)):
            if content == "__":
                continue
            wears, head = content[:1], content[1:]
            if wears not in tuple(COLOURS[:-1]) or head not in ("_", *COLOURS[:-1]):
                raise InvalidWorld(
                    f"position {place + 1} ({shorten(content)}): expected a shirt colour and a hat colour out of "
                    f"{' '.join(COLOURS[:-1])}, with _ for no hat, or __ for nobody"
                )
            world[place] = person(people, COLOURS.index(wears) + 1, NO_HAT if head == "_" else COLOURS.index(head) + 1)
            people += 1
        return world

    def format_world(self, world):
        return " ".join(
            f"{n}:{LETTERS[shirt(code)]}{LETTERS[hat(code)]}"
            for n, code in enumerate(np.asarray(world).tolist(), start=1)
        )


class SceneWhere(Scene):
    """Scene, with tokens for where the people of earlier commands were."""

    name = "scene-where"
    position_tokens = 2
