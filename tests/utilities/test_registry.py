from __future__ import annotations

import json
import sys

import pytest

from vbsix.utilities.errors import UnknownName, VbsixError
from vbsix.utilities.registry import Registry


@pytest.fixture
def registry() -> Registry:
    return Registry("codec", {"dump": "json:dumps", "lost": "no_such_module_here:thing"})


def test_what_is_built_in_is_imported_when_first_asked_for(registry):
    assert registry.names() == ("dump", "lost")
    assert registry.get("dump") is registry.get("dump") is json.dumps
    assert "no_such_module_here" not in sys.modules
    with pytest.raises(ModuleNotFoundError):
        registry.get("lost")


def test_what_is_registered_is_found_by_its_name(registry):
    thing = object()
    registry.register("mine", thing)
    assert registry.names() == ("dump", "lost", "mine")
    assert registry.get("mine") is thing
    assert registry.names() == ("dump", "lost", "mine"), "a built-in name is not told twice once it was asked for"
    registry.get("dump")
    assert registry.names() == ("dump", "lost", "mine")


def test_a_name_can_be_taken_once(registry):
    thing = object()
    registry.register("mine", thing)
    registry.register("mine", thing)
    for name in ("mine", "dump"):
        with pytest.raises(VbsixError, match=f"the codec '{name}' exists already. Known: dump, lost, mine"):
            registry.register(name, object())
    registry.get("dump")
    with pytest.raises(VbsixError, match="exists already"):
        registry.register("dump", object())


def test_an_unknown_name_is_told_with_the_nearest(registry):
    with pytest.raises(UnknownName, match=r"unknown codec 'dumb'\. Did you mean 'dump'\? Known: dump, lost\."):
        registry.get("dumb")


@pytest.mark.parametrize("name", ["", " ", "two words", "tab\t"])
def test_a_name_is_a_text_without_white_space(registry, name):
    with pytest.raises(VbsixError, match="the name of a codec must be a text without white space"):
        registry.register(name, object())
