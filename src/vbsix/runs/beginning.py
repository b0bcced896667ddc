"""The folders of a new run, of its stages, or of its teachers and students."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from vbsix.config.choosing import choose_stages
from vbsix.data.dataset import Dataset
from vbsix.data.words import Words
from vbsix.domains.base import Domain
from vbsix.runs.folder import Run, Start, create_run
from vbsix.runs.stages import create_stages, plan_stages
from vbsix.runs.teachers import find_teachers
from vbsix.runs.teaching import create_teaching, plan_teaching


def begin_training(
    run: Run,
    language: Domain | None,
    words: Words | None,
    start: Start | None,
    *,
    stages: str | Path | Sequence[Mapping[str, Any]] | None,
    teachers: str | Path | None,
    folds: int,
    rounds: int | None,
) -> tuple[Run, Dataset] | None:
    """Makes the folder of a new run, of its stages, or of its teachers and students; see `train`.

    Returns:
        The run and its data, or None where it has stages or rounds.
    """
    if rounds is not None:
        schedule = choose_stages(stages) if stages is not None else [{}]
        names = run.folder, run.config, schedule, run.seeds, run.source
        create_teaching(plan_teaching(*names, folds=folds, rounds=rounds), language, words)
        return None
    if teachers is not None:
        taught_by, own = find_teachers(Path(teachers), run.config, run.source)
        run, words = replace(run, teachers=taught_by), words or own
    if stages is None:
        return run, create_run(run, language, words, start=start)
    planned = plan_stages(run.folder, run.config, choose_stages(stages), run.seeds, run.source, run.teachers)
    create_stages(run.folder, planned, language, words, start)
    return None
