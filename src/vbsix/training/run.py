"""A run: chunks of compiled steps, and between them metrics, evaluation and checkpoints."""

from __future__ import annotations

import dataclasses
import shlex
import statistics
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, NoReturn, Protocol, runtime_checkable

import jax
import jax.numpy as jnp
import numpy as np

from vbsix import __version__
from vbsix.benchmarks import environment
from vbsix.data.words import Words
from vbsix.domains.base import Domain
from vbsix.domains.registry import get_domain, origin_of
from vbsix.errors import UnknownName, VbsixError
from vbsix.evaluation import accuracy
from vbsix.files import read_json, read_tensors, write_json, write_tensors
from vbsix.models import Policy
from vbsix.training.checkpoint import Origin, from_tensors, load_checkpoint, save_checkpoint, to_tensors
from vbsix.training.chunk import create_learners, learner_shapes, train_chunk
from vbsix.training.config import Config, flatten_json, from_tables
from vbsix.training.devices import put_on_all, release
from vbsix.training.metrics import Accuracies, MetricsFile, PendingMetrics, Row
from vbsix.training.step import Learner, Metrics
from vbsix.training.task import Task, load_task

CHUNK_ON_CPU = 5
"""Most steps of a chunk on a CPU, where six seeds at the paper's sizes take up to a second for one."""


@dataclass(frozen=True)
class Run:
    """A run's folder and what it is about."""

    folder: Path
    config: Config
    method: str
    seeds: tuple[int, ...]
    source: str
    """Where the data comes from; see `load_task`."""
    attributes: Any = None
    """What its domain showed (`Domain.shown`), where that is known."""

    @property
    def checkpoints(self) -> Path:
        return self.folder / "checkpoints"

    @property
    def metrics(self) -> Path:
        return self.folder / "metrics.jsonl"

    @property
    def best(self) -> Path:
        return self.folder / "best.safetensors"


@runtime_checkable
class Observer(Protocol):
    """Somebody who watches a run."""

    def on_progress(self, step: int) -> None:
        """So many steps are done: at the start, and after every chunk."""
        ...

    def on_metrics(self, step: int, rows: Sequence[Row], steps_per_second: float) -> None: ...

    def on_evaluation(self, step: int, accuracies: Accuracies) -> None: ...

    def on_message(self, text: str) -> None: ...

    def wants_to_stop(self) -> bool: ...


class Best(NamedTuple):
    """Each seed's policy when it did best on dev."""

    policies: Any
    """Leaves have a leading axis over seeds."""
    steps: list[int]
    scores: list[float]
    """Mean accuracy over the numbers of utterances."""


class Trained(NamedTuple):
    """What a run comes to."""

    learners: Learner
    """Leaves have a leading axis over seeds."""
    accuracies: Accuracies
    """After the last step."""
    best: Best
    seconds: float
    """Spent on training and evaluation; what a kill cost is not counted."""


class Interrupted(VbsixError):
    """A run was stopped by its user; what it has learned is saved."""


def create_run(run: Run) -> Task:
    """Makes the folder of a new run and reads its data."""
    if (run.folder / "run.json").exists():
        raise VbsixError(f"{run.folder}: holds a run already; give another folder, or go on with it by --resume.")
    task = load_task(run.config, run.source)
    description = {
        "vbsix": __version__,
        "method": run.method,
        "seeds": list(run.seeds),
        "data": run.source,
        "attributes": task.domain.shown(),
        "config": dataclasses.asdict(run.config),
    }
    vocabulary = {"words": list(task.words.words), "normalise": task.words.normalise}
    write_tensors(run.folder / "words.safetensors", {"vectors": task.words.vectors}, vocabulary)
    write_json(run.folder / "run.json", description)
    return task


def open_run(folder: Path) -> Run:
    """The run of a folder."""
    if not (folder / "run.json").exists():
        raise VbsixError(f"{folder}: holds no run; a run's folder has a file run.json.")
    description = read_json(folder / "run.json")
    try:
        config = from_tables(description["config"])
        seeds = tuple(int(seed) for seed in description["seeds"])
        method, source = str(description["method"]), str(description["data"])
        return Run(folder, config, method, seeds, source, description.get("attributes"))
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise VbsixError(f"{folder / 'run.json'}: not the description of a run: {error!r}.") from error


def domain_of(config: Config, path: Path, given: Domain | None, attributes: Any = None) -> Domain:
    """The domain that a model is for. It names one that is known, and never code to be run.

    It must show the model what it showed in training: `attributes`, where they are known.
    """
    if given is not None and given.name != config.domain:
        raise VbsixError(f"{path}: is for the domain {config.domain!r}, not for {given.name!r}.")
    try:
        domain = given or get_domain(config.domain)
    except UnknownName as error:
        raise VbsixError(
            f"{path}: {error} A domain of your own has to be named: --domain MODULE:CLASS (vbsix train: MODULE:CLASS), "
            "in Python vbsix.load(..., domain=...)."
        ) from None
    if attributes not in (None, domain.shown()):
        raise VbsixError(f"{path}: was trained for another version of the domain {domain.name}: its attributes differ.")
    return domain


def open_words(folder: Path) -> Words:
    """The vocabulary of a run."""
    tensors, metadata = read_tensors(folder / "words.safetensors")
    return Words(tuple(metadata["words"]), tensors["vectors"], metadata["normalise"])


def train(run: Run, task: Task, observer: Observer) -> Trained:
    """Trains from the newest checkpoint, or from the start, to the last step.

    A checkpoint comes before the row and the evaluation of its step, and a run that goes on from it makes these
    again. So it does not matter when a run is cut.

    Raises:
        Interrupted: the observer wanted to stop; a checkpoint was written.
        VbsixError: a loss or a parameter is not a finite number; the last good checkpoint is intact.
    """
    config, last = run.config, run.config.training.steps
    state = _restore(run, task)
    first = state.step
    data = np.array(run.seeds), task.words.vectors, task.arrays(task.examples)
    seeds, vectors, examples = put_on_all(data, task.domain, config.training.batch)
    watch = _Stopwatch(state.seconds)
    accuracies: Accuracies = {}
    best = _restore_best(run, task.domain, observer) if run.best.exists() and state.step else None
    observer.on_progress(state.step)
    with MetricsFile(run.metrics, state.step) as metrics_file:
        in_vain = not any(row["hit"] > 0 for row in metrics_file.kept)
        while True:
            evaluates = _due(config.run.evaluate_every, state.step, last)
            if evaluates:
                policies = release(state.learners.networks.policy)
                accuracies = evaluate_splits(task, policies, config)
                best = keep_best(best, state.step, policies, accuracies)
                save_best(run, best)
                observer.on_evaluation(state.step, accuracies)
                if state.step > first and observer.wants_to_stop():  # one without time left gets on all the same
                    _stop(run, state, watch)
            if evaluates or _due(config.run.log_every, state.step, last):
                rows = state.pending.take(state.step, run.seeds, accuracies if evaluates else {})
                metrics_file.write(rows)
                observer.on_metrics(state.step, rows, watch.steps_per_second())
                in_vain = in_vain and not any(row["hit"] > 0 for row in rows)
                if in_vain and state.step >= min(PATIENCE, last):
                    observer.on_message(_no_hits(config, state.step))
                    in_vain = False  # it has been said
            if state.step == last:
                assert best is not None, "the last step is always evaluated"
                return Trained(release(state.learners), accuracies, best, watch.seconds())
            stop = _next_stop(config, state.step)
            with watch.chunk(stop - state.step), task.domain.alone():
                state.learners, sums = train_chunk(
                    task.domain,
                    config,
                    state.learners,
                    seeds,
                    vectors,
                    examples,
                    jnp.int32(state.step),
                    steps=stop - state.step,
                    critic_ranks=config.training.critic and state.step >= config.training.value_ranking_start,
                )
                jax.block_until_ready(sums)
                task.domain.raise_failure()
            _require_finite(run, state, sums)
            state.pending.add(sums)
            state.step = stop
            observer.on_progress(stop)
            if observer.wants_to_stop():
                _stop(run, state, watch)
            if _due(config.run.checkpoint_every, stop, last):
                _save(run, state, watch)


def evaluate_splits(task: Task, policies: Policy, config: Config) -> Accuracies:
    """The accuracy of each seed's policy on each split, by number of utterances."""
    return {
        name: {
            (str(length) if length else WHOLE): accuracy(
                task.domain,
                policies,
                task.words.vectors,
                task.arrays(split.examples(length)),
                beam=config.run.evaluation_beam,
                batch=config.run.evaluation_batch,
            )
            for length in config.data.evaluation
        }
        for name, split in task.splits.items()
    }


def load_best(run: Run, domain: Domain) -> Best:
    """The policies of a run's seeds when they did best on dev."""
    if not run.best.exists():
        raise VbsixError(f"{run.folder}: was never evaluated, so that it has no best policies yet.")
    tensors, metadata = read_tensors(run.best)
    shapes = learner_shapes(domain, run.config, run.seeds)
    policies = jax.tree.map(jnp.asarray, from_tensors(tensors, shapes.networks.policy, run.best))
    return Best(policies, list(metadata["steps"]), list(metadata["scores"]))


def save_best(run: Run, best: Best) -> None:
    """Writes what `load_best` reads."""
    write_tensors(run.best, to_tensors(best.policies), {"steps": best.steps, "scores": best.scores})


def _restore_best(run: Run, domain: Domain, observer: Observer) -> Best | None:
    """What did best on dev before; a run whose checkpoints are whole goes on without."""
    try:
        return load_best(run, domain)
    except VbsixError as error:
        observer.on_message(f"{error} Going on without the best policies so far; those to come are kept.")
        return None


def keep_best(best: Best | None, step: int, policies: Any, accuracies: Accuracies) -> Best:
    """The best so far; of equals the first, so that a run that evaluates a step once more changes nothing."""
    scores = np.mean(list(accuracies["dev"].values()), axis=0)
    if best is None:
        return Best(jax.tree.map(jnp.copy, policies), [step] * len(scores), scores.tolist())
    better = scores > np.array(best.scores)
    chosen = jax.tree.map(
        lambda new, old: jnp.where(better.reshape(-1, *[1] * (new.ndim - 1)), new, old), policies, best.policies
    )
    return Best(chosen, np.where(better, step, best.steps).tolist(), np.maximum(scores, best.scores).tolist())


def save_result(run: Run, trained: Trained, spurious: Mapping[str, Sequence[float | None]]) -> None:
    """Writes what the run comes to into `result.json`.

    Args:
        run: the run.
        trained: what came of it.
        spurious: of each split, how many of the right programs are spurious, for each seed.
    """
    summary = {
        "method": run.method,
        "domain": run.config.domain,
        "data": run.source,
        "steps": run.config.training.steps,
        "seconds": trained.seconds,
        "accuracy": trained.accuracies,
        "best": {"steps": trained.best.steps, "score": trained.best.scores},
        "spurious": spurious,
        "seeds": list(run.seeds),
        "config": dataclasses.asdict(run.config),
    }
    write_json(run.folder / "result.json", summary | environment())


def resume_command(run: Run) -> str:
    """What to type to go on with a run."""
    own = origin_of(run.config.domain)
    return shlex.join(["vbsix", "train", *([own] if own else []), "--resume", str(run.folder)])


@dataclass
class _State:
    """Where a run stands. All of it is in a checkpoint."""

    step: int
    learners: Learner
    origin: Origin
    pending: PendingMetrics
    seconds: float


def _stop(run: Run, state: _State, watch: _Stopwatch) -> NoReturn:
    """Saves, and says how to go on. What is due at this step is done when the run goes on."""
    _save(run, state, watch)
    last = run.config.training.steps
    raise Interrupted(f"Stopped after step {state.step} of {last}. Go on with: {resume_command(run)}")


def _save(run: Run, state: _State, watch: _Stopwatch) -> None:
    state.seconds = watch.seconds()
    progress = {"pending": state.pending.to_json(), "seconds": state.seconds}
    save_checkpoint(run.checkpoints, state.step, state.learners, run.seeds, state.origin, progress)


def _restore(run: Run, task: Task) -> _State:
    relevant = {name: value for name, value in dataclasses.asdict(run.config).items() if name != "run"}
    origin = {"vbsix": __version__, **flatten_json(relevant), "data": task.fingerprint()}
    found = load_checkpoint(run.checkpoints, learner_shapes(task.domain, run.config, run.seeds), run.seeds, origin)
    if found is None:
        learners = create_learners(task.domain, run.config, jnp.asarray(run.seeds))
        learners = put_on_all(learners, task.domain, run.config.training.batch)
        return _State(0, learners, origin, PendingMetrics(), 0.0)
    learners = put_on_all(found.learners, task.domain, run.config.training.batch)
    pending, seconds = PendingMetrics(found.progress["pending"]), found.progress["seconds"]
    return _State(found.step, learners, origin, pending, seconds)


def _next_stop(config: Config, step: int) -> int:
    """Where the next chunk ends; it depends on the step alone, so that a resumed run makes the same chunks."""
    chunk = min(config.run.chunk, CHUNK_ON_CPU) if jax.default_backend() == "cpu" else config.run.chunk
    every = [chunk, config.run.log_every, config.run.evaluate_every, config.run.checkpoint_every]
    stops = [(step // steps + 1) * steps for steps in every]
    return min(stop for stop in [*stops, config.training.value_ranking_start, config.training.steps] if stop > step)


def _due(every: int, step: int, last: int) -> bool:
    return step > 0 and (step % every == 0 or step == last)


def _require_finite(run: Run, state: _State, metrics: Metrics) -> None:
    """Metrics are sums over all steps of a chunk, so that what was not finite once is still there."""
    totals = {name: np.asarray(mean.total) for name, mean in metrics.items()}
    wrong = sorted(name for name, total in totals.items() if not np.isfinite(total).all())
    if not wrong and not bool(_all_finite(state.learners.networks)):
        wrong = ["parameters"]
    if wrong:
        raise VbsixError(
            f"{run.folder}: not finite any more soon after step {state.step}: {', '.join(wrong)}. What was saved "
            "before is intact. Try a new run with a smaller training.learning_rate."
        )


@jax.jit
def _all_finite(tree: Any) -> jax.Array:
    return jnp.all(jnp.stack([jnp.all(jnp.isfinite(leaf)) for leaf in jax.tree.leaves(tree)]))


class _Stopwatch:
    """Measures a run before whose start `seconds` were spent."""

    def __init__(self, seconds: float):
        self._start = time.perf_counter() - seconds
        self._speeds: list[float] = []

    def seconds(self) -> float:
        return time.perf_counter() - self._start

    @contextmanager
    def chunk(self, steps: int) -> Iterator[None]:
        """A chunk of so many steps is done meanwhile."""
        begun = time.perf_counter()
        yield
        self._speeds.append(steps / max(time.perf_counter() - begun, 1e-9))

    def steps_per_second(self) -> float:
        """The median of the chunks since the last call, which neither evaluation nor compilation slows down."""
        speeds, self._speeds = self._speeds, []
        return statistics.median(speeds) if speeds else 0.0


WHOLE = "all"
"""Stands for a number of utterances where whole rows are measured, however long they are."""
PATIENCE = 500
"""Steps after which a run without a hit says so."""


def _no_hits(config: Config, step: int) -> str:
    """What is said of a run that finds nothing: likely reasons, and what to change."""
    if config.training.objective == "reinforce":
        who, few, more = "sample", "too few programs are sampled", f"training.samples={2 * config.training.samples}"
        bolder = "training.sample_epsilon=0.3"
    else:
        who, few = "search", "the beam is too small for programs of this length"
        more, bolder = f"search.beam={2 * config.search.beam}", "search.epsilon=0.3"
    return (
        f"No {who} has found a correct program in {step} steps, so nothing has been learned. Likely reasons: {few} "
        f"(try --set {more}), there is too little exploration (try --set {bolder}), or the sequences are too long to "
        "begin with (try shorter ones: --set data.lengths=[1,2])."
    )
