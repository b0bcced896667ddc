"""Incomplete runs: their settings, and their accuracy on dev beside that of the most similar finished run."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from vbsix.config.schema import to_settings
from vbsix.config.toml import write_value
from vbsix.reproduction.runs import Result
from vbsix.runs.folder import Run
from vbsix.utilities.numbers import MISSING, mean_std

LENGTHS = ("3", "5")
"""Of the sequences whose accuracy is shown."""
COLUMNS = (
    *("domain", "system", "changed", "step", "hit, longest", *(f"dev, {length}" for length in LENGTHS)),
    *("instead of", *(f"its dev, {length}" for length in LENGTHS)),
)
LAST = "at its end: "
"""Marks the accuracy of a run without an evaluation at that step."""
NOTE = (
    "Mean ± standard deviation over seeds, on SCONE's dev rows. Changed: the settings that differ from those of the "
    "finished run on the right, which is the most similar one; its accuracy is that at the same step, if known. "
    "The folder `results/incomplete/` has a file for each run, with its command, date and hardware."
)


def incomplete_rows(incomplete: Mapping[Run, Result], results: Mapping[Run, Result]) -> list[list[str]]:
    """A row for each incomplete run, beside the most similar result."""
    return [_row(run, found, results) for run, found in incomplete.items()]


def _row(run: Run, incomplete: Result, results: Mapping[Run, Result]) -> list[str]:
    step = incomplete["dev"]["steps"][-1]
    changes = {other: _changes(other, run) for other in results if _place(other) == _place(run)}
    base = min(changes, key=lambda other: (len(changes[other]), _of_data(changes[other])), default=None)
    typed = _typed({**changes[base], **incomplete.get("removed_settings", {})}) if base else MISSING
    shown = [run.config.domain, run.config.name, typed, str(step)]
    beside = [base.config.name, *_accuracies(results[base], step)] if base else [MISSING] * (1 + len(LENGTHS))
    return [*shown, _hit(incomplete, step), *_accuracies(incomplete, step), *beside]


def _place(run: Run) -> tuple[str, str]:
    return run.config.domain, run.source


def _changes(before: Run, after: Run) -> dict[str, Any]:
    """The settings of a run that differ from another's.

    The number of steps makes no difference at the same step, unless the learning rate decays.
    """
    was, now = to_settings(before.config), to_settings(after.config)
    if not any(run.config.training.decay_share for run in (before, after)):
        del now["training.steps"]
    return {name: value for name, value in now.items() if was[name] != value and "." in name}


def _of_data(changes: Mapping[str, Any]) -> int:
    return sum(name.startswith("data.") for name in changes)


def _typed(changes: Mapping[str, Any]) -> str:
    text = " ".join(f"{name}={write_value(value)}" for name, value in changes.items())
    return f"`{text}`" if text else "none"


def _hit(incomplete: Result, step: int) -> str:
    """Hit accuracy in the last stretch of steps that does not go beyond this one."""
    found = incomplete["metrics"].get("hit_longest", {"steps": [], "mean": []})
    means = [mean for last, mean in zip(found["steps"], found["mean"], strict=True) if last <= step]
    return f"{means[-1]:.2f}" if means else MISSING


def _accuracies(result: Result, step: int) -> list[str]:
    curves = result.get("dev", {"steps": []})
    if step in curves["steps"]:
        place, label = curves["steps"].index(step), ""
        known = {length: curves[length][place] for length in LENGTHS if length in curves}
    else:
        known, label = result["accuracy"]["dev"], LAST
    return [f"{label}{mean_std(known[length], 100)}" if length in known else MISSING for length in LENGTHS]
