"""A sweep on a Ray cluster: each group of runs is a task."""

from __future__ import annotations

import json
import os
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path, PurePosixPath
from typing import Any

from vbsix.cluster.connection import Cluster, missing_on_node
from vbsix.cluster.jobs import PASSING, Job, run_jobs
from vbsix.cluster.storage import Storage, StorageFailed
from vbsix.domains.base import Domain
from vbsix.domains.names import BUILT_IN, FROM_FILES
from vbsix.domains.registry import import_domain, origin_of
from vbsix.runs.display import MessageFile
from vbsix.runs.folder import CONTINUE, SWEEP_FILE, Run, read_failure, resume_command, save_failure
from vbsix.runs.sweep import Sweep, is_sweep, open_sweep, train_group, waiting_runs
from vbsix.utilities.errors import VbsixError

LOOK_EVERY = 10.0
"""Seconds between two looks at the progress in a storage."""
SHOWN = "metrics.jsonl", "messages.txt", "failed.json"
"""The files that show the progress."""


def train_sweep_on(cluster: Cluster, sweep: Sweep, quiet: bool) -> dict[Path, VbsixError]:
    """Trains all runs of a sweep to their ends, like `train_sweep`.

    Args:
        cluster: where.
        sweep: the sweep, in a folder that all nodes share, unless the cluster has a storage.
        quiet: show messages alone.

    Returns:
        Why runs failed, by their folders.

    Raises:
        VbsixError: some groups could not be trained to their ends; all others are.
    """
    require_trainable(cluster, sweep)
    with _stored(cluster.storage, sweep) as refresh:
        outcomes = run_jobs(_jobs(cluster, sweep), cluster, quiet, refresh)
    # A task does not know the whole command that continues the sweep.
    errors = [str(outcome).partition(CONTINUE)[0] for outcome in outcomes if isinstance(outcome, VbsixError)]
    if errors:
        again = resume_command(sweep.runs[0], *cluster.arguments)
        raise VbsixError("\n".join([*errors, f"The other groups have ended.{CONTINUE}{again}"]))
    return sweep.failed


def require_trainable(cluster: Cluster, sweep: Sweep) -> None:
    """Refuses a sweep whose language, or what teachers inferred for it, tasks cannot find."""
    name = sweep.runs[0].config.domain
    if origin_of(name) is None and name not in (*BUILT_IN, *FROM_FILES):
        raise VbsixError(f"{name}: tasks on a cluster import a language of your own by its name: give module:Class.")
    if cluster.storage and sweep.runs[0].inferred:
        raise VbsixError("a sweep with teachers needs a folder that all nodes share; leave out the storage.")


def _jobs(cluster: Cluster, sweep: Sweep) -> list[Job]:
    folder, origin = sweep.folder.resolve(), origin_of(sweep.runs[0].config.domain)
    jobs = []
    for number, group in enumerate(sweep.groups, start=1):
        if waiting := waiting_runs(group):
            arguments: tuple[Any, ...] = str(folder), number, origin
            if cluster.storage:
                arguments = cluster.storage, [run.folder.name for run in group], *arguments
            function = _train_stored_group if cluster.storage else _train_group
            jobs.append(Job(f"group {number} of {len(sweep.groups)}", function, arguments, waiting))
    return jobs


def _train_group(folder: str, number: int, origin: str | None) -> None:
    """What a task does. Runs that have results are left alone, the others continue from their checkpoints."""
    if not is_sweep(Path(folder)):
        raise missing_on_node(Path(folder))
    train_group(open_sweep(Path(folder)), number, observe_quietly, _domain(origin))


def _train_stored_group(url: str, names: Sequence[str], folder: str, number: int, origin: str | None) -> None:
    """What a task does on a node that does not see the sweep's folder."""

    def is_needed(name: str) -> bool:
        parts = PurePosixPath(name).parts
        return len(parts) == 1 or parts[0] in names or parts[1] == "run.json"

    with tempfile.TemporaryDirectory() as place:
        storage = Storage(url, Path(place))
        storage.fetch(is_needed)
        if not is_sweep(Path(place)):
            raise VbsixError(f"{url}: holds no sweep, seen from node {os.uname().nodename}. All nodes must reach it.")

        def named(text: str) -> str:
            """A message about the sweep's own folder, not about one that is gone."""
            return text.replace(place, folder)

        @contextmanager
        def observe(runs: Sequence[Run], title: str) -> Iterator[_Uploading]:
            yield _Uploading(runs, storage, named)

        try:
            sweep = open_sweep(Path(place))
        except VbsixError as error:
            raise VbsixError(str(error).replace(place, url)) from error
        try:
            train_group(sweep, number, observe, _domain(origin))
        except VbsixError as error:
            kind = type(error) if isinstance(error, PASSING) else VbsixError
            raise kind(named(str(error))) from error
        finally:
            for run in sweep.runs:
                if (failure := read_failure(run)) and place in str(failure):
                    save_failure(run, VbsixError(named(str(failure))))
            storage.upload()


def _domain(origin: str | None) -> Domain | None:
    return import_domain(origin) if origin else None


@contextmanager
def observe_quietly(runs: Sequence[Run], title: str) -> Iterator[MessageFile]:
    """A display for a process whose output nobody sees."""
    yield MessageFile(runs)


class _Uploading(MessageFile):
    """Uploads what has changed after each chunk of steps."""

    def __init__(self, runs: Sequence[Run], storage: Storage, named: Callable[[str], str]):
        super().__init__(runs)
        self.storage, self.named = storage, named

    def on_message(self, text: str) -> None:
        super().on_message(self.named(text))

    def on_progress(self, step: int) -> None:
        super().on_progress(step)
        self.storage.upload()


def _identify(description: bytes) -> list[Any] | None:
    """What a sweep or a run is about; None for what describes neither."""
    try:
        found = dict(json.loads(description))
    except (TypeError, ValueError):
        return None
    return [found.get(name) for name in ("values", "runs", "config", "seeds", "data")]


@contextmanager
def _stored(url: str | None, sweep: Sweep) -> Iterator[Callable[[], None]]:
    """Brings a sweep to its storage, and what tasks have made of it back, also after an error.

    Gives a function that fetches what shows the progress.
    """
    if url is None:
        yield lambda: None
        return
    storage = Storage(url, sweep.folder)
    for name in (SWEEP_FILE, *(f"{run.folder.name}/run.json" for run in sweep.runs)):
        there = storage.read(name)
        if there is not None and _identify(there) != _identify((sweep.folder / name).read_bytes()):
            raise VbsixError(f"storage {url}: holds another sweep, with another {name}; give another URL.")
    storage.fetch()
    storage.upload()
    looked = time.monotonic()

    def refresh() -> None:
        nonlocal looked
        if time.monotonic() - looked >= LOOK_EVERY:
            with suppress(StorageFailed):  # the next look may succeed
                storage.fetch(lambda name: PurePosixPath(name).name in SHOWN)
            looked = time.monotonic()

    try:
        yield refresh
    finally:
        storage.fetch()
