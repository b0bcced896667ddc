from __future__ import annotations

import json
from collections import Counter
from dataclasses import asdict, dataclass, replace
from functools import cached_property

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from vbsix import execute, get_domain
from vbsix.search import Graph, Problem, Programs, SearchConfig, program_search, statistics
from vbsix.show.inspection import Inspection, inspect_search

STAGE = "1:__ 2:r_ 3:__ 4:by 5:__ 6:__ 7:__ 8:__ 9:__ 10:__"
LEFT = "1:__ 2:__ 3:__ 4:by 5:__ 6:__ 7:__ 8:__ 9:__ 10:__"


@dataclass(frozen=True)
class Searched:
    domain: str
    world: str
    target: str
    space: str
    graph: Graph
    programs: Programs

    def inspect(self, limit: int | None = None) -> Inspection:
        return inspect_search(get_domain(self.domain), self.graph, self.programs, space=self.space, limit=limit)

    @cached_property
    def everything(self) -> Inspection:
        return self.inspect()


def searched(name: str, world: str, target: str, instructions: int, space: str, beam: int) -> Searched:
    """A search with a random policy, which depends on the state, and some exploration."""
    domain = get_domain(name)
    config = SearchConfig(space=space, beam=beam, selection="epsilon-greedy", epsilon=0.1)

    def policy(state, valid):
        key = jax.random.fold_in(jax.random.key(7), domain.key(state)[0])
        return jax.nn.log_softmax(0.5 * jax.random.normal(key, (len(domain.tokens),)))

    def run(world, target, key):
        problem = Problem(world, jnp.int32(instructions), target)
        return program_search(domain, policy, None, problem, key, instructions=instructions, config=config)

    programs, graph = jax.jit(run)(domain.parse_world(world), domain.parse_world(target), jax.random.key(0))
    return Searched(name, world, target, space, graph, programs)


@pytest.fixture(scope="module")
def scene() -> Searched:
    return searched("scene", STAGE, LEFT, 1, "execution", 64)


@pytest.fixture(scope="module")
def row() -> Searched:
    return searched("tangrams", "1:0 2:3 3:4", "1:3 2:4 3:0", 2, "program", 160)


@pytest.fixture(params=["scene", "row"])
def search(request) -> Searched:
    return request.getfixturevalue(request.param)


def test_all_that_was_not_dropped_can_be_listed(search):
    """With the same tokens and ways as among all states."""
    domain = get_domain(search.domain)
    listed = inspect_search(domain, search.graph, search.programs, space=search.space, dropped=3)
    everything = Counter(search.everything.states)
    assert not Counter(listed.states) - everything
    left_out = everything - Counter(listed.states)
    assert {state.kind for state in left_out} == {"pruned"} and left_out.total() == listed.left_out
    for iteration in listed.iterations:
        here = [state for state in listed.states if state.iteration == iteration.iteration]
        dropped = [state for state in here if state.kind == "pruned"]
        assert len(dropped) == min(3, iteration.pruned)
        worse = [one.log_probability for one in left_out if one.iteration == iteration.iteration]
        assert not worse or min(state.log_probability for state in dropped) >= max(worse)


def test_states_tell_all_ways_to_them(search):
    into = Counter(transition.destination for transition in search.everything.transitions)
    tokens = [set() for _ in search.everything.states]
    for transition in search.everything.transitions:
        tokens[transition.destination].add(transition.token)
    for place, state in enumerate(search.everything.states):
        assert (state.ways, set(state.tokens)) == (into[place], tokens[place])


def shortest_ways(inspection: Inspection) -> dict[int, tuple[str, ...]]:
    """The tokens of one path to each state that the transitions reach."""
    ways = {0: ()}
    for transition in inspection.transitions:  # sorted by iteration
        ways.setdefault(transition.destination, (*ways[transition.origin], transition.token))
    return ways


def test_the_searches_have_what_these_tests_are_about(scene, row):
    for search in (scene, row):
        kinds = Counter(state.kind for state in search.everything.states)
        assert set(kinds) == {"beam", "pruned", "correct", "incorrect"}
        assert search.everything.programs
    assert any(iteration.merged for iteration in scene.everything.iterations)
    assert any(state.expanded_at for state in scene.everything.states)


def test_iterations_agree_with_the_statistics(search):
    measured = jax.jit(statistics, static_argnames="space")(search.graph, search.space)
    seen = search.everything.iterations
    used = len(seen)
    assert [iteration.iteration for iteration in seen] == list(range(1, used + 1))
    assert [iteration.expanded for iteration in seen] == measured.states[:used].tolist()
    assert [iteration.successors for iteration in seen] == measured.successors[:used].tolist()
    assert [iteration.distinct for iteration in seen] == measured.distinct[:used].tolist()
    assert [iteration.kept for iteration in seen[:-1]] == measured.states[1:used].tolist()
    assert not np.any(measured.states[used:])


def test_states_add_up_to_the_iterations(search):
    inspection = search.everything
    counts = Counter((state.iteration, state.kind) for state in inspection.states)
    assert counts.pop((0, "beam")) == 1
    for row in inspection.iterations:
        kinds = {"beam": row.kept, "pruned": row.pruned, "correct": row.correct, "incorrect": row.incorrect}
        assert {kind: counts.pop((row.iteration, kind), 0) for kind in kinds} == kinds
        assert sum(kinds.values()) == row.distinct
    assert not counts and inspection.left_out == 0


def test_the_beam_is_the_graphs(search):
    domain, beam = get_domain(search.domain), search.graph.beam
    kept = {(state.iteration, state.rank): state for state in search.everything.states if state.kind == "beam"}
    assert set(kept) == set(zip(*(index.tolist() for index in np.nonzero(beam.alive)), strict=True))
    for place, state in kept.items():
        there = jax.tree.map(lambda leaf, place=place: np.asarray(leaf[place]), beam.states)
        assert state.world == domain.format_world(domain.world(there))
        assert list(state.stack) == domain.format_state(there)
        assert state.log_probability == pytest.approx(float(beam.log_chart[place]), abs=1e-4)


def test_scores_are_sums_over_the_transitions_into_a_state(search):
    inspection = search.everything
    totals = np.full(len(inspection.states), -np.inf)
    totals[0] = 0
    for transition in inspection.transitions:
        origin, destination = inspection.states[transition.origin], inspection.states[transition.destination]
        assert origin.kind == "beam" and destination.iteration == origin.iteration + 1
        log_prefix = origin.log_probability + transition.log_policy
        totals[transition.destination] = np.logaddexp(totals[transition.destination], log_prefix)
    np.testing.assert_allclose([state.log_probability for state in inspection.states], totals, atol=1e-4)


def test_merged_transitions_lead_to_one_state(search):
    inspection = search.everything
    into = Counter(inspection.states[transition.destination].iteration for transition in inspection.transitions)
    distinct = Counter(state.iteration for state in inspection.states)
    for row in inspection.iterations:
        assert into[row.iteration] == row.successors
        assert into[row.iteration] - distinct[row.iteration] == row.merged


def test_states_are_what_executing_their_tokens_gives(search):
    inspection = search.inspect(limit=64)
    for number, way in shortest_ways(inspection).items():
        state = inspection.states[number]
        if way:
            step = execute(search.domain, search.world, way)[-1]
            assert (step.world, tuple(step.stack), step.commands) == (state.world, state.stack, state.instructions_done)


def test_correct_means_the_target(search):
    done = search.graph.beam.states.history.shape[-1]
    for state in search.everything.states:
        assert (state.instructions_done == done) == (state.kind in ("correct", "incorrect"))
        assert (state.kind == "correct") == (state.instructions_done == done and state.world == search.target)


def test_programs_are_the_searchs_and_lead_to_the_target(search):
    programs = search.everything.programs
    assert len(programs) == int(search.programs.found.sum())
    np.testing.assert_allclose(
        [program.log_probability for program in programs], search.programs.log_probability[: len(programs)]
    )
    for program in programs:
        assert execute(search.domain, search.world, program.tokens)[-1].world == search.target


def test_transitions_of_programs_are_marked(row):
    inspection = row.everything
    marked = {(t.origin, t.token): t.destination for t in inspection.transitions if t.in_program}
    along = set()
    for program in inspection.programs:  # in program space each runs within the layers
        place = 0
        for token in program.tokens:
            along.add((place, token))
            place = marked[place, token]
        assert inspection.states[place].kind == "correct"
    assert along == set(marked)


def test_dropped_states_know_where_they_were_expanded(scene, row):
    states = scene.everything.states
    kept = {(state.iteration, state.world, state.stack) for state in states if state.kind == "beam"}
    for state in states:
        if state.expanded_at is None:
            assert state.kind != "pruned" or not any(
                (iteration, state.world, state.stack) in kept for iteration in range(len(scene.graph.beam.chosen))
            )
        else:
            assert state.kind == "pruned"
            assert (state.expanded_at, state.world, state.stack) in kept
    assert all(state.expanded_at is None for state in row.everything.states)


@pytest.mark.parametrize("limit", [1, 12, 40])
def test_a_limit_keeps_states_that_hang_together(search, limit):
    everything, limited = search.everything, search.inspect(limit)
    assert len(limited.states) == limit
    assert limited.left_out == len(everything.states) - limit
    assert set(limited.states) <= set(everything.states)
    assert set(shortest_ways(limited)) == set(range(limit))
    assert (limited.programs, limited.iterations) == (everything.programs, everything.iterations)


def test_a_limit_keeps_all_transitions_between_the_states(scene):
    limited, everything = scene.inspect(40), scene.everything
    place = {everything.states.index(state): number for number, state in enumerate(limited.states)}
    expected = [t for t in everything.transitions if {t.origin, t.destination} <= set(place)]
    assert [(t.origin, t.destination, t.token) for t in limited.transitions] == [
        (place[t.origin], place[t.destination], t.token) for t in expected
    ]


def test_the_way_to_the_target_comes_first_but_does_not_fill_the_limit(search):
    shown = search.inspect(limit=12)
    best = shown.programs[0]
    assert "correct" in {state.kind for state in shown.states}
    assert set(best.tokens) <= {transition.token for transition in shown.transitions if transition.in_program}
    into_correct = {number for number, state in enumerate(shown.states) if state.kind == "correct"}
    for transition in reversed(shown.transitions):
        if transition.destination in into_correct:
            into_correct.add(transition.origin)
    assert len(into_correct) <= 9


def test_without_a_correct_state_the_way_to_incorrect_ones_comes_first(scene):
    graph = scene.graph
    wrong = graph._replace(
        expansion=graph.expansion._replace(kind=jnp.where(graph.expansion.kind == 2, 3, graph.expansion.kind))
    )
    nothing = scene.programs._replace(
        tokens=jnp.full_like(scene.programs.tokens, -1),
        log_probability=jnp.full_like(scene.programs.log_probability, -jnp.inf),
    )
    shown = replace(scene, graph=wrong, programs=nothing).inspect(limit=8)
    assert not shown.programs
    assert "incorrect" in {state.kind for state in shown.states}


def test_an_inspection_is_json(scene):
    inspection = scene.inspect(limit=12)
    assert json.loads(json.dumps(asdict(inspection)))["states"][0]["world"] == STAGE


def test_the_same_search_gives_the_same_inspection(scene):
    assert scene.inspect(limit=20) == scene.inspect(limit=20)
