"""A compiled search beside its twin, for one example.

The state in a compiled slot is found by following the slot's back pointers through the twin's transitions, so that no
hash takes part in the comparison. Candidates that are within `TIE` of each other may change places. Where that happens
across a cut, the searches go different ways: `same_beams` is false then, and nothing else can be compared.
"""

from __future__ import annotations

import functools
import math
from collections import Counter
from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import numpy as np
import pytest

from reference import search as twin
from vbsix import Domain
from vbsix.search import (
    Graph,
    Negatives,
    Problem,
    Programs,
    SearchConfig,
    Statistics,
    extract_negatives,
    statistics,
)
from vbsix.search.beam import CORRECT, INCORRECT, INVALID, LIVE
from vbsix.search.graph import best_transitions
from vbsix.search.program_search import find_programs
from vbsix.search.select import in_critic_window
from vbsix.search.statistics import critic_window_share
from vbsix.training.value_examples import ValueExamples, build_value_examples

TOLERANCE = 1e-4
"""For log probabilities."""
TIE = 1e-5


@functools.cache
def _quick_options() -> dict[str, Any] | None:
    options = {"xla_backend_optimization_level": 0, "xla_cpu_use_fusion_emitters": False}
    try:
        jax.jit(lambda: 0, compiler_options=options)()
    except jax.errors.JaxRuntimeError:  # another version of XLA has other options
        return None
    return options


def quick_jit(function, **options: Any):
    """`jax.jit` for searches in tests, which are small: it is compiling them that takes time."""
    return jax.jit(function, compiler_options=_quick_options(), **options)


class Results(NamedTuple):
    """What a compiled search gives."""

    graph: Graph
    programs: Programs
    negatives: Negatives
    statistics: Statistics
    critic_window_share: jax.Array
    value_examples: ValueExamples


def analyse(domain: Domain, graph: Graph, problem: Problem, config: SearchConfig) -> Results:
    """Everything that can be asked of a graph."""
    programs, negatives = find_programs(domain, graph, problem, config), extract_negatives(graph, config.negatives)
    states = jax.tree.map(lambda leaf: leaf.reshape(-1, *leaf.shape[2:]), graph.beam.states)
    in_window = in_critic_window(domain, problem, states, config.critic_window)
    return Results(
        graph,
        programs,
        negatives,
        statistics(graph, config.space),
        critic_window_share(domain, problem, graph, config.critic_window),
        build_value_examples(graph, programs, negatives.programs, in_window, size=len(in_window)),
    )


def rows(results: Results) -> list[Results]:
    """The results of each example of a batch, on the host."""
    results = jax.tree.map(np.asarray, results)
    return [jax.tree.map(lambda leaf, row=row: leaf[row], results) for row in range(results.programs.tokens.shape[0])]


class Slot(NamedTuple):
    """What stands in a compiled slot, in the twin's terms."""

    vertex: Any
    state: Any
    prefix: twin.Program


@dataclass
class Comparison:
    """One example, both ways."""

    task: twin.Task
    search: twin.Search
    results: Results
    config: SearchConfig

    @functools.cached_property
    def layers(self) -> list[dict[int, Slot]]:
        """The taken slots of each compiled beam that is expanded."""
        alive = self.results.graph.beam.alive
        layers = [{0: Slot(self.vertex(self.task.start, ()), self.task.start, ())}]
        for iteration in range(1, self.task.longest):
            layer = {}
            for slot in np.flatnonzero(alive[iteration]).tolist():
                parent, token = self.behind(iteration, slot)
                _, state, prefix = layers[-1][parent]
                state, prefix = self.task.step(state, token), (*prefix, token)
                layer[slot] = Slot(self.vertex(state, prefix), state, prefix)
            layers.append(layer)
        return layers

    @functools.cached_property
    def transitions(self) -> np.ndarray:
        return np.asarray(best_transitions(self.results.graph))

    def behind(self, iteration: int, slot: int) -> tuple[int, str]:
        """The slot before a slot, and the token that leads from there."""
        parent, number = divmod(int(self.transitions[iteration - 1, slot]), len(self.task.tokens))
        return parent, self.task.tokens[number]

    def vertex(self, state: Any, prefix: twin.Program) -> Any:
        return state if self.config.space == "execution" else prefix

    @functools.cached_property
    def same_beams(self) -> bool:
        compiled = [{slot.vertex for slot in layer.values()} for layer in self.layers]
        return compiled == [set(beam) for beam in self.search.beams]

    @functools.cached_property
    def expected_programs(self) -> twin.Programs:
        if self.config.space == "program":
            return twin.complete_programs(self.search, self.config.programs)
        return twin.extract_programs(self.task, self.search, self.config.programs)

    def check_beams(self) -> None:
        """Slots are in the order of the twin's scores, with its chart, its numbers of paths and its predecessors."""
        beam = self.results.graph.beam
        for iteration, (layer, expected) in enumerate(zip(self.layers, self.search.beams, strict=True)):
            assert list(layer) == list(range(len(expected)))
            for slot, (vertex, _, _) in layer.items():
                entry = expected[vertex]
                assert beam.log_chart[iteration, slot] == pytest.approx(entry.log_chart, abs=TOLERANCE)
                assert beam.paths[iteration, slot] == pytest.approx(entry.paths, rel=1e-5)
                if iteration > 0:
                    parent, token = self.behind(iteration, slot)
                    arrival = self.arrival(entry, self.layers[iteration - 1][parent].vertex, token)
                    assert arrival.log_probability >= entry.best.log_probability - TIE, "not the best predecessor"
                    scores = self.search.scores[iteration - 1]
                    assert slot == 0 or scores[layer[slot - 1].vertex] >= scores[vertex] - TIE, "slots out of order"

    def check_transitions(self) -> None:
        """The same transitions lead to correct, incorrect and live states, and they are merged in the same way."""
        tokens, expansion, count = self.task.tokens, self.results.graph.expansion, Counter()
        for iteration, layer in enumerate(self.layers):
            first_to = {}
            for slot, (vertex, _, _) in layer.items():
                for column, token in enumerate(tokens):
                    successor = self.search.edges[vertex].get(token)
                    kind = self.kind(successor)
                    assert expansion.kind[iteration, slot, column] == kind
                    count[kind] += 1
                    if kind != INVALID:
                        first = first_to.setdefault(successor, slot * len(tokens) + column)
                        assert expansion.representative[iteration, slot, column] == first
        for kind in (CORRECT, INCORRECT, LIVE):
            assert np.count_nonzero(expansion.kind == kind) == count[kind], "transitions out of empty slots"
        assert bool(self.results.graph.hit) == bool(self.search.correct)

    def check_programs(self) -> None:
        """The same programs with the same probabilities, each along the vertices that it names."""
        found, expected = self.results.programs, self.expected_programs.found
        programs = self.decode(found)
        assert len(programs) == len(expected)
        assert set(programs) == set(expected) or self.expected_programs.closest <= TIE
        assert np.all(np.diff(found.log_probability[found.found]) <= 0)
        for row, program in enumerate(programs):
            assert program in expected or self.expected_programs.closest <= TIE
            assert found.log_probability[row] == pytest.approx(self.probability(program), abs=TOLERANCE)
            assert self.follow(program, found.vertices[row])[-1] in self.correct_states
            assert found.length[row] == len(program) <= self.task.longest

    def check_negatives(self) -> None:
        """The most probable incorrect terminal states, each with the path of best predecessors that leads to it."""
        found, expected = self.results.negatives.programs, twin.negatives(self.search)
        scores = {negative.state: negative.log_probability for negative in expected}
        reached = []
        for row, program in enumerate(self.decode(found)):
            *_, before, state = self.follow(program, found.vertices[row])
            last = len(program) - 1
            assert program[:-1] in [prefix for _, _, prefix in self.layers[last].values()], "not by best predecessors"
            entry = self.search.successors[last][self.vertex(state, program)]
            arrival = self.arrival(entry, self.vertex(before, program[:-1]), program[-1])
            assert arrival.log_probability == pytest.approx(scores[state], abs=TIE)
            assert found.log_probability[row] == pytest.approx(scores[state], abs=TOLERANCE)
            reached.append(state)
        assert len(set(reached)) == len(reached) == min(len(expected), self.config.negatives)
        assert self.results.negatives.dropped == len(expected) - len(reached), "each state counts once"
        weakest = min((scores[state] for state in reached), default=-math.inf)
        assert {state for state, score in scores.items() if score > weakest + TIE} <= set(reached)

    def check_value_examples(self) -> None:
        """The labels of Algorithm 2, of the same programs and negatives."""
        examples, programs = self.results.value_examples, (self.results.programs, self.results.negatives.programs)
        expected = twin.value_labels(self.task, self.search, *map(self.decode, programs))
        places = [divmod(int(vertex), self.config.beam) for vertex in examples.vertices[examples.mask]]
        states = [self.layers[iteration][slot].state for iteration, slot in places]
        labels = dict(zip(states, examples.labels[examples.mask].tolist(), strict=True))
        assert len(labels) == len(states), "one example for each distinct state"
        assert labels == pytest.approx(expected, abs=1e-4)
        assert examples.dropped == 0

    def check_statistics(self) -> None:
        """The counts of the paper's analysis."""
        measured, expected = self.results.statistics, twin.statistics(self.task, self.search)
        iterations = self.task.longest
        assert measured.states[:iterations].tolist() == expected.states
        assert measured.successors[:iterations].tolist() == expected.successors
        assert measured.distinct[:iterations].tolist() == expected.distinct
        assert not measured.successors[iterations:].any()
        assert measured.paths == pytest.approx(expected.paths, rel=1e-5)
        share = self.results.critic_window_share
        np.testing.assert_allclose(share[:iterations], expected.critic_window_share, rtol=1e-5)
        assert not share[iterations:].any()
        assert measured.correct_discarded == expected.correct_discarded
        assert bool(measured.hit) == bool(self.search.correct)

    def kind(self, successor: Any) -> int:
        if successor is None:
            return INVALID
        if successor in self.search.correct:
            return CORRECT
        return INCORRECT if successor in self.search.incorrect else LIVE

    @functools.cached_property
    def correct_states(self) -> set[Any]:
        return {self.search.states[vertex] for vertex in self.search.correct}

    def arrival(self, entry: twin.Entry, parent: Any, token: str) -> twin.Arrival:
        return next(arrival for arrival in entry.arrivals if (arrival.parent, arrival.token) == (parent, token))

    def decode(self, programs: Programs) -> list[twin.Program]:
        found = [row[row >= 0].tolist() for row in programs.tokens[programs.found]]
        assert not np.any(programs.tokens[~programs.found] >= 0)
        return [tuple(self.task.tokens[token] for token in row) for row in found]

    def follow(self, program: twin.Program, vertices: np.ndarray) -> list[Any]:
        """The states of a program, which must be those that stand in its vertices."""
        states = [self.task.start]
        for token, vertex in zip(program, vertices, strict=False):
            iteration, slot = divmod(int(vertex), self.config.beam)
            assert self.layers[iteration][slot].state == states[-1]
            states.append(self.task.step(states[-1], token))
        assert (vertices[len(program) :] == -1).all()
        return states

    def probability(self, program: twin.Program) -> float:
        """log p of a program in the twin's graph."""
        vertex, total = next(iter(self.search.beams[0])), 0.0
        for token in program:
            total += self.search.log_policy[vertex][token]
            vertex = self.search.edges[vertex][token]
        return total
