"""Teachers: trained policies whose posteriors a run learns from.

The seeds of a run teach all rows: then the run is distilled from their ensemble. The runs of a sweep over folds teach
the rows that they have not seen: they cannot have memorised a spurious program for one of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from vbsix.config.schema import OBJECTIVES, Config, to_settings
from vbsix.config.variation import program_of
from vbsix.data.words import Words
from vbsix.domains.base import Domain
from vbsix.models.policy import PolicyNetwork
from vbsix.runs.folder import SWEEP_FILE, Run, Teachers, load_best, open_run, open_words
from vbsix.runs.identity import domain_of
from vbsix.utilities.errors import VbsixError
from vbsix.utilities.files import read_json

ROWS = ("data.split", "data.dev_file", "data.dev_share", "data.synthetic_rows")
"""Settings that say which rows there are to divide into folds."""


def find_teachers(path: Path, config: Config, source: str) -> tuple[Teachers, Words]:
    """The teachers in a folder, and their vocabulary.

    Args:
        path: the folder of a run, or of a sweep over folds.
        config: the settings of the run that learns from them.
        source: where its data comes from.

    Raises:
        VbsixError: they cannot teach that run.
    """
    require_teachable(config)
    runs, folds = _runs(path)
    first = runs[0]
    if first.config.domain != config.domain:
        raise VbsixError(f"{path}: teaches {first.config.domain}, not {config.domain}.")
    for run in runs:
        if not run.best.exists() or not (run.folder / "result.json").exists():
            raise VbsixError(f"{run.folder}: has not ended yet, so it cannot teach.")
    if folds > 1:
        there, here = to_settings(first.config), to_settings(config)
        if first.source != source or any(there[name] != here[name] for name in ROWS):
            raise VbsixError(
                f"{path}: was trained without folds of other rows; teachers and student need the same --data."
            )
    return Teachers(path, folds, bool(first.config.network.context)), open_words(first.folder)


def require_teachable(config: Config) -> None:
    """Refuses settings with which a run cannot learn from teachers."""
    if OBJECTIVES.get(config.training.objective).taught is None or config.training.programs != "graph":
        raise VbsixError(
            "teachers weigh the paths of the search graph: take the recipe stochastic, and one of the methods vbsix, "
            "mml, execution-only and value-only."
        )


def load_teachers(teachers: Teachers, domain: Domain, words: Words) -> PolicyNetwork:
    """The policies, each at its best step on dev, leaves [F, T, ...]: T of them for the rows of each fold."""
    runs, _ = _runs(teachers.folder)
    own = open_words(runs[0].folder)
    if own.words != words.words or not np.array_equal(own.vectors, words.vectors):
        raise VbsixError(f"{teachers.folder}: has another vocabulary than the run that it is to teach.")
    policies: list[Any] = [
        load_best(run, domain_of(run.config, run.folder, domain, run.identity)).policies for run in runs
    ]
    # Networks hold their settings; all have the first run's.
    structure, leaves = jax.tree.structure(policies[0]), [jax.tree.leaves(policy) for policy in policies]
    return jax.tree.unflatten(structure, [jnp.stack(parts) for parts in zip(*leaves, strict=True)])


def teachers_digest(teachers: Teachers) -> str:
    """Identifies teachers, so that a run is not resumed with others."""
    runs, _ = _runs(teachers.folder)
    return sha256(b"".join(sha256(run.best.read_bytes()).digest() for run in runs)).hexdigest()


def _runs(path: Path) -> tuple[Sequence[Run], int]:
    """The runs that teach, those of a sweep in the order of their folds; and the number of folds."""
    if not (path / SWEEP_FILE).exists():
        return [open_run(path)], 1
    runs = [open_run(path / str(name)) for name in read_json(path / SWEEP_FILE).get("runs", ())]
    by_fold = {run.config.data.fold: run for run in runs}
    folds = runs[0].config.data.folds if runs else 0
    if set(by_fold) != set(range(folds)) or len(runs) != folds or len({program_of(run.config) for run in runs}) > 1:
        raise VbsixError(f"{path}: teachers are the seeds of a run, or of a sweep with --folds and nothing else.")
    return [by_fold[fold] for fold in range(folds)], folds
