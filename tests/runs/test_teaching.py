"""Teaching across folds: teachers weigh the programs of rows that they have not seen."""

from __future__ import annotations

from contextlib import contextmanager

import jax
import numpy as np
import pytest
from training.tiny import LOOP_CONFIG, LOOP_SEEDS, Watcher, outcome

from vbsix.config.schema import override
from vbsix.domains.registry import get_domain
from vbsix.runs.folder import Run, Teachers, load_best, open_run, open_words, read_dataset
from vbsix.runs.loop import Interrupted
from vbsix.runs.metrics import read_metrics
from vbsix.runs.sweep import runs_of
from vbsix.runs.teachers import find_teachers, load_teachers
from vbsix.runs.teaching import create_teaching, open_teaching, plan_teaching, train_teaching
from vbsix.utilities.errors import VbsixError

FOLDS = 2
CONFIG = override(
    LOOP_CONFIG,
    {
        "training.programs": "graph",
        "training.critic": False,
        "training.steps": 6,
        "training.averaging": 0.9,
        "search.selection": "stochastic",
    },
)


def begin(folder, rounds=1):
    create_teaching(plan_teaching(folder, CONFIG, [{}], LOOP_SEEDS, "synthetic", folds=FOLDS, rounds=rounds))


def go_on(folder, stop_in: str | None = None, stop_at: int = 0) -> dict[str, Watcher]:
    """Trains a teaching, and stops in a round or in the student after a step."""
    watchers: dict[str, Watcher] = {}

    @contextmanager
    def observe_runs(runs, title):
        name = title.partition(",")[0]
        watchers[name] = Watcher(stop_at if name == stop_in else None)
        yield watchers[name]

    @contextmanager
    def observe(run, dataset, count):
        watchers["student"] = Watcher(stop_at if stop_in == "student" else None)
        yield watchers["student"]

    train_teaching(folder, observe_runs, observe)
    return watchers


def outcomes(folder) -> dict[str, dict[str, str]]:
    """What all runs of a teaching with two rounds came to."""
    sweeps = [folder / f"round-{number}" / "stage-1" for number in (1, 2)]
    runs = [run for sweep in sweeps for run in runs_of(sweep)] + [folder / "student" / "stage-1"]
    return {str(run.relative_to(folder)): outcome(run) for run in runs}


@pytest.fixture(scope="module")
def taught(tmp_path_factory):
    folder = tmp_path_factory.mktemp("teaching") / "alone"
    begin(folder, rounds=2)
    return folder, go_on(folder)


def test_teachers_have_not_seen_the_rows_that_they_teach(tmp_path):
    teaching = plan_teaching(tmp_path, CONFIG, [{}], LOOP_SEEDS, "synthetic", folds=FOLDS)
    student = Run(tmp_path, CONFIG, (0,), "synthetic", teachers=Teachers(tmp_path, FOLDS, context=False))
    dataset = read_dataset(student)
    assert dataset.folds is not None
    assert set(dataset.folds) == set(range(FOLDS))
    assert dataset.training_arrays(dataset.most_instructions).fold.tolist() == list(dataset.folds)
    for fold in range(FOLDS):
        config = override(teaching.stages[0], {"data.folds": FOLDS, "data.fold": fold})
        teacher = read_dataset(Run(tmp_path, config, (0,), "synthetic"))
        seen = {(example.context, example.instructions[0]) for example in teacher.examples}
        taught = [one for one, own in zip(dataset.examples, dataset.folds, strict=True) if own == fold]
        assert taught
        assert not seen & {(example.context, example.instructions[0]) for example in taught}


@pytest.mark.integration
def test_the_folder_stands_for_the_student(taught):
    folder, watchers = taught
    assert set(watchers) == {"round 1 of 2", "round 2 of 2", "student"}
    student = open_run(folder)
    assert student.folder == folder / "student" / "stage-1"
    assert student.teachers is not None
    assert student.teachers.folder == (folder / "round-2" / "stage-1").resolve()
    assert student.config.data.folds == 0
    first, second = (open_run(runs_of(folder / f"round-{number}" / "stage-1")[0]) for number in (1, 2))
    assert first.teachers is None
    assert second.teachers is not None
    rows = read_metrics(student.folder / "metrics.jsonl")
    assert any(0 < row.get("teacher_probability", 0) <= 1 for row in rows)
    assert not any("teacher_probability" in row for row in read_metrics(first.folder / "metrics.jsonl"))


@pytest.mark.integration
def test_each_fold_has_its_own_teachers(taught):
    folder, _ = taught
    sweep, domain = folder / "round-1" / "stage-1", get_domain("tangrams")
    teachers, words = find_teachers(sweep, CONFIG, "synthetic")
    assert (teachers.folds, teachers.context) == (FOLDS, False)
    loaded = jax.tree.leaves(load_teachers(teachers, domain, words))
    assert {leaf.shape[:2] for leaf in loaded} == {(FOLDS, len(LOOP_SEEDS))}
    for fold in range(FOLDS):
        run = next(run for run in map(open_run, runs_of(sweep)) if run.config.data.fold == fold)
        for leaf, own in zip(loaded, jax.tree.leaves(load_best(run, domain).policies), strict=True):
            np.testing.assert_array_equal(leaf[fold], own)
    assert open_words(open_run(folder).folder).words == words.words


@pytest.mark.slow
def test_a_teaching_that_was_stopped_continues_as_if_it_was_not(taught, tmp_path):
    folder = tmp_path / "cut"
    begin(folder, rounds=2)
    for stop in (("round 1 of 2", 3), ("round 2 of 2", 2), ("student", 4)):
        with pytest.raises(Interrupted, match=f"Continue with: vbsix train --resume {folder}$"):
            go_on(folder, *stop)
    go_on(folder)
    assert outcomes(folder) == outcomes(taught[0])


def test_a_student_that_has_not_begun_is_named(tmp_path):
    begin(tmp_path / "run")
    with pytest.raises(VbsixError, match="its student has not begun yet; continue with: vbsix train --resume"):
        open_run(tmp_path / "run")
    with pytest.raises(VbsixError, match="is in use already"):
        begin(tmp_path / "run")
    assert open_teaching(tmp_path / "run").rounds == 1


@pytest.mark.parametrize(
    ("changes", "folds", "rounds", "message"),
    [
        ({"data.folds": 5}, 2, 1, "teaching says all about folds"),
        ({}, 1, 1, "teaching needs 2 folds and 1 round at least, not 1 and 1"),
        ({}, 2, 0, "teaching needs 2 folds and 1 round at least, not 2 and 0"),
        ({"training.objective": "reinforce"}, 2, 1, "teachers weigh the paths of the search graph"),
        ({"training.programs": "extracted"}, 2, 1, "teachers weigh the paths of the search graph"),
    ],
)
def test_what_cannot_be_taught_is_refused(tmp_path, changes, folds, rounds, message):
    config = override(CONFIG, changes)
    with pytest.raises(VbsixError, match=message):
        plan_teaching(tmp_path, config, [{}], (0,), "synthetic", folds=folds, rounds=rounds)


def test_what_cannot_teach_is_refused(tmp_path):
    begin(tmp_path / "run")
    with pytest.raises(VbsixError, match="holds no run"):
        find_teachers(tmp_path, CONFIG, "synthetic")
    (tmp_path / "teaching.json").write_text("{}")
    with pytest.raises(VbsixError, match=r"teaching\.json: has format None"):
        open_teaching(tmp_path)
