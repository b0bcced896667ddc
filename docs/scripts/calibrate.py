"""Calibrates the models that come with vbsix on SCONE's dev split: `python docs/scripts/calibrate.py DATA [MODEL...]`.

The weights of the models stay as they are. What turns probabilities into confidences is written, and what the
playground shows: the name of the data and the accuracy on test, because seed, step and confidence were chosen on dev.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from vbsix.data.scone import load_split
from vbsix.evaluation.report import Report, report
from vbsix.parsing.calibration import calibrate_parser
from vbsix.parsing.evaluation import predict_rows
from vbsix.parsing.loading import load, pretrained_models
from vbsix.utilities.files import read_tensors, write_tensors
from vbsix.utilities.jax_settings import prepare_jax

SPLITS = ("dev", "test")


def main(data: Path, names: Sequence[str]) -> None:
    prepare_jax()
    for name, path in pretrained_models().items():
        parser = load(path)
        if parser.provenance["data"] == "synthetic" or (names and name not in names):
            continue  # a run on generated data has calibrated its model
        dev, train = load_split(data, parser.domain, "dev"), load_split(data, parser.domain, "train")
        parser = calibrate_parser(parser, dev, [text for row in train for text in row.utterances])
        assert parser.confidence_model is not None
        found = {split: report([predict_rows(parser, load_split(data, parser.domain, split))]) for split in SPLITS}
        tensors, metadata = read_tensors(path)
        metadata["confidence"] = parser.confidence_model.to_json()
        accuracy = {length: round(found["test"].accuracy[length][0], 4) for length in ("1", "3", "5")}
        metadata["provenance"] |= {"data": "SCONE", "accuracy": accuracy, "accuracy_split": "test"}
        write_tensors(path, tensors, metadata)
        weights = ", ".join(f"{weight:.2f}" for weight in parser.confidence_model.weights)
        print(f"{name}: weights {weights}; threshold {parser.confidence_model.threshold:.2f};", end=" ")
        print("; ".join(f"{split}: {_describe(found[split])}" for split in SPLITS))


def _describe(found: Report) -> str:
    accuracies = ", ".join(f"{100 * found.accuracy[length][0]:.1f}" for length in ("1", "3", "5"))
    return f"accuracy {accuracies}, calibration error {found.calibration.error:.1%}"


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2:])
