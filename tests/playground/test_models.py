from __future__ import annotations

import numpy as np
import pytest
from tiny_run import make_run

import vbsix
from vbsix.playground import models as module
from vbsix.playground.models import built_in_models, load_models
from vbsix.playground.searching import search

ROW, TARGET, SAID = "1:0 2:3 3:4 4:1", "1:0 2:3 3:4", ["remove the second figure", "swap the first and the last shape"]


def test_names_are_unique_and_each_seed_is_a_model(tmp_path):
    make_run(tmp_path / "run")
    vbsix.load(tmp_path / "run").export(tmp_path / "run.safetensors")
    paths = [tmp_path / "run", tmp_path / "run.safetensors", tmp_path / "run.safetensors"]
    loaded = load_models(paths)
    assert list(loaded) == ["run, seed 1", "run, seed 4", "run", "run (2)"]
    assert all(model.critic is None for model in loaded.values())


def test_built_in_models_are_those_of_the_package(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "files", lambda package: tmp_path)
    assert built_in_models() == []
    (tmp_path / "pretrained").mkdir()
    for name in ("scene.safetensors", "alchemy.safetensors", "README.md"):
        (tmp_path / "pretrained" / name).touch()
    assert [path.stem for path in built_in_models()] == ["alchemy", "scene"]


@pytest.mark.parametrize("count", [1, 2])
def test_the_critic_has_its_say_at_the_last_two_instructions(models, count):
    """Its scores are probabilities, and with one or two instructions all unfinished states have one."""
    model = next(iter(models.values()))
    listed, _ = search(model, ROW, TARGET, SAID[:count], space="execution", beam=64, critic=True)
    values = [state.value for state in listed.states if state.kind in ("beam", "pruned")]
    assert values and all(value is not None and 0 < value < 1 for value in values)
    assert len(np.unique(values)) > 2
    assert all(state.value is None for state in listed.states if state.kind in ("correct", "incorrect"))


def test_before_the_last_two_instructions_it_has_none(models):
    model = next(iter(models.values()))
    listed, drawn = search(model, ROW, TARGET, [*SAID, SAID[0]], space="execution", beam=64, critic=True)
    for state in listed.states:
        late = state.kind in ("beam", "pruned") and state.instructions_done >= 1
        assert (state.value is not None) == late
    assert len(drawn.states) <= 28
