"""Teaching across folds: who infers a row's worlds, what nobody sees, and what happens when it is stopped."""

from __future__ import annotations

import json
import shutil
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path

import numpy as np
import pytest
from runs.sums import CONFIG, SUMS, write_sums
from training.tiny import Watcher, outcome
from training.tiny_config import tiny_config

from vbsix.config.schema import override
from vbsix.data.dataset import fold_numbers, rows_to_infer
from vbsix.data.examples import Row, to_arrays, whole_rows
from vbsix.data.inferred import read_inferred
from vbsix.domains.registry import get_domain
from vbsix.evaluation.spurious import spurious_finds
from vbsix.parsing.loading import load
from vbsix.parsing.teachers import open_teachers
from vbsix.runs.beginning import begin_training, learn_from
from vbsix.runs.continuing import continue_run
from vbsix.runs.finish import measure_run, train_to_end
from vbsix.runs.folder import Run, create_run, open_run, read_dataset
from vbsix.runs.loop import Interrupted, Trained
from vbsix.runs.sweep import create_sweep, plan_sweep, runs_of, train_sweep
from vbsix.runs.teachers import BEAM, find_teachers, infer_once
from vbsix.runs.teaching import create_teaching, open_teaching, plan_teaching, train_teaching
from vbsix.search.inference import infer_batch
from vbsix.utilities.errors import VbsixError
from vbsix.utilities.files import read_json

SEEDS, FOLDS, ROUNDS = (0, 1), 2, 2
STAGES = ({}, {"training.averaging": 0.9})
STUDENT_STAGES = ({"data.least_posterior": 0.36}, {"training.averaging": 0.9, "data.least_posterior": 0.49})


INFERRING = "inferring worlds"


class Killed(Exception):
    pass


def begin(folder: Path, source: str) -> None:
    given = {"folds": FOLDS, "rounds": ROUNDS, "student_stages": STUDENT_STAGES}
    create_teaching(plan_teaching(folder, CONFIG, STAGES, SEEDS, source, **given), SUMS)


def go_on(folder: Path, stop: tuple[str, int | None] | None = None, phases: list[str] | None = None):
    """Trains to the end, or stops in a phase after a step; without a step, it dies as the phase begins."""

    def watch(phase: str) -> Watcher:
        if phases is not None:
            phases.append(phase)
        if stop and phase.startswith(stop[0]):
            if stop[1] is None:
                raise Killed
            watcher = Watcher(stop[1])
            watcher.steps += [0] * phase.endswith(INFERRING)  # there are no steps
            return watcher
        return Watcher()

    @contextmanager
    def observe_runs(runs, title):
        yield watch(title)

    @contextmanager
    def observe(run, dataset, count):
        yield watch(f"student, stage {run.stage}")

    return train_teaching(folder, observe_runs, observe, SUMS)


def outcomes(folder: Path) -> dict[str, dict[str, str]]:
    """What all runs of a teaching have learned, with the policies that were best on dev, and what they inferred."""
    runs = [file.parent for file in sorted(folder.rglob("run.json"))]
    inferred = {str(file.relative_to(folder)): {"": file.read_text()} for file in folder.rglob("inferred.jsonl")}
    return inferred | {
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
    files = ["round-2/inferred.jsonl", "student/inferred.jsonl"]
    assert set(outcomes(folder)) == {*sweeps, "student/stage-1", "student/stage-2", *files}
    assert open_run(folder) == open_run(folder / "student" / "stage-2")
    assert runs_of(folder) == [folder / "student" / "stage-1", folder / "student" / "stage-2"]
    assert open_run(folder / "round-1/stage-1/fold=0").inferred is None
    for run, file in [("round-2/stage-1/fold=1", files[0]), ("student/stage-2", files[1])]:
        opened = open_run(folder / run)
        assert opened.inferred == folder / file
        inferred = {one.id: one for one in read_inferred(folder / file).rows}
        assert len(inferred) == 24
        dataset = read_dataset(opened, SUMS)
        kept = [row for row in dataset.train.rows if inferred[row.id].posterior >= opened.config.data.least_posterior]
        assert list(dataset.train.rows) == kept and len(dataset.examples) == 2 * len(kept) > 0
        for example in dataset.examples:
            row = inferred[example.id.partition("/")[0]]
            assert dataset.waypoints[example.context, example.instructions[:1]] == row.worlds[0]
            assert example.target == row.worlds[len(example.instructions) - 1]
    first, second = (len(read_dataset(run, SUMS).train.rows) for run in map(open_run, runs_of(folder)))
    assert 24 >= first > second > 0
    stages = [open_run(folder / f"round-{number}" / "stage-2" / "fold=0").config for number in (1, 2)]
    assert [config.data.least_posterior for config in stages] == [0.7, 0.49], "later rounds have the student's stages"


@pytest.mark.slow
@pytest.mark.parametrize(
    "stops",
    [
        [("round 1 of 2, stage 1", 2), ("round 1 of 2, stage 2", None), (f"round 1 of 2, {INFERRING}", 0)],
        [(f"round 1 of 2, {INFERRING}", None), ("round 2 of 2, stage 1", 4), ("round 2 of 2, stage 2", 5)],
        [(f"round 2 of 2, {INFERRING}", 0), ("student, stage 1", None), ("student, stage 2", 1)],
    ],
    ids=["in the first round", "in the second", "up to the student"],
)
def test_a_teaching_that_was_stopped_continues_as_if_it_was_not(taught, tmp_path, stops):
    alone, source = taught
    begin(tmp_path / "cut", source)
    for stop in stops:
        with pytest.raises((Interrupted, Killed)) as stopped:
            go_on(tmp_path / "cut", stop)
        if stop[1] is not None:
            assert str(stopped.value).endswith(f"--resume {tmp_path / 'cut'}")
    phases: list[str] = []
    go_on(tmp_path / "cut", phases=phases)
    assert outcomes(tmp_path / "cut") == outcomes(alone)
    if stops[-1][0].startswith("student"):
        assert not any(phase.endswith(INFERRING) for phase in phases), "worlds were inferred again"


@pytest.mark.integration
def test_intermediate_worlds_reach_no_learner_teacher_or_early_stopping(tmp_path):
    """Training examples are the first two and all three utterances of a row; dev is evaluated after all three.

    In the second data set, all other worlds are wrong: those after one utterance, and in dev those after two.
    """
    config = override(CONFIG, {"data.lengths": (2, 3), "data.waypoints": True, "data.evaluation": (3,)})
    folders = [tmp_path / "right", tmp_path / "wrong"]
    for folder, between in zip(folders, (0, 3), strict=True):
        source = write_sums(tmp_path / f"data-{between}", between=between, utterances=3)
        create_teaching(plan_teaching(folder, config, STAGES[:1], (0,), source, folds=FOLDS, rounds=1), SUMS)
        go_on(folder)
    right, wrong = map(outcomes, folders)
    assert right == wrong and len(right) == FOLDS + 2
    shares = [read_json(folder / "student/stage-1/result.json")["spurious"]["train"] for folder in folders]
    assert shares[0] != shares[1] and set(shares[1]) == {1.0}  # what is measured afterwards does see them


@pytest.mark.parametrize("kind", ["scone", "json lines", "synthetic"])
def test_teachers_are_given_targets_alone(tmp_path, kind):
    """Whatever worlds in between the data has, rows to be inferred have those that training examples end in."""
    config, language, source = override(CONFIG, {"data.lengths": (2,), "data.split": "train"}), SUMS, "synthetic"
    if kind == "synthetic":
        language = get_domain("tangrams")
    elif kind == "scone":
        source = write_sums(tmp_path / "data", utterances=3)
    else:
        line = {"context": "0", "target": "4", "targets": ["1", "3", "4"]}
        lines = [{**line, "id": str(number), "instructions": [f"one {number}", "two", "one"]} for number in range(30)]
        source = str(tmp_path / "sums.jsonl")
        Path(source).write_text("".join(f"{json.dumps(one)}\n" for one in lines))
        config = override(config, {"data.lengths": (0,)})
    lengths = config.data.lengths
    read, _ = rows_to_infer(config.data, language, source, lengths, 1)
    assert read
    for row in read:
        end = lengths[0] or len(row.utterances)
        assert len(row.utterances) >= 2
        assert [place for place, world in enumerate(row.worlds) if world is not None] == [0, end]


@pytest.mark.integration
def test_worlds_are_inferred_by_the_teachers_of_the_row_s_fold(taught):
    folder, source = taught
    teachers = find_teachers(folder / "round-1" / "stage-2", CONFIG, source)
    inferred = read_inferred(folder / "round-2" / "inferred.jsonl")
    assert (inferred.teachers, inferred.lengths) == (teachers.digest(), (2,))
    rows, folds = rows_to_infer(CONFIG.data, SUMS, source, (2,), FOLDS)
    assert [row.id for row in rows] == [one.id for one in inferred.rows] and set(folds) == {0, 1}
    found = []
    for fold in range(FOLDS):
        parser = load(teachers.path / f"fold={fold}", best=True, ensemble=True, domain=SUMS)
        arrays = to_arrays(SUMS, whole_rows(rows), parser.words, 2, CONFIG.data.max_words)
        own = infer_batch(SUMS, parser.policy, parser.words.vectors, arrays, beam=BEAM)
        found.append((np.asarray(own.posterior), np.asarray(own.states["sum"])))
    for place, (fold, one) in enumerate(zip(folds, inferred.rows, strict=True)):
        assert one.posterior == pytest.approx(found[fold][0][place], rel=1e-5)
        assert one.worlds == tuple(map(str, found[fold][1][place]))
        assert one.worlds[-1] == rows[place].worlds[-1]
    assert np.abs(found[0][0] - found[1][0]).max() > 1e-3, "both teachers say the same"


@pytest.mark.integration
def test_worlds_that_others_inferred_are_refused(taught, tmp_path):
    folder, source = taught
    teachers, other = (find_teachers(folder / f"round-{number}" / "stage-2", CONFIG, source) for number in (1, 2))
    path = folder / "round-2" / "inferred.jsonl"

    def infer(teachers, config=CONFIG, source=source):
        return infer_once(path, teachers, [config], source, lambda: unseen([], ""), " Again.", SUMS)

    assert infer(teachers) == path
    for wrong in [(other,), (teachers, override(CONFIG, {"data.lengths": (1, 2)}))]:
        with pytest.raises(VbsixError, match="was inferred by other teachers"):
            infer(*wrong)
    elsewhere = write_sums(tmp_path / "data", rows=23)
    run = Run(tmp_path / "run", CONFIG, SEEDS, elsewhere, inferred=path)
    with pytest.raises(VbsixError, match="belong to other rows than those of the data"):
        read_dataset(run, SUMS)
    run = Run(tmp_path / "run", override(CONFIG, {"data.least_posterior": 1.0}), SEEDS, source, inferred=path)
    posteriors = [one.posterior for one in read_inferred(path).rows]
    assert len(read_dataset(run, SUMS).train.rows) == posteriors.count(1.0)


@pytest.mark.integration
@pytest.mark.slow
def test_a_run_learns_from_the_seeds_of_another(taught, tmp_path):
    """Also one with context, which sees more than its own student."""
    _, source = taught
    config = override(CONFIG, {"network.context": 4, "training.steps": 3})
    train_alone(tmp_path / "teacher", source, {"network.context": 4, "training.steps": 3})
    run = Run(tmp_path / "run", override(config, {"network.context": 0, "data.least_posterior": 0.3}), (0,), source)
    begun = begin_training(run, SUMS, None, None, teachers=tmp_path / "teacher", **NOTHING_ELSE)
    assert begun is not None and begun[0].inferred == tmp_path / "run" / "inferred.jsonl"
    assert open_run(run.folder).inferred == tmp_path / "run" / "inferred.jsonl"
    assert begun[1].domain is SUMS
    trained = train_to_end(*begun, Watcher())
    assert trained.accuracies
    with pytest.raises(VbsixError, match="is in use already"):
        begin_training(run, SUMS, None, None, teachers=tmp_path / "teacher", **NOTHING_ELSE)


@pytest.mark.integration
def test_a_model_teaches_as_the_run_it_was_exported_from(taught, tmp_path):
    folder, source = taught
    run = folder / "round-1" / "stage-2" / "fold=0"
    learner = [Run(tmp_path / "run", CONFIG, SEEDS, source)]
    expected = read_inferred(learn_from(run, tmp_path / "from-run", learner, unseen, SUMS))
    assert sum(bool(one.worlds) for one in expected.rows) > 0
    for name, given in {"ensemble": {"ensemble": True}, "one": {"seed": 0}}.items():
        model = tmp_path / f"{name}.safetensors"
        load(run, best=True, domain=SUMS, **given).export(model)
        teachers = open_teachers(model)
        inferred = read_inferred(learn_from(teachers, tmp_path / name, learner, unseen, SUMS))
        assert (inferred.data, inferred.lengths) == (expected.data, expected.lengths)
        assert inferred.teachers == teachers.digest() != expected.teachers
        posteriors = [one.posterior for one in inferred.rows]
        same = posteriors == pytest.approx([one.posterior for one in expected.rows], rel=1e-5)
        assert same == (name == "ensemble"), "one seed alone infers otherwise"
        if same:
            assert [one.worlds for one in inferred.rows] == [one.worlds for one in expected.rows]
    with pytest.raises(VbsixError, match="teaches sums, not tangrams"):
        learn_from(teachers, tmp_path / "other", [Run(tmp_path / "run", tiny_config(), SEEDS, source)], unseen)


@pytest.mark.slow
def test_a_language_that_remembers_where_teaches_that_of_the_paper(tmp_path, monkeypatch):
    """Their worlds are the same, their states are not. The beam is wide, for the teacher has learned nothing."""
    monkeypatch.setattr("vbsix.runs.teachers.BEAM", 2000)
    config = tiny_config(domain="tangrams-where", training__steps=2)
    teacher = Run(tmp_path / "teacher", config, (0,), "synthetic")
    dataset = create_run(teacher)
    measure_run(teacher, dataset, train_to_end(teacher, dataset, Watcher()))
    student = override(config, {"domain": "tangrams", "data.least_posterior": 0.0})
    run = Run(tmp_path / "run", student, (0,), "synthetic")
    begun = begin_training(run, get_domain("tangrams"), None, None, teachers=teacher.folder, **NOTHING_ELSE)
    assert begun is not None
    inferred = [one for one in read_inferred(begun[0].inferred).rows if one.worlds]
    rows = {row.id: row for row in begun[1].train.rows}
    assert inferred and all(one.worlds == (rows[one.id].worlds[1],) for one in inferred)
    assert train_to_end(*begun, Watcher()).accuracies


@contextmanager
def unseen(runs, title):
    yield Watcher()


NOTHING_ELSE = {"stages": None, "folds": FOLDS, "rounds": None, "student_stages": None, "observe": unseen}


@pytest.mark.integration
def test_targets_that_one_run_knows_do_not_reach_another(taught, tmp_path):
    folder, source = taught
    configs = [override(CONFIG, {"data.lengths": lengths}) for lengths in [(2,), (1, 2)]]
    runs = [Run(tmp_path / str(number), config, (0,), source) for number, config in enumerate(configs)]
    with pytest.raises(VbsixError, match="the targets that one knows would reach the others"):
        learn_from(folder / "round-1" / "stage-2", tmp_path / "sweep", runs, unseen, SUMS)
    assert not (tmp_path / "sweep").exists()


@pytest.mark.integration
def test_data_that_has_changed_is_refused(taught, tmp_path):
    """The folds of its rows would be others."""
    folder, source = taught
    shutil.copytree(folder / "round-1" / "stage-2", tmp_path / "folds")
    shutil.copytree(source, tmp_path / "data")
    data = tmp_path / "data" / "sums-train.tsv"
    for file in tmp_path.glob("folds/*/run.json"):
        file.write_text(file.read_text().replace(source, str(tmp_path / "data")))
    run = Run(tmp_path / "run", CONFIG, (0,), str(tmp_path / "data"))
    assert learn_from(tmp_path / "folds", tmp_path / "before", [run], unseen, SUMS).exists()
    data.write_text("".join(reversed(data.read_text().splitlines(keepends=True))))
    with pytest.raises(VbsixError, match="was trained on other rows than those to learn from"):
        learn_from(tmp_path / "folds", tmp_path / "after", [run], unseen, SUMS)


@pytest.mark.integration
def test_teachers_have_the_same_dev_rows(taught, tmp_path):
    folder, source = taught
    run = Run(tmp_path / "run", override(CONFIG, {"data.split": "train-orig"}), (0,), source)
    with pytest.raises(VbsixError, match="was trained on other rows than those to learn from"):
        learn_from(folder, tmp_path / "other", [run], unseen, SUMS)


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
    """Nor a beginning of it, of any row."""
    source = write_sums(tmp_path / "data", rows=40, noise=0)  # rows share their utterances
    config = override(CONFIG, {"data.lengths": (1, 2), "data.suffixes": True})
    rows, folds = rows_to_infer(config.data, SUMS, source, (1, 2), 2)
    assert len(rows) == 40 and set(folds) == {0, 1}
    for fold in (0, 1):
        seen = read_dataset(Run(tmp_path, override(config, {"data.folds": 2, "data.fold": fold}), SEEDS, source), SUMS)
        known = {(example.context, example.instructions) for example in seen.examples if " from " not in example.id}
        for row, own in zip(rows, folds, strict=True):
            if own == fold:
                assert not any((row.worlds[0], row.utterances[:length]) in known for length in (1, 2))


@pytest.mark.integration
def test_what_cannot_teach_is_refused(taught, tmp_path):
    folder, source = taught
    round_1 = folder / "round-1" / "stage-2"
    with pytest.raises(VbsixError, match="need the same data"):
        find_teachers(round_1, CONFIG, "elsewhere")
    with pytest.raises(VbsixError, match="teaches sums, not tangrams"):
        find_teachers(round_1, override(CONFIG, {"domain": "tangrams"}), source)
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
        ({"training.objective": "reinforce"}, {}, "reinforce learns from samples, so that it cannot use"),
        ({}, {"student_stages": [{"data.lengths": (1, 2)}]}, "data.lengths must be the same in all runs and stages"),
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


def train_alone(folder: Path, source: str, settings: dict, **given) -> Trained:
    start = given.pop("start", None)
    run = Run(folder, override(CONFIG, LONGER | settings), SEEDS, source, **given)
    dataset = create_run(run, SUMS, start=start)
    trained = train_to_end(run, dataset, Watcher())
    measure_run(run, dataset, trained)
    return trained


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
    assert not train_sweep(sweep, unseen, SUMS)
    config = override(CONFIG, LONGER)
    inferred = learn_from(tmp_path / "folds", tmp_path / "taught", [Run(tmp_path, config, SEEDS, clean)], unseen, SUMS)
    control = train_alone(tmp_path / "control", clean, {}, start=start)
    taught = train_alone(tmp_path / "taught", clean, {}, start=start, inferred=inferred)
    everything = read_dataset(Run(tmp_path, config, SEEDS, clean), SUMS)  # all rows, without what was inferred

    def spurious(trained: Trained) -> list[float]:
        """The spurious share of what each seed's searches find for training rows."""
        shares = spurious_finds(everything, trained.learners.evaluated, config, 2)
        return [share for share in shares if share is not None]

    assert min(spurious(before)) > 0.1
    assert max(spurious(taught)) < 0.5 * min(spurious(control))
    rows = read_inferred(inferred).rows
    right = [one.worlds == row.worlds[1:] for one, row in zip(rows, everything.train.rows, strict=True)]
    likely = [one.posterior >= config.data.least_posterior for one in rows]
    assert np.mean(np.array(right)[likely]) > 0.9 and np.mean(likely) > 0.5
