from __future__ import annotations

import numpy as np
import pytest

from vbsix.data.examples import Row
from vbsix.domains.registry import get_domain
from vbsix.domains.tangrams import Tangrams
from vbsix.evaluation.accuracy import evaluate_splits
from vbsix.evaluation.calibration import calibrate
from vbsix.evaluation.report import Prediction, bootstrap_interval, report
from vbsix.parsing.evaluation import predict_rows
from vbsix.parsing.loading import load_all
from vbsix.parsing.parser import Parser
from vbsix.search.prediction import Parse, Reading

pytestmark = pytest.mark.integration


UTTERANCES = ("drop the first", "drop the last", "bring it back")
WORLDS = ("1:0 2:3 3:4", "1:3 2:4", "1:3", "1:3 2:4")


def parsed(worlds: tuple[str, ...], confidence: float = 0.5) -> Parse:
    """A parse whose best reading passes through these worlds; no worlds, no reading."""
    reading = Reading((), ("",) * len(worlds), (1.0,) * len(worlds), worlds, 0.1, confidence, 0.1)
    return Parse(WORLDS[0], UTTERANCES, (reading,) if worlds else (), (), ())


class Scripted(Parser):
    """A parser with prepared answers, whatever it is asked."""

    def __init__(self, *answers: tuple[str, ...]):
        object.__setattr__(self, "answers", answers)
        object.__setattr__(self, "asked", [])
        object.__setattr__(self, "domain", get_domain("tangrams"))

    def parse_many(self, requests, best=1, explain=False):
        self.asked.extend(requests)
        return [parsed(worlds) for worlds in self.answers]


def right(parser: Scripted, *rows: Row) -> list[tuple]:
    return [prediction.right for prediction in predict_rows(parser, rows)]


def test_every_world_that_the_row_tells_is_compared():
    row = Row("a", WORLDS, UTTERANCES)
    parser = Scripted(("1:3 2:4",), ("1:4", "1:3"), ("1:3 2:4", "1:0", "1:4 2:3"))
    assert right(parser, row) == [(True,), (False, True), (True, False, False)]
    assert parser.asked == [(WORLDS[0], UTTERANCES[:length]) for length in (1, 2, 3)]


def test_worlds_that_are_not_known_are_left_out():
    row = Row("a", (WORLDS[0], None, WORLDS[2]), UTTERANCES[:2])
    assert right(Scripted(("1:4", "1:3")), row) == [(None, True)]
    assert right(Scripted(()), row) == [(None, False)]


class AnyOrder(Tangrams):
    """Tangrams whose targets match worlds of the same length."""

    def is_right(self, reached: str, target: str) -> bool:
        return len(reached.split()) == len(target.split())


def test_worlds_are_compared_as_the_domain_compares_them():
    parser = Scripted(("1:3 2:4",), ("1:4", "1:3"))
    object.__setattr__(parser, "domain", AnyOrder())
    row = Row("a", (WORLDS[0], "1:4 2:3", "1:0"), UTTERANCES[:2])
    assert right(parser, row) == [(True,), (False, True)]


def made(*right: bool | None, confidence: float = 0.5, row: Row | None = None) -> Prediction:
    row = row or Row("a", WORLDS[: len(right) + 1], UTTERANCES[: len(right)])
    return Prediction(row, parsed(("1:0",) * len(right), confidence), right)


def test_what_is_spurious():
    assert made(True, True).spurious is False
    assert made(False, True).spurious is True
    assert made(True, False).spurious is None  # not even right
    assert made(None, True).spurious is None  # nobody knows


def test_a_report_sums_up_by_hand():
    longer = Row("b", WORLDS[:3], UTTERANCES[:2])
    first = [made(True, row=longer), made(False, True), made(True), made(True, True)]
    second = [made(False, row=longer), made(True, False), made(True), made(True, True)]
    found = report([first, second])
    assert found.examples == {"1": 2, "2": 2}
    assert found.accuracy == {"1": [1.0, 0.5], "2": [1.0, 0.5]}
    assert found.intermediate == {"1": [2 / 3, 1.0], "2": [1.0, 0.5]}  # of the predictions for whole rows
    assert found.spurious == {"1": [None, None], "2": [0.5, 0.0]}
    assert found.seed_intervals["1"][0] == pytest.approx((2 / (2 + 1.96**2), 1.0))
    low, high = found.intervals["2"]
    assert 0.5 <= low < 0.75 < high <= 1.0


def test_a_report_of_nothing_right_has_no_share_of_spurious_ones():
    found = report([[made(False)]])
    assert found.spurious == {"1": [None]}
    assert found.accuracy == {"1": [0.0]}


def test_the_bootstrap_agrees_with_resampling_examples_one_by_one():
    generator = np.random.default_rng(1)
    values = generator.integers(0, 4, 200) / 3
    resampled = [np.mean(generator.choice(values, len(values))) for _ in range(4000)]
    assert bootstrap_interval(values) == pytest.approx(tuple(np.quantile(resampled, [0.025, 0.975])), abs=0.01)
    assert bootstrap_interval(values) == bootstrap_interval(values)


def test_all_right_or_none_is_not_certain():
    """By hand from Wilson's formula, whose ends are (p + z²/2n ± z √(p(1 - p)/n + z²/4n²)) / (1 + z²/n)."""
    assert bootstrap_interval(np.ones(20)) == pytest.approx((0.8389, 1.0), abs=1e-4)
    assert bootstrap_interval(np.zeros(20)) == pytest.approx((0.0, 0.1611), abs=1e-4)
    assert bootstrap_interval(np.full(20, 0.5)) == (0.5, 0.5)  # seeds that differ


def test_the_bootstrap_takes_a_long_list():
    low, high = bootstrap_interval(np.arange(1_000_000) % 2 / 1)
    assert 0.498 < low < 0.5 < high < 0.502


def test_calibration_by_hand():
    found = calibrate([0.95, 1.0, 0.31, 0.0], [True, False, True, False])
    assert [one.count for one in found.bins] == [1, 0, 0, 1, 0, 0, 0, 0, 0, 2]
    assert found.bins[1].accuracy is None
    assert (found.bins[9].confidence, found.bins[9].accuracy) == (pytest.approx(0.975), 0.5)
    assert found.error == pytest.approx((0.0 + 0.69 + 2 * 0.475) / 4)


def test_a_report_calibrates_the_predictions_of_all_seeds():
    found = report([[made(True, confidence=0.95)], [made(False, confidence=0.35)]]).calibration
    assert found == calibrate([0.95, 0.35], [True, False])


def test_accuracy_is_what_training_reports(tiny_run):
    run, dataset, learners = tiny_run
    found = report([predict_rows(parser, dataset.splits["dev"].rows) for parser in load_all(run.folder)])
    assert found.accuracy == evaluate_splits(dataset, learners.networks.policy, run.config)["dev"]
    assert 0 < max(found.accuracy["1"]) < 1
