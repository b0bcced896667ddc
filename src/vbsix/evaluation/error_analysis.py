"""What predictions get right and wrong: by position, by kind of command, and the mistakes worth looking at.

The kind of a command follows from what it does to the world, so it is known where programs are not.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from vbsix.domains.changes import FIGURE_NAMES, NAMES, NOTHING, change_between, units
from vbsix.evaluation.report import Prediction


def kind_of_change(domain: str, before: str, after: str) -> str:
    """What a command did to a world, in a word."""
    if before == after:
        return NOTHING
    change = change_between(domain, before, after)
    return "change" if change is None else change.kind


def arguments_of_change(domain: str, before: str, after: str) -> dict[str, str]:
    """What a command acted on, by name; empty where it is not known. Numbers are positions, from 1."""
    change = change_between(domain, before, after)
    if change is None:
        return {}
    places = [str(place + 1) for place in change.places]
    match change.kind:
        case "leave":
            return {"person": places[0]}
        case "come":
            shirt, hat = change.after[0]
            return {"position": places[0], "shirt": COLOURS[shirt], "hat": COLOURS[hat]}
        case "move":
            return {"person": places[0], "position": places[1]}
        case "swap hats":
            return {"people": " and ".join(places)}
        case "pour":
            return {"from": places[0], "into": places[1]}
        case "drain":
            amount = units(change.before[0]) - units(change.after[0])
            return {"beaker": places[0], "amount": f"{amount} unit{'s' * (amount != 1)}"}
        case "mix":
            return {"beaker": places[0]}
        case "swap":
            return {"figures": " and ".join(places)}
        case "add":
            return {"position": places[0], "which figure": f"figure {FIGURE_NAMES[int(change.after[0])]}"}
        case "remove":
            return {"figure": places[0]}
        case _:
            return {}


COLOURS = {**NAMES, "_": "none"}
"""Of shirts and hats."""

TO_EARLIER = "an earlier instruction"
REFERENCES = {
    TO_EARLIER: "it he she him her his they them that this again undo repeat reverse same back other",
    "a colour": "red yellow green orange purple blue brown",
    "an end or the middle": "last end leftmost rightmost left right middle far final",
    "a number": "first second third fourth fifth sixth seventh eighth ninth tenth one two three four five six seven",
}
"""Kinds of reference and words that show them; of several, the first counts."""
_ORDINAL = re.compile(r"\d+(st|nd|rd|th)?")


def kind_of_reference(utterance: str) -> str:
    """How an instruction refers to what it is about, judging by its words."""
    words = {word.strip(".,!?'") for word in utterance.lower().split()}
    for kind, known in REFERENCES.items():
        if words & set(known.split()):
            return kind
    return "a number" if any(_ORDINAL.fullmatch(word) for word in words) else "something else"


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
    reference: str = ""
    """How its utterance refers to things."""
    wanted_arguments: Mapping[str, str] = field(default_factory=dict)
    """What it should have acted on."""
    predicted_arguments: Mapping[str, str] = field(default_factory=dict)


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
        reached = readings[0].worlds[place] if readings else None
        yield ReadStep(
            place + 1,
            kind_of_change(domain, before, after),
            None if reached is None else kind_of_change(domain, before, reached),
            right,
            kind_of_reference(prediction.parse.utterances[place]),
            arguments_of_change(domain, before, after),
            {} if reached is None else arguments_of_change(domain, before, reached),
        )
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


def argument_shares(steps: Iterable[ReadStep]) -> list[Share]:
    """For each argument of each kind of command, how often it was right where the kind was."""
    counts: Counter[str] = Counter()
    right: Counter[str] = Counter()
    for step in steps:
        if step.predicted == step.kind:
            for name, wanted in step.wanted_arguments.items():
                counts[f"{step.kind}: {name}"] += 1
                right[f"{step.kind}: {name}"] += step.predicted_arguments.get(name) == wanted
    return [Share(name, counts[name], right[name]) for name in sorted(counts)]


def argument_confusion(steps: Iterable[ReadStep], most: int) -> list[tuple[str, str, str, int]]:
    """The arguments most often taken for others: which one, what was wanted, what was done, and how often."""
    table: Counter[tuple[str, str, str]] = Counter()
    for step in steps:
        if step.predicted == step.kind:
            for name, wanted in step.wanted_arguments.items():
                done = step.predicted_arguments.get(name, "")
                if done != wanted:
                    table[f"{step.kind}: {name}", wanted, done] += 1
    return [(*key, count) for key, count in sorted(table.items(), key=lambda item: (-item[1], item[0]))[:most]]


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
