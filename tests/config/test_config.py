from __future__ import annotations

import dataclasses
import itertools
import tomllib
from functools import reduce
from pathlib import Path

import hypothesis
import pytest
from hypothesis import given
from hypothesis import strategies as st

from vbsix.config.choosing import choose_config
from vbsix.config.presets import (
    DEFAULT_METHOD,
    METHODS,
    QUICK,
    RECIPES,
    VARIANTS,
    changed,
    data_kind,
    full_name,
    preset,
)
from vbsix.config.schema import Config, changes, flatten, names, override, require_sense, to_settings
from vbsix.config.toml import read_assignments, read_toml, to_toml
from vbsix.data.examples import PAPER_SETTINGS
from vbsix.search.config import SELECTION_RULES
from vbsix.utilities.errors import UnknownName, VbsixError

DOMAINS = ["scene", "alchemy", "tangrams"]
NUMBERS = st.floats(0, 1e9) | st.sampled_from([1e-5, 0.1, 1e300])


def unwrap(toml: str) -> str:
    """A text without its line breaks."""
    return " ".join(toml.replace("\n# ", " ").split())


def value_of(config: Config, name: str) -> object:
    return reduce(getattr, name.split("."), config)


@pytest.mark.parametrize("domain", DOMAINS)
def test_the_published_recipe_is_that_of_the_paper(domain):
    config = preset(domain, "vbsix", "published")
    steps, start, baseline = {
        "scene": (22_500, 5_000, 1e-5),
        "alchemy": (31_500, 5_000, 1e-2),
        "tangrams": (40_000, 10_000, 1e-3),
    }[domain]
    assert (config.training.steps, config.training.value_ranking_start) == (steps, start)
    assert config.training.baseline == baseline
    assert (config.training.batch, config.training.learning_rate) == (8, 0.001)
    assert (config.search.beam, config.search.rerank, config.search.program_beam) == (32, 128, 8)
    assert (config.search.selection, config.search.epsilon) == ("epsilon-greedy", 0.15)
    assert (config.search.critic_window, config.search.prune_dead_ends) == (2, False)
    # A negative for every incorrect terminal state (measured in tests/search), and no state that is left out of a loss.
    assert (config.search.negatives, config.training.policy_states, config.training.value_states) == (1024, 2048, 2048)
    assert (config.training.labels, config.training.programs) == ("paper", "extracted")
    assert (config.training.critic_updates, config.training.sample_gradient) == ("always", "policy")
    assert (config.network.initialisation, config.network.output_biases) == ("reference", True)
    assert (config.data.glove_words, config.data.normalise, config.network.renormalise) == (20_000, False, False)
    assert (config.data.lengths, config.data.evaluation) == (
        PAPER_SETTINGS[domain].training,
        PAPER_SETTINGS[domain].evaluation,
    )


def test_in_program_space_the_published_recipe_keeps_all_programs_of_the_beam():
    for method, settings in METHODS.items():
        for variant, beam in (("", 32), ("beam-64", 64)):
            kept = beam if settings["search.space"] == "program" else 8
            assert preset("scene", method, "published", variant).search.programs == kept


@pytest.mark.parametrize("data", DEFAULT_METHOD)
def test_every_method_has_every_recipe_in_every_domain(data):
    """Settings of the method always hold; the recipe's do, too, but for what a kind of data or a domain changes."""
    for domain, method, recipe in itertools.product([*DOMAINS, "own"], METHODS, RECIPES):
        config = preset(domain, method, recipe, data=data)
        assert (config.domain, config.method, config.recipe, config.variant) == (domain, method, recipe, "")
        settings = to_settings(config)
        assert METHODS[method].items() <= settings.items()
        assert override(Config(), settings) == config, "every value is within its bounds"
        by_domain = {"search.negatives", "training.value_states"} if data != "scone" else set()
        if domain == "scene":
            by_domain |= {"network.renormalise", "search.prune_dead_ends"}
        for name in RECIPES[recipe].keys() - by_domain:
            assert settings[name] == RECIPES[recipe][name], (domain, method, recipe, name)


def test_methods_differ_in_search_space_critic_and_objective_alone():
    for method in METHODS:
        difference = changes(preset("tangrams"), preset("tangrams", method))
        assert difference.keys() <= {"method", "search.space", "training.critic", "training.objective"}


@pytest.mark.parametrize("domain", DOMAINS)
def test_variants_are_joined_by_a_plus(domain):
    plain = preset(domain, "execution-only")
    for variant, settings in VARIANTS.items():
        config = preset(domain, "execution-only", variant=variant)
        difference = changes(plain, config)
        assert config.variant == difference.pop("variant") == variant
        assert settings.items() <= to_settings(config).items()
        extra = {"training.curriculum_steps"} if (variant, domain) == ("five-instructions", "scene") else set()
        assert difference.keys() <= settings.keys() | extra
    both = preset(domain, "execution-only", variant="beam-256+oov-words")
    assert (both.search.beam, both.training.policy_states, both.data.oov_min_count) == (256, 1024, 3)
    assert both.name == "execution-only-stochastic-beam-256+oov-words"
    assert preset(domain, "mml", "published").name == "mml-published"
    assert preset(domain, variant="beam-64+beam-256").search.beam == 256, "the last one counts"


def test_scene_is_learned_from_single_instructions_first():
    scene, alchemy = (preset(domain, data="synthetic") for domain in ("scene", "alchemy"))
    assert (scene.training.curriculum_steps, scene.search.prune_dead_ends) == (700, True)
    assert (alchemy.training.curriculum_steps, alchemy.search.prune_dead_ends) == (0, False)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"method": "vbsics"}, r"unknown method 'vbsics'\. Did you mean 'vbsix'"),
        ({"recipe": "publish"}, r"unknown recipe 'publish'\. Did you mean 'published'"),
        ({"variant": "beam-65"}, r"unknown variant 'beam-65'\. Did you mean 'beam-64'"),
        ({"variant": "beam-64+sufixes"}, r"unknown variant 'sufixes'\. Did you mean 'suffixes'"),
    ],
)
def test_an_unknown_name_is_an_error_with_the_nearest(given, message):
    for data in DEFAULT_METHOD:
        with pytest.raises(UnknownName, match=message):
            preset("scene", **given, data=data)


def test_the_quick_settings_are_settings():
    config = preset("alchemy", data="synthetic")
    assert config.domain == "alchemy"
    assert {name: value_of(config, name) for name in QUICK} == dict(QUICK)


def test_settings_are_given_as_text():
    given = [
        "search.beam=64",
        "data.lengths=[1, 5]",
        "search.space = program",
        'domain="scene"',
        "training.critic=false",
    ]
    config = override(Config(), read_assignments([*given, "training.learning_rate=1", "training.beta=1e-2"]))
    assert config.search.beam == 64
    assert config.data.lengths == (1, 5)
    assert (config.search.space, config.domain, config.training.critic) == ("program", "scene", False)
    assert repr(config.training.learning_rate) == "1.0"
    assert config.training.beta == 0.01


@pytest.mark.parametrize(
    ("assignment", "message"),
    [
        ("search.bean=64", r"unknown setting 'search\.bean'\. Did you mean 'search\.beam'\?"),
        ("beam=64", r"unknown setting 'beam'\. Did you mean 'search\.beam'\?"),
        ("train.learning_rate=1", r"Did you mean 'training\.learning_rate'\?"),
        ("epsilom=0.1", r"Did you mean 'search\.epsilon'\?"),
        ("search=64", r"unknown setting 'search'"),
        ("search.beam.more=64", r"unknown setting 'search\.beam\.more'"),
        ("=3", "unknown setting ''"),
        ("search.beam", r"'search\.beam' is not a setting: write NAME=VALUE"),
        ("search.beam=many", r"search\.beam: expected a whole number, not 'many'"),
        ("search.beam=1.5", r"search\.beam: expected a whole number, not 1\.5"),
        ("search.beam=true", r"search\.beam: expected a whole number, not True"),
        ("search.beam=0", r"search\.beam: expected a whole number of at least 1, not 0"),
        ("search.epsilon=1.5", r"search\.epsilon: expected a number between 0 and 1, not 1\.5"),
        ("search.epsilon=-0.1", r"search\.epsilon: expected a number between 0 and 1, not -0\.1"),
        ("training.dropout=1", r"training\.dropout: expected a number of at least 0 and below 1, not 1\.0"),
        ("training.dropout=-0.1", r"training\.dropout: expected a number of at least 0 and below 1, not -0\.1"),
        ("training.sample_epsilon=1.0", r"expected a number of at least 0 and below 1, not 1\.0"),
        ("search.epsilon=nan", r"search\.epsilon: expected a number between 0 and 1, not nan"),
        ("training.learning_rate=-1", r"expected a number of at least 0, not -1\.0"),
        ("training.learning_rate=inf", r"expected a number of at least 0, not inf"),
        ("training.critic=1", r"training\.critic: expected true or false, not 1"),
        ("training.objective=mm", r"training\.objective: expected one of 'mml', 'expert-mml', 'reinforce',.* not 'mm'"),
        ("training.objective=[1]", r"training\.objective: expected one of .*, not \[1\]"),
        ("search.selection=slots", r"search\.selection: expected one of 'epsilon-greedy', 'stochastic',.* not 'slots'"),
        ("network.encoder=gru", r"network\.encoder: expected one of 'lstm',.* not 'gru'"),
        ("network.initialisation=big", r"expected one of 'small', 'reference', not 'big'"),
        ("data.lengths=3", r"data\.lengths: expected a list such as \[1, 5\], not 3"),
        ("data.lengths=[]", r"data\.lengths: expected a list such as \[1, 5\], not \[\]"),
        ("data.lengths=[-1]", r"data\.lengths: expected a whole number of at least 0, not -1"),
        ("domain=3", "domain: expected a text, not 3"),
    ],
)
def test_a_wrong_setting_is_told_with_the_nearest(assignment, message):
    with pytest.raises(VbsixError, match=message):
        override(Config(), read_assignments([assignment]))


def test_zero_is_allowed_where_it_means_something():
    for name in ("data.glove_words", "training.value_ranking_start", "search.critic_window"):
        assert value_of(override(Config(), {name: 0}), name) == 0


@pytest.fixture(scope="module")
def toml_file(tmp_path_factory):
    return tmp_path_factory.mktemp("toml") / "config.toml"


@given(
    domain=st.text(st.characters(codec="utf-8", exclude_characters="\x7f")),
    number=NUMBERS,
    lengths=st.lists(st.integers(1, 9), min_size=1),
    flag=st.booleans(),
)
@hypothesis.settings(max_examples=25)
def test_a_config_comes_back_from_its_toml(toml_file, domain, number, lengths, flag):
    settings = {"domain": domain, "training.learning_rate": number, "data.lengths": lengths, "training.critic": flag}
    config = override(preset("scene", "mml"), settings)
    toml_file.write_text(to_toml(config), encoding="utf-8")
    assert override(Config(), read_toml(toml_file)) == config


def test_toml_has_every_setting_with_what_it_means():
    text = to_toml(Config())
    assert dict(flatten(tomllib.loads(text))).keys() == set(names(Config()))
    lines = text.splitlines()
    for number, line in enumerate(lines):
        if " = " in line and not line.startswith("#"):
            assert lines[number - 1].startswith("# "), f"{line} is not explained"
    assert "# K, the number of states that an iteration keeps.\nbeam = 32" in text
    assert 'One of: program, execution. space = "execution"' in unwrap(text)


@pytest.mark.parametrize("content", [b"[search\nbeam=3", b"\xff"])
def test_a_file_that_is_not_toml_is_an_error(tmp_path, content):
    (tmp_path / "config.toml").write_bytes(content)
    with pytest.raises(VbsixError, match=r"config\.toml: not a TOML file"):
        read_toml(tmp_path / "config.toml")


def test_a_wrong_key_in_a_file_is_told_with_the_nearest(tmp_path):
    (tmp_path / "config.toml").write_text("[search]\nbeans = 3")
    with pytest.raises(VbsixError, match=r"unknown setting 'search\.beans'\. Did you mean 'search\.beam'\?"):
        override(Config(), read_toml(tmp_path / "config.toml"))


def test_relative_paths_in_a_file_do_not_depend_on_the_folder_later(tmp_path, monkeypatch):
    """The run may be resumed from another folder."""
    (tmp_path / "some.vec").write_text("red 1 2 3\n")
    (tmp_path / "run.toml").write_text('[data]\nvectors = "some.vec"\ndev_file = "dev.jsonl"\n')
    monkeypatch.chdir(tmp_path)
    config = choose_config("tangrams", "examples.jsonl", None, None, None, Path("run.toml"), {})
    assert config.data.vectors == str(tmp_path / "some.vec")
    assert config.data.dev_file == str(tmp_path / "dev.jsonl")
    assert config.network.word == 3


@pytest.mark.parametrize("size", [preset("tangrams").network.word, 101])
def test_a_size_of_vectors_that_a_file_gives_is_kept(tmp_path, size):
    (tmp_path / "some.vec").write_text("red 1 2 3\n")
    file = tmp_path / "run.toml"
    file.write_text(f"[network]\nword = {size}\n")
    given = {"data.vectors": str(tmp_path / "some.vec")}
    assert choose_config("tangrams", "examples.jsonl", None, None, None, file, given).network.word == size


def test_a_file_of_vectors_that_is_no_text_is_one_message():
    with pytest.raises(VbsixError, match=r"data\.vectors.*expected a text, not 3"):
        choose_config("tangrams", "examples.jsonl", None, None, None, None, {"data.vectors": 3})


def test_a_config_that_is_not_its_preset_says_so():
    base = preset("alchemy", "vbsix")
    assert changed(base) == {} and full_name(base) == "vbsix-stochastic"
    config = override(base, {"training.critic": False, "search.space": "program"})
    assert changed(config) == {"search.space": "program", "training.critic": False}
    assert full_name(config) == "vbsix-stochastic (changed: search.space, training.critic)"
    more = override(config, {"search.beam": 7, "training.batch": 3})
    assert full_name(more) == "vbsix-stochastic (changed: 4 settings)"
    assert more.name == "vbsix-stochastic", "folders and files keep their names"


@pytest.mark.parametrize("data", ["scone", "synthetic", "json-lines"])
def test_a_preset_has_no_changes_and_its_steps_data_and_logging_are_free(data):
    for domain, method, recipe, variant in itertools.product(
        ("scene", "hallway"), METHODS, RECIPES, ("", "beam-64+oov-words", "five-instructions")
    ):
        config = preset(domain, method, recipe, variant, data=data)
        free = {"training.steps": 7, "data.vectors": "glove.txt", "network.word": 50, "run.log_every": 3}
        assert changed(override(config, free)) == {}


def test_names_that_are_no_preset_s_stand_for_nothing():
    for name in ("method", "recipe", "variant"):
        assert changed(override(preset("scene"), {name: "custom", "search.beam": 3})) == {}


def test_a_config_can_be_compared_and_is_never_changed():
    config = Config()
    assert override(config, {"search.beam": 3}) != config == Config()
    assert hash(config) == hash(Config())
    with pytest.raises(dataclasses.FrozenInstanceError):
        config.search.beam = 3  # type: ignore[misc]


def test_json_lines_are_learned_without_a_critic_unless_one_is_asked_for():
    kinds = {source: data_kind(source) for source in ("own.jsonl", "synthetic", "data/scone")}
    assert kinds == {"own.jsonl": "json-lines", "synthetic": "synthetic", "data/scone": "scone"}
    methods = {kind: preset("tangrams", data=kind).method for kind in kinds.values()}
    assert methods == {"json-lines": "execution-only", "synthetic": "vbsix", "scone": "vbsix"}
    assert preset("tangrams", "vbsix", data="json-lines").training.critic


def test_a_registered_part_is_a_choice(monkeypatch):
    monkeypatch.setattr(SELECTION_RULES, "_registered", {})
    with pytest.raises(VbsixError, match=r"search\.selection: expected one of"):
        override(Config(), {"search.selection": "mine"})
    SELECTION_RULES.register("mine", object())
    assert override(Config(), {"search.selection": "mine"}).search.selection == "mine"
    assert "One of: epsilon-greedy, stochastic, mine." in unwrap(to_toml(Config()))


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"training.length_penalty": 0.5, "training.programs": "extracted"}, "no effect on extracted programs"),
        ({"training.context_dropout": 0.5}, "the policy sees no context"),
    ],
)
def test_settings_that_would_do_nothing_or_harm_are_refused(settings, message):
    with pytest.raises(VbsixError, match=message):
        require_sense(override(Config(), settings))
