"""Plain Python classes as domains."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from reference.comparison import quick_jit
from reference.plain_tangrams import PlainTangrams
from training.tiny_config import tiny_config, tiny_dataset

from vbsix import PythonDomain, get_domain
from vbsix.data.examples import to_arrays
from vbsix.models import Policy
from vbsix.search import Problem, SearchConfig, program_search
from vbsix.testing import check_domain
from vbsix.training.chunk import Members, create_learners, train_chunk

MOST = 2


@pytest.fixture(scope="module")
def tangrams():
    """The built-in domain, and the same in plain Python."""
    return get_domain("tangrams"), PythonDomain(PlainTangrams(MOST))


def test_it_keeps_what_searches_rely_on(tangrams):
    check_domain(tangrams[1], ["1:0 2:3 3:4", "1:2", "1:4 2:3 3:2 4:1 5:0"])


def test_tangrams_in_plain_python_gives_the_same_searches(tangrams):
    config = tiny_config().network
    requests = [("1:0 2:3 3:4", "1:3 2:4", 1), ("1:1 2:0", "1:0", 1), ("1:2 2:4", "", 2)]
    words = jax.random.normal(jax.random.key(1), (MOST, 3, config.word))
    found = []
    # A policy that has learned nothing would hardly find anything.
    liked = 2.0 * np.isin(tangrams[0].tokens, ["all-objects", "index", "ARemove", "1"])
    for domain in tangrams:
        policy = Policy(domain, config, key=jax.random.key(0))

        def search(world, target, instructions, domain=domain, policy=policy):
            tables = policy.prepare(policy.encode(words, jnp.ones((MOST, 3), bool)))
            actor = policy.for_example(domain, tables)
            return program_search(
                domain,
                lambda state, valid: jax.nn.log_softmax(actor(state, valid) + liked),
                None,
                Problem(world, instructions, target),
                jax.random.key(0),
                instructions=MOST,
                config=SearchConfig(beam=64, selection="stochastic", epsilon=0.3, program_beam=3),
            )

        worlds = np.stack([domain.parse_world(world) for world, _, _ in requests])
        targets = [domain.parse_target(target) for _, target, _ in requests]
        targets = jax.tree.map(lambda *leaves: np.stack(leaves), *targets)
        counts = jnp.array([count for _, _, count in requests])
        found.append(quick_jit(jax.vmap(search))(worlds, targets, counts))
        domain.raise_failure()
    (programs, graph), (plain_programs, plain_graph) = found
    hits = np.isfinite(programs.log_probability).any(axis=1)
    assert hits.sum() >= 2, "searches that find nothing would be the same for no good reason"
    np.testing.assert_array_equal(plain_programs.tokens, programs.tokens)
    np.testing.assert_array_equal(plain_graph.expansion.kind, graph.expansion.kind)
    np.testing.assert_array_equal(plain_graph.expansion.representative, graph.expansion.representative)
    np.testing.assert_array_equal(plain_graph.beam.chosen, graph.beam.chosen)
    np.testing.assert_allclose(plain_graph.beam.log_chart, graph.beam.log_chart, atol=1e-4)


@pytest.mark.slow
def test_tangrams_in_plain_python_gives_the_same_training_curve(tangrams):
    config = tiny_config("execution-only", training__learning_rate=0.01)
    dataset = tiny_dataset(config)
    seeds, curves = jnp.array([0]), []
    for domain in tangrams:
        arrays = to_arrays(domain, dataset.examples, dataset.words, 1, config.data.max_words)
        learners = create_learners(domain, config, seeds)
        learners, metrics = train_chunk(
            domain,
            config,
            learners,
            Members(seeds),
            jnp.asarray(dataset.words.vectors),
            jax.tree.map(jnp.asarray, arrays),
            jnp.int32(0),
            steps=4,
            critic_ranks=False,
        )
        curves.append((jax.tree.leaves(learners.networks), metrics))
        domain.raise_failure()
    (networks, metrics), (plain_networks, plain_metrics) = curves
    assert (metrics["hit"].total > 0).all(), "learners that find nothing would stay where they are"
    for name, metric in metrics.items():
        np.testing.assert_allclose(plain_metrics[name].total, metric.total, rtol=1e-3, atol=1e-4, err_msg=name)
    for plain, built_in in zip(plain_networks, networks, strict=True):
        np.testing.assert_allclose(plain, built_in, atol=2e-3)  # Adam makes steps of what is nothing but rounding


def test_threads_number_contexts_and_targets_alike():
    class Slow(PlainTangrams):
        def start(self, context):
            time.sleep(0.01)
            return super().start(context)

    domain, text = PythonDomain(Slow(MOST)), "1:0 2:3 3:4"
    with ThreadPoolExecutor(8) as threads:
        numbers = list(threads.map(lambda _: int(domain.parse_world(text)), range(8)))
    assert numbers == [0] * 8
    assert domain.format_world(domain.parse_world("1:2")) == '"1:2"'
