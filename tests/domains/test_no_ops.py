"""A domain without the commands that change nothing."""

import jax
import numpy as np
import pytest
from domains.test_own_language import Sums, Walk

from vbsix.domains.no_ops import without_no_ops
from vbsix.domains.python import PythonDomain
from vbsix.domains.registry import get_domain, is_built_in
from vbsix.testing import check_domain


@pytest.mark.parametrize("language", [Sums, Walk])
def test_it_is_a_domain(language):
    check_domain(without_no_ops(PythonDomain(language)), ["4", "5"], instructions=2)


def test_a_compiled_domain_keeps_its_tokens_and_its_texts():
    domain, plain = without_no_ops(get_domain("tangrams")), get_domain("tangrams")
    check_domain(domain, ["1:0 2:3 3:4", "1:2"], instructions=2)
    assert domain is without_no_ops(plain) and domain.unwrapped is plain and is_built_in(domain)
    assert (domain.tokens, domain.observation_spec()) == (plain.tokens, plain.observation_spec())
    assert domain.with_context() is without_no_ops(plain.with_context())


def test_a_token_that_completes_a_no_op_is_explained():
    domain = without_no_ops(PythonDomain(Walk))
    state = domain.start(domain.parse_world("4"), 1)
    assert domain.explain(state, "same") == "same: the command would change nothing"
    moved = jax.tree.map(lambda leaf: leaf[0], domain.expand(state)[0])
    assert domain.explain(moved, "same") is None
    back = jax.tree.map(lambda leaf: leaf[1], domain.expand(moved)[0])
    assert domain.explain(back, "same") is not None


def test_states_of_two_commands_in_progress_are_distinct():
    """From 4 and from 6, `one` and `two` lead to 5 within a command; ending it there changes something. From 5 by `one`
    and `two`, ending it changes nothing."""
    domain = without_no_ops(PythonDomain(Walk))

    def walk(world, *tokens):
        state = domain.start(domain.parse_world(world), 1)
        for token in tokens:
            state = jax.tree.map(lambda leaf, token=token: leaf[token], domain.expand(state)[0])
        return np.asarray(domain.key(state)).tolist()

    assert walk("4", 0) == walk("4", 0)
    assert len({tuple(walk("4", 0)), tuple(walk("6", 1)), tuple(walk("5"))}) == 3
