"""The training loop: chunks of compiled steps, and between them metrics, evaluation and checkpoints."""

from __future__ import annotations

import dataclasses
import statistics
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, NamedTuple, NoReturn, Protocol, runtime_checkable

import jax
import jax.numpy as jnp
import numpy as np

from vbsix import __version__
from vbsix.config.schema import Config, flatten_json
from vbsix.data.dataset import Dataset
from vbsix.domains.base import Domain
from vbsix.evaluation.accuracy import Accuracies, evaluate_splits
from vbsix.runs.checkpoints import Origin, load_checkpoint, save_checkpoint
from vbsix.runs.folder import Best, Run, load_best, resume_command, save_best
from vbsix.runs.metrics import MetricsFile, PendingMetrics, Row
from vbsix.search.sharding import replicate, to_host
from vbsix.training.objective import Metrics
from vbsix.training.seeds import create_learners, learner_shapes, train_chunk
from vbsix.training.step import Learner
from vbsix.utilities.errors import VbsixError

CHUNK_ON_CPU = 5
"""Most steps of a chunk on a CPU, where six seeds at the paper's sizes take up to a second for one."""


@runtime_checkable
class Observer(Protocol):
    """Watches a run: a display, or a callback of one's own."""

    def on_progress(self, step: int) -> None:
        """Called at the start and after every chunk, with the number of steps done."""
        ...

    def on_metrics(self, step: int, rows: Sequence[Row], steps_per_second: float) -> None: ...

    def on_evaluation(self, step: int, accuracies: Accuracies) -> None: ...

    def on_message(self, text: str) -> None: ...

    def wants_to_stop(self) -> bool: ...


class Trained(NamedTuple):
    """The outcome of a run."""

    learners: Learner
    """Leaves have a leading axis over seeds."""
    accuracies: Accuracies
    """After the last step."""
    best: Best
    seconds: float
    """Spent on training and evaluation, without what was lost to kills."""


class Interrupted(VbsixError):
    """A run was stopped by its user; what it has learned is saved."""


def train(run: Run, dataset: Dataset, observer: Observer) -> Trained:
    """Trains from the newest checkpoint, or from the start, to the last step.

    A checkpoint is written before the metrics and the evaluation of its step, and a resumed run makes these again. So
    it does not matter when a run is interrupted.

    Raises:
        Interrupted: the observer wanted to stop; a checkpoint was written.
        VbsixError: a loss or a parameter is not a finite number; the last good checkpoint is intact.
    """
    config, last = run.config, run.config.training.steps
    state = _restore(run, dataset)
    first = state.step
    data = np.array(run.seeds), dataset.words.vectors, dataset.arrays(dataset.examples)
    seeds, vectors, examples = replicate(data, dataset.domain, config.training.batch)
    watch = _Stopwatch(state.seconds)
    accuracies: Accuracies = {}
    best = _restore_best(run, dataset.domain, observer) if run.best.exists() and state.step else None
    observer.on_progress(state.step)
    with MetricsFile(run.metrics, state.step) as metrics_file:
        no_hits = not any(row.get("hit", 1) > 0 for row in metrics_file.kept)
        while True:
            evaluates = _due(config.run.evaluate_every, state.step, last)
            if evaluates:
                policies = to_host(state.learners.networks.policy)
                accuracies = evaluate_splits(dataset, policies, config)
                best = keep_best(best, state.step, policies, accuracies)
                save_best(run, best)
                observer.on_evaluation(state.step, accuracies)
                if state.step > first and observer.wants_to_stop():  # even a run without time left makes progress
                    _stop(run, state, watch)
            if evaluates or _due(config.run.log_every, state.step, last):
                rows = state.pending.take(state.step, run.seeds, accuracies if evaluates else {})
                metrics_file.write(rows)
                observer.on_metrics(state.step, rows, watch.steps_per_second())
                no_hits = no_hits and not any(row.get("hit", 1) > 0 for row in rows)
                if no_hits and state.step >= min(PATIENCE, last):
                    observer.on_message(_advise(config, state.step))
                    no_hits = False  # say it once
            if state.step == last:
                assert best is not None, "the last step is always evaluated"
                return Trained(to_host(state.learners), accuracies, best, watch.seconds())
            stop = _next_stop(config, state.step)
            with watch.chunk(stop - state.step), dataset.domain.alone():
                state.learners, sums = train_chunk(
                    dataset.domain,
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
                dataset.domain.raise_failure()
            _require_finite(run, state, sums)
            state.pending.add(sums)
            state.step = stop
            observer.on_progress(stop)
            if observer.wants_to_stop():
                _stop(run, state, watch)
            if _due(config.run.checkpoint_every, stop, last):
                _save(run, state, watch)


def _restore_best(run: Run, domain: Domain, observer: Observer) -> Best | None:
    """The best policies so far; a run with intact checkpoints continues without them."""
    try:
        return load_best(run, domain)
    except VbsixError as error:
        observer.on_message(f"{error} Continuing without the best policies so far.")
        return None


def keep_best(best: Best | None, step: int, policies: Any, accuracies: Accuracies) -> Best:
    """The best so far, and the earlier of equals, so that evaluating a step again changes nothing."""
    scores = np.mean(list(accuracies["dev"].values()), axis=0)
    if best is None:
        return Best(jax.tree.map(jnp.copy, policies), [step] * len(scores), scores.tolist())
    better = scores > np.array(best.scores)
    chosen = jax.tree.map(
        lambda new, old: jnp.where(better.reshape(-1, *[1] * (new.ndim - 1)), new, old), policies, best.policies
    )
    return Best(chosen, np.where(better, step, best.steps).tolist(), np.maximum(scores, best.scores).tolist())


@dataclass
class _State:
    """Where a run stands. All of it is in a checkpoint."""

    step: int
    learners: Learner
    origin: Origin
    pending: PendingMetrics
    seconds: float


def _stop(run: Run, state: _State, watch: _Stopwatch) -> NoReturn:
    """Saves, and says how to continue. What is due at this step is done when the run continues."""
    _save(run, state, watch)
    last = run.config.training.steps
    raise Interrupted(f"Stopped after step {state.step} of {last}. Continue with: {resume_command(run)}")


def _save(run: Run, state: _State, watch: _Stopwatch) -> None:
    state.seconds = watch.seconds()
    progress = {"pending": state.pending.to_json(), "seconds": state.seconds}
    save_checkpoint(run.checkpoints, state.step, state.learners, run.seeds, state.origin, progress)


def _restore(run: Run, dataset: Dataset) -> _State:
    relevant = {name: value for name, value in dataclasses.asdict(run.config).items() if name != "run"}
    origin = {"vbsix": __version__, **flatten_json(relevant), "data": dataset.fingerprint()}
    found = load_checkpoint(run.checkpoints, learner_shapes(dataset.domain, run.config, run.seeds), run.seeds, origin)
    if found is None:
        learners = create_learners(dataset.domain, run.config, jnp.asarray(run.seeds))
        learners = replicate(learners, dataset.domain, run.config.training.batch)
        return _State(0, learners, origin, PendingMetrics(), 0.0)
    learners = replicate(found.learners, dataset.domain, run.config.training.batch)
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
    """Metrics are sums over all steps of a chunk, so that one value that is not finite shows."""
    totals = {name: np.asarray(mean.total) for name, mean in metrics.items()}
    wrong = sorted(name for name, total in totals.items() if not np.isfinite(total).all())
    if not wrong and not bool(_all_finite(state.learners.networks)):
        wrong = ["parameters"]
    if wrong:
        raise VbsixError(
            f"{run.folder}: not finite after step {state.step}: {', '.join(wrong)}. The checkpoints before "
            "that are intact. Try a new run with a smaller training.learning_rate."
        )


@jax.jit
def _all_finite(tree: Any) -> jax.Array:
    return jnp.all(jnp.stack([jnp.all(jnp.isfinite(leaf)) for leaf in jax.tree.leaves(tree)]))


class _Stopwatch:
    """Measures the time of a run, of which `seconds` were spent before."""

    def __init__(self, seconds: float):
        self._start = time.perf_counter() - seconds
        self._speeds: list[float] = []

    def seconds(self) -> float:
        return time.perf_counter() - self._start

    @contextmanager
    def chunk(self, steps: int) -> Iterator[None]:
        """Times a chunk of steps."""
        begun = time.perf_counter()
        yield
        self._speeds.append(steps / max(time.perf_counter() - begun, 1e-9))

    def steps_per_second(self) -> float:
        """The median of the chunks since the last call, which neither evaluation nor compilation slows down."""
        speeds, self._speeds = self._speeds, []
        return statistics.median(speeds) if speeds else 0.0


PATIENCE = 500
"""Steps after which a run without a hit says so."""


def _advise(config: Config, step: int) -> str:
    """Advice for a run that finds nothing: likely reasons, and what to change."""
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
