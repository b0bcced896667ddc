"""What is wrong with the options of a cluster is one message, and nothing is written."""

from __future__ import annotations

import builtins
import subprocess
import sys

import pytest
from cli.conftest import call_vbsix

from vbsix.cluster.jobs import Job, _Display
from vbsix.runs.metrics import last_step


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (["--engine", "rai", "--folds=2"], "unknown engine 'rai'. Did you mean 'ray'?"),
        (["--address", "auto", "--folds=2"], "--address, --cpus and --gpus are for --engine ray."),
        (["--engine", "ray"], "--engine ray trains sweeps: give --vary or --folds"),
        (["--engine", "ray", "--folds=2", "--out", "s3://bucket/sweep"], "a URL. Give a folder that all nodes share"),
        (
            ["--engine", "ray", "--folds=2", "--address", "127.0.0.1:1"],
            "no Ray cluster can be reached at 127.0.0.1:1: ",
        ),
        (["--engine", "ray", "--folds=2", "--dry-run"], "--dry-run measures on this machine"),
        (["--engine", "ray", "--vary", "training.learning_rat=1,2"], "Did you mean 'training.learning_rate'?"),
    ],
)
def test_what_the_user_can_fix_is_one_message(tmp_path, monkeypatch, given, message):
    pytest.importorskip("ray")
    monkeypatch.chdir(tmp_path)
    ended = call_vbsix("train", *given)
    assert (ended.code, ended.out) == (2, "")
    assert message in ended.err and "Traceback" not in ended.err
    assert not list(tmp_path.iterdir())


def test_a_lone_request_is_not_parsed_on_a_cluster():
    pytest.importorskip("ray")
    ended = call_vbsix("parse", "tangrams", "--engine=ray", "--context", "1:0", "remove it")
    assert (ended.code, ended.err) == (2, "error: --engine ray parses files: give --input and --output.\n")


def test_without_the_extra_the_message_says_what_to_install(monkeypatch, tmp_path):
    original = builtins.__import__

    def without_ray(name, *rest, **options):
        if name == "ray":
            raise ImportError("No module named 'ray'")
        return original(name, *rest, **options)

    monkeypatch.setattr(builtins, "__import__", without_ray)
    ended = call_vbsix("train", "--engine=ray", "--folds=2", f"--out={tmp_path / 'sweep'}")
    assert ended.code == 2 and "pip install 'vbsix[cluster]'" in ended.err
    assert not (tmp_path / "sweep").exists()


def test_nothing_imports_ray_unless_it_is_asked_for():
    code = (
        "import sys, vbsix.cli, vbsix.api, vbsix.cluster.sweep, vbsix.cluster.parsing; assert 'ray' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_the_progress_of_all_jobs_is_shown(tmp_path, capsys):
    from training.tiny import LOOP_CONFIG

    from vbsix.runs.folder import Run

    runs = [Run(tmp_path / name, LOOP_CONFIG, (0,), "synthetic") for name in ("one", "two")]
    for run in runs:
        run.folder.mkdir()
    jobs = [Job(f"group {number} of 2", print, (), [run]) for number, run in enumerate(runs, start=1)]
    display = _Display(jobs, quiet=False)
    runs[1].metrics.write_text('{"step": 4, "seed": 0}\n{"step": 8, "seed": 0}\n{"step": 12, "se')
    display.update()
    display.update()
    assert capsys.readouterr().out == "group 2 of 2: step 8 of 14\n"
    assert (last_step(runs[0].metrics), last_step(runs[1].metrics)) == (0, 8)
