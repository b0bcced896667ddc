from __future__ import annotations

import jax
import pytest
from cli.conftest import vbsix

__all__ = ["vbsix"]


@pytest.fixture(autouse=True)
def short_measurements(monkeypatch):
    """What is measured does not matter here, only that it is: repeats are few, and compiling is quick."""
    monkeypatch.setattr("vbsix.benchmarks.LEAST_SECONDS", 0.0)
    monkeypatch.setattr("vbsix.benchmarks.REPEATS", 3)
    jax.config.update("jax_disable_most_optimizations", True)
    yield
    jax.config.update("jax_disable_most_optimizations", False)
