"""A sweep: runs that differ in some settings. Those that share a program are trained side by side.

Each run has a folder of its own inside the sweep's, as if it had been trained alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from statistics import mean
from typing import Any, NamedTuple

from vbsix import __version__
from vbsix.config.schema import Config, require_sense, to_settings
from vbsix.config.variation import combinations, describe, group_by_program
from vbsix.data.dataset import Dataset
from vbsix.data.words import Words
from vbsix.domains.base import Domain
from vbsix.evaluation.accuracy import Accuracies
from vbsix.runs.checkpoints import checkpoint_steps
from vbsix.runs.finish import measure_run
from vbsix.runs.folder import (
    STUDENT,
    SWEEP_FILE,
    Run,
    Start,
    create_run,
    is_staged,
    is_teaching,
    open_run,
    open_words,
    read_dataset,
    read_failure,
    require_unused,
    resume_command,
    warn_about_run,
)
from vbsix.runs.group import Trial, try_program
from vbsix.runs.identity import domain_of
from vbsix.runs.loop import Interrupted, Observer, train_together
from vbsix.runs.stages import open_stages
from vbsix.utilities.errors import VbsixError
from vbsix.utilities.files import read_json, write_json

Values = Mapping[str, Any]
"""A list of values for each setting that varies."""
FOLD_SETTING = "data.fold"
Observe = Callable[[Sequence[Run], str], AbstractContextManager[Observer]]
"""Opens a display of runs, given the runs and a title."""


@dataclass(frozen=True)
class Sweep:
    """The runs of a sweep, and where they are."""

    folder: Path
    runs: tuple[Run, ...]
    values: Values
    """The value of each setting that varies, in each run."""

    @property
    def good(self) -> list[Run]:
        """The runs that have not failed."""
        return [run for run in self.runs if run.folder not in self.failed]

    @property
    def failed(self) -> dict[Path, VbsixError]:
        """Why the other runs failed, by their folders."""
        return {run.folder: error for run in self.runs if (error := read_failure(run))}

    @property
    def groups(self) -> list[list[Run]]:
        """The runs that share a program."""
        by_config = {run.config: run for run in self.runs}
        return [[by_config[config] for config in group] for group in group_by_program(list(by_config))]


def plan_sweep(
    folder: Path,
    config: Config,
    values: Values,
    seeds: Sequence[int],
    source: str,
    inferred: Path | None = None,
) -> Sweep:
    """A sweep over all combinations of values. Nothing is written."""
    listed: dict[str, list[Any]] = {}
    for name, given in values.items():
        if isinstance(given, str) or not isinstance(given, Iterable) or not (chosen := list(given)):
            raise VbsixError(f"{name}: give a list of at least one value, not {given!r}.")
        listed[name] = chosen
    configs = [require_sense(one) for one in combinations(config, listed)]
    names = [describe(one, listed) for one in configs]
    if len(set(names)) < len(names):
        raise VbsixError("a combination of values occurs twice; give each value once.")
    runs = [
        Run(folder / name, one, tuple(seeds), source, inferred=inferred)
        for name, one in zip(names, configs, strict=True)
    ]
    return Sweep(folder, tuple(runs), {name: [to_settings(one)[name] for one in configs] for name in listed})


def create_sweep(
    sweep: Sweep, domain: Domain | None = None, words: Words | None = None, start: Start | None = None
) -> None:
    """Makes the folder of a new sweep, and those of its runs."""
    if not sweep.values:
        raise VbsixError("nothing varies: give values, or folds.")
    require_unused(sweep.folder)
    datasets = _Datasets(domain, words)
    read = [datasets.read(run) for run in sweep.runs]  # before anything is written
    warn_about_run(sweep.runs[0], read[0])
    for run, dataset in zip(sweep.runs, read, strict=True):
        begun = (run.folder / "run.json").exists() and open_run(run.folder)  # by a call that was killed
        if not begun or not is_same_run(begun, run):
            create_run(run, domain, words, dataset, start)
    names = [run.folder.name for run in sweep.runs]
    write_json(sweep.folder / SWEEP_FILE, {"vbsix": __version__, "values": sweep.values, "runs": names})


def is_same_run(begun: Run, run: Run) -> bool:
    """Whether a run that was begun is the one that is planned."""
    there, here = ((one.config, one.seeds, one.source, one.inferred is None) for one in (begun, run))
    return there == here


def is_sweep(folder: Path) -> bool:
    """Whether a folder holds a sweep."""
    return (folder / SWEEP_FILE).exists()


def open_sweep(folder: Path) -> Sweep:
    """The sweep of a folder."""
    file = folder / SWEEP_FILE
    description = read_json(file)
    try:
        names, values = list(map(str, description["runs"])), dict(description["values"])
    except (KeyError, TypeError, ValueError) as error:
        raise VbsixError(f"{file}: not the description of a sweep: {error!r}.") from error
    if any(Path(name).name != name for name in names):
        raise VbsixError(f"{file}: damaged: a run lies outside of the folder.")
    return Sweep(folder, tuple(open_run(folder / name) for name in names), values)


def runs_of(folder: Path) -> list[Path]:
    """The folders of a sweep's runs that have not failed, or of the stages that have begun; of a run, its own.

    Of a teaching, those of the student.
    """
    folder = folder / STUDENT if is_teaching(folder) else folder
    if is_staged(folder):
        return [run.folder for run in open_stages(folder) if (run.folder / "run.json").exists()]
    return [run.folder for run in open_sweep(folder).good] if is_sweep(folder) else [folder]


def mean_over_folds(sweep: Sweep, accuracies: Mapping[Path, Accuracies]) -> dict[str, Accuracies]:
    """Cross-validation: the accuracies of each seed, averaged over the folds. Each fold counts the same.

    Args:
        sweep: the sweep.
        accuracies: of the runs that have ended, by their folders.

    Returns:
        By name, such as `learning_rate=0.001, mean over folds`. Runs of which a fold is missing have no mean.
    """
    others = [name for name in sweep.values if name != FOLD_SETTING]
    by_name: dict[str, list[Run]] = {}
    for run in sweep.runs:
        label = ", ".join(filter(None, (describe(run.config, others), "mean over folds")))
        by_name.setdefault(label, []).append(run)

    def is_complete(runs: Sequence[Run]) -> bool:
        folds = {run.config.data.fold for run in runs}
        ended = all(run.folder in accuracies for run in runs)
        return ended and len(runs) > 1 and folds == set(range(runs[0].config.data.folds))

    return {
        name: _mean([accuracies[run.folder] for run in runs]) for name, runs in by_name.items() if is_complete(runs)
    }


def _mean(accuracies: Sequence[Accuracies]) -> Accuracies:
    """The mean of each seed; of the splits and lengths that all have."""
    return {
        split: {
            length: [mean(shares) for shares in zip(*(own[split][length] for own in accuracies), strict=True)]
            for length in by_length
            if all(length in own.get(split, {}) for own in accuracies)
        }
        for split, by_length in accuracies[0].items()
    }


def train_sweep(
    sweep: Sweep, observe: Observe, domain: Domain | None = None, words: Words | None = None
) -> dict[Path, VbsixError]:
    """Trains all runs of a sweep to their ends, one program after the other.

    Runs that have a result, or have failed, are left alone.

    Args:
        sweep: the sweep, whose folders exist.
        observe: opens a display of runs, given the runs and a title.
        domain: the language; None for the one of that name.
        words: a vocabulary of one's own.

    Returns:
        Why runs failed, by their folders.

    Raises:
        Interrupted: an observer wanted to stop; `train_sweep` continues the sweep.
    """
    datasets = _Datasets(domain, words)
    for number in range(1, len(sweep.groups) + 1):
        _train_group(sweep, number, observe, datasets)
    return sweep.failed


def train_group(sweep: Sweep, number: int, observe: Observe, domain: Domain | None = None) -> None:
    """Trains the runs of one group, counted from 1, as `train_sweep` does."""
    _train_group(sweep, number, observe, _Datasets(domain, None))


def _train_group(sweep: Sweep, number: int, observe: Observe, datasets: _Datasets) -> None:
    groups = sweep.groups
    for runs in _at_one_step(waiting_runs(groups[number - 1])):
        own = [datasets.read(run) for run in runs]
        with observe(runs, f"group {number} of {len(groups)}") as observer:
            outcomes = train_together(runs, own, observer)
        for run, dataset, outcome in zip(runs, own, outcomes, strict=True):
            if isinstance(outcome, VbsixError):  # it is noted in the run's folder
                continue
            if observer.wants_to_stop():
                again = resume_command(run)
                raise Interrupted(f"Stopped before all results were measured. Continue with: {again}")
            measure_run(run, dataset, outcome)


def waiting_runs(group: Sequence[Run]) -> list[Run]:
    """The runs that have neither a result nor failed."""
    return [run for run in group if not (run.folder / "result.json").exists() and read_failure(run) is None]


def _at_one_step(runs: Sequence[Run]) -> list[list[Run]]:
    """The runs that can be continued together: all, or, if some have been continued alone, those of the same step."""
    steps = [checkpoint_steps(run.checkpoints) for run in runs]
    if not any(steps) or set.intersection(*steps):
        return [list(runs)] if runs else []
    by_step: dict[int, list[Run]] = {}
    for run, own in zip(runs, steps, strict=True):
        by_step.setdefault(max(own, default=0), []).append(run)
    return list(by_step.values())


class Program(NamedTuple):
    """A group of runs, and what its program needs."""

    runs: list[Run]
    trial: Trial


def try_sweep(sweep: Sweep, domain: Domain | None = None, words: Words | None = None) -> Iterator[Program]:
    """Compiles each program of a sweep and times a few of its steps. Nothing is written."""
    datasets = _Datasets(domain, words)
    for group in sweep.groups:
        yield Program(group, try_program(group, [datasets.read(run) for run in group]))


class _Datasets:
    """The data of runs; runs with the same data share one dataset."""

    def __init__(self, domain: Domain | None, words: Words | None):
        self.domain, self.words = domain, words
        self.read_so_far: dict[Any, Dataset] = {}

    def read(self, run: Run) -> Dataset:
        network, curriculum = run.config.network, bool(run.config.training.curriculum_steps)
        seen = bool(network.context), run.config.search.skip_no_ops
        key = run.config.data, network.word, seen, curriculum, run.inferred
        if key not in self.read_so_far:
            saved = (run.folder / "words.safetensors").exists()
            words = self.words or (open_words(run.folder) if saved else None)
            domain = domain_of(run.config, run.folder, self.domain, run.identity)
            self.read_so_far[key] = read_dataset(run, domain, words)
        return self.read_so_far[key]


def run_source(path: Path) -> str:
    """Where a run's data comes from."""
    if not path.is_dir():
        raise VbsixError(f"{path}: a model does not know where its data is; give the data.")
    return (open_sweep(path).runs[0] if is_sweep(path) else open_run(path)).source
