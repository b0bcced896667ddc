"""The models that a playground shows, by name."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from vbsix.domains.base import Domain
from vbsix.parsing.loading import load_all
from vbsix.parsing.parser import Parser
from vbsix.runs.folder import open_run
from vbsix.runs.metrics import newest_accuracy


@dataclass(frozen=True, eq=False)
class Model:
    """A parser with its name."""

    name: str
    parser: Parser
    accuracy: Mapping[str, float] = field(default_factory=dict)
    """The share of right outcomes by number of instructions, where it is known."""
    accuracy_split: str = "dev"
    """The split that this was measured on."""

    @property
    def domain(self) -> str:
        return self.parser.domain.name


def load_models(paths: Sequence[Path], domain: Domain | None = None) -> dict[str, Model]:
    """All models of run folders (each seed is one) and of exported files, by name."""
    models: dict[str, Model] = {}
    for path in paths:
        for model in _load(path, domain):
            unique = next(wanted for wanted in _numbered(model.name) if wanted not in models)
            models[unique] = replace(model, name=unique)
    return models


def _load(path: Path, domain: Domain | None) -> Iterator[Model]:
    parsers = load_all(path, domain=domain)
    name = path.resolve().name if path.is_dir() else path.stem
    run = open_run(path) if path.is_dir() else None
    for parser in parsers:
        seed, own = parser.provenance["seed"], parser.provenance.get("accuracy")
        accuracy = newest_accuracy(run.metrics, seed) if run is not None else own if isinstance(own, dict) else {}
        split = str(parser.provenance.get("accuracy_split", "dev"))
        yield Model(f"{name}, seed {seed}" if len(parsers) > 1 else name, parser, accuracy, split)


def _numbered(name: str) -> Iterator[str]:
    yield name
    number = 2
    while True:
        yield f"{name} ({number})"
        number += 1
