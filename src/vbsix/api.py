"""Training and evaluation from Python: `vbsix.train`, `vbsix.sweep`, `vbsix.resume` and `vbsix.evaluate`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from vbsix.cluster.connection import LOCAL, Cluster, choose_cluster, connected
from vbsix.cluster.sweep import require_trainable, train_sweep_on
from vbsix.config.choosing import choose_config, continue_config
from vbsix.data.dataset import SYNTHETIC, Dataset
from vbsix.data.words import UtteranceVectors, Words
from vbsix.domains.base import Domain
from vbsix.domains.registry import as_domain
from vbsix.evaluation.report import Report, report
from vbsix.parsing.continuing import Source, open_source
from vbsix.parsing.evaluation import predict_rows, read_split
from vbsix.parsing.loading import load, load_all
from vbsix.parsing.parser import Parser
from vbsix.parsing.teachers import open_teachers
from vbsix.runs.beginning import begin_training
from vbsix.runs.finish import measure_run, train_to_end
from vbsix.runs.folder import Run, is_staged, is_teaching, new_folder, reopen_run
from vbsix.runs.stages import train_stages
from vbsix.runs.sweep import (
    Sweep,
    create_sweep,
    is_same_run,
    is_sweep,
    mean_over_folds,
    open_sweep,
    plan_sweep,
    run_source,
    train_sweep,
)
from vbsix.runs.teaching import FOLDS, train_teaching
from vbsix.trained import Callback, TrainedRun, TrainedSweep, watch
from vbsix.utilities.errors import VbsixError
from vbsix.utilities.files import read_json
from vbsix.utilities.jax_settings import prepare_jax


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
    student_stages: str | Path | Sequence[Mapping[str, Any]] | None = None,
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
        teachers: trained policies that infer the world after each instruction: the folder of a run or of a sweep over
            folds, whose runs teach the rows that they have not seen; an exported model; or the name of a model that
            comes with vbsix.
        folds: with `rounds`, into how many folds the rows are divided; 5 by default.
        rounds: teach across folds: train without each fold this many times, then a student on all rows.
        student_stages: with `rounds`, the stages of runs that learn from inferred worlds, those of later rounds and the
            student; by default the same as `stages`.
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
    if rounds is None and student_stages is not None:
        raise VbsixError("student_stages: give rounds, too; without teachers there is no student.")
    if rounds is None and folds is not None:
        raise VbsixError("folds: give rounds, too; for cross-validation alone, call vbsix.sweep.")
    known, begin = (words, None) if source is None else (words or source.words, source.start)
    folds = FOLDS if folds is None else folds
    begun = begin_training(
        *(run, language, known, begin),
        stages=stages,
        teachers=None if teachers is None else open_teachers(teachers),
        folds=folds,
        rounds=rounds,
        student_stages=student_stages,
        observe=lambda runs, _: watch(runs, None, progress),
    )
    if begun is not None:
        return _finish(*begun, words, callback, progress)
    finish = _finish_teaching if rounds is not None else _finish_stages
    return finish(run.folder, language, words, callback, progress)


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
        chosen = continue_config(continued.config, file, given, language.name, has_words=continued.words is not None)
    numbers = tuple(range(seeds)) if isinstance(seeds, int) else tuple(seeds)
    if not numbers:
        raise VbsixError("seeds: expected at least one seed.")
    return Run(Path(out) if out else new_folder(chosen), chosen, numbers, source)


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
        failed = train_sweep(planned, lambda runs, _: watch(runs, None, progress), language, words)
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


def _finish(run: Run, dataset: Dataset, words: Words | None, callback: Callback | None, progress: bool) -> TrainedRun:
    with watch([run], callback, progress) as observer:
        trained = train_to_end(run, dataset, observer)
    return TrainedRun(run.folder, run.config, measure_run(run, dataset, trained).result, dataset.domain, words)


def _finish_stages(
    folder: Path, language: Domain | None, words: Words | None, callback: Callback | None, progress: bool
) -> TrainedRun:
    """The last stage, trained to its end."""
    ended = train_stages(folder, lambda run, *_: watch([run], callback, progress), language, words)
    return TrainedRun(ended.run.folder, ended.run.config, ended.measured.result, ended.dataset.domain, words)


def _finish_teaching(
    folder: Path, language: Domain | None, words: Words | None, callback: Callback | None, progress: bool
) -> TrainedRun:
    """The student's last stage, trained to its end."""
    ended = train_teaching(
        folder,
        lambda runs, _: watch(runs, None, progress),
        lambda run, *_: watch([run], callback, progress),
        language,
        words,
    )
    return TrainedRun(ended.run.folder, ended.run.config, ended.measured.result, ended.dataset.domain, words)
