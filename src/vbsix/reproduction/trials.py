"""Trials: runs that were broken off, or that tried other settings for a while, and what dev said of them."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

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
LAST = "at its end: "
"""Stands before the accuracy of a run that kept none of that step."""
NOTE = (
    "Mean ± standard deviation over seeds, on SCONE's dev rows. Changed: the settings that differ from those of the "
    "finished run named on the right, which is the one with the fewest such settings; its accuracy is of the same step "
    "where it is known. The folder `results/trials/` has a file for each, with its command, date and hardware."
)


def trial_rows(trials: Mapping[Run, Result], results: Mapping[Run, Result]) -> list[list[str]]:
    """A line for each trial, beside the result that is most like it."""
    return [_row(run, trial, results) for run, trial in trials.items()]


def _row(run: Run, trial: Result, results: Mapping[Run, Result]) -> list[str]:
    step = trial["dev"]["steps"][-1]
    changes = {other: _changes(other, run) for other in results if _place(other) == _place(run)}
    base = min(changes, key=lambda other: (len(changes[other]), _of_data(changes[other])), default=None)
    shown = [run.config.domain, run.method, _typed(changes[base]) if base else MISSING, str(step)]
    beside = [base.method, *_accuracies(results[base], step)] if base else [MISSING] * (1 + len(LENGTHS))
    return [*shown, _hit(trial, step), *_accuracies(trial, step), *beside]


def _place(run: Run) -> tuple[str, str]:
    return run.config.domain, run.source


def _changes(before: Run, after: Run) -> dict[str, Any]:
    """The settings of a run that differ from another's.

    How long it was to be makes no difference at the same step, unless its learning rate falls towards the end.
    """
    was, now = (dict(flatten(dataclasses.asdict(run.config))) for run in (before, after))
    if not any(run.config.training.decay_share for run in (before, after)):
        del now["training.steps"]
    return {name: value for name, value in now.items() if was[name] != value}


def _of_data(changes: Mapping[str, Any]) -> int:
    return sum(name.startswith("data.") for name in changes)


def _typed(changes: Mapping[str, Any]) -> str:
    text = " ".join(f"{name}={write_value(value)}" for name, value in changes.items())
    return f"`{text}`" if text else "none"


def _hit(trial: Result, step: int) -> str:
    """Hit accuracy in the last stretch of steps that does not go beyond this one."""
    found = trial["metrics"].get("hit_longest", {"steps": [], "mean": []})
    means = [mean for last, mean in zip(found["steps"], found["mean"], strict=True) if last <= step]
    return f"{means[-1]:.2f}" if means else MISSING


def _accuracies(result: Result, step: int) -> list[str]:
    curves = result.get("dev", {"steps": []})
    if step in curves["steps"]:
        place, label = curves["steps"].index(step), ""
        known = {length: curves[length][place] for length in LENGTHS if length in curves}
    else:
        known, label = result["accuracy"]["dev"], LAST
    return [f"{label}{spread(known[length], 100)}" if length in known else MISSING for length in LENGTHS]
