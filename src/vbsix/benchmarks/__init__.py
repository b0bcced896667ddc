"""Measuring speed: warm-up apart, median of repeats, with what it was measured on."""

from __future__ import annotations

import os
import platform
import statistics
import time
from collections.abc import Callable
from importlib.metadata import version
from typing import Any, NamedTuple

import jax

from vbsix import __version__

REPEATS = 9
LEAST_SECONDS = 0.05
"""A repeat calls the function as often as it takes to last this long."""


class Timing(NamedTuple):
    """How long one call takes."""

    seconds: float
    """Median over the repeats."""
    fastest: float
    slowest: float
    compile_seconds: float


def measure(function: Callable[..., Any], *arguments: Any) -> Timing:
    """Times a function of arrays, compiled apart."""
    start = time.perf_counter()
    compiled = jax.jit(function).lower(*arguments).compile()
    compile_seconds = time.perf_counter() - start
    jax.block_until_ready(compiled(*arguments))
    calls, repeats = 1, []
    while len(repeats) < REPEATS:
        start = time.perf_counter()
        for _ in range(calls):
            result = compiled(*arguments)
        jax.block_until_ready(result)
        seconds = time.perf_counter() - start
        if seconds < LEAST_SECONDS:
            calls, repeats = calls * 2, []
        else:
            repeats.append(seconds / calls)
    return Timing(statistics.median(repeats), min(repeats), max(repeats), compile_seconds)


def environment() -> dict[str, Any]:
    """What a figure was measured on."""
    device = jax.devices()[0]
    packages = {name: version(name) for name in ("jax", "jaxlib", "numpy")}
    return {
        "device": f"{device.platform}: {device.device_kind}",
        "processor": platform.processor() or platform.machine(),
        "cores": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count(),
        "versions": {"vbsix": __version__, "python": platform.python_version(), **packages},
    }
