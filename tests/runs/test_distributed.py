"""Several processes that train one run: they learn what one process learns, and fail together."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

import jax
import jax.numpy as jnp
import pytest
from cli.conftest import call_vbsix
from runs.test_sweep import assert_alike
from training.tiny import LOOP_CONFIG, LOOP_SETTINGS, to_arguments

from vbsix.data.dataset import SYNTHETIC
from vbsix.runs.checkpoints import save_checkpoint
from vbsix.runs.folder import Run, create_run
from vbsix.runs.metrics import MetricsFile, read_metrics
from vbsix.training.chunk import create_learners
from vbsix.utilities import processes
from vbsix.utilities.files import remove_file, write_json
from vbsix.utilities.processes import Peers

pytestmark = pytest.mark.integration

SETTINGS = LOOP_SETTINGS | {"data.lengths": (1, 2), "training.learning_rate": 0.0005}
"""Adam turns a difference in the rounding of a small gradient into one of up to the learning rate."""
NEW = ["--method=execution-only", *to_arguments(SETTINGS), "--seeds=2"]


class Ended(NamedTuple):
    code: int
    out: str
    err: str


def start(
    *arguments: str,
    devices: int = 1,
    launcher: Mapping[str, str] = {},
    code: str = "from vbsix.cli import main; main()",
) -> subprocess.Popen:
    flags = f"{os.environ['XLA_FLAGS']} --xla_force_host_platform_device_count={devices}"
    environment = (
        os.environ | launcher | {"XLA_FLAGS": flags, "JAX_PLATFORMS": "cpu", "PYTHONPATH": os.pathsep.join(sys.path)}
    )
    command = [sys.executable, "-c", code, "train", *arguments]
    return subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def end(process: subprocess.Popen) -> Ended:
    try:
        out, err = process.communicate(timeout=200)
    finally:
        process.kill()
    return Ended(process.returncode, out, err)


def free_address() -> str:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return f"127.0.0.1:{found.getsockname()[1]}"


def start_two(*arguments: str, **options) -> list[subprocess.Popen]:
    joining = "--distributed", f"--coordinator={free_address()}", "--processes=2"
    return [start(*arguments, *joining, f"--process={number}", **options) for number in (0, 1)]


def train_alone(*arguments: str, devices: int = 1) -> None:
    ended = end(start(*arguments, "--quiet", devices=devices))
    assert (ended.code, ended.err) == (0, "")


def train_with_two(*arguments: str) -> None:
    first, second = map(end, start_two(*arguments))
    assert (first.code, second.code) == (0, 0), first.err + second.err
    assert "accuracy" in first.out
    assert "accuracy" not in second.out and "step" not in second.out, "process 0 alone has a display"


@pytest.mark.slow
def test_two_processes_learn_what_one_learns_and_resume_each_others_runs(tmp_path):
    alone, by_two, by_one = (tmp_path / name for name in ("alone", "begun by two", "begun by one"))
    train_alone(*NEW, f"--out={alone}", devices=2)
    assert any(row["hit"] > 0 for row in read_metrics(alone / "metrics.jsonl")), "else the policy learns nothing"
    train_with_two(*NEW, f"--out={by_two}", "--steps=10")
    train_alone(f"--resume={by_two}", "--steps=14")
    train_alone(*NEW, f"--out={by_one}", "--steps=10")
    train_with_two(f"--resume={by_one}", "--steps=14")
    for folder in (by_two, by_one):
        assert_alike(folder, alone, tolerance=1e-5)
        mine, wanted = (json.loads((one / "result.json").read_text()) for one in (folder, alone))
        assert (mine["accuracy"], mine["best"]) == (wanted["accuracy"], wanted["best"])


LATER = dict.fromkeys(("training.steps", "training.value_ranking_start", "run.evaluate_every"), 100_000)
ENDLESS = ["--method=reinforce", *to_arguments(SETTINGS | LATER)]
"""It compiles quickly, and does not end by itself."""


def wait_for_rows(folder: Path, *started: subprocess.Popen) -> None:
    until = time.monotonic() + 120
    while not read_metrics(folder / "metrics.jsonl") and time.monotonic() < until:
        assert all(process.poll() is None for process in started)
        time.sleep(0.05)


@pytest.mark.slow
def test_when_one_process_is_told_to_stop_all_do(tmp_path):
    first, second = start_two(*ENDLESS, f"--out={tmp_path / 'run'}")
    wait_for_rows(tmp_path / "run", first, second)
    second.send_signal(signal.SIGINT)
    one, other = end(first), end(second)
    assert (one.code, other.code) == (130, 130)
    assert f"Continue with: vbsix train --resume {tmp_path / 'run'}" in one.err
    assert "Continue with" not in other.err


@pytest.mark.slow
@pytest.mark.parametrize("killed", [0, 1])
def test_when_one_process_dies_the_other_ends_and_the_run_is_intact(tmp_path, killed):
    started = start_two(*ENDLESS, f"--out={tmp_path / 'run'}")
    wait_for_rows(tmp_path / "run", *started)
    started[killed].kill()
    before, ended = time.monotonic(), end(started[1 - killed])
    assert time.monotonic() - before < 60
    assert ended.code != 0
    if killed == 1:  # without process 0, JAX may end the others before they can say anything
        assert ended.code == 2
        assert f"Continue with: vbsix train --resume {tmp_path / 'run'}" in ended.err
    end(started[killed])
    assert end(start(f"--resume={tmp_path / 'run'}", "--steps=2")).err.endswith(
        "has 100000 steps; give more to train it further.\n"
    )


FILLS_UP = """
import errno, os
from vbsix.cli import main

sync, calls = os.fsync, []

def fills_up(descriptor):
    calls.append(sync(descriptor))
    if len(calls) > 12:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

os.fsync = fills_up
main()
"""


@pytest.mark.slow
def test_a_full_disk_ends_all_processes_and_spares_the_checkpoint(tmp_path):
    first, second = start_two(*ENDLESS, f"--out={tmp_path / 'run'}", code=FILLS_UP)
    one, other = end(first), end(second)
    assert one.code == 2
    assert re.search(r"error: \S*step-\d+\S*: No space left on device\n$", one.err)
    assert other.code != 0
    assert list((tmp_path / "run" / "checkpoints").glob("step-*/manifest.json"))


def open_mpi(number: int) -> dict[str, str]:
    """What Open MPI tells a process, of version 5 too."""
    names = "RANK", "LOCAL_RANK", "SIZE"
    return {f"OMPI_COMM_WORLD_{name}": str(value) for name, value in zip(names, (number, number, 2), strict=True)}


@pytest.mark.slow
@pytest.mark.parametrize("launched", [False, True], ids=["numbered by options", "numbered by Open MPI"])
def test_what_keeps_one_process_from_starting_is_a_message_of_all(tmp_path, launched):
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "run.json").write_text("{}")
    if launched:
        joining = "--distributed", f"--coordinator={free_address()}", f"--out={tmp_path / 'run'}"
        both = [start(*NEW, *joining, launcher=open_mpi(number)) for number in (0, 1)]
    else:
        both = start_two(*NEW, f"--out={tmp_path / 'run'}")
    one, other = map(end, both)
    message = f"{tmp_path / 'run'}: is in use already; give another folder, or continue it with --resume.\n"
    assert (one.code, other.code) == (2, 2)
    assert one.err.endswith(f"error: {message}")
    assert other.err.endswith(f"error: process 0: {message}")
    assert [path.name for path in (tmp_path / "run").iterdir()] == ["run.json"]


@pytest.mark.slow
def test_a_batch_that_cannot_be_divided_is_a_message_and_nothing_is_written(tmp_path):
    for ended in map(end, start_two(*NEW, "--set=training.batch=3", f"--out={tmp_path / 'run'}")):
        assert ended.code == 2
        assert "training.batch=3 cannot be divided evenly among 2 processes" in ended.err
    assert not (tmp_path / "run").exists()


@pytest.mark.slow
def test_processes_with_other_settings_are_refused(tmp_path):
    joining = f"--out={tmp_path / 'run'}", "--distributed", f"--coordinator={free_address()}", "--processes=2"
    rates = [f"--set=training.learning_rate={rate}" for rate in (0.1, 0.2)]
    both = [start(*NEW, rate, *joining, f"--process={number}") for number, rate in enumerate(rates)]
    for number, ended in enumerate(map(end, both)):
        assert ended.code == 2
        assert f"error: process {1 - number} has other settings, data or checkpoints than this one." in ended.err


SOON = "from vbsix.utilities import processes; processes.WAIT_SECONDS = 3; from vbsix.cli import main; main()"


@pytest.mark.parametrize("number", [0, 1])
def test_processes_that_do_not_come_are_waited_for_and_reported(tmp_path, number):
    address = free_address()
    joining = "--distributed", f"--coordinator={address}", "--processes=2", f"--process={number}"
    ended = end(start(*joining, f"--out={tmp_path / 'run'}", code=SOON))
    assert (ended.code, ended.out) == (2, "")
    assert ended.err == f"error: after 3 seconds, not all processes have met at {address}.\n"
    assert not list(tmp_path.iterdir())


def test_a_port_that_is_in_use_is_one_message(tmp_path):
    with socket.create_server(("", 0)) as taken:
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        joining = "--distributed", f"--coordinator={address}", "--processes=2", "--process=0"
        ended = end(start(*joining, f"--out={tmp_path / 'run'}"))
    assert (ended.code, ended.out) == (2, "")
    assert ended.err.startswith(f"error: the processes cannot meet at {address}: ") and "in use" in ended.err
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (["--coordinator=a:1"], "--coordinator, --processes and --process are for --distributed."),
        (["--distributed"], "needs --out or --resume"),
        (["--distributed", "--out=run", "--folds=2"], "does not go with sweeps"),
        (["--distributed", "--out=run", "--rounds=2"], "does not go with sweeps, --rounds"),
        (["--distributed", "--out=run", "--processes=2", "--process=2"], "2 processes have the numbers 0 to 1"),
        (["--distributed", "--out=run"], "no other processes were detected. Give --coordinator"),
        (["--distributed", "--out=run", "--coordinator=here"], "cannot meet at here: expected HOST:PORT"),
        (
            ["--distributed", "--out=run", "--coordinator=no.such.host.invalid:1", "--process=1", "--processes=2"],
            "cannot meet at no.such.host.invalid:1: ",
        ),
    ],
)
def test_what_the_user_can_fix_is_one_message(tmp_path, monkeypatch, given, message):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(jax.config, "update", lambda *_: None)
    monkeypatch.setattr(jax._src.xla_bridge, "backends_are_initialized", lambda: False)
    ended = call_vbsix("train", *given)
    assert (ended.code, ended.out) == (2, "")
    assert message in ended.err and ended.err.count("\n") == 1
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("set_by_launcher", "given", "expected"),
    [
        ({}, Peers("a:1", 2, 1), (Peers("a:1", 2, 1), None)),
        (open_mpi(1), Peers("a:1"), (Peers("a:1", 2, 1), [1])),
        (open_mpi(1), Peers("a:1", 4, 3), (Peers("a:1", 4, 3), [1])),
        (open_mpi(1) | {"JAX_LOCAL_DEVICE_IDS": "0"}, Peers(), (Peers(None, 2, 1), None)),
        ({"PMI_RANK": "0", "PMI_SIZE": "3"}, Peers("a:1"), (Peers("a:1", 3, 0), None)),
        ({"SLURM_PROCID": "5", "SLURM_NTASKS": "8", "SLURM_LOCALID": "1"}, Peers(), (Peers(None, 8, 5), [1])),
        ({"SLURM_NTASKS": "8"}, Peers("a:1"), (Peers("a:1"), None)),
    ],
)
def test_a_launcher_numbers_the_processes(monkeypatch, set_by_launcher, given, expected):
    for name in [*sum(processes.LAUNCHERS, ()), "JAX_LOCAL_DEVICE_IDS"]:
        monkeypatch.delenv(name, raising=False)
    for name, value in set_by_launcher.items():
        monkeypatch.setenv(name, value)
    assert processes._ask_launcher(given) == expected


def test_processes_after_the_first_write_nothing(tmp_path, monkeypatch):
    monkeypatch.setattr(processes, "is_distributed", lambda: True)
    monkeypatch.setattr(jax, "process_index", lambda: 1)
    assert not processes.writes_files()
    kept, run = tmp_path / "kept", Run(tmp_path / "run", LOOP_CONFIG, (0,), SYNTHETIC)
    kept.touch()
    remove_file(kept)
    write_json(tmp_path / "file.json", {})
    dataset = create_run(run)
    learners = create_learners(dataset.domain, run.config, jnp.arange(1))
    save_checkpoint(run.checkpoints, 1, learners, run.seeds, {}, {})
    with MetricsFile(run.metrics, 0) as file:
        file.write([{"step": 1, "seed": 0}])
    assert list(tmp_path.iterdir()) == [kept]
