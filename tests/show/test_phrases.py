from __future__ import annotations

import pytest

from vbsix import get_domain
from vbsix.domains.names import BUILT_IN
from vbsix.show.phrases import RULES, in_words


@pytest.mark.parametrize(
    ("domain", "command", "words"),
    [
        ("scene", "r PShirt 1 AMove", "the person in red moves to position 1"),
        ("scene", "y o DShirtHat ALeave", "the person in yellow with an orange hat leaves"),
        (
            "scene",
            "-1 H1 PRight g e ACreate",
            "a person in green with no hat comes to the place right of the last command's first argument",
        ),
        ("alchemy", "r PColor 2 index 1 ADrain", "drain 1 of number 2 of the red beakers"),
        ("alchemy", "all-objects 3 index X1/1 2 H0", "do as in command 2 with beaker 3 and all"),
        ("alchemy", "1 H2 AMix", "mix command 1's second argument"),
        ("tangrams", "all-objects 1 index all-objects -1 index ASwap", "swap shape 1 and the last shape"),
        ("tangrams", "-1 1 H1 AAdd", "put command 1's first argument at the right end"),
        (
            "tangrams-where",
            "-1 W1 -1 H1 AAdd",
            "put the last command's first argument at the place where the last command's first argument was",
        ),
        (
            "scene-where",
            "1 H1 1 W1 AMove",
            "command 1's first argument moves to the place where command 1's first argument was",
        ),
        ("tangrams", "-1 H0", "do as in the last command"),
        ("tangrams", "2 H2 2 H1 2 H0", "do as in command 2 with its second argument and its first argument"),
        ("tangrams", "all-objects 1 H2 index ARemove", "remove the shape whose number is command 1's second argument"),
    ],
)
def test_a_command_says_what_it_does(domain, command, words):
    assert in_words(domain, command.split()) == words


@pytest.mark.parametrize(
    ("domain", "command"),
    [
        ("tangrams", "ARemove"),
        ("tangrams", "1 2"),
        ("tangrams", "AMix"),
        ("tangrams", "-1 W1 -1 H1 AAdd"),
        ("chess", "e4"),
    ],
)
def test_what_is_no_command_has_no_words(domain, command):
    assert in_words(domain, command.split()) is None


@pytest.mark.parametrize("domain", BUILT_IN)
def test_every_token_has_words(domain):
    assert set(get_domain(domain).tokens) == set(RULES[domain])
