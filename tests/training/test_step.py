"""One step after another on examples that are known."""

from __future__ import annotations

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from training.tiny import tiny_config

from vbsix.data.examples import Example, Row, to_arrays
from vbsix.data.scone import load_split
from vbsix.data.words import random_words
from vbsix.domains.registry import get_domain
from vbsix.errors import InvalidProgram
from vbsix.execution import execute
from vbsix.models.layers import renormalise
from vbsix.search import Problem, beam_search
from vbsix.search.beam import INVALID
from vbsix.training.chunk import create_learners, train_chunk
from vbsix.training.step import _decayed, _drawn_from, _expanded, create_networks, read_example
from vbsix.training.task import SYNTHETIC, load_task

DOMAIN = get_domain("tangrams")
REMOVE = Example("1", "1:0 2:3 3:4", ("remove the second figure",), "1:0 2:4")
UNREACHABLE = Example("2", "1:0 2:3 3:4", ("turn them all round",), "1:1 2:2")


@functools.cache
def chunk(method: str, example: Example, steps: int, **changes):
    """Learners before and after some steps on one example alone, and the loss of those steps."""
    config = tiny_config(method, search__beam=96, training__learning_rate=0.01, **changes)
    words = random_words([text for each in (REMOVE, UNREACHABLE) for text in each.instructions], config.network.word)
    arrays = jax.tree.map(jnp.asarray, to_arrays(DOMAIN, [example], words, 1, config.data.max_words))
    return learn(DOMAIN, config, words.vectors, arrays, steps)


def learn(domain, config, vectors, arrays, steps):
    seeds = jnp.arange(1)
    losses, before = [], jax.tree.map(np.asarray, create_learners(domain, config, seeds))
    learners = create_learners(domain, config, seeds)
    for first in range(0, steps, 5):
        learners, metrics = train_chunk(
            domain, config, learners, seeds, vectors, arrays, jnp.int32(first), steps=5, critic_ranks=False
        )
        losses.append(float(metrics["policy_loss"].total[0] / max(metrics["hit"].total[0], 1)))
    return before, jax.tree.map(np.asarray, learners), losses


def changed(before, after) -> bool:
    leaves = zip(jax.tree.leaves(before), jax.tree.leaves(after), strict=True)
    return any(not np.array_equal(old, new) for old, new in leaves)


@pytest.mark.parametrize("method", ["vbsix", "paper-vbsix", "expert-mml"])
def test_the_loss_falls_on_an_example_whose_programs_are_found(method):
    before, after, losses = chunk(method, REMOVE, 40)
    assert changed(before, after)
    assert losses[-1] < losses[0] / 2


@pytest.mark.parametrize(
    ("domain", "method", "known"),
    [
        ("scene", "execution-only", "all-objects {} index ALeave"),
        ("alchemy", "value-only", "all-objects {} index X1/1 ADrain"),
        ("tangrams", "mml", "all-objects {} index ARemove"),
    ],
)
def test_the_loss_falls_on_rows_of_scone_whose_programs_are_known(scone_data, domain, method, known):
    programs = [known.format(number) for number in range(1, 4)]
    rows = [
        Example(row.id, row.worlds[0], row.utterances[:1], row.worlds[1])
        for row in load_split(scone_data, get_domain(domain), "train")[:200]
        if any(explains(domain, program, row) for program in programs)
    ]
    config = tiny_config(method, domain, search__beam=96, training__batch=8, training__learning_rate=0.01)
    words = random_words([text for row in rows for text in row.instructions], config.network.word)
    arrays = to_arrays(get_domain(domain), rows[:8], words, 1, config.data.max_words)
    *_, losses = learn(get_domain(domain), config, words.vectors, jax.tree.map(jnp.asarray, arrays), 40)
    assert 0 < losses[-1] < losses[0] / 2


def explains(domain: str, program: str, row: Row) -> bool:
    try:
        return execute(domain, row.worlds[0], program)[-1].world == row.worlds[1]
    except InvalidProgram:
        return False


@pytest.mark.parametrize("method", ["vbsix", "paper-vbsix"])
def test_a_batch_without_a_find_changes_nothing(method):
    before, after, _ = chunk(method, UNREACHABLE, 5)
    assert not changed(before, after)


def test_of_the_longest_examples_is_what_is_of_them_alone():
    config = tiny_config(search__beam=96)
    words = random_words(REMOVE.instructions, config.network.word)
    twice = Example("3", REMOVE.context, REMOVE.instructions * 2, "1:0")

    def measure(*examples: Example):
        arrays = jax.tree.map(jnp.asarray, to_arrays(DOMAIN, examples, words, 2, config.data.max_words))
        learners, seeds = create_learners(DOMAIN, config, jnp.arange(1)), jnp.arange(1)
        return train_chunk(
            DOMAIN, config, learners, seeds, words.vectors, arrays, jnp.int32(0), steps=1, critic_ranks=False
        )[1]

    short, mixed, long = measure(REMOVE), measure(REMOVE, twice), measure(twice)
    for name in ("hit", "paths", "correct_discarded"):
        longest = f"{name}_longest"
        assert short[name].count > 0 == short[longest].count
        assert tuple(long[longest]) == tuple(long[name])
        assert 0 < mixed[longest].count < mixed[name].count
    share = mixed["hit_longest"].count / mixed["hit"].count
    assert mixed["paths_longest"].count / mixed["paths"].count > share, "more instructions take more iterations"


def test_the_learning_rate_falls_over_the_last_steps():
    config = tiny_config(training__steps=100, training__decay_share=0.2)
    assert [float(_decayed(config, jnp.int32(number))) for number in (0, 80, 90, 100)] == [1, 1, 0.5, 0]
    before, even, _ = chunk("mml", REMOVE, 5)
    falling = chunk("mml", REMOVE, 5, training__steps=5, training__decay_share=1.0)[1]
    moved = [np.abs(after.networks.policy.tokens - before.networks.policy.tokens).sum() for after in (even, falling)]
    assert 0.4 < moved[1] / moved[0] < 0.8, "the mean of 1, 0.8, 0.6, 0.4 and 0.2 is 0.6"


def test_dropout_is_of_words_and_of_what_the_policy_reads():
    config = tiny_config()
    task = load_task(config, SYNTHETIC)
    networks = create_networks(DOMAIN, config, jax.random.key(0))
    vectors, arrays = jnp.asarray(task.words.vectors), task.arrays(task.examples)
    example = jax.tree.map(lambda leaf: jnp.asarray(leaf[0]), arrays)

    def read(share: float, key: int):
        return read_example(DOMAIN, networks, vectors, example, share, jax.random.key(key)).policy

    whole = read_example(DOMAIN, networks, vectors, example).policy
    jax.tree.map(np.testing.assert_array_equal, read(0.0, 1), whole)
    tables = read(0.5, 1)
    jax.tree.map(np.testing.assert_array_equal, tables.stack, whole.stack)
    for name in ("first", "keys", "word_logits"):
        assert not np.allclose(getattr(tables, name), getattr(whole, name))
    assert changed(tables, read(0.5, 2))
    many = jax.vmap(lambda key: read_example(DOMAIN, networks, vectors, example, 0.5, key).policy.first)
    found = np.asarray(many(jax.random.split(jax.random.key(0), 4000)))
    assert len(np.unique(found[:, 0, 0])) > 3000, "it is not always the same"


def test_training_drops():
    assert changed(chunk("mml", REMOVE, 5)[1], chunk("mml", REMOVE, 5, training__dropout=0.5)[1])


def test_alpha_weighs_examples_by_what_explains_them():
    for programs in ("graph", "extracted"):
        even, weighed = (chunk("mml", REMOVE, 5, training__programs=programs, training__alpha=a)[2] for a in (0.0, 1.0))
        assert 0 < weighed[0] < 0.5 * even[0], "the programs of a flat policy are improbable"


def test_reinforce_does_not_make_random_tokens_ever_less_probable():
    """Nothing here has a reward, and the baseline is above it: all that is drawn is made less probable."""
    losses = chunk("reinforce", UNREACHABLE, 300, training__baseline=1.0)[2]
    each = np.array(losses) / (5 * tiny_config().training.batch)  # a sum over five steps
    least = np.log(tiny_config().training.sample_epsilon / len(DOMAIN.tokens))
    assert np.all(each > DOMAIN.max_tokens_per_instruction * least)


def test_the_shortest_examples_are_drawn_first():
    config = tiny_config(data__lengths=(2, 1), data__evaluation=(1,), training__short_first=3)
    task = load_task(config, SYNTHETIC)
    lengths = [len(example.instructions) for example in task.examples]
    assert lengths == sorted(lengths) and set(lengths) == {1, 2}
    arrays = task.arrays(task.examples)
    assert [int(_drawn_from(config, arrays, jnp.int32(number))) for number in (2, 3)] == [20, 40]
    assert _drawn_from(tiny_config(), arrays, jnp.int32(0)) == 40


def test_dead_ends_are_left_out_of_the_search_and_not_of_the_policy():
    """A policy over valid tokens learns with the probabilities that it searches with."""
    config = tiny_config("execution-only", search__prune=True, search__epsilon=0.0)

    def even(state, valid):
        return renormalise(jnp.zeros(len(DOMAIN.tokens)), valid)

    problem = Problem(DOMAIN.parse_world("1:0 2:3 3:4"), jnp.int32(1), DOMAIN.parse_target("1:0 2:4"))
    graph = beam_search(DOMAIN, even, None, problem, jax.random.key(0), instructions=1, config=config.search)
    searched = np.asarray(graph.expansion.log_policy).reshape(-1, len(DOMAIN.tokens))
    alive = np.asarray(graph.beam.alive).reshape(-1)
    states, valid = _expanded(DOMAIN, config, graph, jnp.arange(len(alive)))
    np.testing.assert_allclose(np.exp(jax.vmap(even)(states, valid))[alive], np.exp(searched)[alive], rtol=1e-5)
    kept = np.asarray(graph.expansion.kind != INVALID).reshape(-1, len(DOMAIN.tokens))
    assert (kept.sum(axis=1) < np.asarray(valid).sum(axis=1))[alive].any()
