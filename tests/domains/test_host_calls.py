"""Compiled programs that call Python objects."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.experimental.compilation_cache import compilation_cache

from vbsix.domains import host_calls
from vbsix.domains.host_calls import call_host, number_host


class Multiplier:
    """Multiplies by the detail, and adds the call's number to a second result."""

    def __init__(self):
        self.calls = 0

    def answer(self, call, detail, arguments, results):
        self.calls += 1
        if detail == 13:
            raise ValueError("an unlucky number")
        numbers, vectors = arguments
        results[0][...] = detail * vectors
        results[1][...] = numbers + call


def ask(host: int, detail: int):
    return lambda number, vector: call_host(host, 1, detail, [(3,), ()], number, vector)


NUMBERS, VECTORS = np.arange(4, dtype=np.int32), np.arange(12, dtype=np.int32).reshape(4, 3)


@pytest.mark.parametrize("backend", ["cpu", "gpu"])
def test_one_call_serves_a_batch(monkeypatch, backend):
    """A GPU takes JAX's own callbacks, which work on a CPU, too."""
    host = Multiplier()
    number = number_host(host)
    monkeypatch.setattr(host_calls.jax, "default_backend", lambda: backend)
    products, sums = jax.jit(jax.vmap(ask(number, 5)))(NUMBERS, VECTORS)
    np.testing.assert_array_equal(products, 5 * VECTORS)
    np.testing.assert_array_equal(sums, NUMBERS + 1)
    assert host.calls == 1


def test_an_error_ends_the_program_and_names_itself():
    host = Multiplier()
    with pytest.raises(jax.errors.JaxRuntimeError, match="ValueError: an unlucky number"):
        jax.block_until_ready(jax.jit(ask(number_host(host), 13))(jnp.int32(0), jnp.zeros(3, jnp.int32)))


def test_a_program_is_kept_on_disk(tmp_path):
    """JAX does not keep programs with callbacks of its own."""
    settings = {
        "jax_compilation_cache_dir": str(tmp_path),
        "jax_persistent_cache_min_compile_time_secs": 0.0,
        "jax_persistent_cache_min_entry_size_bytes": -1,
    }
    before = {name: getattr(jax.config, name) for name in settings}
    host = Multiplier()
    function = ask(number_host(host), 7)
    try:
        for name, value in settings.items():
            jax.config.update(name, value)
        compilation_cache.reset_cache()
        for _ in range(2):
            products, _ = jax.jit(function)(jnp.int32(0), jnp.asarray(VECTORS[1]))
            kept = len(list(tmp_path.glob("*-cache")))
            jax.clear_caches()  # the second program comes from the disk
            np.testing.assert_array_equal(products, 7 * VECTORS[1])
    finally:
        for name, value in before.items():
            jax.config.update(name, value)
        compilation_cache.reset_cache()
    assert kept and host.calls == 2
