"""Runs so small that compiling them is all the work there is."""

from __future__ import annotations

from hashlib import sha256
from pathlib import Path
from typing import Any

from vbsix.training.config import METHODS, Config, override
from vbsix.training.run import Run, Trained, create_run, train
from vbsix.training.task import load_task

SETTINGS: dict[str, Any] = {
    "data.lengths": (1,),
    "data.evaluation": (1,),
    "data.max_words": 10,
    "data.glove_words": 1000,
    "data.synthetic_rows": 20,
    "data.synthetic_dev_rows": 6,
    "network.lstm": 4,
    "network.hidden": 8,
    "network.token": 8,
    "network.slot": 4,
    "network.attribute": 4,
    "search.beam": 48,
    "search.program_beam": 2,
    "search.negatives": 4,
    "training.batch": 4,
    "training.samples": 8,
    "training.steps": 10,
    "training.learning_rate": 0.05,
    "training.value_ranking_start": 0,
    "training.policy_states": 16,
    "training.value_states": 16,
    "run.chunk": 2,
    "run.log_every": 4,
    "run.evaluate_every": 6,
    "run.checkpoint_every": 4,
    "run.evaluation_beam": 4,
    "run.evaluation_batch": 8,
}
ARGUMENTS = [f"--set={name}={list(value) if isinstance(value, tuple) else value}" for name, value in SETTINGS.items()]
"""The same for the command line."""

SEEDS = (0, 1, 2)


def tiny_config(method: str = "vbsix", domain: str = "tangrams", **changes: Any) -> Config:
    """Changes have `__` for the dot of a setting's name."""
    changes = {name.replace("__", "."): value for name, value in changes.items()}
    return override(Config(domain=domain), {**METHODS[method], **SETTINGS, **changes})


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
    """Begins a run or goes on with it."""
    run = Run(folder, config or tiny_config(), "vbsix", seeds, source)
    task = load_task(run.config, source) if (folder / "run.json").exists() else create_run(run)
    return train(run, task, watcher or Watcher())


def outcome(folder: Path) -> dict[str, str]:
    """All that two runs must have in common, bit for bit, to have gone the same way.

    Of files of numbers it is their hash: pytest would take minutes to tell how one differs from another.
    """
    newest = max((folder / "checkpoints").glob("step-*"))
    hashes = {path.name: sha256(path.read_bytes()).hexdigest() for path in newest.glob("*.safetensors")}
    return {**hashes, "metrics": (folder / "metrics.jsonl").read_text()}
