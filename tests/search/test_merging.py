"""Merging by hash tables against dictionaries."""

from __future__ import annotations

import math
from collections import defaultdict

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from vbsix.search import merging
from vbsix.search.merging import (
    _look_up_at_once,
    _places,
    best_of_group,
    lookup,
    merge_prefixes,
    representatives,
)

COUNT, QUERIES = 24, 16
PLACES = 1 << 16
"""A power of two, no smaller than the hash tables of these tests."""

compiled_representatives = jax.jit(representatives)
compiled_lookup = jax.jit(lookup)
compiled_merge = jax.jit(merge_prefixes)
compiled_best = jax.jit(best_of_group)


def colliding(number: int) -> tuple[int, int]:
    """Different keys that belong to the same place in every table: both lanes are equal in their low bits."""
    return 5 + number * PLACES, 9 + number * 3 * PLACES


any_key = st.tuples(st.integers(0, 2**32 - 1), st.integers(0, 2**32 - 1))
few_keys = st.tuples(st.integers(0, 2), st.integers(0, 2))
"""They differ in one lane only, now and then, and there are duplicates."""
colliding_keys = st.integers(0, 3).map(colliding)
keys_strategy = st.one_of(any_key, few_keys, colliding_keys)


def lists(of, size: int):
    return st.lists(of, min_size=size, max_size=size)


def as_keys(keys: list[tuple[int, int]]) -> np.ndarray:
    return np.array(keys, np.uint32).reshape(-1, 2)


def first_of_each(keys, live) -> dict[tuple[int, int], int]:
    """The first live index of each key."""
    first = {}
    for index, (key, alive) in enumerate(zip(keys, live, strict=True)):
        if alive:
            first.setdefault(key, index)
    return first


@given(keys=lists(keys_strategy, COUNT), live=lists(st.booleans(), COUNT))
def test_representatives(keys, live):
    first = first_of_each(keys, live)
    expected = [first[key] if alive else index for index, (key, alive) in enumerate(zip(keys, live, strict=True))]
    assert compiled_representatives(as_keys(keys), np.array(live)).tolist() == expected


@given(
    keys=lists(keys_strategy, COUNT),
    live=lists(st.booleans(), COUNT),
    queries=lists(keys_strategy, QUERIES),
    known=lists(st.integers(0, COUNT - 1), QUERIES),
)
def test_lookup(keys, live, queries, known):
    queries = queries[: QUERIES // 2] + [keys[index] for index in known[QUERIES // 2 :]]
    first = first_of_each(keys, live)
    found = compiled_lookup(as_keys(keys), np.array(live), as_keys(queries))
    assert found.tolist() == [first.get(query, -1) for query in queries]


@given(numbers=lists(st.integers(0, COUNT - 1), COUNT), live=lists(st.booleans(), COUNT))
def test_however_many_keys_want_the_same_place_each_gets_one(numbers, live):
    keys = [colliding(number) for number in numbers]
    first = first_of_each(keys, live)
    expected = [first[key] if alive else index for index, (key, alive) in enumerate(zip(keys, live, strict=True))]
    assert compiled_representatives(as_keys(keys), np.array(live)).tolist() == expected
    found = compiled_lookup(as_keys(keys), np.array(live), as_keys(keys)).tolist()
    assert found == [first.get(key, -1) for key in keys]


def test_rows_of_a_batch_are_independent():
    """One row needs as many tables as it has keys, one needs one, one has no live key and needs none."""
    worst = as_keys([colliding(number) for number in range(COUNT)])
    keys = np.stack([worst, np.repeat(worst[:1], COUNT, axis=0), worst])
    live = np.array([[True] * COUNT, [True] * COUNT, [False] * COUNT])
    own, none = list(range(COUNT)), [-1] * COUNT
    assert jax.vmap(compiled_representatives)(keys, live).tolist() == [own, [0] * COUNT, own]
    assert jax.vmap(compiled_lookup)(keys, live, keys).tolist() == [own, [0] * COUNT, none]


def test_the_collisions_are_real():
    """The keys of these tests do share their places, as long as the tables are built as they are."""
    keys = jnp.array(as_keys([colliding(number) for number in range(COUNT)]))
    assert len({tuple(key) for key in keys.tolist()}) == COUNT
    for number in range(1, COUNT + 1):
        assert len(set(_places(keys, PLACES, jnp.uint32(number)).tolist())) == 1


def test_many_random_keys():
    """As many keys as a search of the paper's size merges, half of them twice."""
    random = np.random.default_rng(0)
    keys = random.integers(0, 2**32, (600, 2), dtype=np.uint32)
    keys = keys[random.permutation(np.concatenate([np.arange(600), np.arange(600)]))]
    first = first_of_each([tuple(key) for key in keys.tolist()], [True] * 1200)
    expected = [first[tuple(key)] for key in keys.tolist()]
    assert compiled_representatives(keys, np.ones(1200, bool)).tolist() == expected
    assert compiled_lookup(keys, np.ones(1200, bool), keys).tolist() == expected


def test_all_tables_at_once_find_the_same():
    """What a GPU does, on random keys of which some are not live; there it is that keys may be missed."""
    random = np.random.default_rng(1)
    keys = random.integers(0, 2**32, (600, 2), dtype=np.uint32)[random.integers(0, 600, 1500)]
    live = random.random(1500) < 0.7
    queries = np.concatenate([keys, random.integers(0, 2**32, (300, 2), dtype=np.uint32)])
    first = first_of_each([tuple(key) for key in keys.tolist()], live)
    found = jax.jit(_look_up_at_once)(keys, live, queries)
    assert found.tolist() == [first.get(tuple(key), -1) for key in queries.tolist()]


def test_a_key_that_is_not_found_stands_for_itself(monkeypatch):
    monkeypatch.setattr(merging, "lookup", lambda keys, live, queries: jnp.full(len(queries), -1, jnp.int32))
    keys, live = jnp.array(as_keys([(1, 2), (1, 2), (3, 4)])), jnp.array([True, True, False])
    assert representatives(keys, live).tolist() == [0, 1, 2]


def by_group(groups: list[int]) -> list[int]:
    """Groups as `representatives` gives them: each is named by the index of its first member."""
    first = {}
    return [first.setdefault(group, index) for index, group in enumerate(groups)]


values_strategy = st.one_of(
    st.just(-math.inf), st.floats(-120, 0, width=32, allow_subnormal=False), st.sampled_from([-1.0, -2.0])
)


@given(values=lists(values_strategy, COUNT), groups=lists(st.integers(0, 5), COUNT))
def test_log_sum_by_group(values, groups):
    group = by_group(groups)
    total = defaultdict(float)
    for value, index in zip(values, group, strict=True):
        total[index] += math.exp(value)
    found = compiled_merge(np.array(values, np.float32), np.arange(COUNT, dtype=np.float32), np.array(group, np.int32))
    for index in range(COUNT):
        expected = math.log(total[index]) if total[index] else -math.inf
        assert found.log_sum[index] == pytest.approx(expected, abs=1e-4)
        members = [one for one in range(COUNT) if group[one] == index and values[one] > -math.inf]
        assert found.paths[index] == sum(members)


@given(values=lists(values_strategy, COUNT), groups=lists(st.integers(0, 5), COUNT))
def test_best_of_group(values, groups):
    group = by_group(groups)
    found = compiled_best(np.array(values, np.float32), np.array(group, np.int32)).tolist()
    for name in set(group):
        members = [index for index in range(COUNT) if group[index] == name]
        assert found[name] == max(members, key=lambda index: (values[index], -index))


def test_log_sum_of_tiny_probabilities():
    """Thirty-five tokens of a nearly uniform policy are beyond what a float32 can hold as a probability."""
    found = compiled_merge(np.full(COUNT, -500, np.float32), np.ones(COUNT, np.float32), np.zeros(COUNT, np.int32))
    assert found.log_sum[0] == pytest.approx(-500 + math.log(COUNT), abs=1e-4)
