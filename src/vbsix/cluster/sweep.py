"""A sweep on a Ray cluster: each group of runs is a task."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from vbsix.cluster.connection import Cluster, missing_on_node
from vbsix.cluster.jobs import Job, run_jobs
from vbsix.domains.registry import import_domain, origin_of
from vbsix.runs.display import QuietDisplay, create_display
from vbsix.runs.folder import Run
from vbsix.runs.sweep import Sweep, is_sweep, open_sweep, train_group, waiting_runs
from vbsix.utilities.errors import VbsixError


def train_sweep_on(cluster: Cluster, sweep: Sweep, quiet: bool) -> dict[Path, VbsixError]:
    """Trains all runs of a sweep to their ends, like `train_sweep`.

    Args:
        cluster: where.
        sweep: the sweep, in a folder that all nodes share.
        quiet: show messages alone.

    Returns:
        Why runs failed, by their folders.

    Raises:
        VbsixError: some groups could not be trained to their ends; all others are.
    """
    folder, origin = sweep.folder.resolve(), origin_of(sweep.runs[0].config.domain)
    jobs = [
        Job(f"group {number} of {len(sweep.groups)}", _train_group, (str(folder), number, origin), waiting)
        for number, group in enumerate(sweep.groups, start=1)
        if (waiting := waiting_runs(group))
    ]
    errors = [str(outcome) for outcome in run_jobs(jobs, cluster, quiet) if isinstance(outcome, VbsixError)]
    if errors:
        raise VbsixError("\n".join(errors))
    return sweep.failed


def _train_group(folder: str, number: int, origin: str | None) -> None:
    """What a task does. Runs that have results are left alone, the others continue from their checkpoints."""
    if not is_sweep(Path(folder)):
        raise missing_on_node(Path(folder))
    domain = import_domain(origin) if origin else None
    train_group(open_sweep(Path(folder)), number, observe_quietly, domain)


@contextmanager
def observe_quietly(runs: Sequence[Run], title: str) -> Iterator[QuietDisplay]:
    """A display for a process without a terminal; messages go to Ray's log."""
    yield create_display(runs, quiet=True)
