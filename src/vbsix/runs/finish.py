"""The end of a run: what is measured then, and its result."""

from __future__ import annotations

from typing import Any, NamedTuple

from vbsix.data.dataset import Dataset
from vbsix.evaluation.accuracy import Predicted
from vbsix.evaluation.spurious import Shares, predict_longest, spurious_shares
from vbsix.runs.calibration import calibrate_run
from vbsix.runs.folder import Run, resume_command, save_result
from vbsix.runs.loop import Interrupted, Observer, Trained, train
from vbsix.utilities.processes import any_process


class Measured(NamedTuple):
    """What is measured at the end of a run."""

    predictions: dict[str, Predicted]
    """For the longest examples of each split."""
    spurious: dict[str, Shares]
    result: dict[str, Any]
    """What `result.json` holds."""


def train_to_end(run: Run, dataset: Dataset, observer: Observer) -> Trained:
    """Trains a run to its last step; a wish to stop that comes with that step counts too."""
    trained = train(run, dataset, observer)
    if any_process(observer.wants_to_stop()):
        raise Interrupted(f"Stopped before the result was measured. Continue with: {resume_command(run)}")
    return trained


def measure_run(run: Run, dataset: Dataset, trained: Trained) -> Measured:
    """Measures a run that has ended, and writes its result."""
    networks = trained.learners.evaluated
    predictions = predict_longest(dataset, networks, run.config)
    spurious = spurious_shares(dataset, networks, run.config, predictions)
    calibrate_run(run, dataset, networks.policy)
    result = save_result(run, trained.accuracies, trained.best, trained.seconds, spurious)
    return Measured(predictions, spurious, result)
