"""A Ray cluster of two nodes on this machine, whose processes and nodes are killed."""

from __future__ import annotations

import json
import os
import signal
import threading
import time
from functools import partial
from pathlib import Path

import pytest
from cli.conftest import call_vbsix
from runs.test_sweep import QUICK, VALUES, assert_alike, unseen
from training.tiny import LOOP_SETTINGS, to_arguments

import vbsix
from vbsix.cluster.connection import Cluster
from vbsix.cluster.parsing import Model, answer_on
from vbsix.cluster.sweep import train_sweep_on
from vbsix.config.schema import override, to_settings
from vbsix.parsing.requests import Answering
from vbsix.parsing.streaming import answer_file
from vbsix.runs.checkpoints import checkpoint_steps
from vbsix.runs.sweep import Sweep, create_sweep, plan_sweep, train_sweep
from vbsix.utilities.errors import VbsixError

# Ray leaves sockets and files of its processes open, and warns of its own plans.
pytestmark = [pytest.mark.integration, pytest.mark.slow, pytest.mark.timeout(600), pytest.mark.filterwarnings("ignore")]

LONG = override(QUICK, {"training.steps": 60, "run.checkpoint_every": 5, "run.evaluate_every": 30})
"""Long enough to be killed in the middle."""
TOLERANCE = 1e-4
"""A sweep that is killed is divided into other programs, which round differently, and Adam amplifies that."""


class Nodes:
    """A cluster with a head and a second node of one core each."""

    def __init__(self):
        from ray.cluster_utils import Cluster as RayCluster

        self.cluster = RayCluster(initialize_head=True, head_node_args={"num_cpus": 1})
        self.head, self.second = self.cluster.head_node, self.cluster.add_node(num_cpus=1)

    def find_task(self, node, title: str) -> int | None:
        """The process on a node that runs a task whose name begins so."""
        raylet = node.all_processes["raylet"][0].process.pid
        for process in Path("/proc").glob("[0-9]*"):
            try:
                parent = int((process / "stat").read_text().rpartition(")")[2].split()[1])
                if parent == raylet and (process / "cmdline").read_bytes().startswith(f"ray::{title}".encode()):
                    return int(process.name)
            except OSError:  # it has ended
                continue
        return None


@pytest.fixture(scope="module")
def nodes():
    pytest.importorskip("ray")
    made = Nodes()
    yield made
    made.cluster.shutdown()


def plan(folder: Path) -> Sweep:
    sweep = plan_sweep(folder, LONG, VALUES, (0, 1), "synthetic")
    create_sweep(sweep)
    return sweep


def wait_until(condition, seconds: float = 240):
    until = time.monotonic() + seconds
    while not (found := condition()):
        assert time.monotonic() < until, "it did not happen"
        time.sleep(0.02)
    return found


def stop_in_the_middle(nodes: Nodes, node, sweep: Sweep) -> int:
    """Waits until a group of the sweep on a node has a checkpoint, and stops its process."""

    def found() -> int | None:
        process = nodes.find_task(node, "group ")
        if process is None:
            return None
        number = int(Path(f"/proc/{process}/cmdline").read_text().split()[1])
        return process if checkpoint_steps(sweep.groups[number - 1][0].checkpoints) else None

    process = wait_until(found)
    os.kill(process, signal.SIGSTOP)
    return process


def test_a_sweep_whose_worker_and_node_are_killed_ends_like_a_local_one(nodes, tmp_path):
    local, swept = plan(tmp_path / "local"), plan(tmp_path / "ray")
    failed = []
    training = threading.Thread(
        target=lambda: failed.append(train_sweep_on(Cluster(nodes.cluster.address), swept, quiet=True)), daemon=True
    )
    training.start()
    worker = stop_in_the_middle(nodes, nodes.head, swept)
    assert not any((run.folder / "result.json").exists() for run in swept.runs)
    os.kill(worker, signal.SIGKILL)
    other = stop_in_the_middle(nodes, nodes.second, swept)
    nodes.cluster.remove_node(nodes.second, allow_graceful=False)
    os.kill(other, signal.SIGKILL)  # a stopped process does not see that its node is gone
    training.join(240)
    assert failed == [{}]
    assert train_sweep(local, unseen) == {}
    for one, wanted in zip(swept.runs, local.runs, strict=True):
        assert_alike(one.folder, wanted.folder, TOLERANCE)
        mine, others = (json.loads((run.folder / "result.json").read_text()) for run in (one, wanted))
        assert (mine["accuracy"], mine["best"]) == (others["accuracy"], others["best"])
    # What has ended is not trained again, and the command line collects it.
    ended = call_vbsix("train", "--resume", str(swept.folder), "--engine=ray", f"--address={nodes.cluster.address}")
    assert ended.code == 0 and "accuracy after the last step" in ended.out


def test_a_sweep_in_a_storage_survives_a_device_that_fails(nodes, tmp_path, monkeypatch):
    local, swept = (plan_sweep(tmp_path / name, QUICK, VALUES, (0, 1), "synthetic") for name in ("local", "ray"))
    create_sweep(local)
    create_sweep(swept)
    url, marker, calls = f"file://{tmp_path / 'there'}", tmp_path / "failed", tmp_path / "calls"

    def fails_once(*arguments) -> None:  # a task gets a copy of this function
        import jax

        from vbsix.cluster.sweep import _train_stored_group
        from vbsix.runs import loop

        train_chunk = loop.train_chunk

        def train_chunk_until(*given, **options):
            if int(given[6]) >= 6 and not marker.exists():
                marker.touch()
                raise jax.errors.JaxRuntimeError("INTERNAL: CUDA_ERROR_LAUNCH_FAILED")
            with calls.open("a") as file:
                file.write(f"{int(given[6])}\n")
            return train_chunk(*given, **options)

        loop.train_chunk = train_chunk_until
        _train_stored_group(*arguments)

    monkeypatch.setattr("vbsix.cluster.sweep._train_stored_group", fails_once)
    assert train_sweep_on(Cluster(nodes.cluster.address, storage=url), swept, quiet=True) == {}
    assert marker.exists(), "nothing has failed"
    steps = list(map(int, calls.read_text().split()))
    assert (steps.count(0), steps.count(1)) == (2, 2), "the group began again from a checkpoint"
    assert train_sweep(local, unseen) == {}
    for one, wanted in zip(swept.runs, local.runs, strict=True):
        assert_alike(one.folder, wanted.folder, TOLERANCE)
        mine, others = (json.loads((run.folder / "result.json").read_text()) for run in (one, wanted))
        assert (mine["accuracy"], mine["best"]) == (others["accuracy"], others["best"])
    # On another machine, what the storage holds is not trained again.
    calls.unlink()
    settings = {name: value for name, value in to_settings(QUICK).items() if "." in name}
    where = {"engine": "ray", "address": nodes.cluster.address, "storage": url, "out": tmp_path / "elsewhere"}
    found = vbsix.sweep("tangrams", method="vbsix", vary=VALUES, seeds=2, progress=False, **where, **settings)
    assert not calls.exists()
    assert {name: run.accuracy for name, run in found.runs.items()} == {
        run.folder.name: json.loads((run.folder / "result.json").read_text())["accuracy"] for run in local.runs
    }
    other = plan_sweep(tmp_path / "other", QUICK, {"training.batch": [2, 4]}, (0, 1), "synthetic")
    create_sweep(other)
    with pytest.raises(VbsixError, match=f"storage {url}: holds another sweep"):
        train_sweep_on(Cluster(nodes.cluster.address, storage=url), other, quiet=True)


def test_a_device_that_lacks_memory_is_not_tried_again_and_the_others_end(nodes, tmp_path, monkeypatch):
    swept = plan_sweep(tmp_path / "ray", QUICK, VALUES, (0, 1), "synthetic")
    create_sweep(swept)
    calls = tmp_path / "calls"

    def lacks_memory(folder, number, origin) -> None:
        import jax

        from vbsix.cluster.sweep import _train_group
        from vbsix.runs import loop

        train_chunk = loop.train_chunk

        def fails(*given, **options):
            if number == 1:
                with calls.open("a") as file:
                    file.write("called\n")
                raise jax.errors.JaxRuntimeError("RESOURCE_EXHAUSTED: Out of memory")
            return train_chunk(*given, **options)

        loop.train_chunk = fails
        _train_group(folder, number, origin)

    monkeypatch.setattr("vbsix.cluster.sweep._train_group", lacks_memory)
    with pytest.raises(VbsixError) as raised:
        train_sweep_on(Cluster(nodes.cluster.address), swept, quiet=True)
    assert "group 1 of 2: " in str(raised.value) and "has too little memory" in str(raised.value)
    assert str(raised.value).endswith(f"{swept.folder} --engine ray --address {nodes.cluster.address}")
    assert str(raised.value).count("Continue with: vbsix train --resume ") == 1
    assert calls.read_text() == "called\n"
    assert all((run.folder / "result.json").exists() for run in swept.groups[1])


def test_the_runs_of_a_table_are_trained_on_a_cluster(nodes, tmp_path):
    small = to_arguments(
        {name: value for name, value in LOOP_SETTINGS.items() if name != "training.value_ranking_start"}
    )
    chosen = "--domains=tangrams", "--methods=mml", "--recipes=stochastic", "--variants=none", "--seeds=1"
    where = "--engine=ray", f"--address={nodes.cluster.address}"
    ended = call_vbsix("reproduce", "table2", "--data=synthetic", *chosen, f"--out={tmp_path}", *small, *where)
    assert (ended.code, ended.err) == (0, ""), ended.err
    (result,) = (tmp_path / "results").glob("*.json")
    assert json.loads(result.read_text())["steps"] == LOOP_SETTINGS["training.steps"]
    assert "still to do: " not in ended.out or result.stem not in ended.out.partition("still to do: ")[2]
    assert (tmp_path / "synthetic-table2.md").exists()


REQUESTS = [
    {"id": number, "context": "1:0 2:3 3:4", "instructions": ["swap figure 1 and figure 3"] * (1 + number % 3)}
    for number in range(40)
]


def test_a_file_is_answered_in_order_when_a_worker_is_killed(nodes, tiny_run, tmp_path):
    source, target = tmp_path / "requests.jsonl", tmp_path / "answers.jsonl"
    source.write_text("".join(json.dumps(request) + "\n" for request in REQUESTS))
    model, killed = Model(str(tiny_run.run.folder), 1, None), []

    def kill() -> None:
        killed.append(wait_until(lambda: nodes.find_task(nodes.head, "_answer")))  # it takes seconds to load the model
        os.kill(killed[0], signal.SIGKILL)

    killing = threading.Thread(target=kill, daemon=True)
    killing.start()
    answer = partial(answer_on, Cluster(nodes.cluster.address), model, Answering())
    assert list(answer_file(source, target, {}, answer, block=4))[-1].answers == 40
    killing.join(10)
    assert killed
    local = tmp_path / "local.jsonl"
    files = "--input", str(source), "--output", str(local)
    assert call_vbsix("parse", str(tiny_run.run.folder), "--seed=1", *files).code == 0
    answers, wanted = ([json.loads(line) for line in path.read_text().splitlines()] for path in (target, local))
    assert [one["id"] for one in answers] == list(range(40))
    for one, other in zip(answers, wanted, strict=True):
        assert [reading["worlds"] for reading in one["readings"]] == [
            reading["worlds"] for reading in other["readings"]
        ]
        assert one["confidence"] == pytest.approx(other["confidence"], rel=1e-4)
