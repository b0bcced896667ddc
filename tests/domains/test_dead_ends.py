"""Dead ends: what the compiled domain takes for one has no way out, by the plain-Python twin."""

from __future__ import annotations

from random import Random

import jax
import numpy as np
import pytest
from reference.language import Language, State
from reference.walks import Walker
from reference.worlds import random_world

from vbsix import get_domain
from vbsix.domains.execution import run_batch
from vbsix.domains.names import BUILT_IN

INSTRUCTIONS = 3
WALKS = 150
LONGEST = 14
DEAD_ENDS = 25
"""Of each domain, that all ways out of are tried."""


def walk(name: str, number: int, stray: float) -> tuple[str, list[tuple[list[str], State]]]:
    """A world and, on a random walk from there, the tokens so far and the state after each of them."""
    random, language = Random(f"{name} {number}"), Language(name)
    world = random_world(name, random)
    walker, state = Walker(language, random, stray), State(language.rules.parse(world))
    tokens, visited = [], []
    for _ in range(LONGEST):
        valid = [token for token in language.tokens if language.step(state, token) is not None]
        if not valid or len(state.history) == INSTRUCTIONS:
            break
        tokens = [*tokens, walker.choose(state, valid)]
        successor = language.step(state, tokens[-1])
        assert successor is not None
        state = successor
        visited.append((tokens, state))
    return world, visited


def are_dead_ends(name: str, cases: list[tuple[str, list[str]]]) -> np.ndarray:
    """What the compiled domain says of the states after some tokens in some worlds."""
    domain = get_domain(name)
    starts = [domain.start(domain.parse_world(world), INSTRUCTIONS) for world, _ in cases]
    programs = np.full((len(cases), LONGEST), -1, np.int32)
    for row, (_, tokens) in enumerate(cases):
        programs[row, : len(tokens)] = [domain.tokens.index(token) for token in tokens]
    states, valid = run_batch(domain, jax.tree.map(lambda *leaves: np.stack(leaves), *starts), programs)
    assert np.all(valid)
    return np.asarray(jax.vmap(domain.is_dead_end)(states))


def ends_a_command(language: Language, state: State) -> bool:
    """Whether some tokens do: all stacks are tried that can be built from this one."""
    waiting, seen = [state], {state.stack}
    while waiting:
        here = waiting.pop()
        for token in language.tokens:
            successor = language.step(here, token)
            if successor is not None and len(successor.history) > len(state.history):
                return True
            if successor is not None and successor.stack not in seen:
                seen.add(successor.stack)
                waiting.append(successor)
    return False


DOMAINS = ["scene", *(pytest.param(name, marks=pytest.mark.slow) for name in sorted(BUILT_IN) if name != "scene")]
"""Scene is the one that prunes."""


@pytest.mark.parametrize("name", DOMAINS)
def test_no_command_ends_from_a_dead_end(name):
    language, walks = Language(name), [walk(name, number, stray=1.0) for number in range(WALKS)]
    visited = [(world, tokens, state) for world, steps in walks for tokens, state in steps]
    dead = are_dead_ends(name, [(world, tokens) for world, tokens, _ in visited])
    found = [state for (_, _, state), is_dead in zip(visited, dead, strict=True) if is_dead]
    assert len(found) > 5 * DEAD_ENDS  # random tokens soon lead there
    for state in Random(name).sample(found, DEAD_ENDS):
        assert not ends_a_command(language, state), state


@pytest.mark.parametrize("name", DOMAINS)
def test_commands_that_end_pass_no_dead_end(name):
    walks = [walk(name, number, stray=0.0) for number in range(WALKS)]
    passed = []
    for world, steps in walks:
        ended = len(steps[-1][1].history) if steps else 0
        passed += [(world, tokens) for tokens, state in steps if len(state.history) < ended]
    assert len(passed) > WALKS
    assert not are_dead_ends(name, passed).any()
