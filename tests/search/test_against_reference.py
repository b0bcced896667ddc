"""The compiled searches against the plain-Python twin: all switches, all domains, random policies and critics."""

from __future__ import annotations

import dataclasses
import functools
from dataclasses import dataclass
from random import Random
from typing import Any

import jax
import numpy as np
import pytest
from reference import random_models as models
from reference import search as twin
from reference.comparison import TIE, Comparison, analyse, quick_jit, rows
from reference.language import Language
from reference.tables import TableDomain, Twin, random_tables
from reference.walks import Walker
from reference.worlds import random_world

from vbsix import Domain, get_domain
from vbsix.config.presets import preset
from vbsix.search import Problem, SearchConfig, search_graph

DOMAINS = ["scene", "alchemy", "tangrams"]
SWITCHES = [("program", False), ("program", True), ("execution", False), ("execution", True)]
POLICIES = [(0.3, 0.0, 0.0), (0.3, 3.0, 4.0), (3.0, 5.0, 5.0), (8.0, 8.0, 8.0)]
"""Sharpness, preference for what is not a constant, and guidance of the policies: from flat to peaked."""
TRUST = [1.0, 0.1, 1e-2, 1e-3, 1e-4, 1e-6, 1e-8]
"""Largest values of the critics."""


METHODS = {
    ("program", False): "mml",
    ("program", True): "value-only",
    ("execution", False): "execution-only",
    ("execution", True): "vbsix",
}
"""The methods that search, by space and whether they have a critic."""


@dataclass(frozen=True)
class Sizes:
    """How many examples, of how many instructions, and which settings of the recipe are smaller."""

    examples: int
    instructions: int
    smaller: tuple[tuple[str, int], ...] = ()


SMALL = Sizes(52, 3, (("beam", 10), ("rerank", 16), ("program_beam", 2), ("negatives", 2)))
PAPER = Sizes(12, 5)


def published(name: str, space: str, with_critic: bool, sizes: Sizes) -> SearchConfig:
    """The search of the recipe `published`, without ε, whose draws only have a distribution."""
    config = preset(name, METHODS[space, with_critic], "published").search
    assert (config.space, config.selection, config.epsilon) == (space, "epsilon-greedy", 0.15)
    return dataclasses.replace(config, epsilon=0.0, **dict(sizes.smaller))


class Feed:
    """The compiled log π and V for the twin's states, which it follows through the compiled executor."""

    def __init__(self, evaluate, model: models.Model, language: NumberedLanguage, start: Any, batch: int):
        self.evaluate, self.model, self.language, self.batch = evaluate, model, language, batch
        self.compiled = {0: jax.tree.map(np.asarray, start)}
        self.log_policies: dict[int, list[float]] = {}
        self.values: dict[int, float] = {}

    def policy(self, states: list[int]) -> list[list[float]]:
        new = [state for state in dict.fromkeys(states) if state not in self.log_policies]
        for first in range(0, len(new), self.batch):
            self._learn(new[first : first + self.batch])
        return [self.log_policies[state] for state in states]

    def critic(self, states: list[int]) -> list[float]:
        """V of successors, which is learned with the policy of their predecessors."""
        return [self.values[state] for state in states]

    def _learn(self, states: list[int]) -> None:
        known = [self.compiled[state] for state in states]
        padded = known + known[:1] * (self.batch - len(known))
        batch = jax.tree.map(lambda *leaves: np.stack(leaves), *padded)
        log_policies, successors, values = jax.tree.map(np.asarray, self.evaluate(self.model, batch))
        for row, state in enumerate(states):
            self.log_policies[state] = log_policies[row].tolist()
            for column, token in enumerate(self.language.domain.tokens):
                successor = self.language.step(state, token)
                if successor is not None and successor not in self.compiled:
                    index = row, column
                    self.compiled[successor] = jax.tree.map(lambda leaf, index=index: leaf[index], successors)
                    self.values[successor] = float(values[index])


@dataclass
class Example:
    """A problem for both sides."""

    model: models.Model
    problem: Problem
    task: twin.Task
    feed: Feed


class NumberedLanguage:
    """The twin's language from one world on, with numbers for its states, which are quicker to look up."""

    def __init__(self, name: str, world: str, instructions: int):
        self.language, self.domain = Language(name, instructions), get_domain(name)
        assert self.domain.tokens == self.language.tokens
        self.states = [self.language.start(world)]
        self.numbers = {self.states[0]: 0}
        self.step = functools.cache(self._step)

    def _step(self, number: int, token: str) -> int | None:
        state = self.language.step(self.states[number], token)
        if state is None:
            return None
        if state not in self.numbers:
            self.numbers[state] = len(self.states)
            self.states.append(state)
        return self.numbers[state]

    def world(self, number: int) -> str:
        return self.language.world_text(self.states[number])

    def task(self, target: str) -> twin.Task:
        return twin.Task(
            start=0,
            tokens=self.language.tokens,
            step=self.step,
            done=lambda number: self.language.commands(self.states[number]),
            correct=lambda number: self.world(number) == target,
            instructions=self.language.instructions,
            longest=self.language.instructions * self.domain.max_tokens_per_instruction,
        )


@functools.cache
def make_examples(name: str, sizes: Sizes) -> list[Example]:
    """Random worlds with targets that random programs lead to."""
    domain, random = get_domain(name), Random(f"searches in {name}")
    evaluate = quick_jit(functools.partial(_evaluate, domain))
    examples = []
    for number in range(sizes.examples):
        instructions = number % sizes.instructions + 1
        world, program, target = random_program(name, instructions, random)
        language = NumberedLanguage(name, world, instructions)
        start = domain.start(domain.parse_world(world), sizes.instructions)
        model = make_model(number, domain, start, program, sizes.instructions * domain.max_tokens_per_instruction)
        problem = Problem(domain.parse_world(world), np.int32(instructions), domain.parse_world(target))
        feed = Feed(evaluate, model, language, start, published(name, "execution", True, sizes).beam)
        examples.append(Example(model, problem, language.task(target), feed))
    return examples


def _evaluate(domain: Domain, model: models.Model, states: Any) -> tuple[Any, Any, Any]:
    """log π of states, their successors, and V of those."""
    successors, _ = jax.vmap(domain.expand)(states)
    value = jax.vmap(jax.vmap(models.critic(domain, model)))
    return jax.vmap(models.policy(domain, model))(states), successors, value(successors)


def random_program(name: str, instructions: int, random: Random) -> tuple[str, list[str], str]:
    """A random world, a program that is not too long, and the world that it leads to."""
    language = Language(name)
    walker = Walker(language, random, stray=0)
    while True:
        world, program = random_world(name, random), []
        state = language.start(world)
        while language.commands(state) < instructions and (command := walker.command(state)):
            state = functools.reduce(language.step, command, state)
            program += command
        if language.commands(state) == instructions and len(program) <= 7 * instructions:
            return world, program, language.world_text(state)


def make_model(number: int, domain: Domain, start: Any, program: list[str], length: int) -> models.Model:
    """Random model `number`, which may know something of the program."""
    keys, tokens = np.zeros((length, 2), np.uint32), np.full(length, -1, np.int32)
    state = start
    for place, token in enumerate(program):
        keys[place], tokens[place] = compiled_key(domain)(state), domain.tokens.index(token)
        successors, _ = compiled_expand(domain)(state)
        state = jax.tree.map(lambda leaf, token=tokens[place]: leaf[token], successors)
    sharpness, preference, guidance = POLICIES[number % len(POLICIES)]
    bias = [preference * (token[0] in "aAiPDH") for token in domain.tokens]
    numbers = np.float32(sharpness), np.array(bias, np.float32), np.float32(guidance)
    return models.Model(np.uint32(number), *numbers, keys, tokens, np.float32(TRUST[number % len(TRUST)]))


@functools.cache
def compiled_key(domain: Domain):
    return quick_jit(domain.key)


@functools.cache
def compiled_expand(domain: Domain):
    return quick_jit(domain.expand)


def compare(name: str, space: str, with_critic: bool, sizes: Sizes) -> list[Comparison]:
    """Searches for all examples, compiled and by the twin."""
    examples, domain = make_examples(name, sizes), get_domain(name)
    config = published(name, space, with_critic, sizes)

    def search(model, problem):
        critic = models.critic(domain, model) if with_critic else None
        policy, key = models.policy(domain, model), jax.random.key(0)
        return search_graph(domain, policy, critic, problem, key, instructions=sizes.instructions, config=config)

    batch = [(example.model, example.problem) for example in examples]
    model, problem = jax.tree.map(lambda *leaves: np.stack(leaves), *batch)
    graphs = quick_jit(jax.vmap(search))(model, problem)
    results = rows(analyser(name, config)(graphs, problem))
    return [
        Comparison(example.task, twin_search(example, with_critic, config), result, config)
        for example, result in zip(examples, results, strict=True)
    ]


@functools.cache
def analyser(name: str, config: SearchConfig):
    """Compiled once for the searches with and without a critic."""
    return quick_jit(jax.vmap(functools.partial(analyse, get_domain(name), config=config)))


def twin_search(example: Example, with_critic: bool, config: SearchConfig) -> twin.Search:
    critic = example.feed.critic if with_critic else None
    sizes = {name: getattr(config, name) for name in ("space", "beam", "rerank", "critic_window")}
    return twin.beam_search(example.task, example.feed.policy, critic, **sizes)


SEARCHES = [
    ("tangrams", "execution", True),
    ("tangrams", "program", False),
    ("scene", "execution", True),
    ("alchemy", "program", True),
]
"""Each domain, both spaces, with a critic and without; all combinations are among the slow tests."""


def named(searches):
    return [pytest.param(one, id=f"{one[0]}-{one[1]}-{'critic' if one[2] else 'actor'}") for one in searches]


@pytest.fixture(scope="module", params=named(SEARCHES))
def comparisons(request) -> list[Comparison]:
    return compare(*request.param, SMALL)


@pytest.fixture(scope="module")
def same(comparisons) -> list[Comparison]:
    """The searches in which no tie was broken differently."""
    return [comparison for comparison in comparisons if comparison.same_beams]


def test_beams_hold_the_same_vertices(comparisons):
    check_same_beams(comparisons)


def check_same_beams(comparisons, ties: float = 0.05):
    """Beams differ only where there are ties, and for a small share of the searches."""
    different = [comparison for comparison in comparisons if not comparison.same_beams]
    assert all(comparison.search.closest <= TIE for comparison in different)
    assert len(different) <= ties * len(comparisons)


def test_beams_are_in_the_same_order_with_the_same_chart(same):
    for comparison in same:
        comparison.check_beams()


def test_transitions_lead_to_the_same_terminal_states_and_are_merged_alike(same):
    for comparison in same:
        comparison.check_transitions()


def test_the_same_programs_are_extracted(same):
    for comparison in same:
        comparison.check_programs()


def test_the_same_negatives_are_extracted(same):
    for comparison in same:
        comparison.check_negatives()


def test_the_labels_of_the_critics_examples_are_those_of_algorithm_2(same):
    for comparison in same:
        comparison.check_value_examples()


def test_statistics_are_the_same(same):
    for comparison in same:
        comparison.check_statistics()


def test_the_examples_have_something_to_compare(same):
    config = same[0].config
    measured = [twin.statistics(comparison.task, comparison.search) for comparison in same]
    assert len(same) >= 50
    assert sum(bool(comparison.search.correct) for comparison in same) >= 15
    assert sum(len(comparison.expected_programs.found) == config.program_beam for comparison in same) >= 5
    assert sum(len(twin.negatives(comparison.search)) > config.negatives for comparison in same) >= 5
    labels = [comparison.results.value_examples.labels for comparison in same]
    assert sum(np.count_nonzero(label > 0) for label in labels) >= 50
    if config.space == "execution":
        assert sum(sum(one.successors) - sum(one.distinct) for one in measured) >= 50
        assert sum(one.correct_discarded for one in measured) >= 5


@pytest.mark.parametrize(("space", "with_critic"), SWITCHES)
def test_random_systems(space, with_critic):
    """Systems of two dozen states in which cycles and merges are the rule."""
    config = SearchConfig(space, 4, "epsilon-greedy", 0.0, rerank=6, program_beam=3, negatives=3)
    random = Random("systems")
    systems = [random_tables(random, states=24, tokens=4, instructions=3) for _ in range(200)]
    instructions, targets = [1 + number % 3 for number in range(200)], [random.randint(0, 2) for _ in systems]

    def search(tables, problem):
        domain = TableDomain(tables, max_tokens_per_instruction=4)
        critic = domain.critic if with_critic else None
        key = jax.random.key(0)
        graph = search_graph(domain, domain.policy, critic, problem, key, instructions=3, config=config)
        return analyse(domain, graph, problem, config)

    problems = Problem(np.zeros(200, np.int32), np.array(instructions, np.int32), np.array(targets, np.int32))
    results = rows(quick_jit(jax.vmap(search))(jax.tree.map(lambda *leaves: np.stack(leaves), *systems), problems))
    comparisons = []
    for tables, count, target, result in zip(systems, instructions, targets, results, strict=True):
        plain = Twin(tables, target, count, max_tokens_per_instruction=4)
        critic = plain.critic if with_critic else None
        found = twin.beam_search(plain.task, plain.policy, critic, space=space, beam=config.beam, rerank=config.rerank)
        comparisons.append(Comparison(plain.task, found, result, config))
    check_all(comparisons, ties=0.1)  # in program space, cycles give prefixes with the same factors in another order
    assert sum(bool(comparison.search.correct) for comparison in comparisons) >= 100


def check_all(comparisons, ties: float = 0.05):
    check_same_beams(comparisons, ties)
    for comparison in comparisons:
        if comparison.same_beams:
            comparison.check_beams()
            comparison.check_transitions()
            comparison.check_programs()
            comparison.check_negatives()
            comparison.check_value_examples()
            comparison.check_statistics()


@pytest.mark.slow
@pytest.mark.parametrize("search", named((name, *switches) for name in DOMAINS for switches in SWITCHES))
def test_searches_of_the_published_recipe(search):
    """At its own sizes no incorrect terminal state is left without a negative program."""
    comparisons = compare(*search, PAPER)
    check_all(comparisons)
    assert [int(comparison.results.negatives.dropped) for comparison in comparisons] == [0] * PAPER.examples
    assert any(twin.negatives(comparison.search) for comparison in comparisons)
