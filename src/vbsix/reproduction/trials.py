"""Trials: runs with settings that were tried on dev, most of them broken off when they had told enough."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence

from vbsix.pages import MISSING
from vbsix.reproduction.runs import Result
from vbsix.reproduction.targets import spread
from vbsix.training.config import flatten, write_value
from vbsix.training.run import Run

LENGTHS = ("3", "5")
"""Of the sequences whose accuracy is shown."""
COLUMNS = (
    *("domain", "method", "changed", "step", "hit, longest", *(f"dev, {length}" for length in LENGTHS)),
    *("instead of", *(f"its dev, {length}" for length in LENGTHS)),
)
NOTE = (
    "Mean ± standard deviation over seeds, on SCONE's dev rows. Changed: the settings that differ from those of the "
    "run named on the right, which is the one with the fewest such settings; its accuracy is of the same step. "
    "The folder `results/trials/` has a file with the command of each."
)
_LENGTH_OF_RUN = "training.steps"
"""How long a run was to be is no difference: both are compared at the same step."""


def trial_rows(trials: Mapping[Run, Result], results: Mapping[Run, Result]) -> list[list[str]]:
    """A line for each trial, beside the result that is most like it."""
    return [_row(run, trial, results) for run, trial in trials.items()]


def _row(run: Run, trial: Result, results: Mapping[Run, Result]) -> list[str]:
    step = trial["dev"]["steps"][-1]
    like = {
        other: _changes(other, run)
        for other, result in results.items()
        if _place(other) == _place(run) and step in result.get("dev", {}).get("steps", [])
    }
    base = min(like, key=lambda other: len(like[other]), default=None)
    return [
        *(run.config.domain, run.method, _typed(like[base]) if base else MISSING, str(step)),
        *(f"{trial['metrics']['hit_longest']['mean'][-1]:.2f}", *_accuracies(trial, step)),
        *((base.method, *_accuracies(results[base], step)) if base else (MISSING,) * (1 + len(LENGTHS))),
    ]


def _place(run: Run) -> tuple[str, str]:
    return run.config.domain, run.source


def _changes(before: Run, after: Run) -> list[str]:
    """The settings of a run that differ from another's, as they are typed."""
    was, now = (dict(flatten(dataclasses.asdict(run.config))) for run in (before, after))
    changed = [name for name in now if name != _LENGTH_OF_RUN and was[name] != now[name]]
    return [f"{name}={write_value(now[name])}" for name in changed]


def _typed(changes: Sequence[str]) -> str:
    return f"`{' '.join(changes)}`" if changes else "none"


def _accuracies(result: Result, step: int) -> list[str]:
    curves = result["dev"]
    place = curves["steps"].index(step)
    return [spread(curves[length][place], 100) for length in LENGTHS]
