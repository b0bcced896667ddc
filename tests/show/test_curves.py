from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from xml.etree import ElementTree

import pytest

from vbsix.cli import app
from vbsix.config.presets import preset
from vbsix.show.curves import curve, plot_curves, plot_runs
from vbsix.utilities.errors import VbsixError
from vbsix.utilities.files import write_json


def make_run(folder: Path, method: str = "vbsix", steps: int = 3) -> Path:
    """A run of two seeds with made-up metrics."""
    description = {
        "vbsix": "0",
        "seeds": [0, 1],
        "data": "d",
        "config": asdict(preset("scene", method)),
    }
    write_json(folder / "run.json", description)
    rows = []
    for step in range(10, 10 * steps + 1, 10):
        for seed in (0, 1):
            row = {"step": step, "seed": seed, "hit": 0.1, "hit_longest": (step + seed) / 100}
            if method == "vbsix":
                row["value_error"] = 1 / step
            if step == 20:
                row["accuracy"] = {"dev": {"3": 0.5, "5": 0.25 + seed / 2}}
            rows.append(row)
    (folder / "metrics.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return folder


def test_a_curve_has_a_value_for_each_seed_at_each_step():
    rows = [
        {"step": 20, "seed": 0, "hit": 0.5, "accuracy": {"dev": {"5": 0.0}}},
        {"step": 10, "seed": 0, "hit": 0.0},
        {"step": 20, "seed": 1, "hit": 0.75},
    ]
    assert curve(rows, "hit") == [(10, [0.0]), (20, [0.5, 0.75])]
    assert curve(rows, "accuracy", "dev", "5") == [(20, [0.0])]
    assert curve(rows, "value_error") == []


def test_runs_are_drawn_side_by_side_as_svg(tmp_path):
    runs = [make_run(tmp_path / "first"), make_run(tmp_path / "second", "mml")]
    plot_runs(runs, tmp_path / "curves.svg")
    text = (tmp_path / "curves.svg").read_text()
    ElementTree.fromstring(text)
    for words in (
        "first (scene, vbsix-stochastic)",
        "second (scene, mml-stochastic)",
        "hit accuracy",
        "dev accuracy",
        "value network",
    ):
        assert words in text
    plot_runs(runs, tmp_path / "again.svg")
    assert (tmp_path / "again.svg").read_text() == text


@pytest.mark.parametrize("dev", [{"all": 0.25}, {"3": 0.5, "10": 0.25}], ids=["whole rows", "by length"])
def test_dev_accuracy_is_drawn_for_whatever_was_measured(tmp_path, dev):
    run = make_run(tmp_path / "run")
    row = {"step": 10, "seed": 0, "accuracy": {"dev": dev}}
    (run / "metrics.jsonl").write_text(json.dumps(row) + "\n")
    (axes,) = plot_curves([run]).axes  # what was not measured has no panel
    (line,) = axes.lines
    assert axes.get_title().startswith("dev accuracy")
    assert line.get_xydata().tolist() == [[10, 0.25]]


def test_runs_are_drawn_as_png_by_the_command(tmp_path, capsys):
    run, path = make_run(tmp_path / "run", steps=40), tmp_path / "curves.PNG"
    with pytest.raises(SystemExit) as end:
        app(["plot", str(run), "--out", str(path)])
    assert not end.value.code
    assert capsys.readouterr().out == f"drawn in {path}\n"
    assert (tmp_path / "curves.PNG").read_bytes().startswith(b"\x89PNG")


def test_both_formats_are_drawn_in_the_first_folder_unless_told(tmp_path, capsys):
    run, other = make_run(tmp_path / "run", steps=40), make_run(tmp_path / "other", steps=40)
    with pytest.raises(SystemExit) as end:
        app(["plot", str(run), str(other)])
    assert not end.value.code
    assert capsys.readouterr().out == f"drawn in {run / 'curves.png'} and {run / 'curves.svg'}\n"
    assert (run / "curves.png").exists() and (run / "curves.svg").exists()


def test_other_formats_are_refused(tmp_path):
    with pytest.raises(VbsixError, match=r"curves\.doc: expected a name that ends in \.png or \.svg"):
        plot_runs([make_run(tmp_path / "run")], tmp_path / "curves.doc")


def test_a_folder_without_a_run_or_without_metrics_is_named(tmp_path):
    with pytest.raises(VbsixError, match="holds no run"):
        plot_runs([tmp_path], tmp_path / "curves.svg")
    make_run(tmp_path / "run", steps=0)
    with pytest.raises(VbsixError, match="has no metrics yet"):
        plot_runs([tmp_path / "run"], tmp_path / "curves.svg")
