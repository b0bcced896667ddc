from __future__ import annotations

import jax
import jax.numpy as jnp
import pytest

from vbsix import benchmarks


@pytest.mark.parametrize(("most_seconds", "repeats"), [(60.0, 5), (0.0, 3)])
def test_what_takes_long_is_repeated_less(monkeypatch, most_seconds, repeats):
    monkeypatch.setattr(benchmarks, "REPEATS", 5)
    monkeypatch.setattr(benchmarks, "MOST_SECONDS", most_seconds)
    calls = []
    timing = benchmarks.repeat(lambda: calls.append(None), 2.5)
    assert len(calls) == 1 + repeats
    assert 0 < timing.fastest <= timing.seconds <= timing.slowest
    assert timing.compile_seconds == 2.5


def test_memory_that_is_overwritten_counts_once():
    def peak(**options) -> int:
        compiled, _ = benchmarks.compile_apart(jax.jit(lambda x: x + 1, **options), jnp.zeros(1000))
        return benchmarks.peak_memory(compiled) or 0

    assert peak() >= 8000
    assert peak(donate_argnums=0) == peak() - 4000
