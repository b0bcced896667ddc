"""What a language in plain Python costs beyond its own `step`: the built-in ones as `PythonDomain` over their twins."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import jax
import numpy as np

from vbsix.domains.python import PythonDomain

REPEATS = 9


class PlainLanguage:
    """A twin as a class that `PythonDomain` takes; a context is the number of a state to begin with."""

    max_tokens_per_instruction = 7
    attributes = {"stack": 4}

    def __init__(self, twin: Any, states: Sequence[Any]):
        self.states, self.step, self.tokens = states, twin.step, tuple(twin.tokens)

    def start(self, context):
        return self.states[context]

    def instructions_done(self, state):
        return len(state.history)

    def denotation(self, state):
        return state.world

    def describe(self, state):
        return {"stack": len(state.stack)}


def bench_python(twin: Any, states: Sequence[Any]) -> dict[str, float]:
    """Measures the first expansion of distinct states, which is the dearest, and the twin's own share in it."""
    domain = PythonDomain(PlainLanguage(twin, states))
    worlds = np.array([domain.parse_world(str(number)) for number in range(len(states))])
    most = 1 + max(len(state.history) for state in states)
    start = jax.jit(jax.vmap(lambda world: domain.start(world, most)))
    expand = jax.jit(jax.vmap(domain.expand))

    def step_all() -> None:
        for state in states:
            for token in domain.tokens:
                twin.step(state, token)

    jax.block_until_ready(expand(start(worlds)))
    whole, own = [], []
    for _ in range(REPEATS):
        fresh = jax.block_until_ready(start(worlds))
        whole.append(_time(lambda fresh=fresh: jax.block_until_ready(expand(fresh))))
        own.append(_time(step_all))
    domain.raise_failure()
    transitions = len(states) * len(domain.tokens)
    beyond = min(spent.processor for spent in whole) - min(spent.processor for spent in own)
    return {
        "python_transitions_per_second": transitions / statistics.median(spent.wall for spent in whole),
        "python_microseconds_beyond_step": 1e6 * beyond / transitions,
    }


class _Spent(NamedTuple):
    """Seconds of a call, and those that the processors were busy with it, whatever else ran on the machine."""

    wall: float
    processor: float


def _time(call: Callable[[], Any]) -> _Spent:
    begin, busy = time.perf_counter(), time.process_time()
    call()
    return _Spent(time.perf_counter() - begin, time.process_time() - busy)
