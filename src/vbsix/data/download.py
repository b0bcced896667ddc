"""Fetching SCONE and GloVe. A file appears under its name only when it is whole and verified."""

from __future__ import annotations

import hashlib
import logging
import lzma
import shutil
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any

from vbsix.utilities.errors import InvalidData, VbsixError

if TYPE_CHECKING:
    from rich.progress import Progress

SCONE_URL = "https://nlp.stanford.edu/projects/scone/scone.zip"
GLOVE_URL = "http://nlp.stanford.edu/data/glove.6B.zip"
GLOVE_FILE = "glove.6B.100d.txt"
SCONE_SHA256 = {
    "alchemy-dev.tsv": "c87e33835eb6a3bbc9243adaf372045a7528bc0762083c1da0b7a5579b9cedbf",
    "alchemy-test.tsv": "671f2fd2452848a484db98842347e941ad1fca345e4ca03689c5ae3fd90337a1",
    "alchemy-train-orig.tsv": "8d5ccb1f7cb4e9cd99e7191da8ae2d16a618be8e2e4f6ee49452e12ffd9e20b4",
    "alchemy-train.tsv": "b1776726eda49d9e315ed99bafef651b5e4d575645687ca16c8c2acc6f5b9723",
    "scene-dev.tsv": "22cd56727fa57d0344c637fe6f884e204af2c7b32377b736d64b46fbd34cd9ee",
    "scene-test.tsv": "794ced23f5e3b94a5171c8dd331c5b10faf1d07c1510a30686348b443011f5b0",
    "scene-train-orig.tsv": "67e9bb3692fdda2632ccfeee95285e3838544eec71650e9e02de13d83c74d3fc",
    "scene-train.tsv": "56e57d3a5df58b0380123cec079dc5506afd521e40d569e34aa84a06696ac879",
    "tangrams-dev.tsv": "6fad2b56d534930bc596d8999582e49a54058303a7fed2e38f8ac38ca5d376a9",
    "tangrams-test.tsv": "fcc16d7ee22d1f1323f9a193e1be6d242ae6b462e106b6a215331071d562f469",
    "tangrams-train-orig.tsv": "f8f47980db70bf37211183acd223ddf3180a4e65daf1ccaee4d010ec15c6ed22",
    "tangrams-train.tsv": "6aeaae20891d15e1685e35ab318727f9968fa171237b898670aaa113891e27c3",
}


_BROKEN_ARCHIVE = (zipfile.BadZipFile, zlib.error, lzma.LZMAError, EOFError, RuntimeError, ValueError)
"""What zipfile raises over a file that is no archive, or one cut short, encrypted or oddly compressed."""


def fetch(
    out: Path,
    *,
    scone_url: str = SCONE_URL,
    scone_sha256: Mapping[str, str] = SCONE_SHA256,
    glove_url: str = GLOVE_URL,
) -> list[Path]:
    """Downloads what is missing of `out/scone/*.tsv` and `out/glove/glove.6B.100d.txt`.

    SCONE's files are verified by their SHA-256, GloVe's by the checksum in its archive. A download that breaks off
    leaves nothing that a later call would take for whole.

    Returns:
        The files that were added.
    """
    try:
        added = _fetch_archive(scone_url, out / "scone", scone_sha256)
        return added + _fetch_archive(glove_url, out / "glove", {GLOVE_FILE: None})
    except OSError as error:
        raise VbsixError(f"cannot write to {out}: {error}") from error


def _fetch_archive(url: str, folder: Path, sums: Mapping[str, str | None]) -> list[Path]:
    """Takes those files that the folder lacks out of the archive, where they may lie in any folder of it."""
    present = [name for name in sums if (folder / name).exists()]
    foreign = [folder / name for name in present if sums[name] not in (None, _sha256(folder / name))]
    if foreign:
        raise InvalidData(f"{path}: differs from the file in {url}; move it away to fetch that one" for path in foreign)
    missing = [name for name in sums if name not in present]
    if not missing:
        return []
    with _scratch_folder(folder.parent) as scratch:
        archive = _download(url, scratch)
        problems = _unpack(archive, scratch, {name: sums[name] for name in missing})
        if problems:
            raise InvalidData(f"{url}: {problem}" for problem in problems)
        folder.mkdir(exist_ok=True)
        return [(scratch / name).replace(folder / name) for name in missing]


@contextmanager
def _scratch_folder(parent: Path) -> Iterator[Path]:
    """A folder that is gone afterwards; what a killed process left of it goes first."""
    scratch = parent / ".vbsix-fetch"
    shutil.rmtree(scratch, ignore_errors=True)
    scratch.mkdir(parents=True)
    try:
        yield scratch
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


def _download(url: str, folder: Path) -> Path:
    import pooch
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn, TransferSpeedColumn

    pooch.get_logger().setLevel(logging.WARNING)
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        DownloadColumn(),
        TransferSpeedColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=Console(stderr=True)) as progress:
        bar: Any = _Bar(progress, PurePosixPath(url).name)  # Any, as pooch takes more than its annotations say
        downloader: Any = pooch.HTTPDownloader(progressbar=bar, chunk_size=2**16)
        try:
            return Path(pooch.retrieve(url, known_hash=None, fname="archive.zip", path=folder, downloader=downloader))
        except (OSError, ValueError) as error:  # the errors of requests are OSErrors
            raise VbsixError(f"{url}: the download failed ({error}). Nothing of it was kept; try again.") from error


class _Bar:
    """What pooch asks of a progress bar, drawn by Rich."""

    def __init__(self, progress: Progress, label: str):
        self._progress, self._task = progress, progress.add_task(label, total=None)

    @property
    def total(self) -> float | None:
        return self._progress.tasks[self._task].total

    @total.setter
    def total(self, size: int) -> None:
        self._progress.update(self._task, total=size or None)  # 0: the server does not tell

    def update(self, size: int) -> None:
        self._progress.advance(self._task, size)

    def reset(self) -> None:
        self._progress.update(self._task, completed=0)

    def close(self) -> None:
        pass  # Rich's display ends with its context


def _unpack(archive: Path, folder: Path, sums: Mapping[str, str | None]) -> list[str]:
    """Writes the named files, and nothing else, into the folder; returns what is wrong with the archive."""
    try:
        with zipfile.ZipFile(archive) as opened:
            return [problem for name in sums if (problem := _unpack_file(opened, folder / name, sums[name]))]
    except _BROKEN_ARCHIVE as error:
        return [f"not a whole zip file ({error})"]


def _unpack_file(archive: zipfile.ZipFile, path: Path, sha256: str | None) -> str | None:
    # Paths inside the archive only serve to find the file, so none of them can lead out of our folder.
    entries = [entry for entry in archive.infolist() if PurePosixPath(entry.filename).name == path.name]
    if not entries:
        return f"{path.name} is not in the archive"
    for entry in entries:
        with archive.open(entry) as source, path.open("wb") as target:
            shutil.copyfileobj(source, target)
        if sha256 in (None, _sha256(path)):
            return None
    return f"{path.name} is not the known file: its SHA-256 is {_sha256(path)}, not {sha256}"


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
