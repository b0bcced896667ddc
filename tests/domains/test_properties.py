"""What holds for any world, any program and any text."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from reference.language import Language
from reference.outcomes import by_execute, by_twin
from reference.worlds import random_world

from vbsix import InvalidProgram, InvalidWorld, VbsixError, execute, get_domain
from vbsix.domains.names import BUILT_IN

DOMAINS = sorted(BUILT_IN)
LONGEST = 14

each_domain = pytest.mark.parametrize("domain", DOMAINS)


def worlds(domain: str) -> st.SearchStrategy[str]:
    return st.randoms(use_true_random=False).map(lambda random: random_world(domain, random))


def tokens(domain: str) -> st.SearchStrategy[str]:
    return st.sampled_from(Language(domain).tokens)


def nearly(texts: st.SearchStrategy[str], alphabet: str) -> st.SearchStrategy[str]:
    """Texts with a piece cut out and something else put in."""

    def damage(text: str, start: int, length: int, piece: str) -> str:
        return text[:start] + piece + text[start + length :]

    return st.builds(damage, texts, st.integers(0, 60), st.integers(0, 4), st.text(alphabet, max_size=4))


@each_domain
@given(data=st.data())
@settings(max_examples=60)
def test_any_program_runs_as_in_the_twin_or_is_invalid_as_there(domain, data):
    """The program is mostly valid tokens, so that it goes somewhere, and ends with any token."""
    language = Language(domain)
    world = data.draw(worlds(domain))
    state, program = language.start(world), []
    for _ in range(data.draw(st.integers(0, LONGEST))):
        valid = [token for token in language.tokens if language.step(state, token)]
        if not valid:
            break
        # Later tokens first: actions and history are rarer among the valid ones than constants.
        token = data.draw(st.sampled_from(valid[::-1]))
        state, program = language.step(state, token), [*program, token]
    program.append(data.draw(tokens(domain)))
    assert by_execute(domain, world, program) == by_twin(domain, world, program)


@each_domain
@given(data=st.data())
@settings(max_examples=60)
def test_any_sequence_of_tokens_runs_or_raises_invalid_program(domain, data):
    world = data.draw(worlds(domain))
    program = data.draw(st.lists(tokens(domain), max_size=LONGEST))
    try:
        steps = execute(domain, world, program)
    except InvalidProgram as error:
        assert error.token == program[error.position]
        assert error.reason
    else:
        assert [step.token for step in steps] == program


@each_domain
@given(data=st.data())
def test_formatting_and_parsing_a_world_are_inverse(domain, data):
    text = data.draw(worlds(domain))
    compiled = get_domain(domain)
    assert compiled.format_world(compiled.parse_world(text)) == text


@each_domain
@given(data=st.data())
@settings(max_examples=200)
def test_a_text_is_a_world_or_is_refused(domain, data):
    text = data.draw(st.text() | nearly(worlds(domain), "0123456789:_rygopbe \t\n٣²-+"))
    compiled = get_domain(domain)
    try:
        world = compiled.parse_world(text)
    except InvalidWorld as error:
        assert str(error)
    else:
        assert compiled.format_world(world) == " ".join(text.split())


@each_domain
@given(data=st.data())
@settings(max_examples=60)
def test_any_text_as_world_and_program_gives_a_result_or_one_of_our_errors(domain, data):
    programs = st.lists(tokens(domain), max_size=LONGEST).map(" ".join)
    world = data.draw(st.text() | worlds(domain))
    program = data.draw(st.text() | nearly(programs, "0123456789-AHPX/ \t\n٣é") | st.lists(st.text(), max_size=3))
    try:
        execute(domain, world, program)
    except VbsixError as error:
        assert str(error)


@given(name=st.text())
def test_any_text_as_a_domain_gives_one_of_our_errors(name):
    with pytest.raises(VbsixError):
        execute(name + "?", "", "")
