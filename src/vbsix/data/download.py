"""Fetching data from where its authors publish it. A file appears under its name only when it is whole and verified."""

from __future__ import annotations

import hashlib
import logging
import lzma
import shutil
import zipfile
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any, NamedTuple

from vbsix.utilities.errors import InvalidData, UnknownName, VbsixError

if TYPE_CHECKING:
    from rich.progress import Progress

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

SAIL_SHA256 = {
    "grid.settrc": "2f2bfdc8f593f072630c6c120c0bd28c7456a19c346eab873b7017d58e49c0e1",
    "jelly.settrc": "fe9078ffd40f95c28ea3610cd2cecdab404811396df31b963661d4f890e1b332",
    "l.settrc": "6c3b6c59f408a45d2d0286f1c92712739fef97ac3bc131427362f42b811a4585",
    "map-grid.xml": "7c415a6b7190183f77f18621a15a294cad4c34774dfe2f0943a8e1fd3160a056",
    "map-jelly.xml": "609b25cfce910cb4ad2196b62648a9cdd7cc1446886ba1de866f8a0772f2dc67",
    "map-l.xml": "39af3a078298b62f0b9930f232d87eacce1b27f79f18fa7834852282d837b2b2",
}
MATH_SHA256 = {
    "cv_mawps-fold0-dev.csv": "bad59cff796b01a87363ea970f1fa80c15f56ff5f4388143aadbdc3feaf5f990",
    "cv_mawps-fold0-train.csv": "0674253e6099813cefbb1d6eae3d2dc784ab6ebfdaf8755f6ebb4b99fc1f6ebe",
    "cv_mawps-fold1-dev.csv": "31362cb8741f9fc11b470b224478902ae27ab762bdd82bcb08a9c945d5947422",
    "cv_mawps-fold1-train.csv": "ad8846861202060f2dfcb8423d23218cbf6a4a67010d4d4d939b9df61b2d34b0",
    "cv_mawps-fold2-dev.csv": "fae4f08a24a23123612ca5bb960e4f9aa7202c856344a59ab7adea424dfc670d",
    "cv_mawps-fold2-train.csv": "b137a07367e1b3cd9556fae7b9e17fb5e23836e1e6dc9357719049ebc8860c62",
    "cv_mawps-fold3-dev.csv": "5ac76e5559cdde0aa8bcac77eb9af46b9b0230f00661ad0257dbd58a1567a323",
    "cv_mawps-fold3-train.csv": "fb1e286a94feed24a41c5560095e21a33d61888c7c27a355e6ccef725deaf084",
    "cv_mawps-fold4-dev.csv": "1bb9164e6ba93fdc1bffddd8544c20cddc3c195a299b0b6c6893c2a760c3434b",
    "cv_mawps-fold4-train.csv": "9194364265a42e0f146cc73f514c806c5d322827cd025a474ded33af076837bb",
    "mawps-asdiv-a_svamp-dev.csv": "978425fa0820a147a20d3cb305a571d77b8ba0d1ccec4a96dd1470bf0079c338",
    "mawps-asdiv-a_svamp-train.csv": "c761cdc6390a67a285c6c346a2931f61bc8f47430eceaeb123cc3d0263efa821",
}


class Source(NamedTuple):
    """A data set: an archive, and the files that are taken out of it."""

    title: str
    url: str
    sums: Mapping[str, str | None]
    """The SHA-256 of each file; None for a file that the checksum of the archive verifies."""
    published: Mapping[str, str] = {}
    """What the archive calls a file, where that is not its own name: the end of its path."""


SOURCES = {
    "scone": Source("SCONE", "https://nlp.stanford.edu/projects/scone/scone.zip", SCONE_SHA256),
    "glove": Source("GloVe 6B", "http://nlp.stanford.edu/data/glove.6B.zip", {GLOVE_FILE: None}),
    "sail": Source(
        "SAIL",
        "https://github.com/lil-lab/navi/archive/8bc73f4680f4cb3d1a5f736b731d2a91cb599289.zip",
        SAIL_SHA256,
    ),
    "math": Source(
        "MAWPS, ASDiv-A and SVAMP",
        "https://github.com/arkilpatel/SVAMP/archive/bbf1e71d2f65453a87665414ff374e5a5962ef95.zip",
        MATH_SHA256,
        {
            name: name.replace("-fold", "/fold").replace("-train.", "/train.").replace("-dev.", "/dev.")
            for name in MATH_SHA256
        },
    ),
}
"""What can be fetched, by the name of its folder."""
USUAL = ("scone", "glove")
"""What is fetched unless something is named."""

_BROKEN_ARCHIVE = (zipfile.BadZipFile, zlib.error, lzma.LZMAError, EOFError, RuntimeError, ValueError)
"""What zipfile raises over a file that is no archive, or one cut short, encrypted or oddly compressed."""


def fetch(out: Path, only: Sequence[str] = USUAL, *, sources: Mapping[str, Source] = SOURCES) -> list[Path]:
    """Downloads what is missing of some data sets, each into a folder of its name.

    Files are verified by their SHA-256, GloVe's by the checksum in its archive. A download that breaks off leaves
    nothing that a later call would take for whole.

    Args:
        out: the folder that gets the folders.
        only: the names of the data sets.
        sources: what can be fetched.

    Returns:
        The files that were added.
    """
    for name in only:
        if name not in sources:
            raise UnknownName("data set", name, tuple(sources))
    try:
        return [path for name in only for path in _fetch_archive(sources[name], out / name)]
    except OSError as error:
        raise VbsixError(f"cannot write to {out}: {error}") from error


def _fetch_archive(source: Source, folder: Path) -> list[Path]:
    """Takes those files that the folder lacks out of the archive, where they may lie in any folder of it."""
    url, sums = source.url, source.sums
    present = [name for name in sums if (folder / name).exists()]
    foreign = [folder / name for name in present if sums[name] not in (None, _sha256(folder / name))]
    if foreign:
        raise InvalidData(f"{path}: differs from the file in {url}; move it away to fetch that one" for path in foreign)
    missing = [name for name in sums if name not in present]
    if not missing:
        return []
    with _scratch_folder(folder.parent) as scratch:
        archive = _download(url, scratch)
        problems = _unpack(archive, scratch, source, missing)
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


def _unpack(archive: Path, folder: Path, source: Source, names: Sequence[str]) -> list[str]:
    """Writes the named files, and nothing else, into the folder; returns what is wrong with the archive."""
    try:
        with zipfile.ZipFile(archive) as opened:
            return [problem for name in names if (problem := _unpack_file(opened, folder / name, source))]
    except _BROKEN_ARCHIVE as error:
        return [f"not a whole zip file ({error})"]


def _unpack_file(archive: zipfile.ZipFile, path: Path, source: Source) -> str | None:
    sha256, published = source.sums[path.name], source.published.get(path.name, path.name)
    # Paths inside the archive only serve to find the file, so none of them can lead out of our folder.
    entries = [entry for entry in archive.infolist() if f"/{entry.filename}".endswith(f"/{published}")]
    if not entries:
        return f"{published} is not in the archive"
    for entry in entries:
        with archive.open(entry) as opened, path.open("wb") as target:
            shutil.copyfileobj(opened, target)
        if sha256 in (None, _sha256(path)):
            return None
    return f"{path.name} is not the known file: its SHA-256 is {_sha256(path)}, not {sha256}"


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
