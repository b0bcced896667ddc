"""Several policies as one, and policies whose words have been projected."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from models.cases import Case, draw

from vbsix.models import Ensemble, NetworkConfig, Policy
from vbsix.models.heads import policy_head

CONFIG = NetworkConfig(lstm=8, hidden=16, token=8, slot=4, attribute=4, renormalise=False)


def make_members(case: Case, count: int) -> list[Policy]:
    return [draw(lambda: Policy(case.domain, CONFIG, key=jax.random.key(0)), seed) for seed in range(count)]


def evaluate(case: Case, policy: Policy | Ensemble, projections):
    """log π of all states; the words of the case are their own vocabulary, behind the padding."""
    ids = jnp.where(case.mask, jnp.arange(1, case.mask.size + 1).reshape(case.mask.shape), 0)
    valid = jnp.ones((len(case.instruction), len(case.domain.tokens)), bool)

    @jax.jit
    def run(policy, projections):
        return jax.vmap(policy_head(case.domain, policy, projections, ids))(case.states, valid)

    return run(policy, projections)


def project(case: Case, policy: Policy):
    """A policy's projections of the words of a case, behind that of the padding."""
    words = case.words.reshape(-1, case.words.shape[-1])
    return policy.utterances.project(jnp.concatenate([jnp.zeros_like(words[:1]), words]))


@pytest.mark.parametrize("count", [1, 3])
def test_an_ensemble_averages_the_probabilities_of_its_members(tangrams: Case, count):
    members = make_members(tangrams, count)
    ensemble = Ensemble(jax.tree.map(lambda *leaves: jnp.stack(leaves), *members))
    assert ensemble.size == count
    projections = [project(tangrams, member) for member in members]
    alone = [np.exp(evaluate(tangrams, *one)) for one in zip(members, projections, strict=True)]
    together = evaluate(tangrams, ensemble, jnp.concatenate(projections, axis=-1))
    np.testing.assert_allclose(np.exp(together), np.mean(alone, axis=0), atol=1e-6)
    assert count == 1 or np.max(np.abs(alone[0] - alone[1])) > 0.1, "members that agree would hide errors"


def test_a_policy_that_has_only_projections_of_words_is_the_same(tangrams: Case):
    (policy,) = make_members(tangrams, 1)
    tables = policy.prepare(policy.encode(tangrams.words, tangrams.mask))
    valid = jnp.ones((len(tangrams.instruction), len(tangrams.domain.tokens)), bool)
    expected = jax.jit(jax.vmap(policy.for_example(tangrams.domain, tables)))(tangrams.states, valid)
    np.testing.assert_allclose(evaluate(tangrams, policy, project(tangrams, policy)), expected, atol=1e-5)
