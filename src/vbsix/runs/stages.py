"""Staged training: runs one after the other, each of which continues the policies of the one before.

Each stage is a run with a folder of its own inside the folder of the stages.
"""

from __future__ import annotations

import dataclasses
import shutil
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, NamedTuple

from vbsix import __version__
from vbsix.config.legacy import read_config
from vbsix.config.schema import Config, override, require_sense
from vbsix.data.config import VOCABULARY
from vbsix.data.dataset import Dataset
from vbsix.data.words import Words
from vbsix.domains.base import Domain
from vbsix.runs.continuing import continue_run
from vbsix.runs.finish import Measured, measure_run, train_to_end
from vbsix.runs.folder import (
    STAGES_FILE,
    Run,
    Start,
    create_run,
    describe_inferred,
    find_inferred,
    open_run,
    open_words,
    reopen_run,
    require_unused,
    stage_folder,
)
from vbsix.runs.identity import domain_of
from vbsix.runs.loop import Observer, Trained
from vbsix.utilities.errors import VbsixError
from vbsix.utilities.files import read_json, write_json

FIXED = (
    *("domain", "method", "recipe", "variant"),
    *("data.split", "data.folds", "data.fold", "data.dev_file", "data.dev_share", "data.synthetic_rows"),
    *VOCABULARY,
)
"""What is the same in all stages: a later stage must not be measured on what an earlier one has learned from, and the
vocabulary is that of the first."""
Observe = Callable[[Run, Dataset, int], AbstractContextManager[Observer]]
"""Opens a display of a stage, given the run, its data, and how many stages there are."""


class Ended(NamedTuple):
    """The last stage, trained to its end."""

    run: Run
    dataset: Dataset
    trained: Trained
    measured: Measured


def plan_stages(
    folder: Path,
    base: Config,
    stages: Sequence[Mapping[str, Any]],
    seeds: Sequence[int],
    source: str,
    inferred: Path | None = None,
) -> list[Run]:
    """A run for each stage. A stage has the settings of the one before, and its own. Nothing is written."""
    runs, config = [], base
    for number, settings in enumerate(stages, start=1):
        try:
            if fixed := next((name for name in FIXED if name in settings), None):
                raise VbsixError(f"{fixed} is the same in all stages.")
            config = require_sense(override(config, settings))
        except VbsixError as error:
            raise VbsixError(f"stage {number}: {error}") from error
        runs.append(Run(stage_folder(folder, number), config, tuple(seeds), source, stage=number, inferred=inferred))
    if not runs:
        raise VbsixError("stages: expected at least one stage.")
    return runs


def create_stages(
    folder: Path,
    runs: Sequence[Run],
    domain: Domain | None = None,
    words: Words | None = None,
    start: Start | None = None,
) -> None:
    """Makes the folder of new stages, and that of the first stage, which may start from trained policies."""
    require_unused(folder)
    first = runs[0]
    if (first.folder / "run.json").exists():  # a call was killed before it wrote the description
        shutil.rmtree(first.folder)
    create_run(first, domain, words, start=start)
    configs = [dataclasses.asdict(run.config) for run in runs]
    description = {"vbsix": __version__, "seeds": list(first.seeds), "data": first.source, "stages": configs}
    write_json(folder / STAGES_FILE, {**description, **describe_inferred(first, folder)})


def open_stages(folder: Path) -> list[Run]:
    """The runs of all stages of a folder, whether they have begun or not."""
    file = folder / STAGES_FILE
    description = read_json(file)
    try:
        seeds, source = tuple(int(seed) for seed in description["seeds"]), str(description["data"])
        configs = [read_config(tables) for tables in description["stages"]]
        inferred = find_inferred(description, folder)
    except VbsixError as error:
        raise VbsixError(f"{file}: {error}") from error
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise VbsixError(f"{file}: not the description of stages: {error!r}.") from error
    return [
        Run(stage_folder(folder, number), config, seeds, source, stage=number, inferred=inferred)
        for number, config in enumerate(configs, start=1)
    ]


def train_stages(folder: Path, observe: Observe, domain: Domain | None = None, words: Words | None = None) -> Ended:
    """Trains all stages to their ends, from where they stand. Stages that have a result are left alone.

    Args:
        folder: where the stages are.
        observe: opens a display of a stage.
        domain: the language; None for the one of that name.
        words: a vocabulary of one's own.

    Raises:
        Interrupted: an observer wanted to stop; `train_stages` continues.
    """
    *earlier, last = open_stages(folder)
    before = None
    for planned in earlier:
        if not (planned.folder / "result.json").exists():
            _train_stage(planned, before, len(earlier) + 1, observe, domain, words)
        before = planned
    return _train_stage(last, before, len(earlier) + 1, observe, domain, words)


def _train_stage(
    planned: Run, before: Run | None, count: int, observe: Observe, domain: Domain | None, words: Words | None
) -> Ended:
    if before is not None and not (planned.folder / "run.json").exists():
        done = open_run(before.folder)
        language = domain_of(done.config, done.folder, domain, done.identity)
        create_run(planned, domain, words or open_words(done.folder), start=continue_run(done, language))
    run, dataset = reopen_run(planned.folder, domain, words)
    with observe(run, dataset, count) as observer:
        trained = train_to_end(run, dataset, observer)
    return Ended(run, dataset, trained, measure_run(run, dataset, trained))
