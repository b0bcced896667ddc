"""What training from Python gives and reports: `TrainedRun`, `TrainedSweep` and `Progress`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from vbsix.config import presets
from vbsix.config.schema import Config
from vbsix.data.words import Words
from vbsix.domains.base import Domain
from vbsix.evaluation.accuracy import Accuracies
from vbsix.parsing.loading import load
from vbsix.parsing.parser import Parser
from vbsix.runs.display import create_display, stop_on_interrupt
from vbsix.runs.folder import Run
from vbsix.runs.loop import Observer
from vbsix.runs.metrics import Row, read_metrics
from vbsix.utilities.errors import VbsixError


@dataclass(frozen=True)
class Progress:
    """What a callback is given."""

    step: int
    steps: int
    """The last step of the run."""
    metrics: Sequence[Row] = ()
    """A row for each seed, at the steps at which metrics are written."""
    accuracies: Accuracies = field(default_factory=dict)
    """By split, number of utterances and seed, at the steps at which the run is evaluated."""


Callback = Callable[[Progress], Any]
"""Called with every row of metrics and every evaluation; returning True stops the run, which can be resumed."""


@dataclass(frozen=True, eq=False)
class TrainedRun:
    """A run that has ended.

    Attributes:
        folder: where everything is: checkpoints, `metrics.jsonl`, TensorBoard events, `result.json`.
        config: all settings.
        result: what `result.json` holds: accuracies, spurious shares, hardware.
    """

    folder: Path
    config: Config
    result: Mapping[str, Any]
    domain: Domain
    words: Words | None = None

    def __repr__(self) -> str:
        config = self.config
        return f"<run of {config.domain}: {presets.full_name(config)}, {config.training.steps} steps, in {self.folder}>"

    def _repr_html_(self) -> str:
        from vbsix.show.notebook import run_html

        return run_html(self.folder, self.config, self.result, self.metrics)

    @property
    def accuracy(self) -> Accuracies:
        """After the last step, by split, number of utterances and seed."""
        return self.result["accuracy"]

    @property
    def metrics(self) -> list[Row]:
        """The rows of `metrics.jsonl`."""
        return read_metrics(self.folder / "metrics.jsonl")

    @cached_property
    def parser(self) -> Parser:
        """The parser of the seed that is best on dev, at its best step."""
        return load(self.folder, best=True, domain=self.domain, words=self.words)

    @cached_property
    def ensemble(self) -> Parser:
        """All seeds, each at its best step, as one parser."""
        return load(self.folder, best=True, ensemble=True, domain=self.domain, words=self.words)


@dataclass(frozen=True, eq=False)
class TrainedSweep:
    """A sweep that has ended.

    Attributes:
        folder: where everything is; each run has a folder of its own inside.
        runs: the runs that ended well, by their names, such as `learning_rate=0.001,fold=2`.
        failed: why the others failed.
        mean_over_folds: with cross-validation, accuracies after the last step, by split, number of utterances and seed.
            Each is the mean over folds, each of which counts the same.
    """

    folder: Path
    runs: Mapping[str, TrainedRun]
    failed: Mapping[str, VbsixError]
    mean_over_folds: Mapping[str, Accuracies]

    @cached_property
    def ensemble(self) -> Parser:
        """All seeds of all runs, each at its best step, as one parser."""
        first = next(iter(self.runs.values()))
        return load(self.folder, best=True, ensemble=True, domain=first.domain, words=first.words)


@contextmanager
def watch(runs: Sequence[Run], callback: Callback | None, progress: bool) -> Iterator[Observer]:
    """Displays the progress of runs, if wanted; a callback is for one run alone."""
    display = create_display(runs, quiet=not progress)
    with stop_on_interrupt(display), display:
        yield _Calling(display, callback, runs[0].config.training.steps) if callback else display


class _Calling:
    """A display that also calls a function."""

    def __init__(self, display: Observer, callback: Callback, steps: int):
        self.display, self.callback, self.steps, self.stopping = display, callback, steps, False
        self.on_progress, self.on_message = display.on_progress, display.on_message

    def on_metrics(self, step: int, rows: Sequence[Row], steps_per_second: float) -> None:
        self.display.on_metrics(step, rows, steps_per_second)
        self._call(Progress(step, self.steps, metrics=rows))

    def on_evaluation(self, step: int, accuracies: Accuracies) -> None:
        self.display.on_evaluation(step, accuracies)
        self._call(Progress(step, self.steps, accuracies=accuracies))

    def wants_to_stop(self) -> bool:
        return self.stopping or self.display.wants_to_stop()

    def _call(self, progress: Progress) -> None:
        wish = self.callback(progress)
        self.stopping = (isinstance(wish, bool | np.bool_) and bool(wish)) or self.stopping
