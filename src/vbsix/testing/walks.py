"""Random programs, and all that a domain says of the states on their way."""

from __future__ import annotations

import functools
import random
from collections.abc import Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from vbsix.domains.base import Domain, Observation, State


class Seen(NamedTuple):
    """A batch of states with all that a domain says of each."""

    states: State
    successors: State
    valid: Any
    dead_end: Any
    dead_after: Any
    done: Any
    done_after: Any
    keys: Any
    keys_after: Any
    observation: Observation
    world: Any


class Walk(NamedTuple):
    """Programs, one from each world, and what was seen before each token, twice over."""

    texts: Sequence[str]
    instructions: int
    tokens: list[list[int]]
    """One for each step and program; -1 where no token was valid."""
    seen: list[Seen]
    again: list[Seen]


def walk_programs(domain: Domain, texts: Sequence[str], instructions: int, chance: random.Random) -> Walk:
    states = start_states(domain, texts, instructions)
    walk = Walk(texts, instructions, [], [], [])
    for _ in range(instructions * domain.max_tokens_per_instruction):
        walk.seen.append(look_at(domain, states))
        walk.again.append(look_at(domain, states))
        going_on = walk.seen[-1].valid & (walk.seen[-1].done < instructions)[:, None]
        choices = [np.flatnonzero(valid).tolist() for valid in going_on]
        tokens = [chance.choice(possible) if possible else -1 for possible in choices]
        walk.tokens.append(tokens)
        states = follow(walk.seen[-1], tokens)
    return walk


def start_states(domain: Domain, texts: Sequence[str], instructions: int) -> State:
    worlds = jax.tree.map(lambda *leaves: np.stack(leaves), *[domain.parse_world(text) for text in texts])
    states = jax.jit(jax.vmap(lambda world: domain.start(world, instructions)))(worlds)
    states = jax.tree.map(np.asarray, states)
    domain.raise_failure()
    return states


def look_at(domain: Domain, states: State) -> Seen:
    seen = jax.tree.map(np.asarray, _look(domain, jax.tree.map(jnp.asarray, states)))
    domain.raise_failure()
    return seen


@functools.partial(jax.jit, static_argnums=0)
def _look(domain: Domain, states: State) -> Seen:
    def of_state(state: State) -> Seen:
        successors, valid = domain.expand(state)
        return Seen(
            states=state,
            successors=successors,
            valid=valid,
            dead_end=domain.is_dead_end(state),
            dead_after=jax.vmap(domain.is_dead_end)(successors),
            done=domain.instructions_done(state),
            done_after=jax.vmap(domain.instructions_done)(successors),
            keys=domain.key(state),
            keys_after=jax.vmap(domain.key)(successors),
            observation=Observation(*domain.observe(state)),
            world=domain.observe_world(state),
        )

    return jax.vmap(of_state)(states)


def follow(seen: Seen, tokens: Sequence[int]) -> State:
    """The successors by one token each; a program that has no token stays where it is."""
    chosen, rows = np.array(tokens), np.arange(len(tokens))

    def of_leaf(before: np.ndarray, after: np.ndarray) -> np.ndarray:
        going_on = (chosen >= 0).reshape(-1, *[1] * (before.ndim - 1))
        return np.where(going_on, after[rows, np.maximum(chosen, 0)], before)

    return jax.tree.map(of_leaf, seen.states, seen.successors)
