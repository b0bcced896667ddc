"""Transition systems given as tables: small enough to draw or to enumerate, quick to compile, and all alike in shape.

The tables are arrays and may be traced, so that one compiled search serves any number of systems.
"""

from __future__ import annotations

from random import Random
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np

from reference.search import Task
from vbsix import Domain
from vbsix.domains.hashing import hash_words


class Tables(NamedTuple):
    """A system with a policy and a critic. States are numbers, and state 0 is the first."""

    successor: Any
    """[S, A], -1 where a token is invalid."""
    done: Any
    """[S], instructions done."""
    denotation: Any
    """[S], what is compared with the target."""
    log_policy: Any
    """[S, A]."""
    value: Any
    """[S]."""


class TableDomain(Domain):
    """The compiled side of a system."""

    name = "table"
    values = 0
    attributes = {}

    def __init__(self, tables: Tables, max_tokens_per_instruction: int):
        self.tables = Tables(*[jnp.asarray(table) for table in tables])
        self.max_tokens_per_instruction = max_tokens_per_instruction
        self.tokens = token_names(tables.successor.shape[1])

    def policy(self, state, valid=None):
        return self.tables.log_policy[state]

    def critic(self, state):
        return self.tables.value[state]

    def start(self, world, instructions):
        return jnp.asarray(world, jnp.int32)

    def expand(self, state):
        successors = self.tables.successor[state]
        return jnp.maximum(successors, 0), successors >= 0

    def instructions_done(self, state):
        return self.tables.done[state]

    def matches(self, state, target):
        return self.tables.denotation[state] == target

    def key(self, state):
        return hash_words(state[None])

    def denotation_key(self, state):
        return hash_words(self.tables.denotation[state][None])

    def observe(self, state):
        raise NotImplementedError("no network looks at tables")

    observe_world = observe_target = parse_world = format_world = world = format_state = observe

    def explain(self, state, token):
        raise NotImplementedError("nobody runs tables by hand")


def token_names(count: int) -> tuple[str, ...]:
    return tuple("abcdefghijklmnopqrstuvwxyz"[:count])


class Twin:
    """The plain-Python side of a system, for one problem."""

    def __init__(self, tables: Tables, target: int, instructions: int, max_tokens_per_instruction: int):
        self.tables = Tables(*[np.asarray(table).tolist() for table in tables])
        tokens = token_names(len(self.tables.successor[0]))
        self.task = Task(
            start=0,
            tokens=tokens,
            step=lambda state, token: self._successor(state, tokens.index(token)),
            done=lambda state: self.tables.done[state],
            correct=lambda state: self.tables.denotation[state] == target,
            instructions=instructions,
            longest=instructions * max_tokens_per_instruction,
        )

    def _successor(self, state: int, column: int) -> int | None:
        successor = self.tables.successor[state][column]
        return None if successor < 0 else successor

    def policy(self, states: list[int]) -> list[list[float]]:
        return [self.tables.log_policy[state] for state in states]

    def critic(self, states: list[int]) -> list[float]:
        return [self.tables.value[state] for state in states]


def random_tables(random: Random, *, states: int, tokens: int, instructions: int) -> Tables:
    """A random system, full of merges and cycles, with a policy that is flat or peaked."""
    done = sorted([0, *(random.randint(0, instructions) for _ in range(states - 2)), instructions])
    at = {level: [state for state in range(states) if done[state] == level] for level in range(instructions + 1)}

    def successor(state: int) -> int:
        go_on = random.random() < 0.3
        choices = at.get(done[state] + go_on) or at[done[state]]
        return random.choice(choices) if random.random() < 0.8 else -1

    sharpness = random.choice([0.3, 2, 6])
    logits = np.array([[random.random() * sharpness for _ in range(tokens)] for _ in range(states)])
    return Tables(
        np.array([[successor(state) for _ in range(tokens)] for state in range(states)], np.int32),
        np.array(done, np.int32),
        np.array([random.randint(0, 2) for _ in range(states)], np.int32),
        (logits - np.log(np.sum(np.exp(logits), axis=1, keepdims=True))).astype(np.float32),
        np.array([random.random() for _ in range(states)], np.float32),
    )
