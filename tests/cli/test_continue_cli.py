"""`vbsix train --from`."""

from __future__ import annotations

import json

import pytest
from training.tiny import LOOP_CONFIG, LOOP_SEEDS, run_tiny

import vbsix as library
from vbsix.config.presets import STAGES
from vbsix.config.schema import override
from vbsix.data.dataset import GLOVE
from vbsix.parsing.loading import pretrained_models
from vbsix.playground.feedback import Feedback
from vbsix.playground.messages import FeedbackRequest
from vbsix.playground.models import Model
from vbsix.runs.folder import open_run

pytestmark = pytest.mark.integration


@pytest.fixture(scope="module")
def first(tmp_path_factory):
    """A run to continue."""
    folder = tmp_path_factory.mktemp("runs") / "first"
    run_tiny(folder, LOOP_CONFIG, LOOP_SEEDS)
    return folder


@pytest.mark.slow
def test_the_command_line_continues(vbsix, first, tmp_path):
    out = tmp_path / "run"
    ended = vbsix("train", f"--from={first}", "--set=network.context=4", "--steps=2", f"--out={out}", "--quiet")
    assert (ended.code, ended.err) == (0, "")
    run = open_run(out)
    assert run.config == override(LOOP_CONFIG, {"network.context": 4, "training.steps": 2})
    rows = [json.loads(line) for line in run.metrics.read_text().splitlines()]
    assert [row["step"] for row in rows if "accuracy" in row] == [0, 2]
    assert vbsix("train", f"--from={first}", "--method=mml") == (
        2,
        "",
        "error: --from: method, recipe and variant are those of the policy; change settings with --set.\n",
    )
    ended = vbsix("train", "--from=tangrams")
    assert (ended.code, ended.err) == (2, "error: tangrams: a model does not know where its data is; give --data.\n")
    ended = vbsix("train", "scene", f"--from={first}")
    assert (ended.code, ended.out) == (2, "")
    assert "is for the domain 'tangrams', not for 'scene'" in ended.err


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_corrections_saved_by_the_playground_train_a_built_in_model_further(vbsix, data_dir, tmp_path):
    """As the page on the playground says: whole examples, with the word vectors of the model."""
    out, file, model = tmp_path / "run", tmp_path / "tangrams.jsonl", Model("tangrams", library.load("tangrams"))
    options = f"--data={file}", "--set=data.lengths=[0]", "--set=data.evaluation=[0]", "--steps=2", "--quiet"
    for said, target in (
        (["remove the second figure"], "1:0 2:2 3:3"),
        (["delete the third figure"], "1:0 2:1 3:3"),
        (["swap the first and last figure", "remove the first figure"], "1:1 2:2 3:0"),
        (["swap the first and second figure"], "1:1 2:0 3:2 4:3"),
    ):
        request = FeedbackRequest(model="tangrams", world="1:0 2:1 3:2 4:3", utterances=said, target=target)
        Feedback(tmp_path).save(model, request)
    vectors = f"--set=data.vectors={data_dir / GLOVE}"
    refused = vbsix("train", "--from=tangrams", *options, f"--out={tmp_path / 'refused'}")
    assert refused.code == 2 and "data.vectors=FILE" in refused.err
    ended = vbsix("train", "--from=tangrams", *options, f"--out={out}", vectors)
    assert (ended.code, ended.err) == (0, "")
    rows = [json.loads(line) for line in open_run(out).metrics.read_text().splitlines()]
    assert {row["step"] for row in rows} == {0, 2}


@pytest.mark.slow
def test_a_sweep_continues_each_of_its_runs(vbsix, first, tmp_path):
    out = tmp_path / "sweep"
    ended = vbsix("train", f"--from={first}", "--vary=network.context=0,4", "--steps=1", f"--out={out}", "--quiet")
    assert (ended.code, ended.err) == (0, "")
    for context in (0, 4):
        rows = [json.loads(line) for line in (out / f"context={context}" / "metrics.jsonl").read_text().splitlines()]
        assert rows[0]["step"] == 0


@pytest.mark.slow
def test_the_command_line_trains_in_stages(vbsix, first, tmp_path):
    file, out = tmp_path / "stages.toml", tmp_path / "run"
    file.write_text("[[stages]]\ntraining.steps = 2\n[[stages]]\nnetwork.context = 4\n")
    ended = vbsix("train", f"--from={first}", f"--stages={file}", f"--out={out}")
    assert (ended.code, ended.err) == (0, "")
    assert f"stage 1 of 2: {out / 'stage-1'}, 20 examples" in ended.out
    assert "stage 2, step 2/2" in ended.out
    assert open_run(out).config == override(LOOP_CONFIG, {"network.context": 4, "training.steps": 2})
    again = vbsix("train", f"--resume={out}", "--quiet")
    assert (again.code, again.out, again.err) == (0, "", "")
    assert vbsix("plot", str(out), f"--out={tmp_path / 'curves.svg'}").code == 0
    ended = vbsix("train", "--stages=context", "--folds=2")
    assert (ended.code, ended.err) == (2, "error: --stages does not go with --vary, --folds or --dry-run.\n")


@pytest.mark.slow
def test_python_trains_in_stages(first, tmp_path):
    stages = [{"training.steps": 1}, {"network.context": 4}]
    trained = library.train(
        "tangrams", start=first, stages=stages, seeds=len(LOOP_SEEDS), out=tmp_path / "run", progress=False
    )
    assert (trained.folder, trained.config.network.context) == (tmp_path / "run" / "stage-2", 4)
    assert library.resume(tmp_path / "run", progress=False).result["accuracy"] == trained.accuracy


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ["--rounds=1", "--vary=training.beta=1,2"],
            "--rounds does not go with --from, --teachers, --vary or --dry-run.",
        ),
        (["--student-stages=student"], "--student-stages needs --rounds: without teachers there is no student."),
        (
            ["--rounds=1", "--student-stages=pupil"],
            f"unknown schedule of stages 'pupil'. Known: {', '.join(sorted(STAGES))}.",
        ),
        (["--rounds=1", "--dry-run"], "--rounds does not go with --from, --teachers, --vary or --dry-run."),
        (["--rounds=1", "--set=data.fold=1"], "teaching says all about folds; leave out data.folds and data.fold."),
        (
            ["--teachers=nowhere"],
            "nowhere: no such run or model. Give a run's folder, a file that `vbsix export` wrote, or the name of a "
            f"model that comes with vbsix: {', '.join(pretrained_models())}.",
        ),
    ],
)
def test_wrong_options_of_teaching_are_one_message(vbsix, tmp_path, arguments, message):
    ended = vbsix("train", *arguments, f"--out={tmp_path / 'run'}")
    assert ended == (2, "", f"error: {message}\n")
    assert not (tmp_path / "run").exists()
