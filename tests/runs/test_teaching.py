"""Teaching across folds: whom a row is taught by, what nobody sees, and what happens when it is stopped."""

from __future__ import annotations

from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path

import jax
import numpy as np
import pytest
from runs.sums import CONFIG, SUMS, write_sums
from training.tiny import Watcher, outcome

from vbsix.config.schema import override
from vbsix.data.dataset import fold_numbers
from vbsix.data.examples import Row
from vbsix.runs.continuing import continue_run
from vbsix.runs.finish import measure_run, train_to_end
from vbsix.runs.folder import Run, Teachers, create_run, load_best, open_run, read_dataset
from vbsix.runs.loop import Interrupted
from vbsix.runs.metrics import read_metrics
from vbsix.runs.sweep import create_sweep, plan_sweep, runs_of, train_sweep
from vbsix.runs.teachers import find_teachers, load_teachers
from vbsix.runs.teaching import create_teaching, open_teaching, plan_teaching, train_teaching
from vbsix.utilities.errors import VbsixError
from vbsix.utilities.files import read_json

SEEDS, FOLDS, ROUNDS = (0, 1), 2, 2
STAGES = ({}, {"training.averaging": 0.9, "training.teacher_threshold": 0.01})


class Killed(Exception):
    pass


def begin(folder: Path, source: str) -> None:
    create_teaching(plan_teaching(folder, CONFIG, STAGES, SEEDS, source, folds=FOLDS, rounds=ROUNDS), SUMS)


def go_on(folder: Path, stop: tuple[str, int | None] | None = None):
    """Trains to the end, or stops in a phase after a step; without a step, it dies as the phase begins."""

    def watch(phase: str) -> Watcher:
        if stop and phase.startswith(stop[0]):
            if stop[1] is None:
                raise Killed
            return Watcher(stop[1])
        return Watcher()

    @contextmanager
    def observe_runs(runs, title):
        yield watch(title)

    @contextmanager
    def observe(run, dataset, count):
        yield watch(f"student, stage {run.stage}")

    return train_teaching(folder, observe_runs, observe, SUMS)


def outcomes(folder: Path) -> dict[str, dict[str, str]]:
    """What all runs of a teaching have learned, with the policies that were best on dev."""
    runs = [file.parent for file in sorted(folder.rglob("run.json"))]
    return {
        str(run.relative_to(folder)): {
            **outcome(run),
            "best": sha256((run / "best.safetensors").read_bytes()).hexdigest(),
        }
        for run in runs
    }


@pytest.fixture(scope="module")
def taught(tmp_path_factory):
    """A teaching that was left alone, and its data."""
    base = tmp_path_factory.mktemp("teaching")
    source = write_sums(base / "data")
    begin(base / "alone", source)
    go_on(base / "alone")
    return base / "alone", source


@pytest.mark.integration
def test_all_rounds_and_the_student_are_trained(taught):
    folder, _ = taught
    sweeps = [f"round-{number}/stage-{stage}/fold={fold}" for number in (1, 2) for stage in (1, 2) for fold in (0, 1)]
    assert set(outcomes(folder)) == {*sweeps, "student/stage-1", "student/stage-2"}
    assert open_run(folder) == open_run(folder / "student" / "stage-2")
    assert runs_of(folder) == [folder / "student" / "stage-1", folder / "student" / "stage-2"]
    for run, teachers in [("round-2/stage-1/fold=1", "round-1"), ("student/stage-2", "round-2")]:
        assert open_run(folder / run).teachers.folder == folder / teachers / "stage-2"
        rows = read_metrics(folder / run / "metrics.jsonl")
        assert all(0 < row["teacher_probability"] <= 1 and row["taught"] > 0 for row in rows if "taught" in row)
        assert any("taught" in row for row in rows)
    assert open_run(folder / "round-1/stage-1/fold=0").teachers is None


@pytest.mark.slow
@pytest.mark.parametrize(
    "stops",
    [
        [("round 1 of 2, stage 1", 2), ("round 1 of 2, stage 2", None), ("round 2 of 2, stage 1", 4)],
        [("round 2 of 2, stage 2", 5), ("student, stage 1", None), ("student, stage 2", 1)],
    ],
    ids=["in rounds", "up to the student"],
)
def test_a_teaching_that_was_stopped_continues_as_if_it_was_not(taught, tmp_path, stops):
    alone, source = taught
    begin(tmp_path / "cut", source)
    for stop in stops:
        with pytest.raises((Interrupted, Killed)) as stopped:
            go_on(tmp_path / "cut", stop)
        if stop[1] is not None:
            assert str(stopped.value).endswith(f"--resume {tmp_path / 'cut'}")
    go_on(tmp_path / "cut")
    assert outcomes(tmp_path / "cut") == outcomes(alone)


@pytest.mark.integration
def test_intermediate_worlds_reach_no_learner_teacher_or_early_stopping(tmp_path):
    """Training examples are the first two and all three utterances of a row; dev is evaluated after all three.

    In the second data set, all other worlds are wrong: those after one utterance, and in dev those after two.
    """
    config = override(CONFIG, {"data.lengths": (2, 3), "data.waypoints": True, "data.evaluation": (3,)})
    folders = [tmp_path / "right", tmp_path / "wrong"]
    for folder, between in zip(folders, (0, 3), strict=True):
        source = write_sums(tmp_path / f"data-{between}", between=between, utterances=3)
        create_teaching(plan_teaching(folder, config, STAGES[1:], (0,), source, folds=FOLDS, rounds=1), SUMS)
        go_on(folder)
    right, wrong = map(outcomes, folders)
    assert right == wrong and len(right) == FOLDS + 1
    shares = [read_json(folder / "student/stage-1/result.json")["spurious"]["train"] for folder in folders]
    assert shares[0] != shares[1] and set(shares[1]) == {1.0}  # what is measured afterwards does see them


@pytest.mark.integration
def test_each_fold_has_its_own_teachers(taught):
    folder, source = taught
    teachers, words = find_teachers(folder / "round-1" / "stage-2", CONFIG, source)
    assert (teachers.folds, teachers.context) == (FOLDS, False)
    loaded = jax.tree.leaves(load_teachers(teachers, SUMS, words))
    assert {leaf.shape[:2] for leaf in loaded} == {(FOLDS, len(SEEDS))}
    for fold in range(FOLDS):
        own = load_best(open_run(teachers.folder / f"fold={fold}"), SUMS).policies
        for leaf, expected in zip(loaded, jax.tree.leaves(own), strict=True):
            np.testing.assert_array_equal(leaf[fold], expected)


def make_row(name: str, *utterances: str, worlds: tuple[str | None, ...] | None = None) -> Row:
    return Row(name, worlds or ("0", *[None] * (len(utterances) - 1), "4"), utterances)


def test_rows_that_share_an_example_are_in_one_fold():
    others = [make_row(f"other-{number}", f"u{number}", "v") for number in range(40)]
    shared = [
        make_row("a", "x", "y"),
        make_row("b", "x", "y", "z"),  # begins with the whole of a
        make_row("c", "x", "q", worlds=("0", "1", "4")),
        make_row("d", "x", "r", worlds=("0", "1", "4")),  # has the example of one utterance of c
        make_row("a", "k", "l"),  # has the id of a
        make_row("e", "k", "l"),
    ]
    for folds in (2, 3, 7, 20):
        a, b, c, d, again, e = fold_numbers([*others, *shared], folds)[len(others) :]
        assert a == b == again == e
        assert c == d
    numbers = {fold for folds in range(30, 42) for fold in [tuple(fold_numbers([*others, *shared], folds)[-6:])]}
    assert any(row[0] != row[2] for row in numbers)  # beginnings that end in no known world may be in two folds
    with pytest.raises(VbsixError, match="there must be 2 to 42 folds"):
        fold_numbers([*others, *shared], 43)


def test_nobody_teaches_an_example_that_they_have_seen(tmp_path):
    """Nor a beginning of it, of any row; suffix examples have the fold of their row."""
    source = write_sums(tmp_path / "data", rows=40, noise=0)  # rows share their utterances
    settings = {"data.lengths": (1, 2), "data.suffixes": True}
    config = override(CONFIG, settings)
    teachers = Teachers(tmp_path, 2, False)
    student = read_dataset(Run(tmp_path, config, SEEDS, source, teachers=teachers), SUMS)
    assert len(student.folds) == len(student.examples) and set(student.folds) == {0, 1}
    for fold in (0, 1):
        seen = read_dataset(Run(tmp_path, override(config, {"data.folds": 2, "data.fold": fold}), SEEDS, source), SUMS)
        known = {(example.context, example.instructions) for example in seen.examples if " from " not in example.id}
        for example, own in zip(student.examples, student.folds, strict=True):
            if own == fold and " from " not in example.id:
                beginnings = [example.instructions[:length] for length in (1, 2)]
                assert not any((example.context, beginning) in known for beginning in beginnings)


@pytest.mark.integration
def test_what_cannot_teach_is_refused(taught, tmp_path):
    folder, source = taught
    round_1 = folder / "round-1" / "stage-2"
    with pytest.raises(VbsixError, match="need the same --data"):
        find_teachers(round_1, CONFIG, "elsewhere")
    with pytest.raises(VbsixError, match="teaches sums, not tangrams"):
        find_teachers(round_1, override(CONFIG, {"domain": "tangrams"}), source)
    with pytest.raises(VbsixError, match="teachers weigh the paths of the search graph"):
        find_teachers(round_1, override(CONFIG, {"training.programs": "extracted"}), source)
    with pytest.raises(VbsixError, match="holds no run"):
        find_teachers(tmp_path, CONFIG, source)
    begin(tmp_path / "begun", source)
    with pytest.raises(Interrupted):
        go_on(tmp_path / "begun", ("round 1", 1))
    with pytest.raises(VbsixError, match="has not ended yet, so it cannot teach"):
        find_teachers(tmp_path / "begun" / "round-1" / "stage-1", CONFIG, source)
    with pytest.raises(VbsixError, match="its student has not begun yet; continue with: vbsix train --resume"):
        open_run(tmp_path / "begun")
    with pytest.raises(VbsixError, match="is in use already"):
        begin(tmp_path / "begun", source)


@pytest.mark.parametrize(
    ("settings", "options", "message"),
    [
        ({"data.folds": 3}, {}, "teaching says all about folds"),
        ({}, {"folds": 1}, "teaching needs 2 folds and 1 round at least, not 1 and 1"),
        ({}, {"rounds": 0}, "teaching needs 2 folds and 1 round at least, not 5 and 0"),
        ({"training.objective": "reinforce"}, {}, "teachers weigh the paths of the search graph"),
    ],
)
def test_a_wrong_plan_is_refused(tmp_path, settings, options, message):
    with pytest.raises(VbsixError, match=message):
        plan_teaching(tmp_path / "run", override(CONFIG, settings), [{}], SEEDS, "data", **options)
    assert not (tmp_path / "run").exists()


def test_a_damaged_description_is_one_message(tmp_path):
    (tmp_path / "teaching.json").write_text('{"format": 1, "seeds": [0]}')
    with pytest.raises(VbsixError, match=r"teaching\.json: "):
        open_teaching(tmp_path)


def train_alone(folder: Path, source: str, settings: dict, **given) -> list[float]:
    """The spurious share of what each seed's searches find for training rows, at the end of a run."""
    start = given.pop("start", None)
    run = Run(folder, override(CONFIG, LONGER | settings), SEEDS, source, **given)
    dataset = create_run(run, SUMS, start=start)
    return measure_run(run, dataset, train_to_end(run, dataset, Watcher())).result["spurious"]["train"]


LONGER = {
    "training.steps": 150,
    "training.learning_rate": 0.02,
    "run.chunk": 5,
    "run.log_every": 50,
    "run.evaluate_every": 50,
    "run.checkpoint_every": 50,
}


@pytest.mark.integration
@pytest.mark.slow
def test_teachers_lower_the_share_of_planted_spurious_programs(tmp_path):
    """A policy has memorised spurious programs of some rows. By itself it keeps them, for they are correct."""
    planted = write_sums(tmp_path / "planted", rows=30, noise=3, planted=12)
    clean = write_sums(tmp_path / "clean", rows=30, noise=3)
    # Worlds after the first utterance are targets here, so that the policy learns what is planted.
    train_alone(tmp_path / "misled", planted, {"data.lengths": (1, 2), "data.waypoints": True, "training.steps": 300})
    start = continue_run(open_run(tmp_path / "misled"), SUMS)
    before = train_alone(tmp_path / "before", clean, {"training.steps": 1, "training.learning_rate": 0.0}, start=start)
    config = override(CONFIG, LONGER | {"data.folds": 3})
    sweep = plan_sweep(tmp_path / "folds", config, {"data.fold": range(3)}, SEEDS, clean)
    create_sweep(sweep, SUMS)

    @contextmanager
    def observe(runs, title):
        yield Watcher()

    assert not train_sweep(sweep, observe, SUMS)
    teachers, _ = find_teachers(tmp_path / "folds", override(CONFIG, LONGER), clean)
    control = train_alone(tmp_path / "control", clean, {}, start=start)
    taught = train_alone(tmp_path / "taught", clean, {}, start=start, teachers=teachers)
    assert min(before) > 0.1
    assert max(taught) < 0.5 * min(control)
