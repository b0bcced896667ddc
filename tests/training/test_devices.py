"""A batch shared out among several devices: the cores of a CPU, each taken for one."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
from training.tiny import tiny_config

from vbsix.domains.python import PythonDomain
from vbsix.domains.registry import get_domain
from vbsix.training import devices
from vbsix.training.chunk import create_learners, predict_batch, train_chunk
from vbsix.training.task import SYNTHETIC, load_task

DEVICES = 2


def train_and_predict():
    """Learners after a few steps with a critic, their metrics, what they predict, and on how many devices they are."""
    config = tiny_config(training__learning_rate=0.01)
    task = load_task(config, SYNTHETIC)
    seeds, vectors = jnp.arange(2), jnp.asarray(task.words.vectors)
    examples = jax.tree.map(jnp.asarray, task.arrays(task.examples))
    learners = create_learners(task.domain, config, seeds)
    learners = devices.put_on_all(learners, task.domain, config.training.batch)
    learners, metrics = train_chunk(
        task.domain, config, learners, seeds, vectors, examples, jnp.int32(0), steps=3, critic_ranks=True
    )
    programs = predict_batch(task.domain, learners.networks.policy, vectors, examples, beam=4)
    taken = len(learners.networks.policy.tokens.sharding.device_set)
    return jax.tree.map(np.asarray, (learners, metrics, programs.tokens)), taken


def compare():
    """Run in a process of its own, which sees several devices."""
    (*shared, tokens), taken = train_and_predict()
    assert (jax.device_count(), taken) == (DEVICES, DEVICES)
    devices.count_devices = lambda domain, size: 1
    jax.clear_caches()
    (*alone, expected), taken = train_and_predict()
    assert taken == 1
    np.testing.assert_array_equal(tokens, expected)
    # Adam makes steps of rounding, a tenth as large as those of gradients.
    jax.tree.map(lambda one, other: np.testing.assert_allclose(one, other, rtol=1e-3, atol=3e-3), shared, alone)


def test_two_devices_learn_and_predict_as_one_does():
    flags = f"{os.environ['XLA_FLAGS']} --xla_force_host_platform_device_count={DEVICES}"
    tests = str(Path(__file__).parents[1])
    environment = os.environ | {"XLA_FLAGS": flags, "PYTHONPATH": os.pathsep.join([tests, *sys.path])}
    code = "from training.test_devices import compare; compare()"
    subprocess.run([sys.executable, "-c", code], env=environment, check=True)


def test_a_batch_is_shared_out_evenly_unless_the_host_is_asked(monkeypatch):
    monkeypatch.setattr(jax, "device_count", lambda: 6)
    domain = get_domain("tangrams")
    assert [devices.count_devices(domain, size) for size in (8, 1, 64, 12)] == [2, 1, 2, 6]
    assert devices.count_devices(PythonDomain(Counter), 12) == 1


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
