"""The folders of a new run, of its stages, or of its teachers and students."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from pathlib import Path
from typing import Any

from vbsix.config.choosing import choose_stages
from vbsix.data.dataset import Dataset
from vbsix.data.words import Words
from vbsix.domains.base import Domain
from vbsix.runs.folder import INFERRED_FILE, Run, Start, create_run, read_dataset, require_unused
from vbsix.runs.loop import Observer
from vbsix.runs.stages import create_stages, plan_stages
from vbsix.runs.teachers import ObserveRuns, Teachers, find_teachers, infer_once, require_same_data, require_teachable
from vbsix.runs.teaching import create_teaching, plan_teaching


def begin_training(
    run: Run,
    language: Domain | None,
    words: Words | None,
    start: Start | None,
    *,
    stages: str | Path | Sequence[Mapping[str, Any]] | None,
    teachers: Path | Teachers | None,
    folds: int,
    rounds: int | None,
    student_stages: str | Path | Sequence[Mapping[str, Any]] | None,
    observe: ObserveRuns,
) -> tuple[Run, Dataset] | None:
    """Makes the folder of a new run, of its stages, or of its teachers and students; see `train`.

    Teachers that are there already infer worlds now, which `observe` displays.

    Returns:
        The run and its data, or None where it has stages or rounds.
    """
    if rounds is not None:
        schedule = choose_stages(stages) if stages is not None else [{}]
        later = choose_stages(student_stages) if student_stages is not None else None
        names = run.folder, run.config, schedule, run.seeds, run.source
        create_teaching(plan_teaching(*names, folds=folds, rounds=rounds, student_stages=later), language, words)
        return None
    inferred = None if teachers is None else run.folder / INFERRED_FILE
    planned = [replace(run, inferred=inferred)]
    if stages is not None:
        planned = plan_stages(run.folder, run.config, choose_stages(stages), run.seeds, run.source, inferred)
    if teachers is not None:
        learn_from(teachers, run.folder, planned, observe, language, words)
    if stages is None:
        return planned[0], create_run(planned[0], language, words, start=start)
    create_stages(run.folder, planned, language, words, start)
    return None


def learn_from(
    given: Path | Teachers,
    folder: Path,
    runs: Sequence[Run],
    observe: ObserveRuns,
    language: Domain | None = None,
    words: Words | None = None,
) -> Path:
    """Lets teachers, or those in a folder, infer worlds for runs that do not exist yet; writes them into `folder`."""
    require_unused(folder)
    source, configs = runs[0].source, [run.config for run in runs]
    require_teachable(configs)
    if isinstance(given, Teachers):
        teachers = given
        require_same_data(teachers, configs[0], source)
    else:
        teachers = find_teachers(given, configs[0], source)
    # Raises now, and not when worlds have been inferred.
    read_dataset(replace(runs[0], inferred=None), language, words)
    title, again = f"{teachers.path} infers worlds", " Give the same command again."

    def observed() -> AbstractContextManager[Observer]:
        return observe(teachers.runs or runs, title)

    return infer_once(folder / INFERRED_FILE, teachers, configs, source, observed, again, language)
