"""Runs so small that compiling them is all the work there is."""

from __future__ import annotations

import errno
import os
from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
from training.tiny_config import SETTINGS, tiny_config

from vbsix.config.schema import Config, override
from vbsix.runs.folder import Run, create_run, read_dataset
from vbsix.runs.loop import Trained, train

SEEDS = (0, 1, 2)

# Nothing coincides: rows, evaluations, checkpoints and the start of the critic's ranking.
LOOP_SETTINGS = SETTINGS | {
    "data.evaluation": (1, 2),
    "search.beam": 24,
    "training.batch": 2,
    "training.steps": 14,
    "training.value_ranking_start": 7,
    "run.chunk": 1,
    "run.log_every": 4,
    "run.evaluate_every": 5,
    "run.checkpoint_every": 3,
}
LOOP_CONFIG = override(tiny_config(), LOOP_SETTINGS)
"""All tests of whole runs have these settings and seeds, so that a process compiles them once."""
LOOP_SEEDS = (0, 1)
REINFORCE_SETTINGS = LOOP_SETTINGS | {"training.baseline": 0.1, "training.learning_rate": 0.005}
"""For whole runs with the method that compiles fastest."""
SECOND_STAGE = {"network.context": 4, "training.steps": 4, "training.critic": False, "training.learning_rate": 0.01}
"""What changes in a run with `LOOP_CONFIG` that is continued with context."""


def to_arguments(settings: Mapping[str, Any]) -> list[str]:
    """Settings for the command line."""
    return [f"--set={name}={list(value) if isinstance(value, tuple) else value}" for name, value in settings.items()]


ARGUMENTS, LOOP_ARGUMENTS = to_arguments(SETTINGS), [*to_arguments(LOOP_SETTINGS), f"--seeds={len(LOOP_SEEDS)}"]


class Watcher:
    """An observer that remembers, and stops the run after a step."""

    def __init__(self, stop_at: int | None = None):
        self.stop_at = stop_at
        self.steps: list[int] = []
        self.rows: list[dict] = []
        self.accuracies: dict[int, dict] = {}
        self.messages: list[str] = []

    def on_progress(self, step):
        self.steps.append(step)

    def on_metrics(self, step, rows, steps_per_second):
        assert steps_per_second > 0 or step == self.steps[0]
        self.rows += rows

    def on_evaluation(self, step, accuracies):
        self.accuracies[step] = accuracies

    def on_message(self, text):
        self.messages.append(text)

    def wants_to_stop(self):
        return self.stop_at is not None and self.steps[-1] >= self.stop_at


def run_tiny(
    folder: Path,
    config: Config | None = None,
    seeds: tuple[int, ...] = SEEDS,
    watcher: Watcher | None = None,
    source: str = "synthetic",
) -> Trained:
    """Begins a run or continues it."""
    run = Run(folder, config or tiny_config(), seeds, source)
    dataset = read_dataset(run) if (folder / "run.json").exists() else create_run(run)
    return train(run, dataset, watcher or Watcher())


def outcome(folder: Path) -> dict[str, str]:
    """All that two runs must have in common, bit for bit, to have taken the same course.

    Of files of numbers it is their hash: pytest would take minutes to show how one differs from another.
    """
    newest = max((folder / "checkpoints").glob("step-*"))
    hashes = {path.name: sha256(path.read_bytes()).hexdigest() for path in newest.glob("*.safetensors")}
    return {**hashes, "metrics": (folder / "metrics.jsonl").read_text()}


def fill_disk(monkeypatch: pytest.MonkeyPatch, after: int) -> None:
    """Lets the disk be full once some files were written."""
    sync, calls = os.fsync, 0

    def fills_up(descriptor):
        nonlocal calls
        calls += 1
        if calls > after:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        sync(descriptor)

    monkeypatch.setattr(os, "fsync", fills_up)
