"""Long jobs on a Ray cluster, one task each, with the progress of all of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from vbsix.cluster.connection import Cluster, Place, connect, enter, fetch_result
from vbsix.cluster.storage import StorageFailed
from vbsix.runs.folder import Run, read_failure
from vbsix.runs.loop import DeviceFailed
from vbsix.runs.metrics import last_step
from vbsix.utilities.errors import VbsixError

PASSING = DeviceFailed, StorageFailed
"""Errors after which a job is called again."""
POLL = 1.0
"""Seconds between two looks at the progress of jobs."""


class Job(NamedTuple):
    """A function of a module, which a task calls on some node."""

    title: str
    function: Callable[..., Any]
    arguments: tuple[Any, ...]
    runs: Sequence[Run]
    """The runs that it trains. Their metrics, in the shared folder, show its progress."""


def run_jobs(
    jobs: Sequence[Job], cluster: Cluster, quiet: bool, refresh: Callable[[], Any] = lambda: None
) -> list[Any]:
    """What the jobs return; a `VbsixError` for each that failed.

    A job whose process, node or device fails is called again, so it must continue what it finds.

    Args:
        jobs: what to do.
        cluster: where.
        quiet: show messages alone.
        refresh: called before the progress is looked at.

    Raises:
        KeyboardInterrupt: the jobs were cancelled.
    """
    found: dict[int, Any] = {}
    with connect(cluster) as ray, _display(jobs, quiet) as display:
        for message in _lacking(ray, cluster):
            display.console.print(message, soft_wrap=True)
        # A process that has failed on its device is not used again.
        call = ray.remote(max_calls=1, retry_exceptions=[*PASSING], **cluster.task_options)(_call)
        place = Place.here(cluster)
        waiting = {
            call.options(name=job.title).remote(place, job.function, job.arguments): number
            for number, job in enumerate(jobs)
        }
        try:
            while waiting:
                for ref in ray.wait(list(waiting), timeout=POLL)[0]:
                    number = waiting.pop(ref)
                    try:
                        found[number] = fetch_result(ray, ref, jobs[number].title)
                    except VbsixError as error:
                        found[number] = error
                refresh()
                display.update()
        except KeyboardInterrupt:
            for ref in waiting:
                ray.cancel(ref, force=True)
            raise
    return [found[number] for number in range(len(jobs))]


def _call(place: Place, function: Callable[..., Any], arguments: tuple[Any, ...]) -> Any:
    enter(place)
    try:
        return function(*arguments)
    except PASSING:
        raise
    except VbsixError as error:  # those with arguments of their own cannot be pickled
        raise VbsixError(str(error)) from None


def _lacking(ray: Any, cluster: Cluster) -> Iterator[str]:
    """Resources that no node has."""
    nodes = [node["Resources"] for node in ray.nodes() if node["Alive"]]
    for name, asked in (("CPU", cluster.cpus), ("GPU", cluster.gpus)):
        most = max((node.get(name, 0) for node in nodes), default=0)
        if asked > most:
            yield f"No node has {asked:g} {name} now, the most is {most:g}; waiting for one."


class _Display:
    """The steps of each job: bars on a terminal, elsewhere a line whenever metrics are written."""

    def __init__(self, jobs: Sequence[Job], quiet: bool):
        self.jobs, self.quiet = jobs, quiet
        self.console = Console(stderr=quiet, highlight=False, markup=False)
        columns = TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn()
        self.progress = Progress(*columns, console=self.console, disable=quiet or not self.console.is_terminal)
        self.bars = [self.progress.add_task(job.title, total=_steps(job)) for job in jobs]
        self.shown = [0] * len(jobs)
        runs = [run for job in jobs for run in job.runs if run.messages.exists()]
        self.read = {run.folder: run.messages.stat().st_size for run in runs}
        """Bytes of each run's messages that were read, or are of an earlier call."""

    def update(self) -> None:
        for place, job in enumerate(self.jobs):
            self.show_messages(job)
            step = min((last_step(run.metrics) for run in job.runs if read_failure(run) is None), default=0)
            if step != self.shown[place]:
                self.shown[place] = step
                self.progress.update(self.bars[place], completed=step)
                if self.progress.disable and not self.quiet:
                    self.console.print(f"{job.title}: step {step} of {_steps(job)}")

    def show_messages(self, job: Job) -> None:
        """Prints what a job has said since the last time."""
        for run in job.runs:
            if run.messages.exists():
                with run.messages.open("rb") as file:
                    file.seek(self.read.get(run.folder, 0))
                    said = file.read().rpartition(b"\n")[0]  # a line may be unfinished
                    if said:
                        self.read[run.folder] = self.read.get(run.folder, 0) + len(said) + 1
                        self.console.print(f"{job.title}: {said.decode()}", soft_wrap=True)


def _steps(job: Job) -> int:
    return job.runs[0].config.training.steps


@contextmanager
def _display(jobs: Sequence[Job], quiet: bool) -> Iterator[_Display]:
    display = _Display(jobs, quiet)
    display.update()
    with display.progress:
        yield display
