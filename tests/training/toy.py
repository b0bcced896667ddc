"""A system small enough to enumerate; see test_objectives.py for a drawing."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np

from vbsix import Domain

# Where the tokens a and b lead from each place; 3 and 4 are terminal.
NEXT = np.array([[1, 1], [3, 2], [3, 4], [-1, -1], [-1, -1]], np.int32)


class Toy(Domain):
    """Places of a small graph, one instruction."""

    name = "toy"
    tokens = ("a", "b")
    max_tokens_per_instruction = 5
    values = 0
    attributes = {"place": 5}

    def start(self, world, instructions):
        return {"place": jnp.asarray(world, jnp.int32)}

    def expand(self, state):
        following = jnp.asarray(NEXT)[state["place"]]
        return {"place": following}, following >= 0

    def instructions_done(self, state):
        return (state["place"] >= 3).astype(jnp.int32)

    def matches(self, state, target):
        return state["place"] == target

    def key(self, state):
        return jnp.stack([state["place"], state["place"] + 7]).astype(jnp.uint32)

    def world(self, state):
        return state["place"]

    def observe(self, state):
        raise AssertionError("the toy's policies look at the state itself")

    observe_world = observe_target = parse_world = format_world = format_state = explain = observe
