"""Running programs by hand, through the same compiled `expand` that search uses."""

from __future__ import annotations

import functools
import json
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Int

from vbsix.domains.base import Domain, State, Target
from vbsix.domains.registry import get_domain
from vbsix.utilities.errors import InvalidProgram, UnknownName
from vbsix.utilities.jax_settings import set_flags
from vbsix.utilities.renaming import renamed
from vbsix.utilities.trees import choose

MOST_TOKENS = 1000
"""Longest program that `execute` takes."""


class Step(NamedTuple):
    """What a token of a program led to."""

    token: str
    world: str
    stack: list[str]
    """Elements as text, bottom first."""
    commands: int
    """Commands done so far."""

    @property
    def denotation(self) -> Any:
        """The world as a Python value where it is JSON, as that of a language in plain Python is."""
        return to_value(self.world)


def to_value(world: str) -> Any:
    """The value of a world's text, if that is JSON; else the text itself."""
    try:
        return json.loads(world)
    except ValueError:  # a text form of the domain's own
        return world


@renamed(world="context")
def execute(domain: str | Domain, context: Any, program: str | Sequence[str]) -> list[Step]:
    """Runs a program, token by token.

    Args:
        domain: a domain or its name.
        context: the first world, in its text form or as JSON.
        program: tokens separated by white space, or a sequence of tokens; at most `MOST_TOKENS` of them.

    Raises:
        InvalidWorld: the context does not parse.
        InvalidProgram: a token is unknown or cannot be executed where it stands.
    """
    domain = get_domain(domain) if isinstance(domain, str) else domain
    tokens = tuple(program.split() if isinstance(program, str) else program)
    with domain.alone():
        start = _start(domain, domain.world_text(context), tokens)
        return [
            Step(token, domain.format_target(domain.world(state)), domain.format_state(state), done)
            for token, (state, done) in zip(tokens, _walk(domain, start, tokens), strict=True)
        ]


def states_along(domain: Domain, world: str, tokens: Sequence[str]) -> list[tuple[State, int]]:
    """The first state of a program and the one after each token, with the number of commands done in each.

    It raises what `execute` raises.
    """
    with domain.alone():
        start = _start(domain, world, tokens)
        return [(start, 0), *_walk(domain, start, tokens)]


def _start(domain: Domain, world: str, tokens: Sequence[str]) -> State:
    set_flags()  # a first call may start JAX, and training in the same session needs all cores
    if len(tokens) > MOST_TOKENS:
        raise InvalidProgram(MOST_TOKENS, tokens[MOST_TOKENS], f"a program has at most {MOST_TOKENS} tokens")
    # A power of two, so that few sizes are compiled; each command has at least one token.
    capacity = max(8, 1 << len(tokens).bit_length())
    state = jax.block_until_ready(domain.start(domain.parse_world(world), capacity))
    domain.raise_failure()
    return state


def _walk(domain: Domain, state: State, tokens: Sequence[str]) -> Iterator[tuple[State, int]]:
    """The state after each token, and how many commands are done in it."""
    for position, token in enumerate(tokens):
        if token not in domain.tokens:
            raise InvalidProgram(position, str(token), str(UnknownName("token", str(token), domain.tokens)))
        successor, valid, done = jax.block_until_ready(_advance(domain, state, domain.tokens.index(token)))
        domain.raise_failure()
        if not valid:
            raise InvalidProgram(position, token, domain.explain(state, token) or "not valid here")
        state = jax.tree.map(np.asarray, successor)
        yield state, int(done)


@functools.partial(jax.jit, static_argnums=0)
def _advance(domain: Domain, state: State, token: Int[Array, ""]) -> tuple[State, Bool[Array, ""], Int[Array, ""]]:
    """The successor by one token, whether it is valid, and how many instructions are done in it."""
    successor, valid = apply_token(domain, state, token)
    return successor, valid, domain.instructions_done(successor)


@functools.partial(jax.jit, static_argnums=0)
def run_batch(domain: Domain, states: State, programs: Int[Array, "N T"]) -> tuple[State, Bool[Array, " N"]]:
    """Runs a program on each state of a batch; a program is token ids padded with -1.

    Returns:
        The states reached, and whether each program was valid; a state stays where its program became invalid.
    """

    def step(carry, token):
        state, ok = carry
        after, valid = apply_token(domain, state, jnp.where(ok, token, -1))
        return (after, ok & valid), None

    def run(state, program):
        return jax.lax.scan(step, (state, jnp.bool_(True)), program)[0]

    return jax.vmap(run)(states, programs)


def apply_token(domain: Domain, state: State, token: Int[Array, ""]) -> tuple[State, Bool[Array, ""]]:
    """The state after one token, and whether the token is valid; an invalid one, and -1 for none, changes nothing."""
    successors, valid = domain.expand(state)
    ok = (token < 0) | valid[token]
    return follow(successors, state, jnp.where(ok, token, -1)), ok


def ends_command_elsewhere(
    domain: Domain, before: State, after: State, targets: Target, known: Bool[Array, " M"] | None = None
) -> Bool[Array, ""]:
    """Whether a token ends a command in another world than that of its instruction.

    Args:
        domain: the language.
        before: the state before the token.
        after: the state after it.
        targets: the world after each instruction; leaves [M, ...].
        known: which of them are known; None for all. Where it is not, no world is another one.
    """
    done = domain.instructions_done(after)
    ended, place = done > domain.instructions_done(before), jnp.maximum(done - 1, 0)
    differs = ~domain.matches(after, choose(targets, place))
    return ended & differs if known is None else ended & known[place] & differs


def follow(successors: State, state: State, token: Int[Array, ""]) -> State:
    """The successor by a token, out of all successors of a state; the state itself for -1."""
    return jax.tree.map(lambda new, old: jnp.where(token >= 0, new[token], old), successors, state)
