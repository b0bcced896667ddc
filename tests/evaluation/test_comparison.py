from __future__ import annotations

import tracemalloc

import numpy as np
import pytest

from vbsix.data.examples import Row
from vbsix.evaluation.comparison import _resample_both, compare
from vbsix.evaluation.report import RESAMPLES, Prediction
from vbsix.search.prediction import Parse

PARSE = Parse("", (), (), (), ())


def predicted(*correct: bool, length: int = 1) -> list[Prediction]:
    """A prediction for each row."""
    return [
        Prediction(Row(str(number), (), ()), PARSE, (True,) * (length - 1) + (right,))
        for number, right in enumerate(correct)
    ]


def test_a_comparison_by_hand():
    first = [predicted(True, False, False, True), predicted(True, True, False, False)]
    second = [predicted(True, True, True, False)]
    found = compare(first, second)["1"]
    assert (found.examples, found.first, found.second) == (4, 0.5, 0.75)
    assert found.difference == pytest.approx(0.25)  # 0, 0.5, 1 and -0.5
    assert (found.better, found.worse) == (2, 1)
    assert found.interval[0] < 0 < found.interval[1]
    assert not found.clear


def test_an_interval_over_seeds_is_wider_where_seeds_differ():
    """Two seeds of six are always right, four never: all rows are alike, all uncertainty is that of seeds."""
    first, second = [predicted(*[False] * 50)] * 6, [predicted(*[seed < 2] * 50) for seed in range(6)]
    found = compare(first, second)["1"]
    assert found.difference == pytest.approx(1 / 3)
    assert found.row_interval == pytest.approx((1 / 3, 1 / 3))
    # By the binomial distribution: of six seeds drawn, 0 to 4 are right with a probability of 95% and more.
    assert found.interval == pytest.approx((0, 4 / 6))


def test_with_one_seed_both_intervals_are_over_rows():
    chance = np.random.default_rng(1)
    runs = [[predicted(*(chance.random(300) < share).tolist())] for share in (0.5, 0.6)]
    found = compare(*runs)["1"]
    assert found.interval == pytest.approx(found.row_interval, abs=0.01)


def test_memory_does_not_hold_all_rows_of_all_resamples():
    chance = np.random.default_rng(1)
    runs = [chance.random((2, 3000)).round() for _ in range(2)]
    tracemalloc.start()
    interval = _resample_both(*runs)
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert most < RESAMPLES * 3000 * 8 / 10
    # The same draws as all at once.
    chance = np.random.default_rng(0)
    rows = chance.multinomial(3000, np.full(3000, 1 / 3000), size=RESAMPLES) / 3000
    first, second = (
        (chance.multinomial(2, [0.5, 0.5], size=RESAMPLES) / 2 * (rows @ correct.T)).sum(axis=1) for correct in runs
    )
    assert interval == pytest.approx(np.quantile(second - first, [0.025, 0.975]), abs=1e-12)


def test_each_number_of_utterances_is_compared_by_itself():
    first = [predicted(True, False) + predicted(False, False, False, length=2)]
    second = [predicted(True, False) + predicted(True, True, True, length=2)]
    found = compare(first, second)
    assert {name: (each.examples, each.difference) for name, each in found.items()} == {"1": (2, 0.0), "2": (3, 1.0)}


def test_equal_runs_differ_by_nothing():
    runs = [predicted(True, False, True)]
    found = compare(runs, runs)["1"]
    assert (found.difference, found.interval, found.better, found.worse, found.clear) == (0.0, (0.0, 0.0), 0, 0, False)


def test_rows_are_paired():
    """Errors on the same rows make the interval narrow: what differs is four rows of 200."""
    random = np.random.default_rng(0)
    before = random.random(200) < 0.5
    after = before.copy()
    after[np.flatnonzero(~before)[:8]] = True
    found = compare([predicted(*before.tolist())], [predicted(*after.tolist())])["1"]
    assert found.difference == pytest.approx(0.04)
    assert found.clear
    # By the binomial distribution: 8 rows ± 1.96 √(8 (1 - 8/200)), out of 200.
    half = 1.96 * np.sqrt(8 * (1 - 8 / 200)) / 200
    assert found.interval == pytest.approx((0.04 - half, 0.04 + half), abs=0.006)
    swapped = compare([predicted(*after.tolist())], [predicted(*before.tolist())])["1"]
    assert swapped.interval == pytest.approx((-found.interval[1], -found.interval[0]), abs=0.006)


def test_few_rows_that_are_all_alike_are_not_clear():
    found = compare([predicted(False, False, False)], [predicted(True, True, True)])
    assert found["1"].difference == 1 and not found["1"].clear
