"""What predictions get right and wrong: by position, by kind of command, and the mistakes worth looking at.

The kind of a command follows from what it does to the world, so it is known where programs are not.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from vbsix.domains.names import base_name
from vbsix.evaluation.report import Prediction

NOTHING = "nothing"


def kind_of_change(domain: str, before: str, after: str) -> str:
    """What a command did to a world, in a word."""
    if before == after:
        return NOTHING
    return _KINDS.get(base_name(domain), lambda before, after: "change")(_cells(before), _cells(after))


def _scene(before: list[str], after: list[str]) -> str:
    stood, stands = ([place for place, cell in enumerate(cells) if cell != "__"] for cells in (before, after))
    if len(stood) != len(stands):
        return "come" if len(stands) > len(stood) else "leave"
    return "swap hats" if stood == stands else "move"


def _alchemy(before: list[str], after: list[str]) -> str:
    had, has = ([len(cell.replace("_", "")) for cell in cells] for cells in (before, after))
    if sum(had) != sum(has):
        return "drain"
    return "mix" if had == has else "pour"


def _tangrams(before: list[str], after: list[str]) -> str:
    if len(before) == len(after):
        return "swap"
    return "add" if len(after) > len(before) else "remove"


_KINDS: Mapping[str, Callable[[list[str], list[str]], str]] = {
    "scene": _scene,
    "alchemy": _alchemy,
    "tangrams": _tangrams,
}


def _cells(world: str) -> list[str]:
    return [word.partition(":")[2] for word in world.split()]


@dataclass(frozen=True)
class ReadStep:
    """A command that was predicted in the right world."""

    position: int
    """Of its utterance, from 1."""
    kind: str
    """What it should have done."""
    predicted: str | None
    """What it did; None where no program was found."""
    right: bool


def read_steps(domain: str, predictions: Iterable[Prediction]) -> list[ReadStep]:
    """The steps of predictions for whole rows, up to the first wrong world of each."""
    return [step for one in predictions if one.length == len(one.row.utterances) for step in _steps(domain, one)]


def _steps(domain: str, prediction: Prediction) -> Iterator[ReadStep]:
    readings = prediction.parse.readings
    before = prediction.parse.world
    for place, right in enumerate(prediction.right):
        after = prediction.row.worlds[place + 1]
        if after is None or right is None:
            return
        predicted = kind_of_change(domain, before, readings[0].worlds[place]) if readings else None
        yield ReadStep(place + 1, kind_of_change(domain, before, after), predicted, right)
        if not right:
            return
        before = after


@dataclass(frozen=True)
class Share:
    """How many of some steps are right."""

    name: str
    count: int
    right: int

    @property
    def share(self) -> float:
        return self.right / self.count


def shares(steps: Sequence[ReadStep], name_of: Callable[[ReadStep], str | int]) -> list[Share]:
    """The steps in groups by name or number, sorted."""
    counts, right = Counter(map(name_of, steps)), Counter(name_of(step) for step in steps if step.right)
    return [Share(str(name), counts[name], right[name]) for name in sorted(counts)]


def confusion(steps: Iterable[ReadStep]) -> Mapping[str, Counter[str]]:
    """For each kind that was wanted how often each kind was predicted; where nothing was, nothing is confused."""
    table: dict[str, Counter[str]] = {}
    for step in steps:
        if step.predicted is not None:
            table.setdefault(step.kind, Counter())[step.predicted] += 1
    return dict(sorted(table.items()))


def confident_mistakes(by_seed: Sequence[Sequence[Prediction]], most: int) -> list[tuple[int, Prediction]]:
    """Predictions that go wrong at their last utterance and, as far as is known, not before; the most confident first,
    each row once; with their seed's place.
    """
    wrong = [
        (place, one)
        for place, predictions in enumerate(by_seed)
        for one in predictions
        if one.parse.readings and one.right[-1] is False and False not in one.right[:-1]
    ]
    return _first_of_rows(wrong, most)


def spurious_examples(by_seed: Sequence[Sequence[Prediction]], most: int) -> list[tuple[int, Prediction]]:
    """Right predictions that pass through wrong worlds, the most confident first, each row once."""
    found = [(place, one) for place, predictions in enumerate(by_seed) for one in predictions if one.spurious]
    return _first_of_rows(found, most)


def _first_of_rows(found: Iterable[tuple[int, Prediction]], most: int) -> list[tuple[int, Prediction]]:
    chosen: dict[tuple[str | None, ...], tuple[int, Prediction]] = {}
    for place, one in sorted(found, key=lambda pair: -pair[1].parse.confidence):
        chosen.setdefault((one.row.worlds[0], *one.row.utterances), (place, one))
    return list(chosen.values())[:most]
