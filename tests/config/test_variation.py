"""Which runs share a program, and what they are called."""

from __future__ import annotations

import dataclasses

import pytest
from training.tiny_config import tiny_config

from vbsix.config.schema import Config, override, to_settings
from vbsix.config.toml import read_variations
from vbsix.config.variation import combinations, describe, group_by_program, inputs, varied, with_inputs
from vbsix.utilities.errors import VbsixError

OTHER = {int: lambda value: value + 3, float: lambda value: value / 2 or 0.25}


def test_combinations_vary_the_last_setting_fastest():
    found = combinations(Config(), {"training.learning_rate": [0.1, 0.01], "search.beam": [8, 16]})
    assert [(one.training.learning_rate, one.search.beam) for one in found] == [
        (0.1, 8),
        (0.1, 16),
        (0.01, 8),
        (0.01, 16),
    ]
    assert combinations(Config(), {}) == [Config()]


def test_a_run_is_named_by_what_varies():
    config = override(Config(), {"data.lengths": [1, 5], "training.learning_rate": 0.0003, "data.fold": 2})
    assert describe(config, ["training.learning_rate", "data.fold"]) == "learning_rate=0.0003,fold=2"
    assert describe(config, ["data.lengths"]) == "lengths=1+5"


@pytest.mark.parametrize("name", inputs())
def test_runs_that_differ_in_an_input_share_a_program(name):
    base = override(tiny_config(), {name: OTHER[type(to_settings(Config())[name])](to_settings(Config())[name])})
    value = to_settings(base)[name]
    other = override(base, {name: value + 1 if isinstance(value, int) else value / 2})
    assert group_by_program([base, other]) == [[base, other]]
    assert varied([base, other]) == [name]


@pytest.mark.parametrize("name", ["training.dropout", "training.curriculum_steps", "search.epsilon"])
def test_a_part_that_is_off_makes_another_program(name):
    values = [0, 1, 0, 2] if name.endswith("steps") else [0, 0.1, 0, 0.2]
    configs = [override(Config(), {name: value, "data.fold": place}) for place, value in enumerate(values)]
    assert group_by_program(configs) == [[configs[0], configs[2]], [configs[1], configs[3]]]


@pytest.mark.parametrize("change", [{"search.beam": 64}, {"training.objective": "reinforce"}, {"training.steps": 7}])
def test_other_settings_make_another_program(change):
    assert len(group_by_program([Config(), override(Config(), change)])) == 2


def test_names_of_methods_and_variants_make_no_program():
    configs = [Config(), dataclasses.replace(Config(), method="mine", variant="init-0.1")]
    assert group_by_program(configs) == [configs]


def test_every_number_that_is_no_size_is_an_input_or_known_not_to_be():
    """A new setting must be thought about: can it be an input?"""
    numbers = {name for name, value in to_settings(Config()).items() if type(value) is float}
    assert numbers - inputs().keys() == {"data.dev_share"}


def test_a_config_takes_numbers_that_only_the_program_knows():
    number = object()
    found = with_inputs(Config(), {"training.learning_rate": number, "search.epsilon": number})
    assert found.training.learning_rate is found.search.epsilon is number
    assert found.training.batch == Config().training.batch


def test_variations_are_read():
    assert read_variations(["search.beam=32,64", "data.lengths=[1,5],[4,5]", "training.labels=paper,graph"]) == {
        "search.beam": [32, 64],
        "data.lengths": [[1, 5], [4, 5]],
        "training.labels": ["paper", "graph"],
    }


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (["search.beam"], r"write NAME=VALUE,VALUE"),
        (["search.beam="], r"write NAME=VALUE,VALUE"),
        (["search.beam=1,2", "search.beam=3"], "varies already"),
        (["method=mml,vbsix"], "give --method"),
    ],
)
def test_variations_that_cannot_be_read_are_errors(given, message):
    with pytest.raises(VbsixError, match=message):
        read_variations(given)
