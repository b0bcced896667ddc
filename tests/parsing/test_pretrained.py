"""The models that come with vbsix."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

import vbsix
from vbsix.domains.names import BUILT_IN, base_name
from vbsix.parsing.loading import PRETRAINED, find_model, pretrained_models
from vbsix.utilities.errors import VbsixError

pytestmark = pytest.mark.integration


REQUESTS = {
    "alchemy": ("1:ggg 2:_ 3:yy 4:_ 5:_ 6:_ 7:_", "throw out the first beaker", "1:_ 2:_ 3:yy 4:_ 5:_ 6:_ 7:_"),
    "scene": (
        "1:__ 2:r_ 3:__ 4:by 5:__ 6:__ 7:__ 8:__ 9:__ 10:__",
        "the man in the red shirt leaves",
        "1:__ 2:__ 3:__ 4:by 5:__ 6:__ 7:__ 8:__ 9:__ 10:__",
    ),
    "tangrams": ("1:0 2:3 3:4", "swap the first and last figure", "1:4 2:3 3:0"),
    "tangrams-critic": ("1:0 2:3 3:4", "swap the first and the last figure", "1:4 2:3 3:0"),
}


def test_there_is_a_model_for_each_domain():
    domains = {base_name(name) for name in BUILT_IN}
    assert pretrained_models().keys() == REQUESTS.keys() == domains | {"tangrams-critic"}


@pytest.mark.parametrize("name", REQUESTS)
def test_a_model_works_with_no_data_and_no_training(name):
    world, utterance, after = REQUESTS[name]
    parse = vbsix.load(name).parse(world, [utterance])
    assert parse.readings[0].worlds == (after,)
    assert not parse.unknown_words


@pytest.mark.parametrize("name", REQUESTS)
def test_a_model_is_small_and_has_a_card(name):
    assert find_model(name).stat().st_size < 4e6
    card = (PRETRAINED / f"{name}.md").read_text(encoding="utf-8")
    for part in ("Data", "Supervision", "Training", "Accuracy", "Limits"):
        assert f"**{part}**" in card


def test_what_lies_in_the_folder_goes_before_a_model_of_that_name(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "tangrams").mkdir()
    with pytest.raises(VbsixError, match="tangrams: holds no run"):
        vbsix.load("tangrams")


@pytest.mark.slow
def test_what_is_compiled_from_python_is_kept_on_disk(tmp_path):
    """Without the command line, and without a folder that JAX was told of."""
    parse = "vbsix.load('tangrams').parse('1:0 2:3', ['remove the first figure'])"
    code = f"import vbsix; print({parse}.readings[0].commands)"
    quick = {"JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0", "XDG_CACHE_HOME": str(tmp_path)}
    given = {name: value for name, value in os.environ.items() if name != "JAX_COMPILATION_CACHE_DIR"} | quick
    ended = subprocess.run([sys.executable, "-c", code], env=given, check=True, capture_output=True, text=True)
    assert "ARemove" in ended.stdout
    assert list((tmp_path / "vbsix" / "jax").iterdir())
