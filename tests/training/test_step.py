"""One step after another on examples that are known."""

from __future__ import annotations

import functools
import itertools

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from reference.comparison import quick_jit
from reference.outcomes import by_twin
from training.tiny_config import tiny_config, tiny_dataset

from vbsix.config.schema import Config
from vbsix.data.examples import Arrays, Example, Row, to_arrays
from vbsix.data.scone import load_split
from vbsix.data.words import UNKNOWN, random_words
from vbsix.domains.registry import get_domain
from vbsix.models.heads import read_example
from vbsix.models.layers import renormalise
from vbsix.search import Problem, search_graph
from vbsix.search.beam import DEAD_END, INVALID
from vbsix.training import mml as mml_module
from vbsix.training import step as step_module
from vbsix.training.chunk import Members, create_learners, train_chunk
from vbsix.training.mml import expanded_states
from vbsix.training.objective import Mean
from vbsix.training.step import _count_examples, _learning_rate_scale, create_learner, update, whole_span

DOMAIN = get_domain("tangrams")
REMOVE = Example("1", "1:0 2:3 3:4", ("remove the second figure",), "1:0 2:4")
UNREACHABLE = Example("2", "1:0 2:3 3:4", ("turn them all round",), "1:1 2:2")


@functools.cache
def chunk(method: str, example: Example, steps: int, recipe: str = "stochastic", **changes):
    """Learners before and after some steps on one example alone, and the loss of those steps."""
    config = tiny_config(method, recipe=recipe, search__beam=96, training__learning_rate=0.01, **changes)
    arrays, vectors = to_example(example, config)
    return learn(DOMAIN, config, vectors, arrays, steps)


def to_example(example: Example, config: Config):
    """Arrays of one example, and the vectors of its words."""
    words = random_words([text for each in (REMOVE, UNREACHABLE) for text in each.instructions], config.network.word)
    arrays = to_arrays(DOMAIN, [example], words, 1, config.data.max_words)
    return jax.tree.map(jnp.asarray, arrays), words.vectors


def learn(domain, config, vectors, arrays, steps):
    seeds = jnp.arange(1)
    losses, before = [], jax.tree.map(np.asarray, create_learners(domain, config, seeds))
    learners = create_learners(domain, config, seeds)
    for first in range(0, steps, 5):
        learners, metrics = train_chunk(
            domain, config, learners, Members(seeds), vectors, arrays, jnp.int32(first), steps=5, critic_ranks=False
        )
        losses.append(float(metrics["policy_loss"].total[0] / max(metrics["hit"].total[0], 1)))
    return before, jax.tree.map(np.asarray, learners), losses


def changed(before, after) -> bool:
    leaves = zip(jax.tree.leaves(before), jax.tree.leaves(after), strict=True)
    return any(not np.array_equal(old, new) for old, new in leaves)


@pytest.mark.parametrize(
    ("method", "recipe"), [("vbsix", "stochastic"), ("vbsix", "published"), ("expert-mml", "stochastic")]
)
@pytest.mark.integration
def test_the_loss_falls_on_an_example_whose_programs_are_found(method, recipe):
    before, after, losses = chunk(method, REMOVE, 40, recipe)
    assert changed(before, after)
    assert losses[-1] < losses[0] / 2


@pytest.mark.parametrize(
    ("domain", "method", "known"),
    [
        pytest.param("scene", "execution-only", "all-objects {} index ALeave", marks=pytest.mark.slow),
        pytest.param("alchemy", "value-only", "all-objects {} index X1/1 ADrain", marks=pytest.mark.slow),
        pytest.param("tangrams", "mml", "all-objects {} index ARemove", marks=pytest.mark.slow),
    ],
)
@pytest.mark.integration
def test_the_loss_falls_on_rows_of_scone_whose_programs_are_known(scone_data, domain, method, known):
    programs = [known.format(number).split() for number in range(1, 4)]
    known_rows = (
        Example(row.id, row.worlds[0], row.utterances[:1], row.worlds[1])
        for row in load_split(scone_data, get_domain(domain), "train")
        if any(explains(domain, program, row) for program in programs)
    )
    rows = list(itertools.islice(known_rows, 8))
    config = tiny_config(method, domain, search__beam=96, training__batch=8, training__learning_rate=0.01)
    words = random_words([text for row in rows for text in row.instructions], config.network.word)
    arrays = to_arrays(get_domain(domain), rows, words, 1, config.data.max_words)
    *_, losses = learn(get_domain(domain), config, words.vectors, jax.tree.map(jnp.asarray, arrays), 40)
    assert 0 < losses[-1] < losses[0] / 2


def explains(domain: str, program: list[str], row: Row) -> bool:
    trace, rejected_at = by_twin(domain, row.worlds[0], program)
    return rejected_at is None and trace[-1].world == row.worlds[1]


@pytest.mark.integration
def test_a_batch_without_a_hit_changes_nothing():
    before, after, _ = chunk("vbsix", UNREACHABLE, 5)
    assert not changed(before, after)


@pytest.mark.integration
def test_the_published_recipe_updates_the_critic_on_a_batch_without_a_hit():
    """On negatives, as in Algorithm 2; the policy, and its optimiser's state, stay as they are."""
    before, after, _ = chunk("vbsix", UNREACHABLE, 5, "published")
    for old, new in zip(before[:2], after[:2], strict=True):  # networks, then the states of their optimisers
        assert not changed(old.policy, new.policy)
        assert changed(old.critic, new.critic)


@functools.cache
def fresh_learner():
    return quick_jit(lambda: create_learner(DOMAIN, tiny_config(), jnp.int32(0)))()


def updated(hit: bool | None, step: int = 0, **changes):
    """A learner before and after one update with gradients of 1; None for an objective that does not measure hits."""
    config, learner = tiny_config(**changes), fresh_learner()
    gradients = jax.tree.map(np.ones_like, learner.networks)
    metrics = {} if hit is None else {"hit": Mean(jnp.float32(hit), jnp.float32(1))}
    return learner, quick_jit(functools.partial(update, config))(learner, gradients, metrics, jnp.int32(step))


def networks_and_optimisers(hit: bool | None, **changes):
    before, after = updated(hit, **changes)
    return zip(before[:2], after[:2], strict=True)


@pytest.mark.parametrize("critic_updates", ["always", "with-hits"])
@pytest.mark.parametrize("hit", [False, True])
def test_what_is_updated(critic_updates, hit):
    for old, new in networks_and_optimisers(hit, training__critic_updates=critic_updates):
        assert changed(old.policy, new.policy) == hit
        assert changed(old.critic, new.critic) == (hit or critic_updates == "always")


@pytest.mark.parametrize(("hit", "objective"), [(False, "reinforce"), (None, "mml")])
def test_reinforce_and_objectives_that_do_not_measure_hits_update_on_every_batch(hit, objective):
    for old, new in networks_and_optimisers(hit, training__objective=objective):
        assert changed(old.policy, new.policy) and changed(old.critic, new.critic)


@pytest.mark.integration
def test_both_networks_are_updated_on_a_batch_with_a_hit():
    before, after, _ = chunk("vbsix", REMOVE, 40, "published")
    for old, new in zip(before[:2], after[:2], strict=True):
        assert changed(old.policy, new.policy) and changed(old.critic, new.critic)


@pytest.mark.integration
def test_of_the_longest_examples_is_what_is_of_them_alone():
    config = tiny_config("execution-only", search__beam=96)
    words = random_words(REMOVE.instructions, config.network.word)
    twice = Example("3", REMOVE.context, REMOVE.instructions * 2, "1:0")

    def measure(*examples: Example):
        arrays = jax.tree.map(jnp.asarray, to_arrays(DOMAIN, examples, words, 2, config.data.max_words))
        learners, seeds = create_learners(DOMAIN, config, jnp.arange(1)), jnp.arange(1)
        return train_chunk(
            DOMAIN, config, learners, Members(seeds), words.vectors, arrays, jnp.int32(0), steps=1, critic_ranks=False
        )[1]

    short, mixed, long = measure(REMOVE, REMOVE), measure(REMOVE, twice), measure(twice, twice)
    for name in ("hit", "paths", "correct_discarded"):
        longest = f"{name}_longest"
        assert short[name].count > 0 == short[longest].count
        assert tuple(long[longest]) == tuple(long[name])
        assert 0 < mixed[longest].count < mixed[name].count
    share = mixed["hit_longest"].count / mixed["hit"].count
    assert mixed["paths_longest"].count / mixed["paths"].count > share, "more instructions take more iterations"


def test_the_learning_rate_falls_over_the_last_steps():
    config = tiny_config(training__steps=100, training__decay_share=0.2)
    assert [float(_learning_rate_scale(config, jnp.int32(number))) for number in (0, 80, 90, 100)] == [1, 1, 0.5, 0]

    def moved(step: int, share: float):
        before, after = updated(True, step, training__steps=100, training__decay_share=share)
        return np.asarray(after.networks.policy.tokens - before.networks.policy.tokens)

    whole = moved(90, 0.0)
    assert np.all(whole < 0)
    np.testing.assert_allclose(moved(90, 0.2), whole / 2, rtol=1e-3)
    np.testing.assert_array_equal(moved(100, 0.2), 0)


def test_dropout_is_of_words_and_of_what_the_policy_reads():
    config = tiny_config()
    dataset = tiny_dataset(config)
    networks = fresh_learner().networks
    vectors, arrays = jnp.asarray(dataset.words.vectors), dataset.arrays(dataset.examples)
    example = jax.tree.map(lambda leaf: jnp.asarray(leaf[0]), arrays)

    def read_with(share: float, key: jax.Array):
        return read_example(DOMAIN, networks, vectors, example, share, key).policy

    compiled = quick_jit(read_with, static_argnums=0)

    def read(share: float, key: int):
        return compiled(share, jax.random.key(key))

    whole = quick_jit(lambda: read_example(DOMAIN, networks, vectors, example).policy)()
    jax.tree.map(np.testing.assert_array_equal, read(0.0, 1), whole)
    tables = read(0.5, 1)
    jax.tree.map(np.testing.assert_array_equal, tables.stack, whole.stack)
    for name in ("first", "keys", "word_logits"):
        assert not np.allclose(getattr(tables, name), getattr(whole, name))
    assert changed(tables, read(0.5, 2))
    many = quick_jit(jax.vmap(lambda key: read_with(0.5, key).first))
    found = np.asarray(many(jax.random.split(jax.random.key(0), 4000)))
    assert len(np.unique(found[:, 0, 0])) > 3000, "it is not always the same"


def test_training_drops(monkeypatch):
    """A step reads its examples with the dropout of the settings, and a key for each of them."""
    calls = []

    def read(domain, networks, vectors, example, dropout, key, **others):
        calls.append((dropout, key is not None, others))
        return read_example(domain, networks, vectors, example, dropout, key, **others)

    monkeypatch.setattr(step_module, "read_example", read)
    shares = {"word_dropout": 0.3, "context_dropout": 0.2}
    config = tiny_config("reinforce", training__dropout=0.5, training__word_dropout=0.3, training__context_dropout=0.2)
    arrays, vectors = to_example(REMOVE, config)
    learner = jax.eval_shape(lambda: create_learner(DOMAIN, config, jnp.int32(0)))
    step = functools.partial(step_module.train_step, DOMAIN, config, critic_ranks=False)
    jax.eval_shape(step, learner, vectors, arrays, jax.random.key(0), jnp.int32(0))
    assert calls == [(0.5, True, shares)]


def test_dropped_words_are_read_as_unknown_ones():
    config = tiny_config()
    dataset = tiny_dataset(config)
    networks = fresh_learner().networks
    vectors, arrays = jnp.asarray(dataset.words.vectors), dataset.arrays(dataset.examples)
    example = jax.tree.map(lambda leaf: jnp.asarray(leaf[0]), arrays)
    unknown = example._replace(words=jnp.where(example.words > 0, UNKNOWN, 0))

    @functools.partial(quick_jit, static_argnums=1)
    def read(example, share: float, key):
        return read_example(DOMAIN, networks, vectors, example, 0.0, key, word_dropout=share).policy.first

    key = jax.random.key(0)
    np.testing.assert_array_equal(read(example, 0.0, key), read(example, 0.0, jax.random.key(1)))
    np.testing.assert_allclose(read(example, 0.9999, key), read(unknown, 0.0, key), atol=1e-6)
    some = [np.asarray(read(example, 0.3, jax.random.key(n))) for n in range(20)]
    assert len({each.tobytes() for each in some}) > 3


def test_context_is_dropped_for_whole_examples():
    config = tiny_config(network__context=4)
    domain = DOMAIN.with_context()
    dataset = tiny_dataset(config, domain=domain)
    networks = create_learner(domain, config, jnp.int32(0)).networks
    networks = eqx.tree_at(lambda networks: networks.policy.context.output, networks, jnp.ones((4, 8)))
    vectors, arrays = jnp.asarray(dataset.words.vectors), dataset.arrays(dataset.examples)
    example = jax.tree.map(lambda leaf: jnp.asarray(leaf[0]), arrays)

    def read(key, share=0.3):
        return read_example(domain, networks, vectors, example, 0.0, key, context_dropout=share).policy.context.output

    outputs = np.asarray(jax.vmap(read)(jax.random.split(jax.random.key(0), 400)))
    seen = outputs.any(axis=(1, 2))
    assert np.array_equal(seen, outputs.all(axis=(1, 2)))
    assert 0.63 < seen.mean() < 0.77
    assert np.all(read(jax.random.key(0), 0.0) == 1)


@pytest.mark.integration
def test_reinforce_does_not_make_random_tokens_ever_less_probable():
    """Nothing here has a reward, and the baseline is above it: all that is sampled is made less probable."""
    losses = chunk("reinforce", UNREACHABLE, 300, training__baseline=1.0)[2]
    each = np.array(losses) / (5 * tiny_config().training.batch)  # a sum over five steps
    least = np.log(tiny_config().training.sample_epsilon / len(DOMAIN.tokens))
    assert np.all(each > DOMAIN.max_tokens_per_instruction * least)


def test_a_curriculum_begins_with_the_shortest_examples():
    config = tiny_config(data__lengths=(2, 1), data__evaluation=(1,), training__curriculum_steps=3)
    dataset = tiny_dataset(config)
    lengths = [len(example.instructions) for example in dataset.examples]
    assert lengths == sorted(lengths) and set(lengths) == {1, 2}
    arrays = dataset.arrays(dataset.examples)
    assert [int(_count_examples(config, whole_span(arrays), jnp.int32(number))) for number in (2, 3)] == [20, 40]
    assert _count_examples(tiny_config(), whole_span(arrays), jnp.int32(0)) == 40


@pytest.mark.parametrize(
    ("lengths", "shortest"),
    [
        ([1] * 10 + [2] * 90, 10),
        ([1] * 9 + [2] * 5 + [3] * 86, 14),
        ([1] * 5 + [2] * 95, 100),
        ([3] * 4, 4),
        ([1, 2], 1),
    ],
)
def test_a_curriculum_has_at_least_a_tenth_of_the_examples(lengths, shortest):
    lengths = np.array(lengths, np.int32)
    arrays = Arrays(lengths, lengths, lengths[:, None, None], lengths)
    assert int(whole_span(arrays).shortest) == shortest


def test_dead_ends_are_left_out_of_the_search_and_not_of_the_policy():
    """A policy over valid tokens learns with the probabilities that it searches with."""
    config = tiny_config("execution-only", search__prune_dead_ends=True, search__epsilon=0.0)

    def even(state, valid):
        return renormalise(jnp.zeros(len(DOMAIN.tokens)), valid)

    problem = Problem(DOMAIN.parse_world("1:0 2:3 3:4"), jnp.int32(1), DOMAIN.parse_target("1:0 2:4"))

    @quick_jit
    def search():
        graph = search_graph(DOMAIN, even, None, problem, jax.random.key(0), instructions=1, config=config.search)
        states, valid = expanded_states(graph, jnp.arange(graph.beam.log_chart.size))
        return graph, valid, jax.vmap(even)(states, valid)

    graph, valid, log_policy = jax.tree.map(np.asarray, search())
    searched = graph.expansion.log_policy.reshape(-1, len(DOMAIN.tokens))
    alive = graph.beam.alive.reshape(-1)
    np.testing.assert_allclose(np.exp(log_policy)[alive], np.exp(searched)[alive], rtol=1e-5)
    kinds = graph.expansion.kind.reshape(-1, len(DOMAIN.tokens))
    np.testing.assert_array_equal(valid, kinds != INVALID)
    assert (kinds == DEAD_END)[alive].any()


def test_waypoints_reach_the_search(monkeypatch):
    """A step of training searches with those of its examples."""
    seen = []

    def search(domain, policy, critic, problem, *arguments, **settings):
        seen.append(problem.waypoints)
        return search_graph(domain, policy, critic, problem, *arguments, **settings)

    monkeypatch.setattr(mml_module, "search_graph", search)
    config = tiny_config(data__lengths=(1, 2), data__waypoints=True)
    dataset = tiny_dataset(config)
    arrays, vectors = dataset.arrays(dataset.examples), jnp.asarray(dataset.words.vectors)
    learner = jax.eval_shape(lambda: create_learner(DOMAIN, config, jnp.int32(0)))
    step = functools.partial(step_module.train_step, DOMAIN, config, critic_ranks=False)
    jax.eval_shape(step, learner, vectors, arrays, jax.random.key(0), jnp.int32(0))
    assert [waypoints.known.shape for waypoints in seen] == [(2,)]
    known = arrays.waypoints.known[arrays.instructions == 2]
    assert known.tolist() == [[True, False]] * len(known)


@pytest.mark.parametrize(("averaging", "step", "kept"), [(1.0, 0, 0.0), (1.0, 1, 0.5), (0.25, 100, 0.25)])
def test_weights_are_averaged(averaging, step, kept):
    """A mean over the first steps, then an exponential average; it is what is evaluated."""
    config, fresh = tiny_config(training__averaging=averaging), fresh_learner()
    before = fresh._replace(average=fresh.networks.policy)
    gradients, metrics = jax.tree.map(np.ones_like, before.networks), {"hit": Mean(jnp.float32(1), jnp.float32(1))}
    after = quick_jit(functools.partial(update, config))(before, gradients, metrics, jnp.int32(step))
    trees = before.average, after.networks.policy, after.average
    for old, new, average in zip(*map(jax.tree.leaves, trees), strict=True):
        np.testing.assert_allclose(average, kept * old + (1 - kept) * new, rtol=1e-4, atol=1e-6)
    assert after.evaluated.policy is after.average
    assert changed(before.average, after.average)
