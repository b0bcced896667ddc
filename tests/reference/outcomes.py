"""What a program does, as the twin and as the compiled executor tell it, in one form to compare."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import NamedTuple

import jax
import numpy as np

from reference.language import Language
from vbsix import Domain, InvalidProgram, execute, get_domain
from vbsix.domains.execution import apply_token


class After(NamedTuple):
    """What can be seen of a state."""

    world: str
    stack: list[str]
    commands: int


class Outcome(NamedTuple):
    """What was seen after each accepted token, and the position of the rejected one, if any."""

    trace: list[After]
    rejected_at: int | None


def by_twin(domain: str, world: str, program: Sequence[str]) -> Outcome:
    """Runs a program in plain Python."""
    language = Language(domain)
    state = language.start(world)
    trace = []
    for position, token in enumerate(program):
        successor = language.step(state, token)
        if successor is None:
            return Outcome(trace, position)
        state = successor
        trace.append(After(language.world_text(state), language.stack_texts(state), language.commands(state)))
    return Outcome(trace, None)


def by_execute(domain: str, world: str, program: Sequence[str]) -> Outcome:
    """Runs a program through the compiled executor; up to the rejected token if there is one."""
    try:
        steps, rejected_at = execute(domain, world, program), None
    except InvalidProgram as error:
        assert error.token == program[error.position]
        steps, rejected_at = execute(domain, world, program[: error.position]), error.position
    assert [step.token for step in steps] == list(program[:rejected_at])
    return Outcome([After(step.world, step.stack, step.commands) for step in steps], rejected_at)


def by_batch(domain: str, requests: Sequence[tuple[str, Sequence[str]]]) -> list[Outcome]:
    """Runs many programs at once through the compiled executor: worlds, each with a program."""
    compiled = get_domain(domain)
    longest = max(len(program) for _, program in requests)
    programs = np.full((len(requests), longest), -1, np.int32)
    for row, (_, program) in enumerate(requests):
        programs[row, : len(program)] = [compiled.tokens.index(token) for token in program]
    worlds = np.stack([compiled.parse_world(world) for world, _ in requests])
    states, valid, done = jax.device_get(_trace(compiled, longest, worlds, programs))
    outcomes = []
    for row, (_, program) in enumerate(requests):
        rejected = np.flatnonzero(~valid[row, : len(program)])
        rejected_at = int(rejected[0]) if len(rejected) else None
        trace = []
        for place in range(len(program) if rejected_at is None else rejected_at):
            state = jax.tree.map(lambda leaf, at=(row, place): leaf[at], states)
            world = compiled.format_target(compiled.world(state))
            trace.append(After(world, compiled.format_state(state), int(done[row, place])))
        outcomes.append(Outcome(trace, rejected_at))
    return outcomes


@functools.partial(jax.jit, static_argnums=(0, 1))
def _trace(domain: Domain, instructions: int, worlds, programs):
    """The state after each token, whether the token is valid, and how many commands are done."""

    def step(state, token):
        after, valid = apply_token(domain, state, token)
        return after, (after, valid, domain.instructions_done(after))

    return jax.vmap(lambda world, program: jax.lax.scan(step, domain.start(world, instructions), program)[1])(
        worlds, programs
    )
