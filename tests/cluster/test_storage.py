"""A sweep's folder at a URL: what is there after an upload, and what is fetched."""

from __future__ import annotations

from pathlib import Path

import pytest
from cli.conftest import call_vbsix

from vbsix.cluster.storage import Storage, require_writable
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


def test_a_url_that_can_be_written_is_left_empty(url, tmp_path):
    require_writable(url)
    Storage(url, tmp_path / "node").fetch()
    assert not (tmp_path / "node").exists()


@pytest.mark.parametrize(
    ("storage", "message"),
    [
        ("file://{file}/sweep", "cannot be written: "),
        ("nosuch://bucket/sweep", "nosuch"),
        ("https://localhost:1/sweep", "--storage https://localhost:1/sweep: "),
    ],
)
def test_a_url_that_cannot_be_written_is_one_message(tmp_path, monkeypatch, storage, message):
    pytest.importorskip("ray")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "file").touch()
    storage = storage.format(file=tmp_path / "file")
    ended = call_vbsix("train", "--engine=ray", "--folds=2", "--out=sweep", f"--storage={storage}")
    assert (ended.code, ended.out) == (2, "")
    assert f"error: --storage {storage}: " in ended.err and message in ended.err and ended.err.count("\n") == 1
    assert [path.name for path in tmp_path.iterdir()] == ["file"]
