"""A selection rule of one's own: rank by actor score with some noise."""

from __future__ import annotations

import jax

import vbsix
from vbsix.search.select import SelectionRule, rank


def noisy(config, scorer):
    """A rule is made from the search settings and the AC-scorer, which is None unless a critic ranks."""

    def select(key, candidates, carried):
        noise = config.epsilon * jax.random.gumbel(key, candidates.log_chart.shape)
        return rank(candidates, candidates.log_chart + noise, config, scorer), carried

    return SelectionRule(select)


vbsix.register_selection_rule("noisy", noisy)


def main(**settings):
    return vbsix.train("tangrams", method="execution-only", search__selection="noisy", search__epsilon=1.0, **settings)


if __name__ == "__main__":
    print(main().accuracy)
