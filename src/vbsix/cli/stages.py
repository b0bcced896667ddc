"""Stages on the command line: what `vbsix train --stages` does."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import typer

from vbsix.cli.report import print_report
from vbsix.data.dataset import Dataset
from vbsix.domains.base import Domain
from vbsix.runs.display import QuietDisplay, create_display, stop_on_interrupt
from vbsix.runs.folder import Run, resume_command
from vbsix.runs.loop import Interrupted
from vbsix.runs.stages import open_stages, train_stages


def finish_stages(folder: Path, domain: Domain | None, quiet: bool) -> None:
    """Trains stages to their ends, and prints what came of the last one."""

    @contextmanager
    def observe(run: Run, dataset: Dataset, count: int) -> Iterator[QuietDisplay]:
        display = create_display([run], quiet)
        if not quiet:
            display.on_message(f"stage {run.stage} of {count}: {run.folder}, {len(dataset.examples)} examples")
        with stop_on_interrupt(display), display:
            yield display

    try:
        ended = train_stages(folder, observe, domain)
    except (Interrupted, KeyboardInterrupt) as stopped:
        again = resume_command(open_stages(folder)[0])
        typer.echo(str(stopped) or f"Stopped. Continue with: {again}", err=True)
        raise typer.Exit(130) from None
    if not quiet:
        print_report(*ended)
