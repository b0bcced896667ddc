from __future__ import annotations

import os

import jax.numpy as jnp
import pytest
from tensorboard.backend.event_processing.event_file_loader import EventFileLoader

from vbsix.runs.metrics import MetricsFile, PendingMetrics, read_metrics
from vbsix.training.objective import Mean
from vbsix.utilities.errors import VbsixError

SEEDS = (4, 7)
ACCURACIES = {"dev": {"1": [0.5, 0.75]}}


def mean(total: list[float], count: list[float]) -> Mean:
    return Mean(jnp.array(total), jnp.array(count))


def row(step: int, seed: int = 4, **more) -> dict:
    return {"step": step, "seed": seed, "hit": 0.5, **more}


def test_a_row_is_the_mean_over_all_steps_since_the_one_before():
    pending = PendingMetrics()
    pending.add({"hit": mean([1, 2], [4, 4]), "error": mean([0, 3], [0, 2])})
    pending.add({"hit": mean([0, 2], [4, 4]), "error": mean([0, 1], [0, 2])})
    assert pending.take(20, SEEDS, ACCURACIES) == [
        {"step": 20, "seed": 4, "hit": 1 / 8, "accuracy": {"dev": {"1": 0.5}}},
        {"step": 20, "seed": 7, "hit": 4 / 8, "error": 4 / 4, "accuracy": {"dev": {"1": 0.75}}},
    ]
    pending.add({"hit": mean([4, 4], [4, 4])})
    assert [row["hit"] for row in pending.take(30, SEEDS, {})] == [1, 1]


def test_what_is_pending_survives_a_checkpoint():
    part, other = {"hit": mean([1 / 3, 2], [4, 4])}, {"hit": mean([0.1, 2], [4, 4])}
    pending = PendingMetrics()
    pending.add(part)
    restored = PendingMetrics(pending.to_json())
    for one in (pending, restored):
        one.add(other)
    assert pending.take(1, SEEDS, {}) == restored.take(1, SEEDS, {})


def test_rows_from_the_step_of_a_resumed_run_on_are_taken_out(tmp_path):
    path = tmp_path / "metrics.jsonl"
    with MetricsFile(path, 0) as file:
        file.write([row(step) for step in (1, 2, 3)])
    with MetricsFile(path, 2) as file:
        assert [kept["step"] for kept in file.kept] == [1]
        file.write([row(2, hit=0.75)])
    assert [(found["step"], found["hit"]) for found in read_metrics(path)] == [(1, 0.5), (2, 0.75)]


def test_an_unfinished_line_is_passed_over_and_a_wrong_one_is_an_error(tmp_path):
    path = tmp_path / "metrics.jsonl"
    path.write_text('{"step": 1, "seed": 0}\n{"step": 2, "se')
    assert read_metrics(path) == [{"step": 1, "seed": 0}]
    for wrong in ('{"step": 2}', "[3]", "{", '{"step": "x", "seed": 1}'):
        path.write_text(f'{{"step": 1, "seed": 0}}\n{wrong}\n')
        with pytest.raises(VbsixError, match=r"metrics\.jsonl:2: not a row of metrics"):
            read_metrics(path)


@pytest.mark.parametrize("which", ["_file", "_events"])
def test_a_full_disk_is_reported_with_the_file(tmp_path, which):
    path = tmp_path / "metrics.jsonl"
    with (
        pytest.raises(OSError, match=r"No space left on device: .*metrics\.jsonl"),
        MetricsFile(path, 0) as file,
        open("/dev/full", "wb") as full,
    ):
        written = getattr(file, which)
        os.dup2(full.fileno(), getattr(written, "_file", written).fileno())
        file.write([row(1)])


def test_tensorboard_sees_each_metric_of_each_seed_once(tmp_path):
    path = tmp_path / "metrics.jsonl"
    with MetricsFile(path, 0) as file:
        file.write([row(1), row(1, seed=7), row(2)])
    with MetricsFile(path, 2) as file:
        file.write([row(2, hit=0.75, accuracy={"dev": {"3": 0.25}})])
    (events,) = tmp_path.glob("events.out.tfevents.*")
    found = [
        (event.step, value.tag, value.tensor.float_val[0])
        for event in EventFileLoader(str(events)).Load()
        for value in event.summary.value
    ]
    assert found == [
        (1, "hit/seed-4", 0.5),
        (1, "hit/seed-7", 0.5),
        (2, "hit/seed-4", 0.75),
        (2, "accuracy-dev-3/seed-4", 0.25),
    ]
