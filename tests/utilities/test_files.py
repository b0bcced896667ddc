from __future__ import annotations

import errno
import os

import numpy as np
import pytest
from safetensors.numpy import save

from vbsix.utilities.errors import VbsixError
from vbsix.utilities.files import read_json, read_tensors, rename_folder, sha256, write_bytes, write_json, write_tensors


def test_a_file_is_written_with_its_folders(tmp_path):
    write_bytes(tmp_path / "a" / "b" / "file", b"content")
    assert (tmp_path / "a" / "b" / "file").read_bytes() == b"content"
    assert [path.name for path in (tmp_path / "a" / "b").iterdir()] == ["file"]


@pytest.mark.parametrize("step", ["fsync", "replace"])
def test_a_file_that_cannot_be_written_leaves_the_old_one(tmp_path, monkeypatch, step):
    path = tmp_path / "file"
    write_bytes(path, b"old")

    def fail(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, step, fail)
    with pytest.raises(OSError, match="No space left on device") as raised:
        write_bytes(path, b"new")
    assert raised.value.filename == str(path)
    assert [entry.read_bytes() for entry in tmp_path.iterdir()] == [b"old"]


def test_json_comes_back(tmp_path):
    write_json(tmp_path / "file.json", {"a": [1, 2.5, None], "b": {"c": "ä"}})
    assert read_json(tmp_path / "file.json") == {"format": 1, "a": [1, 2.5, None], "b": {"c": "ä"}}


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b'{"format": 1', "not a JSON file"),
        (b"\xff\xfe", "not a JSON file"),
        (b"[1]", "expected a JSON object"),
        (b"{}", "has format None, this version of vbsix reads format 1"),
        (b'{"format": 2}', "has format 2, this version"),
    ],
)
def test_json_that_is_not_ours_is_refused(tmp_path, content, message):
    (tmp_path / "file.json").write_bytes(content)
    with pytest.raises(VbsixError, match=f"file.json: .*{message}"):
        read_json(tmp_path / "file.json")


def test_tensors_come_back_with_metadata(tmp_path):
    tensors = {"transposed": np.arange(6.0).reshape(2, 3).T, "number": np.array(3, np.int32), "none": np.zeros((0, 2))}
    digest = write_tensors(tmp_path / "file", tensors, {"step": 3, "words": ["x"]})
    found, metadata = read_tensors(tmp_path / "file")
    assert metadata == {"step": 3, "words": ["x"]}
    assert found.keys() == tensors.keys()
    for name, array in tensors.items():
        np.testing.assert_array_equal(found[name], array, strict=True)
    assert digest == sha256((tmp_path / "file").read_bytes())


def test_the_same_tensors_give_the_same_file(tmp_path):
    tensors = {name: np.ones(2) for name in "abcdefgh"}
    metadata = {name: name for name in "abcdefgh"}
    assert len({write_tensors(tmp_path / "file", tensors, metadata) for _ in range(10)}) == 1


@pytest.mark.parametrize("header", [None, {"vbsix": "[1]"}, {"vbsix": "{"}, {"vbsix": '{"format": 2}'}])
def test_tensors_that_are_not_ours_are_refused(tmp_path, header):
    (tmp_path / "file").write_bytes(save({"a": np.ones(2)}, header))
    with pytest.raises(VbsixError, match=r"file: (cannot be read|has format)"):
        read_tensors(tmp_path / "file")


@pytest.mark.parametrize("content", [b"", b"not tensors at all", None])
def test_tensors_that_are_not_whole_are_refused(tmp_path, content):
    write_tensors(tmp_path / "file", {"a": np.zeros(100, np.float32)}, {})
    whole = (tmp_path / "file").read_bytes()
    (tmp_path / "file").write_bytes(whole[:-10] if content is None else content)
    with pytest.raises(VbsixError, match="file: cannot be read"):
        read_tensors(tmp_path / "file")


def test_a_flipped_bit_of_a_number_is_noticed(tmp_path):
    write_tensors(tmp_path / "file", {"a": np.zeros(100, np.float32)}, {})
    whole = (tmp_path / "file").read_bytes()
    (tmp_path / "file").write_bytes(whole[:-1] + bytes([whole[-1] ^ 1]))
    with pytest.raises(VbsixError, match="file: damaged: its numbers do not agree with their checksum"):
        read_tensors(tmp_path / "file")


def test_a_missing_file_is_named(tmp_path):
    for read in (read_json, read_tensors):
        with pytest.raises(VbsixError, match="missing: no such file"):
            read(tmp_path / "missing")


def test_a_folder_takes_the_place_of_another(tmp_path):
    write_bytes(tmp_path / "old" / "one", b"1")
    write_bytes(tmp_path / "new" / "two", b"2")
    rename_folder(tmp_path / "new", tmp_path / "old")
    assert [str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*")] == ["old", "old/two"]
