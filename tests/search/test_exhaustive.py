"""Searches with a beam as large as the space, against the enumeration of all programs.

The language is tangrams with no numbers beyond 2.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections import Counter, defaultdict
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from reference import search as twin
from reference.comparison import quick_jit
from reference.language import Language

from vbsix.data.examples import Arrays, Waypoints
from vbsix.domains.tangrams import Tangrams
from vbsix.models import Policy
from vbsix.search import Problem, SearchConfig, program_search
from vbsix.search.inference import infer_worlds
from vbsix.search.prediction import DENOTATION_ENDS, Predictions, predict

INSTRUCTIONS = 2
WORLD = "1:3 2:0 3:1"
STATES, PREFIXES = 1024, 2048
"""More than there are at any length."""


class SmallTangrams(Tangrams):
    """Tangrams with few numbers."""

    name = "small tangrams"
    largest_number = 2


DOMAIN = SmallTangrams()


def log_policy(key: np.ndarray | jax.Array) -> jax.Array:
    """Random logits from the bits of a state's key."""
    bits = (key[0] >> np.arange(32, dtype=np.uint32)) & 1
    weights = np.random.default_rng(1).normal(size=(len(DOMAIN.tokens), 32)).astype(np.float32)
    return jax.nn.log_softmax(weights @ bits.astype(jnp.float32) / 4)


def policy(state, valid=None):
    return log_policy(DOMAIN.key(state))


class Enumeration(NamedTuple):
    """All programs of a number of instructions."""

    complete: dict[twin.Program, tuple[str, float]]
    """The world that each leads to, and log p."""
    prefixes: dict[twin.Program, tuple[twin.State, float]]
    """The state that each unfinished prefix leads to, and log p."""

    def correct(self, target: str) -> dict[twin.Program, float]:
        return {program: score for program, (world, score) in self.complete.items() if world == target}

    @property
    def targets(self) -> list[str]:
        """The worlds that programs lead to, those that most lead to first."""
        return [world for world, _ in Counter(world for world, _ in self.complete.values()).most_common()]


@functools.cache
def enumeration(instructions: int) -> Enumeration:
    language = Language("tangrams", instructions)
    expand = quick_jit(lambda state: (DOMAIN.expand(state)[0], policy(state)))
    compiled = {language.start(WORLD): DOMAIN.start(DOMAIN.parse_world(WORLD), INSTRUCTIONS)}
    log_policies = {}

    def fed(states):
        for state in states:
            if state not in log_policies:
                successors, log_policies[state] = jax.tree.map(np.asarray, expand(compiled[state]))
                for column, token in enumerate(DOMAIN.tokens):
                    row = jax.tree.map(lambda leaf, column=column: leaf[column], successors)
                    compiled.setdefault(language.step(state, token), row)
        return [log_policies[state].tolist() for state in states]

    task = twin.Task(
        start=language.start(WORLD),
        tokens=DOMAIN.tokens,
        step=functools.cache(language.step),
        done=language.commands,
        correct=lambda state: True,
        instructions=instructions,
        longest=instructions * DOMAIN.max_tokens_per_instruction,
    )
    complete, prefixes = twin.enumerate_programs(task, fed)
    worlds = {
        program: language.world_text(functools.reduce(language.step, program, task.start)) for program in complete
    }
    return Enumeration({program: (worlds[program], score) for program, score in complete.items()}, prefixes)


@functools.cache
def compiled_search(space: str, beam: int):
    config = SearchConfig(space, beam, "epsilon-greedy", 0.0, program_beam=STATES)

    def search(target):
        problem = Problem(DOMAIN.parse_world(WORLD), jnp.int32(INSTRUCTIONS), target)
        key = jax.random.key(0)
        return program_search(DOMAIN, policy, None, problem, key, instructions=INSTRUCTIONS, config=config)

    return quick_jit(search)


def decode(programs) -> dict[twin.Program, float]:
    """Programs in the order given, with log p."""
    programs = jax.tree.map(np.asarray, programs)
    found = programs.log_probability > -np.inf
    tokens = [tuple(DOMAIN.tokens[token] for token in row if token >= 0) for row in programs.tokens[found]]
    assert len(set(tokens)) == len(tokens)
    return dict(zip(tokens, programs.log_probability[found].tolist(), strict=True))


@pytest.mark.parametrize(("space", "beam"), [("execution", STATES), ("program", PREFIXES)])
def test_every_correct_program_is_found(space, beam):
    everything = enumeration(INSTRUCTIONS)
    for target in everything.targets[:3]:
        correct = everything.correct(target)
        assert 50 <= len(correct) < STATES
        programs, graph = compiled_search(space, beam)(DOMAIN.parse_world(target))
        assert decode(programs) == pytest.approx(correct, abs=1e-4)
        assert not graph.beam.alive.all(axis=1).any(), "a beam was full"


def test_the_chart_sums_over_all_prefixes():
    _, graph = compiled_search("execution", STATES)(DOMAIN.parse_world(WORLD))
    by_state = [defaultdict(float) for _ in graph.beam.log_chart]
    count = Counter()
    for program, (state, log_probability) in enumeration(INSTRUCTIONS).prefixes.items():
        if len(program) < len(by_state):
            by_state[len(program)][state] += math.exp(log_probability)
            count[len(program)] += 1
    chart, paths = np.exp(np.asarray(graph.beam.log_chart)), np.asarray(graph.beam.paths)
    for length, expected in enumerate(by_state):
        np.testing.assert_allclose(np.sum(chart[length]), sum(expected.values()), rtol=1e-4)
        np.testing.assert_allclose(chart[length][: len(expected)], sorted(expected.values(), reverse=True), rtol=1e-4)
        assert not chart[length][len(expected) :].any()
        assert paths[length].sum() == count[length]
    assert sum(count.values()) > 1.5 * sum(len(states) for states in by_state), "hardly a state was merged"


BEST = 40


class FixedPolicy(Policy):
    """The policy above, which reads no words, where a network is wanted."""

    def __init__(self):
        for name in self.__dataclass_fields__:
            setattr(self, name, None)

    def read(self, projected, mask):
        return None

    def for_example(self, domain, tables):
        return policy


@functools.cache
def prediction(instructions: int) -> Predictions:
    return jax.tree.map(np.asarray, compiled_prediction()(jnp.int32(instructions)))


@functools.cache
def compiled_prediction():
    world, words = DOMAIN.parse_world(WORLD), jnp.zeros((INSTRUCTIONS, 1), jnp.int32)

    def predicted(instructions):
        request = Arrays(world, None, words, instructions)
        return predict(DOMAIN, FixedPolicy(), np.zeros((1, 1), np.float32), request, beam=PREFIXES, best=BEST)

    return quick_jit(predicted)


@pytest.mark.parametrize("instructions", [1, 2])
def test_prediction_gives_the_most_probable_programs(instructions):
    complete = {program: score for program, (_, score) in enumeration(instructions).complete.items()}
    expected = sorted(complete, key=lambda program: -complete[program])[:BEST]
    predicted = prediction(instructions)
    found = decode(predicted)
    assert list(found.values()) == sorted(found.values(), reverse=True)
    assert found == pytest.approx({program: complete[program] for program in expected}, abs=1e-4)
    assert len(found) == min(BEST, len(complete))
    assert predicted.log_complete == pytest.approx(twin.log_sum(list(complete.values())), abs=1e-4)


@pytest.mark.parametrize("instructions", [1, 2])
def test_a_predicted_program_has_its_commands_and_the_probability_of_its_denotation(instructions):
    everything, predicted, language = enumeration(instructions), prediction(instructions), Language("tangrams", 2)
    best = sorted(everything.complete.values(), key=lambda one: -one[1])[:DENOTATION_ENDS]
    for row, program in enumerate(decode(predicted)):
        states = list(itertools.accumulate(program, language.step, initial=language.start(WORLD)))
        done = [language.commands(state) for state in states]
        assert predicted.instruction[row, : len(program)].tolist() == done[:-1]
        log_probability = predicted.log_probability[row]
        assert predicted.log_commands[row].sum() == pytest.approx(log_probability, abs=1e-4)
        for number in range(instructions):
            after = states[done.index(number + 1)]
            world = DOMAIN.world(jax.tree.map(lambda leaf, at=(row, number): leaf[at], predicted.states))
            assert DOMAIN.format_world(world) == language.world_text(after)
        prefix = program[: done.index(1)]
        first = [everything.prefixes.get(prefix), everything.complete.get(prefix)][instructions == 1]
        assert predicted.log_commands[row, 0] == pytest.approx(first[1], abs=1e-4)
        denotation = language.world_text(states[-1])
        same = [score for world, score in best if world == denotation]
        assert predicted.log_denotation[row] == pytest.approx(twin.log_sum(same), abs=1e-4)


@functools.cache
def compiled_inference():
    words = jnp.zeros((INSTRUCTIONS, 1), jnp.int32)

    def inferred(target, waypoints, instructions):
        example = Arrays(DOMAIN.parse_world(WORLD), target, words, instructions, waypoints)
        vectors = np.zeros((1, 1), np.float32)
        found = infer_worlds(DOMAIN, FixedPolicy(), vectors, example, beam=PREFIXES, longest=instructions)
        return jax.vmap(DOMAIN.world)(found.states), found.posterior

    return quick_jit(inferred)


def infer(target: str, first: str | None = None, instructions: int = INSTRUCTIONS) -> tuple[list[str], float]:
    """The inferred worlds and their posterior, with the world after the first instruction where it is known."""
    parsed = DOMAIN.parse_world(first or target)
    waypoints = Waypoints(np.stack([parsed] * INSTRUCTIONS), np.array([first is not None, False]))
    worlds, posterior = compiled_inference()(DOMAIN.parse_world(target), waypoints, jnp.int32(instructions))
    return [DOMAIN.format_world(world) for world in np.asarray(worlds)[:instructions]], float(posterior)


def shares(target: str, instructions: int = INSTRUCTIONS) -> dict[tuple[str, ...], float]:
    """The probability of each sequence of worlds that correct programs lead through, by enumeration."""
    language, by_worlds = Language("tangrams", instructions), defaultdict(float)
    for program, log_probability in enumeration(instructions).correct(target).items():
        states = list(itertools.accumulate(program, language.step, initial=language.start(WORLD)))
        done = [language.commands(state) for state in states]
        worlds = tuple(language.world_text(states[done.index(number)]) for number in range(1, instructions + 1))
        by_worlds[worlds] += math.exp(log_probability)
    return dict(by_worlds)


def test_the_most_probable_sequence_of_worlds_is_inferred():
    """Its probability is the sum over its programs, so that it need not be that of the most probable program."""
    for target in enumeration(INSTRUCTIONS).targets[:3]:
        expected = shares(target)
        assert len(expected) > 2
        worlds, posterior = infer(target)
        best = max(expected, key=expected.__getitem__)
        assert tuple(worlds) == best
        assert posterior == pytest.approx(expected[best] / sum(expected.values()), rel=1e-3)


def test_inferred_worlds_pass_through_waypoints():
    target = enumeration(INSTRUCTIONS).targets[0]
    for worlds, _ in sorted(shares(target).items(), key=lambda one: -one[1])[1:4]:
        found, posterior = infer(target, first=worlds[0])
        assert tuple(found) == worlds
        assert posterior == pytest.approx(1, rel=1e-4)


def test_an_example_with_fewer_instructions_has_fewer_inferred_worlds():
    target = enumeration(1).targets[0]
    assert len(enumeration(1).correct(target)) > 1
    worlds, posterior = infer(target, instructions=1)
    assert (worlds, posterior) == ([target], pytest.approx(1, rel=1e-4))


def test_nothing_is_inferred_where_no_program_is_correct():
    assert infer("1:4 2:2")[1] == 0
