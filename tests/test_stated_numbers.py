"""The checker of numbers in prose, on made-up result files."""

from __future__ import annotations

import json

import pytest
import stated_numbers
from stated_numbers import STATED, check_stated


@pytest.fixture
def results(tmp_path, monkeypatch):
    """Three runs in scene, one of which learns little, and one in alchemy."""
    accuracies = {
        "scene-a": ([0.1, 0.3, 0.5], [0.3, 0.2, 0.1]),
        "scene-b": ([0.4, 0.5, 0.9], [0.1, 0.2, 0.4]),
        "scene-c": ([0.0, 0.1, 0.2], [0.9, None, None]),
        "alchemy-a": ([0.7, 0.8, 0.9], [0.2, 0.2, 0.5]),
        "synthetic-scene-a": ([1.0, 1.0, 1.0], [0.0, 0.1, 0.0]),
    }
    for name, (dev, spurious) in accuracies.items():
        found = {
            "accuracy": {"dev": {"5": dev}, "test": {"5": dev}},
            "ensemble": {"accuracy": {"test": {"5": [max(dev)]}}},
            "stages": [{"accuracy": {"dev": {"5": [dev[0]]}}}],
            "spurious": {"train": spurious},
            "metrics": {"hit": {"steps": [10, 20], "mean": [0.25, 0.75]}},
        }
        (tmp_path / f"{name}.json").write_text(json.dumps(found))
    monkeypatch.setattr(stated_numbers, "RESULTS", tmp_path)
    stated_numbers.result.cache_clear()
    yield
    stated_numbers.result.cache_clear()


RIGHT = (
    "30.0 ± 20.0%<!-- = test scene-a 5 -->",
    "30<!-- = dev scene-a 5 -->",
    "+30.0<!-- = dev scene-b 5 - dev scene-a 5 -->",
    "-30.0<!-- = dev scene-a 5 - dev scene-b 5 -->",
    "10.0<!-- = stage 1 scene-a 5 -->",
    "90.0<!-- = ensemble scene-b 5 -->",
    "0.25<!-- = metric hit scene-a 10 -->",
    "0.75<!-- = metric hit scene-a last -->",
    "20.0<!-- = spurious scene-a train -->",
    "-1.00<!-- = correlation scene-a -->",
    "20.0<!-- = std dev scene-a 5 -->",
    "28.2 ± 20.7<!-- = paper test scene vbsix 5 -->",
    "62.4<!-- = prior Suhr and Artzi 2018 tangrams 5 -->",
    "10 to 60%<!-- = range dev scene-* 5 -->",
    "30 to 60<!-- = range dev scene-{a,b} 5 -->",
    "30 to 80<!-- = range dev * 5 where learns -->",
    "10 to 10<!-- = range dev * 5 where not learns -->",
    "30 to 60<!-- = range dev scene-* 5 except -c -->",
    "10 to 30<!-- = range ensemble * 5 - test * 5 where learns -->",
    "-30.0 to +30.0<!-- = range dev scene-a 5 - dev scene-b 5; dev scene-b 5 - dev scene-a 5 -->",
    "30<!-- = least dev {scene-a,alchemy-a} 5 -->",
    "1 of 3<!-- = negative correlation * -->",
    "2 of 3<!-- = positive correlation * -->",
    "2<!-- = positive dev scene-a 5; dev scene-b 5 -->",
)


def check(text: str) -> None:
    found = STATED.fullmatch(text)
    assert found
    check_stated(found)


@pytest.mark.parametrize("text", RIGHT)
def test_a_right_number_passes(results, text):
    check(text)


@pytest.mark.parametrize("text", RIGHT)
def test_any_other_number_does_not(results, text):
    stated, comment = text.split("<", 1)
    digit = next(place for place, letter in enumerate(stated) if letter.isdigit())
    other = stated[:digit] + str((int(stated[digit]) + 1) % 10) + stated[digit + 1 :]
    with pytest.raises(AssertionError):
        check(f"{other}<{comment}")


def test_limits_are_rounded_away_from_the_values(results):
    check("2<!-- = most dev scene-a 5 - paper test scene vbsix 5 -->")
    check("1.8<!-- = most paper test scene vbsix 5 - dev scene-a 5 -->")
    check("28<!-- = least paper test scene vbsix 5 -->")
    with pytest.raises(AssertionError):
        check("1<!-- = most dev scene-a 5 - paper test scene vbsix 5 -->")


def test_a_run_that_is_not_there_is_an_error(results):
    with pytest.raises(FileNotFoundError):
        check("30.0<!-- = test scene-d 5 -->")
