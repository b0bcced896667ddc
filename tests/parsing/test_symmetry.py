"""Words for constants, induced from what a parser reads."""

from __future__ import annotations

import numpy as np
import pytest

import vbsix
from vbsix import UnknownName, VbsixError
from vbsix.data.synthetic import generate
from vbsix.parsing.symmetry import align_forms, induce_symmetry, noisy_or


def test_a_word_that_stands_beside_a_name_explains_nothing():
    """Words 0 and 1 are names, word 2 stands beside each of them, word 3 is in all utterances."""
    utterances = [([0, 2, 3], 1.0), ([0, 3], 1.0), ([1, 2, 3], 1.0), ([1, 3], 0.9), ([2, 3], 0.0), ([3], 0.0)] * 20
    words = np.array([word for said, _ in utterances for word in said])
    places = np.repeat(np.arange(len(utterances)), [len(said) for said, _ in utterances])
    brings = noisy_or(words, places, np.array([has for _, has in utterances]))
    assert brings == pytest.approx([1, 0.95, 0, 0], abs=0.02)


def test_forms_at_the_same_place_correspond():
    assert align_forms([["red", "reds", "red-shirted"], ["blue", "navy", "blues"]]) == [
        ["red", "reds", "red-shirted", "red"],
        ["blue", "blues", "blue", "navy"],
    ]


@pytest.fixture(scope="module")
def alchemy():
    return vbsix.load("alchemy")


@pytest.mark.integration
def test_the_built_in_model_of_alchemy_shows_which_words_are_its_colours(alchemy):
    rows = [one.row for one in generate("alchemy", 60, seed=3, utterances=2)]
    (declared,) = alchemy.domain.symmetries
    found = induce_symmetry(alchemy, declared.constants, rows)
    assert found.constants == declared.constants
    for constant, words in found.words.items():
        assert words[0] == declared.words[constant][0] and set(words) <= set(declared.words[constant])


@pytest.mark.integration
def test_constants_without_a_name_are_one_message(alchemy):
    rows = [one.row for one in generate("alchemy", 2, seed=3, utterances=1)]
    with pytest.raises(VbsixError, match=r"no word names .*p.* in what the parser makes of these rows"):
        induce_symmetry(alchemy, alchemy.domain.symmetries[0].constants, rows)
    with pytest.raises(VbsixError, match="no word names r, g in"):
        induce_symmetry(alchemy, ["r", "g"], [])
    with pytest.raises(UnknownName, match="unknown token 'red'"):
        induce_symmetry(alchemy, ["red"], rows)
