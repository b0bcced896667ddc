"""Methods, from data to accuracy, in runs that are nearly all compiling."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from training.tiny import Watcher, run_tiny, tiny_config

from vbsix.training.config import AS_PUBLISHED, METHODS
from vbsix.training.task import load_task

COMBINATIONS = [
    ("scene", "vbsix"),
    ("alchemy", "mml"),
    ("tangrams", "expert-mml"),
    ("tangrams", "reinforce"),
]
"""Each domain, and each method but those between the first two, of which `test_step.py` sees the loss fall; the slow
test has them all, and those as published."""


def test_no_method_is_forgotten():
    between = {"execution-only", "value-only"}
    assert {method for _, method in COMBINATIONS} == METHODS.keys() - between - set(AS_PUBLISHED)


@pytest.fixture(scope="module")
def few_rows(scone_data, glove_file, tmp_path_factory):
    """The first rows of SCONE's files: to make arrays of all, and to evaluate on them, takes seconds each time."""
    folder = tmp_path_factory.mktemp("scone")
    for file in scone_data.glob("*.tsv"):
        with file.open(encoding="utf-8") as lines:
            (folder / file.name).write_text("".join(itertools.islice(lines, 50)), encoding="utf-8")
    (folder / glove_file.name).symlink_to(glove_file.resolve())
    return folder


@pytest.mark.parametrize(("domain", "method"), COMBINATIONS)
def test_each_method_runs_on_scone(tmp_path, few_rows, domain, method):
    check_run(tmp_path, few_rows, domain, method)


@pytest.mark.parametrize("domain", ["scene", "alchemy", "tangrams"])
def test_all_of_scone_can_be_learned_from(scone_data, domain):
    task = load_task(tiny_config(domain=domain), str(scone_data))
    for split, examples in ("train", task.examples), ("dev", task.splits["dev"].examples(1)):
        rows = (scone_data / f"{domain}-{split}.tsv").read_text(encoding="utf-8").splitlines()
        arrays = task.arrays(examples)
        assert len(arrays.words) == len(arrays.target) == len(rows)
        assert arrays.words.any(axis=(1, 2)).mean() > 0.99


def check_run(tmp_path, data, domain, method):
    watcher = Watcher()
    config = tiny_config(method, domain, training__steps=2)
    trained = run_tiny(tmp_path / "run", config, (0,), watcher, source=str(data))
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
    check_run(tmp_path, scone_data, domain, method)
