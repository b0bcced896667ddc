"""What a program does, as the twin and as `vbsix.execute` tell it, in one form to compare."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from reference.language import Language
from vbsix import InvalidProgram, execute


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
