"""The searches of the paper in plain Python: dictionaries, loops and recursion, to be read beside Algorithm 1.

A vertex is what a search tells apart: in execution space an MDP state, in program space a prefix of a program. The
policy and the critic are functions from a list of states to a list of log probabilities (one per token) or values.
"""

from __future__ import annotations

import functools
import math
from collections import defaultdict
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

State = Hashable
Vertex = Hashable
Program = tuple[str, ...]
Policy = Callable[[list[Any]], Sequence[Sequence[float]]]
Critic = Callable[[list[Any]], Sequence[float]]


@dataclass(frozen=True)
class Task:
    """A transition system and what is asked of it."""

    start: Any
    tokens: Sequence[str]
    step: Callable[[Any, str], Any]
    """The state after one more token, or None if the token is invalid."""
    done: Callable[[Any], int]
    """How many instructions have their command; a state is terminal when all have."""
    correct: Callable[[Any], bool]
    """Whether a terminal state is what was wanted."""
    instructions: int
    longest: int
    """Most tokens of a program."""

    def terminal(self, state: Any) -> bool:
        return self.done(state) == self.instructions


class Arrival(NamedTuple):
    """One way to come to a vertex from the beam before."""

    parent: Vertex
    token: str
    log_probability: float
    """log of P_{t-1}[parent] · π(token | parent)."""


@dataclass
class Entry:
    """A vertex at one iteration."""

    state: Any
    arrivals: list[Arrival] = field(default_factory=list)
    paths: int = 0
    """Number of prefixes that reach it through the beams."""

    @functools.cached_property
    def log_chart(self) -> float:
        """log P_t, to be asked for once all arrivals are in."""
        return log_sum([arrival.log_probability for arrival in self.arrivals])

    @property
    def best(self) -> Arrival:
        """The most probable arrival, the first of equals."""
        return max(self.arrivals, key=lambda arrival: arrival.log_probability)


Layer = dict[Vertex, Entry]


@dataclass
class Search:
    """All that a search discovered. Layers are in slot order."""

    beams: list[Layer]
    """B_0, B_1, ...: those that were expanded."""
    successors: list[Layer] = field(default_factory=list)
    """All successors of each beam, terminal ones included."""
    scores: list[dict[Vertex, float]] = field(default_factory=list)
    """The logs of the scores by which the live successors of each beam were ranked."""
    edges: dict[Vertex, dict[str, Vertex]] = field(default_factory=lambda: defaultdict(dict))
    log_policy: dict[Vertex, dict[str, float]] = field(default_factory=lambda: defaultdict(dict))
    states: dict[Vertex, Any] = field(default_factory=dict)
    correct: set[Vertex] = field(default_factory=set)
    incorrect: set[Vertex] = field(default_factory=set)
    closest: float = math.inf
    """The smallest difference (of logs) between what was kept and what was cut, anywhere."""


class Programs(NamedTuple):
    """Programs with log p(z), the most probable first, and the closest decision on the way to them."""

    found: dict[Program, float]
    closest: float


class Negative(NamedTuple):
    """The best way found to an incorrect terminal state."""

    state: Any
    program: Program
    log_probability: float
    """Of the last transition."""


def log_sum(values: list[float]) -> float:
    """log Σ exp."""
    largest = max(values, default=-math.inf)
    return largest if math.isinf(largest) else largest + math.log(math.fsum(math.exp(v - largest) for v in values))


def cut(ranked: list[float], size: int) -> float:
    """By how much the last that is kept is ahead of the first that is not."""
    return ranked[size - 1] - ranked[size] if len(ranked) > size else math.inf


def beam_search(
    task: Task,
    policy: Policy,
    critic: Critic | None,
    *,
    space: str,
    beam: int,
    rerank: int = 128,
    critic_window: int = 2,
) -> Search:
    """VBSiX and its ablations, without exploration."""
    root = task.start if space == "execution" else ()
    search = Search([{root: Entry(task.start, [Arrival(None, "", 0.0)], paths=1)}])
    while True:
        successors = expand(task, policy, search, space)
        search.successors.append(successors)
        live = {}
        for vertex, entry in successors.items():
            search.states[vertex] = entry.state
            if not task.terminal(entry.state):
                live[vertex] = entry
            elif task.correct(entry.state):
                search.correct.add(vertex)
            else:
                search.incorrect.add(vertex)
        if len(search.successors) == task.longest:
            return search
        by_actor = sorted(live, key=lambda vertex: -live[vertex].log_chart)
        scores = {vertex: live[vertex].log_chart for vertex in by_actor}
        if critic is not None:
            candidates = by_actor[: max(rerank, beam)]
            search.closest = min(search.closest, cut([*scores.values()], max(rerank, beam)))
            values = critic([live[vertex].state for vertex in candidates])
            scores = {
                vertex: ac_score(task, live[vertex], value, critic_window)
                for vertex, value in zip(candidates, values, strict=True)
            }
        ranked = sorted(scores, key=lambda vertex: -scores[vertex])  # stable, so that ties keep the actor's order
        search.scores.append(scores)
        search.closest = min(search.closest, cut([scores[vertex] for vertex in ranked], beam))
        search.beams.append({vertex: live[vertex] for vertex in ranked[:beam]})


def expand(task: Task, policy: Policy, search: Search, space: str) -> Layer:
    """All successors of the last beam with the ways that lead to them, in order of (slot, token)."""
    successors: Layer = {}
    parents = search.beams[-1]
    log_policies = policy([entry.state for entry in parents.values()])
    for (vertex, entry), log_policy in zip(parents.items(), log_policies, strict=True):
        for token, log_probability in zip(task.tokens, log_policy, strict=True):
            state = task.step(entry.state, token)
            if state is None or log_probability == -math.inf:
                continue
            successor = state if space == "execution" else (*vertex, token)
            search.edges[vertex][token] = successor
            search.log_policy[vertex][token] = log_probability
            reached = successors.setdefault(successor, Entry(state))
            reached.arrivals.append(Arrival(vertex, token, entry.log_chart + log_probability))
            reached.paths += entry.paths
    return successors


def ac_score(task: Task, entry: Entry, value: float, critic_window: int) -> float:
    """The log of P_t[s] + V(s, y), or of P_t[s] alone before the critic's window."""
    inside = in_critic_window(task, entry.state, critic_window)
    return log_sum([entry.log_chart, math.log(value)]) if inside and value > 0 else entry.log_chart


def in_critic_window(task: Task, state: Any, critic_window: int) -> bool:
    """Whether the critic ranks the state."""
    return task.done(state) >= task.instructions - critic_window


def epsilon_greedy_sets(ranked: Sequence[Any], slots: int, epsilon: float) -> dict[frozenset[Any], float]:
    """The probability of every set of candidates that the reference code's ε-greedy rule can select.

    It fills one slot after the other: with probability ε, or if the slot's rank has been taken already, by a uniform
    draw from all remaining candidates, else by its rank. If there are no more candidates than slots, all are kept.

    Args:
        ranked: the candidates, best first.
        slots: K.
        epsilon: ε.
    """
    if len(ranked) <= slots:
        return {frozenset(ranked): 1.0}
    sets: dict[frozenset[Any], float] = defaultdict(float)

    def fill(slot: int, taken: frozenset[Any], probability: float) -> None:
        if slot == slots:
            sets[taken] += probability
            return
        draws = 1.0 if ranked[slot] in taken else epsilon
        if draws < 1:
            fill(slot + 1, taken | {ranked[slot]}, probability * (1 - draws))
        remaining = [candidate for candidate in ranked if candidate not in taken]
        for candidate in remaining if draws else []:
            fill(slot + 1, taken | {candidate}, probability * draws / len(remaining))

    fill(0, frozenset(), 1.0)
    return dict(sets)


def prefix(search: Search, iteration: int, vertex: Vertex) -> Program:
    """The tokens that lead to a vertex of a layer along the most probable arrivals."""
    if iteration == 0:
        return ()
    best = search.successors[iteration - 1][vertex].best
    return (*prefix(search, iteration - 1, best.parent), best.token)


def distances(search: Search) -> dict[Vertex, int]:
    """Fewest tokens to a correct terminal state, for the vertices from which there is a way to one."""
    distance: dict[Vertex, int] = dict.fromkeys(search.correct, 0)
    while True:
        nearer = dict(distance)
        for vertex, edges in search.edges.items():
            if lengths := [distance[successor] + 1 for successor in edges.values() if successor in distance]:
                nearer[vertex] = min(lengths)
        if nearer == distance:
            return distance
        distance = nearer


def extract_programs(task: Task, search: Search, size: int) -> Programs:
    """Beam search with π over the part of the graph that reaches correct terminal states."""
    distance = distances(search)
    root = next(iter(search.beams[0]))
    prefixes: dict[Program, tuple[Vertex, float]] = {(): (root, 0.0)}
    complete: dict[Program, float] = {}
    closest = math.inf
    for length in range(1, task.longest + 1):
        extended = {}
        for program, (vertex, log_probability) in prefixes.items():
            for token, successor in search.edges.get(vertex, {}).items():
                longer, log_longer = (*program, token), log_probability + search.log_policy[vertex][token]
                if successor in search.correct:
                    complete[longer] = log_longer
                elif successor in distance and length + distance[successor] <= task.longest:
                    extended[longer] = (successor, log_longer)
        ranked = sorted(extended, key=lambda program: -extended[program][1])
        closest = min(closest, cut([extended[program][1] for program in ranked], size))
        prefixes = {program: extended[program] for program in ranked[:size]}
    best = most_probable(complete, size)
    return best._replace(closest=min(closest, best.closest))


def complete_programs(search: Search, size: int) -> Programs:
    """The most probable correct programs of a search in program space."""
    complete = {
        program: entry.log_chart
        for layer in search.successors
        for program, entry in layer.items()
        if program in search.correct
    }
    return most_probable(complete, size)


def most_probable(programs: dict[Program, float], size: int) -> Programs:
    ranked = sorted(programs, key=lambda program: -programs[program])
    return Programs(
        {program: programs[program] for program in ranked[:size]}, cut([programs[program] for program in ranked], size)
    )


def negatives(search: Search) -> list[Negative]:
    """The best way to each incorrect terminal state, the most probable first."""
    best: dict[Any, Negative] = {}
    for iteration, layer in enumerate(search.successors):
        for vertex, entry in layer.items():
            if vertex in search.incorrect:
                score = entry.best.log_probability
                if entry.state not in best or score > best[entry.state].log_probability:
                    best[entry.state] = Negative(entry.state, prefix(search, iteration + 1, vertex), score)
    return sorted(best.values(), key=lambda negative: -negative.log_probability)


def value_labels(
    task: Task, search: Search, correct: Sequence[Program], incorrect: Sequence[Program], critic_window: int = 2
) -> dict[Any, float]:
    """Algorithm 2, lines 9-15: the label of every state that a program passes between its first and last token.

    Line 13: L[s] += p(z_t..|z|) · R(z), where s is the state after z_1..t. The sum is clipped to 1.
    """
    labels: dict[Any, float] = defaultdict(float)
    for reward, programs in ((1, correct), (0, incorrect)):
        for program in programs:
            vertices = [next(iter(search.beams[0]))]
            for token in program:
                vertices.append(search.edges[vertices[-1]][token])
            factors = [
                math.exp(search.log_policy[vertex][token]) for vertex, token in zip(vertices, program, strict=False)
            ]
            state = task.start
            for length in range(1, len(program)):
                state = task.step(state, program[length - 1])
                if in_critic_window(task, state, critic_window):
                    labels[state] += reward * math.prod(factors[length - 1 :])
    return {state: min(label, 1.0) for state, label in labels.items()}


class Statistics(NamedTuple):
    """What the paper analyses."""

    states: list[int]
    successors: list[int]
    distinct: list[int]
    paths: float
    correct_discarded: int
    critic_window_share: list[float]


def statistics(task: Task, search: Search, critic_window: int = 2) -> Statistics:
    """Measures a search."""
    beams = [beam for beam in search.beams if beam]
    paths = [sum(entry.paths for entry in beam.values()) for beam in beams]
    expanded = {vertex for beam in beams for vertex in beam}
    reaching = set(distances(search)) - search.correct
    inside = [sum(in_critic_window(task, e.state, critic_window) for e in beam.values()) for beam in search.beams]
    fell_out = set()  # the successors of the last beam did not fall out of a beam: there is none for them
    for successors, beam in zip(search.successors, search.beams[1:], strict=False):
        fell_out |= set(successors) - set(beam) - search.correct - search.incorrect
    return Statistics(
        states=[len(beam) for beam in search.beams],
        successors=[sum(len(entry.arrivals) for entry in layer.values()) for layer in search.successors],
        distinct=[len(layer) for layer in search.successors],
        paths=sum(paths) / len(paths),
        correct_discarded=len(fell_out & expanded & reaching),
        critic_window_share=[count / max(len(beam), 1) for count, beam in zip(inside, search.beams, strict=True)],
    )


def enumerate_programs(task: Task, policy: Policy) -> tuple[dict[Program, float], dict[Program, tuple[Any, float]]]:
    """Every correct program with its log p, and every prefix of an unfinished one with its state and log p."""
    correct: dict[Program, float] = {}
    prefixes: dict[Program, tuple[Any, float]] = {}

    def visit(state: Any, program: Program, log_probability: float) -> None:
        if task.terminal(state):
            if task.correct(state):
                correct[program] = log_probability
            return
        prefixes[program] = state, log_probability
        if len(program) == task.longest:
            return
        for token, log_next in zip(task.tokens, policy([state])[0], strict=True):
            successor = task.step(state, token)
            if successor is not None and log_next != -math.inf:
                visit(successor, (*program, token), log_probability + log_next)

    visit(task.start, (), 0.0)
    return correct, prefixes
