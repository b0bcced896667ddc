"""Configs that vbsix 0.1 saved."""

from __future__ import annotations

import copy
import dataclasses
import json
from pathlib import Path

import pytest
from safetensors import safe_open

import vbsix
from vbsix.config.legacy import METHODS, read_config
from vbsix.config.presets import RECIPES, STAGES, preset
from vbsix.config.schema import Config, override
from vbsix.utilities.errors import VbsixError

PRETRAINED = Path(vbsix.__file__).parent / "parsing" / "pretrained"
SECOND_STAGE = {
    "network.context": 64,
    "training.critic": False,
    "training.decay_share": 0.5,
    "training.steps": 4000,
    "run.evaluate_every": 1000,
}
"""What was changed when the model of tangrams was continued with context."""


def last_stage(schedule: str) -> dict[str, object]:
    """What the last stage of a schedule changes; each stage has the settings of those before."""
    return {name: value for stage in STAGES[schedule] for name, value in stage.items()}


@pytest.fixture
def saved() -> dict:
    """What 0.1 wrote about VBSiX in alchemy."""
    return json.loads(Path(__file__).with_name("alchemy-vbsix-0.1.json").read_text(encoding="utf-8"))


def test_a_config_of_0_1_is_that_of_the_same_method_now(saved):
    config = read_config(saved["config"], saved["method"])
    assert (config.method, config.recipe, config.variant) == ("vbsix", "stochastic", "")
    assert config == preset("alchemy", "vbsix")


@pytest.mark.parametrize(
    ("domain", "method", "variant", "changes"),
    [
        ("alchemy", "execution-only", "oov-words+init-0.1", last_stage("student")),
        ("scene", "execution-only", "oov-words+init-0.1", last_stage("student-symmetry")),
        ("tangrams", "vbsix", "oov-words", SECOND_STAGE),
    ],
)
def test_the_configs_of_the_models_that_come_with_the_package_are_read(domain, method, variant, changes):
    with safe_open(PRETRAINED / f"{domain}.safetensors", "np") as file:
        metadata = json.loads(file.metadata()["vbsix"])
    config = read_config(metadata["config"], metadata["provenance"].get("method"))
    assert (config.method, config.recipe, config.variant) == (method, "stochastic", variant)
    assert config == override(preset(domain, method, variant=variant), changes)


def test_every_setting_that_was_renamed_keeps_its_value(saved):
    old, told = saved["config"], []
    changes = {
        ("data", "rests"): (True, lambda config: config.data.suffixes),
        ("data", "own_words"): (5, lambda config: config.data.oov_min_count),
        ("network", "embedding_spread"): (0.7, lambda config: config.network.embedding_init_std),
        ("network", "token_spread"): (0.9, lambda config: config.network.token_init_std),
        ("search", "exploration"): ("slots", lambda config: config.search.selection),
        ("search", "prune"): (True, lambda config: config.search.prune_dead_ends),
        ("search", "critic_instructions"): (4, lambda config: config.search.critic_window),
        ("training", "short_first"): (9, lambda config: config.training.curriculum_steps),
        ("training", "objective"): ("expert", lambda config: config.training.objective),
    }
    for (section, name), (value, _) in changes.items():
        assert name in old[section]
        old[section][name] = value
    config = read_config(old, "vbsix")
    for value, read in changes.values():
        told.append((read(config), value))
    assert told[4] == ("epsilon-greedy", "slots") and told[8] == ("expert-mml", "expert")
    assert all(new == value for number, (new, value) in enumerate(told) if number not in (4, 8))


@pytest.mark.parametrize(
    ("setting", "value"),
    [
        ("network.own_encoders", True),
        ("search.pool", "rerank"),
        ("search.quota", 2),
        ("search.critic_score", "product"),
        ("training.alpha", 0.5),
    ],
)
def test_a_removed_setting_does_not_keep_a_policy_from_loading(saved, setting, value):
    section, _, name = setting.partition(".")
    saved["config"][section][name] = value
    assert read_config(saved["config"], "vbsix") == preset("alchemy", "vbsix")


def test_labels_that_no_longer_exist_become_the_paper_s(saved):
    saved["config"]["training"] |= {"labels": "suffix", "critic": False}
    assert read_config(saved["config"], "execution-only").training.labels == "paper"


def test_settings_that_0_1_did_not_save_have_its_defaults(saved):
    for section, names in {"network": ["renormalise"], "search": ["exploration", "epsilon"]}.items():
        for name in names:
            del saved["config"][section][name]
    del saved["config"]["training"]["programs"]
    saved["config"]["network"]["slots"] = 3  # never had an effect
    config = read_config(saved["config"], "vbsix")
    assert (config.network.renormalise, config.training.programs) == (False, "extracted")
    assert (config.search.selection, config.search.epsilon) == ("epsilon-greedy", 0.15)


def test_a_method_that_is_not_known_is_told_as_a_custom_recipe(saved):
    for method, named in (("mine", "mine"), (None, "custom")):
        config = read_config(saved["config"], method)
        assert (config.method, config.recipe, config.variant) == (named, "custom", "")


def test_the_methods_of_0_1_are_presets_but_for_those_of_the_paper():
    """What 0.1 took for the paper's settings is not the `published` recipe of today."""
    for method, (now, recipe, variant) in METHODS.items():
        if recipe in RECIPES:
            assert preset("scene", now, recipe, variant).recipe == recipe
        else:
            assert (method, recipe) in [("paper-vbsix", "published-0.1"), ("paper-mml", "published-0.1")]


def test_a_config_of_this_version_is_read_as_it_is():
    config = override(preset("scene", "mml", "published", "beam-64"), {"search.beam": 7})
    tables = json.loads(json.dumps(dataclasses.asdict(config)))
    assert read_config(tables) == read_config(copy.deepcopy(tables), "ignored") == config
    assert read_config(dataclasses.asdict(Config())) == Config()


def test_an_unknown_setting_is_an_error(saved):
    saved["config"]["network"]["bolts"] = 3
    with pytest.raises(VbsixError, match=r"unknown setting 'network\.bolts'"):
        read_config(saved["config"], "vbsix")
