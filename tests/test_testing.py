"""What `check_domain` finds."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
import pytest

from vbsix import Domain, InvalidDomain, InvalidWorld, get_domain, hash_words
from vbsix.domains.base import Observation
from vbsix.testing import check_domain

WORLDS = {
    "scene": [
        "1:__ 2:r_ 3:__ 4:by 5:gg 6:__ 7:__ 8:p_ 9:__ 10:yo",
        "1:__ 2:__ 3:__ 4:__ 5:__ 6:__ 7:__ 8:__ 9:__ 10:__",
    ],
    "alchemy": ["1:ggg 2:_ 3:yo 4:rr 5:b 6:_ 7:oooo"],
    "tangrams": ["1:0 2:3 3:4 4:1 5:2", "1:1", ""],
}


@pytest.mark.parametrize("name", WORLDS)
def test_the_built_in_domains_keep_all_of_it(name):
    check_domain(get_domain(name), WORLDS[name])


class Lamps(Domain):
    """Three lamps; a token switches one, and that is a command."""

    name = "lamps"
    tokens = ("a", "b", "c")
    max_tokens_per_instruction = 1
    slots, objects, elements, values = 1, 0, 1, 1
    attributes = {"a": 2, "b": 2, "c": 2}

    def start(self, world, instructions):
        return {"lamps": jnp.asarray(world), "done": jnp.int32(0)}

    def expand(self, state):
        switched = jnp.where(jnp.eye(3, dtype=bool), 1 - state["lamps"][None, :], state["lamps"][None, :])
        return {"lamps": switched, "done": jnp.full(3, state["done"] + 1)}, jnp.ones(3, bool)

    def instructions_done(self, state):
        return state["done"]

    def matches(self, state, target):
        return jnp.all(state["lamps"] == target)

    def key(self, state):
        return hash_words(jnp.append(state["lamps"], state["done"]))

    def observe(self, state):
        return Observation(jnp.zeros(1, jnp.int32), jnp.zeros((1, 0, 3), jnp.int32))

    def observe_world(self, state):
        return state["lamps"][None] + 1

    def observe_target(self, target):
        return jnp.asarray(target)[None] + 1

    def parse_world(self, text):
        if len(text) != 3 or set(text) - set("01"):
            raise InvalidWorld("expected three digits, 0 or 1")
        return np.array([int(digit) for digit in text], np.int32)

    def format_world(self, world):
        return "".join(str(int(lamp)) for lamp in world)

    def world(self, state):
        return state["lamps"]

    def format_state(self, state):
        return []

    def explain(self, state, token):
        return None


def test_a_sound_domain_passes():
    check_domain(Lamps(), ["000", "101"])


def switch_off(self, state):
    successors, valid = Lamps.expand(self, state)
    return successors, valid & (state["lamps"] == 0)


WRONG = {
    "a key that leaves something out": (
        {"key": lambda self, state: hash_words(state["lamps"][:1])},
        "Two states with the same key behave differently",
    ),
    "a denotation that is not what matches compares": (
        {"matches": lambda self, state, target: jnp.all(state["lamps"] == 1 - target)},
        "does not match that target",
    ),
    "a text that loses something": (
        {"format_world": lambda self, world: Lamps.format_world(self, world)[:2] + "0"},
        "The world '101' is another one after format_world and parse_world",
    ),
    "a count that jumps": (
        {
            "expand": lambda self, state: (
                {**Lamps.expand(self, state)[0], "done": jnp.full(3, state["done"] + 2)},
                jnp.ones(3, bool),
            )
        },
        "instructions_done goes from 0 to 2",
    ),
    "a count that begins elsewhere": (
        {"start": lambda self, world, _: {"lamps": jnp.asarray(world), "done": jnp.int32(1)}},
        "instructions_done is not 0",
    ),
    "a validity of the wrong type": (
        {"expand": lambda self, state: (Lamps.expand(self, state)[0], jnp.ones(3))},
        r"expand's validity is float32\[3\], expected bool",
    ),
    "a successor of another shape": (
        {"expand": lambda self, state: ({**Lamps.expand(self, state)[0], "done": jnp.int32(0)}, jnp.ones(3, bool))},
        r"expand gives int32\[\] for \['done'\] of the successors, expected int32\[3\]",
    ),
    "another structure": (
        {"expand": lambda self, state: (state["lamps"], jnp.ones(3, bool))},
        "successors of another structure",
    ),
    "a size that is not the declared one": (
        {"slots": 2},
        r"observe's values is int32\[1\], expected integer\[2\] as declared",
    ),
    "an id out of range": (
        {"attributes": {"a": 1, "b": 2, "c": 2}},
        "an id of 'a' outside 0 to 1",
    ),
    "a way out of a dead end": (
        {"is_dead_end": lambda self, state: state["lamps"][0] == 1},
        "is_dead_end is true of a state in which 'a' ends an instruction",
    ),
    "an invalid token without a reason": ({"expand": switch_off}, "explain has no reason"),
    "no tokens": ({"tokens": ()}, "tokens must be a tuple of texts"),
    "a token twice": ({"tokens": ("a", "b", "a")}, "a token stands there twice"),
    "a token of two words": ({"tokens": ("a", "b b", "c")}, "white space"),
    "no attributes": ({"attributes": {}}, "attributes must map names"),
    "a function that cannot be traced": (
        {"observe_world": lambda self, state: int(state["done"])},
        "cannot be traced: ConcretizationTypeError",
    ),
}


@pytest.mark.parametrize(("changes", "told"), WRONG.values(), ids=WRONG)
def test_what_is_wrong_is_told(changes, told):
    with pytest.raises(InvalidDomain, match=told) as caught:
        check_domain(type("Lamps", (Lamps,), changes)(), ["101", "000", "110"])
    assert all(line.startswith("Lamps: ") for line in str(caught.value).splitlines())


def test_worlds_that_do_not_parse_are_told():
    with pytest.raises(InvalidDomain, match="The world '10' does not parse: expected three digits"):
        check_domain(Lamps(), ["000", "10"])
    with pytest.raises(InvalidDomain, match="No world"):
        check_domain(Lamps(), [])
