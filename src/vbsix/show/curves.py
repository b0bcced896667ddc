"""Learning curves of runs side by side."""

from __future__ import annotations

import statistics
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import PercentFormatter

from vbsix.config.presets import full_name
from vbsix.evaluation.accuracy import WHOLE
from vbsix.runs.folder import open_run
from vbsix.runs.metrics import Row, read_metrics
from vbsix.utilities.errors import VbsixError
from vbsix.utilities.numbers import deviation

FORMATS = (".png", ".svg")
Curve = list[tuple[int, list[float]]]
"""Steps, each with a value for every seed that has one."""
Summary = list[tuple[int, float, float]]
"""Steps, each with the mean and the standard deviation over seeds."""


def plot_runs(folders: Sequence[Path], *paths: Path) -> None:
    """Draws hit accuracy, dev accuracy and the value network's error against steps.

    Lines are means over seeds, areas their standard deviation.

    Args:
        folders: of the runs.
        paths: PNG or SVG files.
    """
    for path in paths:
        if path.suffix.lower() not in FORMATS:
            raise VbsixError(f"{path}: expected a name that ends in {' or '.join(FORMATS)}.")
    figure = plot_curves(folders)
    for path in paths:
        save(figure, path)


class Panel(NamedTuple):
    """What is drawn of some runs."""

    title: str
    share: bool
    """Whether the values are between 0 and 1."""
    curves: list[tuple[str, Curve]]
    """Of each run, with its label."""


def plot_curves(folders: Sequence[Path]) -> Figure:
    """The drawing that `plot_runs` writes."""
    panels = read_panels(folders)
    figure = Figure(figsize=(5 * len(panels), 4.5), layout="constrained")
    for axes, panel in zip(figure.subplots(1, len(panels), sharex=True, squeeze=False)[0], panels, strict=True):
        draw_panel(axes, panel)
    handles, labels = figure.axes[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=min(len(folders), 3))
    return figure


def draw_panel(axes: Axes, panel: Panel) -> None:
    """Draws the curves of all runs."""
    prepare(axes, panel.title, share=panel.share)
    for label, points in panel.curves:
        draw_curve(axes, label, summarise(points))


def read_panels(folders: Sequence[Path]) -> list[Panel]:
    """Hit accuracy, dev accuracy and the value network's error, as far as a run has measured them."""
    hit = Panel("hit accuracy, longest examples", True, [])
    dev = Panel("dev accuracy, longest examples", True, [])
    error = Panel("error of the value network", False, [])
    for folder in folders:
        run = open_run(folder)
        rows = read_metrics(run.metrics)
        if not rows:
            raise VbsixError(f"{folder}: has no metrics yet; continue it with: vbsix train --resume {folder}")
        label = as_label(f"{folder.resolve().name} ({run.config.domain}, {full_name(run.config)})")
        lengths = {length for row in rows for length in row.get("accuracy", {}).get("dev", {})}
        longest = WHOLE if WHOLE in lengths else max(lengths, key=int, default="")
        hit.curves.append((label, curve(rows, "hit_longest")))
        dev.curves.append((label, curve(rows, "accuracy", "dev", longest)))
        error.curves.append((label, curve(rows, "value_error")))
    panels = hit, dev, error
    return [panel for panel in panels if any(points for _, points in panel.curves)] or [hit]


def as_label(text: str) -> str:
    """A text that matplotlib draws as it is: a dollar begins no formula, and `_` at the start hides nothing."""
    return ("\u200b" if text.startswith("_") else "") + text.replace("$", r"\$")


def curve(rows: Sequence[Row], *path: str) -> Curve:
    """The values at a path of keys by step; steps at which no seed has one are left out."""
    by_step = defaultdict(list)
    for row in rows:
        value: Any = row
        for key in path:
            value = value.get(key, {})
        if value != {}:
            by_step[row["step"]].append(value)
    return sorted(by_step.items())


def summarise(points: Curve) -> Summary:
    """The mean and the standard deviation over seeds at each step."""
    return [(step, statistics.mean(values), deviation(values)) for step, values in points]


def draw_curve(axes: Axes, label: str, points: Summary, colour: str | None = None) -> None:
    """Draws a line of means and an area of standard deviations, by default in the next colour of the panel."""
    steps = [step for step, *_ in points]
    means, spreads = np.array([mean for _, mean, _ in points]), np.array([spread for *_, spread in points])
    (line,) = axes.plot(steps, means, label=label, color=colour, marker="." if len(steps) < 30 else None)
    axes.fill_between(steps, means - spreads, means + spreads, alpha=0.2, color=line.get_color(), linewidth=0)


def prepare(axes: Axes, title: str, share: bool = False) -> None:
    """Makes a panel ready for curves; those of a share lie between 0 and 100%."""
    axes.set(title=title, xlabel="steps")
    axes.grid(alpha=0.3)
    if share:
        axes.set_ylim(-0.02, 1.02)
        axes.yaxis.set_major_formatter(PercentFormatter(1.0))


def save(figure: Figure, path: Path) -> None:
    """Writes a PNG or an SVG file; the same figure gives the same file."""
    with rc_context({"svg.hashsalt": "vbsix"}):
        figure.savefig(path, dpi=150, metadata={"Date": None} if path.suffix.lower() == ".svg" else None)
