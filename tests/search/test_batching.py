"""A search gives the same in any company: other rows, other seeds, examples with more instructions."""

from __future__ import annotations

import functools
from dataclasses import replace
from random import Random

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from reference.comparison import Results, analyse, quick_jit
from reference.tables import TableDomain, Tables, random_tables

from vbsix.search import Problem, SearchConfig, search_graph

BATCH, SEEDS, STATES, TOKENS, INSTRUCTIONS, PER_INSTRUCTION = 8, 3, 24, 4, 3, 4
CONFIG = SearchConfig("execution", 4, "epsilon-greedy", 0.2, rerank=6, program_beam=3, negatives=4)


def search(
    tables: Tables, problem: Problem, key: jax.Array, config: SearchConfig = CONFIG, instructions: int = INSTRUCTIONS
) -> Results:
    """Everything about one search with a critic."""
    domain = TableDomain(tables, PER_INSTRUCTION)
    graph = search_graph(domain, domain.policy, domain.critic, problem, key, instructions=instructions, config=config)
    return analyse(domain, graph, problem, config)


def make_batch(seed: int, size: int = BATCH) -> tuple[Tables, Problem, jax.Array]:
    """Examples that differ in everything, the number of instructions included."""
    random = Random(seed)
    systems = [random_tables(random, states=STATES, tokens=TOKENS, instructions=INSTRUCTIONS) for _ in range(size)]
    instructions = np.array([random.randint(1, INSTRUCTIONS) for _ in systems], np.int32)
    targets = np.array([random.randint(0, 2) for _ in systems], np.int32)
    problems = Problem(np.zeros(size, np.int32), instructions, targets)
    return stack(systems), problems, jax.random.split(jax.random.key(seed), size)


def stack(trees):
    return jax.tree.map(lambda *leaves: np.stack(leaves), *trees)


def take(tree, index):
    return jax.tree.map(lambda leaf: leaf[index], tree)


def assert_same(one, other) -> None:
    """Equal decisions, and numbers that are equal within 1e-5."""
    jax.tree.map(lambda left, right: np.testing.assert_allclose(left, right, rtol=1e-5, atol=1e-5), one, other)


TRACES: list[int] = []
"""The size of the batch, for each time that the search was traced."""


@pytest.fixture(scope="module")
def batched():
    def search_batch(tables: Tables, problems: Problem, keys: jax.Array) -> Results:
        TRACES.append(len(keys))
        return jax.vmap(search)(tables, problems, keys)

    return quick_jit(search_batch)


def test_a_search_is_traced_once(batched):
    for seed in range(3):
        jax.block_until_ready(batched(*make_batch(20 + seed)))
    assert TRACES.count(BATCH) == 1


def test_a_row_is_the_same_alone_and_in_a_batch(batched):
    batch = make_batch(1)
    together = batched(*batch)
    assert int(jnp.sum(together.graph.hit)) not in (0, BATCH), "rows are alike"
    for row in range(BATCH):
        alone = slice(row, row + 1)
        assert_same(take(together, alone), batched(*take(batch, alone)))


def test_rows_do_not_influence_each_other(batched):
    """Row 3 stays the same, wherever it stands and whatever the other rows are."""
    batch, others = make_batch(3), make_batch(4)
    mixed = jax.tree.map(lambda other, own: jnp.asarray(other).at[6].set(own[3]), others, batch)
    assert_same(take(batched(*mixed), 6), take(batched(*batch), 3))


def test_a_seed_among_others_gives_what_it_gives_alone(batched):
    """Seeds are a leading axis of the parameters: here of π and V, in systems and problems that all seeds share."""
    batch = tables, problems, _ = make_batch(5)
    seeds = [make_batch(6 + seed) for seed in range(SEEDS)]
    log_policy = jnp.stack([seed[0].log_policy for seed in seeds])
    value = jnp.stack([seed[0].value for seed in seeds])
    keys = jnp.stack([seed[2] for seed in seeds])

    def search_seed(log_policy, value, keys):
        return jax.vmap(search)(tables._replace(log_policy=log_policy, value=value), problems, keys)

    together = quick_jit(jax.vmap(search_seed))(log_policy, value, keys)
    assert not np.array_equal(together.graph.beam.chosen[0], together.graph.beam.chosen[1]), "seeds are alike"
    for seed in range(SEEDS):
        own = batch[0]._replace(log_policy=log_policy[seed], value=value[seed])
        assert_same(take(together, seed), batched(own, problems, keys[seed]))


def search_with_room(instructions: int):
    """For examples of at most so many instructions; without exploration, whose draws depend on the shapes."""
    config = replace(CONFIG, epsilon=0.0)
    return quick_jit(jax.vmap(functools.partial(search, config=config, instructions=instructions)))


@pytest.mark.slow
def test_room_for_more_instructions_changes_nothing():
    """An example gives the same whether or not others of its batch have more instructions."""
    instructions = INSTRUCTIONS - 1
    tables, problems, keys = make_batch(9, size=32)
    problems = problems._replace(instructions=np.full(32, instructions, np.int32))
    tight, roomy = (search_with_room(room)(tables, problems, keys) for room in (instructions, INSTRUCTIONS))
    length = instructions * PER_INSTRUCTION
    assert_same(tight.graph, jax.tree.map(lambda leaf: leaf[:, :length], roomy.graph))
    for name in ("tokens", "vertices"):
        for found, padded in ((tight.programs, roomy.programs), (tight.negatives.programs, roomy.negatives.programs)):
            assert_same(getattr(found, name), getattr(padded, name)[..., :length])
            assert (getattr(padded, name)[..., length:] == -1).all()
    assert_same(tight.programs.log_probability, roomy.programs.log_probability)
    assert_same(tight.negatives.dropped, roomy.negatives.dropped)
    assert_same(tight.statistics.paths, roomy.statistics.paths)
    assert_same(tight.critic_window_share, roomy.critic_window_share[:, :length])
    assert_same(tight.statistics.correct_discarded, roomy.statistics.correct_discarded)
