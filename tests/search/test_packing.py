"""A loop that records into one array, against one that does not."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from vbsix.domains.registry import get_domain
from vbsix.models.layers import renormalise
from vbsix.search import Problem, SearchConfig, search_graph
from vbsix.search.packing import scan_packed


@pytest.fixture(autouse=True)
def on_a_gpu(monkeypatch):
    """Where there is one, arrays are packed."""
    monkeypatch.setattr(jax, "default_backend", lambda: "gpu")


def body(total, step):
    total = total + step
    recorded = {
        "flags": jnp.stack([total > 2, total > 4]),
        "small": jnp.array([[-1, 2]], jnp.int8) * total.astype(jnp.int8),
        "half": total.astype(jnp.float16) / 3,
        "float": jnp.stack([-jnp.inf, -total, jnp.nan]),
        "whole": -total.astype(jnp.int32),
        "words": total.astype(jnp.uint32) + jnp.uint32(2**32 - 3),
        "nothing": jnp.zeros((0, 3)),
    }
    return total, recorded


def test_it_records_what_a_scan_does():
    arguments = body, jnp.float32(0), jnp.arange(5.0)
    (total, found), (expected_total, expected) = scan_packed(*arguments), jax.lax.scan(*arguments)
    assert total == expected_total
    jax.tree.map(np.testing.assert_array_equal, found, expected)
    assert jax.tree.map(lambda leaf: leaf.dtype, found) == jax.tree.map(lambda leaf: leaf.dtype, expected)


def test_it_can_be_batched():
    found = jax.vmap(lambda start: scan_packed(body, start, jnp.arange(5.0))[1])(jnp.arange(3.0))
    expected = jax.vmap(lambda start: jax.lax.scan(body, start, jnp.arange(5.0))[1])(jnp.arange(3.0))
    jax.tree.map(np.testing.assert_array_equal, found, expected)


@pytest.mark.parametrize("backend", ["cpu", "gpu"])
@pytest.mark.parametrize("end", [0, 2, 5])
def test_it_can_stop_early(monkeypatch, backend, end):
    monkeypatch.setattr(jax, "default_backend", lambda: backend)
    rest = jax.tree.map(lambda leaf: leaf[0], jax.lax.scan(body, jnp.float32(7), jnp.arange(1.0))[1])

    @jax.jit
    def found(end):
        return jax.vmap(lambda start: scan_packed(body, start, jnp.arange(5.0), end=end, rest=rest))(jnp.arange(3.0))

    for place, start in enumerate(range(3)):
        total, expected = jax.lax.scan(body, jnp.float32(start), jnp.arange(float(end)))
        expected = jax.tree.map(
            lambda run, rest: np.concatenate([run, np.repeat(np.asarray(rest)[None], 5 - end, axis=0)]), expected, rest
        )
        totals, records = found(jnp.int32(end))
        assert totals[place] == total
        jax.tree.map(
            lambda one, other, place=place: np.testing.assert_array_equal(one[place], other), records, expected
        )


def test_a_loop_becomes_one_array():
    jaxpr = jax.make_jaxpr(lambda: scan_packed(body, jnp.float32(0), jnp.arange(5.0)))()
    (loop,) = [equation for equation in jaxpr.eqns if equation.primitive.name == "scan"]
    assert len(loop.outvars) == 2, "the carry, and all that was recorded"


@pytest.mark.parametrize("space", [pytest.param("program", marks=pytest.mark.slow), "execution"])
def test_a_search_is_the_same(monkeypatch, space):
    domain = get_domain("tangrams")
    problem = Problem(domain.parse_world("1:0 2:3 3:4"), jnp.int32(1), domain.parse_target("1:0 2:4"))
    config = SearchConfig(space=space, beam=4, selection="stochastic", epsilon=0.1)

    def even(state, valid):
        return renormalise(jnp.zeros(len(domain.tokens)), valid)

    def search():
        return search_graph(domain, even, None, problem, jax.random.key(0), instructions=1, config=config)

    packed = search()
    monkeypatch.setattr(jax, "default_backend", lambda: "cpu")
    jax.tree.map(np.testing.assert_array_equal, packed, search())
