"""The training loop: chunks of compiled steps, and between them metrics, evaluation and checkpoints."""

from __future__ import annotations

import dataclasses
import statistics
import time
from collections.abc import Container, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any, NamedTuple, NoReturn, Protocol, runtime_checkable

import jax
import jax.numpy as jnp
import numpy as np

from vbsix import __version__
from vbsix.config.schema import OBJECTIVES, Config, flatten_json
from vbsix.data.dataset import Dataset
from vbsix.domains.base import Domain
from vbsix.evaluation.accuracy import Accuracies
from vbsix.runs.checkpoints import (
    Checkpoint,
    Origin,
    checkpoint_steps,
    drop_checkpoints_after,
    load_checkpoint,
    save_checkpoint,
)
from vbsix.runs.folder import CONTINUE, Best, Run, is_in_sweep, load_best, resume_command, save_best, save_failure
from vbsix.runs.group import Group, describe_device_error, join_accuracies, lacks_memory
from vbsix.runs.metrics import MetricsFile, PendingMetrics, Row
from vbsix.search.sharding import replicate, to_host
from vbsix.training.chunk import learner_shapes, learners_at_once, train_chunk
from vbsix.training.step import Learner
from vbsix.utilities.errors import VbsixError
from vbsix.utilities.files import sha256
from vbsix.utilities.processes import any_process, require_agreement

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


class DeviceFailed(VbsixError):
    """A device failed, for another reason than too little memory. A new process may continue the run."""


class Interrupted(VbsixError):
    """A run was stopped by its user; what it has learned is saved."""


def train(run: Run, dataset: Dataset, observer: Observer) -> Trained:
    """Trains a run from its newest checkpoint, or from the start, to its last step.

    Raises:
        Interrupted: the observer wanted to stop; a checkpoint was written.
        VbsixError: a loss or a parameter is not a finite number; the last good checkpoint is intact.
    """
    (trained,) = train_together([run], [dataset], observer)
    if isinstance(trained, VbsixError):
        raise trained
    return trained


def train_together(runs: Sequence[Run], datasets: Sequence[Dataset], observer: Observer) -> list[Trained | VbsixError]:
    """Trains runs that share a program (`group_by_program`), side by side, each with its dataset.

    A checkpoint is written before the metrics and the evaluation of its step, and a resumed run makes these again. So
    it does not matter when a run is interrupted. Each run has its own folder, as if it were trained alone. The observer
    gets rows and accuracies of all of them, one run behind the other; with several runs, a row names its run.

    Returns:
        What each run comes to; an error for one whose loss or parameters are no longer finite.

    Raises:
        Interrupted: the observer wanted to stop; checkpoints were written.
    """
    config, domain = runs[0].config, datasets[0].domain
    last, batch = config.training.steps, config.training.batch
    group = Group(runs, datasets)
    state = _restore(group)
    first = state.step
    settings = dataclasses.asdict(config), [run.seeds for run in runs]
    require_agreement({"step": first, "origins": state.origins, "settings": settings})
    members, vectors, examples, renaming = replicate(group.inputs(), domain, batch)
    at_once = learners_at_once([run.seeds for run in runs])
    watch = _Stopwatch(state.seconds)
    accuracies: list[Accuracies] = [{} for _ in runs]
    bests = [_restore_best(run, domain, observer) if run.best.exists() and state.step else None for run in runs]
    failed: dict[int, VbsixError] = {}
    continued = any(run.start.exists() for run in runs)  # then the policies before the first step are worth a look
    observer.on_progress(state.step)
    with _device_errors(group, state), ExitStack() as files:
        metrics_files = [files.enter_context(MetricsFile(run.metrics, state.step)) for run in runs]
        no_hits = not any(row.get("hit", 1) > 0 for file in metrics_files for row in file.kept)
        while True:
            evaluates = _due(config.run.evaluate_every, state.step, last) or (state.step == 0 and continued)
            if evaluates:
                policies = to_host(state.learners.evaluated.policy)
                accuracies = group.evaluate(policies)
                for place, run in group.others(failed):
                    best = keep_best(bests[place], state.step, group.part(policies, place), accuracies[place])
                    save_best(run, best)
                    bests[place] = best
                observer.on_evaluation(state.step, join_accuracies(accuracies))
                # Even a run without time left makes progress.
                if state.step > first and any_process(observer.wants_to_stop()):
                    _stop(group, state, watch, failed)
            if evaluates or _due(config.run.log_every, state.step, last):
                rows: list[Row] = []
                for place, run in enumerate(runs):
                    own = state.pending[place].take(state.step, run.seeds, accuracies[place] if evaluates else {})
                    if run.stage:
                        own = [{**row, "stage": run.stage} for row in own]
                    if place not in failed:
                        metrics_files[place].write(own)
                    rows += own if len(runs) == 1 else [{"run": run.folder.name, **row} for row in own]
                observer.on_metrics(state.step, rows, watch.steps_per_second())
                no_hits = no_hits and not any(row.get("hit", 1) > 0 for row in rows)
                if no_hits and state.step >= min(PATIENCE, last):
                    observer.on_message(_advise(config, state.step))
                    no_hits = False  # say it once
            if state.step == last:
                learners, seconds = to_host(state.learners), watch.seconds()
                found: list[Trained | VbsixError] = []
                for place, best in enumerate(bests):
                    if place in failed:
                        found.append(failed[place])
                    else:
                        assert best is not None, "the last step is always evaluated"
                        found.append(Trained(group.own(learners, place), accuracies[place], best, seconds))
                return found
            stop = _next_stop(runs, state.step)
            with watch.chunk(stop - state.step), domain.alone():
                state.learners, sums = train_chunk(
                    domain,
                    config,
                    state.learners,
                    members,
                    vectors,
                    examples,
                    jnp.int32(state.step),
                    renaming,
                    steps=stop - state.step,
                    critic_ranks=_critic_ranks(runs, state.step),
                    at_once=at_once,
                )
                jax.block_until_ready(sums)
                domain.raise_failure()
            for place, error in group.failures(state.step, state.learners, sums):
                if place not in failed and is_in_sweep(runs[place]):
                    save_failure(runs[place], error)
                    observer.on_message(str(error))
                failed.setdefault(place, error)
            if len(failed) == len(runs):
                return [failed[place] for place in range(len(runs))]
            for place, pending in enumerate(state.pending):
                pending.add(group.part(sums, place))
            state.step = stop
            observer.on_progress(stop)
            if any_process(observer.wants_to_stop()):
                _stop(group, state, watch, failed)
            if _due(config.run.checkpoint_every, stop, last):
                _save(group, state, watch, failed)


def _critic_ranks(runs: Sequence[Run], step: int) -> bool | None:
    """Whether the critic ranks at a step; None if it does in some of the runs."""
    ranks = {run.config.training.critic and step >= run.config.training.value_ranking_start for run in runs}
    return ranks.pop() if len(ranks) == 1 else None


@contextmanager
def _device_errors(group: Group, state: _State) -> Iterator[None]:
    """Reports a device that fails as an error which says how to continue."""
    try:
        yield
    except jax.errors.JaxRuntimeError as error:
        group.datasets[0].domain.raise_failure()  # a language in plain Python has failed, not the device
        kind = VbsixError if lacks_memory(error) else DeviceFailed
        raise kind(
            f"{group.runs[0].folder}: {describe_device_error(error)} It was at step {state.step}; the checkpoints are "
            f"intact.{CONTINUE}{resume_command(group.runs[0])}"
        ) from error


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
    leaves, structure = jax.tree.flatten(policies)
    chosen = [
        jnp.where(better.reshape(-1, *[1] * (new.ndim - 1)), new, old)
        for new, old in zip(leaves, jax.tree.leaves(best.policies), strict=True)
    ]
    return Best(
        jax.tree.unflatten(structure, chosen),
        np.where(better, step, best.steps).tolist(),
        np.maximum(scores, best.scores).tolist(),
    )


@dataclass
class _State:
    """Where runs stand. All of it is in their checkpoints."""

    step: int
    learners: Learner
    origins: Sequence[Origin]
    pending: Sequence[PendingMetrics]
    """Of each run."""
    seconds: float


def _stop(group: Group, state: _State, watch: _Stopwatch, failed: Container[int]) -> NoReturn:
    """Saves, and says how to continue. What is due at this step is done when the runs continue."""
    _save(group, state, watch, failed)
    last = group.runs[0].config.training.steps
    raise Interrupted(f"Stopped after step {state.step} of {last}. Continue with: {resume_command(group.runs[0])}")


def _save(group: Group, state: _State, watch: _Stopwatch, failed: Container[int]) -> None:
    state.seconds = watch.seconds()
    learners = jax.tree.map(np.asarray, state.learners)
    for place, run in group.others(failed):
        progress = {"pending": state.pending[place].to_json(), "seconds": state.seconds}
        own = group.part(learners, place)
        save_checkpoint(run.checkpoints, state.step, own, run.seeds, state.origins[place], progress)


def _restore(group: Group) -> _State:
    """The runs at the newest step of which all have a checkpoint, or at the start."""
    origins = [_origin(*one) for one in zip(group.runs, group.datasets, strict=True)]
    found = _load_together(group, origins)
    if found is None:
        return _State(0, group.start(), origins, [PendingMetrics() for _ in group.runs], 0.0)
    pending = [PendingMetrics(checkpoint.progress["pending"]) for checkpoint in found]
    seconds = max(checkpoint.progress["seconds"] for checkpoint in found)
    learners = group.join([checkpoint.learners for checkpoint in found])
    return _State(found[0].step, learners, origins, pending, seconds)


def _load_together(group: Group, origins: Sequence[Origin]) -> list[Checkpoint] | None:
    """The newest checkpoint of a run; of several runs, the newest of a step that all of them have intact."""

    def load(step: int | None) -> list[Checkpoint | None]:
        return [
            load_checkpoint(
                run.checkpoints, learner_shapes(dataset.domain, run.config, run.seeds), run.seeds, origin, step
            )
            for run, dataset, origin in zip(group.runs, group.datasets, origins, strict=True)
        ]

    steps: list[int | None] = [None]
    if len(group.runs) > 1:
        common = set.intersection(*(checkpoint_steps(run.checkpoints) for run in group.runs))
        steps = sorted(common, reverse=True)
    for step in steps:
        found = [checkpoint for checkpoint in load(step) if checkpoint is not None]
        if len(found) == len(group.runs):
            if step is not None:
                for run in group.runs:
                    drop_checkpoints_after(run.checkpoints, step)
            return found
    return None


def _origin(run: Run, dataset: Dataset) -> Origin:
    relevant = {name: value for name, value in dataclasses.asdict(run.config).items() if name != "run"}
    start = {"start": sha256(run.start.read_bytes())} if run.start.exists() else {}
    origin = {"vbsix": __version__, **flatten_json(relevant), "data": dataset.fingerprint(), **start}
    if not run.config.training.decay_share:  # then steps do not depend on how many there are, and more may follow
        origin.pop("training.steps")
    return origin


def _next_stop(runs: Sequence[Run], step: int) -> int:
    """Where the next chunk ends; it depends on the step alone, so that a resumed run makes the same chunks."""
    config = runs[0].config
    chunk = min(config.run.chunk, CHUNK_ON_CPU) if jax.default_backend() == "cpu" else config.run.chunk
    every = [chunk, config.run.log_every, config.run.evaluate_every, config.run.checkpoint_every]
    stops = [(step // steps + 1) * steps for steps in every]
    stops += [run.config.training.value_ranking_start for run in runs]
    return min(stop for stop in [*stops, config.training.steps] if stop > step)


def _due(every: int, step: int, last: int) -> bool:
    return step > 0 and (step % every == 0 or step == last)


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
    if OBJECTIVES.get(config.training.objective).samples:
        who, few, more = "sample", "too few programs are sampled", f"training.samples={2 * config.training.samples}"
        bolder = "training.sample_epsilon=0.3"
    else:
        who, few = "search", "the beam is too small for programs of this length"
        more, bolder = f"search.beam={2 * config.search.beam}", "search.epsilon=0.3"
    # JSON lines have no worlds in between, so that no shorter examples can be made of theirs.
    shorter = "add shorter ones" if config.data.lengths == (0,) else "try shorter ones: --set data.lengths=[1,2]"
    return (
        f"No {who} has found a correct program in {step} steps, so nothing has been learned. Likely reasons: {few} "
        f"(try --set {more}), there is too little exploration (try --set {bolder}), or the sequences are too long to "
        f"begin with ({shorter})."
    )
