"""A run's folder as training leaves it, but with networks of small size that have learned nothing."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import jax.numpy as jnp

from vbsix.config.presets import METHODS
from vbsix.config.schema import Config, override
from vbsix.data.dataset import Dataset
from vbsix.runs.checkpoints import save_checkpoint
from vbsix.runs.folder import Run, create_run
from vbsix.training.chunk import create_learners
from vbsix.training.step import Learner

STEPS, SEEDS = 7, (1, 4)
"""The random policies of these seeds happen to have beams that complete programs, some of them correct."""
SETTINGS = {
    "domain": "tangrams",
    "method": "mml",
    **METHODS["mml"],
    "data.evaluation": (1, 2),
    "data.lengths": (1, 2),
    "data.max_words": 12,
    "data.synthetic_dev_rows": 12,
    "data.synthetic_rows": 20,
    "network.embedding_init_std": 1.0,
    "network.hidden": 8,
    "network.lstm": 4,
    "network.renormalise": False,
    "network.token_init_std": 0.3,
    "run.evaluation_batch": 10,
}


class Made(NamedTuple):
    """A run, its data and its networks."""

    run: Run
    dataset: Dataset
    learners: Learner


def make_run(folder: Path, seeds: tuple[int, ...] = SEEDS, settings: Mapping[str, Any] = SETTINGS) -> Made:
    """A run of tangrams on the built-in corpus; its metrics say that the last seed is best."""
    run = Run(folder, override(Config(), settings), seeds, "synthetic")
    dataset = create_run(run)
    learners = create_learners(dataset.domain, run.config, jnp.asarray(seeds))
    save_checkpoint(run.checkpoints, STEPS, learners, seeds, {"data": "the run's"}, {})
    rows = [{"step": STEPS, "seed": seed, "accuracy": {"dev": {"1": seed / 10}}} for seed in seeds]
    run.metrics.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return Made(run, dataset, learners)
