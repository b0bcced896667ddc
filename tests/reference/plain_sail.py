"""The language of SAIL in plain Python, one step at a time: the twin of the tables in `vbsix.domains.sail`."""

from __future__ import annotations

from typing import NamedTuple

from vbsix.domains.sail_maps import FLOORS, ITEMS, WALLS, Map, Place

NUMBERS = tuple("12345678")
CONDITIONS = (*ITEMS, *FLOORS, *WALLS, "end", "corner", "crossing", "dead-end", "way-left", "way-right")
MOVEMENTS = ("left", "right", "around", "walk", "until", "find", "face", "back")
AHEAD, LEFT, RIGHT, BEHIND = 0, 270, 90, 180


class Pose(NamedTuple):
    map: Map
    place: Place
    heading: int

    def turn(self, degrees: int) -> Pose:
        return self._replace(heading=(self.heading + degrees) % 360)

    def step(self) -> Pose | None:
        place = self.map.ahead(self.place, self.heading)
        return None if place is None else self._replace(place=place)

    def way_ahead(self) -> list[Pose]:
        """The poses that somebody who walks ahead comes to, up to the end of the hallway."""
        poses, pose = [], self.step()
        while pose is not None:
            poses.append(pose)
            pose = pose.step()
        return poses

    def ways(self) -> list[int]:
        return [degrees for degrees in (AHEAD, LEFT, RIGHT, BEHIND) if self.turn(degrees).step()]

    def shows(self, look: str, degrees: int) -> bool:
        """Whether the hallway in a direction has that floor or wall."""
        next_ = self.turn(degrees).step()
        return next_ is not None and look in self.map.hallways[self.place, next_.place]


def arrived(pose: Pose, condition: str) -> bool:
    ways = pose.ways()
    if condition in ITEMS:
        return pose.map.items[pose.place] == condition
    if condition in (*FLOORS, *WALLS):
        at_a_side = pose.shows(condition, LEFT) or pose.shows(condition, RIGHT)
        return at_a_side or (pose.shows(condition, AHEAD) and not pose.shows(condition, BEHIND))
    return {
        "end": AHEAD not in ways,
        "corner": len(ways) == 2 and (AHEAD in ways) != (BEHIND in ways),
        "crossing": len(ways) >= 3,
        "dead-end": len(ways) == 1,
        "way-left": LEFT in ways,
        "way-right": RIGHT in ways,
    }[condition]


def faces(pose: Pose, condition: str) -> bool:
    if condition in (*FLOORS, *WALLS):
        return pose.shows(condition, AHEAD)
    if condition in ("end", "way-left", "way-right"):
        return arrived(pose, condition)
    return any(arrived(next_, condition) for next_ in pose.way_ahead())


def move(pose: Pose, number: int, condition: str | None, movement: str) -> Pose | None:
    """The pose after a movement, or None."""
    if movement in ("left", "right", "around"):
        degrees = {"left": LEFT, "right": RIGHT, "around": BEHIND}[movement]
        return None if number or condition else pose.turn(degrees)
    if movement == "walk":
        way = pose.way_ahead()
        return way[number - 1] if number and not condition and number <= len(way) else None
    if condition is None:
        return None
    if movement == "until":
        places = [next_ for next_ in pose.way_ahead() if arrived(next_, condition)]
        return places[max(number, 1) - 1] if max(number, 1) <= len(places) else None
    if number:
        return None
    for degrees in (AHEAD, LEFT, RIGHT, BEHIND):
        turned = pose.turn(degrees)
        if movement == "find" and (found := move(turned, 0, condition, "until")):
            return found
        if movement == "face" and faces(turned, condition):
            return turned
        if movement == "back" and faces(turned.turn(BEHIND), condition):
            return turned
    return None


class PlainState(NamedTuple):
    pose: Pose
    number: int = 0
    condition: str | None = None
    movements: int = 0
    done: int = 0


def step(state: PlainState, token: str) -> PlainState | None:
    """The next state, or None where the token is not valid."""
    pose, number, condition, movements, done = state
    if token == "stop":
        return None if number or condition else PlainState(pose, done=done + 1)
    if movements == 4:
        return None
    if token in MOVEMENTS:
        moved = move(pose, number, condition, token)
        return None if moved is None else PlainState(moved, movements=movements + 1, done=done)
    if condition or (token in NUMBERS and number):
        return None
    following = state._replace(number=int(token)) if token in NUMBERS else state._replace(condition=token)
    chosen = [following.condition] if following.condition else [None, *CONDITIONS]
    usable = (move(pose, following.number, one, movement) for one in chosen for movement in MOVEMENTS)
    return following if any(usable) else None
