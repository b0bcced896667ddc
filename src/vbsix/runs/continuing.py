"""Runs that continue the policies of another run."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from jaxtyping import Int

from vbsix.domains.base import Domain
from vbsix.runs.checkpoints import load_networks, to_tensors
from vbsix.runs.folder import Run, Start, load_best
from vbsix.runs.metrics import read_metrics
from vbsix.training.chunk import learner_shapes
from vbsix.utilities.errors import VbsixError
from vbsix.utilities.files import read_tensors
from vbsix.utilities.trees import choose


def continue_run(source: Run, domain: Domain) -> Start:
    """Each seed continues the policy of the same seed at its best step on dev, or else the best seed's."""
    if source.best.exists():
        policies = load_best(source, domain).policies
    else:
        shapes = learner_shapes(domain, source.config, source.seeds).networks
        found = load_networks(source.checkpoints, shapes, source.seeds)
        if found is None:
            raise VbsixError(f"{source.folder}: has no checkpoint yet, so there is nothing to continue.")
        policies = found[1].policy
    best = best_seed(source, best=True)
    return lambda run, dataset: to_tensors(choose(policies, seed_places(run, source.seeds, best)))


def seed_places(run: Run, seeds: Sequence[int], otherwise: int) -> Int[np.ndarray, " S"]:
    """For each seed of a run, its place among others; that of another seed where it is not there."""
    return np.array([list(seeds).index(seed if seed in seeds else otherwise) for seed in run.seeds])


def best_seed(run: Run, best: bool = False) -> int:
    """The seed with the best mean accuracy on dev at the last evaluation; the first, if there was none.

    With `best`, the one with the best accuracy at any evaluation.
    """
    if best and run.best.exists():
        return run.seeds[int(np.argmax(read_tensors(run.best)[1]["scores"]))]
    latest = dict.fromkeys(run.seeds, 0.0)
    for row in read_metrics(run.metrics):
        if accuracies := row.get("accuracy", {}).get("dev"):
            latest[row["seed"]] = sum(accuracies.values()) / len(accuracies)
    return max(run.seeds, key=latest.__getitem__)
