"""A sweep's folder at a URL, for a cluster whose nodes share no folder.

A task fetches its runs, trains them in a folder of its own, and uploads what has changed after each chunk of steps.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path, PurePosixPath
from typing import Any
from uuid import uuid4

from vbsix.runs.checkpoints import MANIFEST, checkpoint_steps
from vbsix.utilities.errors import VbsixError
from vbsix.utilities.files import write_bytes

FINISHED = re.compile(rf"([^/]+)/checkpoints/step-(\d+)/{re.escape(MANIFEST)}")
"""The manifest of a run's checkpoint. Other files at a URL may have that name, too."""


class StorageFailed(VbsixError):
    """A storage cannot be read or written. A later call may succeed."""


class Storage:
    """A folder at a URL of fsspec, and its copy here.

    Args:
        url: such as `s3://bucket/sweep` or `file:///mnt/sweep`.
        folder: the copy.
    """

    def __init__(self, url: str, folder: Path):
        self.url, self.folder = url, folder
        self.files, self.root = _open(url)
        self._here: dict[str, tuple[int, int]] = {}
        """Time and size of files here when they were uploaded or fetched last."""
        self._there: dict[str, str] = {}
        """What the storage has said about files when they were fetched last."""

    def upload(self) -> None:
        """Uploads what has changed, the manifests of checkpoints last, and removes what is no longer here."""
        here = {
            path.relative_to(self.folder).as_posix(): (path.stat().st_mtime_ns, path.stat().st_size)
            for path in self.folder.rglob("*")
            if path.is_file() and not _is_hidden(path.relative_to(self.folder))
        }
        with self._naming():
            for name in sorted(here.keys(), key=_manifests_last):
                if self._here.get(name) != here[name]:
                    self._put(name, (self.folder / name).read_bytes())
            for name in sorted(self._here.keys() - here.keys(), key=_manifests_last, reverse=True):
                with suppress(FileNotFoundError):  # an upload that failed may have removed it
                    self.files.rm_file(f"{self.root}/{name}")
        self._here = here

    def fetch(self, wanted: Callable[[str], bool] = lambda name: True) -> None:
        """Fetches what has changed there, except for runs that have come further here, and unfinished checkpoints.

        Args:
            wanted: which files to fetch.
        """
        with self._naming():
            self.files.invalidate_cache()
            found = self.files.find(self.root, detail=True) if self.files.exists(self.root) else {}
            named = {path.removeprefix(self.root).lstrip("/"): info for path, info in found.items()}
            manifests = list(filter(None, map(FINISHED.fullmatch, named)))
            finished = {str(PurePosixPath(manifest[0]).parent) for manifest in manifests}
            steps: dict[str, int] = {}
            for manifest in manifests:
                steps[manifest[1]] = max(steps.get(manifest[1], 0), int(manifest[2]))
            behind = {run for run in {PurePosixPath(name).parts[0] for name in named} if self._is_ahead(run, steps)}
            for name, info in named.items():
                parts = PurePosixPath(name).parts
                is_unfinished = "checkpoints" in parts and str(PurePosixPath(name).parent) not in finished
                if is_unfinished or parts[0] in behind or _is_hidden(Path(name)) or not wanted(name):
                    continue
                if self._there.get(name) != repr(info):
                    write_bytes(self.folder / name, self.files.cat_file(f"{self.root}/{name}"))
                    stat = (self.folder / name).stat()
                    self._there[name], self._here[name] = repr(info), (stat.st_mtime_ns, stat.st_size)

    def read(self, name: str) -> bytes | None:
        """A file there; None if there is none."""
        with self._naming():
            path = f"{self.root}/{name}"
            return self.files.cat_file(path) if self.files.exists(path) else None

    def _is_ahead(self, run: str, steps: dict[str, int]) -> bool:
        """Whether a run has come further here than there."""
        return max(checkpoint_steps(self.folder / run / "checkpoints"), default=0) > steps.get(run, 0)

    def _put(self, name: str, content: bytes) -> None:
        """Writes beside the final name first: a call that is killed must not leave half a file."""
        path = PurePosixPath(self.root, name)
        beside = str(path.with_name(f".{path.name}.{uuid4().hex}"))
        self.files.makedirs(str(path.parent), exist_ok=True)
        self.files.pipe_file(beside, content)
        if _renames(self.files):
            self.files.mv(beside, str(path))
        else:
            self.files.cp_file(beside, str(path))
            self.files.rm_file(beside)

    @contextmanager
    def _naming(self) -> Iterator[None]:
        """Names the URL in errors; each file system has exceptions of its own."""
        try:
            yield
        except Exception as error:
            raise StorageFailed(f"{self.url}: {_describe(error)}") from error


def require_writable(url: str) -> None:
    """Refuses a URL at which no file can be written, read and removed."""
    files, root = _open(url)
    if files.protocol == "memory":
        raise VbsixError(f"storage {url}: tasks do not see the memory of this process; give another URL.")
    probe = f"{root}/.probe-{uuid4().hex}"
    try:
        files.makedirs(root, exist_ok=True)
        files.pipe_file(probe, b"vbsix")
        written = files.cat_file(probe)
        files.rm_file(probe)
    except Exception as error:  # each file system has its own
        raise VbsixError(f"storage {url}: cannot be written: {_describe(error)}") from error
    if written != b"vbsix":
        raise VbsixError(f"storage {url}: a file that was written reads otherwise.")


def _open(url: str) -> tuple[Any, str]:
    """The file system of a URL, and the path in it."""
    if not url:
        raise VbsixError("storage: the URL is empty; give one such as s3://bucket/sweep.")
    try:
        import fsspec.core
    except ImportError as error:
        raise VbsixError(f"a storage needs the extra: pip install 'vbsix[cluster]' ({error})") from error
    try:
        files, root = fsspec.core.url_to_fs(url)
    except Exception as error:  # each file system has its own
        raise VbsixError(f"storage {url}: {_describe(error)}") from error
    return files, root.rstrip("/")


def _renames(files: Any) -> bool:
    """Whether a file system moves files itself. The generic `mv` copies, and takes [ * ? in names for patterns."""
    from fsspec.spec import AbstractFileSystem

    return type(files).mv is not AbstractFileSystem.mv


def _describe(error: Exception) -> str:
    return f"{type(error).__name__}: {error}".partition("\n")[0]


def _is_hidden(path: Path) -> bool:
    """Whether it is being written."""
    return any(part.startswith(".") for part in path.parts)


def _manifests_last(name: str) -> tuple[bool, str]:
    return name.endswith(f"/{MANIFEST}"), name
