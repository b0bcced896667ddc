"""What is wrong with the options of a cluster is one message, and nothing is written."""

from __future__ import annotations

import builtins
import errno
import os
import socket
import subprocess
import sys
import threading
from contextlib import contextmanager, nullcontext
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace

import pytest
from cli.conftest import call_vbsix
from training.tiny import LOOP_CONFIG

import vbsix
from vbsix.cluster import parsing
from vbsix.cluster.connection import Cluster, fetch_result
from vbsix.cluster.jobs import Job, _Display
from vbsix.cluster.parsing import AHEAD, Model, answer_on
from vbsix.parsing.requests import Answering
from vbsix.parsing.streaming import Block
from vbsix.runs.display import MessageFile
from vbsix.runs.folder import Run, save_failure
from vbsix.runs.metrics import last_step
from vbsix.utilities.errors import VbsixError


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (["--engine", "rai", "--folds=2"], "unknown engine 'rai'. Did you mean 'ray'?"),
        (["--address", "auto", "--folds=2"], "address, cpus, gpus and storage are for the engine ray."),
        (["--engine", "ray"], "--engine ray trains sweeps: give --vary or --folds"),
        (["--engine", "ray", "--folds=2", "--out", "s3://bucket/sweep"], "a URL. Give a folder that all nodes share"),
        (
            ["--engine", "ray", "--folds=2", "--address", "127.0.0.1:1"],
            "no Ray cluster can be reached at 127.0.0.1:1: ",
        ),
        (["--storage", "file:///tmp", "--folds=2"], "address, cpus, gpus and storage are for the engine ray."),
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


@pytest.mark.parametrize("answer", [b"HTTP/1.1 400 Bad Request\r\n\r\n", b"-ERR\r\n", b"", None])
def test_an_address_where_something_else_listens_is_one_message(tmp_path, monkeypatch, answer):
    pytest.importorskip("ray")
    monkeypatch.setattr("vbsix.cluster.connection.ANSWER_SECONDS", 1)
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = f"127.0.0.1:{server.getsockname()[1]}"

        def listen() -> None:
            connection, _ = server.accept()
            with connection:
                if answer is None:  # it says nothing, and waits
                    connection.recv(1000)
                    connection.recv(1)
                connection.sendall(answer or b"")

        listening = threading.Thread(target=listen, daemon=True)
        listening.start()
        ended = call_vbsix("train", "--engine=ray", "--folds=2", f"--out={tmp_path / 'sweep'}", f"--address={address}")
        listening.join(10)
    assert (ended.code, ended.out) == (2, "")
    assert ended.err.startswith(f"error: no Ray cluster can be reached at {address}: ") and ended.err.count("\n") == 1
    assert not (tmp_path / "sweep").exists()


def test_a_language_that_tasks_cannot_import_is_refused(tmp_path):
    pytest.importorskip("ray")

    class Hall:
        tokens = ("go",)
        max_tokens_per_instruction = 1
        attributes = {"x": 3}

        def start(self, context): ...
        def step(self, state, token): ...
        def instructions_done(self, state): ...
        def denotation(self, state): ...
        def describe(self, state): ...
        def describe_target(self, target): ...

    with pytest.raises(VbsixError, match=r"(?i)hall: tasks on a cluster import a language .*: give module:Class"):
        vbsix.sweep(
            vbsix.PythonDomain(Hall),
            "hall.jsonl",
            vary={"training.batch": [1, 2]},
            engine="ray",
            out=tmp_path / "sweep",
        )
    assert not (tmp_path / "sweep").exists()


def test_a_sweep_from_python_connects_before_it_writes(tmp_path):
    pytest.importorskip("ray")
    with pytest.raises(VbsixError, match=r"no Ray cluster can be reached at 127\.0\.0\.1:1: "):
        vbsix.sweep(folds=2, engine="ray", address="127.0.0.1:1", out=tmp_path / "sweep")
    assert not (tmp_path / "sweep").exists()


class TaskError(Exception):
    def __init__(self, cause: Exception):
        self.cause = cause


class Ended(Exception):
    pass


EXCEPTIONS = SimpleNamespace(RayTaskError=TaskError, RayError=Ended)


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (TaskError(VbsixError("too large")), "group 1: too large"),
        (
            TaskError(OSError(errno.ENOSPC, "No space left on device", "run/a")),
            "group 1: run/a: No space left on device",
        ),
        (TaskError(ZeroDivisionError("by zero")), "group 1: ZeroDivisionError: by zero"),
        (Ended("gone\nfor good"), "group 1: its process or node died too often: gone"),
    ],
)
def test_what_fails_in_a_task_is_one_message(error, message):
    def get(ref):
        raise error

    with pytest.raises(VbsixError) as raised:
        fetch_result(SimpleNamespace(get=get, exceptions=EXCEPTIONS), None, "group 1")
    assert str(raised.value) == message


class EagerRay:
    """Stands for the module; a task is in flight until its result is fetched."""

    exceptions = EXCEPTIONS

    def __init__(self, cpus: int):
        self.cpus, self.in_flight, self.most = cpus, 0, 0

    def remote(self, **options):
        def start(place, model, how, first, lines) -> bytes:
            self.in_flight += 1
            self.most = max(self.most, self.in_flight)
            return b"answer\n" * len(lines)

        return lambda function: SimpleNamespace(remote=start)

    def get(self, ref: bytes) -> bytes:
        self.in_flight -= 1
        return ref

    def cluster_resources(self):
        return {"CPU": self.cpus}


def test_few_blocks_of_a_file_are_in_flight(monkeypatch):
    ray = EagerRay(cpus=6)

    @contextmanager
    def connect(cluster):
        yield ray

    monkeypatch.setattr(parsing, "connect", connect)
    read = 0

    def blocks():
        nonlocal read
        for number in range(100):
            read += 1
            yield Block(number + 1, (b"{}\n",), number, "")

    answered = 0
    for block, answers in answer_on(Cluster(cpus=2), Model("tangrams", None, None), Answering(), blocks()):
        answered += 1
        assert (block.first, answers) == (answered, b"answer\n")
        assert read - answered < 3 * AHEAD, "the file is not read ahead of what is answered"
    assert (answered, ray.most) == (100, 3 * AHEAD)


def test_what_runs_say_in_a_task_is_shown_once(tmp_path, capsys):
    def add(run: Run, text: str) -> None:
        with run.messages.open("a") as file:
            file.write(text)

    runs = [Run(tmp_path / name, LOOP_CONFIG, (0,), "synthetic") for name in ("one", "two")]
    for run in runs:
        run.folder.mkdir()
    MessageFile(runs[:1]).on_message("said in an earlier call")
    display = _Display([Job("group 1 of 1", print, (), runs)], quiet=False)
    MessageFile(runs).on_message("nothing has been learned")
    MessageFile(runs[1:]).on_message("fünf\nlines")
    add(runs[1], "unfin")
    display.update()
    assert capsys.readouterr().out == "group 1 of 1: nothing has been learned\ngroup 1 of 1: fünf\nlines\n"
    add(runs[1], "ished\n")
    display.update()
    display.update()
    assert capsys.readouterr().out == "group 1 of 1: unfinished\n"


def test_a_run_that_has_diverged_does_not_stop_the_progress(tmp_path, capsys):
    runs = [Run(tmp_path / name, LOOP_CONFIG, (0,), "synthetic") for name in ("one", "two")]
    for run, step in zip(runs, (4, 8), strict=True):
        run.folder.mkdir()
        run.metrics.write_text(f'{{"step": {step}, "seed": 0}}\n')
    display = _Display([Job("group 1 of 1", print, (), runs)], quiet=False)
    display.update()
    save_failure(runs[0], VbsixError("not finite"))
    display.update()
    assert capsys.readouterr().out == "group 1 of 1: step 4 of 14\ngroup 1 of 1: step 8 of 14\n"


def test_a_folder_that_cannot_be_written_is_one_message(tmp_path, monkeypatch):
    pytest.importorskip("ray")

    make = Path.mkdir

    def refuses(path, *arguments, **options):
        if path.is_relative_to(tmp_path / "shared"):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(tmp_path / "shared"))
        make(path, *arguments, **options)

    monkeypatch.setattr(import_module("vbsix.cli.train"), "connected", lambda cluster: nullcontext())
    monkeypatch.setattr(Path, "mkdir", refuses)
    ended = call_vbsix("train", "--engine=ray", "--folds=2", f"--out={tmp_path / 'shared' / 'sweep'}")
    assert (ended.code, ended.out) == (2, "")
    assert ended.err == f"error: {tmp_path / 'shared'}: Permission denied\n"


def test_the_progress_of_all_jobs_is_shown(tmp_path, capsys):
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
