"""A run that was cut, however and whenever, ends like one that was left alone."""

from __future__ import annotations

import itertools
import json
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from training.tiny import LOOP_ARGUMENTS, LOOP_CONFIG, LOOP_SEEDS, Watcher, outcome, run_tiny, to_arguments

from vbsix.config.schema import override
from vbsix.domains.registry import get_domain
from vbsix.runs import group, loop
from vbsix.runs.folder import Run, create_run, load_best, open_run, reopen_run
from vbsix.runs.loop import Interrupted, train
from vbsix.runs.metrics import MetricsFile, read_metrics
from vbsix.utilities.errors import VbsixError

pytestmark = pytest.mark.integration


CONFIG, SEEDS = LOOP_CONFIG, LOOP_SEEDS
LONG = {"training.steps": 120, "run.log_every": 2, "run.evaluate_every": 10}


@pytest.fixture(scope="module")
def left_alone(tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs") / "alone"
    run_tiny(folder, CONFIG, SEEDS)
    return outcome(folder)


@pytest.mark.parametrize("stops", [(3,), (5,), (7, 8, 13), (14,), tuple(range(1, 15))], ids=str)
def test_a_run_that_was_stopped_continues_as_if_it_was_not(tmp_path, left_alone, stops):
    for stop in stops:
        with pytest.raises(Interrupted, match=f"Stopped after step {stop} of 14. Continue with: vbsix train --resume"):
            run_tiny(tmp_path / "run", CONFIG, SEEDS, watcher=Watcher(stop_at=stop))
    run_tiny(tmp_path / "run", CONFIG, SEEDS)
    assert outcome(tmp_path / "run") == left_alone


def test_a_finished_run_that_is_trained_further_ends_like_one_that_was_begun_so(tmp_path, left_alone):
    run_tiny(tmp_path / "run", override(CONFIG, {"training.steps": 10}), SEEDS)
    with pytest.raises(VbsixError, match="has 10 steps; give more"):
        reopen_run(tmp_path / "run", steps=9)
    run, dataset = reopen_run(tmp_path / "run", steps=14)
    train(run, dataset, Watcher())
    assert open_run(tmp_path / "run").config.training.steps == 14
    assert outcome(tmp_path / "run") == left_alone


def test_a_run_whose_learning_rate_has_fallen_to_0_is_not_trained_further(tmp_path):
    decaying = override(CONFIG, {"training.decay_share": 0.5})
    create_run(Run(tmp_path / "run", decaying, SEEDS, "synthetic"))
    with pytest.raises(VbsixError, match="its learning rate has fallen to 0 at step 14"):
        reopen_run(tmp_path / "run", steps=20)


class StopsWhenEvaluated(Watcher):
    """Hears Ctrl-C while a step is evaluated."""

    def wants_to_stop(self):
        return self.stop_at in self.accuracies


@pytest.mark.parametrize("stop", [5, 14], ids=["no checkpoint is due", "the last step"])
def test_a_run_that_was_stopped_while_evaluated_continues_as_if_it_was_not(tmp_path, left_alone, stop):
    with pytest.raises(Interrupted, match=f"Stopped after step {stop} of 14"):
        run_tiny(tmp_path / "run", CONFIG, SEEDS, watcher=StopsWhenEvaluated(stop_at=stop))
    run_tiny(tmp_path / "run", CONFIG, SEEDS)
    assert outcome(tmp_path / "run") == left_alone


def test_damaged_best_policies_are_reported_and_not_needed(tmp_path, left_alone):
    with pytest.raises(Interrupted):
        run_tiny(tmp_path / "run", CONFIG, SEEDS, watcher=Watcher(stop_at=9))
    best = tmp_path / "run" / "best.safetensors"
    content = best.read_bytes()
    best.write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
    with pytest.raises(VbsixError, match=r"best\.safetensors: damaged: its numbers"):
        load_best(open_run(tmp_path / "run"), get_domain("tangrams"))
    watcher = Watcher()
    best.write_bytes(content[:100])
    run_tiny(tmp_path / "run", CONFIG, SEEDS, watcher=watcher)
    assert len(watcher.messages) == 1
    assert watcher.messages[0].startswith(f"{best}: cannot be read")
    assert watcher.messages[0].endswith("Continuing without the best policies so far.")
    assert outcome(tmp_path / "run") == left_alone
    assert min(load_best(open_run(tmp_path / "run"), get_domain("tangrams")).steps) > 9


class Crash(Exception):
    """What the next test raises in the middle of a run."""


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("place", ["save_checkpoint", "evaluate_splits", "write"])
def test_a_run_that_crashed_between_two_steps_continues_as_if_it_did_not(
    tmp_path, monkeypatch, left_alone, place, after
):
    owner = {"write": MetricsFile, "evaluate_splits": group}.get(place, loop)
    original, calls = getattr(owner, place), 0

    def crashes_every_third_time(*arguments, **options):
        nonlocal calls
        calls += 1
        result = original(*arguments, **options) if after or calls % 3 else None
        if not calls % 3:
            raise Crash
        return result

    monkeypatch.setattr(owner, place, crashes_every_third_time)
    crashes = 0
    while crashes < 20:
        try:
            run_tiny(tmp_path / "run", CONFIG, SEEDS)
            break
        except Crash:
            crashes += 1
    assert 0 < crashes < 20
    assert outcome(tmp_path / "run") == left_alone


def test_a_half_written_row_is_written_again(tmp_path, left_alone):
    with pytest.raises(Interrupted):
        run_tiny(tmp_path / "run", CONFIG, SEEDS, watcher=Watcher(stop_at=9))
    with (tmp_path / "run" / "metrics.jsonl").open("a") as file:
        file.write('{"step": 12, "se')
    run_tiny(tmp_path / "run", CONFIG, SEEDS)
    assert outcome(tmp_path / "run") == left_alone


def test_what_a_resumed_run_took_before_is_counted(tmp_path, monkeypatch):
    monkeypatch.setattr(loop.time, "perf_counter", itertools.count().__next__)
    with pytest.raises(Interrupted):
        run_tiny(tmp_path / "run", CONFIG, SEEDS, watcher=Watcher(stop_at=9))
    manifest = json.loads((tmp_path / "run" / "checkpoints" / "step-00000009" / "manifest.json").read_text())
    before = manifest["progress"]["seconds"]
    assert before > 0
    monkeypatch.setattr(loop.time, "perf_counter", itertools.count(10_000).__next__)
    assert before < run_tiny(tmp_path / "run", CONFIG, SEEDS).seconds < 10_000


KILLS_ITSELF = """
import os, signal, sys
from vbsix.cli import main
from vbsix.runs import loop

save, saved = loop.save_checkpoint, []

def kill_after_the_third(*arguments):
    saved.append(save(*arguments))
    if len(saved) == 3:
        os.kill(os.getpid(), signal.SIGKILL)

loop.save_checkpoint = kill_after_the_third
main()
"""


@pytest.mark.slow
def test_a_run_that_was_killed_continues_as_if_it_was_not(tmp_path, left_alone):
    """The run ends in this process, where all is compiled: it does not matter either which process it is."""
    command = [sys.executable, "-c", KILLS_ITSELF, "train", "--quiet", *LOOP_ARGUMENTS, f"--out={tmp_path / 'run'}"]
    assert subprocess.run(command).returncode == -signal.SIGKILL
    assert open_run(tmp_path / "run").config == CONFIG
    watcher = Watcher()
    run_tiny(tmp_path / "run", CONFIG, SEEDS, watcher)
    assert watcher.steps[0] == 9
    assert outcome(tmp_path / "run") == left_alone


def start_or_resume(folder: Path) -> list[str]:
    """Resumes a run; one that was killed before it had begun is begun."""
    command = [sys.executable, "-m", "vbsix", "train", "--quiet"]
    if (folder / "run.json").exists():
        return [*command, f"--resume={folder}"]
    return [*command, *LOOP_ARGUMENTS, *to_arguments(LONG), f"--out={folder}"]


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_a_run_that_was_killed_ten_times_at_random_moments_continues_as_if_it_was_not(tmp_path):
    """Each process is killed some rows after its first, at a moment between two rows."""
    config, folder, generator = override(CONFIG, LONG), tmp_path / "run", random.Random(10)
    run_tiny(tmp_path / "alone", config, SEEDS)
    for _ in range(10):
        process = subprocess.Popen(start_or_resume(folder))
        wanted = len(read_metrics(folder / "metrics.jsonl")) + generator.randint(0, 8)
        while process.poll() is None and len(read_metrics(folder / "metrics.jsonl")) <= wanted:
            time.sleep(0.01)
        time.sleep(generator.uniform(0, 0.1))
        process.kill()
        assert process.wait() == -signal.SIGKILL
    assert open_run(folder).config == config
    run_tiny(folder, config, SEEDS)
    assert outcome(folder) == outcome(tmp_path / "alone")
    rows = [(row["step"], row["seed"]) for row in read_metrics(folder / "metrics.jsonl")]
    assert rows == [(step, seed) for step in range(2, 121, 2) for seed in SEEDS]
