from __future__ import annotations

from xml.etree import ElementTree

import pytest

import vbsix
from vbsix.config.presets import full_name
from vbsix.parsing.loading import load

ROW, SWAPPED = "1:0 2:3", "1:3 2:0"


class Lamp:
    """A lamp that can be made red or turned off."""

    tokens = ("red", "off")
    max_tokens_per_instruction = 1

    def start(self, context):
        return tuple(context), 0

    def step(self, state, token):
        return (token,), state[1] + 1

    def instructions_done(self, state):
        return state[1]

    def denotation(self, state):
        return list(state[0])


def search(**options) -> vbsix.Search:
    return vbsix.search_programs("tangrams", ROW, ["swap them"], SWAPPED, **{"beam": 64, "limit": 10, **options})


def test_programs_are_found_and_drawn():
    found = search()
    assert {" ".join(one.tokens) for one in found.programs} == {
        "all-objects 2 index all-objects 1 index ASwap",
        "all-objects -1 index all-objects 1 index ASwap",
    }
    assert found.iterations[0].successors == 7
    assert repr(found) == "<search in execution space, beam 64: 2 programs found>"
    root = ElementTree.fromstring(found._repr_html_())
    assert [element.tag for element in root.iter("img")] == ["img"]
    assert "2 programs found" in "".join(root.itertext())
    assert len([group for group in ElementTree.fromstring(found.svg).iter() if group.get("class")]) == 10


def test_a_parser_searches_with_its_policy():
    found = search(parser=load("tangrams"), beam=4)
    assert found.policy == full_name(load("tangrams").config)
    assert found.programs[0].log_probability > -2
    with pytest.raises(vbsix.VbsixError, match="trained for tangrams, not for scene"):
        vbsix.search_programs("scene", ROW, ["swap them"], SWAPPED, parser=load("tangrams"))


def test_a_language_of_your_own_is_searched():
    found = vbsix.search_programs(Lamp, ["off"], ["<i>red</i>", "red"], ["red"], beam=8)
    assert {one.tokens for one in found.programs} == {("red", "red"), ("off", "red")}
    root = ElementTree.fromstring(found._repr_html_())
    assert not list(root.iter("i"))


def test_a_search_without_a_program_says_so():
    assert "no programs found" in search(beam=1)._repr_html_()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"beam": 0}, "beam: expected 1 to"),
        ({"epsilon": 2}, "epsilon: expected"),
        ({"limit": 0}, "limit: expected"),
    ],
)
def test_wrong_options_are_errors(options, message):
    with pytest.raises(vbsix.VbsixError, match=message):
        search(**options)


@pytest.mark.parametrize("utterances", [[], "swap them"])
def test_utterances_are_a_list(utterances):
    with pytest.raises(vbsix.VbsixError, match="expected a list"):
        vbsix.search_programs("tangrams", ROW, utterances, SWAPPED)


def test_wrong_worlds_are_named():
    with pytest.raises(vbsix.VbsixError, match="target: element 1"):
        vbsix.search_programs("tangrams", ROW, ["swap them"], "0")
