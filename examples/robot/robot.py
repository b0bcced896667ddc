"""A robot on a grid with walls, moved by several instructions: a domain in JAX.

`python robot.py 2000 > robot.jsonl` makes examples; `vbsix train robot:Robot --data robot.jsonl` learns from them.
"""

from __future__ import annotations

import json
import random
import sys
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np

from vbsix import Domain, InvalidWorld, hash_words
from vbsix.domains.base import Observation

SIZE = 6
FLOOR, WALL = ".", "#"
HEADINGS = "^>v<"
STEPS = np.array([(-1, 0), (0, 1), (1, 0), (0, -1)], np.int32)
MOST_STEPS = SIZE - 1


class State(NamedTuple):
    """All of it is small integers, and equal states have equal numbers."""

    walls: Any
    """[SIZE, SIZE], 1 for a wall."""
    row: Any
    column: Any
    heading: Any
    turned: Any
    """By how many quarters to the right, since the instruction began."""
    walked: Any
    """Steps since then."""
    done: Any


class Robot(Domain):
    """A command is some turns and steps, and then `stop`."""

    name = "robot"
    tokens = ("left", "right", "forward", "until-wall", "stop")
    max_tokens_per_instruction = 5
    # What the networks see: how the robot has turned and walked in this instruction; of a world, where it stands.
    slots, objects, elements = 2, 0, 1
    values = 4 + MOST_STEPS + 1
    attributes = {"row": SIZE, "column": SIZE, "heading": 4}

    def start(self, world, instructions):
        walls, row, column, heading = world
        zero = jnp.int32(0)
        return State(jnp.asarray(walls), jnp.int32(row), jnp.int32(column), jnp.int32(heading), zero, zero, zero)

    def expand(self, state):
        moved = state.turned + state.walked > 0
        results = [
            self.turn(state, 3),
            self.turn(state, 1),
            self.walk(state, 1),
            self.walk(state, self.free_steps(state)),
            (state._replace(turned=jnp.int32(0), walked=jnp.int32(0), done=state.done + 1), moved),
        ]
        successors = State(*[jnp.stack(leaves) for leaves in zip(*[after for after, _ in results], strict=True)])
        return successors, jnp.stack([valid for _, valid in results])

    def turn(self, state, quarters):
        after = state._replace(heading=(state.heading + quarters) % 4, turned=(state.turned + quarters) % 4)
        return after, state.walked == 0

    def walk(self, state, steps):
        ahead = jnp.asarray(STEPS)[state.heading] * steps
        after = state._replace(row=state.row + ahead[0], column=state.column + ahead[1], walked=state.walked + steps)
        return after, (steps > 0) & (steps <= self.free_steps(state))

    def free_steps(self, state):
        """How far the robot can go."""
        distances = np.arange(1, SIZE, dtype=np.int32)
        ahead = jnp.asarray(STEPS)[state.heading]
        rows, columns = state.row + distances * ahead[0], state.column + distances * ahead[1]
        inside = (rows >= 0) & (rows < SIZE) & (columns >= 0) & (columns < SIZE)
        blocked = ~inside | (state.walls[jnp.clip(rows, 0, SIZE - 1), jnp.clip(columns, 0, SIZE - 1)] == 1)
        return jnp.sum(jnp.cumsum(blocked) == 0).astype(jnp.int32)

    def instructions_done(self, state):
        return state.done

    def matches(self, state, target):
        _, row, column, heading = target
        return (state.row == row) & (state.column == column) & (state.heading == heading)

    def key(self, state):
        place = jnp.stack(state[1:])
        return hash_words(jnp.concatenate([state.walls.reshape(-1), place]))

    def observe(self, state):
        values = jnp.stack([1 + state.turned, 5 + state.walked])
        return Observation(values, jnp.zeros((self.slots, self.objects, len(self.attributes)), jnp.int32))

    def observe_world(self, state):
        return jnp.stack([state.row, state.column, state.heading])[None] + 1

    def observe_target(self, target):
        _, row, column, heading = target
        return jnp.stack([jnp.asarray(row), jnp.asarray(column), jnp.asarray(heading)])[None] + 1

    # A world is a text: rows of the grid, the robot an arrow.

    def parse_world(self, text):
        rows = text.split("/")
        if len(rows) != SIZE or any(len(row) != SIZE for row in rows):
            raise InvalidWorld(f"expected {SIZE} rows of {SIZE} signs, separated by /")
        cells = "".join(rows)
        robots = [place for place, sign in enumerate(cells) if sign in HEADINGS]
        if len(robots) != 1 or set(cells) - set(FLOOR + WALL + HEADINGS):
            raise InvalidWorld(f"expected one robot ({HEADINGS}) among {FLOOR} and {WALL}")
        walls = np.array([sign == WALL for sign in cells], np.int32).reshape(SIZE, SIZE)
        place = divmod(robots[0], SIZE)
        return walls, np.int32(place[0]), np.int32(place[1]), np.int32(HEADINGS.index(cells[robots[0]]))

    def format_world(self, world):
        walls, row, column, heading = world
        grid = [[WALL if wall else FLOOR for wall in line] for line in np.asarray(walls).tolist()]
        grid[int(row)][int(column)] = HEADINGS[int(heading)]
        return "/".join("".join(line) for line in grid)

    def world(self, state):
        return state.walls, state.row, state.column, state.heading

    def format_state(self, state):
        return [f"turned {int(state.turned)}", f"walked {int(state.walked)}"]

    def explain(self, state, token):
        valid = np.asarray(self.expand(State(*map(jnp.asarray, state)))[1])[self.tokens.index(token)]
        return None if valid else f"{token}: not possible here"


TURNS = {"": [""], "left": ["turn left", "go left"], "right": ["turn right", "take a right"], "back": ["turn around"]}
WALKS = {
    "1": ["take a step", "walk one step", "go forward one field"],
    "2": ["take two steps", "walk two fields", "move two ahead"],
    "3": ["take three steps", "walk three fields", "move three ahead"],
    "wall": ["walk until the wall", "go on until something is in the way", "run as far as you can"],
}
JOINTS = ["{0} and {1}", "{0} then {1}", "{0} , {1}", "first {0} and after that {1}"]


def make_example(number: int, chance: random.Random) -> dict:
    """A grid, one to three instructions, and where the robot ends."""
    cells = [WALL if chance.random() < 0.15 else FLOOR for _ in range(SIZE * SIZE)]
    row, column, heading = chance.randrange(SIZE), chance.randrange(SIZE), chance.randrange(4)

    def grid():
        place = row * SIZE + column
        signs = [*cells[:place], HEADINGS[heading], *cells[place + 1 :]]
        return "/".join("".join(signs[first : first + SIZE]) for first in range(0, SIZE * SIZE, SIZE))

    cells[row * SIZE + column] = FLOOR
    context, instructions = grid(), []
    for _ in range(chance.randint(1, 3)):
        turn = chance.choice(list(TURNS))
        heading = (heading + ["", "right", "back", "left"].index(turn)) % 4
        free = 0
        while True:
            ahead = row + (free + 1) * int(STEPS[heading][0]), column + (free + 1) * int(STEPS[heading][1])
            if min(ahead) < 0 or max(ahead) >= SIZE or cells[ahead[0] * SIZE + ahead[1]] == WALL:
                break
            free += 1
        walks = [walk for walk in WALKS if free and (walk == "wall" or int(walk) <= free)]
        said = chance.choice(TURNS[turn])
        if walks and (not turn or chance.random() < 0.6):
            walk = chance.choice(walks)
            steps = free if walk == "wall" else int(walk)
            row, column = row + steps * int(STEPS[heading][0]), column + steps * int(STEPS[heading][1])
            walked = chance.choice(WALKS[walk])
            said = chance.choice(JOINTS).format(said, walked) if said else walked
        if said:
            instructions.append(said)
    if not instructions:
        heading = (heading + 1) % 4
        instructions.append("turn right")
    return {"id": number, "context": context, "instructions": instructions, "target": grid()}


if __name__ == "__main__":
    for number in range(int(sys.argv[1])):
        print(json.dumps(make_example(number, random.Random(number))))
