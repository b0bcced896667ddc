from __future__ import annotations

import jax
import pytest
from cli.conftest import vbsix

from vbsix.config import presets
from vbsix.config.schema import override

__all__ = ["vbsix"]

TINY = {
    "data.max_words": 3,
    **dict.fromkeys(("network.word", "network.lstm", "network.slot", "network.attribute", "network.token"), 3),
    "network.hidden": 4,
    "search.beam": 4,
    "search.rerank": 6,
    "search.program_beam": 2,
    "search.negatives": 2,
    "training.batch": 2,
    "training.policy_states": 6,
    "training.value_states": 6,
    "run.evaluation_beam": 4,
    "run.evaluation_batch": 3,
}


@pytest.fixture(autouse=True)
def short_measurements(monkeypatch):
    """What is measured does not matter here, only that it is: repeats are few, and compiling is quick."""
    monkeypatch.setattr("vbsix.benchmarks.LEAST_SECONDS", 0.0)
    monkeypatch.setattr("vbsix.benchmarks.REPEATS", 3)
    jax.config.update("jax_disable_most_optimizations", True)
    yield
    jax.config.update("jax_disable_most_optimizations", False)


@pytest.fixture
def tiny_presets(monkeypatch):
    """The paper's settings, shrunk."""
    preset = presets.preset
    monkeypatch.setattr(presets, "preset", lambda *names: override(preset(*names), TINY))
