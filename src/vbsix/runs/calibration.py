"""The confidence models of a run: fitted on its dev set at the end of training, one for each seed."""

from __future__ import annotations

from typing import Any

import numpy as np

from vbsix.data.dataset import Dataset
from vbsix.data.examples import Arrays
from vbsix.evaluation.accuracy import predict_examples
from vbsix.evaluation.confidence import ConfidenceModel, Outcomes, corrupt, fit_confidence, read_confidence, word_rarity
from vbsix.models import PolicyNetwork
from vbsix.runs.folder import Run
from vbsix.utilities.errors import VbsixError
from vbsix.utilities.files import read_json, write_json

FILE = "confidence.json"


def calibrate_run(run: Run, dataset: Dataset, policies: PolicyNetwork) -> None:
    """Fits a confidence model for each seed on the run's first split, and writes them into its folder.

    A seed that gets nothing right has none; nor has a run without a split.
    """
    if not dataset.splits or not next(iter(dataset.splits.values())).rows:
        return
    split, vocabulary = next(iter(dataset.splits.values())), len(dataset.words.words)
    clean, corrupted = [], []
    for length in run.config.data.evaluation:
        arrays = dataset.arrays(split.examples(length))
        clean.append(_predict(run, dataset, policies, arrays))
        for how in ("unknown", "random"):
            words = corrupt(np.asarray(arrays.words), np.asarray(arrays.instructions), how, vocabulary)
            corrupted.append(_predict(run, dataset, policies, arrays._replace(words=words)))
    texts = [dataset.words.encode(text) for row in dataset.train.rows for text in row.utterances]
    rarity = word_rarity(texts, vocabulary)
    seeds: dict[str, Any] = {}
    for place, seed in enumerate(run.seeds):
        found = fit_confidence([one[place] for one in clean], [one[place] for one in corrupted], rarity)
        if found is not None:
            seeds[str(seed)] = {**found.to_json(), "rarity": None}
    write_json(run.folder / FILE, {"rarity": rarity.tolist(), "seeds": seeds})


def _predict(run: Run, dataset: Dataset, policies: PolicyNetwork, arrays: Arrays) -> list[Outcomes]:
    """The outcomes of each seed."""
    settings = run.config.run
    found = predict_examples(
        dataset.domain,
        policies,
        dataset.words.vectors,
        arrays,
        beam=settings.evaluation_beam,
        batch=settings.evaluation_batch,
    )
    assert found.log_commands is not None and found.log_outcome is not None
    shared = np.asarray(arrays.words), found.instructions
    parts = zip(found.log_commands, found.log_outcome, found.correct, strict=True)
    return [Outcomes(commands, outcome, *shared, correct) for commands, outcome, correct in parts]


def open_confidence(run: Run, seed: int, words: int) -> ConfidenceModel | None:
    """The confidence model of a seed; None where there is none for a vocabulary of that size."""
    path = run.folder / FILE
    if not path.exists():
        return None
    saved = read_json(path)
    try:
        of_seed = saved["seeds"].get(str(seed))
        return of_seed and read_confidence({**of_seed, "rarity": saved["rarity"]}, words)
    except (AttributeError, KeyError, TypeError, VbsixError) as error:
        raise VbsixError(f"{path}: not a file that `vbsix train` has written.") from error
