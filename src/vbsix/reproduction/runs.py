"""Runs that lie in one folder and are done bit by bit, and what comes of them.

A run is in `runs/DOMAIN-METHOD`. What came of it is in `results/DOMAIN-METHOD.json`, from which all else is made; what
one told that was broken off, in `results/trials/`. Names of runs on the embedded corpus begin with `synthetic-`.
"""

from __future__ import annotations

import dataclasses
import math
import shlex
import statistics
import time
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

from vbsix.benchmarks import environment
from vbsix.data.scone import load_split
from vbsix.errors import VbsixError
from vbsix.evaluation import predict_rows, report
from vbsix.files import read_json, write_json
from vbsix.loading import found_committee, make_parser
from vbsix.parser import Parser
from vbsix.plots import curve
from vbsix.reproduction import paper
from vbsix.search.merging import choose
from vbsix.training.config import Config, flatten_json, override, preset, quick, read_assignments
from vbsix.training.judgement import judge
from vbsix.training.metrics import Row, read_metrics
from vbsix.training.run import Accuracies, Best, Interrupted, Observer, Run, create_run, evaluate_splits, train
from vbsix.training.spurious import find_spurious, predict_longest, worlds_between
from vbsix.training.step import Networks
from vbsix.training.task import SYNTHETIC, Split, Task, load_task

_WIDE = {"search.beam": 256, "training.policy_states": 1024}
_WORDS = {"data.own_words": 3}
_RESTS = {**_WORDS, "data.rests": True, "training.short_first": 2000, "training.decay_share": 0.3}
_PRIOR_WORK = {"data.split": "train-orig", "data.lengths": (0,)}
VARIANTS: Mapping[str, tuple[str, Mapping[str, Any]]] = {
    "mml-64": ("mml", {"search.beam": 64}),
    "execution-256": ("execution-only", _WIDE),
    "vbsix-words": ("vbsix", _WORDS),
    "vbsix-spread": ("vbsix", {**_WORDS, "network.token_spread": 0.1}),
    "execution-256-words": ("execution-only", {**_WIDE, **_WORDS}),
    "mml-rests": ("mml", _RESTS),
    "execution-only-rests": ("execution-only", _RESTS),
    "value-only-rests": ("value-only", _RESTS),
    "vbsix-rests": ("vbsix", _RESTS),
    "execution-256-rests": ("execution-only", {**_WIDE, **_RESTS}),
    "mml-orig": ("mml", _PRIOR_WORK),
    "vbsix-orig": ("vbsix", _PRIOR_WORK),
}
"""Methods of other sizes, and on other examples: the method's name and its settings."""
DOMAINS = tuple(paper.ANALYSIS)
EMBEDDED: Mapping[str, Any] = {
    "data.lengths": (1, 2, 3, 4, 5),
    "data.evaluation": (3, 5),
    "training.steps": 5000,
    "training.value_ranking_start": 3000,
    "training.policy_states": 256,
    "training.value_states": 256,
}
"""On the embedded corpus, what differs from `quick`: its sequences are as long as SCONE's."""
EMBEDDED_BY_DOMAIN: Mapping[str, Mapping[str, Any]] = {"scene": {"training.short_first": 1500}}
"""What differs in one domain alone: most of scene's sequences are too long to begin with."""
BY_LENGTH = ("hit", "paths", "correct_discarded")
METRICS = (
    *(name + examples for name, examples in product(BY_LENGTH, ("", "_longest"))),
    *("value_error", "value_error_high", "policy_loss"),
)
"""What a result keeps of a run's metrics."""
MOST_POINTS = 200
"""Of each of them."""
TRIALS = "trials"
"""The folder, in that of results, of runs that were broken off."""
TEST = {"scone": "test", SYNTHETIC: "held-out"}
"""The split that results are of."""
Result = dict[str, Any]
Results = Mapping[Run, Result | None]
"""The runs of a target, in order, and what came of those that have ended."""


def plan(methods: Sequence[str], source: str, folder: Path, seeds: int, assignments: Sequence[str]) -> list[Run]:
    """The runs of some methods in all domains.

    Args:
        methods: or variants of them.
        source: see `load_task`; it decides between the paper's settings and those for the embedded corpus.
        folder: of everything.
        seeds: how many.
        assignments: changes of settings, as in `search.beam=64`.
    """
    changes, runs = read_assignments(assignments), []
    for domain, name in product(DOMAINS, methods):
        method, own = VARIANTS.get(name, (name, {}))
        embedded = source == SYNTHETIC
        config = quick(domain, method) if embedded else preset(domain, method)
        usual = {**EMBEDDED, **EMBEDDED_BY_DOMAIN.get(domain, {})} if embedded else {}
        config = override(config, {**usual, **own, **changes, "domain": domain})
        place = folder / "runs" / f"{SYNTHETIC + '-' if embedded else ''}{domain}-{name}"
        runs.append(Run(place, config, name, tuple(range(seeds)), source))
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


def lacks(needs: str, run: Run, result: Result | None) -> bool:
    """Whether a run is still to be done or to be measured: `test` is accuracy on test, all else a part of results."""
    found = result or {}
    return not _is_tested(run, found) if needs == "test" else needs not in found


def finish(needs: str, run: Run, observer: Observer, command: str) -> Result:
    """Trains a run to its end, from where it was broken off, measures it and writes its result.

    If it is broken off again, what it has told so far is written as a trial.

    Args:
        needs: what is to be in the result; the test split is not read unless this is `test`, or it was read before.
        run: begun or not; see `find_result` for whether it can be gone on with.
        observer: see `train`.
        command: how to do it again.

    Raises:
        Interrupted: the observer wanted to stop.
        VbsixError: a result lacks what is needed, and its run is not there to be measured.
    """
    begun, before = (run.folder / "run.json").exists(), find_result(run)
    if before and not begun:
        raise VbsixError(
            f"{_result_file(run)}: does not tell {needs}, and {run.folder} is not there to be measured. Put the "
            "run there, or take the result away to do the run again."
        )
    task = load_task(run.config, run.source) if begun else create_run(run)
    reads_test = needs == "test" or _is_tested(run, before or {})
    tested = dataclasses.replace(task, splits=_test_split(run, task) if reads_test else {})  # before hours are spent
    try:
        trained = train(run, task, observer)
    except Interrupted:
        if (told := _history(run, command))["dev"]["steps"]:
            write_json(_trial_file(run), told)
        raise
    networks, best = trained.learners.networks, trained.best
    result = {
        **_history(run, command),
        "seconds": trained.seconds,
        "accuracy": trained.accuracies | evaluate_splits(tested, networks.policy, run.config),
        "best": {"steps": best.steps, "accuracy": evaluate_splits(tested, best.policies, run.config)},
        "committee": {"accuracy": evaluate_committee(tested, run, best)},
        **_look_closer(task, networks),
    }
    write_json(_result_file(run), result)
    _trial_file(run).unlink(missing_ok=True)
    return result


def _history(run: Run, command: str) -> Result:
    """What a run told while it was trained, and how it was made."""
    rows = read_metrics(run.metrics)
    return {
        **_identity(run),
        "domain": run.config.domain,
        "steps": max((row["step"] for row in rows), default=0),
        "metrics": {name: _sum_up(rows, name) for name in METRICS if curve(rows, name)},
        "dev": dev_curve(rows),
        "command": command,
        "date": datetime.now(UTC).date().isoformat(),
        **environment(),
    }


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


def _result_file(run: Run) -> Path:
    return run.folder.parents[1] / "results" / f"{run.folder.name}.json"


def _trial_file(run: Run) -> Path:
    return _result_file(run).parent / TRIALS / f"{run.folder.name}.json"


def _identity(run: Run) -> Result:
    """What makes a run this one and no other."""
    return {
        "method": run.method,
        "data": data_name(run.source),
        "seeds": list(run.seeds),
        "config": dataclasses.asdict(run.config),
    }


def data_name(source: str) -> str:
    """The name of the data, wherever it lies."""
    return SYNTHETIC if source == SYNTHETIC else "scone"


def _read_same(run: Run, path: Path) -> Result:
    """What a file says of a run, if it is this run. Settings that are newer than the file have their defaults."""
    found = read_json(path)
    there = flatten_json({"config": dataclasses.asdict(Config())})
    there |= flatten_json({**found, "data": data_name(str(found.get("data")))})
    for name, value in flatten_json(_identity(run)).items():
        if there.get(name) != value:
            raise VbsixError(
                f"{path}: made with other settings: {name.removeprefix('config.')} is {there.get(name)}, not {value}. "
                "Give the settings that it was made with, or another folder with --out."
            )
    return found


def _look_closer(task: Task, networks: Networks) -> Result:
    """How many programs are spurious, what the worlds in between are like, and how well a critic judges."""
    predictions, longest = predict_longest(task, networks), max(task.config.data.evaluation)
    found = {
        "spurious": find_spurious(task, networks, predictions),
        "between": {name: worlds_between(task, task.splits[name], longest, predictions[name]) for name in task.splits},
    }
    return found | ({"critic": judge(task, networks)} if networks.critic is not None else {})


def evaluate_committee(task: Task, run: Run, best: Best) -> Accuracies:
    """The accuracy of all seeds together, each at the step at which it did best on dev; a list of one number."""

    def member(place: int, seed: int) -> Parser:
        provenance = {"seed": seed, "steps": best.steps[place]}
        return make_parser(task.domain, choose(best.policies, place), task.words, run.config, provenance)

    committee = found_committee([member(place, seed) for place, seed in enumerate(run.seeds)])
    return {name: report([predict_rows(committee, split.rows)]).accuracy for name, split in task.splits.items()}


def _is_tested(run: Run, result: Result) -> bool:
    split = TEST[data_name(run.source)]
    return all(split in result.get(name, {}).get("accuracy", {}) for name in ("best", "committee"))


def _test_split(run: Run, task: Task) -> dict[str, Split]:
    name = TEST[data_name(run.source)]
    return {name: task.splits.get(name) or Split(load_split(Path(run.source), task.domain, name))}


def dev_curve(rows: Sequence[Row]) -> dict[str, list[Any]]:
    """Accuracy on dev over steps: for each number of utterances a list over evaluations of lists over seeds."""
    lengths = sorted({length for row in rows for length in row.get("accuracy", {}).get("dev", {})})
    curves = {length: curve(rows, "accuracy", "dev", length) for length in lengths}
    steps = [step for step, _ in next(iter(curves.values()), [])]
    return {"steps": steps, **{length: [values for _, values in points] for length, points in curves.items()}}


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
