"""Checks the examples of the playground with the models that come with vbsix, and finds others for guided searches.

Usage: python docs/scripts/playground_examples.py [MODEL...] [--find ROWS]

Without --find, it says which examples in src/vbsix/playground/examples.py hold. With it, it searches that many rows of
the built-in corpus for one in which merging, or the critic, wins, and prints the first of each as it stands there.
"""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Sequence

import vbsix
from vbsix.data.synthetic import generate
from vbsix.parsing.loading import pretrained_models
from vbsix.parsing.parser import Parser
from vbsix.playground.examples import CRITIC, EXAMPLES, GUIDED, MERGING, Example, Guided
from vbsix.playground.models import Model, load_models
from vbsix.playground.searching import search
from vbsix.show.inspection import Inspection
from vbsix.utilities.jax_settings import prepare_jax

SEED = 5
"""Of the rows that are searched: others than those of random worlds."""


def is_right(parser: Parser, one: Example) -> bool:
    """Whether a model gets an example right, and understands it."""
    found = parser.parse(one.world, one.utterances)
    return found.understood and found.readings[0].worlds[-1] == one.target


def wins(model: Model, one: Guided) -> bool:
    """Whether a search finds a program through the known worlds, and none without merging, or without the critic."""

    def found(space: str, critic: bool) -> tuple[Inspection, Inspection]:
        return search(model, one.world, one.worlds[-1], one.utterances, space=space, beam=one.beam, critic=critic)  # pyright: ignore[reportArgumentType]

    listed, drawn = found("execution", critic=True)
    if not listed.programs:
        return False
    steps = vbsix.execute(model.parser.domain, one.world, listed.programs[0].tokens)
    after = {step.commands: step.world for step in reversed(steps)}
    if tuple(after[number + 1] for number in range(len(one.worlds))) != one.worlds:
        return False
    merging = one.title == MERGING
    other, _ = found("program", critic=True) if merging else found("execution", critic=False)
    return not other.programs and (not merging or _is_seen(drawn))


def _is_seen(drawn: Inspection) -> bool:
    """Whether two arrows of a drawing lead to one card."""
    origins = Counter(end for _, end in {(edge.origin, edge.destination) for edge in drawn.transitions})
    return any(count > 1 and drawn.states[end].kind != "pruned" for end, count in origins.items())


def find(model: Model, title: str, rows: int) -> Guided | None:
    """The first row in which merging, or the critic, wins."""
    for one in generate(model.domain, rows, seed=SEED, utterances=3):
        world, *worlds = map(str, one.row.worlds)
        candidate = Guided(title, world, tuple(one.row.utterances), tuple(worlds), 4, "")
        if wins(model, candidate):
            return candidate
    return None


def main(names: Sequence[str], rows: int) -> None:
    prepare_jax()
    for model in load_models(list(pretrained_models().values())).values():
        if names and model.name not in names:
            continue
        for one in EXAMPLES[model.domain] if model.name in EXAMPLES else ():
            print(f"{model.name}: {one.title}: {'right' if is_right(model.parser, one) else 'WRONG'}")
        for one in GUIDED.get(model.name, ()):
            print(f"{model.name}: {one.title}: {'holds' if wins(model, one) else 'DOES NOT HOLD'}")
        if rows:
            titles = [MERGING, *([CRITIC] if model.parser.critic is not None else [])]
            for title in titles:
                print(f"{model.name}: {find(model, title, rows) or f'no row of {rows} for {title!r}'}")


if __name__ == "__main__":
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("names", nargs="*", metavar="MODEL")
    arguments.add_argument("--find", type=int, default=0, metavar="ROWS", help="rows to search")
    given = arguments.parse_args()
    main(given.names, given.find)
