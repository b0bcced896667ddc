"""Teaching across folds: rounds of policies that were trained without a fold, then a student that learns from them.

Each round is a sweep over folds, a sweep for each stage. The policies of a round infer the worlds of the rows that they
have not seen, for the next round's runs or for the student, which learns from all rows.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from vbsix import __version__
from vbsix.config.legacy import read_config
from vbsix.config.schema import Config, override
from vbsix.data.dataset import Dataset
from vbsix.data.words import Words
from vbsix.domains.base import Domain
from vbsix.runs.continuing import continue_run
from vbsix.runs.folder import (
    CONTINUE,
    INFERRED_FILE,
    STUDENT,
    TEACHING_FILE,
    Run,
    Start,
    is_staged,
    open_run,
    open_words,
    read_dataset,
    require_unused,
    resume_command,
    stage_folder,
    warn_about_run,
)
from vbsix.runs.identity import domain_of
from vbsix.runs.stages import Ended, Observe, create_stages, plan_stages, train_stages
from vbsix.runs.sweep import create_sweep, is_sweep, open_sweep, plan_sweep, train_sweep
from vbsix.runs.teachers import ObserveRuns, find_teachers, infer_once, require_teachable
from vbsix.utilities.errors import VbsixError
from vbsix.utilities.files import read_json, write_json

FOLDS = 5
"""Into how many folds the rows are divided, unless said otherwise."""


@dataclass(frozen=True)
class Teaching:
    """What a teaching is about, and where it is."""

    folder: Path
    stages: tuple[Config, ...]
    """The settings of each stage of the first round, without a fold; one for runs that have no stages."""
    student_stages: tuple[Config, ...]
    """The same for the runs that learn from inferred worlds: those of later rounds, and the student."""
    seeds: tuple[int, ...]
    source: str
    folds: int
    rounds: int

    def stages_of(self, number: int) -> tuple[Config, ...]:
        """The settings of each stage of a round."""
        return self.stages if number == 1 else self.student_stages

    def sweep_folder(self, number: int, stage: int) -> Path:
        """Where the sweep of a stage of a round is; both are counted from 1."""
        return stage_folder(self.round_folder(number), stage)

    def round_folder(self, number: int) -> Path:
        """Where a round is."""
        return self.folder / f"round-{number}"

    def describe(self, number: int) -> str:
        """What a round is called."""
        return f"round {number} of {self.rounds}"


def plan_teaching(
    folder: Path,
    base: Config,
    stages: Sequence[Mapping[str, Any]],
    seeds: Sequence[int],
    source: str,
    *,
    folds: int = FOLDS,
    rounds: int = 1,
    student_stages: Sequence[Mapping[str, Any]] | None = None,
) -> Teaching:
    """What will be trained. Nothing is written.

    Args:
        folder: where everything goes.
        base: the settings of all runs.
        stages: those of each stage of the first round; one empty stage for runs without stages.
        seeds: the seeds of each run, so that each fold has as many teachers.
        source: where the data comes from.
        folds: into how many folds the rows are divided.
        rounds: how many times teachers are trained without each fold; from the second time on, they are taught, too.
        student_stages: the settings of each stage of later rounds and of the student; None for the same as `stages`.
    """
    if base.data.folds or base.data.fold:
        raise VbsixError("teaching says all about folds; leave out data.folds and data.fold.")
    if folds < 2 or rounds < 1:
        raise VbsixError(f"teaching needs 2 folds and 1 round at least, not {folds} and {rounds}.")
    first = _configs(folder, base, stages, seeds, source)
    later = first if student_stages is None else _configs(folder, base, student_stages, seeds, source)
    require_teachable(first + later)
    return Teaching(folder, first, later, tuple(seeds), source, folds, rounds)


def _configs(
    folder: Path, base: Config, stages: Sequence[Mapping[str, Any]], seeds: Sequence[int], source: str
) -> tuple[Config, ...]:
    return tuple(run.config for run in plan_stages(folder, base, stages, seeds, source))


def create_teaching(teaching: Teaching, domain: Domain | None = None, words: Words | None = None) -> None:
    """Makes the folder of a new teaching, if its data can be read."""
    require_unused(teaching.folder)
    first = _without_fold(teaching, teaching.stages[0])
    run = Run(teaching.folder, first, teaching.seeds, teaching.source)
    warn_about_run(run, read_dataset(run, domain, words))
    description = {
        "vbsix": __version__,
        "seeds": list(teaching.seeds),
        "data": teaching.source,
        "folds": teaching.folds,
        "rounds": teaching.rounds,
        "stages": [dataclasses.asdict(config) for config in teaching.stages],
        "student_stages": [dataclasses.asdict(config) for config in teaching.student_stages],
    }
    write_json(teaching.folder / TEACHING_FILE, description)


def open_teaching(folder: Path) -> Teaching:
    """The teaching of a folder."""
    file = folder / TEACHING_FILE
    saved = read_json(file)
    try:
        seeds = tuple(int(seed) for seed in saved["seeds"])
        stages, later = (tuple(map(read_config, saved[name])) for name in ("stages", "student_stages"))
        return Teaching(folder, stages, later, seeds, str(saved["data"]), int(saved["folds"]), int(saved["rounds"]))
    except VbsixError as error:
        raise VbsixError(f"{file}: {error}") from error
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise VbsixError(f"{file}: not the description of a teaching: {error!r}.") from error


def train_teaching(
    folder: Path, observe_runs: ObserveRuns, observe: Observe, domain: Domain | None = None, words: Words | None = None
) -> Ended:
    """Trains all rounds and the student to their ends, from where they stand.

    Args:
        folder: where the teaching is.
        observe_runs: opens a display of the runs of a round, when they are trained and when they infer worlds.
        observe: opens a display of a stage of the student.
        domain: the language; None for the one of that name.
        words: a vocabulary of one's own.

    Raises:
        Interrupted: an observer wanted to stop; `train_teaching` continues.
        VbsixError: a run of a round failed.
    """
    teaching, inferred, student = open_teaching(folder), None, folder / STUDENT
    for number in range(1, teaching.rounds + 1):
        count = len(teaching.stages_of(number))
        for stage in range(1, count + 1):
            _train_round(teaching, number, stage, inferred, observe_runs, domain, words)
        teachers = find_teachers(teaching.sweep_folder(number, count), teaching.student_stages[-1], teaching.source)
        words = words or open_words(teachers.runs[0].folder)
        learners = student if number == teaching.rounds else teaching.round_folder(number + 1)
        title, again = f"{teaching.describe(number)}, inferring worlds", f"{CONTINUE}{resume_command(teachers.runs[0])}"
        configs, observe_them = teaching.stages + teaching.student_stages, partial(observe_runs, teachers.runs, title)
        inferred = infer_once(learners / INFERRED_FILE, teachers, configs, teaching.source, observe_them, again, domain)
    if not is_staged(student):
        create_stages(student, _student(teaching, inferred), domain, words)
    return train_stages(student, observe, domain, words)


def _train_round(
    teaching: Teaching,
    number: int,
    stage: int,
    inferred: Path | None,
    observe_runs: ObserveRuns,
    domain: Domain | None,
    words: Words | None,
) -> None:
    """Trains a stage of a round: a run without each fold."""
    folder, stages = teaching.sweep_folder(number, stage), teaching.stages_of(number)
    if not is_sweep(folder):
        config, values = _without_fold(teaching, stages[stage - 1]), {"data.fold": range(teaching.folds)}
        planned = plan_sweep(folder, config, values, teaching.seeds, teaching.source, inferred)
        start = _continue_each(teaching.sweep_folder(number, stage - 1), domain) if stage > 1 else None
        create_sweep(planned, domain, words, start)
    where = teaching.describe(number) + (f", stage {stage}" if len(stages) > 1 else "")
    failed = train_sweep(open_sweep(folder), lambda runs, title: observe_runs(runs, f"{where}, {title}"), domain, words)
    if failed:
        raise VbsixError("\n".join([*map(str, failed.values()), f"{teaching.folder}: a teacher is missing."]))


def _continue_each(before: Path, domain: Domain | None) -> Start:
    """Each run continues the policies of the run without the same fold."""

    def start(run: Run, dataset: Dataset) -> Mapping[str, np.ndarray]:
        done = open_run(before / run.folder.name)
        return continue_run(done, domain_of(done.config, done.folder, domain, done.identity))(run, dataset)

    return start


def _student(teaching: Teaching, inferred: Path | None) -> list[Run]:
    folder, source = teaching.folder / STUDENT, teaching.source
    return [
        Run(stage_folder(folder, number), config, teaching.seeds, source, stage=number, inferred=inferred)
        for number, config in enumerate(teaching.student_stages, start=1)
    ]


def _without_fold(teaching: Teaching, config: Config) -> Config:
    return override(config, {"data.folds": teaching.folds})
