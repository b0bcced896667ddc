"""A compiled search of one example as plain Python: what it found, iteration by iteration, for people to look at.

The graph here is layered: a state after t tokens is one vertex of layer t, so that a state met at several iterations
has a vertex, and an actor score, in each. Transitions that were merged lead to the same vertex.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import jax
import numpy as np

from vbsix.domains.base import Domain, State
from vbsix.domains.execution import run_batch
from vbsix.search import Graph, Programs
from vbsix.search.beam import CORRECT, INCORRECT, INVALID, LIVE
from vbsix.utilities.trees import choose

Kind = Literal["beam", "pruned", "correct", "incorrect"]
_BATCH = 256
"""States that are executed at once."""


@dataclass(frozen=True)
class SeenState:
    """A state that a search came to after some tokens."""

    iteration: int
    """How many tokens led to it."""
    kind: Kind
    """Kept in the beam, dropped, or terminal with the right or a wrong world. Unfinished at the end is dropped too."""
    rank: int | None
    """Slot in the beam, from 0."""
    world: str
    stack: tuple[str, ...]
    """Elements as text, bottom first."""
    instructions_done: int
    log_probability: float
    """log P_t, the actor score: the probability of all prefixes that reach the state through the beams before."""
    expanded_at: int | None
    """For a dropped state of execution space: after how many tokens the same state was first in the beam, if it was;
    programs may run through it there."""
    value: float | None = None
    """V, the critic score; None without a critic, or where it has no say."""
    ways: int = 1
    """How many transitions of the whole search lead to it; more than one were merged."""
    tokens: tuple[str, ...] = ()
    """Their tokens."""


@dataclass(frozen=True)
class SeenTransition:
    """A token that leads from one state to another; both are indices into `Inspection.states`."""

    origin: int
    destination: int
    token: str
    log_policy: float
    in_program: bool
    """Whether a program found runs along it."""


@dataclass(frozen=True)
class SeenIteration:
    """What one iteration did with the beam before it. Terminal states take no place in the beam."""

    iteration: int
    expanded: int
    """States in the beam before."""
    successors: int
    """Valid transitions out of them."""
    merged: int
    """Successors that turned out to be a state that another one had reached."""
    correct: int
    """Distinct terminal states with the target world; `incorrect` ones have another."""
    incorrect: int
    kept: int
    pruned: int

    @property
    def distinct(self) -> int:
        """States that the iteration came to."""
        return self.successors - self.merged


@dataclass(frozen=True)
class FoundProgram:
    """A program that leads to the target."""

    tokens: tuple[str, ...]
    log_probability: float


@dataclass(frozen=True)
class Inspection:
    """A search: its programs (most probable first), its iterations (up to the last that had a beam), its graph."""

    domain: str
    space: str
    programs: tuple[FoundProgram, ...]
    iterations: tuple[SeenIteration, ...]
    states: tuple[SeenState, ...]
    """The first is the start; sorted by iteration."""
    transitions: tuple[SeenTransition, ...]
    """All those between the states given."""
    left_out: int
    """States of the search that are not among `states`."""


def inspect_search(
    domain: Domain,
    graph: Graph,
    programs: Programs,
    *,
    space: str,
    limit: int | None = None,
    dropped: int | None = None,
    values: Callable[[State], Any] | None = None,
) -> Inspection:
    """Turns the outcome of `program_search` on one example into plain Python.

    With a limit on the number of states, those on the way to correct terminal states come first (to incorrect ones,
    where none is correct): along the programs found, then where most of the probability of correct programs runs. A
    quarter of the places is for other states: first those from which another transition leads to a state given, so that
    it is seen to be merged; then the most probable that branch off, of each iteration in turn, kept ones before others.
    `dropped` is another limit: all kept and terminal states, and of each iteration that many of
    the most probable others. `values` gives the critic scores of a batch of states, not a number where it has no say.
    """
    graph, programs = jax.tree.map(np.asarray, (graph, programs))
    web = _layered(graph)
    courses = [_course(web, tokens[tokens >= 0]) for tokens in programs.tokens]
    count = web.iteration.shape[0]
    chosen = np.arange(count) if dropped is None else _without_dropped(web, dropped)
    if limit is not None:
        chosen = np.array(sorted(_select(web, courses, limit)))
    place = np.full(count, -1)
    place[chosen] = np.arange(chosen.shape[0])
    return Inspection(
        domain=domain.name,
        space=space,
        programs=tuple(
            FoundProgram(tuple(domain.tokens[token] for token in tokens if token >= 0), float(log_probability))
            for tokens, log_probability in zip(programs.tokens, programs.log_probability, strict=True)
            if np.isfinite(log_probability)
        ),
        iterations=tuple(_iterations(graph)),
        states=tuple(_states(domain, graph, web, chosen, space, values)),
        transitions=tuple(_transitions(domain, web, place, set().union(*courses))),
        left_out=count - chosen.shape[0],
    )


class _Layered(NamedTuple):
    """The layered graph as flat arrays: N vertices and E transitions between them, both sorted by iteration."""

    iteration: np.ndarray
    kind: np.ndarray
    rank: np.ndarray
    """Slot in the beam, -1 outside."""
    log_chart: np.ndarray
    source: np.ndarray
    """The most probable transition into a vertex, -1 for the start."""
    origin: np.ndarray
    destination: np.ndarray
    token: np.ndarray
    log_policy: np.ndarray


def _layered(graph: Graph) -> _Layered:
    beam, expansion = graph
    length, size, _ = expansion.kind.shape
    vertices: list[tuple[np.ndarray, ...]] = [
        (np.zeros(1, int), np.array([LIVE]), np.zeros(1, int), np.zeros(1), np.array([-1]))
    ]
    edges, slots, first, transitions = [], np.zeros(size, int), 1, 0
    for t in range(length):
        slot, token = np.nonzero(expansion.kind[t] != INVALID)
        merged = expansion.representative[t][slot, token]
        group, index, member = np.unique(merged, return_index=True, return_inverse=True)
        log_policy = expansion.log_policy[t][slot, token].astype(float)
        log_prefix = np.add(beam.log_chart[t][slot], log_policy)
        log_chart = np.full(group.shape, -np.inf)
        np.logaddexp.at(log_chart, member, log_prefix)
        edges.append((slots[slot], first + member, token, log_policy))
        rank, slots = np.full(group.shape, -1), np.full(size, -1)
        if t + 1 < length:
            kept = np.flatnonzero(beam.chosen[t + 1] >= 0)
            chosen = np.searchsorted(group, beam.chosen[t + 1][kept])
            rank[chosen], slots[kept] = kept, first + chosen
        kind = np.asarray(expansion.kind[t])[slot, token][index]
        source = transitions + _best_of_groups(log_prefix, member, group.shape[0])
        vertices.append((np.full(group.shape, t + 1), kind, rank, log_chart, source))
        first, transitions = first + group.shape[0], transitions + slot.shape[0]
    return _Layered(*map(np.concatenate, zip(*vertices, strict=True)), *map(np.concatenate, zip(*edges, strict=True)))


def _best_of_groups(scores: np.ndarray, member: np.ndarray, groups: int) -> np.ndarray:
    """The index of the largest score of each group, the first of equals; every group has members."""
    best_first = np.lexsort((-scores, member))
    return best_first[np.searchsorted(member[best_first], np.arange(groups))]


def _course(web: _Layered, tokens: np.ndarray) -> list[int]:
    """The transitions of a program, up to where it runs through a state that was dropped there."""
    vertex, course = 0, []
    for token in tokens:
        out = np.flatnonzero((web.origin == vertex) & (web.token == token))
        if not out.size:
            break
        course.append(int(out[0]))
        vertex = web.destination[out[0]]
    return course


def _without_dropped(web: _Layered, most: int) -> np.ndarray:
    """All vertices, but of the dropped ones at most this many for each iteration."""
    dropped = (web.kind == LIVE) & (web.rank < 0)
    best_first = np.lexsort((-web.log_chart, web.iteration))
    best_first = best_first[dropped[best_first]]
    iteration = web.iteration[best_first]
    place = np.arange(iteration.shape[0]) - np.searchsorted(iteration, iteration)
    return np.sort(np.concatenate([np.flatnonzero(~dropped), best_first[place < most]]))


def _select(web: _Layered, courses: list[list[int]], limit: int) -> set[int]:
    """At most `limit` vertices, each with a path from the start among them; see `inspect_search`."""
    chosen = {0}
    along_programs = [web.destination[course].tolist() for course in courses if course]
    complete = [path for path in along_programs if web.kind[path[-1]] == CORRECT]
    ends = CORRECT if np.any(web.kind == CORRECT) else INCORRECT
    for path in (*complete, *_paths_to(web, ends)):
        together = chosen.union(path)
        if len(together) <= (limit - limit // 4 if len(chosen) > 1 else limit):
            chosen = together
    for path in _paths_that_merge(web, chosen):
        together = chosen.union(path)
        chosen = together if len(together) <= limit - limit // 8 else chosen
    near = np.zeros(web.iteration.shape, bool)
    near[web.destination[np.isin(web.origin, list(chosen))]] = True
    most_probable_first = np.argsort(-web.log_chart, kind="stable")
    # A number for each kind and iteration; states that were kept come first.
    sort_of = ((web.rank < 0) * 8 + web.kind) * (1 + web.iteration.max()) + web.iteration
    groups = [most_probable_first[sort_of[most_probable_first] == sort] for sort in np.unique(sort_of)]
    grown = True
    while grown:
        grown = False
        for group in groups:
            candidates = [vertex for vertex in group[near[group]].tolist() if vertex not in chosen]
            if candidates and len(chosen) < limit:
                chosen.add(candidates[0])
                near[web.destination[web.origin == candidates[0]]] = True
                grown = True
    return chosen


def _paths_that_merge(web: _Layered, chosen: set[int]) -> Iterator[list[int]]:
    """The most probable path to each state from which a second transition leads to one of those chosen."""
    merging = np.flatnonzero(np.isin(web.destination, list(chosen)) & ~np.isin(web.origin, list(chosen)))
    log_prefix = web.log_chart[web.origin[merging]] + web.log_policy[merging]
    for edge in merging[np.argsort(-log_prefix, kind="stable")]:
        yield _path_from_start(web, int(web.origin[edge]))


def _path_from_start(web: _Layered, vertex: int) -> list[int]:
    """The most probable path to a vertex."""
    path = [vertex]
    while web.source[path[0]] >= 0:
        path.insert(0, int(web.origin[web.source[path[0]]]))
    return path


def _paths_to(web: _Layered, ends: int) -> Iterator[list[int]]:
    """For each vertex on the way to terminal states of one kind the most probable path there through it.

    The vertices that carry most of the probability of such paths come first.
    """
    log_rest = np.where(web.kind == ends, 0.0, -np.inf)  # of all ways from a vertex to such an end
    following = np.full(web.iteration.shape, -1)
    for iteration in reversed(range(1, web.iteration[-1] + 1)):
        out = np.flatnonzero((web.iteration[web.destination] == iteration) & np.isfinite(log_rest[web.destination]))
        origins, member = np.unique(web.origin[out], return_inverse=True)
        log_way = web.log_policy[out] + log_rest[web.destination[out]]
        np.logaddexp.at(log_rest, web.origin[out], log_way)
        following[origins] = web.destination[out[_best_of_groups(log_way, member, origins.shape[0])]]
    log_mass = web.log_chart + log_rest
    for vertex in np.argsort(-log_mass, kind="stable")[: np.isfinite(log_mass).sum()]:
        path = _path_from_start(web, int(vertex))
        while following[path[-1]] >= 0:
            path.append(int(following[path[-1]]))
        yield path


def _iterations(graph: Graph) -> Iterator[SeenIteration]:
    kind, representative = graph.expansion.kind, graph.expansion.representative
    own = np.arange(kind[0].size).reshape(kind[0].shape)
    alive = np.isfinite(graph.beam.log_chart).sum(axis=1)
    for t in range(np.count_nonzero(alive)):
        distinct = (kind[t] != INVALID) & (representative[t] == own)
        live, correct, incorrect = (int(np.sum(distinct & (kind[t] == k))) for k in (LIVE, CORRECT, INCORRECT))
        successors = int(np.sum(kind[t] != INVALID))
        kept = int(alive[t + 1]) if t + 1 < alive.shape[0] else 0
        merged = successors - int(distinct.sum())
        yield SeenIteration(t + 1, int(alive[t]), successors, merged, correct, incorrect, kept, live - kept)


def _states(
    domain: Domain,
    graph: Graph,
    web: _Layered,
    chosen: np.ndarray,
    space: str,
    values: Callable[[State], Any] | None,
) -> Iterator[SeenState]:
    """The vertices with their worlds and stacks: beams hold their states, the others are executed once more."""
    t, slot, token = web.iteration[chosen], web.rank[chosen], np.full(chosen.shape, -1)
    held = slot >= 0
    source = web.source[chosen[~held]]
    t[~held], slot[~held], token[~held] = t[~held] - 1, web.rank[web.origin[source]], web.token[source]
    states, done, scores = _execute(domain, choose(graph.beam.states, (t, slot)), token, values)
    by_destination = np.argsort(web.destination, kind="stable")
    ends = np.searchsorted(web.destination[by_destination], [chosen, chosen + 1])
    keys = graph.expansion.successor_keys[t, slot, token].tolist()
    first_expanded: dict[tuple[int, ...], int] = {}
    if space == "execution":
        for place in zip(*np.nonzero(np.isfinite(graph.beam.log_chart)), strict=True):
            first_expanded.setdefault(tuple(graph.expansion.keys[place].tolist()), int(place[0]))
    for n, vertex in enumerate(chosen.tolist()):
        state, kind = choose(states, n), _KINDS[int(web.kind[vertex])]
        dropped = kind == "beam" and not held[n]
        into = by_destination[slice(*ends[:, n])]
        yield SeenState(
            iteration=int(web.iteration[vertex]),
            kind="pruned" if dropped else kind,
            rank=int(web.rank[vertex]) if held[n] else None,
            world=domain.format_target(domain.world(state)),
            stack=tuple(domain.format_state(state)),
            instructions_done=int(done[n]),
            log_probability=float(web.log_chart[vertex]),
            expanded_at=first_expanded.get(tuple(keys[n])) if dropped else None,
            value=float(scores[n]) if kind == "beam" and np.isfinite(scores[n]) else None,
            ways=into.shape[0],
            tokens=tuple(domain.tokens[token] for token in np.unique(web.token[into])),
        )


def _execute(
    domain: Domain, states: State, token: np.ndarray, values: Callable[[State], Any] | None
) -> tuple[State, np.ndarray, np.ndarray]:
    """The successors by one token each (by none, where it is -1), how many instructions are done in them, and their
    critic scores; in batches of few sizes, for each is compiled.
    """
    found = []
    for begin in range(0, token.shape[0], _BATCH):
        part = slice(begin, begin + _BATCH)
        before, tokens = choose(states, part), token[part]
        count = tokens.shape[0]
        wide = np.arange(max(64, 1 << (count - 1).bit_length())) % count
        after, _ = run_batch(domain, choose(before, wide), tokens[wide, None])
        done = jax.vmap(domain.instructions_done)(after)
        scores = np.full(wide.shape, np.nan) if values is None else values(after)
        found.append(jax.tree.map(lambda leaf, count=count: np.asarray(leaf)[:count], (after, done, scores)))
    return jax.tree.map(lambda *parts: np.concatenate(parts), *found)


_KINDS: dict[int, Kind] = {LIVE: "beam", CORRECT: "correct", INCORRECT: "incorrect"}


def _transitions(domain: Domain, web: _Layered, place: np.ndarray, in_program: set[int]) -> Iterator[SeenTransition]:
    for edge in np.flatnonzero((place[web.origin] >= 0) & (place[web.destination] >= 0)).tolist():
        yield SeenTransition(
            origin=int(place[web.origin[edge]]),
            destination=int(place[web.destination[edge]]),
            token=domain.tokens[web.token[edge]],
            log_policy=float(web.log_policy[edge]),
            in_program=edge in in_program,
        )
