from __future__ import annotations

import json
import logging
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from vbsix.models.heads import Networks
from vbsix.runs.checkpoints import KEPT, load_checkpoint, load_networks, save_checkpoint
from vbsix.training.step import Learner
from vbsix.utilities.errors import VbsixError

SEEDS = (3, 5)
PROGRESS = {"seconds": 0.1, "pending": {"hit": [[1 / 3, 2.0], [4.0, 4.0]]}}


def learners(value: float = 0.0) -> Learner:
    """Two of them, stacked."""
    policy: Any = {"weight": jnp.arange(6, dtype=jnp.float32).reshape(2, 3) / 3 + value, "bias": jnp.ones((2, 1))}
    networks = Networks(policy, None, None)
    optimiser: Any = (jnp.array([7, 8], jnp.int32), None)
    return Learner(networks, optimiser)


ORIGIN = {"vbsix": "0.1.0", "steps": 20, "data": "5" * 64}


def save(folder: Path, step: int, **origin) -> Path:
    return save_checkpoint(folder, step, learners(step), SEEDS, ORIGIN | origin, PROGRESS)


def load(folder: Path, seeds=SEEDS, like: Learner | None = None):
    return load_checkpoint(folder, like or jax.eval_shape(learners), seeds, ORIGIN)


def test_what_is_saved_is_loaded_bit_for_bit(tmp_path):
    save(tmp_path, 20)
    found = load(tmp_path)
    assert found is not None
    assert (found.step, found.progress) == (20, PROGRESS)
    jax.tree.map(np.testing.assert_array_equal, found.learners, learners(20))


def test_a_seed_can_be_loaded_alone(tmp_path):
    save(tmp_path, 20)
    found = load(tmp_path, seeds=[5])
    assert found is not None
    np.testing.assert_array_equal(found.learners.networks.policy["weight"], learners(20).networks.policy["weight"][1:])


def test_networks_can_be_loaded_without_the_optimiser_whatever_the_origin(tmp_path):
    save(tmp_path, 20, data="9" * 64)
    found = load_networks(tmp_path, jax.eval_shape(learners).networks, SEEDS)
    assert found is not None
    assert found[0] == 20
    jax.tree.map(np.testing.assert_array_equal, found[1], learners(20).networks)
    assert load_networks(tmp_path / "missing", jax.eval_shape(learners).networks, SEEDS) is None


def test_none_where_there_is_none(tmp_path):
    assert load(tmp_path) is None
    assert load(tmp_path / "missing") is None


def test_the_last_are_kept(tmp_path):
    for step in (10, 20, 30, 25):
        save(tmp_path, step)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["step-00000025", "step-00000030"]
    assert KEPT == 2


def test_what_a_killed_process_left_half_written_is_not_read_and_goes(tmp_path):
    half = tmp_path / ".step-00000030.part"
    half.mkdir()
    (half / "seed-3.safetensors").write_bytes(b"half")
    assert load(tmp_path) is None
    save(tmp_path, 20)
    assert not half.exists()


@pytest.mark.parametrize("name", ["seed-3.safetensors", "seed-5.safetensors", "manifest.json"])
@pytest.mark.parametrize("damage", ["flipped", "truncated", "removed"])
def test_a_damaged_one_is_reported_and_the_one_before_is_used(tmp_path, caplog, name, damage):
    save(tmp_path, 10)
    path = save(tmp_path, 20) / name
    content = path.read_bytes()
    if damage == "flipped":
        middle = content.rindex(b"seconds") + 12 if name == "manifest.json" else len(content) - 5
        path.write_bytes(content[:middle] + bytes([content[middle] ^ 1]) + content[middle + 1 :])
    elif damage == "truncated":
        path.write_bytes(content[:-3])
    else:
        path.unlink()
    with caplog.at_level(logging.WARNING):
        found = load(tmp_path)
    assert found is not None
    assert found.step == 10
    assert str(path) in caplog.text
    assert "Continuing from step 10" in caplog.text


def test_every_flipped_bit_of_the_manifest_is_noticed(tmp_path):
    path = save(tmp_path, 20) / "manifest.json"
    content = path.read_bytes()
    for place in range(len(content)):
        path.write_bytes(content[:place] + bytes([content[place] ^ 1]) + content[place + 1 :])
        try:
            found = load(tmp_path)
        except VbsixError:
            continue
        assert found is not None
        assert (found.step, found.progress) == (20, PROGRESS)


def test_where_none_is_intact_there_is_an_error_that_names_them_all(tmp_path):
    for step in (10, 20):
        (save(tmp_path, step) / "seed-3.safetensors").write_bytes(b"")
    with pytest.raises(VbsixError, match=r"(?s)00000020.*00000010.*no checkpoint is intact; start a new run"):
        load(tmp_path)


@pytest.mark.parametrize(
    ("other", "reason"),
    [
        ({"data": "9" * 64}, "other data"),
        ({"steps": 30, "data": "9" * 64}, "steps = 30, not 20 and other data"),
    ],
)
def test_one_of_another_origin_is_refused_with_the_reason(tmp_path, other, reason):
    save(tmp_path, 20, **other)
    with pytest.raises(VbsixError, match=f"made with {reason}; resume as its run was begun"):
        load(tmp_path)


def test_a_setting_that_did_not_exist_yet_had_its_default(tmp_path):
    save(tmp_path, 1)
    assert load_checkpoint(tmp_path, jax.eval_shape(learners), SEEDS, ORIGIN | {"network.context": 0}) is not None
    with pytest.raises(VbsixError, match=r"made with network\.context = 0, not 64"):
        load_checkpoint(tmp_path, jax.eval_shape(learners), SEEDS, ORIGIN | {"network.context": 64})


def test_one_of_another_version_is_refused_with_what_can_be_done_with_it(tmp_path):
    save(tmp_path, 20, vbsix="0.0.9")
    message = r"made by vbsix 0\.0\.9; vbsix 0\.1\.0 cannot resume it, but can load, evaluate and export it"
    with pytest.raises(VbsixError, match=message):
        load(tmp_path)


def test_one_of_another_format_is_refused_with_the_reason(tmp_path):
    path = save(tmp_path, 20) / "manifest.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"format": 99}))
    with pytest.raises(VbsixError, match="has format 99, this version of vbsix reads format 1"):
        load(tmp_path)


def test_other_parameters_are_refused(tmp_path):
    save(tmp_path, 20)
    policy: Any = {"weight": jnp.zeros((2, 3))}
    with pytest.raises(VbsixError, match="has other parameters"):
        load(tmp_path, like=Learner(Networks(policy, None, None), learners().optimiser))
    policy = {"weight": jnp.zeros((2, 4)), "bias": jnp.ones((2, 1))}
    with pytest.raises(VbsixError, match=r"has shape \(3,\), expected \(4,\)"):
        load(tmp_path, like=Learner(Networks(policy, None, None), learners().optimiser))


def test_a_full_disk_leaves_the_one_before(tmp_path, monkeypatch):
    save(tmp_path, 10)

    def full(descriptor):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(OSError, match=r"No space left on device: .*seed-3\.safetensors"):
        save(tmp_path, 20)
    monkeypatch.undo()
    found = load(tmp_path)
    assert found is not None
    assert found.step == 10
