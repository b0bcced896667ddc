"""Runs that are trained by one program, side by side."""

from __future__ import annotations

import time
from collections.abc import Container, Iterator, Sequence
from itertools import accumulate
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Bool

from vbsix.config.schema import to_settings
from vbsix.config.variation import inputs, with_inputs
from vbsix.data.dataset import Dataset
from vbsix.data.examples import Arrays
from vbsix.evaluation.accuracy import Accuracies, evaluate_splits
from vbsix.runs.folder import Run, begin_from_start
from vbsix.search.sharding import replicate
from vbsix.training.chunk import Members, create_learners, learner_shapes, learners_at_once, make_members, train_chunk
from vbsix.training.objective import Metrics
from vbsix.training.step import Learner, whole_span
from vbsix.training.symmetry import Renaming, make_renaming
from vbsix.utilities.errors import VbsixError

TRIED = 5
"""Steps of a chunk that is tried."""


class Group:
    """Runs trained side by side. Learners have one axis: the seeds of the first run, of the second, and so on."""

    def __init__(self, runs: Sequence[Run], datasets: Sequence[Dataset]):
        self.runs, self.datasets = runs, datasets
        ends = list(accumulate(len(run.seeds) for run in runs))
        self.slices = [slice(end - len(run.seeds), end) for run, end in zip(runs, ends, strict=True)]
        self.distinct = list({id(dataset): dataset for dataset in datasets}.values())

    def start(self) -> Learner:
        """Learners before the first step."""
        domain, first = self.datasets[0].domain, self.runs[0].config
        starts = [name for name, taker in inputs().items() if taker == "start"]
        learners = []
        for run in self.runs:
            settings = to_settings(run.config)
            own = with_inputs(first, {name: settings[name] for name in starts})  # compiled once where these are equal
            fresh = create_learners(domain, own, jnp.asarray(run.seeds))
            learners.append(begin_from_start(run, fresh) if run.start.exists() else fresh)
        return self.join(learners)

    def join(self, learners: Sequence[Learner]) -> Learner:
        """The learners of all runs, on the devices.

        Networks hold their settings; those of one program have the first run's.
        """
        structure, leaves = jax.tree.structure(learners[0]), [jax.tree.leaves(tree) for tree in learners]
        joined = leaves[0] if len(leaves) == 1 else [np.concatenate(parts) for parts in zip(*leaves, strict=True)]
        together = jax.tree.unflatten(structure, joined)
        return replicate(together, self.datasets[0].domain, self.runs[0].config.training.batch)

    def part(self, tree: Any, place: int) -> Any:
        """What a tree has of one run."""
        return jax.tree.map(lambda leaf: leaf[self.slices[place]], tree)

    def others(self, failed: Container[int]) -> Iterator[tuple[int, Run]]:
        """The runs that have not failed, and their places."""
        return ((place, run) for place, run in enumerate(self.runs) if place not in failed)

    def inputs(self) -> tuple[Members, Any, Arrays, Renaming | None]:
        """What a program takes: members, word vectors, the examples of all datasets one behind the other, and
        how constants are permuted.
        """
        most = max(dataset.most_instructions for dataset in self.distinct)
        arrays = [dataset.arrays(dataset.examples, most) for dataset in self.distinct]
        spans = None
        if len(arrays) > 1:
            firsts = accumulate((len(own.instructions) for own in arrays), initial=0)
            of_dataset = [whole_span(own)._replace(first=first) for own, first in zip(arrays, firsts, strict=False)]
            spans = [of_dataset[self.distinct.index(dataset)] for dataset in self.datasets]
        examples = jax.tree.map(lambda *leaves: np.concatenate(leaves), *arrays)
        members = make_members([run.config for run in self.runs], [run.seeds for run in self.runs], spans)
        words, domain = self.datasets[0].words, self.datasets[0].domain
        renaming = make_renaming(domain, words) if self.runs[0].config.training.symmetry else None
        return members, words.vectors, examples, renaming

    def evaluate(self, policies: Any) -> list[Accuracies]:
        """The accuracies of each run, on its own splits."""
        found: dict[int, Accuracies] = {}
        for dataset in self.distinct:
            places = [place for place, own in enumerate(self.datasets) if own is dataset]
            parts = [self.part(policies, place) for place in places]
            together = jax.tree.map(lambda *leaves: jnp.concatenate(leaves), *parts) if len(parts) > 1 else parts[0]
            accuracies = evaluate_splits(dataset, together, self.runs[0].config)
            ends = list(accumulate(len(self.runs[place].seeds) for place in places))
            for place, end in zip(places, ends, strict=True):
                own = slice(end - len(self.runs[place].seeds), end)
                found[place] = {
                    split: {length: shares[own] for length, shares in by_length.items()}
                    for split, by_length in accuracies.items()
                }
        return [found[place] for place in range(len(self.runs))]

    def failures(self, step: int, learners: Learner, sums: Metrics) -> Iterator[tuple[int, VbsixError]]:
        """The runs that have numbers which are not finite after the chunk that began at a step, and their places."""
        finite = np.asarray(_finite(learners.networks))
        totals = {name: np.isfinite(np.asarray(mean.total)) for name, mean in sums.items()}
        for place, run in enumerate(self.runs):
            own = self.slices[place]
            wrong = sorted(name for name, good in totals.items() if not good[own].all())
            wrong = wrong or ([] if finite[own].all() else ["parameters"])
            if wrong:
                yield (
                    place,
                    VbsixError(
                        f"{run.folder}: not finite after step {step}: {', '.join(wrong)}. The checkpoints before "
                        "that are intact. Try a new run with a smaller training.learning_rate."
                    ),
                )

    def own(self, learners: Learner, place: int) -> Learner:
        """The learners of one run, whose networks hold the run's own settings."""
        run, leaves = self.runs[place], jax.tree.leaves(self.part(learners, place))
        structure = jax.tree.structure(learner_shapes(self.datasets[place].domain, run.config, run.seeds))
        return jax.tree.unflatten(structure, leaves)


def join_accuracies(accuracies: Sequence[Accuracies]) -> Accuracies:
    """The accuracies of several runs as if they were one with all their seeds."""
    return {
        split: {length: [share for own in accuracies for share in own[split][length]] for length in by_length}
        for split, by_length in accuracies[0].items()
    }


@jax.jit
def _finite(tree: Any) -> Bool[jax.Array, " S"]:
    """Whether all numbers of each learner are finite."""
    flags = [jnp.all(jnp.isfinite(leaf), axis=tuple(range(1, leaf.ndim))) for leaf in jax.tree.leaves(tree)]
    return jnp.all(jnp.stack(flags), axis=0)


def lacks_memory(error: Exception) -> bool:
    """Whether a device has failed because it has too little memory: then it fails again."""
    return "RESOURCE_EXHAUSTED" in str(error).partition("\n")[0]


def describe_device_error(error: Exception) -> str:
    """What went wrong on the device, and what to do about it."""
    first = str(error).partition("\n")[0]
    if lacks_memory(error):
        less = "train fewer seeds or runs at once, or with a smaller search.beam or training.batch"
        return f"the device has too little memory: {less} ({first})."
    return f"the device failed: {first}."


class Trial(NamedTuple):
    """What a program needs, measured."""

    compile_seconds: float
    memory: int
    """Bytes on the device."""
    steps_per_second: float


def try_program(runs: Sequence[Run], datasets: Sequence[Dataset], steps: int = TRIED) -> Trial:
    """Compiles the program of some runs, with a critic that ranks if they have one, and times some steps from the
    start.
    """
    config, group, domain = runs[0].config, Group(runs, datasets), datasets[0].domain
    learners = group.start()
    members, vectors, examples, renaming = replicate(group.inputs(), domain, config.training.batch)
    begun = time.perf_counter()
    lowered = train_chunk.lower(
        domain,
        config,
        learners,
        members,
        vectors,
        examples,
        jnp.int32(0),
        renaming,
        steps=steps,
        critic_ranks=config.training.critic,
        at_once=learners_at_once([run.seeds for run in runs]),
    )
    try:
        compiled = lowered.compile()
    except jax.errors.JaxRuntimeError as error:
        raise VbsixError(describe_device_error(error)) from error
    compile_seconds = time.perf_counter() - begun
    needs: Any = compiled.memory_analysis()  # None where the backend does not know
    parts = [getattr(needs, f"{part}_size_in_bytes", 0) for part in ("temp", "argument", "output")]
    speeds = []
    for first in (0, steps, 2 * steps):
        begun = time.perf_counter()
        with domain.alone():
            try:
                learners, sums = compiled(learners, members, vectors, examples, jnp.int32(first), renaming)
                jax.block_until_ready(sums)
            except jax.errors.JaxRuntimeError as error:
                domain.raise_failure()
                raise VbsixError(describe_device_error(error)) from error
            domain.raise_failure()
        speeds.append(steps / (time.perf_counter() - begun))
    return Trial(compile_seconds, sum(parts), max(speeds))
