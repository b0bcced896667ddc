"""Every method, from data to accuracy, in runs that are nearly all compiling."""

from __future__ import annotations

import numpy as np
import pytest
from training.tiny import Watcher, run_tiny, tiny_config

from vbsix.training.config import METHODS

COMBINATIONS = [
    ("scene", "vbsix"),
    ("scene", "expert-mml"),
    ("alchemy", "mml"),
    ("alchemy", "value-only"),
    ("tangrams", "execution-only"),
    ("tangrams", "reinforce"),
    ("scene", "paper-vbsix"),
    ("tangrams", "paper-mml"),
]
"""Each method and each domain at least once; the slow test has them all."""


def test_no_method_is_forgotten():
    assert {method for _, method in COMBINATIONS} == METHODS.keys()


@pytest.mark.parametrize(("domain", "method"), COMBINATIONS)
def test_each_method_runs_on_scone(tmp_path, scone_data, domain, method):
    watcher = Watcher()
    config = tiny_config(method, domain, training__steps=2)
    trained = run_tiny(tmp_path / "run", config, (0,), watcher, source=str(scone_data))
    assert trained.accuracies.keys() == {"dev"}
    assert all(np.isfinite(row["policy_loss"]) for row in watcher.rows)
    assert ("critic_loss" in watcher.rows[0]) == (method in ("vbsix", "paper-vbsix", "value-only"))
    assert ("expert_loss" in watcher.rows[0]) == (method == "expert-mml")
    assert ("reward" in watcher.rows[0]) == (method == "reinforce")


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("domain", ["scene", "alchemy", "tangrams"])
@pytest.mark.parametrize("method", METHODS)
def test_every_method_runs_on_every_domain_of_scone(tmp_path, scone_data, domain, method):
    test_each_method_runs_on_scone(tmp_path, scone_data, domain, method)
