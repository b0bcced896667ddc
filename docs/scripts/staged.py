"""Writes the result of a staged run: `python docs/scripts/staged.py RUN results/staged/NAME.json "COMMAND" [SPLIT...]`.

COMMAND is what trained it, with the name of its schedule behind `--stages`. The policies that were best on dev are
measured on each SPLIT, alone and as an ensemble; by default on dev. Give `dev test` only for a run that is to be
reported: test is read once for each.
"""

from __future__ import annotations

import shlex
import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from vbsix.evaluation.report import report
from vbsix.parsing.evaluation import predict_rows, read_split
from vbsix.parsing.loading import load, load_all
from vbsix.reproduction.runs import data_name, dev_curve, sum_up
from vbsix.runs.folder import Run
from vbsix.runs.metrics import read_metrics
from vbsix.runs.stages import open_stages
from vbsix.utilities.files import read_json, write_json
from vbsix.utilities.jax_settings import prepare_jax

OF_LAST = ("method", "recipe", "domain", "seeds", "steps", "accuracy", "best", "spurious")
OF_STAGE = ("steps", "seconds", "accuracy", "best", "spurious", "config")
MACHINE = ("device", "processor", "cores", "versions")


def staged_result(folder: Path, command: str, splits: Sequence[str] = ("dev",)) -> dict[str, Any]:
    """The numbers of all stages of a run that has ended, and those of the last one on some splits."""
    runs, words = open_stages(folder), shlex.split(command)
    last = read_json(runs[-1].folder / "result.json")
    result = {name: last[name] for name in (*OF_LAST, *MACHINE, "variant")}
    result |= {"data": data_name(runs[-1].source), "date": datetime.now(UTC).date().isoformat(), "command": command}
    result["schedule"] = words[len(words) - words[::-1].index("--stages")]  # the last: teachers have stages, too
    trained = runs[-1].folder
    parsers, ensemble = load_all(trained, best=True), load(trained, best=True, ensemble=True)
    of_best, of_ensemble = {}, {}
    for split in splits:
        rows = read_split(ensemble.domain, ensemble.config, runs[-1].source, split, own=True)
        of_best[split] = report([predict_rows(parser, rows) for parser in parsers]).accuracy
        of_ensemble[split] = report([predict_rows(ensemble, rows)]).accuracy
    result["best"] = {**result["best"], "accuracy": of_best}
    return {**result, "ensemble": {"accuracy": of_ensemble}, "stages": [_of_stage(run) for run in runs]}


def _of_stage(run: Run) -> dict[str, Any]:
    result, rows = read_json(run.folder / "result.json"), read_metrics(run.metrics)
    curves = {"dev": dev_curve(rows), "metrics": {"hit_longest": sum_up(rows, "hit_longest")}}
    return {**{name: result[name] for name in OF_STAGE}, **curves}


if __name__ == "__main__":
    prepare_jax()
    write_json(Path(sys.argv[2]), staged_result(Path(sys.argv[1]), sys.argv[3], sys.argv[4:] or ("dev",)))
