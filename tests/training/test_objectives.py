"""Objectives on a system small enough to enumerate: the gradients are derived by hand."""

from __future__ import annotations

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from reference.comparison import quick_jit
from training.tiny_config import tiny_config
from training.toy import Toy

from vbsix import get_domain, register_objective
from vbsix.config.presets import preset
from vbsix.config.schema import OBJECTIVES, override, require_sense
from vbsix.data.examples import Arrays
from vbsix.models.heads import Heads
from vbsix.runs.teachers import require_teachable
from vbsix.search import Problem, SearchConfig, program_search
from vbsix.search.sampling import sample_programs, sampling_distribution
from vbsix.training.expert_mml import expert_mml_objective
from vbsix.training.forward_backward import forward_backward, graph_loss
from vbsix.training.mml import mml_loss, mml_weights, sequence_log_probability
from vbsix.training.objective import Context, Objective
from vbsix.training.reinforce import reinforce_loss, reinforce_objective
from vbsix.training.step import create_learner
from vbsix.training.value_examples import value_loss
from vbsix.utilities.errors import VbsixError

PROBLEM = Problem(jnp.int32(0), jnp.int32(1), jnp.int32(3))
EXAMPLE = Arrays(PROBLEM.world, PROBLEM.target, jnp.ones((1, 1), jnp.int32), PROBLEM.instructions)
"""The toy's."""

# Three programs of probabilities 0.1, 0.3 and 0.2; the third place holds none.
LOG_P = jnp.log(jnp.array([0.1, 0.3, 0.2, 0.7]))
FOUND = jnp.array([True, True, True, False])


def test_mml_weights_are_posteriors():
    weights = mml_weights(jnp.where(FOUND, LOG_P, -jnp.inf))
    np.testing.assert_allclose(weights, [1 / 6, 3 / 6, 2 / 6, 0], rtol=1e-6)


def test_the_gradient_of_mml_is_that_of_the_log_of_the_sum():
    by_loss = jax.grad(lambda log_p: mml_loss(log_p, FOUND))(LOG_P)
    np.testing.assert_allclose(by_loss, [-1 / 6, -3 / 6, -2 / 6, 0], rtol=1e-6)
    by_definition = jax.grad(lambda log_p: -jax.nn.logsumexp(log_p[:3]))(LOG_P)
    np.testing.assert_allclose(by_loss, by_definition, rtol=1e-6)


def test_beta_below_one_flattens_the_weights():
    flat = mml_weights(jnp.where(FOUND, LOG_P, -jnp.inf), beta=0.0)
    np.testing.assert_allclose(flat, [1 / 3, 1 / 3, 1 / 3, 0], rtol=1e-6)


def test_an_example_without_programs_has_neither_loss_nor_gradient():
    nothing = jnp.zeros(4, bool)
    loss, gradient = jax.value_and_grad(lambda log_p: mml_loss(log_p, nothing))(LOG_P)
    assert loss == 0
    np.testing.assert_array_equal(gradient, 0)


def test_reinforce_weighs_by_reward_less_baseline():
    reward, counted = jnp.array([1.0, 0.0, 0.0, 1.0]), jnp.ones(4, bool)
    gradient = jax.grad(lambda log_p: reinforce_loss(log_p, reward, baseline=0.25, counted=counted))(LOG_P)
    np.testing.assert_allclose(gradient, [-0.75 / 4, 0.25 / 4, 0.25 / 4, -0.75 / 4], rtol=1e-6)


def test_reinforce_averages_over_the_samples_that_count():
    reward, counted = jnp.array([1.0, 0.0, 0.0, 1.0]), jnp.array([True, False, True, False])
    loss, gradient = jax.value_and_grad(lambda log_p: reinforce_loss(log_p, reward, baseline=0.25, counted=counted))(
        LOG_P
    )
    np.testing.assert_allclose(gradient, [-0.75 / 2, 0, 0.25 / 2, 0], rtol=1e-6)
    np.testing.assert_allclose(loss, -(0.75 * LOG_P[0] - 0.25 * LOG_P[2]) / 2, rtol=1e-6)
    assert reinforce_loss(LOG_P, reward, baseline=0.25, counted=jnp.zeros(4, bool)) == 0


def test_value_loss_is_the_log_loss_and_its_gradient_the_error():
    logits, labels = jnp.array([0.0, 2.0, 5.0]), jnp.array([1.0, 0.25, 0.0])
    mask = jnp.array([True, True, False])
    loss, gradient = jax.value_and_grad(value_loss)(logits, labels, mask)
    value = 1 / (1 + np.exp(-2.0))
    np.testing.assert_allclose(loss, np.log(2) - 0.25 * np.log(value) - 0.75 * np.log(1 - value), rtol=1e-6)
    np.testing.assert_allclose(gradient, [0.5 - 1, value - 0.25, 0], rtol=1e-6)


def test_a_sequence_is_as_probable_as_its_tokens_together():
    log_policy = jnp.log(jnp.array([[[0.5, 0.5], [0.25, 0.75], [0.9, 0.1]]]))
    tokens = jnp.array([[0, 1, -1]])
    np.testing.assert_allclose(jnp.exp(sequence_log_probability(log_policy, tokens)), [0.375], rtol=1e-6)


class Short(Toy):
    """The toy with so few tokens that not every program finishes."""

    max_tokens_per_instruction = 2


class TestToy:
    """One instruction on the toy below; log π depends on three parameters, one for each place with a choice.

    0 -a-> 1 -a-> T        T is correct, F is not
    0 -b-> 1               so state 1 is reached in two ways
    1 -b-> 2 -a-> T
    2 -b-> F
    """

    PARAMETERS = jnp.array([0.2, -0.4, 0.7])

    @staticmethod
    def probabilities(parameters):
        """Of `a` in the states 0, 1 and 2."""
        return jax.nn.sigmoid(parameters)

    def log_correct(self, parameters):
        """By hand: whatever leads from 0 to 1, then a, or b and a."""
        _, one, two = self.probabilities(parameters)
        return jnp.log(one + (1 - one) * two)

    def policy(self, parameters):
        logits = jnp.concatenate([parameters, jnp.zeros(2)])

        def log_policy(state, valid=None):
            logit = logits[state["place"]]
            return jnp.stack([jax.nn.log_sigmoid(logit), jax.nn.log_sigmoid(-logit)])

        return log_policy

    def search(self, toy, space="execution", actor=PARAMETERS, **settings):
        config = SearchConfig(space, **{"beam": 4, "selection": "epsilon-greedy", "epsilon": 0.0, **settings})

        def run():
            policy, key = self.policy(actor), jax.random.key(0)
            return program_search(toy, policy, None, PROBLEM, key, instructions=1, config=config)

        return quick_jit(run)()

    def log_policy(self, parameters, graph):
        return jax.vmap(jax.vmap(self.policy(parameters)))(graph.beam.states)

    @pytest.mark.parametrize("space", ["program", "execution"])
    def test_the_gradient_of_mml_over_extracted_programs(self, toy, space):
        programs, graph = self.search(toy, space, program_beam=8)
        assert int(programs.found.sum()) == 4
        states = jax.tree.map(lambda leaf: leaf.reshape(-1, *leaf.shape[2:]), graph.beam.states)

        def loss(parameters):
            policy = self.policy(parameters)
            visited = jax.tree.map(lambda leaf: leaf[jnp.maximum(programs.vertices, 0)], states)
            log_policy = jax.vmap(jax.vmap(policy))(visited)
            return mml_loss(sequence_log_probability(log_policy, programs.tokens), programs.found)

        expected = jax.grad(lambda parameters: -self.log_correct(parameters))(self.PARAMETERS)
        np.testing.assert_allclose(quick_jit(jax.grad(loss))(self.PARAMETERS), expected, atol=1e-6)

    def test_the_gradient_of_mml_over_the_graph(self, toy):
        _, graph = self.search(toy)
        paths = quick_jit(forward_backward)(graph)

        def loss(parameters):
            return graph_loss(self.log_policy(parameters, graph), paths.posterior)

        by_hand = jax.grad(lambda parameters: -self.log_correct(parameters))(self.PARAMETERS)
        np.testing.assert_allclose(quick_jit(jax.grad(loss))(self.PARAMETERS), by_hand, atol=1e-6)

    @pytest.mark.parametrize("space", ["program", "execution"])
    def test_what_an_expert_finds_is_weighed_by_the_policy_s_own_probabilities(self, toy, space):
        _, graph = self.search(toy, space, actor=jnp.array([2.0, 2.0, -1.0]), beam=8)
        paths = quick_jit(forward_backward)(graph, self.log_policy(self.PARAMETERS, graph))
        np.testing.assert_allclose(paths.log_reward[0, 0], self.log_correct(self.PARAMETERS), rtol=1e-5)

        def loss(parameters):
            return graph_loss(self.log_policy(parameters, graph), paths.posterior)

        by_hand = jax.grad(lambda parameters: -self.log_correct(parameters))(self.PARAMETERS)
        np.testing.assert_allclose(quick_jit(jax.grad(loss))(self.PARAMETERS), by_hand, atol=1e-6)

    def test_an_objective_with_an_expert_learns_so(self, toy):
        """The expert's own loss has no part in the policy's gradient."""
        search = {"search.beam": 8, "search.selection": "epsilon-greedy", "search.epsilon": 0.0}
        config = override(preset("tangrams", "expert-mml"), search)

        def loss(parameters):
            heads, frozen = (
                Heads(self.policy(own), None, self.policy(jnp.array([2.0, 2.0, -1.0])))
                for own in (parameters, self.PARAMETERS)
            )
            context = Context(toy, config, heads, frozen, EXAMPLE, jax.random.key(0), jnp.int32(0), False)
            return expert_mml_objective(context)[0]

        by_hand = jax.grad(lambda parameters: -self.log_correct(parameters))(self.PARAMETERS)
        np.testing.assert_allclose(quick_jit(jax.grad(loss))(self.PARAMETERS), by_hand, atol=1e-6)

    @pytest.mark.parametrize("space", ["program", "execution"])
    def test_what_is_sampled_with_random_tokens_is_weighed_as_it_was_sampled(self, toy, space):
        _, graph = self.search(toy, space, beam=8, selection="stochastic", epsilon=0.2)
        paths = quick_jit(forward_backward)(graph)

        def loss(parameters):
            return graph_loss(self.log_policy(parameters, graph), paths.posterior)

        def by_hand(parameters):
            """The programs aa, ba, aba and bba, each with its share of what is sampled."""
            own, mixture = self.probabilities(parameters), 0.8 * self.probabilities(self.PARAMETERS) + 0.2 / 2

            def programs(zero, one, two):
                ends = jnp.stack([one, (1 - one) * two])
                return jnp.concatenate([zero * ends, (1 - zero) * ends])

            weights = programs(*mixture)
            return -jnp.sum(weights / jnp.sum(weights) * jnp.log(programs(*own)))

        np.testing.assert_allclose(
            quick_jit(jax.grad(loss))(self.PARAMETERS), jax.grad(by_hand)(self.PARAMETERS), atol=1e-6
        )

    def test_nothing_found_on_the_graph_is_nothing_learned(self, toy):
        _, graph = self.search(toy)
        log_policy = self.log_policy(self.PARAMETERS, graph)
        nothing = jnp.zeros_like(log_policy)
        loss, gradient = jax.value_and_grad(lambda log_policy: graph_loss(log_policy, nothing))(log_policy)
        assert loss == 0
        np.testing.assert_array_equal(gradient, 0)

    def test_backward_sums_are_expected_rewards(self, toy):
        _, graph = self.search(toy)
        _, one, two = self.probabilities(self.PARAMETERS)
        reward = np.exp(np.asarray(quick_jit(forward_backward)(graph).log_reward))
        places = np.asarray(graph.beam.states["place"])
        alive = np.asarray(graph.beam.alive)
        by_place = {int(place): value for place, value in zip(places[alive], reward[alive], strict=True)}
        np.testing.assert_allclose(by_place[2], two, rtol=1e-5)
        np.testing.assert_allclose(by_place[1], one + (1 - one) * two, rtol=1e-5)
        np.testing.assert_allclose(by_place[0], one + (1 - one) * two, rtol=1e-5)

    @pytest.mark.parametrize("epsilon", [0.0, 0.5])
    def test_reinforce_estimates_the_gradient_of_the_expected_reward(self, toy, epsilon):
        samples = self.sample(toy, epsilon)

        def expected_reward(parameters):
            _, one, two = (1 - epsilon) * self.probabilities(parameters) + epsilon / 2
            return one + (1 - one) * two

        np.testing.assert_allclose(samples.reward.mean(), expected_reward(self.PARAMETERS), atol=0.01)

        def loss(parameters):
            mixture = functools.partial(sampling_distribution, self.policy(parameters), epsilon=epsilon)
            log_mixtures = jax.vmap(jax.vmap(mixture))(samples.states, samples.valid)
            log_probability = sequence_log_probability(log_mixtures, samples.tokens)
            return reinforce_loss(log_probability, samples.reward, baseline=0.3, counted=samples.finished)

        by_hand = jax.grad(lambda parameters: -expected_reward(parameters))(self.PARAMETERS)
        np.testing.assert_allclose(quick_jit(jax.grad(loss))(self.PARAMETERS), by_hand, atol=0.01)

    def sample(self, toy, epsilon, size=20000, instructions=1):
        policy = self.policy(self.PARAMETERS)
        run = functools.partial(sample_programs, instructions=instructions, size=size, epsilon=epsilon)
        return quick_jit(lambda: run(toy, policy, PROBLEM, jax.random.key(0)))()

    @pytest.mark.parametrize("gradient", ["policy", "mixture"])
    def test_reinforce_of_the_reference_code_leaves_unfinished_samples_out(self, gradient):
        """With two tokens at most, `ab` and `bb` do not finish. By hand, from the samples' own tokens."""
        short, epsilon, baseline = Short(), 0.4, 0.25
        samples = self.sample(short, epsilon, size=64)
        finished = np.asarray(samples.finished)
        assert 0 < finished.sum() < 64
        settings = {"samples": 64, "sample_epsilon": epsilon, "sample_gradient": gradient, "baseline": baseline}
        config = override(
            preset("tangrams", "reinforce"), {f"training.{name}": value for name, value in settings.items()}
        )

        def loss(parameters):
            heads, frozen = Heads(self.policy(parameters)), Heads(self.policy(self.PARAMETERS))
            context = Context(short, config, heads, frozen, EXAMPLE, jax.random.key(0), jnp.int32(0), False)
            return reinforce_objective(context)[0]

        def by_hand(parameters):
            a = self.probabilities(parameters)
            a = a if gradient == "policy" else (1 - epsilon) * a + epsilon / 2
            terms = []
            for tokens, reward, ended in zip(np.asarray(samples.tokens), samples.reward, finished, strict=True):
                log_p = sum(jnp.log(a[place] if token == 0 else 1 - a[place]) for place, token in enumerate(tokens))
                if ended or gradient == "mixture":
                    terms.append(-(reward - baseline) * log_p)
            return sum(terms) / len(terms)

        found, expected = (quick_jit(jax.value_and_grad(each))(self.PARAMETERS) for each in (loss, by_hand))
        np.testing.assert_allclose(found[0], expected[0], rtol=1e-5)
        np.testing.assert_allclose(found[1], expected[1], atol=1e-5)


def test_the_search_of_the_toy_merges(toy):
    _, graph = TestToy().search(toy)
    np.testing.assert_array_equal(graph.beam.alive.sum(axis=1)[:4], [1, 1, 1, 0])


def test_an_objective_of_ones_own_says_what_it_needs(monkeypatch):
    monkeypatch.setattr(OBJECTIVES, "_registered", {})
    register_objective("plain", reinforce_objective)
    register_objective("mine", Objective(expert_mml_objective, expert=True, critic=False))
    register_objective("mine", Objective(expert_mml_objective, expert=True, critic=False))  # the same again is fine

    def networks(objective):
        config = tiny_config("mml", training__objective=objective)
        return jax.eval_shape(lambda: create_learner(get_domain("tangrams"), config, jnp.int32(0))).networks

    assert networks("plain").expert is None
    assert jax.tree.leaves(networks("mine").expert)
    config = tiny_config("mml", training__objective="mine")
    assert require_sense(config) == config
    with pytest.raises(VbsixError, match=r"training\.critic: the objective mine does not train a critic"):
        require_sense(override(config, {"training.critic": True}))
    require_teachable([config])
    register_objective("sampled", Objective(reinforce_objective, critic=False, samples=True))
    with pytest.raises(VbsixError, match="sampled learns from samples, so that it cannot use the worlds"):
        require_teachable([override(config, {"training.objective": "sampled"})])
