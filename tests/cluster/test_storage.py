"""A sweep's folder at a URL: what is there after an upload, and what is fetched."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest
from cli.conftest import call_vbsix
from training.tiny import LOOP_CONFIG

from vbsix.cluster import sweep as on_cluster
from vbsix.cluster.connection import Cluster
from vbsix.cluster.storage import Storage, require_writable
from vbsix.config.schema import override
from vbsix.runs.folder import Run, save_failure
from vbsix.runs.sweep import Sweep, create_sweep, plan_sweep
from vbsix.utilities.errors import VbsixError

fsspec = pytest.importorskip("fsspec")
FINISHED = ["run/checkpoints/step-00000004/manifest.json", "run/checkpoints/step-00000004/seed-0.safetensors"]


def fill(folder: Path, *names: str, content: str = "content") -> None:
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(content)


def listed(folder: Path) -> list[str]:
    return sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file())


@pytest.fixture(params=["file", "memory"])
def url(request, tmp_path):
    """A new folder of a file system."""
    return f"file://{tmp_path / 'there'}" if request.param == "file" else f"memory://{tmp_path.name}"


def test_what_is_uploaded_is_fetched_on_another_node(url, tmp_path):
    here, node = tmp_path / "here", tmp_path / "node"
    fill(here, "sweep.json", "run/metrics.jsonl", ".hidden", "run/.best.safetensors.part", *FINISHED)
    storage, other = Storage(url, here), Storage(url, node)
    storage.upload()
    other.fetch()
    assert listed(node) == sorted(["sweep.json", "run/metrics.jsonl", *FINISHED])
    # What has changed on the node comes back, and what it has removed is gone.
    later = [name.replace("4", "8") for name in FINISHED]
    fill(node, *later)
    fill(node, "run/metrics.jsonl", content="more")
    for name in FINISHED:
        (node / name).unlink()
    removed = tmp_path / "there" / FINISHED[1]
    removed.unlink(missing_ok=True)  # by an upload that failed
    other.upload()
    storage.fetch()
    assert (here / "run/metrics.jsonl").read_text() == "more"
    third = tmp_path / "third"
    Storage(url, third).fetch()
    assert listed(third) == sorted(["sweep.json", "run/metrics.jsonl", *later])
    assert not list((tmp_path / "there").rglob(".*")), "left over"


def test_only_what_has_changed_is_sent(url, tmp_path, monkeypatch):
    here, sent = tmp_path / "here", []
    fill(here, "sweep.json", *FINISHED)
    storage = Storage(url, here)
    monkeypatch.setattr(Storage, "_put", lambda self, name, content: sent.append(name))
    storage.upload()
    assert sent == ["run/checkpoints/step-00000004/seed-0.safetensors", "sweep.json", FINISHED[0]], "manifests last"
    storage.upload()
    fill(here, "sweep.json", content="changed")
    storage.upload()
    assert sent[3:] == ["sweep.json"]


def test_a_checkpoint_without_its_manifest_is_not_fetched(url, tmp_path):
    fill(tmp_path / "here", "run/run.json", FINISHED[1])
    Storage(url, tmp_path / "here").upload()
    Storage(url, tmp_path / "node").fetch()
    assert listed(tmp_path / "node") == ["run/run.json"]


def test_a_run_that_has_come_further_here_is_not_set_back(url, tmp_path):
    fill(tmp_path / "here", "run/metrics.jsonl", *FINISHED, content="old")
    Storage(url, tmp_path / "here").upload()
    fill(tmp_path / "node", "run/metrics.jsonl", "run/checkpoints/step-00000009/manifest.json", content="new")
    Storage(url, tmp_path / "node").fetch()
    assert (tmp_path / "node" / "run/metrics.jsonl").read_text() == "new"


def test_a_call_that_is_killed_leaves_no_half_file(url, tmp_path, monkeypatch):
    fill(tmp_path / "here", "run/result.json")
    storage = Storage(url, tmp_path / "here")

    def dies(path, content):
        type(storage.files).pipe_file(storage.files, path, content[:3])
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(storage.files, "pipe_file", dies, raising=False)
    with pytest.raises(VbsixError, match=f"{url}: .*No space left on device"):
        storage.upload()
    monkeypatch.undo()
    Storage(url, tmp_path / "node").fetch()
    assert listed(tmp_path / "node") == []


@pytest.mark.parametrize("run", ["lengths=[1,2]", "what?", "all*"])
def test_names_of_runs_are_no_patterns(url, tmp_path, run):
    fill(tmp_path / "here", f"{run}/run.json")
    Storage(url, tmp_path / "here").upload()
    Storage(url, tmp_path / "node").fetch()
    assert listed(tmp_path / "node") == [f"{run}/run.json"]
    assert not list((tmp_path / "there").rglob(".*")), "left over"


def test_other_files_of_that_name_are_no_checkpoints(url, tmp_path):
    others = ["manifest.json", "app/manifest.json", "app/checkpoints/newest/manifest.json", "a/b/step-x/manifest.json"]
    fill(tmp_path / "here", "run/run.json", *FINISHED, *others)
    Storage(url, tmp_path / "here").upload()
    Storage(url, tmp_path / "node").fetch()
    assert {"run/run.json", *FINISHED} <= set(listed(tmp_path / "node"))


def test_a_url_that_can_be_written_is_left_empty(tmp_path):
    url = f"file://{tmp_path / 'there'}"
    require_writable(url)
    Storage(url, tmp_path / "node").fetch()
    assert not (tmp_path / "node").exists()


@pytest.mark.parametrize(
    ("storage", "message"),
    [
        ("file://{file}/sweep", "cannot be written: "),
        ("nosuch://bucket/sweep", "nosuch"),
        ("https://localhost:1/sweep", "storage https://localhost:1/sweep: "),
        ("reference://x", "TypeError: "),
        ("dir://", "AttributeError: "),
        ("dbfs://h/x", "TypeError: "),
        ("generic://x", "TypeError: "),
        ("memory://x", "tasks do not see the memory of this process; give another URL."),
    ],
)
def test_a_url_that_cannot_be_written_is_one_message(tmp_path, monkeypatch, storage, message):
    pytest.importorskip("ray")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "file").touch()
    storage = storage.format(file=tmp_path / "file")
    ended = call_vbsix("train", "--engine=ray", "--folds=2", "--out=sweep", f"--storage={storage}")
    assert (ended.code, ended.out) == (2, "")
    assert f"error: storage {storage}: " in ended.err and message in ended.err and ended.err.count("\n") == 1
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_an_empty_url_is_refused(tmp_path):
    pytest.importorskip("ray")
    ended = call_vbsix("train", "--engine=ray", "--folds=2", f"--out={tmp_path / 'sweep'}", "--storage=")
    assert (ended.code, ended.out) == (2, "")
    assert ended.err == "error: storage: the URL is empty; give one such as s3://bucket/sweep.\n"


def plan(folder: Path, seeds: tuple[int, ...] = (0,), **settings) -> Sweep:
    """A new sweep with two runs."""
    config = override(LOOP_CONFIG, {name.replace("_", ".", 1): value for name, value in settings.items()})
    sweep = plan_sweep(folder, config, {"training.learning_rate": [0.1, 0.2]}, seeds, "synthetic")
    create_sweep(sweep)
    return sweep


def fails(jobs, cluster, quiet, refresh):
    return [VbsixError("group 1: out of memory. Continue with: vbsix train --resume /tmp/gone")]


@pytest.mark.parametrize("other", [{"seeds": (0, 1)}, {"training_steps": 9}, {"network_word": 6}])
def test_the_results_of_another_sweep_are_not_taken(tmp_path, monkeypatch, other):
    monkeypatch.setattr(on_cluster, "run_jobs", lambda *arguments: [])
    cluster = Cluster(storage=f"file://{tmp_path / 'there'}")
    assert on_cluster.train_sweep_on(cluster, plan(tmp_path / "first"), quiet=True) == {}
    stored = listed(tmp_path / "there")
    again = plan(tmp_path / "again")
    assert on_cluster.train_sweep_on(cluster, again, quiet=True) == {}, "the same sweep from another folder"
    different = plan(tmp_path / "other", **other)
    before = listed(different.folder)
    with pytest.raises(VbsixError, match=f"storage {cluster.storage}: holds another sweep, with another learning_rate"):
        on_cluster.train_sweep_on(cluster, different, quiet=True)
    assert (listed(different.folder), listed(tmp_path / "there")) == (before, stored)


def test_a_sweep_that_failed_says_how_to_continue_on_the_same_cluster(tmp_path, monkeypatch):
    monkeypatch.setattr(on_cluster, "run_jobs", fails)
    sweep, url = plan(tmp_path / "a sweep"), f"file://{tmp_path / 'what is there'}"
    with pytest.raises(VbsixError) as raised:
        on_cluster.train_sweep_on(Cluster("10.0.0.1:6379", 2, 0.5, url), sweep, quiet=True)
    assert str(raised.value) == (
        "group 1: out of memory.\nThe other groups have ended. Continue with: vbsix train "
        f"--resume '{sweep.folder}' --engine ray --address 10.0.0.1:6379 --cpus 2 --gpus 0.5 --storage '{url}'"
    )
    with pytest.raises(VbsixError, match=r"--engine ray$"):
        on_cluster.train_sweep_on(Cluster(), sweep, quiet=True)


def test_teachers_are_refused_with_a_storage(tmp_path):
    run = Run(tmp_path / "sweep" / "run", LOOP_CONFIG, (0,), "synthetic", inferred=tmp_path / "inferred.jsonl")
    sweep = Sweep(tmp_path / "sweep", (run,), {})
    on_cluster.require_trainable(Cluster(), sweep)
    with pytest.raises(VbsixError, match="a sweep with teachers needs a folder that all nodes share"):
        on_cluster.require_trainable(Cluster(storage="file:///there"), sweep)


def test_a_task_that_finds_no_sweep_names_the_url(tmp_path):
    url, there = f"file://{tmp_path / 'there'}", tmp_path / "there"
    task = url, ["one"], "/my/sweep", 1, None
    with pytest.raises(VbsixError, match=f"^{url}: holds no sweep"):
        on_cluster._train_stored_group(*task)
    fill(there, "sweep.json", content='{"format": 1, "runs": ["one"], "values": {}}')
    with pytest.raises(VbsixError, match=f"^{url}/one: holds no run"):
        on_cluster._train_stored_group(*task)


def test_what_a_task_says_names_the_folder_of_the_sweep(tmp_path, monkeypatch):
    url, mine = f"file://{tmp_path / 'there'}", plan(tmp_path / "mine")
    Storage(url, mine.folder).upload()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))

    def train(sweep, number, observe, domain) -> None:
        run = sweep.runs[0]
        with observe(sweep.runs, "group 1 of 1") as observer:
            observer.on_message(f"{run.folder}: not finite")
            observer.on_progress(4)
        save_failure(run, VbsixError(f"{run.folder}: not finite"))
        raise VbsixError(f"{run.folder}: too large")

    monkeypatch.setattr(on_cluster, "train_group", train)
    names, first = [run.folder.name for run in mine.runs], mine.runs[0]
    with pytest.raises(VbsixError, match=f"^{first.folder}: too large$"):
        on_cluster._train_stored_group(url, names, str(mine.folder), 1, None)
    Storage(url, mine.folder).fetch()
    assert first.messages.read_text() == f"{first.folder}: not finite\n"
    assert str(tmp_path / "mine") in (first.folder / "failed.json").read_text()
