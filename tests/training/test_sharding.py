"""A batch sharded over several devices: the cores of a CPU, each treated as one."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from training.tiny_config import tiny_config, tiny_dataset

from vbsix.domains.python import PythonDomain
from vbsix.domains.registry import get_domain
from vbsix.evaluation.accuracy import predict_batch
from vbsix.search import sharding
from vbsix.training.chunk import Members, create_learners, train_chunk
from vbsix.utilities.errors import VbsixError

pytestmark = pytest.mark.integration


DEVICES = 4


def train_and_predict(method: str):
    """Learners after a few steps, their metrics, what they predict, and on how many devices they are trained."""
    config = tiny_config(method, training__learning_rate=0.01)
    dataset, seeds = tiny_dataset(config), jnp.arange(2)
    data = jnp.asarray(dataset.words.vectors), jax.tree.map(jnp.asarray, dataset.arrays(dataset.examples))
    learners = create_learners(dataset.domain, config, seeds)
    learners, *given = sharding.replicate((learners, Members(seeds), *data), dataset.domain, config.training.batch)
    ranks = config.training.critic
    for first in (0, 2):
        learners, metrics = train_chunk(
            dataset.domain, config, learners, *given, jnp.int32(first), steps=2, critic_ranks=ranks
        )
    assert train_chunk._cache_size() == 1, "what a chunk gives fits the next one"
    taken = len(learners.networks.policy.tokens.sharding.device_set)
    learners = sharding.to_host(learners)
    vectors, examples = data
    some = jax.tree.map(lambda leaf: leaf[:18], examples)  # on another number of devices than in training
    tokens, *_ = predict_batch(dataset.domain, learners.networks.policy, vectors, some, beam=4)
    return jax.tree.map(np.asarray, (learners, metrics, tokens)), taken


def compare(method: str):
    """Run in a process of its own, which sees several devices."""
    (*sharded, tokens), taken = train_and_predict(method)
    assert (jax.device_count(), taken) == (DEVICES, DEVICES)
    sharding.count_devices = lambda *_, **__: 1
    jax.clear_caches()
    (*alone, expected), taken = train_and_predict(method)
    assert taken == 1
    np.testing.assert_array_equal(tokens, expected)
    # Adam makes steps of rounding, a tenth as large as those of gradients.
    jax.tree.map(lambda one, other: np.testing.assert_allclose(one, other, rtol=1e-3, atol=4e-3), sharded, alone)


def resume(folder: str):
    """Likewise."""
    from training.tiny import Watcher, outcome, run_tiny

    from vbsix.runs.loop import Interrupted

    run_tiny(Path(folder, "whole"))
    try:
        run_tiny(Path(folder, "parts"), watcher=Watcher(stop_at=4))
    except Interrupted:
        run_tiny(Path(folder, "parts"))
    assert outcome(Path(folder, "whole")) == outcome(Path(folder, "parts"))


def run_with_devices(call: str) -> None:
    flags = f"{os.environ['XLA_FLAGS']} --xla_force_host_platform_device_count={DEVICES}"
    tests = str(Path(__file__).parents[1])
    environment = os.environ | {"XLA_FLAGS": flags, "PYTHONPATH": os.pathsep.join([tests, *sys.path])}
    code = f"import training.test_sharding as tests; tests.{call}"
    subprocess.run([sys.executable, "-c", code], env=environment, check=True)


@pytest.mark.slow
@pytest.mark.parametrize("method", ["vbsix", "expert-mml", "reinforce"])
def test_several_devices_learn_and_predict_as_one_does(method):
    run_with_devices(f"compare({method!r})")


@pytest.mark.slow
def test_a_run_goes_on_as_if_it_had_not_been_stopped(tmp_path):
    run_with_devices(f"resume({str(tmp_path)!r})")


def test_a_batch_is_sharded_evenly_unless_the_domain_has_callbacks(monkeypatch):
    monkeypatch.setattr(sharding, "_devices", lambda everywhere: [[None] * 6])
    domain, own = get_domain("tangrams"), PythonDomain(Counter)
    assert [sharding.count_devices(domain, size) for size in (8, 1, 64, 12, 7)] == [4, 1, 4, 6, 1]
    assert sharding.count_devices(own, 12) == 6
    own.compiled = False
    assert sharding.count_devices(own, 12) == 1
    monkeypatch.setattr(jax, "default_backend", lambda: "gpu")
    assert sharding.count_devices(domain, 12) == 1


def test_a_batch_is_divided_among_all_processes(monkeypatch):
    domain = get_domain("tangrams")
    monkeypatch.setattr(
        sharding, "_devices", lambda everywhere: [[None] * 4, [None] * 3] if everywhere else [[None] * 4]
    )
    for backend in ("cpu", "gpu"):
        monkeypatch.setattr(jax, "default_backend", lambda backend=backend: backend)
        assert [sharding.count_devices(domain, size) for size in (8, 12, 2)] == [2, 3, 1], "of each process"
        with pytest.raises(VbsixError, match=r"training\.batch=7 cannot be divided evenly among 2 processes"):
            sharding.count_devices(domain, 7)
    assert sharding.count_devices(domain, 8, everywhere=False) == 1


class Counter:
    """A language that is no more than a language must be."""

    tokens = ("more",)
    max_tokens_per_instruction = 1

    def start(self, context):
        return context

    def step(self, state, token):
        return state + 1

    def instructions_done(self, state):
        return state

    def denotation(self, state):
        return state
