"""What a policy with context sees, against a plain-Python reading, and that states are told apart by it."""

from __future__ import annotations

from random import Random

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from reference import context as reference
from reference.language import Language
from reference.walks import Walker
from reference.worlds import random_world

from vbsix import PythonDomain, VbsixError, get_domain
from vbsix.domains.names import BUILT_IN, base_name
from vbsix.testing import check_domain
from vbsix.utilities.trees import choose

INSTRUCTIONS = 6
WALKS = 25


@pytest.fixture(scope="module", params=sorted(BUILT_IN))
def walks(request):
    """Walks of the plain language, and the states of both domains at the end of each prefix of them."""
    name = request.param
    random, language = Random(f"context in {name}"), Language(name, INSTRUCTIONS)
    plain, domain = get_domain(name), get_domain(name).with_context()
    expand = [jax.jit(one.expand) for one in (plain, domain)]
    found = []
    for _ in range(WALKS):
        world, walker = random_world(name, random), Walker(language, random, stray=0.05)
        walk = [language.start(world)]
        states = [one.start(one.parse_world(world), INSTRUCTIONS) for one in (plain, domain)]
        found.append((list(walk), *states))
        while valid := [token for token in domain.tokens if language.step(walk[-1], token)]:
            token = walker.choose(walk[-1], valid)
            walk.append(language.step(walk[-1], token))
            number = domain.tokens.index(token)
            expanded = [one(state) for one, state in zip(expand, states, strict=True)]
            assert all(is_valid[number] for _, is_valid in expanded)
            np.testing.assert_array_equal(*(is_valid for _, is_valid in expanded))
            states = [choose(successors, number) for successors, _ in expanded]
            found.append((list(walk), *states))
    return domain, language.rules, found


def test_context_is_read_as_in_plain_python(walks):
    domain, rules, found = walks
    observe = jax.jit(lambda state: (domain.observe_context(state), domain.observe_world(state)))
    seen = set()
    for walk, _, state in found:
        context, world = observe(state)
        expected = reference.command_fields(rules, walk)
        np.testing.assert_array_equal(context.commands, expected)
        np.testing.assert_array_equal(context.world, world)
        seen |= {(place, value) for fields in expected for place, value in enumerate(fields)}
    counts = list(domain.command_fields.values())
    assert all(0 <= value <= counts[place] for place, value in seen)
    tried = {
        name for place, name in enumerate(domain.command_fields) if any((place, value) in seen for value in range(1, 9))
    }
    numbers = {"first number" if base_name(domain.name) == "tangrams" else "second number"}
    assert tried == {name for name in domain.command_fields if not name.endswith(" number")} | numbers


def test_the_executor_is_the_same_with_context(walks):
    """Worlds, stacks and what the policy sees of them; what commands recall, too."""
    domain, _, found = walks
    plain = get_domain(domain.name)
    for _, without, state in found[:: len(found) // 150]:
        np.testing.assert_array_equal(without.world, state.world)
        np.testing.assert_array_equal(without.stack, state.stack)
        np.testing.assert_array_equal(domain.instructions_done(state), plain.instructions_done(without))
        assert domain.denotation_key(state).tolist() == plain.denotation_key(without).tolist()


def test_states_are_told_apart_by_what_the_policy_sees(walks):
    domain, rules, found = walks
    by_key, by_state = {}, {}
    keys = np.asarray(jax.jit(jax.vmap(domain.key))(jax.tree.map(lambda *all: jnp.stack(all), *[s for *_, s in found])))
    for (walk, *_), key in zip(found, keys.tolist(), strict=True):
        state = walk[-1], str(reference.places_then(rules, walk))
        assert by_key.setdefault(tuple(key), state) == state
        assert by_state.setdefault(state, tuple(key)) == tuple(key)


def test_a_shape_that_was_elsewhere_makes_another_state():
    """Two ways to the same world and the same commands; only one of them has removed shape 0 from the first place."""
    plain, domain = get_domain("tangrams"), get_domain("tangrams").with_context()

    def run(domain, world: str, program: str):
        state = domain.start(domain.parse_world(world), 3)
        for token in program.split():
            successors, valid = domain.expand(state)
            number = domain.tokens.index(token)
            assert valid[number]
            state = choose(successors, number)
        return state

    ends = [("1:0 2:1", "all-objects 1 index ARemove"), ("1:1 2:0", "all-objects 2 index ARemove")]
    assert len({tuple(plain.key(run(plain, *end)).tolist()) for end in ends}) == 1
    assert len({tuple(domain.key(run(domain, *end)).tolist()) for end in ends}) == 2
    then = [domain.observe_context(run(domain, *end)).commands[0, 2].item() for end in ends]
    assert then == [1, 2]
    recalled = run(domain, "1:1 2:0", "all-objects 2 index ARemove 1 1 H1 AAdd")
    assert domain.format_world(recalled.world) == "1:0 2:1"


def test_a_domain_with_context_is_one_object():
    domain = get_domain("scene")
    assert domain.with_context() is domain.with_context() is domain.with_context().with_context() is not domain
    check_domain(domain.with_context(), ["1:r_ 2:__ 3:bg 4:__ 5:__ 6:__ 7:__ 8:__ 9:__ 10:__"])


def test_more_instructions_than_fit_are_refused():
    domain = get_domain("tangrams").with_context()
    with pytest.raises(VbsixError, match="at most 240 instructions"):
        domain.start(domain.parse_world("1:0"), 241)


class Counter:
    tokens = ("up", "end")
    max_tokens_per_instruction = 3
    attributes = {"count": 4}

    def start(self, context):
        return (context, 0)

    def step(self, state, token):
        count, done = state
        return (count, done + 1) if token == "end" else (count + 1, done) if count < 3 else None

    def instructions_done(self, state):
        return state[1]

    def denotation(self, state):
        return state[0]

    def describe(self, state):
        return {"count": state[0]}


def test_a_language_in_plain_python_shows_what_it_describes():
    domain = PythonDomain(Counter)
    assert domain.with_context() is domain
    context = domain.observe_context(domain.start(domain.parse_world("2"), 2))
    assert context.world.tolist() == [[3]]
    assert context.commands.shape == (0, 0)
