"""A run's folder: what it is about, its vocabulary, its best policies, and its result."""

from __future__ import annotations

import dataclasses
import os
import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from vbsix import __version__
from vbsix.config.legacy import read_config
from vbsix.config.schema import OBJECTIVES, Config
from vbsix.data.dataset import Dataset, load_dataset, warn_about, warn_about_words
from vbsix.data.inferred import read_inferred
from vbsix.data.json_lines import SUFFIX
from vbsix.data.words import Words, read_words
from vbsix.domains.base import Domain
from vbsix.domains.registry import as_domain, get_domain, origin_of
from vbsix.evaluation.accuracy import Accuracies
from vbsix.runs.checkpoints import from_tensors, to_tensors
from vbsix.runs.identity import UNKNOWN, Identity, as_seen, domain_of, identify, read_identity
from vbsix.search.sharding import count_devices
from vbsix.training.chunk import learner_shapes
from vbsix.training.step import Learner
from vbsix.training.symmetry import make_renaming
from vbsix.utilities.errors import VbsixError
from vbsix.utilities.files import read_json, read_tensors, remove_file, write_json, write_tensors
from vbsix.utilities.machine import environment
from vbsix.utilities.processes import is_distributed, writes_files

SWEEP_FILE, STAGES_FILE, TEACHING_FILE = "sweep.json", "stages.json", "teaching.json"
"""The files that describe the sweep, the stages or the teaching of a folder; the runs are in folders inside."""
INFERRED_FILE = "inferred.jsonl"
"""The worlds that teachers inferred, in the folder of what learns from them: a run, a sweep or stages."""
STUDENT = "student"
"""The folder of the stages of the student, inside the folder of a teaching."""


@dataclass(frozen=True)
class Run:
    """A run's folder and what it is about."""

    folder: Path
    config: Config
    seeds: tuple[int, ...]
    source: str
    """Where the data comes from; see `load_dataset`."""
    identity: Identity = UNKNOWN
    """Of its domain, as far as that is known."""
    stage: int = 0
    """The number of the stage that it is, from 1 on; 0 if it is not one of several."""
    inferred: Path | None = None
    """The worlds that teachers inferred for it; None if it has no teachers."""

    @property
    def checkpoints(self) -> Path:
        return self.folder / "checkpoints"

    @property
    def metrics(self) -> Path:
        return self.folder / "metrics.jsonl"

    @property
    def messages(self) -> Path:
        """What a task of a cluster has to say about it."""
        return self.folder / "messages.txt"

    @property
    def best(self) -> Path:
        return self.folder / "best.safetensors"

    @property
    def start(self) -> Path:
        """The policies that a continued run starts from; a run that starts from scratch does not have the file."""
        return self.folder / "start.safetensors"


class Best(NamedTuple):
    """Each seed's policy at the step at which it was best on dev."""

    policies: Any
    """Leaves have a leading axis over seeds."""
    steps: list[int]
    scores: list[float]
    """Mean accuracy over the numbers of utterances."""


def read_dataset(run: Run, domain: Domain | None = None, words: Words | None = None) -> Dataset:
    """The data of a run; None takes the domain that is known by its name."""
    return load_dataset(
        run.config.data,
        as_seen(domain or get_domain(run.config.domain), run.config),
        run.source,
        word_size=run.config.network.word,
        shortest_first=bool(run.config.training.curriculum_steps),
        words=words,
        inferred=read_inferred(run.inferred) if run.inferred else None,
    )


def reopen_run(
    folder: Path, domain: Any = None, words: Words | None = None, steps: int | None = None
) -> tuple[Run, Dataset]:
    """A run that was begun, and its data, with the words that it was begun with unless others are given.

    Args:
        folder: the run's.
        domain: the language, for one of the user's own.
        words: another vocabulary.
        steps: train for more steps than the run was begun with.
    """
    run = open_run(folder)
    if steps is not None:
        run = extend_run(run, steps)
    given = None if domain is None else as_domain(domain)
    language = domain_of(run.config, run.folder, given, run.identity)
    return run, read_dataset(run, language, words or open_words(run.folder))


Start = Callable[[Run, Dataset], Mapping[str, np.ndarray]]
"""Gives the policies that a run starts from: tensors by their paths, with a leading axis over seeds."""


def create_run(
    run: Run,
    domain: Domain | None = None,
    words: Words | None = None,
    dataset: Dataset | None = None,
    start: Start | None = None,
) -> Dataset:
    """Makes the folder of a new run and reads its data, unless that is given."""
    require_unused(run.folder)
    remove_file(run.start)  # left by a call that was killed
    if dataset is None:
        dataset = read_dataset(run, domain, words)
        warn_about_run(run, dataset)
    if is_distributed():
        count_devices(dataset.domain, run.config.training.batch)  # raises now, and not when the folder is there
    if run.config.training.symmetry:
        make_renaming(dataset.domain, dataset.words)  # raises now, too
    description = {
        "vbsix": __version__,
        "seeds": list(run.seeds),
        "data": run.source,
        "rows": dataset.rows,
        **({"stage": run.stage} if run.stage else {}),
        **describe_inferred(run, run.folder),
        **identify(dataset.domain, [str(example.context) for example in dataset.examples]).to_json(),
        "config": dataclasses.asdict(run.config),
    }
    if start is not None:
        tensors = start(run, dataset)
        _join(tensors, learner_shapes(dataset.domain, run.config, run.seeds).networks.policy, run.start)  # if they fit
        write_tensors(run.start, tensors, {})
    write_tensors(run.folder / "words.safetensors", {"vectors": dataset.words.vectors}, dataset.words.to_json())
    write_json(run.folder / "run.json", description)
    return dataset


def require_unused(folder: Path) -> None:
    """Refuses a folder that holds a run, a sweep, stages or a teaching."""
    if not writes_files():  # the process that writes may be faster, and have written already
        return
    for file in ("run.json", STAGES_FILE, SWEEP_FILE, TEACHING_FILE):
        if (folder / file).exists():
            raise VbsixError(f"{folder}: is in use already; give another folder, or continue it with --resume.")


def extend_run(run: Run, steps: int) -> Run:
    """The run with more steps, written to its folder."""
    before = run.config.training
    if is_in_sweep(run):
        raise VbsixError(f"{run.folder}: is part of a sweep, whose runs have the same number of steps.")
    if steps < before.steps:
        raise VbsixError(f"{run.folder}: has {before.steps} steps; give more to train it further.")
    if before.decay_share and steps > before.steps:
        raise VbsixError(
            f"{run.folder}: its learning rate has fallen to 0 at step {before.steps} (training.decay_share), so that "
            "it cannot be trained further. Begin a new run with more steps."
        )
    extended = dataclasses.replace(run.config, training=dataclasses.replace(before, steps=steps))
    if steps > before.steps:
        for file in ("result.json", "confidence.json"):  # of the policies so far
            remove_file(run.folder / file)
    description = read_json(run.folder / "run.json")
    write_json(run.folder / "run.json", {**description, "config": dataclasses.asdict(extended)})
    return dataclasses.replace(run, config=extended)


def warn_about_run(run: Run, dataset: Dataset) -> None:
    """Warns of what may keep a run from learning."""
    warn_about_words(dataset)
    training = run.config.training
    if run.source.endswith(SUFFIX):
        sees_targets = training.critic or OBJECTIVES.get(training.objective).expert
        warn_about(dataset, sees_targets=sees_targets)


def open_run(folder: Path) -> Run:
    """The run of a folder; of stages, the last that has a checkpoint; of a teaching, the student."""
    folder = _newest_stage(folder)
    if not (folder / "run.json").exists():
        raise VbsixError(f"{folder}: holds no run; a run's folder has a file run.json.")
    description = read_json(folder / "run.json")
    try:
        config = read_config(description["config"], description.get("method"))
        seeds, source = tuple(int(seed) for seed in description["seeds"]), str(description["data"])
        stage, inferred = int(description.get("stage", 0)), find_inferred(description, folder)
        return Run(folder, config, seeds, source, read_identity(description), stage, inferred)
    except VbsixError as error:
        raise VbsixError(f"{folder / 'run.json'}: {error}") from error
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise VbsixError(f"{folder / 'run.json'}: not the description of a run: {error!r}.") from error


def describe_inferred(run: Run, folder: Path) -> dict[str, str]:
    """Where the worlds are that teachers inferred, for a file in a folder. Both may be moved together."""
    return {"inferred": os.path.relpath(run.inferred.resolve(), folder.resolve())} if run.inferred else {}


def find_inferred(description: Mapping[str, Any], folder: Path) -> Path | None:
    """The path that `describe_inferred` described."""
    if "teachers" in description:
        raise VbsixError("begun with an earlier form of teaching, which this version cannot continue; begin it again.")
    return Path(os.path.normpath(folder / str(description["inferred"]))) if "inferred" in description else None


def is_staged(folder: Path) -> bool:
    """Whether a folder holds stages."""
    return (folder / STAGES_FILE).exists()


def is_teaching(folder: Path) -> bool:
    """Whether a folder holds a teaching."""
    return (folder / TEACHING_FILE).exists()


def stage_folder(folder: Path, stage: int) -> Path:
    """The folder of a stage, counted from 1."""
    return folder / f"stage-{stage}"


def _newest_stage(folder: Path) -> Path:
    if is_teaching(folder):
        if not is_staged(folder / STUDENT):
            raise VbsixError(f"{folder}: its student has not begun yet; continue with: vbsix train --resume {folder}")
        folder = folder / STUDENT
    if not is_staged(folder):
        return folder
    stages = range(len(read_json(folder / STAGES_FILE).get("stages", ())), 0, -1)
    begun = (stage_folder(folder, stage) for stage in stages)
    return next((one for one in begun if any(one.glob("checkpoints/step-*"))), stage_folder(folder, 1))


def open_words(folder: Path) -> Words:
    """The vocabulary of a run."""
    tensors, metadata = read_tensors(folder / "words.safetensors")
    return read_words(metadata, tensors["vectors"])


def load_best(run: Run, domain: Domain) -> Best:
    """The policies of a run's seeds at the steps at which they were best on dev."""
    if not run.best.exists():
        raise VbsixError(f"{run.folder}: has not been evaluated, so it has no best policies yet.")
    tensors, metadata = read_tensors(run.best)
    shapes = learner_shapes(domain, run.config, run.seeds)
    policies = jax.tree.map(jnp.asarray, from_tensors(tensors, shapes.networks.policy, run.best))
    return Best(policies, list(metadata["steps"]), list(metadata["scores"]))


def save_best(run: Run, best: Best) -> None:
    """Writes what `load_best` reads."""
    write_tensors(run.best, to_tensors(best.policies), {"steps": best.steps, "scores": best.scores})


def begin_from_start(run: Run, learners: Learner) -> Learner:
    """A run's first learners with the policies that it starts from. What those do not have keeps its initial values:
    the parameters that read a context.
    """
    policies = jax.tree.map(jnp.asarray, _join(read_tensors(run.start)[0], learners.networks.policy, run.start))
    average = None if learners.average is None else jax.tree.map(jnp.copy, policies)  # both are donated to a step
    return learners._replace(networks=learners.networks._replace(policy=policies), average=average)


def _join(tensors: Mapping[str, np.ndarray], policies: Any, path: Path) -> Any:
    """The tensors as policies, with the parameters that read a context from the policies given if they lack those."""
    named = {jax.tree_util.keystr(name): leaf for name, leaf in jax.tree_util.tree_leaves_with_path(policies)}
    drawn = {name: leaf for name, leaf in named.items() if name.startswith(".context") and name not in tensors}
    return from_tensors({**tensors, **drawn}, policies, path)


def save_result(
    run: Run,
    accuracies: Accuracies,
    best: Best,
    seconds: float,
    spurious: Mapping[str, Sequence[float | None]],
) -> dict[str, Any]:
    """Writes the result of a run to `result.json`.

    Args:
        run: the run.
        accuracies: after the last step.
        best: the policies that were best on dev.
        seconds: spent on training and evaluation.
        spurious: for each split, the spurious share of each seed's correct programs.
    """
    result = {
        "method": run.config.method,
        "recipe": run.config.recipe,
        "variant": run.config.variant,
        "domain": run.config.domain,
        "data": run.source,
        "steps": run.config.training.steps,
        "seconds": seconds,
        "accuracy": accuracies,
        "best": {"steps": best.steps, "score": best.scores},
        "spurious": spurious,
        "seeds": list(run.seeds),
        "config": dataclasses.asdict(run.config),
        **environment(),
    }
    write_json(run.folder / "result.json", result)
    return result


def is_in_sweep(run: Run) -> bool:
    """Whether a run belongs to a sweep."""
    return (run.folder.parent / SWEEP_FILE).exists()


def save_failure(run: Run, error: VbsixError) -> None:
    """Notes why a run of a sweep failed, so that the sweep continues without it."""
    write_json(run.folder / "failed.json", {"reason": str(error)})


def read_failure(run: Run) -> VbsixError | None:
    """Why a run of a sweep failed; None if it did not."""
    file = run.folder / "failed.json"
    return VbsixError(str(read_json(file).get("reason"))) if file.exists() else None


CONTINUE = " Continue with: "
"""What stands before a command that continues a run, at the end of messages."""


def resume_command(run: Run, *arguments: str) -> str:
    """What to type to continue a run, or the sweep or the stages that it belongs to."""
    own = origin_of(run.config.domain)
    folder = run.folder.parent if is_in_sweep(run) or run.stage else run.folder
    folder = next((above for above in folder.parents if is_teaching(above)), folder)
    return shlex.join(["vbsix", "train", *([own] if own else []), "--resume", str(folder), *arguments])


def new_folder(config: Config) -> Path:
    """The first of `runs/NAME-1`, `runs/NAME-2` and so on that is not there yet."""
    name = f"{config.domain}-{config.name}"
    return next(folder for number in count(1) if not (folder := Path("runs", f"{name}-{number}")).exists())
