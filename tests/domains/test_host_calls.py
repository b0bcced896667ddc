"""Compiled programs that call Python objects."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
import weakref
from concurrent.futures import ThreadPoolExecutor

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


def test_programs_in_threads_call_their_own_objects():
    hosts = [Multiplier() for _ in range(4)]
    functions = [jax.jit(jax.vmap(ask(number_host(host), 2 + place))) for place, host in enumerate(hosts)]
    with ThreadPoolExecutor(8) as pool:
        calls = [pool.submit(functions[place % 4], NUMBERS, VECTORS) for place in range(64)]
    for place, call in enumerate(calls):
        np.testing.assert_array_equal(call.result()[0], (2 + place % 4) * VECTORS)
    assert [host.calls for host in hosts] == [16] * 4


def test_arrays_may_be_empty():
    host = Multiplier()
    number = number_host(host)
    function = jax.jit(lambda one, none: call_host(number, 1, 5, [(0,), ()], one, none))
    products, total = function(jnp.int32(3), jnp.zeros(0, jnp.int32))
    assert (products.shape, int(total), host.calls) == ((0,), 4, 1)


def test_an_object_is_not_kept_alive_and_missed_by_name():
    host = Multiplier()
    function = jax.jit(ask(number_host(host), 5))
    known = weakref.ref(host)
    del host
    gc.collect()
    assert known() is None
    with pytest.raises(jax.errors.JaxRuntimeError, match="ReferenceError: a program was run whose object is gone"):
        jax.block_until_ready(function(jnp.int32(0), jnp.zeros(3, jnp.int32)))


LANGUAGES = """
import sys
import jax, numpy as np
from vbsix import PythonDomain

class Adder:
    tokens, max_tokens_per_instruction, attributes = ("add",), 1, {"sum": 100}
    start = lambda self, context: (context, 0)
    step = lambda self, state, token: (state[0] + self.added, state[1] + 1)
    instructions_done = lambda self, state: state[1]
    denotation = lambda self, state: state[0]
    describe = lambda self, state: {"sum": state[0]}

made = [PythonDomain(type("Adder", (Adder,), {"added": int(added)})) for added in sys.argv[1:]]
for domain in made:
    worlds = np.array([domain.parse_world(str(number)) for number in range(3)])
    first = jax.jit(jax.vmap(lambda world: domain.start(world, 1)))(worlds)
    rows, _ = jax.jit(jax.vmap(domain.expand))(first)
    print(*[domain.world(row) for row in np.asarray(rows)[:, 0]], end=";")
"""


@pytest.mark.integration
def test_a_program_from_disk_calls_the_language_of_its_process(tmp_path):
    """Another version of a class, and two classes in another order, share compiled programs and nothing else."""
    kept = {
        "JAX_COMPILATION_CACHE_DIR": str(tmp_path),
        "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
        "JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES": "-1",
    }

    def run(*added: str) -> tuple[str, set[str]]:
        command = [sys.executable, "-c", LANGUAGES, *added]
        out = subprocess.run(command, env={**os.environ, **kept}, check=True, capture_output=True, text=True).stdout
        return out, {path.name for path in tmp_path.glob("*-cache")}

    first, programs = run("1", "10")
    second, same_programs = run("10", "5")
    assert (first, second) == ("1 2 3;10 11 12;", "10 11 12;5 6 7;")
    assert programs and same_programs == programs


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
