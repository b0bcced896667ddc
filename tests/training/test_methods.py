"""Methods, from data to accuracy, in runs that are nearly all compiling."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from training.tiny import Watcher, run_tiny, tiny_config
from training.tiny_config import tiny_dataset

from vbsix.config.presets import METHODS, RECIPES

pytestmark = pytest.mark.integration


COMBINATIONS = [
    ("scene", "reinforce"),  # which compiles quickly
    ("alchemy", "mml"),
    pytest.param("tangrams", "expert-mml", marks=pytest.mark.slow),
]
"""Each method but VBSiX, which `tests/runs` trains, and the two between VBSiX and MML. `test_step.py` sees the loss of
Expert-MML fall; the slow tests have all methods, domains and recipes."""


def test_no_method_is_forgotten():
    elsewhere = {"vbsix", "execution-only", "value-only"}
    assert {getattr(one, "values", one)[1] for one in COMBINATIONS} == METHODS.keys() - elsewhere


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


@pytest.mark.parametrize(
    "domain", ["tangrams", *(pytest.param(name, marks=pytest.mark.slow) for name in ("scene", "alchemy"))]
)
def test_all_of_scone_can_be_learned_from(scone_data, domain):
    dataset = tiny_dataset(tiny_config(domain=domain), str(scone_data))
    for split, examples in ("train", dataset.examples), ("dev", dataset.splits["dev"].examples(1)):
        rows = (scone_data / f"{domain}-{split}.tsv").read_text(encoding="utf-8").splitlines()
        arrays = dataset.arrays(examples)
        assert len(arrays.words) == len(arrays.target) == len(rows)
        assert arrays.words.any(axis=(1, 2)).mean() > 0.99


def check_run(tmp_path, data, domain, method, recipe="stochastic"):
    watcher = Watcher()
    config = tiny_config(method, domain, recipe, training__steps=2)
    trained = run_tiny(tmp_path / "run", config, (0,), watcher, source=str(data))
    assert trained.accuracies.keys() == {"dev"}
    assert all(np.isfinite(row["policy_loss"]) for row in watcher.rows)
    assert ("critic_loss" in watcher.rows[0]) == (method in ("vbsix", "value-only"))
    assert ("expert_loss" in watcher.rows[0]) == (method == "expert-mml")
    assert ("reward" in watcher.rows[0]) == (method == "reinforce")


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("domain", ["scene", "alchemy", "tangrams"])
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("recipe", RECIPES)
def test_every_method_runs_on_every_domain_of_scone(tmp_path, scone_data, domain, method, recipe):
    check_run(tmp_path, scone_data, domain, method, recipe)
