"""Speed of the executors: transitions a second, a transition being one (state, token) with successor and key."""

from __future__ import annotations

import importlib
import importlib.util
import random
import sys
import time
from pathlib import Path
from types import ModuleType
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from vbsix.benchmarks import measure
from vbsix.benchmarks.python import bench_python
from vbsix.domains.base import Domain, State
from vbsix.domains.registry import get_domain
from vbsix.utilities.machine import environment

STATES = 2048
"""States expanded in one call; the paper's search expands 32 for each of 8 examples and 6 seeds, 1536."""
INSTRUCTIONS = 5
REFERENCE_SECONDS = 0.5
WORLDS = {
    "scene": "1:__ 2:r_ 3:__ 4:by 5:gg 6:__ 7:__ 8:p_ 9:__ 10:yo",
    "alchemy": "1:ggg 2:_ 3:yo 4:rr 5:b 6:_ 7:oooo",
    "tangrams": "1:0 2:3 3:4 4:1 5:2",
}


def bench_executor(name: str) -> dict[str, Any]:
    """Measures one domain's compiled executor and its plain-Python twin in the same run."""
    domain = get_domain(name)
    states = random_states(domain, WORLDS[name])

    def transitions(states: State):
        successors, valid = jax.vmap(domain.expand)(states)
        return successors, valid, jax.vmap(jax.vmap(domain.key))(successors)

    timing = measure(transitions, states)
    without_keys = measure(jax.vmap(domain.expand), states)
    count = STATES * len(domain.tokens)
    reference = reference_speed(name)
    speed = count / timing.seconds
    return {
        "transitions_per_second": speed,
        "reference_transitions_per_second": reference,
        "times_reference": speed / reference if reference else None,
        **python_speed(name),
        "transitions_per_second_without_keys": count / without_keys.seconds,
        "fastest_transitions_per_second": count / timing.fastest,
        "slowest_transitions_per_second": count / timing.slowest,
        "bytes_written_per_transition": _successor_bytes(states),
        "compile_seconds": timing.compile_seconds,
        "states": STATES,
        "tokens": len(domain.tokens),
        **environment(),
    }


def random_states(domain: Domain, world: str) -> State:
    """States of all lengths, met on random walks from one world."""
    draw = np.random.default_rng(0)
    expand = jax.jit(jax.vmap(domain.expand))
    start = domain.start(domain.parse_world(world), INSTRUCTIONS)
    states = jax.tree.map(lambda leaf: jnp.broadcast_to(leaf, (STATES, *leaf.shape)), start)
    stop = draw.integers(0, INSTRUCTIONS * domain.max_tokens_per_instruction, STATES)
    for length in range(stop.max()):
        successors, valid = jax.tree.map(np.asarray, expand(states))
        token = np.argmax(valid * draw.random(valid.shape), axis=1)
        moves = valid.any(axis=1) & (length < stop)
        states = jax.tree.map(
            lambda new, old, moves=moves, token=token: np.where(moves[:, None], new[np.arange(STATES), token], old),
            successors,
            jax.tree.map(np.asarray, states),
        )
    return jax.tree.map(jnp.asarray, states)


def python_speed(name: str) -> dict[str, float | None]:
    """The twin as a `PythonDomain`; None where it is not installed."""
    module = _reference_module()
    if module is None:
        return {"python_transitions_per_second": None, "python_microseconds_beyond_step": None}
    twin, draw = module.Language(name), random.Random(0)
    states = [twin.start(WORLDS[name])]
    seen = set(states)
    while len(states) < STATES:  # each distinct state, and some way from the start
        successors = [twin.step(draw.choice(states), token) for token in twin.tokens]
        for successor in successors:
            if successor is not None and successor not in seen and len(successor.history) < INSTRUCTIONS:
                seen.add(successor)
                states.append(successor)
    return dict(bench_python(twin, states[:STATES]))


def reference_speed(name: str) -> float | None:
    """Transitions a second of the plain-Python twin; None where it is not installed with the package."""
    module = _reference_module()
    if module is None:
        return None
    language = module.Language(name)
    draw, count, start = random.Random(0), 0, time.perf_counter()
    while (seconds := time.perf_counter() - start) < REFERENCE_SECONDS:
        state = language.start(WORLDS[name])
        for _ in range(INSTRUCTIONS * 7):
            successors = [language.step(state, token) for token in language.tokens]
            count += len(successors)
            valid = [successor for successor in successors if successor is not None]
            if not valid:
                break
            state = draw.choice(valid)
    return count / seconds


def _reference_module() -> ModuleType | None:
    """The twin: a wheel carries a copy; in a checkout it is with the tests."""
    if importlib.util.find_spec("vbsix._reference"):
        return importlib.import_module("vbsix._reference.language")
    path = Path(__file__).parents[3] / "tests" / "reference" / "language.py"
    if not path.is_file():
        return None
    spec = importlib.util.spec_from_file_location("vbsix_reference_language", path)
    assert spec and spec.loader
    module = sys.modules[spec.name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _successor_bytes(states: State) -> int:
    """Successor, validity and key."""
    one = jax.tree.map(lambda leaf: leaf[0], states)
    return sum(leaf.nbytes for leaf in jax.tree.leaves(one)) + 1 + 8
