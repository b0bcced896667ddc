"""The paper's tables and figures, made from runs that lie in one folder and are done bit by bit.

A run is in `runs/DOMAIN-METHOD`. What came of it is in `results/DOMAIN-METHOD.json`, from which all else is made.
"""

from __future__ import annotations

import dataclasses
import json
import math
import shlex
import statistics
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from vbsix.benchmarks import environment
from vbsix.data.scone import load_split
from vbsix.errors import VbsixError
from vbsix.files import read_json, write_bytes, write_json
from vbsix.plots import FORMATS, Curve, curve, draw_curve, prepare, save
from vbsix.training.config import Config, flatten, override, preset, quick, read_assignments
from vbsix.training.metrics import Row, read_metrics
from vbsix.training.run import Observer, Run, create_run, evaluate_splits, train
from vbsix.training.task import SYNTHETIC, Split, Task, load_task

PAPER_ACCURACY = {
    "test": {
        "scene": {
            "mml": {3: (8.4, 2.0), 5: (7.2, 1.3)},
            "mml-64": {3: (15.4, 12.6), 5: (12.3, 9.6)},
            "expert-mml": {3: (1.8, 1.5), 5: (1.6, 1.2)},
            "vbsix": {3: (34.2, 27.5), 5: (28.2, 20.7)},
        },
        "alchemy": {
            "mml": {3: (41.9, 22.8), 5: (33.2, 20.1)},
            "mml-64": {3: (44.6, 23.7), 5: (36.3, 20.6)},
            "expert-mml": {3: (29.4, 22.7), 5: (23.1, 18.8)},
            "vbsix": {3: (74.5, 1.1), 5: (64.8, 1.5)},
        },
        "tangrams": {
            "mml": {3: (32.5, 20.7), 5: (16.8, 14.1)},
            "mml-64": {3: (45.6, 18.0), 5: (25.8, 12.6)},
            "expert-mml": {3: (2.4, 0.8), 5: (1.2, 0.5)},
            "vbsix": {3: (65.0, 0.8), 5: (43.0, 1.3)},
        },
    },
    "dev": {
        "scene": {
            "mml": {3: (5.5, 0.5), 5: (3.8, 0.6)},
            "execution-only": {3: (7.4, 10.4), 5: (4.0, 5.8)},
            "value-only": {3: (7.6, 8.3), 5: (3.4, 2.9)},
            "vbsix": {3: (31.0, 24.7), 5: (22.6, 19.6)},
        },
        "alchemy": {
            "mml": {3: (36.4, 26.5), 5: (25.4, 23.0)},
            "execution-only": {3: (41.3, 28.6), 5: (28.2, 23.27)},
            "value-only": {3: (78.5, 1.0), 5: (72.8, 1.3)},
            "vbsix": {3: (81.9, 1.3), 5: (75.2, 2.9)},
        },
        "tangrams": {
            "mml": {3: (34.4, 18.3), 5: (15.6, 12.8)},
            "execution-only": {3: (33.5, 15.5), 5: (12.7, 10.4)},
            "value-only": {3: (66.8, 1.5), 5: (42.8, 1.9)},
            "vbsix": {3: (68.6, 2.0), 5: (44.2, 2.1)},
        },
    },
}
"""Accuracy in % by number of utterances: mean and standard deviation over 6 seeds (Tables 1 and 2)."""
VARIANTS: Mapping[str, tuple[str, Mapping[str, Any]]] = {
    "mml-64": ("mml", {"search.beam": 64}),
    "vbsix-256": (
        "vbsix",
        {"search.beam": 256, "search.rerank": 1024, "training.policy_states": 1024, "training.value_states": 1024},
    ),
}
"""Methods of other sizes: the method's name and its settings."""
PAPER_ANALYSIS = {
    "scene": {"paths": 143903, "correct_discarded": 18.5},
    "alchemy": {"paths": 5892, "correct_discarded": 11.2},
    "tangrams": {"paths": 678, "correct_discarded": 3.8},
}
"""What the beam holds in execution space (section "Analysis")."""

DOMAINS = tuple(PAPER_ANALYSIS)
METRICS = ("hit", "hit_longest", "value_error", "value_error_high", "paths", "correct_discarded", "policy_loss")
"""What a result keeps of a run's metrics."""
MOST_POINTS = 200
"""Of each of them."""
TEST = {"scone": "test", SYNTHETIC: "held-out"}
"""The split that results are of."""
MISSING = "-"
Result = dict[str, Any]
Results = Mapping[Run, Result | None]
"""The runs of a target, in order, and what came of those that have ended."""


@dataclass(frozen=True)
class TableTarget:
    """A table: some lines for each run."""

    title: str
    methods: tuple[str, ...]
    columns: tuple[str, ...]
    rows: Callable[[Run, Result], Iterable[list[str]]]
    """The lines of a run; its result is empty if it has not ended."""
    note: str


@dataclass(frozen=True)
class FigureTarget:
    """A figure: a panel for each domain, with curves of each method."""

    title: str
    methods: tuple[str, ...]
    curves: Mapping[str, str]
    """Metrics and their labels."""
    share: bool = False
    """Whether they lie between 0 and 1."""


Target = TableTarget | FigureTarget


def plan(target: Target, source: str, folder: Path, seeds: int, assignments: Sequence[str]) -> list[Run]:
    """The runs that a target is made of.

    Args:
        target: the table or figure.
        source: see `load_task`; it decides between the paper's settings and quick ones.
        folder: of everything.
        seeds: how many.
        assignments: changes of settings, as in `search.beam=64`.
    """
    make, changes = quick if source == SYNTHETIC else preset, read_assignments(assignments)
    runs = []
    for domain, name in product(DOMAINS, target.methods):
        method, sizes = VARIANTS.get(name, (name, {}))
        config = override(make(domain, method), {**sizes, **changes, "domain": domain})
        runs.append(Run(folder / "runs" / f"{domain}-{name}", config, name, tuple(range(seeds)), source))
    return runs


def find_result(run: Run) -> Result | None:
    """What came of a run; None if it has not ended.

    Raises:
        VbsixError: what lies in its place was made with other settings.
    """
    found = None
    for path in (run.folder / "run.json", _result_file(run)):
        found = _read_same(run, path) if path.exists() else None
    return found


def finish(run: Run, observer: Observer, command: str) -> Result:
    """Trains a run to its end, from where it was broken off, measures it on the test split and writes its result.

    Args:
        run: begun or not; see `find_result` for whether it can be gone on with.
        observer: see `train`.
        command: how to do it again.

    Raises:
        Interrupted: the observer wanted to stop.
    """
    task = load_task(run.config, run.source) if (run.folder / "run.json").exists() else create_run(run)
    tested = dataclasses.replace(task, splits=_test_split(run, task))  # read before hours are spent
    trained = train(run, task, observer)
    learners, best = trained.learners, trained.best
    at_best = learners._replace(networks=learners.networks._replace(policy=best.policies))
    rows = read_metrics(run.metrics)
    result = {
        **_identity(run),
        "domain": run.config.domain,
        "steps": run.config.training.steps,
        "seconds": trained.seconds,
        "accuracy": trained.accuracies | evaluate_splits(tested, learners, run.config),
        "best": {"steps": best.steps, "accuracy": evaluate_splits(tested, at_best, run.config)},
        "metrics": {name: _sum_up(rows, name) for name in METRICS if curve(rows, name)},
        "command": command,
        "date": datetime.now(UTC).date().isoformat(),
        **environment(),
    }
    write_json(_result_file(run), result)
    return result


def command_for(name: str, run: Run, assignments: Sequence[str]) -> str:
    """What to type to do a run of a target again; where its data lies is told by the last folder alone."""
    options = {
        "--data": Path(run.source).name,
        "--domains": run.config.domain,
        "--methods": run.method,
        "--seeds": str(len(run.seeds)),
    }
    changes = [f"--set={assignment}" for assignment in assignments]
    return shlex.join(["vbsix", "reproduce", name, *(word for option in options.items() for word in option), *changes])


class Timed:
    """An observer that also wants to stop when time is up."""

    def __init__(self, observer: Observer, deadline: float):
        self.observer, self.deadline = observer, deadline
        self.on_progress, self.on_metrics = observer.on_progress, observer.on_metrics
        self.on_evaluation, self.on_message = observer.on_evaluation, observer.on_message

    def wants_to_stop(self) -> bool:
        return self.observer.wants_to_stop() or time.monotonic() >= self.deadline


def table_rows(target: TableTarget, results: Results) -> list[list[str]]:
    """The lines of a table."""
    return [row for run, result in results.items() for row in target.rows(run, result or {})]


def table_note(target: TableTarget, results: Results) -> str:
    """What the numbers of a table are."""
    run = next(iter(results))
    data = "the embedded corpus" if run.source == SYNTHETIC else "SCONE"
    ours = f"Ours: mean ± standard deviation over {len(run.seeds)} seeds, on {data}"
    return f"{ours}; the paper's: on SCONE. {target.note}"


def write_table(target: TableTarget, results: Results, path: Path) -> None:
    """Writes a table as Markdown, and below it where each number comes from."""
    table = [target.columns, ["---"] * len(target.columns), *table_rows(target, results)]
    lines = [f"# {target.title}", "", *(f"| {' | '.join(row)} |" for row in table), "", table_note(target, results), ""]
    for run, result in results.items():
        if result:
            spent = f"{result['steps']} steps in {timedelta(seconds=round(result['seconds']))}"
            lines.append(
                f"- {run.folder.name}: {spent} on {result['device']}, {result['date']}, "
                f"vbsix {result['versions']['vbsix']}: `{result['command']}`"
            )
    write_bytes(path, ("\n".join(lines).rstrip() + "\n").encode())


def draw_figure(target: FigureTarget, results: Results, path: Path) -> list[Path]:
    """Draws means over seeds and their standard deviation against steps.

    Args:
        target: the figure.
        results: of its runs.
        path: without the suffix.

    Returns:
        The files written.
    """
    figure = Figure(figsize=(15, 4.5), layout="constrained")
    figure.suptitle(target.title)
    for axes, domain in zip(figure.subplots(1, len(DOMAINS)), DOMAINS, strict=True):
        prepare(axes, domain, target.share)
        for run, result in results.items():
            if run.config.domain == domain:
                for metric, label in target.curves.items():
                    points = _points((result or {}).get("metrics", {}).get(metric))
                    draw_curve(axes, label.format(method=run.method) + ("" if points else f": {MISSING}"), points)
        axes.legend()
    files = [path.with_suffix(suffix) for suffix in FORMATS]
    for file in files:
        save(figure, file)
    return files


def _result_file(run: Run) -> Path:
    return run.folder.parents[1] / "results" / f"{run.folder.name}.json"


def _identity(run: Run) -> Result:
    """What makes a run this one and no other."""
    return {
        "method": run.method,
        "data": _data(run.source),
        "seeds": list(run.seeds),
        "config": dataclasses.asdict(run.config),
    }


def _data(source: str) -> str:
    """The name of the data, wherever it lies."""
    return SYNTHETIC if source == SYNTHETIC else "scone"


def _read_same(run: Run, path: Path) -> Result:
    """What a file says of a run, if it is this run. Settings that are newer than the file have their defaults."""
    found = read_json(path)
    there = _flatten({"config": dataclasses.asdict(Config())})
    there |= _flatten({**found, "data": _data(str(found.get("data")))})
    for name, value in _flatten(_identity(run)).items():
        if there.get(name) != value:
            raise VbsixError(
                f"{path}: made with other settings: {name.removeprefix('config.')} is {there.get(name)}, not {value}. "
                "Give the settings that it was made with, or another folder with --out."
            )
    return found


def _flatten(tables: Mapping[str, Any]) -> dict[str, Any]:
    """Values by dotted paths, as JSON gives them back."""
    return dict(flatten(json.loads(json.dumps(tables))))


def _test_split(run: Run, task: Task) -> dict[str, Split]:
    name = TEST[_data(run.source)]
    return {name: task.splits.get(name) or Split(load_split(Path(run.source), task.domain, name))}


def _sum_up(rows: Sequence[Row], name: str) -> dict[str, list[Any]]:
    """A metric's mean and standard deviation over seeds, in at most `MOST_POINTS` stretches; and over all steps."""
    points = curve(rows, name)
    size = math.ceil(len(points) / MOST_POINTS)
    stretches = [points[first : first + size] for first in range(0, len(points), size)]
    seeds = sorted({row["seed"] for row in rows})
    by_seed = [[row[name] for row in rows if row["seed"] == seed and name in row] for seed in seeds]
    return {
        "steps": [stretch[-1][0] for stretch in stretches],
        "mean": [float(np.mean([np.mean(values) for _, values in stretch])) for stretch in stretches],
        "std": [float(np.mean([np.std(values) for _, values in stretch])) for stretch in stretches],
        "average": [statistics.mean(values) if values else None for values in by_seed],
    }


def _points(metric: Mapping[str, list[float]] | None) -> Curve:
    """A curve of two values at each step, which have the mean and the standard deviation of all the seeds'."""
    if not metric:
        return []
    columns = zip(metric["steps"], metric["mean"], metric["std"], strict=True)
    return [(int(step), [mean - spread, mean + spread]) for step, mean, spread in columns]


def _test_rows(run: Run, result: Result) -> Iterator[list[str]]:
    yield from _accuracy_rows(run, TEST[_data(run.source)], "test", (result, result.get("best", {})))


def _dev_rows(run: Run, result: Result) -> Iterator[list[str]]:
    yield from _accuracy_rows(run, "dev", "dev", (result,))


def _accuracy_rows(run: Run, split: str, paper_split: str, measured: Sequence[Result]) -> Iterator[list[str]]:
    paper = PAPER_ACCURACY[paper_split][run.config.domain].get(run.method, {})
    for length in run.config.data.evaluation:
        ours = [_spread(one["accuracy"][split][str(length)] if one else [], 100) for one in measured]
        theirs = "{} ± {}".format(*paper[length]) if length in paper else MISSING
        yield [run.config.domain, run.method, str(length), *ours, theirs]


def _analysis_rows(run: Run, result: Result) -> Iterator[list[str]]:
    for name, theirs in PAPER_ANALYSIS[run.config.domain].items():
        averages = result.get("metrics", {}).get(name, {}).get("average", [])
        yield [run.config.domain, name.replace("_", " "), _spread(averages), str(theirs)]


def _spread(values: Sequence[float | None], scale: float = 1) -> str:
    """The mean and the standard deviation of what is known."""
    known = [scale * value for value in values if value is not None]
    spread = f" ± {statistics.stdev(known):.1f}" if len(known) > 1 else ""
    return f"{statistics.mean(known):.1f}{spread}" if known else MISSING


TARGETS: Mapping[str, Target] = {
    "table1": TableTarget(
        "Table 1: test accuracy, %",
        ("mml", "mml-64", "expert-mml", "reinforce", "vbsix", "vbsix-256"),
        ("domain", "method", "utterances", "last step", "best on dev", "paper"),
        _test_rows,
        "Best on dev: of each seed, the policy at the step where it did best there.",
    ),
    "table2": TableTarget(
        "Table 2: dev accuracy without execution space, without a critic, without both, %",
        ("mml", "execution-only", "value-only", "vbsix"),
        ("domain", "method", "utterances", "last step", "paper"),
        _dev_rows,
        "The method mml has neither.",
    ),
    "figure5": FigureTarget(
        "Figure 5: hit accuracy on the longest training examples",
        ("mml", "execution-only", "value-only", "vbsix"),
        {"hit_longest": "{method}"},
        share=True,
    ),
    "figure6": FigureTarget(
        "Figure 6: error of the value network",
        ("vbsix",),
        {"value_error": "all states", "value_error_high": "reward above 0.7"},
    ),
    "analysis": TableTarget(
        "Analysis: what the beam holds in execution space",
        ("vbsix",),
        ("domain", "property", "ours", "paper"),
        _analysis_rows,
        "Ours are over all steps and all training examples, the paper's over its examples of 5 utterances.",
    ),
}
"""What can be reproduced, by name."""
