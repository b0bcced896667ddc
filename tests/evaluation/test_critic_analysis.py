from __future__ import annotations

import numpy as np

from vbsix.evaluation.critic_analysis import STATES, ValuedStates, apply_rules, sample_states


def make(reward, value, differences=0, objects=0) -> ValuedStates:
    """States, as many as there are values."""
    full = np.broadcast_arrays(True, *map(np.asarray, (reward, value, differences, objects)))
    return ValuedStates(*(np.atleast_1d(leaf) for leaf in full))


def test_a_rule_holds_for_a_share_of_the_states_that_it_covers():
    poor = make(0.0, [0.1, 0.9, 0.0, 0.6, 0.8, 0.1, 0.9], differences=[3, 5, 4, 1, 1, 1, 2])
    rich = make(0.9, [0.8, 0.2, 0.1, 0.3, 0.9, 0.1], objects=[2, 1, 3, 4, 5, 3])
    assert apply_rules([poor, rich]) == {
        "many differences": {"states": [3, 0], "share": [2 / 3, None]},
        "one difference": {"states": [3, 0], "share": [2 / 3, None]},
        "few people": {"states": [0, 2], "share": [None, 1 / 2]},
        "many people": {"states": [0, 4], "share": [None, 3 / 4]},
    }


def test_only_clear_cut_states_are_sampled_half_of_them_with_reward():
    reward = np.tile([0.0, 0.9, 0.5, 0.0, 0.9, 0.9], 100)
    value = np.tile([0.1, 0.8, 0.5, 0.3, 0.5, 0.2], 100)
    states = make(reward, value)
    sampled = sample_states(states)
    assert len(sampled.value) == STATES
    assert np.sum(sampled.reward == 0) == np.sum(sampled.reward == 0.9) == STATES / 2
    assert set(zip(sampled.reward, sampled.value, strict=True)) == {(0.0, 0.1), (0.9, 0.8), (0.9, 0.2)}
    np.testing.assert_array_equal(sample_states(states).value, sampled.value)
    assert len(sample_states(states._replace(mask=np.arange(600) < 6)).value) == 3, "as far as there are so many"
    assert len(sample_states(states._replace(mask=np.zeros(600, bool))).value) == 0
