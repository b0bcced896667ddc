"""Training and evaluation from Python: `vbsix.train`, `vbsix.sweep`, `vbsix.resume` and `vbsix.evaluate`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np

from vbsix.cluster.connection import LOCAL, Cluster, choose_cluster, connected
from vbsix.cluster.sweep import require_trainable, train_sweep_on
from vbsix.config import presets
from vbsix.config.schema import Config, changes, override, require_sense
from vbsix.config.toml import read_stages, read_toml
from vbsix.data.config import VOCABULARY
from vbsix.data.dataset import SYNTHETIC, Dataset
from vbsix.data.json_lines import choose_settings
from vbsix.data.words import UtteranceVectors, Words, vector_size
from vbsix.domains.base import Domain
from vbsix.domains.registry import as_domain
from vbsix.evaluation.accuracy import Accuracies
from vbsix.evaluation.report import Report, report
from vbsix.parsing.continuing import Source, open_source
from vbsix.parsing.evaluation import predict_rows, read_split
from vbsix.parsing.loading import load, load_all
from vbsix.parsing.parser import Parser
from vbsix.runs.display import create_display, stop_on_interrupt
from vbsix.runs.finish import measure_run, train_to_end
from vbsix.runs.folder import Run, Start, create_run, is_staged, is_teaching, open_run, reopen_run
from vbsix.runs.loop import Observer
from vbsix.runs.metrics import Row, read_metrics
from vbsix.runs.stages import create_stages, plan_stages, train_stages
from vbsix.runs.sweep import (
    Sweep,
    create_sweep,
    is_same_run,
    is_sweep,
    mean_over_folds,
    open_sweep,
    plan_sweep,
    train_sweep,
)
from vbsix.runs.teachers import find_teachers
from vbsix.runs.teaching import FOLDS, create_teaching, plan_teaching, train_teaching
from vbsix.utilities.errors import VbsixError
from vbsix.utilities.files import read_json
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

    def __repr__(self) -> str:
        config = self.config
        return f"<run of {config.domain}: {presets.full_name(config)}, {config.training.steps} steps, in {self.folder}>"

    def _repr_html_(self) -> str:
        from vbsix.show.notebook import run_html

        return run_html(self.folder, self.config, self.result, self.metrics)

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
    data: str | Path | None = None,
    *,
    method: str | None = None,
    recipe: str | None = None,
    variant: str | None = None,
    seeds: int | Sequence[int] = 1,
    out: str | Path | None = None,
    config: str | Path | None = None,
    start: str | Path | None = None,
    stages: str | Path | Sequence[Mapping[str, Any]] | None = None,
    teachers: str | Path | None = None,
    folds: int | None = None,
    rounds: int | None = None,
    words: Words | None = None,
    callback: Callback | None = None,
    progress: bool = True,
    **settings: Any,
) -> TrainedRun:
    """Trains a parser.

    Args:
        domain: a domain, its name (`module:Class` for one of your own), or a class that `PythonDomain` takes.
        data: a folder with SCONE's files, a file of JSON lines (`*.jsonl`), or `synthetic`, the built-in corpus. None
            for the data of the run that is continued, or else the built-in corpus.
        method: `vbsix`, `mml`, `execution-only`, `value-only`, `expert-mml` or `reinforce`.
        recipe: `stochastic` (ours, the default) or `published`.
        variant: named changes, joined by `+`; see `vbsix.config.presets.VARIANTS`.
        seeds: how many seeds train side by side, or which ones.
        out: the run's folder; by default a new one in `runs/`.
        config: a TOML file with settings.
        start: a trained policy to continue: a run's folder, an exported model, or the name of a model that comes with
            vbsix. Method, recipe, variant and settings are its own, unless settings are given.
        stages: settings of stages, each of which continues the one before; or a TOML file of them; or the name of a
            schedule, such as `context`; see `vbsix.config.presets.STAGES`.
        teachers: trained policies to learn from: a run's folder, or that of a sweep over folds, whose runs teach the
            rows that they have not seen.
        folds: with `rounds`, into how many folds the rows are divided; 5 by default.
        rounds: teach across folds: train without each fold this many times, then a student on all rows.
        words: a vocabulary of your own, such as `UtteranceVectors`.
        callback: called with every row of metrics and every evaluation; with `rounds`, those of the student.
        progress: show the progress.
        settings: any setting, as `search__beam=64` or `**{"search.beam": 64}`.

    Raises:
        Interrupted: the run was stopped by Ctrl-C or by the callback; `vbsix.resume` continues it.
    """
    prepare_jax()
    language = as_domain(domain)
    source = None if start is None else open_source(start, language)
    data = data or (SYNTHETIC if source is None else source.data)
    if data is None:
        raise VbsixError(f"{start}: a model does not know where its data is; give the data.")
    run = _plan(language, data, (method, recipe, variant), seeds, out, config, settings, source)
    if rounds is not None and (start is not None or teachers is not None):
        raise VbsixError("rounds: teachers begin from scratch; leave out start and teachers.")
    if rounds is None and folds is not None:
        raise VbsixError("folds: give rounds, too; for cross-validation alone, call vbsix.sweep.")
    known, begin = (words, None) if source is None else (words or source.words, source.start)
    folds = FOLDS if folds is None else folds
    begun = begin_training(run, language, known, begin, stages=stages, teachers=teachers, folds=folds, rounds=rounds)
    if begun is not None:
        return _finish(*begun, words, callback, progress)
    finish = _finish_teaching if rounds is not None else _finish_stages
    return finish(run.folder, language, words, callback, progress)


def begin_training(
    run: Run,
    language: Domain | None,
    words: Words | None,
    start: Start | None,
    *,
    stages: str | Path | Sequence[Mapping[str, Any]] | None,
    teachers: str | Path | None,
    folds: int,
    rounds: int | None,
) -> tuple[Run, Dataset] | None:
    """Makes the folder of a new run, of its stages, or of its teachers and students; see `train`.

    Returns:
        The run and its data, or None where it has stages or rounds.
    """
    if rounds is not None:
        schedule = choose_stages(stages) if stages is not None else [{}]
        names = run.folder, run.config, schedule, run.seeds, run.source
        create_teaching(plan_teaching(*names, folds=folds, rounds=rounds), language, words)
        return None
    if teachers is not None:
        taught_by, own = find_teachers(Path(teachers), run.config, run.source)
        run, words = replace(run, teachers=taught_by), words or own
    if stages is None:
        return run, create_run(run, language, words, start=start)
    planned = plan_stages(run.folder, run.config, choose_stages(stages), run.seeds, run.source, run.teachers)
    create_stages(run.folder, planned, language, words, start)
    return None


def _plan(
    language: Domain,
    data: str | Path,
    names: tuple[str | None, str | None, str | None],
    seeds: int | Sequence[int],
    out: str | Path | None,
    config: str | Path | None,
    settings: Mapping[str, Any],
    continued: Source | None = None,
) -> Run:
    """The run that the arguments of `train` describe; `continued` is what it continues."""
    source = str(data) if str(data) == SYNTHETIC else str(Path(data).resolve())
    given = {name.replace("__", "."): value for name, value in settings.items()}
    file = Path(config) if config else None
    if continued is None:
        chosen = choose_config(language.name, source, *names, file, given)
    elif any(names):
        raise VbsixError("start: method, recipe and variant are those of the policy; change settings instead.")
    else:
        chosen = continue_config(continued, file, given, language.name)
    numbers = tuple(range(seeds)) if isinstance(seeds, int) else tuple(seeds)
    if not numbers:
        raise VbsixError("seeds: expected at least one seed.")
    return Run(Path(out) if out else new_folder(chosen), chosen, numbers, source)


@dataclass(frozen=True, eq=False)
class TrainedSweep:
    """A sweep that has ended.

    Attributes:
        folder: where everything is; each run has a folder of its own inside.
        runs: the runs that ended well, by their names, such as `learning_rate=0.001,fold=2`.
        failed: why the others failed.
        mean_over_folds: with cross-validation, accuracies after the last step, by split, number of utterances and seed.
            Each is the mean over folds, each of which counts the same.
    """

    folder: Path
    runs: Mapping[str, TrainedRun]
    failed: Mapping[str, VbsixError]
    mean_over_folds: Mapping[str, Accuracies]

    @cached_property
    def ensemble(self) -> Parser:
        """All seeds of all runs, each at its best step, as one parser."""
        first = next(iter(self.runs.values()))
        return load(self.folder, best=True, ensemble=True, domain=first.domain, words=first.words)


def sweep(
    domain: Any = "tangrams",
    data: str | Path = SYNTHETIC,
    *,
    vary: Mapping[str, Any] | None = None,
    folds: int = 0,
    method: str | None = None,
    recipe: str | None = None,
    variant: str | None = None,
    seeds: int | Sequence[int] = 1,
    out: str | Path | None = None,
    config: str | Path | None = None,
    words: Words | None = None,
    progress: bool = True,
    engine: str = LOCAL,
    address: str | None = None,
    cpus: int | None = None,
    gpus: float | None = None,
    storage: str | None = None,
    **settings: Any,
) -> TrainedSweep:
    """Trains a run for each combination of values; runs that share compiled code are trained side by side.

    A sweep that was stopped continues with the same call, if `out` is given, or with `resume`.

    Args:
        domain: see `train`, as for all arguments that are not listed here.
        data: the examples.
        vary: the values of each setting that varies, as in `{"training.learning_rate": [0.001, 0.0003]}`.
        folds: cross-validation: how many folds the rows have; each run is evaluated on one that it leaves out.
        method: the method.
        recipe: the recipe.
        variant: named changes.
        seeds: how many seeds each run has, or which ones.
        out: the sweep's folder.
        config: a TOML file with settings.
        words: a vocabulary of your own.
        progress: show the progress.
        engine: `local`, or `ray` for a Ray cluster: each group of runs that share compiled code is a task.
        address: of the cluster; None for RAY_ADDRESS, or else Ray on this machine.
        cpus: the cores of a task; 1 by default.
        gpus: the GPUs of a task, such as 0.5; 0 by default.
        storage: a URL where tasks keep their runs, for nodes that do not share `out`.
        settings: any setting.
    """
    prepare_jax()
    cluster = choose_cluster(engine, address, cpus, gpus, Path(out) if out else None, storage=storage)
    language = as_domain(domain)
    settings |= {"data.folds": folds} if folds else {}
    base = _plan(language, data, (method, recipe, variant), seeds, out, config, settings)
    values = dict(vary or {}) | ({"data.fold": range(folds)} if folds else {})
    planned = plan_sweep(base.folder, base.config, values, base.seeds, base.source)
    if cluster:
        if isinstance(words, UtteranceVectors):
            raise VbsixError("words: vectors of utterances cannot be sent to tasks; leave out engine.")
        require_trainable(cluster, planned)
    with connected(cluster):
        if not is_sweep(planned.folder):
            create_sweep(planned, language, words)
        elif not _is_same(open_sweep(planned.folder), planned):
            raise VbsixError(f"{planned.folder}: holds another sweep; give another folder.")
        return _finish_sweep(planned, language, words, progress, cluster)


def _is_same(found: Sweep, planned: Sweep) -> bool:
    return len(found.runs) == len(planned.runs) and all(map(is_same_run, found.runs, planned.runs))


def _finish_sweep(
    planned: Sweep, language: Domain | None, words: Words | None, progress: bool, cluster: Cluster | None = None
) -> TrainedSweep:
    if cluster:
        failed = train_sweep_on(cluster, planned, quiet=not progress)
    else:
        failed = train_sweep(planned, lambda runs, _: _watch(runs, None, progress), language, words)
    domain = language or as_domain(planned.runs[0].config.domain)
    trained = {
        run.folder.name: TrainedRun(run.folder, run.config, read_json(run.folder / "result.json"), domain, words)
        for run in planned.runs
        if run.folder not in failed
    }
    means = mean_over_folds(planned, {run.folder: run.accuracy for run in trained.values()})
    return TrainedSweep(planned.folder, trained, {folder.name: error for folder, error in failed.items()}, means)


def resume(
    folder: str | Path,
    *,
    steps: int | None = None,
    domain: Any = None,
    words: Words | None = None,
    callback: Callback | None = None,
    progress: bool = True,
) -> TrainedRun | TrainedSweep:
    """Continues a run, stages, a teaching or a sweep that was stopped or killed; other arguments are those of `train`.

    With `steps`, a run is trained further than it was begun with. A sweep has neither steps nor a callback.
    """
    prepare_jax()
    if is_sweep(Path(folder)):
        if steps is not None:
            raise VbsixError("steps: a sweep cannot be trained further.")
        return _finish_sweep(open_sweep(Path(folder)), None if domain is None else as_domain(domain), words, progress)
    if is_staged(Path(folder)) or is_teaching(Path(folder)):
        if steps is not None:
            raise VbsixError("steps: stages cannot be trained further.")
        language = None if domain is None else as_domain(domain)
        finish = _finish_stages if is_staged(Path(folder)) else _finish_teaching
        return finish(Path(folder), language, words, callback, progress)
    return _finish(*reopen_run(Path(folder), domain, words, steps), words, callback, progress)


def evaluate(
    model: str | Path | TrainedRun | Parser,
    data: str | Path | None = None,
    split: str = "dev",
    *,
    best: bool = False,
    ensemble: bool = False,
    domain: Any = None,
    words: Words | None = None,
) -> Report:
    """The accuracy of each seed after 1, 2, ... utterances, with intervals, spurious shares and calibration.

    Args:
        model: a run, a folder of one, an exported model, or a parser.
        data: a folder with SCONE's files, or a file of JSON lines, all of which is taken; None for the run's own data.
        split: `dev`, `test`, `train` or `train-orig`; on the built-in corpus, `dev` or `held-out`.
        best: each seed at the step at which it was best on dev, instead of at its newest checkpoint.
        ensemble: all seeds as one parser.
        domain: the language, for a domain of your own.
        words: another vocabulary than the run's, with vectors of the same kind.
    """
    prepare_jax()
    if isinstance(model, Parser):
        if data is None:
            raise VbsixError("a parser does not know its data: give `data`.")
        parsers, own = [model], False
    else:
        path, language = (model.folder, model.domain) if isinstance(model, TrainedRun) else (Path(model), domain)
        if isinstance(model, TrainedRun):
            words = words or model.words
        if ensemble:
            parsers = [load(path, best=best, ensemble=True, domain=language, words=words)]
        else:
            parsers = load_all(path, best=best, domain=language, words=words)
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

    With JSON lines, some of the preset's settings come from the data.

    A file counts by its changes from the preset that it names, so that another method can be given with it.
    """
    kind = presets.data_kind(source)
    given = read_toml(file) if file else {}
    named = {name: given.get(name) for name in ("domain", "method", "recipe", "variant")}
    for name, value in {"domain": domain, "method": method, "recipe": recipe, "variant": variant}.items():
        named[name] = value if value is not None else settings.get(name, named[name])

    def make(names: Mapping[str, Any]) -> Config:
        chosen_recipe = names.get("recipe") or presets.DEFAULT_RECIPE
        name = named["domain"] or Config().domain
        return presets.preset(name, names.get("method"), chosen_recipe, names.get("variant") or "", data=kind)

    preset = make(named)
    if kind == "json-lines":
        steps = settings.get("training.steps", given.get("training.steps", preset.training.steps))
        chosen = choose_settings(Path(source), steps) if isinstance(steps, int) else {}
        preset = override(preset, {name: value for name, value in chosen.items() if name not in given})
    if given:
        base = make(given)
        given = {name: value for name, value in changes(base, override(base, given)).items() if name not in named}
    own = {name: value for name, value in settings.items() if name not in named}
    if own.get("data.vectors") and "network.word" not in {**given, **own}:
        own["network.word"] = vector_size(Path(own["data.vectors"])) or preset.network.word
    return require_sense(override(preset, {**given, **own, **_resolved(own)}))


def _resolved(settings: Mapping[str, Any]) -> dict[str, str]:
    """The files among the settings as absolute paths: the run may be resumed from another folder."""
    files = {name: settings.get(name) for name in ("data.dev_file", "data.vectors")}
    return {name: str(Path(file).resolve()) for name, file in files.items() if file}


def continue_config(
    source: Source, file: Path | None, settings: Mapping[str, Any], domain: str | None = None
) -> Config:
    """The settings of a run that continues a trained policy: those of the policy, changed by a file and by others.

    A model comes without word vectors, so `data.vectors` may name the file of those that it was trained with.
    """
    trained, fixed = source.config, VOCABULARY if source.words else [one for one in VOCABULARY if one != "data.vectors"]
    given = {**(read_toml(file) if file else {}), **settings}
    given = {name: value for name, value in given.items() if name not in ("method", "recipe", "variant")}
    given |= _resolved(given)
    if (wanted := domain or given.get("domain", trained.domain)) != trained.domain:
        raise VbsixError(f"the policy was trained for {trained.domain}, not for {wanted}.")
    config = require_sense(override(trained, given))
    if changed := next((name for name in fixed if name in changes(trained, config)), None):
        raise VbsixError(f"{changed}: a run that continues a policy has the policy's vocabulary.")
    return config


def choose_stages(stages: str | Path | Sequence[Mapping[str, Any]]) -> Sequence[Mapping[str, Any]]:
    """The settings of each stage: given, in a TOML file, or of a schedule that is known by its name."""
    if not isinstance(stages, str | Path):
        return stages
    is_file = str(stages) not in presets.STAGES and (Path(stages).exists() or Path(stages).suffix)
    return read_stages(Path(stages)) if is_file else presets.find_stages(str(stages))


def new_folder(config: Config) -> Path:
    """The first of `runs/NAME-1`, `runs/NAME-2` and so on that is not there yet."""
    name = f"{config.domain}-{config.name}"
    return next(folder for number in count(1) if not (folder := Path("runs", f"{name}-{number}")).exists())


def run_source(path: Path) -> str:
    """Where a run's data comes from."""
    if not path.is_dir():
        raise VbsixError(f"{path}: a model does not know where its data is; give the data.")
    return (open_sweep(path).runs[0] if is_sweep(path) else open_run(path)).source


def _finish(run: Run, dataset: Dataset, words: Words | None, callback: Callback | None, progress: bool) -> TrainedRun:
    with _watch([run], callback, progress) as observer:
        trained = train_to_end(run, dataset, observer)
    return TrainedRun(run.folder, run.config, measure_run(run, dataset, trained).result, dataset.domain, words)


def _finish_stages(
    folder: Path, language: Domain | None, words: Words | None, callback: Callback | None, progress: bool
) -> TrainedRun:
    """The last stage, trained to its end."""
    ended = train_stages(folder, lambda run, *_: _watch([run], callback, progress), language, words)
    return TrainedRun(ended.run.folder, ended.run.config, ended.measured.result, ended.dataset.domain, words)


def _finish_teaching(
    folder: Path, language: Domain | None, words: Words | None, callback: Callback | None, progress: bool
) -> TrainedRun:
    """The student's last stage, trained to its end."""
    ended = train_teaching(
        folder,
        lambda runs, _: _watch(runs, None, progress),
        lambda run, *_: _watch([run], callback, progress),
        language,
        words,
    )
    return TrainedRun(ended.run.folder, ended.run.config, ended.measured.result, ended.dataset.domain, words)


@contextmanager
def _watch(runs: Sequence[Run], callback: Callback | None, progress: bool) -> Iterator[Observer]:
    display = create_display(runs, quiet=not progress)
    with stop_on_interrupt(display), display:
        yield _Calling(display, callback, runs[0].config.training.steps) if callback else display


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
