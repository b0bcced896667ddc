"""Training and evaluation from Python: `vbsix.train`, `vbsix.resume` and `vbsix.evaluate`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import count
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from vbsix.config import presets
from vbsix.config.schema import Config, changes, override
from vbsix.config.toml import read_toml
from vbsix.data.dataset import SYNTHETIC, Dataset
from vbsix.data.words import Words
from vbsix.domains.base import Domain
from vbsix.domains.python import PythonDomain
from vbsix.domains.registry import import_domain
from vbsix.evaluation.accuracy import Accuracies, Predicted
from vbsix.evaluation.report import Report, report
from vbsix.evaluation.spurious import Shares, predict_longest, spurious_shares
from vbsix.parsing.evaluation import predict_rows, read_split
from vbsix.parsing.loading import load, load_all
from vbsix.parsing.parser import Parser
from vbsix.runs.display import create_display, stop_on_interrupt
from vbsix.runs.folder import Run, create_run, domain_of, open_run, read_dataset, resume_command, save_result
from vbsix.runs.loop import Interrupted, Observer, Trained
from vbsix.runs.loop import train as train_loop
from vbsix.runs.metrics import Row, read_metrics
from vbsix.utilities.errors import VbsixError
from vbsix.utilities.jax_settings import prepare_jax


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


def train(
    domain: Any = "tangrams",
    data: str | Path = SYNTHETIC,
    *,
    method: str | None = None,
    recipe: str | None = None,
    variant: str | None = None,
    seeds: int | Sequence[int] = 1,
    out: str | Path | None = None,
    config: str | Path | None = None,
    words: Words | None = None,
    callback: Callback | None = None,
    progress: bool = True,
    **settings: Any,
) -> TrainedRun:
    """Trains a parser.

    Args:
        domain: a domain, its name (`module:Class` for one of your own), or a class that `PythonDomain` takes.
        data: a folder with SCONE's files, a file of JSON lines (`*.jsonl`), or `synthetic`, the embedded corpus.
        method: `vbsix`, `mml`, `execution-only`, `value-only`, `expert-mml` or `reinforce`.
        recipe: `stochastic` (ours, the default) or `published`.
        variant: named changes, joined by `+`; see `vbsix.config.presets.VARIANTS`.
        seeds: how many seeds train side by side, or which ones.
        out: the run's folder; by default a new one in `runs/`.
        config: a TOML file with settings.
        words: a vocabulary of your own, such as `UtteranceVectors`.
        callback: called with every row of metrics and every evaluation.
        progress: show the progress.
        settings: any setting, as `search__beam=64` or `**{"search.beam": 64}`.

    Raises:
        Interrupted: the run was stopped by Ctrl-C or by the callback; `vbsix.resume` continues it.
    """
    prepare_jax()
    language = _as_domain(domain)
    source = str(data) if str(data) == SYNTHETIC else str(Path(data).resolve())
    given = {name.replace("__", "."): value for name, value in settings.items()}
    chosen = choose_config(language.name, source, method, recipe, variant, Path(config) if config else None, given)
    folder = Path(out) if out else new_folder(f"{chosen.domain}-{chosen.name}")
    numbers = tuple(range(seeds)) if isinstance(seeds, int) else tuple(seeds)
    if not numbers:
        raise VbsixError("seeds: expected at least one seed.")
    run = Run(folder, chosen, numbers, source)
    return _finish(run, create_run(run, language, words), words, callback, progress)


def resume(
    folder: str | Path,
    *,
    domain: Any = None,
    words: Words | None = None,
    callback: Callback | None = None,
    progress: bool = True,
) -> TrainedRun:
    """Continues a run that was stopped or killed; arguments are those of `train`."""
    prepare_jax()
    run = open_run(Path(folder))
    given = None if domain is None else _as_domain(domain)
    language = domain_of(run.config, run.folder, given, run.observation_spec)
    return _finish(run, read_dataset(run, language, words), words, callback, progress)


def evaluate(
    model: str | Path | TrainedRun | Parser,
    data: str | Path | None = None,
    split: str = "dev",
    *,
    best: bool = False,
    ensemble: bool = False,
    domain: Any = None,
) -> Report:
    """The accuracy of each seed after 1, 2, ... utterances, with intervals, spurious shares and calibration.

    Args:
        model: a run, a folder of one, an exported model, or a parser.
        data: a folder with SCONE's files, or a file of JSON lines, all of which is taken; None for the run's own data.
        split: `dev`, `test`, `train` or `train-orig`; on the embedded corpus, `dev` or `held-out`.
        best: each seed at the step at which it was best on dev, instead of at its newest checkpoint.
        ensemble: all seeds as one parser.
        domain: the language, for a domain of your own.
    """
    prepare_jax()
    if isinstance(model, Parser):
        if data is None:
            raise VbsixError("a parser does not know its data: give `data`.")
        parsers, own = [model], False
    else:
        given = None if domain is None else _as_domain(domain)
        path, language = (model.folder, model.domain) if isinstance(model, TrainedRun) else (Path(model), given)
        parsers = [load(path, best=best, ensemble=True, domain=language)] if ensemble else []
        parsers = parsers or load_all(path, best=best, domain=language)
        own, data = data is None, data or run_source(path)
    rows = read_split(parsers[0].domain, parsers[0].config, str(data), split, own=own)
    return report([predict_rows(parser, rows) for parser in parsers])


def choose_config(
    domain: str | None,
    source: str,
    method: str | None,
    recipe: str | None,
    variant: str | None,
    file: Path | None,
    settings: Mapping[str, Any],
) -> Config:
    """The settings of a new run: a preset, changed by a file, changed by what is given besides.

    A file counts by its changes from the preset that it names, so that another method can be given with it.
    """
    kind = presets.data_kind(source)
    given = read_toml(file) if file else {}
    named = {name: given.get(name) for name in ("domain", "method", "recipe", "variant")}
    for name, value in {"domain": domain, "method": method, "recipe": recipe, "variant": variant}.items():
        named[name] = value if value is not None else settings.get(name, named[name])
    language = named["domain"] or Config().domain

    def make(names: Mapping[str, Any]) -> Config:
        chosen_recipe = names.get("recipe") or presets.DEFAULT_RECIPE
        return presets.preset(language, names.get("method"), chosen_recipe, names.get("variant") or "", data=kind)

    if given:
        base = make(given)
        given = {name: value for name, value in changes(base, override(base, given)).items() if name not in named}
    own = {name: value for name, value in settings.items() if name not in named}
    chosen = override(make(named), {**given, **own})
    if chosen.training.critic and chosen.training.objective in ("reinforce", "expert-mml"):
        raise VbsixError(f"training.critic: the objective {chosen.training.objective} does not train a critic.")
    return chosen


def _as_domain(domain: Any) -> Domain:
    if isinstance(domain, str):
        return import_domain(domain)
    if isinstance(domain, type) and issubclass(domain, Domain):
        return domain()
    return domain if isinstance(domain, Domain) else PythonDomain(domain)


def new_folder(name: str) -> Path:
    """The first of `runs/NAME-1`, `runs/NAME-2` and so on that is not there yet."""
    return next(folder for number in count(1) if not (folder := Path("runs", f"{name}-{number}")).exists())


def run_source(path: Path) -> str:
    """Where a run's data comes from."""
    if not path.is_dir():
        raise VbsixError(f"{path}: a model does not know where its data is; give the data.")
    return open_run(path).source


class Measured(NamedTuple):
    """What is measured at the end of a run."""

    predictions: dict[str, Predicted]
    """For the longest examples of each split."""
    spurious: dict[str, Shares]
    result: dict[str, Any]
    """What `result.json` holds."""


def train_to_end(run: Run, dataset: Dataset, observer: Observer) -> Trained:
    """Trains a run to its last step; a wish to stop that comes with that step counts too."""
    trained = train_loop(run, dataset, observer)
    if observer.wants_to_stop():
        raise Interrupted(f"Stopped before the result was measured. Continue with: {resume_command(run)}")
    return trained


def measure_run(run: Run, dataset: Dataset, trained: Trained) -> Measured:
    """Measures a run that has ended, and writes its result."""
    networks = trained.learners.networks
    predictions = predict_longest(dataset, networks, run.config)
    spurious = spurious_shares(dataset, networks, run.config, predictions)
    result = save_result(run, trained.accuracies, trained.best, trained.seconds, spurious)
    return Measured(predictions, spurious, result)


def _finish(run: Run, dataset: Dataset, words: Words | None, callback: Callback | None, progress: bool) -> TrainedRun:
    display = create_display(run, quiet=not progress)
    observer = _Calling(display, callback, run.config.training.steps) if callback else display
    with stop_on_interrupt(display), display:
        trained = train_loop(run, dataset, observer)
    return TrainedRun(run.folder, run.config, measure_run(run, dataset, trained).result, dataset.domain, words)


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
