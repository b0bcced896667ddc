"""A robot in a hallway that gets several orders in one sentence: a domain in plain Python.

`python hallway.py 3000 > hallway.jsonl` makes examples; `vbsix train hallway:Hallway --data hallway.jsonl` learns from
them. `python hallway.py 300 --programs > dev.jsonl` makes others, with the programs behind them.
"""

from __future__ import annotations

import json
import random
import sys
from typing import NamedTuple

ROOMS = 5
THINGS = ("cup", "key")
HAND = -1
ACTIONS = ("left", "right", "on", "off", *(f"take-{thing}" for thing in THINGS), "drop")
MOST_ACTIONS = 6


class State(NamedTuple):
    """Equal states are one to the search, whatever tokens led to them."""

    at: int
    """The room in which the robot stands, counted from the left."""
    lamps: tuple[bool, ...]
    """Which rooms are lit."""
    things: tuple[int, ...]
    """The room of each thing; HAND for the one that the robot carries."""
    last: str = ""
    """The last action of the sentence at hand."""
    times: int = 0
    """How many times in a row."""
    actions: int = 0
    done: int = 0


class Hallway:
    """A sentence asks for one to three things. Its command holds all actions and ends with `stop`."""

    tokens = (*ACTIONS, "stop")
    max_tokens_per_instruction = MOST_ACTIONS + 1
    attributes = {
        "last": ACTIONS,
        "times": ROOMS,
        "actions": MOST_ACTIONS + 1,
        "at": ROOMS,
        "lit": 2,
        "carries": THINGS,
    }

    def start(self, context):
        return State(context["at"], tuple(context["lamps"]), tuple(context["things"]))

    def step(self, state, token):
        if token == "stop":
            done = State(state.at, state.lamps, state.things, done=state.done + 1)
            return done if state.actions else None
        world = act(state.at, state.lamps, state.things, token)
        if world is None or state.actions == MOST_ACTIONS:
            return None
        times = state.times + 1 if token == state.last else 1
        return State(*world, token, times, state.actions + 1, state.done)

    def valid_tokens(self, state):
        if state.actions == MOST_ACTIONS:
            return ("stop",)
        carried = HAND in state.things
        takes = [f"take-{thing}" for thing, room in zip(THINGS, state.things, strict=True) if room == state.at]
        return (
            *(["left"] if state.at > 0 else []),
            *(["right"] if state.at < ROOMS - 1 else []),
            "off" if state.lamps[state.at] else "on",
            *([] if carried else takes),
            *(["drop"] if carried else []),
            *(["stop"] if state.actions else []),
        )

    def instructions_done(self, state):
        return state.done

    def denotation(self, state):
        return {"at": state.at, "lamps": state.lamps, "things": state.things}

    def describe(self, state):
        return {
            "last": state.last or None,
            "times": min(state.times, ROOMS - 1),
            "actions": state.actions,
            "at": state.at,
            "lit": int(state.lamps[state.at]),
            "carries": THINGS[state.things.index(HAND)] if HAND in state.things else None,
        }


class AnyAction(Hallway):
    """The same without care: actions that are impossible or change nothing are valid, and so is an empty command."""

    name = "any-action"
    valid_tokens = None

    def step(self, state, token):
        if token == "stop":
            return State(state.at, state.lamps, state.things, done=state.done + 1)
        if state.actions == MOST_ACTIONS:
            return None
        world = act(state.at, state.lamps, state.things, token) or (state.at, state.lamps, state.things)
        times = state.times + 1 if token == state.last else 1
        return State(*world, token, times, state.actions + 1, state.done)


def act(at, lamps, things, action):
    """The world after an action; None where the action is impossible or would change nothing."""
    if action in ("left", "right"):
        to = at + (1 if action == "right" else -1)
        return (to, lamps, things) if 0 <= to < ROOMS else None
    if action in ("on", "off"):
        lit = action == "on"
        return None if lamps[at] == lit else (at, (*lamps[:at], lit, *lamps[at + 1 :]), things)
    if action == "drop":
        return (at, lamps, tuple(at if room == HAND else room for room in things)) if HAND in things else None
    taken = THINGS.index(action.removeprefix("take-"))
    if things[taken] != at or HAND in things:
        return None
    return at, lamps, tuple(HAND if number == taken else room for number, room in enumerate(things))


COUNTS = {1: ["one room", "a room", "one door"], 2: ["two rooms", "two doors"], 3: ["three rooms", "three doors"]}
MOVES = ["go {0} to the {1}", "walk {0} {1}", "move {0} to the {1}", "{0} {1}"]
ENDS = ["go to the {0} end", "walk {0} as far as you can", "move all the way {0}"]
LAMPS = {
    "on": ["switch on the light", "turn the lamp on", "make it bright", "light the room"],
    "off": ["switch off the light", "turn the lamp off", "make it dark", "lights out"],
}
TAKES = ["take the {0}", "pick up the {0}", "grab the {0}", "get the {0}"]
DROPS = ["drop it", "put down the {0}", "leave the {0} there", "let go of the {0}"]
JOINS = [" and ", " then ", " , then ", " and after that "]


def make_phrase(kind, at, lamps, things, chance: random.Random):
    """The actions and the words of something to ask for in this world; None if there is nothing of this kind."""
    side = chance.choice(["left", "right"])
    room = at if side == "left" else ROOMS - 1 - at
    if kind == "move" and room and chance.random() < 0.6:
        count = chance.randint(1, min(room, 3))
        return [side] * count, chance.choice(MOVES).format(chance.choice(COUNTS[count]), side)
    if kind == "move" and room:
        return [side] * room, chance.choice(ENDS).format(side)
    if kind == "lamp":
        action = "off" if lamps[at] else "on"
        return [action], chance.choice(LAMPS[action])
    if kind == "thing" and HAND in things:
        return ["drop"], chance.choice(DROPS).format(THINGS[things.index(HAND)])
    near = [thing for thing, place in zip(THINGS, things, strict=True) if place == at and HAND not in things]
    if kind == "thing" and near:
        thing = chance.choice(near)
        return [f"take-{thing}"], chance.choice(TAKES).format(thing)
    return None


def make_example(number: int, chance: random.Random, with_programs: bool = False) -> dict:
    """A hallway, one or two sentences, and where they lead; the actions behind them only where they are wanted."""
    lamps = [chance.random() < 0.5 for _ in range(ROOMS)]
    context = {"at": chance.randrange(ROOMS), "lamps": lamps, "things": [chance.randrange(ROOMS) for _ in THINGS]}
    language, sentences, programs = Hallway(), [], []
    state = language.start(context)
    for _ in range(chance.randint(1, 2)):
        phrases, tokens = [], []
        wanted, kinds = chance.randint(1, 3), chance.sample(["move", "lamp", "thing"], 3)
        while not phrases:
            for kind in kinds:  # each once: two phrases of a kind could undo each other
                made = make_phrase(kind, state.at, state.lamps, state.things, chance)
                if made and len(phrases) < wanted and state.actions + len(made[0]) <= MOST_ACTIONS:
                    for action in made[0]:
                        state = language.step(state, action)
                    tokens += made[0]
                    phrases.append(made[1])
        joins = [chance.choice(JOINS) for _ in phrases[1:]]
        sentences.append("".join(part for pair in zip(phrases, [*joins, ""], strict=True) for part in pair))
        state = language.step(state, "stop")
        programs.append(" ".join([*tokens, "stop"]))
    example = {"id": number, "context": context, "instructions": sentences, "target": language.denotation(state)}
    return {**example, "programs": programs} if with_programs else example


if __name__ == "__main__":
    with_programs = "--programs" in sys.argv
    for number in range(int(sys.argv[1])):
        chance = random.Random(f"other {number}" if with_programs else number)
        print(json.dumps(make_example(number, chance, with_programs)))
