"""Measuring speed: warm-up apart, median of repeats, with what it was measured on."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from typing import Any, NamedTuple

import jax

REPEATS = 9
FEWEST_REPEATS = 3
LEAST_SECONDS = 0.05
"""A repeat calls the function as often as it takes to last this long."""
MOST_SECONDS = 5.0
"""After this long no repeat is begun, once there are `FEWEST_REPEATS`."""


class Timing(NamedTuple):
    """How long one call takes."""

    seconds: float
    """Median over the repeats."""
    fastest: float
    slowest: float
    compile_seconds: float


def measure(function: Callable[..., Any], *arguments: Any) -> Timing:
    """Times a function of arrays, compiled apart."""
    compiled, compile_seconds = compile_apart(jax.jit(function), *arguments)
    return repeat(lambda: compiled(*arguments), compile_seconds)


def compile_apart(function: Any, *arguments: Any, **options: Any) -> tuple[Any, float]:
    """A jitted function compiled for such arguments, and the seconds that this took."""
    start = time.perf_counter()
    compiled = function.lower(*arguments, **options).compile()
    return compiled, time.perf_counter() - start


def repeat(call: Callable[[], Any], compile_seconds: float) -> Timing:
    """Times calls of what is compiled, after one to warm up."""
    jax.block_until_ready(call())
    calls, repeats, begin = 1, [], time.perf_counter()
    while len(repeats) < FEWEST_REPEATS or (len(repeats) < REPEATS and time.perf_counter() - begin < MOST_SECONDS):
        start = time.perf_counter()
        for _ in range(calls):
            result = call()
        jax.block_until_ready(result)
        seconds = time.perf_counter() - start
        if seconds < LEAST_SECONDS:
            calls, repeats = calls * 2, []
        else:
            repeats.append(seconds / calls)
    return Timing(statistics.median(repeats), min(repeats), max(repeats), compile_seconds)


def peak_memory(compiled: Any) -> int | None:
    """Bytes that a compiled function takes, gives and needs in between, if known, on all devices together.

    What it overwrites counts once.
    """
    sizes = compiled.memory_analysis()
    if sizes is None:
        return None
    taken, given = sizes.argument_size_in_bytes, sizes.output_size_in_bytes - sizes.alias_size_in_bytes
    devices = max(len(sharding.device_set) for sharding in jax.tree.leaves(compiled.output_shardings))
    return devices * (taken + given + sizes.temp_size_in_bytes)
