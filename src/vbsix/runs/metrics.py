"""What is measured while training: sums that wait for their row, and the files that the rows go to."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager, suppress
from pathlib import Path
from typing import Any

import numpy as np

from vbsix.evaluation.accuracy import Accuracies
from vbsix.runs.tensorboard import EventFile
from vbsix.training.objective import Metrics
from vbsix.utilities.errors import VbsixError
from vbsix.utilities.files import write_bytes
from vbsix.utilities.processes import writes_files

Row = dict[str, Any]
"""The metrics of one seed over the steps since its row before, with the accuracy where it was measured."""

METRICS: Mapping[str, Mapping[str, str]] = {
    "every run": {
        "step": "the step that the line ends at",
        "seed": "the seed",
        "stage": "runs in stages: the number of the stage; its steps are counted from 0",
        "accuracy": "at evaluation steps: the share of examples whose last world is right, by split and number of "
        "utterances",
        "hit": "hit accuracy: the share of examples for which a correct program was found",
        "hit_longest": "the same for the examples with the most instructions",
        "policy_loss": "the policy's loss, summed over the states of an example",
        "gradient_norm": "the norm of the gradient of all networks",
    },
    "search": {
        "paths": 'program prefixes that the states of a beam stand for, averaged over iterations ("paths in beam" in '
        "the paper)",
        "paths_longest": "the same for the longest examples",
        "correct_discarded": "execution space: states on a path to the target that the beam held in one iteration "
        "and dropped in another. Counted every 50 steps",
        "correct_discarded_longest": "the same for the longest examples",
        "critic_window_share": "with a critic: the share of the beam's states that are in the critic's window",
        "programs": '`training.programs = "extracted"`: programs extracted from the graph',
        "dropped_programs": "of these, how many did not fit into `training.policy_states`",
        "dropped_weight": '`training.programs = "graph"`: the share of the correct programs\' probability that runs '
        "through states which did not fit into `training.policy_states`",
    },
    "critic": {
        "critic_loss": "the critic's log-loss, summed over the states of an example",
        "value_error": "mean absolute difference between the critic's value and its label, an estimate of "
        "the expected reward (Figure 6 of the paper)",
        "value_error_high": "the same for states with an expected reward above 0.7",
        "value_states": "states of an example that the critic is updated on",
        "dropped_value_states": "states that did not fit into `training.value_states`",
        "dropped_negatives": '`training.labels = "paper"`: incorrect terminal states that did not fit into '
        "`search.negatives`",
    },
    "baselines": {
        "expert_loss": "Expert-MML: the loss of the expert policy",
        "reward": "REINFORCE: the share of sampled programs that are correct",
    },
}
"""What each metric of `metrics.jsonl` means, by the runs that have it."""
_LAST = 1 << 16
"""Bytes at the end of a file in which its last row lies."""


class PendingMetrics:
    """Sums over the steps since the last row. A checkpoint keeps them, so that a resumed run writes the same rows."""

    def __init__(self, saved: Mapping[str, Any] | None = None):
        self.sums = {name: np.asarray(sums, np.float64) for name, sums in (saved or {}).items()}

    def add(self, metrics: Metrics) -> None:
        for name, mean in metrics.items():
            self.sums[name] = self.sums.get(name, np.float64(0)) + np.asarray(mean, np.float64)

    def to_json(self) -> dict[str, list[list[float]]]:
        return {name: sums.tolist() for name, sums in self.sums.items()}

    def take(self, step: int, seeds: Sequence[int], accuracies: Accuracies) -> list[Row]:
        """Returns a row for each seed and resets the sums; a mean over nothing is left out."""
        rows = []
        for place, seed in enumerate(seeds):
            means = {name: (float(total[place]), float(count[place])) for name, (total, count) in self.sums.items()}
            row: Row = {"step": step, "seed": seed}
            row |= {name: total / count for name, (total, count) in means.items() if count}
            if accuracies:
                row["accuracy"] = {
                    split: {length: by_seed[place] for length, by_seed in by_length.items()}
                    for split, by_length in accuracies.items()
                }
            rows.append(row)
        self.sums = {}
        return rows


class MetricsFile:
    """`metrics.jsonl` and TensorBoard's event file beside it.

    Rows from `step` on, which a resumed run writes again, are taken out first. Of several processes that compute
    together, one writes.

    Attributes:
        kept: the rows that were there already.
    """

    def __init__(self, path: Path, step: int):
        self.kept = [row for row in read_metrics(path) if row["step"] < step]
        write_bytes(path, _to_lines(self.kept).encode())
        self._path, self._files = path, ExitStack()
        self._events = None
        if writes_files():
            self._file = self._files.enter_context(path.open("a", encoding="utf-8"))
            self._events = self._files.enter_context(closing(EventFile(path.parent)))
            with self._naming():
                self._events.write(self.kept)

    def __enter__(self) -> MetricsFile:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        with suppress(OSError) if kind else self._naming():  # an error that was reported is the first
            self._files.close()

    def write(self, rows: Sequence[Row]) -> None:
        if not self._events:
            return
        with self._naming():
            self._file.write(_to_lines(rows))
            self._file.flush()
            self._events.write(rows)

    @contextmanager
    def _naming(self) -> Iterator[None]:
        """Names the file in errors: a full disk does not say which one it was."""
        try:
            yield
        except OSError as error:
            raise OSError(error.errno, error.strerror, str(self._path)) from error


def read_metrics(path: Path) -> list[Row]:
    """The rows of a metrics file; none if there is no file. A line that a killed run left unfinished is passed over."""
    lines = path.read_text(encoding="utf-8").splitlines(keepends=True) if path.exists() else []
    rows = []
    for number, line in enumerate(lines, start=1):
        if line.endswith("\n"):
            try:
                row = json.loads(line)
                rows.append({**row, "step": int(row["step"]), "seed": int(row["seed"])})
            except (ValueError, KeyError, TypeError) as error:
                raise VbsixError(f"{path}:{number}: not a row of metrics; take the line out.") from error
    return rows


def last_step(path: Path) -> int:
    """The step of the last row of a metrics file, which another process may be writing; 0 if there is none."""
    if not path.exists():
        return 0
    with path.open("rb") as file:
        file.seek(max(0, file.seek(0, os.SEEK_END) - _LAST))
        rows = file.read().split(b"\n")[:-1]  # what follows the last newline is unfinished
    try:
        return int(json.loads(rows[-1])["step"])
    except (IndexError, KeyError, TypeError, ValueError):
        return 0


def _to_lines(rows: Iterable[Row]) -> str:
    return "".join(json.dumps(row) + "\n" for row in rows)


def newest_accuracy(path: Path, seed: int) -> dict[str, float]:
    """The newest accuracy of a seed on dev, by number of utterances; empty before the first evaluation."""
    rows = [row for row in read_metrics(path) if row["seed"] == seed and row.get("accuracy", {}).get("dev")]
    return rows[-1]["accuracy"]["dev"] if rows else {}
