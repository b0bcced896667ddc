"""The runs behind tables and figures, all in one folder, each trained as far as it is missing.

A run is in `runs/NAME`, where the name gives domain, method, recipe and variant. Its result is in `results/NAME.json`,
from which tables and figures are made; the metrics of an incomplete run are in `results/incomplete/`. Names of runs on
the built-in corpus begin with `synthetic-`.
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
from typing import Any, NamedTuple

import numpy as np

from vbsix.config.presets import preset
from vbsix.config.schema import Config, flatten_json, override
from vbsix.config.toml import read_assignments
from vbsix.data.dataset import SYNTHETIC, Dataset, Split
from vbsix.data.scone import load_split
from vbsix.evaluation.accuracy import Accuracies, evaluate_splits
from vbsix.evaluation.critic_analysis import analyse_critic
from vbsix.evaluation.report import report
from vbsix.evaluation.spurious import intermediate_accuracy, predict_longest, spurious_shares
from vbsix.models.heads import Networks
from vbsix.parsing.evaluation import predict_rows
from vbsix.parsing.loading import make_ensemble, make_parser
from vbsix.parsing.parser import Parser
from vbsix.reproduction import paper
from vbsix.runs.display import MessageFile
from vbsix.runs.folder import Best, Run, create_run, read_dataset
from vbsix.runs.loop import Interrupted, Observer, train
from vbsix.runs.metrics import Row, read_metrics
from vbsix.show.curves import curve
from vbsix.utilities.errors import VbsixError
from vbsix.utilities.files import read_json, write_json
from vbsix.utilities.machine import environment
from vbsix.utilities.trees import choose


class System(NamedTuple):
    """What a row of a table is about. Each name can be given to `vbsix train`."""

    method: str
    recipe: str = "stochastic"
    variant: str = ""

    @property
    def label(self) -> str:
        """All names, for a legend."""
        return ", ".join(filter(None, self))


NO_VARIANT = "none"
"""Stands for no variant on the command line and in tables."""
EMBEDDED_VARIANT = "five-instructions"
"""What every run on the built-in corpus has: its sequences are as long as SCONE's."""
DOMAINS = tuple(paper.ANALYSIS)
BY_LENGTH = ("hit", "paths", "correct_discarded")
KEPT_METRICS = (
    *(name + examples for name, examples in product(BY_LENGTH, ("", "_longest"))),
    *("value_error", "value_error_high", "policy_loss"),
)
"""The metrics of a run that its result keeps."""
MOST_POINTS = 200
"""Of each of them."""
INCOMPLETE = "incomplete"
"""The folder, inside that of results, of incomplete runs."""
TEST = {"scone": "test", SYNTHETIC: "held-out"}
"""The split that results are of."""
Result = dict[str, Any]
Results = Mapping[Run, Result | None]
"""The runs of a target, in order, and the results of those that have ended."""


def plan(systems: Sequence[System], source: str, folder: Path, seeds: int, assignments: Sequence[str]) -> list[Run]:
    """The runs of some systems in all domains.

    Args:
        systems: methods with recipes and variants.
        source: see `load_dataset`; it decides between the paper's settings and those for the built-in corpus.
        folder: of everything.
        seeds: how many.
        assignments: changes of settings, as in `search.beam=64`.
    """
    changes, runs = read_assignments(assignments), []
    embedded = source == SYNTHETIC
    for domain, (method, recipe, variant) in product(DOMAINS, systems):
        if embedded:
            variant = "+".join(filter(None, (EMBEDDED_VARIANT, variant)))
        config = preset(domain, method, recipe, variant, data="synthetic" if embedded else "scone")
        config = override(config, {**changes, "domain": domain})
        place = folder / "runs" / f"{SYNTHETIC + '-' if embedded else ''}{domain}-{config.name}"
        runs.append(Run(place, config, tuple(range(seeds)), source))
    return runs


def system_of(run: Run) -> System:
    """The system that a run trains, by which tables know it."""
    variants = [name for name in run.config.variant.split("+") if name != EMBEDDED_VARIANT]
    return System(run.config.method, run.config.recipe, "+".join(variants))


def find_result(run: Run) -> Result | None:
    """The result of a run; None if it has not ended.

    Raises:
        VbsixError: a result or a run of this name was made with other settings.
    """
    found = None
    for path in (run.folder / "run.json", _result_file(run)):
        found = _read_same(run, path) if path.exists() else None
    return found


def lacks(needs: str, run: Run, result: Result | None) -> bool:
    """Whether a run has yet to be trained or measured: `test` is accuracy on test, all else a part of results."""
    found = result or {}
    return not _is_tested(run, found) if needs == "test" else needs not in found


def finish(needs: str, run: Run, observer: Observer, command: str) -> Result:
    """Trains a run to its end, from where it was interrupted, measures it and writes its result.

    If it is interrupted again, its metrics so far are written as those of an incomplete run.

    Args:
        needs: what the result must contain; the test split is read only if this is `test`, or if it was read before.
        run: new or begun; see `find_result` for whether it can be continued.
        observer: see `train`.
        command: how to repeat it.

    Raises:
        Interrupted: the observer wanted to stop.
        VbsixError: a result lacks what is needed, and its run is not there to be measured.
    """
    begun, before = (run.folder / "run.json").exists(), find_result(run)
    if before and not begun:
        raise VbsixError(
            f"{_result_file(run)}: has no {needs}, and {run.folder} is not there to be measured. Put the run there, or "
            "remove the result to train again."
        )
    dataset = read_dataset(run) if begun else create_run(run)
    reads_test = needs == "test" or _is_tested(run, before or {})
    tested = dataclasses.replace(
        dataset, splits=_test_split(run, dataset) if reads_test else {}
    )  # before hours are spent
    try:
        trained = train(run, dataset, observer)
    except Interrupted:
        if (history := _history(run, command))["dev"]["steps"]:
            write_json(_incomplete_file(run), history)
        raise
    networks, best = trained.learners.evaluated, trained.best
    result = {
        **_history(run, command),
        "seconds": trained.seconds,
        "accuracy": trained.accuracies | evaluate_splits(tested, networks.policy, run.config),
        "best": {"steps": best.steps, "accuracy": evaluate_splits(tested, best.policies, run.config)},
        "ensemble": {"accuracy": evaluate_ensemble(tested, run, best)},
        **_analyse(dataset, networks, run.config),
    }
    write_json(_result_file(run), result)
    _incomplete_file(run).unlink(missing_ok=True)
    return result


def finish_quietly(needs: str, run: Run, command: str) -> Result:
    """Like `finish`, in a process whose output nobody sees."""
    return finish(needs, run, MessageFile([run]), command)


def _history(run: Run, command: str) -> Result:
    """The metrics of a run, and how it was made."""
    rows = read_metrics(run.metrics)
    return {
        "method": run.config.method,
        "recipe": run.config.recipe,
        "variant": run.config.variant,
        "domain": run.config.domain,
        **_identity(run),
        "steps": max((row["step"] for row in rows), default=0),
        "metrics": {name: sum_up(rows, name) for name in KEPT_METRICS if curve(rows, name)},
        "dev": dev_curve(rows),
        "command": command,
        "date": datetime.now(UTC).date().isoformat(),
        **environment(),
    }


def command_for(name: str, run: Run, assignments: Sequence[str]) -> str:
    """The command that repeats a run of a target; of the data's folder it has the last part alone."""
    system = system_of(run)
    options = {
        "--data": Path(run.source).name,
        "--domains": run.config.domain,
        "--methods": system.method,
        "--recipes": system.recipe,
        "--variants": system.variant or NO_VARIANT,
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


def _incomplete_file(run: Run) -> Path:
    return _result_file(run).parent / INCOMPLETE / f"{run.folder.name}.json"


def _identity(run: Run) -> Result:
    """What distinguishes a run from all others."""
    return {
        "data": data_name(run.source),
        "seeds": list(run.seeds),
        "config": dataclasses.asdict(run.config),
    }


def data_name(source: str) -> str:
    """The name of the data, wherever it lies."""
    return SYNTHETIC if source == SYNTHETIC else "scone"


def _read_same(run: Run, path: Path) -> Result:
    """What a file says about a run, if it is this run. Settings that are newer than the file have their defaults."""
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


def _analyse(dataset: Dataset, networks: Networks, config: Config) -> Result:
    """Spurious shares, the accuracy of intermediate worlds, and the critic."""
    predictions = predict_longest(dataset, networks, config)
    found: Result = {
        "spurious": spurious_shares(dataset, networks, config, predictions),
        "intermediate": intermediate_accuracy(dataset, config, predictions),
    }
    return found | ({"critic": analyse_critic(dataset, networks, config)} if networks.critic is not None else {})


def evaluate_ensemble(dataset: Dataset, run: Run, best: Best) -> Accuracies:
    """The accuracy of the ensemble of all seeds, each at its best step on dev; a list of one number."""

    def member(place: int, seed: int) -> Parser:
        provenance = {"seed": seed, "steps": best.steps[place]}
        return make_parser(dataset.domain, choose(best.policies, place), dataset.words, run.config, provenance)

    ensemble = make_ensemble([member(place, seed) for place, seed in enumerate(run.seeds)])
    return {name: report([predict_rows(ensemble, split.rows)]).accuracy for name, split in dataset.splits.items()}


def _is_tested(run: Run, result: Result) -> bool:
    split = TEST[data_name(run.source)]
    return all(split in result.get(name, {}).get("accuracy", {}) for name in ("best", "ensemble"))


def _test_split(run: Run, dataset: Dataset) -> dict[str, Split]:
    name = TEST[data_name(run.source)]
    return {name: dataset.splits.get(name) or Split(load_split(Path(run.source), dataset.domain, name))}


def dev_curve(rows: Sequence[Row]) -> dict[str, list[Any]]:
    """Accuracy on dev over steps: for each number of utterances a list over evaluations of lists over seeds."""
    lengths = sorted({length for row in rows for length in row.get("accuracy", {}).get("dev", {})})
    curves = {length: curve(rows, "accuracy", "dev", length) for length in lengths}
    steps = [step for step, _ in next(iter(curves.values()), [])]
    return {"steps": steps, **{length: [values for _, values in points] for length, points in curves.items()}}


def sum_up(rows: Sequence[Row], name: str) -> dict[str, list[Any]]:
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
