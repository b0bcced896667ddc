"""The compiled executor against the plain-Python twin, on random states and all tokens."""

from __future__ import annotations

import functools
import itertools
from collections import Counter
from dataclasses import dataclass, field
from random import Random

import jax
import numpy as np
import pytest
from reference.language import Language, State
from reference.outcomes import After
from reference.walks import Walker
from reference.worlds import random_world

from vbsix import get_domain
from vbsix.domains.names import BUILT_IN, base_name

WALKS = 16
WORLDS = 60
LONGEST = 8
"""Tokens for each instruction after which a walk is given up."""


@dataclass
class Walk:
    """A walk of the twin; the compiled state that goes with it stands in the batch."""

    world: str
    state: State
    walker: Walker
    program: list[str] = field(default_factory=list)


@dataclass
class Findings:
    """What the comparison met and where the two executors disagreed."""

    instructions: int
    share: float
    """Of the pairs in `PAIRS`."""
    pairs: int = 0
    valid: Counter[str] = field(default_factory=Counter)
    invalid: Counter[str] = field(default_factory=Counter)
    commands: Counter[int] = field(default_factory=Counter)
    keyed: list[tuple[State, tuple[int, int]]] = field(default_factory=list)
    """Every state met, as the twin has it, with its compiled key."""
    ways: set[tuple[State, str]] = field(default_factory=set)
    """The pairs of state and token that led to these states."""
    disagreements: list[tuple[int, str]] = field(default_factory=list)
    """Length of the program and a description, so that the shortest can be shown."""


# SCONE has 5 instructions; with 12 the history is longer and more people come than the stage holds.
PAIRS = {5: 100_000, 12: 50_000}
"""(state, token) pairs to compare in each domain, for a number of instructions; fewer in one that differs little."""
SETTINGS = [
    pytest.param((name, count), id=f"{name}-{count}", marks=[] if count == 5 else pytest.mark.slow)
    for name, count in itertools.product(BUILT_IN, PAIRS)
]


@pytest.fixture(scope="module", params=SETTINGS)
def findings(request) -> Findings:
    return compare(*request.param)


def test_validity_and_successors_agree(findings):
    shortest = sorted(findings.disagreements)[:3]
    assert not shortest, f"{len(findings.disagreements)} disagreements, the shortest:\n" + "\n".join(
        description for _, description in shortest
    )


def test_equal_states_have_equal_keys(findings):
    states = {state for state, _ in findings.keyed}
    assert len(findings.ways) - len(states) >= 200 * findings.share, "hardly a state was reached in two ways"
    assert len(set(findings.keyed)) == len(states)


def test_states_with_equal_keys_are_equal(findings):
    keys = {key for _, key in findings.keyed}
    assert len(set(findings.keyed)) == len(keys)


def test_the_walks_go_everywhere(findings):
    never_valid = {"H3"}  # no command has three arguments in the history
    tokens = {*findings.valid, *findings.invalid}
    assert all(findings.valid[token] >= 20 * findings.share for token in tokens - never_valid), findings.valid
    assert all(findings.invalid[token] >= 20 * findings.share for token in tokens), findings.invalid
    assert all(findings.commands[commands] >= 3 for commands in range(findings.instructions + 1)), findings.commands


def compare(name: str, instructions: int) -> Findings:
    """Walks both executors in lockstep and compares all successors of every state on the way."""
    domain, language, random = get_domain(name), Language(name, instructions), Random(f"walks in {name}")
    worlds = [random_world(name, random) for _ in range(WORLDS)]
    starts = {world: host(domain.start(domain.parse_world(world), instructions)) for world in worlds}
    expand = jax.jit(jax.vmap(lambda state: with_keys(domain, *domain.expand(state))))

    @functools.cache
    def world_text(world: bytes) -> str:
        return domain.format_world(np.frombuffer(world, np.int32))

    def seen_in(state, commands) -> After:
        return After(world_text(domain.world(state).tobytes()), domain.format_state(state), int(commands))

    def new_walk() -> Walk:
        world = random.choice(worlds)
        return Walk(world, language.start(world), Walker(language, random, stray=random.choice([0, 0, 0, 0.3])))

    findings = Findings(instructions, share=1.0 if base_name(name) == name else 0.4)
    walks = [new_walk() for _ in range(WALKS)]
    batch = stack([starts[walk.world] for walk in walks])
    while findings.pairs < PAIRS[instructions] * findings.share:
        successors, valid, keys, commands = host(expand(batch))
        rows = []
        for row, walk in enumerate(walks):
            findings.commands[language.commands(walk.state)] += 1
            following = {token: language.step(walk.state, token) for token in language.tokens}
            for column, token in enumerate(domain.tokens):
                after = following[token]
                (findings.valid if after else findings.invalid)[token] += 1
                findings.pairs += 1
                if valid[row, column] != (after is not None):
                    note(findings, walk, token, f"valid in the {'twin' if after else 'compiled executor'} only")
                elif after:
                    findings.ways.add((walk.state, token))
                    findings.keyed.append((after, (int(keys[row, column, 0]), int(keys[row, column, 1]))))
                    expected = seen_by_twin(language, after)
                    seen = seen_in(take(successors, row, column), commands[row, column])
                    if seen != expected:
                        note(findings, walk, token, f"twin: {expected}\n  compiled: {seen}")
            usable = [token for column, token in enumerate(domain.tokens) if following[token] and valid[row, column]]
            if usable and len(walk.program) < LONGEST * instructions:
                token = walk.walker.choose(walk.state, usable)
                walk.state, walk.program = following[token], [*walk.program, token]
                rows.append(take(successors, row, domain.tokens.index(token)))
            else:
                walks[row] = new_walk()
                rows.append(starts[walks[row].world])
        batch = stack(rows)
    return findings


def with_keys(domain, successors, valid):
    """What `expand` gives, with each successor's key and number of commands."""
    return successors, valid, jax.vmap(domain.key)(successors), jax.vmap(domain.instructions_done)(successors)


def seen_by_twin(language: Language, state: State) -> After:
    return After(language.world_text(state), language.stack_texts(state), language.commands(state))


def note(findings: Findings, walk: Walk, token: str, what: str) -> None:
    where = f"world {walk.world!r} program {' '.join(walk.program)!r} token {token}"
    findings.disagreements.append((len(walk.program), f"{where}: {what}"))


def host(tree):
    return jax.tree.map(np.asarray, tree)


def stack(trees):
    return jax.tree.map(lambda *leaves: np.stack(leaves), *trees)


def take(tree, row: int, column: int):
    return jax.tree.map(lambda leaf: leaf[row, column], tree)
