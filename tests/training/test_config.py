from __future__ import annotations

import dataclasses
import tomllib
from functools import reduce

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vbsix.cli.train import choose_config
from vbsix.data.examples import PAPER_SETTINGS
from vbsix.errors import UnknownName, VbsixError
from vbsix.training.config import (
    DOMAINS,
    METHODS,
    QUICK,
    Config,
    flatten,
    from_tables,
    method_of,
    names,
    override,
    override_from_text,
    preset,
    quick,
    read_toml,
    to_toml,
)

NUMBERS = st.floats(0, 1e9) | st.sampled_from([1e-5, 0.1, 1e300])


def value_of(config: Config, name: str) -> object:
    return reduce(getattr, name.split("."), config)


@pytest.mark.parametrize("domain", DOMAINS)
def test_the_presets_are_those_of_the_paper(domain):
    config = preset(domain, "paper-vbsix")
    steps, start, baseline = {
        "scene": (22_500, 5_000, 1e-5),
        "alchemy": (31_500, 5_000, 1e-2),
        "tangrams": (40_000, 10_000, 1e-3),
    }[domain]
    assert (config.training.steps, config.training.value_ranking_start) == (steps, start)
    assert config.training.baseline == baseline
    assert (config.training.batch, config.training.learning_rate) == (8, 0.001)
    assert (config.search.beam, config.search.rerank, config.search.program_beam) == (32, 128, 8)
    assert config.search.epsilon == 0.15
    assert (config.training.labels, config.training.programs) == ("paper", "extracted")
    assert (config.data.glove_words, config.data.normalise, config.network.renormalise) == (20_000, False, False)
    assert (config.data.lengths, config.data.evaluation) == (
        PAPER_SETTINGS[domain].training,
        PAPER_SETTINGS[domain].evaluation,
    )


def test_scene_is_learned_from_single_instructions_first():
    assert (quick("scene").training.short_first, quick("scene").search.prune) == (700, True)
    assert (quick("alchemy").training.short_first, quick("alchemy").search.prune) == (0, False)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("make", [preset, quick])
def test_a_method_is_recognised_by_its_settings(make, method):
    assert method_of(make("scene", method)) == method


def test_settings_that_make_no_known_method_are_told_as_such():
    assert method_of(override(Config(), {"training.objective": "reinforce"})) == "custom"


def test_an_unknown_method_is_an_error():
    for make in (preset, quick):
        with pytest.raises(UnknownName, match=r"unknown method 'vbsics'\. Did you mean 'vbsix'"):
            make("scene", "vbsics")


def test_the_quick_settings_are_settings():
    config = quick("alchemy")
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
    config = override_from_text(Config(), [*given, "training.learning_rate=1", "training.alpha=1e-2"])
    assert config.search.beam == 64
    assert config.data.lengths == (1, 5)
    assert (config.search.space, config.domain, config.training.critic) == ("program", "scene", False)
    assert repr(config.training.learning_rate) == "1.0"
    assert config.training.alpha == 0.01


def test_a_config_saved_by_an_earlier_version_is_read():
    saved = dataclasses.asdict(override(Config(), {"search.beam": 7}))
    saved["network"]["slots"] = 3
    assert from_tables(saved).search.beam == 7
    saved["network"]["bolts"] = 3
    with pytest.raises(VbsixError, match=r"unknown setting 'network\.bolts'"):
        from_tables(saved)


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
        ("training.dropout=1", r"training\.dropout: expected a number below 1"),
        ("search.epsilon=nan", r"search\.epsilon: expected a number between 0 and 1, not nan"),
        ("training.learning_rate=-1", r"expected a number of at least 0, not -1\.0"),
        ("training.learning_rate=inf", r"expected a number of at least 0, not inf"),
        ("training.critic=1", r"training\.critic: expected true or false, not 1"),
        ("training.objective=mm", r"training\.objective: expected one of 'mml', 'expert', 'reinforce', not 'mm'"),
        ("training.objective=[1]", r"training\.objective: expected one of .*, not \[1\]"),
        ("data.lengths=3", r"data\.lengths: expected a list such as \[1, 5\], not 3"),
        ("data.lengths=[]", r"data\.lengths: expected a list such as \[1, 5\], not \[\]"),
        ("data.lengths=[-1]", r"data\.lengths: expected a whole number of at least 0, not -1"),
        ("domain=3", "domain: expected a text, not 3"),
    ],
)
def test_a_wrong_setting_is_told_with_the_nearest(assignment, message):
    with pytest.raises(VbsixError, match=message):
        override_from_text(Config(), [assignment])


def test_zero_is_allowed_where_it_means_something():
    for name in ("data.glove_words", "training.value_ranking_start", "search.critic_instructions"):
        assert value_of(override(Config(), {name: 0}), name) == 0


@given(
    domain=st.text(st.characters(codec="utf-8", exclude_characters="\x7f")),
    number=NUMBERS,
    lengths=st.lists(st.integers(1, 9), min_size=1),
    flag=st.booleans(),
)
def test_a_config_comes_back_from_its_toml(tmp_path_factory, domain, number, lengths, flag):
    settings = {"domain": domain, "training.learning_rate": number, "data.lengths": lengths, "training.critic": flag}
    config = override(preset("scene", "mml"), settings)
    path = tmp_path_factory.mktemp("toml") / "config.toml"
    path.write_text(to_toml(config), encoding="utf-8")
    assert override(Config(), read_toml(path)) == config


def test_toml_has_every_setting_with_what_it_means():
    text = to_toml(Config())
    assert dict(flatten(tomllib.loads(text))).keys() == set(names(Config()))
    lines = text.splitlines()
    for number, line in enumerate(lines):
        if " = " in line and not line.startswith("#"):
            assert lines[number - 1].startswith("# "), f"{line} is not explained"
    assert "# K, how many states an iteration keeps.\nbeam = 32" in text
    assert 'One of: program, execution.\nspace = "execution"' in text


@pytest.mark.parametrize("content", [b"[search\nbeam=3", b"\xff"])
def test_a_file_that_is_not_toml_is_an_error(tmp_path, content):
    (tmp_path / "config.toml").write_bytes(content)
    with pytest.raises(VbsixError, match=r"config\.toml: not a TOML file"):
        read_toml(tmp_path / "config.toml")


def test_a_wrong_key_in_a_file_is_told_with_the_nearest(tmp_path):
    (tmp_path / "config.toml").write_text("[search]\nbeans = 3")
    with pytest.raises(VbsixError, match=r"unknown setting 'search\.beans'\. Did you mean 'search\.beam'\?"):
        override(Config(), read_toml(tmp_path / "config.toml"))


def test_a_config_can_be_compared_and_is_never_changed():
    config = Config()
    assert override(config, {"search.beam": 3}) != config == Config()
    assert hash(config) == hash(Config())
    with pytest.raises(dataclasses.FrozenInstanceError):
        config.search.beam = 3  # type: ignore[misc]


def test_json_lines_are_learned_without_a_critic_unless_one_is_asked_for():
    assert [choose_config("tangrams", "own.jsonl", method, None, None, [])[1] for method in (None, "vbsix")] == [
        "execution-only",
        "vbsix",
    ]
    assert choose_config("tangrams", "synthetic", None, None, None, [])[1] == "vbsix"
