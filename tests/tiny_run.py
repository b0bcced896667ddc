"""A run's folder as training leaves it, but with networks of small size that have learned nothing."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import jax.numpy as jnp

from vbsix.training.checkpoint import save_checkpoint
from vbsix.training.chunk import create_learners
from vbsix.training.config import Config, override
from vbsix.training.run import Run, create_run
from vbsix.training.step import Learner
from vbsix.training.task import Task

STEPS, SEEDS = 7, (1, 4)
"""These seeds happen to draw policies whose beams complete programs, some of them right."""
SETTINGS = {
    "data.evaluation": (1, 2),
    "data.lengths": (1, 2),
    "data.max_words": 12,
    "data.synthetic_dev_rows": 12,
    "data.synthetic_rows": 20,
    "network.hidden": 8,
    "network.lstm": 4,
    "network.embedding_spread": 1.0,
    "network.token_spread": 0.3,
    "run.evaluation_batch": 10,
    "training.critic": False,
}


def make_run(
    folder: Path, seeds: tuple[int, ...] = SEEDS, settings: Mapping[str, Any] = SETTINGS
) -> tuple[Run, Task, Learner]:
    """A run of tangrams on the embedded corpus; the last seed is said to have done best."""
    run = Run(folder, override(Config(domain="tangrams"), settings), "mml", seeds, "synthetic")
    task = create_run(run)
    learners = create_learners(task.domain, run.config, jnp.asarray(seeds))
    save_checkpoint(run.checkpoints, STEPS, learners, seeds, {"data": "the run's"}, {})
    rows = [{"step": STEPS, "seed": seed, "accuracy": {"dev": {"1": seed / 10}}} for seed in seeds]
    run.metrics.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return run, task, learners
