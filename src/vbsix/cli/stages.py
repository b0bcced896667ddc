"""Stages and teaching on the command line: what `vbsix train --stages` and `--rounds` do."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from vbsix.cli.report import print_report
from vbsix.cli.stopping import exit_when_stopped
from vbsix.cli.sweep import observe_runs
from vbsix.data.dataset import Dataset
from vbsix.domains.base import Domain
from vbsix.runs.display import QuietDisplay, create_display, stop_on_interrupt
from vbsix.runs.folder import Run, resume_command
from vbsix.runs.stages import Observe, open_stages, train_stages
from vbsix.runs.teaching import open_teaching, train_teaching


def finish_stages(folder: Path, domain: Domain | None, quiet: bool) -> None:
    """Trains stages to their ends, and prints what came of the last one."""
    with exit_when_stopped(lambda: resume_command(open_stages(folder)[0])):
        ended = train_stages(folder, observe_stage(quiet), domain)
    if not quiet:
        print_report(*ended)


def finish_teaching(folder: Path, domain: Domain | None, quiet: bool) -> None:
    """Trains all rounds and the student to their ends, and prints what came of the student."""
    first = Run(folder, open_teaching(folder).stages[0], (), "")
    with exit_when_stopped(lambda: resume_command(first)):
        ended = train_teaching(folder, observe_runs(quiet), observe_stage(quiet, "student, "), domain)
    if not quiet:
        print_report(*ended)


def observe_stage(quiet: bool, who: str = "") -> Observe:
    """Opens displays of stages."""

    @contextmanager
    def observe(run: Run, dataset: Dataset, count: int) -> Iterator[QuietDisplay]:
        display = create_display([run], quiet)
        if not quiet:
            display.on_message(f"{who}stage {run.stage} of {count}: {run.folder}, {len(dataset.examples)} examples")
        with stop_on_interrupt(display), display:
            yield display

    return observe
