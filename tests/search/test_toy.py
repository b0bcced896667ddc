"""Searches in a toy system, with every number worked out by hand.

Three instructions of at most two tokens each, so that a program has at most six tokens. The arrows are tokens with
their probabilities; what is missing to 1 goes to tokens that are invalid there.

    instructions done:  0                                    1              2                3

            a .5        a .6        b .5 (a loop: S4 to S4)
        S0 ------> S1 ------> S4 ---.     a .4        a .7        a .6
         |          | b .3     ^ `--'---------> S5 ---------> S7 --------> T  (correct)
         | b .3     |     a .9 |                ^ |            | b .4
         |----------|--> S2 ---'           a .5 | | b .3       `---------> F  (incorrect)
         | c .2     v                           | v                a .9
         `-------> S3 --------------------------' S6 ---------> S8 ------> T
                    `--- c .5 ------------------> S6    a .2

With K = 2 in execution space (what falls out of the beam stands behind the bar):

    B0   S0 1
    B1   S1 .5      S2 .3     | S3 .2
    B2   S4 .57     S3 .15                  S4: .5 * .6 + .3 * .9; S3 is back
    B3   S5 .303    S4 .285   | S6 .075     S5: .57 * .4 + .15 * .5
    B4   S7 .2121   S4 .1425  | S5 .114  S6 .0909
    B5   S4 .07125  S5 .057                 T and F are found and take no place
"""

from __future__ import annotations

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from reference import search as twin
from reference.comparison import quick_jit
from reference.tables import TableDomain, Tables, Twin

from vbsix.search import (
    Problem,
    SearchConfig,
    beam_search,
    complete_programs,
    distances,
    extract_negatives,
    extract_programs,
    greedy,
    join,
    next_vertex,
    outcome_of,
    same_vertex,
    search_graph,
)
from vbsix.search.graph import best_transitions
from vbsix.search.prediction import denotation_programs

S0, S1, S2, S3, S4, S5, S6, S7, S8, T, F = range(11)
EDGES = {
    S0: {"a": (S1, 0.5), "b": (S2, 0.3), "c": (S3, 0.2)},
    S1: {"a": (S4, 0.6), "b": (S3, 0.3)},
    S2: {"a": (S4, 0.9)},
    S3: {"a": (S5, 0.5), "c": (S6, 0.5)},
    S4: {"a": (S5, 0.4), "b": (S4, 0.5)},
    S5: {"a": (S7, 0.7), "b": (S6, 0.3)},
    S6: {"a": (S8, 0.2)},
    S7: {"a": (T, 0.6), "b": (F, 0.4)},
    S8: {"a": (T, 0.9)},
}
DONE = {S0: 0, S1: 0, S2: 0, S3: 0, S4: 0, S5: 1, S6: 1, S7: 2, S8: 2, T: 3, F: 3}
INSTRUCTIONS, LONGEST = 3, 6

PROGRAMS = {
    "aaaaa": 0.5 * 0.6 * 0.4 * 0.7 * 0.6,
    "baaaa": 0.3 * 0.9 * 0.4 * 0.7 * 0.6,
    "caaa": 0.2 * 0.5 * 0.7 * 0.6,
    "abaaa": 0.5 * 0.3 * 0.5 * 0.7 * 0.6,
    "aabaaa": 0.5 * 0.6 * 0.5 * 0.4 * 0.7 * 0.6,
    "babaaa": 0.3 * 0.9 * 0.5 * 0.4 * 0.7 * 0.6,
}
"""The correct programs that run through states expanded with K = 2, by probability. A second turn in the loop would
make them too long."""


def toy(values: dict[int, float] | None = None) -> Tables:
    """The tables of the toy, with a critic that gives these values, and 0 to other states."""
    successor, probability = np.full((11, 3), -1, np.int32), np.full((11, 3), 0.1, np.float32)
    for state, edges in EDGES.items():
        for token, (target, share) in edges.items():
            successor[state, "abc".index(token)], probability[state, "abc".index(token)] = target, share
    value = np.zeros(11, np.float32)
    for state, number in (values or {}).items():
        value[state] = number
    denotation = np.arange(11, dtype=np.int32)
    return Tables(successor, np.array(list(DONE.values()), np.int32), denotation, np.log(probability), value)


@functools.cache
def compiled(config: SearchConfig, with_critic: bool):
    def search(tables, allowed):
        domain = TableDomain(tables, LONGEST // INSTRUCTIONS)
        critic = domain.critic if with_critic else None
        problem = Problem(jnp.int32(S0), jnp.int32(INSTRUCTIONS), jnp.int32(T), allowed)
        key = jax.random.key(0)
        return search_graph(domain, domain.policy, critic, problem, key, instructions=INSTRUCTIONS, config=config)

    return quick_jit(search)


def search(space="execution", beam=2, rerank=128, critic_window=2, values=None, allowed=None):
    """The graph that a search of the toy discovers."""
    config = SearchConfig(space, beam, "epsilon-greedy", 0.0, rerank, critic_window)
    every = np.ones((LONGEST, 3), bool)
    return compiled(config, values is not None)(toy(values), every if allowed is None else allowed)


def beams(graph) -> list[dict[int, float]]:
    """The states of each beam in slot order, with P_t."""
    layers = zip(graph.beam.states.tolist(), np.exp(graph.beam.log_chart).tolist(), strict=True)
    return [{state: chart for state, chart in zip(*layer, strict=True) if chart} for layer in layers]


def texts(programs) -> dict[str, float]:
    """Programs as texts with their probabilities."""
    return {
        "".join("abc"[token] for token in row if token >= 0): float(np.exp(log_probability))
        for row, log_probability in zip(programs.tokens, programs.log_probability, strict=True)
        if np.isfinite(log_probability)
    }


@functools.cache
def compiled_extraction(size: int):
    domain = TableDomain(toy(), LONGEST // INSTRUCTIONS)
    return quick_jit(
        lambda graph: extract_programs(domain, graph, join(graph, "execution"), jnp.int32(INSTRUCTIONS), size)
    )


def extract(graph, size: int) -> dict[str, float]:
    return texts(compiled_extraction(size)(graph))


def assert_beam(beam: dict[int, float], **expected: float) -> None:
    """The states are in that order, with these probabilities."""
    names = {name: number for number, name in enumerate("S0 S1 S2 S3 S4 S5 S6 S7 S8 T F".split())}
    assert list(beam) == [names[name] for name in expected]
    assert list(beam.values()) == pytest.approx(list(expected.values()), rel=1e-5)


@pytest.fixture(scope="module")
def graph():
    return search()


def test_merging_adds_probabilities(graph):
    assert_beam(beams(graph)[2], S4=0.5 * 0.6 + 0.3 * 0.9, S3=0.5 * 0.3)
    assert_beam(beams(graph)[3], S5=0.57 * 0.4 + 0.15 * 0.5, S4=0.57 * 0.5)


def test_a_search_keeps_to_the_allowed_tokens_with_their_probability():
    """The first two tokens are given: b and a."""
    allowed = np.ones((LONGEST, 3), bool)
    allowed[:2] = [False, True, False], [True, False, False]
    found = search(allowed=allowed)
    assert_beam(beams(found)[1], S2=0.3)
    assert_beam(beams(found)[2], S4=0.3 * 0.9)
    assert_beam(beams(found)[3], S4=0.3 * 0.9 * 0.5, S5=0.3 * 0.9 * 0.4)
    assert set(extract(found, 8)) == {"baaaa", "babaaa"}


def test_in_program_space_prefixes_stay_apart():
    found = search("program")
    assert [found.beam.states[2].tolist(), (best_transitions(found)[1] % 3).tolist()] == [[S4, S4], [0, 0]]
    assert np.exp(found.beam.log_chart[2]).tolist() == pytest.approx([0.5 * 0.6, 0.3 * 0.9])
    assert not found.hit, "two prefixes turn in the loop: only merging leaves a place for others"


def test_the_same_state_is_scored_apart_at_different_iterations(graph):
    scores = [beam.get(S4) for beam in beams(graph)]
    assert scores == [None, None, *[pytest.approx(score) for score in (0.57, 0.285, 0.1425, 0.07125)]]


def test_correct_and_incorrect_terminal_states_use_no_place(graph):
    assert_beam(beams(graph)[4], S7=0.303 * 0.7, S4=0.285 * 0.5)
    assert_beam(beams(graph)[5], S4=0.1425 * 0.5, S5=0.1425 * 0.4)
    assert 0.2121 * 0.4 > 0.1425 * 0.5, "either would have pushed S4 and S5 down"
    assert graph.hit


def test_an_equal_score_goes_to_the_first_predecessor():
    layers = beams(search(beam=3))
    assert_beam(layers[1], S1=0.5, S2=0.3, S3=0.2)
    assert_beam(layers[2], S4=0.57, S3=0.15, S5=0.2 * 0.5)  # S6 has .2 * .5 as well, by a later token


def test_the_graph_joins_the_states_of_all_iterations(graph):
    """Vertices are numbered iteration * 2 + slot; S4 is expanded four times and S5 twice."""
    vertex = {S0: 0, S1: 2, S2: 3, S4: 4, S3: 5, S5: 6, S7: 8}
    same, joined, layered, distance = quick_jit(
        lambda graph: (
            same_vertex(graph, "execution"),
            join(graph, "execution"),
            next_vertex(graph),
            distances(graph, join(graph, "execution")),
        )
    )(graph)
    assert same.tolist() == [0, 1, 2, 3, 4, 5, 6, 4, 8, 4, 4, 6]
    assert joined[vertex[S0]].tolist() == [vertex[S1], vertex[S2], vertex[S3]]
    assert joined[vertex[S5]].tolist() == [vertex[S7], -1, -1], "S6 is never expanded"
    assert joined[vertex[S7]].tolist() == [-1, -1, -1], "there is no vertex for a terminal state"
    assert layered[0, 0].tolist() == [vertex[S1], vertex[S2], -1], "S3 falls out of the first beam"
    assert layered[3].tolist() == [[8, -1, -1], [-1, 9, -1]], "S7 and S4 stay, S5 and S6 fall out"
    expected = {S0: 4, S1: 4, S2: 4, S3: 3, S4: 3, S5: 2, S7: 1}
    assert {state: int(distance[vertex[state]]) for state in vertex} == expected


def test_programs_keep_to_the_length_limit_in_spite_of_the_cycle(graph):
    """`aabbaaa` would be correct too, but it has seven tokens."""
    found = extract(graph, 8)
    assert list(found) == list(PROGRAMS)
    assert found == pytest.approx(PROGRAMS, rel=1e-5)


def test_a_prefix_that_is_too_long_to_be_completed_leaves_the_extraction(graph):
    """With one prefix: a, aa, aab (.15 against .12 for aaa), then not aabb, which would need seven tokens."""
    assert extract(graph, 1) == pytest.approx({"aabaaa": PROGRAMS["aabaaa"]}, rel=1e-5)


def test_a_path_runs_through_a_state_that_fell_out_of_the_beam_and_came_back(graph):
    layers = beams(graph)
    assert S3 not in layers[1]
    assert S3 in layers[2]
    assert "caaa" in extract(graph, 8), "its first token leads to S3, which was pruned then"


def test_programs_of_a_search_in_program_space():
    """With eight places the prefixes that do not turn in the loop stay in the beam."""
    found = search("program", beam=8)
    expected = {program: PROGRAMS[program] for program in ("aaaaa", "baaaa", "caaa", "abaaa")}
    assert texts(quick_jit(lambda graph: complete_programs(graph, 4))(found)) == pytest.approx(expected, rel=1e-5)


def test_a_mask_that_allows_every_token_changes_nothing(graph):
    domain = TableDomain(toy(), LONGEST // INSTRUCTIONS)
    problem = Problem(jnp.int32(S0), jnp.int32(INSTRUCTIONS), jnp.int32(T))

    def unmasked():
        return beam_search(
            domain,
            domain.policy,
            problem,
            jax.random.key(0),
            select=greedy(2),
            outcome=outcome_of(domain, problem),
            instructions=INSTRUCTIONS,
            beam=2,
            space="execution",
        )

    jax.tree.map(np.testing.assert_array_equal, quick_jit(unmasked)(), graph)


@pytest.mark.parametrize("space", ["program", "execution"])
def test_the_most_probable_denotation_is_the_sum_over_its_programs(space):
    """Tokens b and c lead to different states of one denotation, each with less probability than a."""
    tables = Tables(
        successor=np.array([[1, 2, 3], [-1] * 3, [-1] * 3, [-1] * 3], np.int32),
        done=np.array([0, 1, 1, 1], np.int32),
        denotation=np.array([0, 7, 8, 8], np.int32),
        log_policy=np.log(np.array([[0.4, 0.25, 0.3]] * 4, np.float32)),
        value=np.zeros(4, np.float32),
    )
    domain = TableDomain(tables, max_tokens_per_instruction=2)
    config = SearchConfig(space, beam=2, selection="epsilon-greedy", epsilon=0.0)

    def by_denotation():
        problem = Problem(jnp.int32(0), jnp.int32(1), None)
        key = jax.random.key(0)
        graph = search_graph(domain, domain.policy, None, problem, key, instructions=1, config=config)
        return denotation_programs(domain, graph, 3)

    found = quick_jit(by_denotation)()
    assert list(texts(found).items()) == [("c", pytest.approx(0.55)), ("a", pytest.approx(0.4))]
    assert not found.found[2]


def test_the_negative_is_the_path_of_most_probable_predecessors(graph):
    """F comes from S7 only. Into S5 .57 * .4 by S4 is more than .15 * .5 by S3; into S4 .3 by S1 more than .27."""
    negatives = quick_jit(lambda graph: extract_negatives(graph, 4))(graph)
    assert texts(negatives.programs) == pytest.approx({"aaaab": 0.2121 * 0.4}, rel=1e-5)
    assert negatives.dropped == 0
    assert negatives.programs.vertices[0].tolist() == [0, 2, 4, 6, 8, -1], "the first of two slots, at each iteration"


def test_each_incorrect_state_has_one_negative_in_program_space_too():
    """Two of three tokens lead to the same incorrect state: with room for two negatives, both states have one."""
    tables = Tables(
        successor=np.array([[1, 1, 2], [-1] * 3, [-1] * 3], np.int32),
        done=np.array([0, 1, 1], np.int32),
        denotation=np.array([0, 1, 1], np.int32),
        log_policy=np.log(np.array([[0.5, 0.3, 0.2]] * 3, np.float32)),
        value=np.zeros(3, np.float32),
    )
    domain = TableDomain(tables, max_tokens_per_instruction=2)
    config = SearchConfig("program", beam=2, selection="epsilon-greedy", epsilon=0.0)

    def negatives():
        problem = Problem(jnp.int32(0), jnp.int32(1), jnp.int32(0))
        key = jax.random.key(0)
        graph = search_graph(domain, domain.policy, None, problem, key, instructions=1, config=config)
        return extract_negatives(graph, 2), extract_negatives(graph, 1)

    both, one = quick_jit(negatives)()
    assert texts(both.programs) == pytest.approx({"a": 0.5, "c": 0.2}, rel=1e-5)
    assert texts(one.programs) == pytest.approx({"a": 0.5}, rel=1e-5)
    assert (both.dropped, one.dropped) == (0, 1), "a state counts once, however many programs lead to it"


VALUES = {S3: 0.9, S4: 0.9, S6: 0.4}
"""S3 and S4 belong to the first of three instructions, outside the critic's window."""


def test_the_critic_ranks_states_of_the_last_two_instructions():
    layers = beams(search(values=VALUES))
    assert_beam(layers[1], S1=0.5, S2=0.3)
    assert_beam(layers[2], S4=0.57, S3=0.15)
    assert_beam(layers[3], S6=0.075, S5=0.303)  # by .475 and .303; S4 with .285 falls out
    assert_beam(layers[4], S6=0.303 * 0.3, S7=0.303 * 0.7)  # the chart is the actor's: by .4909 and .2121


def test_the_critic_ranks_no_state_beyond_the_best_by_actor_score():
    assert_beam(beams(search(rerank=2, values=VALUES))[3], S5=0.303, S4=0.285)
    assert_beam(beams(search(values=VALUES))[3], S6=0.075, S5=0.303)


def test_the_size_of_the_critics_window_can_be_set():
    assert_beam(beams(search(critic_window=3, values=VALUES))[1], S3=0.2, S1=0.5)
    assert_beam(beams(search(critic_window=1, values=VALUES))[3], S5=0.303, S4=0.285)


def test_a_critic_that_says_nothing_changes_nothing(graph):
    np.testing.assert_array_equal(search(values={}).beam.states, graph.beam.states)


def test_the_twin_gives_the_same_numbers():
    """What the other tests rely on is held against the same drawing."""
    plain = Twin(toy(), T, INSTRUCTIONS, LONGEST // INSTRUCTIONS)
    found = twin.beam_search(plain.task, plain.policy, None, space="execution", beam=2)
    assert [list(beam) for beam in found.beams] == [[S0], [S1, S2], [S4, S3], [S5, S4], [S7, S4], [S4, S5]]
    assert np.exp(found.beams[3][S5].log_chart) == pytest.approx(0.303, rel=1e-5)
    programs = twin.extract_programs(plain.task, found, 8).found
    assert {"".join(program): np.exp(score) for program, score in programs.items()} == pytest.approx(PROGRAMS, rel=1e-5)
    assert twin.statistics(plain.task, found) == twin.Statistics(
        states=[1, 2, 2, 2, 2, 2],
        successors=[3, 3, 4, 4, 4, 4],
        distinct=[3, 2, 3, 4, 4, 4],
        paths=(1 + 2 + 3 + 5 + 5 + 4) / 6,
        correct_discarded=2,  # S3 falls out at once and is expanded after that, S5 the other way round
        critic_window_share=[0, 0, 0, 0.5, 0.5, 0.5],
    )
