"""Calibrates the models that come with vbsix on SCONE's dev split: `python docs/scripts/calibrate.py DATA [NAME...]`.

The weights of the models stay as they are. Only what turns probabilities into confidences is written, and the accuracy
on dev, which the playground shows.
"""

from __future__ import annotations

import sys
from collections.abc import Collection
from pathlib import Path

from vbsix.data.scone import load_split
from vbsix.evaluation.report import report
from vbsix.parsing.calibration import calibrate_parser
from vbsix.parsing.evaluation import predict_rows
from vbsix.parsing.loading import load, pretrained_models
from vbsix.utilities.files import read_tensors, write_tensors
from vbsix.utilities.jax_settings import prepare_jax


def main(data: Path, names: Collection[str]) -> None:
    """Calibrates the models of some names, or all of them."""
    prepare_jax()
    for name, path in pretrained_models().items():
        if names and name not in names:
            continue
        parser = load(path)
        if parser.provenance["data"] == "synthetic":
            continue  # its run has calibrated it
        dev, train = load_split(data, parser.domain, "dev"), load_split(data, parser.domain, "train")
        parser = calibrate_parser(parser, dev, [text for row in train for text in row.utterances])
        assert parser.confidence_model is not None
        found = report([predict_rows(parser, dev)])
        tensors, metadata = read_tensors(path)
        metadata["confidence"] = parser.confidence_model.to_json()
        accuracy = {length: round(found.accuracy[length][0], 4) for length in ("1", "3", "5")}
        metadata["provenance"] = {**metadata["provenance"], "accuracy": accuracy}
        write_tensors(path, tensors, metadata)
        weights = ", ".join(f"{weight:.2f}" for weight in parser.confidence_model.weights)
        print(f"{name}: weights {weights}; threshold {parser.confidence_model.threshold:.2f};", end=" ")
        print(f"calibration error {found.calibration.error:.1%}")


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2:])
