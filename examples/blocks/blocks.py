"""Stacks of coloured blocks, moved by instructions: a domain in plain Python.

`python blocks.py 2000 > blocks.jsonl` makes examples; `vbsix train blocks:Blocks --data blocks.jsonl` learns from them.
"""

from __future__ import annotations

import json
import random
import sys
from typing import NamedTuple

COLOURS = ("red", "blue", "green", "yellow", "white")
PLACES = 4


class State(NamedTuple):
    """Equal states are one to the search, whatever tokens led to them."""

    stacks: tuple[tuple[str, ...], ...]
    """Colours from the bottom to the top, at each place of the table."""
    chosen: tuple[str, ...] = ()
    """Blocks chosen for the command at hand."""
    last: str = ""
    """The block that was moved last: what `it` means."""
    done: int = 0


class Blocks:
    """A command chooses one or two blocks that lie on top, and says what happens to them."""

    tokens = (*COLOURS, "it", "on", "floor", "remove", "swap")
    max_tokens_per_instruction = 3
    attributes = {"first": COLOURS, "second": COLOURS}

    def start(self, context):
        return State(tuple(tuple(stack) for stack in context))

    def step(self, state, token):
        if token in COLOURS or token == "it":
            colour = state.last if token == "it" else token
            if len(state.chosen) == 2 or colour in state.chosen or colour not in tops(state.stacks):
                return None
            return state._replace(chosen=(*state.chosen, colour))
        stacks = move(state.stacks, token, *state.chosen) if state.chosen else None
        return stacks and State(stacks, last=state.chosen[0], done=state.done + 1)

    def instructions_done(self, state):
        return state.done

    def denotation(self, state):
        return state.stacks

    def describe(self, state):
        return dict(zip(self.attributes, state.chosen, strict=False))


def tops(stacks):
    return {stack[-1]: place for place, stack in enumerate(stacks) if stack}


def move(stacks, action, first, second=None):
    """The stacks after an action, None if it is not possible."""
    after = [list(stack) for stack in stacks]
    place, other = tops(stacks)[first], tops(stacks).get(second)
    if action == "swap" and other is not None:
        after[place][-1], after[other][-1] = second, first
    elif action == "on" and other is not None:
        after[other].append(after[place].pop())
    elif action == "floor" and second is None and [] in after and len(after[place]) > 1:
        after[after.index([])].append(after[place].pop())
    elif action == "remove" and second is None:
        after[place].pop()
    else:
        return None
    return tuple(tuple(stack) for stack in after)


WORDINGS = {
    "on": [
        "put the {0} block on the {1} one",
        "stack {0} on top of {1}",
        "move the {0} cube onto the {1} cube",
        "the {1} block gets the {0} one on top",
        "place {0} above {1}",
    ],
    "floor": [
        "put the {0} block on the table",
        "set {0} down on an empty place",
        "the {0} cube goes to the floor",
        "take {0} down and give it a place of its own",
    ],
    "remove": [
        "remove the {0} block",
        "take the {0} cube away",
        "we do not need {0} any more",
        "throw out the {0} one",
    ],
    "swap": [
        "swap {0} and {1}",
        "the {0} and the {1} block change places",
        "exchange the {0} cube with the {1} one",
    ],
}


def make_example(number: int, chance: random.Random) -> dict:
    """A table of blocks, one to three instructions, and where they lead, without the commands."""
    colours, stacks = chance.sample(COLOURS, chance.randint(3, 5)), [[] for _ in range(PLACES)]
    for colour in colours:
        chance.choice(stacks).append(colour)
    language, instructions = Blocks(), []
    state = language.start(stacks)
    for _ in range(chance.randint(1, 3)):
        after = None
        while after is None:
            action = chance.choice(list(WORDINGS))
            named = chance.sample(COLOURS, 2 if action in ("on", "swap") else 1)
            after = state
            for token in (*named, action):
                after = after and language.step(after, token)
        words = list(named)
        if named[0] == state.last and chance.random() < 0.5:
            words[0] = "same"
        instructions.append(chance.choice(WORDINGS[action]).format(*words))
        state = after
    return {"id": number, "context": stacks, "instructions": instructions, "target": state.stacks}


if __name__ == "__main__":
    for number in range(int(sys.argv[1])):
        print(json.dumps(make_example(number, random.Random(number))))
