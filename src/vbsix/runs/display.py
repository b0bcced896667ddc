"""Watching a run: live on a terminal or in a notebook, in plain lines elsewhere, or hardly at all."""

from __future__ import annotations

import io
import os
import signal
import socket
import statistics
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import timedelta
from itertools import islice
from typing import Any

from rich import box
from rich.console import Console, Group
from rich.live import Live
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from vbsix.evaluation.accuracy import Accuracies
from vbsix.runs.folder import Run
from vbsix.runs.metrics import Row
from vbsix.utilities.processes import writes_files

SHARES = {"hit": "hit", "hit_longest": "hit, longest"}
"""Metrics that are shown as percentages, and their headings."""
NUMBERS = {"policy_loss": "policy loss", "critic_loss": "critic loss", "value_error": "value error"}


class QuietDisplay:
    """Shows messages alone. The other displays build on it."""

    def __init__(self, runs: Sequence[Run], console: Console):
        self.runs, self.run, self.console = runs, runs[0], console
        self.stopping = False
        self.first: int | None = None

    def __enter__(self) -> QuietDisplay:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def on_progress(self, step: int) -> None:
        self.first = step if self.first is None else self.first

    def on_metrics(self, step: int, rows: Sequence[Row], steps_per_second: float) -> None:
        pass

    def on_evaluation(self, step: int, accuracies: Accuracies) -> None:
        pass

    def on_message(self, text: str) -> None:
        self.console.print(text, soft_wrap=True)

    def wants_to_stop(self) -> bool:
        return self.stopping

    def by_line(self, shares: Sequence[float]) -> list[float]:
        """A number for each line: of one run, for each seed; of several runs, the mean of each run."""
        if len(self.runs) == 1 or not shares:
            return list(shares)
        given = iter(shares)
        return [statistics.mean(islice(given, len(run.seeds))) for run in self.runs]

    def speed(self, step: int, steps_per_second: float) -> str:
        """The speed of the last steps, and the time left at that speed."""
        if not steps_per_second:  # a run that goes on has done no step yet
            return "0.0 steps/s"
        left = (self.run.config.training.steps - step) / steps_per_second
        return f"{steps_per_second:.1f} steps/s  {timedelta(seconds=round(left))} left"


class MessageFile(QuietDisplay):
    """Appends messages to a file of the first run: nobody sees the output of a task on a cluster."""

    def __init__(self, runs: Sequence[Run]):
        super().__init__(runs, Console(quiet=True))

    def on_message(self, text: str) -> None:
        with self.run.messages.open("a", encoding="utf-8") as file:
            file.write(text + "\n")


class PlainDisplay(QuietDisplay):
    """A line for each row of metrics and each evaluation, with a number for each seed; of a sweep, for each run."""

    def on_progress(self, step: int) -> None:
        if self.first is None:
            self.on_message(f"from step {step}; compiling, which takes a while the first time")
        super().on_progress(step)

    def on_metrics(self, step: int, rows: Sequence[Row], steps_per_second: float) -> None:
        stage = f"stage {self.run.stage}, " if self.run.stage else ""
        parts = [f"{stage}step {step}/{self.run.config.training.steps}", self.speed(step, steps_per_second)]
        lines = sum_up(rows)
        for name, heading in [*SHARES.items(), *NUMBERS.items()]:
            if any(name in row for row in rows):
                parts.append(f"{heading} {' '.join(_format(name, row) for row in lines)}")
        self.on_message("  ".join(parts))

    def on_evaluation(self, step: int, accuracies: Accuracies) -> None:
        for split, by_length in accuracies.items():
            for length, shares in by_length.items():
                numbers = " ".join(f"{share:.1%}" for share in self.by_line(shares))
                self.on_message(f"step {step}  {split} accuracy, {length} instructions: {numbers}")


class LiveDisplay(QuietDisplay):
    """A progress bar above a table with a line for each seed; of a sweep, for each run."""

    def __init__(self, runs: Sequence[Run], console: Console):
        super().__init__(runs, console)
        self.rows: Sequence[Row] = []
        self.dev: Sequence[float] = []
        self.progress = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            TextColumn("{task.fields[speed]}"),
        )
        total = self.run.config.training.steps
        self.bar = self.progress.add_task("compiling", total=total, speed="", visible=False)
        self.live = Live(get_renderable=self.render, console=console, refresh_per_second=4)

    def __enter__(self) -> LiveDisplay:
        self.live.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.live.stop()

    def on_progress(self, step: int) -> None:
        super().on_progress(step)
        stage = f"stage {self.run.stage}, " if self.run.stage else ""
        doing = "compiling" if step == self.first else "training"
        self.progress.update(self.bar, completed=step, description=stage + doing, visible=True)

    def on_metrics(self, step: int, rows: Sequence[Row], steps_per_second: float) -> None:
        self.rows = rows
        self.progress.update(self.bar, speed=self.speed(step, steps_per_second))

    def on_evaluation(self, step: int, accuracies: Accuracies) -> None:
        if "dev" in accuracies:
            self.dev = list(accuracies["dev"].values())[-1]

    def render(self) -> Group:
        """The picture as it stands now."""
        shown = {name: heading for name, heading in (SHARES | NUMBERS).items() if any(name in row for row in self.rows)}
        first, dev = "run" if len(self.runs) > 1 else "seed", self.by_line(self.dev)
        table = Table(first, *shown.values(), "dev accuracy", box=box.SIMPLE_HEAD)
        for place, row in enumerate(sum_up(self.rows)):
            accuracy = f"{dev[place]:.1%}" if dev else ""
            table.add_row(str(row[first]), *(_format(name, row) for name in shown), accuracy)
        return Group(self.progress, table) if self.rows else Group(self.progress)


class NotebookDisplay(LiveDisplay):
    """The same in the cell of a notebook, as text that is updated in place. It needs no widgets."""

    def __enter__(self) -> NotebookDisplay:
        from IPython.display import display  # pyright: ignore[reportMissingImports]

        self.handle = display(self.bundle(), raw=True, display_id=True)
        return self

    def __exit__(self, *_: object) -> None:
        self.update()

    def on_progress(self, step: int) -> None:
        super().on_progress(step)
        self.update()

    def on_metrics(self, step: int, rows: Sequence[Row], steps_per_second: float) -> None:
        super().on_metrics(step, rows, steps_per_second)
        self.update()

    def on_evaluation(self, step: int, accuracies: Accuracies) -> None:
        super().on_evaluation(step, accuracies)
        self.update()

    def update(self) -> None:
        """Replaces what the cell shows."""
        if self.handle:
            self.handle.update(self.bundle(), raw=True)

    def bundle(self) -> dict[str, str]:
        """The picture as plain text."""
        page = Console(file=io.StringIO(), width=100, force_jupyter=False, color_system=None)
        with page.capture() as captured:
            page.print(self.render())
        return {"text/plain": captured.get().rstrip()}


def create_display(runs: Sequence[Run], quiet: bool) -> QuietDisplay:
    """What suits the place where the output goes."""
    quiet = quiet or not writes_files()
    console = Console(stderr=quiet, quiet=not writes_files(), highlight=False, markup=False)
    if quiet:
        return QuietDisplay(runs, console)
    if console.is_jupyter:
        return NotebookDisplay(runs, console)
    return LiveDisplay(runs, console) if console.is_terminal else PlainDisplay(runs, console)


def sum_up(rows: Sequence[Row]) -> list[Row]:
    """The rows of one run as they are; of several runs, the mean row of each."""
    by_run: dict[str, list[Row]] = {}
    for row in rows:
        if "run" not in row:
            return list(rows)
        by_run.setdefault(row["run"], []).append(row)
    return [
        {"run": run}
        | {
            name: statistics.mean(row[name] for row in own if name in row)
            for name in (*SHARES, *NUMBERS)
            if any(name in row for row in own)
        }
        for run, own in by_run.items()
    ]


def _format(name: str, row: dict[str, Any]) -> str:
    if name not in row:
        return "-"
    return f"{row[name]:.1%}" if name in SHARES else f"{row[name]:.3f}"


@contextmanager
def stop_on_interrupt(display: QuietDisplay) -> Iterator[None]:
    """Lets Ctrl-C stop the run after its chunk, and a second one the process at once.

    A thread listens: the main one hears no signal while compiled code runs. Outside of the main thread, Ctrl-C is left
    to the main thread.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    reader, writer = socket.socketpair()
    writer.setblocking(False)
    thread = threading.Thread(target=_listen, args=(reader, display), daemon=True)
    handler = signal.signal(signal.SIGINT, lambda *_: None)
    wakeup = signal.set_wakeup_fd(writer.fileno(), warn_on_full_buffer=False)
    thread.start()
    try:
        yield
    finally:
        signal.set_wakeup_fd(wakeup)
        signal.signal(signal.SIGINT, handler)
        writer.close()
        thread.join()
        reader.close()


def _listen(reader: socket.socket, display: QuietDisplay) -> None:
    while received := reader.recv(1):
        if received[0] == signal.SIGINT and display.stopping:
            display.console.show_cursor()
            os._exit(130)
        elif received[0] == signal.SIGINT:
            display.stopping = True
            display.on_message("Stopping after this chunk of steps; Ctrl-C again stops at once.")
