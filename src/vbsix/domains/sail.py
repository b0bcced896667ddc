"""SAIL: somebody walks through hallways with coloured floors, past objects at intersections.

A command is up to four movements and then `stop`. A movement is `left`, `right` or `around`; `walk` with a number of
steps before it; or a condition with `until`, `find`, `face` or `back` behind it: `2 chair until` walks to the second
chair, `blue face` turns to a blue hallway, `end back` turns the back to a wall. A sentence that asks for nothing is
`stop` alone.

All movements from all poses are computed once, with NumPy. The compiled executor looks them up.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Int, UInt32

from vbsix.domains.base import Domain, Observation
from vbsix.domains.hashing import hash_words
from vbsix.domains.sail_maps import FLOORS, HEADINGS, ITEMS, WALLS, Map, corners, find_maps
from vbsix.utilities.errors import InvalidWorld, shorten

NUMBERS = 8
SHAPES = ("end", "corner", "crossing", "dead-end", "way-left", "way-right")
"""Conditions on the hallways around: none ahead; two that are not opposite; at least three; one; one to a side."""
CONDITIONS = (*ITEMS, *FLOORS, *WALLS, *SHAPES)
TURNS = ("left", "right", "around")
MOVEMENTS = (*TURNS, "walk", "until", "find", "face", "back")
MOST_MOVEMENTS = 4
ANY_HEADING = -1
_TURNED = {"left": 3, "right": 1, "around": 2}
_DIRECTIONS = (0, 3, 1, 2)
"""The order in which `find`, `face` and `back` try directions: ahead, left, right, behind."""


class State(NamedTuple):
    """A state of the executor."""

    pose: Int[Any, "*batch"]
    number: Int[Any, "*batch"]
    """The number given for the next movement, 0 for none."""
    condition: Int[Any, "*batch"]
    """The condition given for it, counted from 1; 0 for none."""
    movements: Int[Any, "*batch"]
    """Movements of this command so far."""
    last: Int[Any, "*batch"]
    """The last of them, counted from 1; 0 for none."""
    last_condition: Int[Any, "*batch"]
    done: Int[Any, "*batch"]


class Target(NamedTuple):
    """Where somebody should stand."""

    place: Int[Any, "*batch"]
    heading: Int[Any, "*batch"]
    """In quarters, or `ANY_HEADING`."""


class Sail(Domain):
    """Navigation in the maps of the SAIL corpus. A pose is `MAP X Y HEADING`; a target may leave out the heading."""

    name = "sail"
    tokens = (*map(str, range(1, NUMBERS + 1)), *CONDITIONS, *MOVEMENTS, "stop")
    max_tokens_per_instruction = 8
    slots, objects, elements = 5, 0, 1
    values = NUMBERS + len(CONDITIONS) + len(MOVEMENTS)

    def __init__(self, maps: Sequence[Map] | None = None):
        """The maps are the corpus's unless given."""
        self.maps = tuple(maps if maps is not None else find_maps())
        self.poses = [
            (map_.name, place, heading) for map_ in self.maps for place in sorted(map_.items) for heading in HEADINGS
        ]
        self._numbers = {pose: number for number, pose in enumerate(self.poses)}
        self.movements = self._all_movements()
        self._possible = (self.movements >= 0).any(-1)
        self._views = self._all_views()
        columns, rows = (int(self._views[:, place].max()) for place in (0, 1))
        self.attributes = {"column": columns, "row": rows, "heading": len(HEADINGS), "item": len(ITEMS)}
        self.attributes |= {f"floor {side}": len(FLOORS) for side in ("ahead", "right", "behind", "left")}
        self.attributes |= {"wall ahead": len(WALLS)}

    # The tables.

    def _all_movements(self) -> Int[np.ndarray, "poses numbers conditions movements"]:
        """The pose after each movement with each number and condition, -1 where it is impossible."""
        poses = np.arange(len(self.poses))
        turned = np.stack([poses - poses % 4 + (poses + quarters) % 4 for quarters in range(4)])
        maps = {map_.name: map_ for map_ in self.maps}
        ahead = np.array([self._ahead(maps[name], place, heading) for name, place, heading in self.poses])
        arrived, faced = self._conditions(maps, ahead, turned)
        table = np.full((len(poses), NUMBERS + 1, len(CONDITIONS) + 1, len(MOVEMENTS)), -1, np.int32)
        for token, quarters in _TURNED.items():
            table[:, 0, 0, MOVEMENTS.index(token)] = turned[quarters]
        until = np.stack([_follow(ahead, holds) for holds in arrived], axis=1)
        table[:, 1:, 0, MOVEMENTS.index("walk")] = _follow(ahead, np.ones(len(poses), bool))[:, :NUMBERS]
        table[:, 1:, 1:, MOVEMENTS.index("until")] = until.swapaxes(1, 2)
        table[:, 0, 1:, MOVEMENTS.index("until")] = first = until[:, :, 0]
        table[:, 0, 1:, MOVEMENTS.index("find")] = _first(first[turned], first[turned] >= 0)
        facing = np.broadcast_to(turned[:, :, None], (4, len(poses), len(CONDITIONS)))
        table[:, 0, 1:, MOVEMENTS.index("face")] = _first(facing, faced.T[turned])
        table[:, 0, 1:, MOVEMENTS.index("back")] = _first(facing, faced.T[turned[2][turned]])
        return table

    def _ahead(self, map_: Map, place: tuple[int, int], heading: int) -> int:
        next_ = map_.ahead(place, heading)
        return -1 if next_ is None else self._numbers[map_.name, next_, heading]

    def _conditions(
        self, maps: dict[str, Map], ahead: Int[np.ndarray, " poses"], turned: Int[np.ndarray, "4 poses"]
    ) -> tuple[Bool[np.ndarray, "conditions poses"], Bool[np.ndarray, "conditions poses"]]:
        """Whether each condition holds for who arrives in a pose, and for who looks ahead from it."""
        items = np.array([maps[name].items[place] for name, place, _ in self.poses])
        floors, walls = (np.array([getattr(self._hallway(maps, pose), kind) for pose in self.poses]) for kind in _LOOKS)
        ways = ahead >= 0
        count = ways[turned].sum(axis=0)
        arrived, faced = [], []
        for item in ITEMS:
            arrived.append(items == item)
            faced.append(_in_sight(ahead, items == item))
        for look, values in ((floors, FLOORS), (walls, WALLS)):
            for value in values:
                has = look == value
                arrived.append(has[turned[1]] | has[turned[3]] | (has & ~has[turned[2]]))
                faced.append(has)
        for holds in (count == 2) & (ways != ways[turned[2]]), count >= 3, count == 1:
            arrived.append(holds)
            faced.append(_in_sight(ahead, holds))
        arrived.insert(-3, ~ways)
        faced.insert(-3, ~ways)
        for quarters in (3, 1):
            arrived.append(ways[turned[quarters]])
            faced.append(ways[turned[quarters]])
        return np.stack(arrived), np.stack(faced)

    def _hallway(self, maps: dict[str, Map], pose: tuple[str, tuple[int, int], int]) -> Any:
        name, place, heading = pose
        next_ = maps[name].ahead(place, heading)
        return _NO_HALLWAY if next_ is None else maps[name].hallways[place, next_]

    def _all_views(self) -> Int[np.ndarray, "poses attributes"]:
        maps = {map_.name: map_ for map_ in self.maps}
        least = {name: corners(map_)[0] for name, map_ in maps.items()}
        views = []
        for name, place, heading in self.poses:
            column, row = (np.array(place) - least[name] + 1).tolist()
            sides = [self._hallway(maps, (name, place, (heading + turn) % 360)) for turn in HEADINGS]
            floors = [_id(FLOORS, side.floor) for side in sides]
            item = _id(ITEMS, maps[name].items[place])
            views.append([column, row, heading // 90 + 1, item, *floors, _id(WALLS, sides[0].wall)])
        return np.array(views, np.int32)

    # The domain interface.

    def start(self, world: Int[Any, ""], instructions: int) -> State:
        zero = jnp.int32(0)
        return State(jnp.asarray(world, jnp.int32), zero, zero, zero, zero, zero, zero)

    def expand(self, state: State) -> tuple[State, Bool[Array, " A"]]:
        numbers, conditions = jnp.arange(1, NUMBERS + 1), jnp.arange(1, len(CONDITIONS) + 1)
        movements = jnp.arange(1, len(MOVEMENTS) + 1)
        has_room, possible = state.movements < MOST_MOVEMENTS, jnp.asarray(self._possible)
        is_clear = (state.number == 0) & (state.condition == 0)
        poses = jnp.asarray(self.movements)[state.pose, state.number, state.condition]
        with_number = has_room & is_clear & possible[state.pose, 1:].any(-1)
        with_condition = has_room & (state.condition == 0) & possible[state.pose, state.number, 1:]
        moved = self._repeat(state, len(MOVEMENTS))._replace(
            pose=poses,
            number=jnp.zeros_like(movements),
            condition=jnp.zeros_like(movements),
            movements=jnp.full_like(movements, state.movements + 1),
            last=movements,
            last_condition=jnp.full_like(movements, state.condition),
        )
        zero = jnp.int32(0)
        stopped = State(state.pose, zero, zero, zero, zero, zero, state.done + 1)
        parts = [
            self._repeat(state, NUMBERS)._replace(number=numbers),
            self._repeat(state, len(CONDITIONS))._replace(condition=conditions),
            moved,
            self._repeat(stopped, 1),
        ]
        successors = State(*[jnp.concatenate(leaves) for leaves in zip(*parts, strict=True)])
        return successors, jnp.concatenate([with_number, with_condition, has_room & (poses >= 0), is_clear[None]])

    def _repeat(self, state: State, times: int) -> State:
        return State(*[jnp.full(times, leaf, jnp.int32) for leaf in state])

    def instructions_done(self, state: State) -> Int[Array, ""]:
        return jnp.asarray(state.done)

    def matches(self, state: State, target: Target) -> Bool[Array, ""]:
        is_turned = (jnp.asarray(target.heading) == ANY_HEADING) | (state.pose % 4 == target.heading)
        return (state.pose // 4 == target.place) & is_turned

    def key(self, state: State) -> UInt32[Array, "2"]:
        return hash_words(jnp.stack(state))

    def denotation_key(self, state: State) -> UInt32[Array, "2"]:
        return hash_words(jnp.asarray(state.pose)[None])

    def observe(self, state: State) -> Observation:
        condition, last, last_condition = (
            jnp.where(id_ == 0, 0, id_ + first)
            for id_, first in (
                (state.condition, NUMBERS),
                (state.last, NUMBERS + len(CONDITIONS)),
                (state.last_condition, NUMBERS),
            )
        )
        values = jnp.stack([state.number, condition, last, last_condition, state.movements])
        return Observation(values, jnp.zeros((self.slots, 0, len(self.attributes)), jnp.int32))

    def observe_world(self, state: State) -> Int[Array, "elements attributes"]:
        return jnp.asarray(self._views)[state.pose][None]

    def observe_target(self, target: Target) -> Int[Array, "elements attributes"]:
        pose = jnp.asarray(target.place) * 4 + jnp.maximum(target.heading, 0)
        view = jnp.asarray(self._views)[pose]
        depends = np.array([name not in ("column", "row", "item") for name in self.attributes])
        return jnp.where(depends & (jnp.asarray(target.heading) == ANY_HEADING), 0, view)[None]

    # Text in and out.

    def parse_world(self, text: str) -> Int[np.ndarray, ""]:
        target = self.parse_target(text)
        if target.heading == ANY_HEADING:
            raise InvalidWorld(f"{shorten(text)}: the heading is missing: MAP X Y HEADING, as in {self._example()!r}")
        return np.array(target.place * 4 + target.heading, np.int32)

    def format_world(self, world: Int[Any, ""]) -> str:
        name, place, heading = self.poses[int(world)]
        return f"{name} {place[0]} {place[1]} {heading}"

    def parse_target(self, text: str) -> Target:
        name, *numbers = text.split() or [""]
        if len(numbers) not in (2, 3) or not all(number.lstrip("-").isdigit() for number in numbers):
            raise InvalidWorld(
                f"{shorten(text)}: a pose is MAP X Y HEADING, as in {self._example()!r}; a target may leave out "
                "the heading"
            )
        known = [map_.name for map_ in self.maps]
        if name not in known:
            raise InvalidWorld(f"unknown map {shorten(name)}; known: {', '.join(known)}")
        x, y, *heading = map(int, numbers)
        if heading and heading[0] not in HEADINGS:
            raise InvalidWorld(f"heading {heading[0]}: a heading is one of {', '.join(map(str, HEADINGS))}")
        first = self._numbers.get((name, (x, y), 0))
        if first is None:
            raise InvalidWorld(f"the map {name} has no intersection at x {x}, y {y}")
        return Target(np.array(first // 4, np.int32), np.array(heading[0] // 90 if heading else ANY_HEADING, np.int32))

    def format_target(self, target: Target) -> str:
        text = self.format_world(np.asarray(target.place) * 4 + max(int(target.heading), 0))
        return text.rpartition(" ")[0] if target.heading == ANY_HEADING else text

    def is_right(self, reached: str, target: str) -> bool:
        pose, wanted = self.parse_target(reached), self.parse_target(target)
        return bool(pose.place == wanted.place and wanted.heading in (ANY_HEADING, pose.heading))

    def _example(self) -> str:
        return self.format_world(np.int32(0))

    def world(self, state: State) -> Target:
        return Target(np.asarray(state.pose) // 4, np.asarray(state.pose) % 4)

    def format_state(self, state: State) -> list[str]:
        given = [("number", int(state.number), str(int(state.number)))]
        given += [("condition", int(state.condition), CONDITIONS[int(state.condition) - 1])]
        return [f"{kind}:{text}" for kind, id_, text in given if id_]

    def explain(self, state: State, token: str) -> str | None:
        state = State(*map(jnp.asarray, state))
        if bool(self.expand(state)[1][self.tokens.index(token)]):
            return None
        return f"{token}: {self._reason(state, token)}"

    def _reason(self, state: State, token: str) -> str:
        number, condition = int(state.number), int(state.condition)
        if token == "stop" or (number and token.isdigit()) or (condition and token not in MOVEMENTS):
            return f"{' and '.join(self.format_state(state))} still needs a movement"
        if state.movements >= MOST_MOVEMENTS:
            return f"a command has at most {MOST_MOVEMENTS} movements; end it with stop"
        if token in TURNS and (number or condition):
            return "takes neither a number nor a condition"
        if token == "walk" and (not number or condition):
            return "needs a number, and nothing else: 2 walk"
        if token in ("until", "find", "face", "back") and not condition:
            return f"needs a condition: chair {token}"
        if token in ("find", "face", "back") and number:
            return "takes no number"
        if token == "walk":
            return f"the hallway ends before {number} steps"
        if token in MOVEMENTS:
            return f"{CONDITIONS[condition - 1]} does not occur {'in any direction' if token != 'until' else 'ahead'}"
        return "no movement from here can use it"


_LOOKS = ("floor", "wall")


class _NoHallway(NamedTuple):
    floor: str = ""
    wall: str = ""


_NO_HALLWAY = _NoHallway()


def _id(names: Sequence[str], name: str) -> int:
    return names.index(name) + 1 if name else 0


def _follow(ahead: Int[np.ndarray, " poses"], holds: Bool[np.ndarray, " poses"]) -> Int[np.ndarray, "poses times"]:
    """Where somebody who walks ahead comes to for the first, second, ... time to a pose in which something holds."""
    found = np.full((len(ahead), NUMBERS), -1, np.int32)
    times, at = np.zeros(len(ahead), int), np.arange(len(ahead))
    while (at >= 0).any():
        at = np.where(at >= 0, ahead[at], -1)
        comes = (at >= 0) & holds[at] & (times < NUMBERS)
        found[comes, times[comes]] = at[comes]
        times += comes
    return found


def _in_sight(ahead: Int[np.ndarray, " poses"], holds: Bool[np.ndarray, " poses"]) -> Bool[np.ndarray, " poses"]:
    return _follow(ahead, holds)[:, 0] >= 0


def _first(
    results: Int[np.ndarray, "4 poses conditions"], possible: Bool[np.ndarray, "4 poses conditions"]
) -> Int[np.ndarray, "poses conditions"]:
    """The result of the first direction that is possible, -1 if none is."""
    order = list(_DIRECTIONS)
    chosen = np.argmax(possible[order], axis=0)
    found = np.take_along_axis(results[order], chosen[None], axis=0)[0]
    return np.where(possible.any(axis=0), found, -1).astype(np.int32)
