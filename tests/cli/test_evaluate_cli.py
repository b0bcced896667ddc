from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from tiny_run import SEEDS

import vbsix as library
from vbsix.data.synthetic import write_corpus
from vbsix.runs.folder import open_run

pytestmark = pytest.mark.integration


@pytest.fixture(scope="module")
def run(tiny_run):
    return str(tiny_run.run.folder)


def test_json_has_an_accuracy_for_each_seed_and_length(vbsix, tiny_run, run, tmp_path):
    file = tmp_path / "predictions.jsonl"
    ended = vbsix("evaluate", run, "--data", "synthetic", "--split", "held-out", "--json", "--predictions", str(file))
    assert (ended.code, ended.err) == (0, "")
    report = json.loads(ended.out)
    assert (report["format"], report["split"], report["seeds"]) == (1, "held-out", list(SEEDS))
    assert list(report["accuracy"]) == ["1", "2"]
    assert all(len(by_seed) == len(SEEDS) for by_seed in report["accuracy"].values())
    assert sum(one["count"] for one in report["calibration"]["bins"]) == 2 * 12 * len(SEEDS)
    lines = [json.loads(line) for line in file.read_text().splitlines()]
    rows = {row.id: row for row in tiny_run.dataset.splits["held-out"].rows}
    assert len(lines) == 2 * 12 * len(SEEDS)
    for line in lines:
        count = len(line["utterances"])
        assert (line["context"], line["instructions"]) == (line["world"], line["utterances"])
        assert line["denotations"] == line["worlds"]
        assert line["target"] == rows[line["id"]].worlds[count]
        assert line["correct"] == (line["worlds"] is not None and line["worlds"][-1] == line["target"])
        if line["commands"]:
            steps = library.execute("tangrams", line["world"], " ".join(line["commands"]))
            assert (steps[-1].world, steps[-1].commands) == (line["worlds"][-1], count)
    for place, seed in enumerate(SEEDS):
        for length in (1, 2):
            chosen = [line for line in lines if line["seed"] == seed and len(line["utterances"]) == length]
            share = sum(line["correct"] for line in chosen) / len(chosen)
            assert report["accuracy"][str(length)][place] == pytest.approx(share)
            low, high = report["seed_intervals"][str(length)][place]
            assert low <= share <= high


def test_all_seeds_can_be_one_ensemble(vbsix, run, tmp_path):
    ended = vbsix("evaluate", run, "--ensemble", "--json")
    report = json.loads(ended.out)
    assert report["seeds"] == ["1+4"]
    assert all(len(accuracies) == 1 for accuracies in report["accuracy"].values())
    model = str(tmp_path / "ensemble.safetensors")
    assert vbsix("export", run, "--ensemble", "--seed", "1", "--out", model) == (
        2,
        "",
        "error: --ensemble takes all seeds; leave out --seed.\n",
    )
    assert "seed [1, 4]" in vbsix("export", run, "--ensemble", "--out", model).out
    again = json.loads(vbsix("evaluate", model, "--data", "synthetic", "--json").out)
    assert again["accuracy"] == report["accuracy"]


def test_tables_are_printed(vbsix, run):
    ended = vbsix("evaluate", run)
    assert ended.code == 0
    assert "accuracy on dev, %" in ended.out
    rows = [line.split() for line in ended.out.splitlines() if line.strip()]
    assert [row[0] for row in rows if row[1:2] == ["12"]] == ["1", "2"]
    assert [row[0] for row in rows if re.fullmatch(r"\(\d+-\d+\)", row[-1])] == [str(seed) for seed in SEEDS]
    assert "expected calibration error: " in ended.out
    most = open_run(Path(run)).config.data.max_words
    assert re.search(rf"Of the instructions, \d+\.\d% in dev have more than {most} words; what comes after", ended.out)
    assert max(map(len, ended.out.splitlines())) <= 100


def test_a_data_folder_and_an_exported_model_will_do(vbsix, run, tmp_path):
    model = str(tmp_path / "model.safetensors")
    assert vbsix("export", run, "--out", model).code == 0
    write_corpus("tangrams", 40, 5, tmp_path / "data")
    ended = vbsix("evaluate", model, "--data", str(tmp_path / "data"), "--split", "test", "--json")
    assert ended.code == 0, ended.err
    report = json.loads(ended.out)
    assert list(report["accuracy"]) == ["1", "2", "3", "4", "5"]
    assert report["seeds"] == [SEEDS[-1]]
    assert vbsix("evaluate", model) == (
        2,
        "",
        f"error: {model}: a model does not know where its data is; give the data.\n",
    )


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--split", "tset"), "error: unknown split of this data 'tset'. Known: dev, held-out.\n"),
        (
            ("--data", "nowhere"),
            "error: nowhere/tangrams-dev.tsv: no such file; `vbsix data fetch` downloads the data\n",
        ),
        (
            ("--data", "nowhere", "--split", "tset"),
            "error: unknown split 'tset'. Did you mean 'test'? Known: dev, test, train, train-orig.\n",
        ),
    ],
)
def test_bad_options_are_one_message(vbsix, run, options, message):
    assert vbsix("evaluate", run, *options) == (2, "", message)


def test_a_folder_without_a_run_is_one_message(vbsix, tmp_path):
    ended = vbsix("evaluate", str(tmp_path))
    assert ended == (2, "", f"error: {tmp_path}: holds no run; a run's folder has a file run.json.\n")
    ended = vbsix("evaluate", str(tmp_path / "x"))
    assert (ended.code, ended.out) == (2, "")
    assert ended.err.startswith(f"error: {tmp_path / 'x'}: no such run or model.")


def test_predictions_that_cannot_be_written_are_one_message(vbsix, run, tmp_path):
    file = tmp_path / "missing" / "file"
    ended = vbsix("evaluate", run, "--predictions", str(file))
    assert (ended.code, ended.err) == (2, f"error: {file}: No such file or directory\n")
