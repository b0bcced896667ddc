"""The scripts behind docs/beyond-scone.md: what they count, and that a task leaves a result."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
from training.tiny_config import SETTINGS

SCRIPTS = Path(__file__).parents[1] / "docs" / "scripts"
sys.path.insert(0, str(SCRIPTS))
import beyond  # noqa: E402
import ceilings  # noqa: E402

from vbsix.domains import registry  # noqa: E402
from vbsix.utilities.errors import VbsixError  # noqa: E402
from vbsix.utilities.files import write_json  # noqa: E402


@pytest.mark.parametrize(
    ("program", "equation", "numbers", "expected"),
    [
        ("number0 number1 - answer", "- number0 number1", [8, 2], True),
        ("12 number1 / answer", "- number0 number1", [8, 2], False),
        ("number1 number0 - answer", "- number0 number1", [4, 4], True),
        ("number0 number1 + answer", "+ number0 number0", [8, 8], True),
        ("number0 number1 number2 - - answer", "+ - number0 number1 number2", [50, 49, 1], True),
        ("number0 2 * answer", "+ number0 2.0", [2], False),
    ],
)
def test_a_program_is_spurious_if_other_numbers_tell_it_from_the_equation(program, equation, numbers, expected):
    assert beyond.agree(program.split(), equation.split(), numbers) == expected


@pytest.mark.parametrize(
    ("equation", "numbers", "expected"),
    [
        ("- number0 number1", [8, 2], True),
        ("- number1 number0", [8, 2], False),  # negative
        ("+ number1 number0", [8, 2], True),  # in the other order
        ("+ number0 number0", [8, 2], False),  # used twice
        ("+ number0 number0", [8, 8], True),
        ("* number0 12.0", [3], True),
        ("* number0 13.0", [3], False),
        ("+ + + + number0 number1 number2 number3 number4", [1, 2, 3, 4, 5], False),  # too long
    ],
)
def test_what_the_language_of_word_problems_can_say(equation, numbers, expected):
    assert ceilings.is_expressible(numbers, equation.split()) == expected


def _write_part(folder, fold, accuracy, **changed):
    part = {"task": "svamp", "accuracy": {fold: accuracy}, "measured": ["accuracy"], "examples": {fold: 10}}
    alike = {"folds": ["one", "two"], "seconds": 1.0, "settings": {}, "seeds": [0, 1], "versions": {}}
    write_json(folder / f"svamp-{fold}.json", {**part, **alike, **changed})


def test_the_results_of_single_folds_are_joined(tmp_path):
    _write_part(tmp_path, "one", [0.5, 0.25])
    _write_part(tmp_path, "two", [0.25, 0.75], seconds=2.0)
    _write_part(tmp_path, "other", [1.0, 1.0], task="mawps")
    beyond.join("svamp", tmp_path, tmp_path / "out")
    result = json.loads((tmp_path / "out" / "svamp.json").read_text())
    assert result["accuracy"] == {"one": [0.5, 0.25], "two": [0.25, 0.75], "mean": [0.375, 0.5]}
    assert result["examples"] == {"one": 10, "two": 10}
    assert result["seconds"] == 2
    assert "folds" not in result


def test_all_folds_are_needed_to_join_them(tmp_path):
    _write_part(tmp_path, "two", [0.5])
    with pytest.raises(VbsixError, match="no results of svamp for one"):
        beyond.join("svamp", tmp_path, tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_folds_that_were_trained_differently_are_not_joined(tmp_path):
    _write_part(tmp_path, "one", [0.5])
    _write_part(tmp_path, "two", [0.5], settings={"search.beam": 4})
    with pytest.raises(VbsixError, match="were not trained alike"):
        beyond.join("svamp", tmp_path, tmp_path)


def test_files_that_other_processes_may_be_reading_stay(tmp_path):
    (tmp_path / "math").mkdir()
    for split in ("train", "dev"):
        path = tmp_path / "math" / f"mawps-asdiv-a_svamp-{split}.csv"
        path.write_text("Question,Numbers,Equation,Answer\nhow many number0 less number1 ?,8 2,- number0 number1,6\n")
    place = tmp_path / "runs" / "svamp"
    (fold,) = beyond.write_absent(beyond.TASKS["svamp"], tmp_path, place)
    files = {path: path.stat() for path in place.iterdir()}
    assert {fold.train, fold.test, fold.test.with_suffix(".csv")} < {*files} and len(files) == 4
    fold.train.unlink()
    assert beyond.write_absent(beyond.TASKS["svamp"], tmp_path, place) == [fold]
    assert fold.train.exists() and {*place.iterdir()} == {*files}
    others = [path for path in files if path != fold.train]
    assert all(path.stat().st_mtime_ns == files[path].st_mtime_ns for path in others)
    assert all(path.stat().st_ino == files[path].st_ino for path in others)


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_a_task_trains_all_folds_and_writes_its_result(tmp_path, monkeypatch):
    monkeypatch.setattr(registry, "_registered", {})
    monkeypatch.setattr(registry, "_origins", {})
    monkeypatch.setattr(beyond, "ROOT", tmp_path)
    (tmp_path / "math").mkdir()
    (tmp_path / "glove").mkdir()
    (tmp_path / beyond.GLOVE).write_text("how 1 2 3 4\nmany 5 6 7 8\n")
    for fold in range(beyond.MAWPS_FOLDS):
        for split in ("train", "dev"):
            rows = [
                f"how many number0 less number1 ?,{8 + place} {2 + fold},- number0 number1,{6 + place - fold}"
                for place in range(6)
            ]
            path = tmp_path / "math" / f"cv_mawps-fold{fold}-{split}.csv"
            path.write_text("\n".join(["Question,Numbers,Equation,Answer", *rows]))
    tiny = {
        **SETTINGS,
        "network.word": 4,
        "training.steps": 4,
        "training.batch": 2,
        "search.beam": 4,
        "data.max_words": 4,
    }
    tiny = {name: value for name, value in tiny.items() if name not in ("data.lengths", "data.evaluation")}
    monkeypatch.setitem(beyond.TASKS, "mawps", beyond.TASKS["mawps"]._replace(settings=tiny))
    beyond.main("mawps", tmp_path, 2, ["training.dropout=0.1"])
    result = json.loads((tmp_path / "results" / "beyond" / "mawps.json").read_text())
    folds = [f"cv_mawps-fold{fold}" for fold in range(beyond.MAWPS_FOLDS)]
    assert list(result["accuracy"]) == [*folds, "mean"] == list(result["spurious"])
    assert [len(result[what]["mean"]) for what in ("marginal", "ensemble")] == [2, 1]
    assert all(len(shares) == 2 for shares in result["accuracy"].values())
    assert (result["seeds"], result["examples"][folds[0]]) == ([0, 1], 6)
    assert result["config"]["training"]["dropout"] == 0.1 == result["settings"]["training.dropout"]
    assert str(tmp_path) not in json.dumps(result)
    assert result["command"].endswith(f"mawps --data {tmp_path.name} --seeds 2 --set=training.dropout=0.1")
