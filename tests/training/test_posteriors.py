"""Posteriors over the correct paths of a graph, tempered and with waypoints, against all programs one by one."""

from __future__ import annotations

from collections import defaultdict
from itertools import product

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from reference.comparison import quick_jit

from vbsix import Domain
from vbsix.config.schema import Config, override
from vbsix.config.variation import with_inputs
from vbsix.data.examples import Waypoints
from vbsix.search import Problem, SearchConfig, search_graph
from vbsix.search.beam import CORRECT, DEAD_END
from vbsix.training.forward_backward import forward_backward, tempered_paths
from vbsix.training.mml import correct_paths
from vbsix.training.objective import Context

MOST, INSTRUCTIONS, TARGET = 3, 2, 4
STEPS = {"one": 1, "two": 2, "end": 0}
PREFERENCES = np.random.default_rng(0).normal(size=(16, INSTRUCTIONS, len(STEPS)))


class Counter(Domain):
    """A number that two tokens raise, and a third that ends a command. Sums above 6 are invalid."""

    name = "counter"
    tokens = tuple(STEPS)
    max_tokens_per_instruction = MOST
    values = 0
    attributes = {"number": 7}

    def start(self, world, instructions):
        return {"number": jnp.asarray(world, jnp.int32), "done": jnp.int32(0)}

    def expand(self, state):
        numbers = state["number"] + jnp.array(list(STEPS.values()), jnp.int32)
        done = state["done"] + jnp.array([0, 0, 1], jnp.int32)
        return {"number": numbers, "done": done}, (numbers <= 6) & (state["done"] < INSTRUCTIONS)

    def instructions_done(self, state):
        return state["done"]

    def matches(self, state, target):
        return state["number"] == target

    def key(self, state):
        return jnp.stack([state["number"], state["done"]]).astype(jnp.uint32)

    def observe(self, state):
        raise AssertionError("policies here look at the state itself")

    observe_world = observe_target = parse_world = format_world = world = format_state = explain = observe


def log_policy(state, valid):
    preference = jnp.asarray(PREFERENCES, jnp.float32)[state["number"], jnp.minimum(state["done"], INSTRUCTIONS - 1)]
    return jax.nn.log_softmax(preference)


def search(waypoint: int | None, space: str = "execution"):
    known = jnp.array([waypoint is not None, False])
    waypoints = Waypoints(jnp.array([waypoint or 0, TARGET], jnp.int32), known)
    problem = Problem(jnp.int32(0), jnp.int32(INSTRUCTIONS), jnp.int32(TARGET), waypoints=waypoints)
    config = SearchConfig(space, beam=64, selection="epsilon-greedy", epsilon=0.0)
    return quick_jit(
        lambda: search_graph(
            Counter(), log_policy, None, problem, jax.random.key(0), instructions=INSTRUCTIONS, config=config
        )
    )()


def enumerate_posterior(waypoint: int | None, exponent: float):
    """For each iteration, state and token, the share of all correct programs, each weighted by p^exponent."""
    weights, total = defaultdict(float), 0.0
    for length in range(2, MOST * INSTRUCTIONS + 1):
        for program in product(STEPS, repeat=length):
            number, done, log_probability, passed = 0, 0, 0.0, []
            for place, token in enumerate(program):
                if done == INSTRUCTIONS or number + STEPS[token] > 6:
                    break
                passed.append((place, number, done, token))
                scores = PREFERENCES[number, done]
                log_probability += scores[list(STEPS).index(token)] - np.logaddexp.reduce(scores)
                number, done = number + STEPS[token], done + (token == "end")
                if token == "end" and done == 1 and waypoint not in (None, number):
                    break
            else:
                if (number, done) == (TARGET, INSTRUCTIONS):
                    weight = np.exp(exponent * log_probability)
                    total += weight
                    for transition in passed:
                        weights[transition] += weight
    return {transition: weight / total for transition, weight in weights.items()}


def to_transitions(graph, posterior):
    """The same of a graph."""
    found = defaultdict(float)
    numbers, done = (np.asarray(graph.beam.states[name]) for name in ("number", "done"))
    for iteration, slot, token in np.argwhere(np.asarray(posterior) > 0):
        state = int(numbers[iteration, slot]), int(done[iteration, slot])
        found[int(iteration), *state, tuple(STEPS)[token]] += float(posterior[iteration, slot, token])
    return dict(found)


@pytest.mark.parametrize("space", ["execution", "program"])
@pytest.mark.parametrize("exponent", [0.0, 0.5, 1.0, 3.0])
@pytest.mark.parametrize("waypoint", [None, 1, 3])
def test_posteriors_are_those_of_all_programs(waypoint, exponent, space):
    graph = search(waypoint, space)
    paths = quick_jit(tempered_paths, static_argnums=2)(graph, None, exponent)
    expected = enumerate_posterior(waypoint, exponent)
    found = to_transitions(graph, paths.posterior)
    assert found.keys() == expected.keys()
    assert found == pytest.approx(expected, rel=1e-4)
    np.testing.assert_array_equal(paths.log_reward, quick_jit(forward_backward)(graph).log_reward)


def test_an_exponent_that_only_the_program_knows_is_the_same():
    """Of runs that share a program."""
    graph = search(None)
    for exponent in (0.0, 1.0, 2.0):
        known = quick_jit(tempered_paths, static_argnums=2)(graph, None, exponent).posterior
        np.testing.assert_allclose(
            quick_jit(tempered_paths)(graph, None, jnp.float32(exponent)).posterior, known, atol=1e-6
        )


@pytest.mark.parametrize(("step", "exponent"), [(0, 0.0), (25, 0.5), (99, 1.98), (100, 2.0), (1000, 2.0)])
@pytest.mark.parametrize("compiled", [False, True])
def test_the_exponent_rises_to_beta(step, exponent, compiled):
    """Also if only the compiled program knows over how many steps."""
    graph, config = search(None), override(Config(), {"training.beta": 2.0, "training.beta_steps": 100})
    if compiled:
        config = with_inputs(config, {"training.beta_steps": jnp.int32(100)})
    context = Context(*[None] * len(Context._fields))._replace(config=config, step=jnp.int32(step))
    np.testing.assert_allclose(
        correct_paths(context, graph).posterior, tempered_paths(graph, None, exponent).posterior, atol=1e-6
    )


def test_an_exponent_that_does_not_rise_is_beta_from_the_first_step():
    for config in (Config(), with_inputs(Config(), {"training.beta_steps": jnp.int32(0)})):
        context = Context(*[None] * len(Context._fields))._replace(config=config, step=jnp.int32(0))
        assert context.beta == 1.0


def test_another_policy_s_posterior_is_tempered_too():
    graph = search(None)
    flat = jnp.full(graph.expansion.log_policy.shape, -jnp.log(3.0))
    tempered, plain = (
        quick_jit(tempered_paths, static_argnums=2)(graph, log_policy, exponent).posterior
        for log_policy, exponent in ((flat, 2.0), (2 * flat, 1.0))
    )
    np.testing.assert_allclose(tempered, plain, atol=1e-6)


def test_a_command_that_misses_its_waypoint_is_not_followed():
    graph = search(1)
    kind, numbers, done = (
        np.asarray(each) for each in (graph.expansion.kind, *map(graph.beam.states.get, ("number", "done")))
    )
    ends = (kind[..., 2] == DEAD_END) & np.asarray(graph.beam.alive)
    assert set(numbers[ends].tolist()) == {0, 2, 3, 4, 5, 6}
    assert set(done[ends].tolist()) == {0}
    assert np.any(kind == CORRECT)
    alive = np.asarray(graph.beam.alive)
    assert all(number >= 1 for number in numbers[alive & (done == 1)])
