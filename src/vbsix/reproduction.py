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

from vbsix import paper
from vbsix.benchmarks import environment
from vbsix.data.scone import load_split
from vbsix.errors import VbsixError
from vbsix.files import read_json, write_bytes, write_json
from vbsix.plots import FORMATS, Curve, curve, draw_curve, prepare, save
from vbsix.training.config import Config, flatten, override, preset, quick, read_assignments
from vbsix.training.judgement import STATES, judge
from vbsix.training.metrics import Row, read_metrics
from vbsix.training.run import Observer, Run, create_run, evaluate_splits, train
from vbsix.training.spurious import FOUND, find_spurious, predict_longest, worlds_between
from vbsix.training.step import Networks
from vbsix.training.task import SYNTHETIC, Split, Task, load_task

_PRIOR_WORK = {"data.split": "train-orig", "data.lengths": (0,)}
VARIANTS: Mapping[str, tuple[str, Mapping[str, Any]]] = {
    "mml-64": ("mml", {"search.beam": 64}),
    "vbsix-256": (
        "vbsix",
        {"search.beam": 256, "search.rerank": 1024, "training.policy_states": 1024, "training.value_states": 1024},
    ),
    "mml-orig": ("mml", _PRIOR_WORK),
    "vbsix-orig": ("vbsix", _PRIOR_WORK),
}
"""Methods of other sizes, and on other examples: the method's name and its settings."""
DOMAINS = tuple(paper.ANALYSIS)
METRICS = ("hit", "hit_longest", "value_error", "value_error_high", "paths", "correct_discarded", "policy_loss")
"""What a result keeps of a run's metrics."""
MOST_POINTS = 200
"""Of each of them."""
TEST = {"scone": "test", SYNTHETIC: "held-out"}
"""The split that results are of."""
BETWEEN = 4
"""The worlds in between of five utterances."""
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
    needs: str = ""
    """What must be in a result: `test`, the accuracy on the test split, or the name of one of its parts."""


@dataclass(frozen=True)
class FigureTarget:
    """A figure: a panel for each domain, with curves of each method."""

    title: str
    methods: tuple[str, ...]
    curves: Mapping[str, str]
    """Metrics and their labels."""
    share: bool = False
    """Whether they lie between 0 and 1."""
    needs: str = ""


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


def lacks(target: Target, run: Run, result: Result | None) -> bool:
    """Whether a run is still to be done for a target, or measured once more."""
    if result is None:
        return True
    return not (_is_tested(run, result) if target.needs == "test" else not target.needs or target.needs in result)


def finish(target: Target, run: Run, observer: Observer, command: str) -> Result:
    """Trains a run to its end, from where it was broken off, measures it and writes its result.

    The test split is read for targets that show it, and then only when it was not.

    Args:
        target: what it is done for.
        run: begun or not; see `find_result` for whether it can be gone on with.
        observer: see `train`.
        command: how to do it again.

    Raises:
        Interrupted: the observer wanted to stop.
        VbsixError: a result lacks what the target shows, and its run is not there to be measured.
    """
    begun, before = (run.folder / "run.json").exists(), find_result(run)
    if before and not begun:
        raise VbsixError(
            f"{_result_file(run)}: does not tell {target.needs}, and {run.folder} is not there to be measured. Put the "
            "run there, or take the result away to do the run again."
        )
    task = load_task(run.config, run.source) if begun else create_run(run)
    reads_test = target.needs == "test" or _is_tested(run, before or {})
    tested = dataclasses.replace(task, splits=_test_split(run, task) if reads_test else {})  # before hours are spent
    trained = train(run, task, observer)
    learners, best = trained.learners, trained.best
    networks = learners.networks
    at_best = learners._replace(networks=networks._replace(policy=best.policies))
    rows = read_metrics(run.metrics)
    result = {
        **_identity(run),
        "domain": run.config.domain,
        "steps": run.config.training.steps,
        "seconds": trained.seconds,
        "accuracy": trained.accuracies | evaluate_splits(tested, learners, run.config),
        "best": {"steps": best.steps, "accuracy": evaluate_splits(tested, at_best, run.config)},
        **_look_closer(task, networks),
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


def _look_closer(task: Task, networks: Networks) -> Result:
    """How many programs are spurious, what the worlds in between are like, and how well a critic judges."""
    predictions, longest = predict_longest(task, networks), max(task.config.data.evaluation)
    found = {
        "spurious": find_spurious(task, networks, predictions),
        "between": {name: worlds_between(task, task.splits[name], longest, predictions[name]) for name in task.splits},
    }
    return found | ({"critic": judge(task, networks)} if networks.critic is not None else {})


def _is_tested(run: Run, result: Result) -> bool:
    return TEST[_data(run.source)] in result.get("best", {}).get("accuracy", {})


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
    published = paper.ACCURACY[paper_split][run.config.domain].get(run.method, {})
    for length in run.config.data.evaluation:
        ours = [_spread(one.get("accuracy", {}).get(split, {}).get(str(length), []), 100) for one in measured]
        theirs = "{} ± {}".format(*published[length]) if length in published else MISSING
        yield [run.config.domain, run.method, str(length), *ours, theirs]


def _analysis_rows(run: Run, result: Result) -> Iterator[list[str]]:
    for name, theirs in paper.ANALYSIS[run.config.domain].items():
        averages = result.get("metrics", {}).get(name, {}).get("average", [])
        yield [run.config.domain, name.replace("_", " "), _spread(averages), str(theirs)]


def _prior_rows(run: Run, result: Result) -> Iterator[list[str]]:
    domain = run.config.domain
    for row in _test_rows(run, result):
        length = int(row[2])
        others = [str(accuracy[domain].get(length, MISSING)) for accuracy in paper.PRIOR_WORK.values()]
        theirs = paper.ACCURACY["test"][domain]["vbsix"].get(length)
        yield [*row[:-1], *others, "{} ± {}".format(*theirs) if theirs else MISSING]


def _critic_rows(run: Run, result: Result) -> Iterator[list[str]]:
    for name, theirs in paper.CRITIC.items():
        found = result.get("critic", {}).get(name, {"states": [], "share": []})
        published = str(theirs) if run.config.domain == "scene" else MISSING
        yield [run.config.domain, name, _spread(found["states"]), _spread(found["share"], 100), published]


def _spurious_rows(run: Run, result: Result) -> Iterator[list[str]]:
    spurious, between = result.get("spurious", {}), result.get("between", {}).get("dev", {})
    after = [_spread(between.get(str(end), []), 100) for end in range(1, BETWEEN + 1)]
    yield [run.config.domain, run.method, *(_spread(spurious.get(name, []), 100) for name in (FOUND, "dev")), *after]


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
        needs="test",
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
    "prior-work": TableTarget(
        "Prior work: test accuracy after training on examples of 1 and 2 utterances, %",
        ("mml-orig", "vbsix-orig"),
        ("domain", "method", "utterances", "last step", "best on dev", *paper.PRIOR_WORK, "paper's VBSiX"),
        _prior_rows,
        "Prior work has medians of 5 runs; Fried et al. learned from programs, the others from the same examples as "
        "ours, and the paper's VBSiX from the longer ones of Table 1.",
        needs="test",
    ),
    "critic": TableTarget(
        "Critic: where the value network is right and where it is not, %",
        ("vbsix",),
        ("domain", "states", "how many", "ours", "paper"),
        _critic_rows,
        f"Of each seed {STATES} states of the last utterance, half of them with an estimated reward of 0 and half with "
        "one above 0.7, from searches for training examples, whose value is off by less than 0.2 or more than 0.5. "
        "Many differences: without reward, and the world differs from the target in 3 places or more; how many have a "
        "value below 0.2. One difference: likewise in 1 place; a value above 0.5. Few people: with reward, and 2 in "
        "the world at most; a value above 0.5. Many people: likewise 3 or more; a value below 0.5.",
        needs="critic",
    ),
    "spurious": TableTarget(
        "Spurious programs: right in the end, wrong on the way, %",
        ("mml", "mml-64", "expert-mml", "reinforce", "execution-only", "value-only", "vbsix", "vbsix-256"),
        ("domain", "method", "found in training", "right on dev", *(f"after {end}" for end in range(1, BETWEEN + 1))),
        _spurious_rows,
        "Found in training: how much of the probability of what a search finds for training examples passes through a "
        "wrong world. Right on dev: how many of the right predictions for the longest sequences do; after 1, 2, ...: "
        "how many of them have the right world there.",
        needs="spurious",
    ),
}
"""What can be reproduced, by name."""
