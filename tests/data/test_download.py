from __future__ import annotations

import hashlib
import io
import threading
import zipfile
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from vbsix.data.download import GLOVE_FILE, SCONE_SHA256, SOURCES, Source, fetch
from vbsix.utilities.errors import InvalidData, UnknownName, VbsixError

SCONE_FILES = {"alchemy-dev.tsv": b"a made-up file\n", "scene-dev.tsv": b"another one\n" * 20_000}
SUMS = {name: hashlib.sha256(content).hexdigest() for name, content in SCONE_FILES.items()}
GLOVE = b"the 0.1 0.2\n" * 10_000
EVERYTHING = {"scone/alchemy-dev.tsv", "scone/scene-dev.tsv", f"glove/{GLOVE_FILE}"}


def zipped(files: dict[str, bytes], compression: int = zipfile.ZIP_STORED) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", compression) as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return buffer.getvalue()


SCONE_ZIP = zipped({f"rlong/{name}": content for name, content in SCONE_FILES.items()}, zipfile.ZIP_DEFLATED)
GLOVE_ZIP = zipped({"glove.6B.50d.txt": b"no", GLOVE_FILE: GLOVE})
MATH_FILES = {"cv-fold0-train.csv": b"Question\n", "cv-fold1-train.csv": b"Question,Answer\n"}
MATH_NAMES = {name: name.replace("-", "/") for name in MATH_FILES}
MATH_ZIP = zipped({f"SVAMP-1/data/{MATH_NAMES[name]}": content for name, content in MATH_FILES.items()})


class Server:
    """A local web server that can be told to misbehave, and that remembers what it was asked for."""

    def __init__(self):
        self.files = {"/scone.zip": SCONE_ZIP, "/glove.zip": GLOVE_ZIP, "/math.zip": MATH_ZIP}
        self.break_off_at: dict[str, int] = {}
        self.requests: list[str] = []

    def handle(self, request: BaseHTTPRequestHandler) -> None:
        self.requests.append(request.path)
        content = self.files.get(request.path)
        if content is None:
            request.send_error(404)
            return
        request.send_response(200)
        request.send_header("Content-Length", str(len(content)))
        request.end_headers()
        request.wfile.write(content[: self.break_off_at.get(request.path)])


@pytest.fixture
def server(monkeypatch) -> Iterator[Server]:
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    served = Server()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            served.handle(self)

        def log_message(self, format, *args):
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as http:
        thread = threading.Thread(target=http.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        served.address = f"http://127.0.0.1:{http.server_port}"
        yield served
        http.shutdown()
        thread.join()


def sources_at(address: str) -> dict[str, Source]:
    sums = {name: hashlib.sha256(content).hexdigest() for name, content in MATH_FILES.items()}
    return {
        "scone": Source("SCONE", f"{address}/scone.zip", SUMS),
        "glove": Source("GloVe", f"{address}/glove.zip", {GLOVE_FILE: None}),
        "math": Source("problems", f"{address}/math.zip", sums, MATH_NAMES),
    }


def fetch_from(server: Server, out: Path, *only: str) -> list[str]:
    added = fetch(out, *[only] if only else [], sources=sources_at(server.address))
    return [path.relative_to(out).as_posix() for path in added]


def files_in(folder: Path) -> set[str]:
    return {path.relative_to(folder).as_posix() for path in folder.rglob("*") if not path.is_dir()}


def test_what_is_fetched_is_whole_and_nothing_else_is_left(server, tmp_path):
    out = tmp_path / "not" / "there yet"
    assert set(fetch_from(server, out)) == files_in(out) == EVERYTHING
    assert (out / "scone" / "scene-dev.tsv").read_bytes() == SCONE_FILES["scene-dev.tsv"]
    assert (out / "glove" / GLOVE_FILE).read_bytes() == GLOVE
    assert {path.name for path in out.iterdir()} == {"scone", "glove"}


def test_what_is_there_is_not_fetched_again(server, tmp_path):
    fetch_from(server, tmp_path)
    server.requests.clear()
    assert fetch_from(server, tmp_path) == [] and not server.requests
    (tmp_path / "scone" / "alchemy-dev.tsv").unlink()
    assert fetch_from(server, tmp_path) == ["scone/alchemy-dev.tsv"] and server.requests == ["/scone.zip"]
    assert files_in(tmp_path) == EVERYTHING


@pytest.mark.parametrize("path", ["/scone.zip", "/glove.zip"])
def test_after_a_broken_connection_the_next_call_succeeds(server, tmp_path, path):
    server.break_off_at[path] = len(server.files[path]) // 2
    with pytest.raises(VbsixError, match=f"{path}: the download failed.*try again"):
        fetch_from(server, tmp_path)
    assert files_in(tmp_path) == (set() if path == "/scone.zip" else {f"scone/{name}" for name in SCONE_FILES})
    server.break_off_at.clear()
    fetch_from(server, tmp_path)
    assert files_in(tmp_path) == EVERYTHING


def test_what_a_killed_process_left_is_removed(server, tmp_path):
    (tmp_path / ".vbsix-fetch").mkdir()
    (tmp_path / ".vbsix-fetch" / "archive.zip").write_bytes(b"half a file")
    fetch_from(server, tmp_path)
    assert files_in(tmp_path) == EVERYTHING


@pytest.mark.parametrize("path", ["/scone.zip", "/glove.zip"])
@pytest.mark.parametrize("cut", [0, 1, 100, -100, -1])
def test_an_archive_that_was_cut_short_is_refused(server, tmp_path, path, cut):
    """The server believes that this is all there is, so only the archive itself can tell."""
    server.files[path] = server.files[path][:cut]
    with pytest.raises(InvalidData, match=f"{path}: not a whole zip file"):
        fetch_from(server, tmp_path)
    assert not any(path.strip("/")[:5] in file for file in files_in(tmp_path))


def test_an_archive_with_a_damaged_byte_is_refused(server, tmp_path):
    damaged = bytearray(GLOVE_ZIP)
    damaged[len(damaged) // 2] ^= 1
    server.files["/glove.zip"] = bytes(damaged)
    with pytest.raises(InvalidData, match="not a whole zip file"):
        fetch_from(server, tmp_path)
    assert not (tmp_path / "glove" / GLOVE_FILE).exists()


def test_a_page_instead_of_an_archive_is_refused(server, tmp_path):
    server.files["/scone.zip"] = b"<html>Please log in</html>"
    with pytest.raises(InvalidData, match="not a whole zip file"):
        fetch_from(server, tmp_path)
    assert files_in(tmp_path) == set()


def test_all_files_that_differ_or_are_missing_are_reported_together(server, tmp_path):
    server.files["/scone.zip"] = zipped({"scene-dev.tsv": b"changed"})
    with pytest.raises(InvalidData) as caught:
        fetch_from(server, tmp_path)
    missing, changed = caught.value.problems
    assert missing.endswith("alchemy-dev.tsv is not in the archive")
    assert "scene-dev.tsv is not the known file" in changed and SUMS["scene-dev.tsv"] in changed
    assert files_in(tmp_path) == set()


def test_a_missing_page_is_an_error_that_names_it(server, tmp_path):
    del server.files["/scone.zip"]
    with pytest.raises(VbsixError, match=r"/scone.zip: the download failed .*404"):
        fetch_from(server, tmp_path)
    assert files_in(tmp_path) == set()


def test_a_server_that_is_not_there_is_an_error_that_names_it(monkeypatch, tmp_path):
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    with pytest.raises(VbsixError, match=r"http://127.0.0.1:9/scone.zip: the download failed"):
        fetch(tmp_path, sources=sources_at("http://127.0.0.1:9"))
    assert files_in(tmp_path) == set()


def test_no_path_of_an_archive_leaves_the_folder(server, tmp_path):
    outside = tmp_path / "outside.txt"
    link = zipfile.ZipInfo(f"links/{GLOVE_FILE}")
    link.external_attr = 0o120777 << 16
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr("../../outside.txt", b"evil")
        archive.writestr(str(outside), b"evil")
        archive.writestr(link, str(outside))
        archive.writestr("../../../scene-dev.tsv", SCONE_FILES["scene-dev.tsv"])
        archive.writestr("/alchemy-dev.tsv", SCONE_FILES["alchemy-dev.tsv"])
    server.files = {"/scone.zip": buffer.getvalue(), "/glove.zip": buffer.getvalue()}
    fetch_from(server, tmp_path / "out")
    assert files_in(tmp_path) == {f"out/{file}" for file in EVERYTHING}
    assert not (tmp_path / "out" / "glove" / GLOVE_FILE).is_symlink()


def test_of_several_entries_with_the_name_the_known_one_is_taken(server, tmp_path):
    server.files["/scone.zip"] = zipped(
        {f"{folder}/{name}": folder.encode() for folder in "ab" for name in SCONE_FILES}
    )
    with pytest.raises(InvalidData):
        fetch_from(server, tmp_path)
    backup = {f"backup/{name}": b"old" for name in SCONE_FILES}
    server.files["/scone.zip"] = zipped({**backup, **SCONE_FILES})
    fetch_from(server, tmp_path)
    assert (tmp_path / "scone" / "alchemy-dev.tsv").read_bytes() == SCONE_FILES["alchemy-dev.tsv"]


def test_a_file_of_ones_own_is_not_overwritten(server, tmp_path):
    own = tmp_path / "scone" / "scene-dev.tsv"
    own.parent.mkdir()
    own.write_text("mine")
    with pytest.raises(InvalidData, match="move it away"):
        fetch_from(server, tmp_path)
    assert own.read_text() == "mine" and not server.requests


def test_an_output_that_cannot_be_written_is_an_error(server, tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(VbsixError, match="cannot write to"):
        fetch_from(server, tmp_path / "file")


def test_one_data_set_is_fetched_without_the_others(server, tmp_path):
    """The archive calls the files otherwise, and two of them the same."""
    assert set(fetch_from(server, tmp_path, "math")) == {f"math/{name}" for name in MATH_FILES}
    assert {name: (tmp_path / "math" / name).read_bytes() for name in MATH_FILES} == MATH_FILES
    assert server.requests == ["/math.zip"]


def test_an_unknown_data_set_is_an_error_before_anything_is_fetched(server, tmp_path):
    with pytest.raises(UnknownName, match=r"unknown data set 'mats'\. Did you mean 'math'"):
        fetch_from(server, tmp_path, "scone", "mats")
    assert not server.requests


def test_the_known_sums_are_those_of_scone(scone_data):
    sums = {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in scone_data.glob("*.tsv")}
    assert sums == SCONE_SHA256


@pytest.mark.parametrize("name", ["sail", "math"])
def test_the_known_sums_are_those_of_the_other_data(scone_data, name):
    folder = scone_data.parent / name
    if not folder.is_dir():
        pytest.skip(f"no {folder}")
    sums = {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in folder.iterdir()}
    assert {file: sums[file] for file in SOURCES[name].sums} == SOURCES[name].sums
    assert set(sums) - set(SOURCES[name].sums) == {"LICENSE"}
