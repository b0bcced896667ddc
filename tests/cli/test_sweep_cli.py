"""`vbsix train --vary`, `--folds` and `--dry-run`."""

from __future__ import annotations

import json

import pytest
from training.tiny import REINFORCE_SETTINGS, to_arguments

pytestmark = pytest.mark.integration


def arguments(*given: str) -> list[str]:
    return ["train", "--method=reinforce", *to_arguments(REINFORCE_SETTINGS), "--seeds=2", *given]


def test_a_sweep_is_trained_and_its_accuracies_are_printed(vbsix, tmp_path):
    folder = tmp_path / "sweep"
    ended = vbsix(*arguments("--vary", "training.learning_rate=0.002,0.001", f"--out={folder}"))
    assert (ended.code, ended.err) == (0, "")
    assert "group 1 of 1: 2 runs of 2 seeds each" in ended.out
    assert "learning_rate=0.002" in ended.out and "dev, 1" in ended.out
    for rate in ("0.002", "0.001"):
        assert (folder / f"learning_rate={rate}" / "result.json").exists()
    again = vbsix(*arguments("--vary", "training.learning_rate=0.002,0.001", f"--out={folder}"))
    assert (again.code, "in use already" in again.err) == (2, True)
    evaluated = vbsix("evaluate", str(folder))
    assert evaluated.code == 0 and "learning_rate=0.001" in evaluated.out and "accuracy on dev, %" in evaluated.out
    assert evaluated.out.count("what comes after that is not read.") == 1
    report = json.loads(vbsix("evaluate", str(folder), "--json").out)
    assert (report["split"], report["mean_over_folds"]) == ("dev", {})
    assert report["runs"].keys() == {"learning_rate=0.002", "learning_rate=0.001"}
    assert all(own["seeds"] == [0, 1] and len(own["accuracy"]["1"]) == 2 for own in report["runs"].values())
    alone = json.loads(vbsix("evaluate", str(folder / "learning_rate=0.001"), "--json").out)
    cut = report["runs"]["learning_rate=0.001"]
    assert (cut["max_words"], cut["cut"]) == (alone["max_words"], alone["cut"])
    refused = vbsix("evaluate", str(folder), "--predictions", str(tmp_path / "all.jsonl"))
    assert refused.code == 2 and "--predictions takes one of its runs" in refused.err
    assert vbsix("plot", str(folder), "--out", str(tmp_path / "curves.svg")).code == 0
    resumed = vbsix("train", "--resume", str(folder))
    assert resumed.code == 0 and "learning_rate=0.002" in resumed.out


def test_a_dry_run_says_what_a_sweep_needs_and_writes_nothing(vbsix, tmp_path):
    folder = tmp_path / "sweep"
    ended = vbsix(*arguments("--folds=2", "--dry-run", f"--out={folder}"))
    assert (ended.code, ended.err) == (0, "")
    assert all(text in ended.out for text in ("fold=0", "fold=1", "steps/s", "MB", "in all"))
    assert not folder.exists()


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (["--vary", "training.learning_rat=1,2"], "Did you mean 'training.learning_rate'?"),
        (["--vary", "training.learning_rate=0.1,fast"], "expected a number"),
        (["--vary", "training.learning_rate=0.1,0.1"], "occurs twice"),
        (["--vary", "search.beam=8,0"], "search.beam: expected a whole number of at least 1"),
        (["--folds", "50"], "there must be 2 to 20 folds"),
        (["--folds", "2", "--set", "data.folds=3"], "leave out data.folds and data.fold"),
        (["--vary", "data.fold=0,1"], "data.folds is 0"),
    ],
)
def test_what_the_user_can_fix_is_one_message_and_nothing_is_trained(vbsix, tmp_path, monkeypatch, given, message):
    monkeypatch.setattr("vbsix.runs.sweep.train_together", lambda *_: pytest.fail("trained"))
    ended = vbsix(*arguments(*given, f"--out={tmp_path / 'sweep'}"))
    assert ended.code == 2
    assert message in ended.err and "Traceback" not in ended.err
