from __future__ import annotations

import pytest

from vbsix import execute
from vbsix.data.synthetic import generate
from vbsix.show.phrases import tell_all

STAGE = "1:r_ 2:__ 3:__ 4:by 5:__ 6:__ 7:go 8:__ 9:__ 10:__"
BEAKERS = "1:ggg 2:_ 3:yo 4:_ 5:rr 6:y 7:p"
ROW = "1:0 2:1 3:2 4:3"


@pytest.mark.integration
@pytest.mark.parametrize(
    ("domain", "world", "commands", "words"),
    [
        ("scene", STAGE, ["r PShirt 2 AMove"], ["the person in red with no hat moves to position 2"]),
        ("scene", STAGE, ["g o DShirtHat ALeave"], ["the person in green with an orange hat at position 7 leaves"]),
        (
            "scene",
            STAGE,
            ["-1 p e ACreate", "-1 H1 2 AMove", "-1 H1 ALeave"],
            [
                "a person in purple with no hat enters at position 10",
                "the person who just entered moves to position 2",
                "the person who just moved leaves",
            ],
        ),
        (
            "scene",
            STAGE,
            ["b PShirt g PShirt ASwapHats"],
            ["the person in blue with a yellow hat and the person in green with an orange hat swap hats"],
        ),
        (
            "alchemy",
            BEAKERS,
            ["p PColor all-objects 6 index APour", "-1 H2 AMix", "-1 H1 X1/1 ADrain"],
            [
                "pour beaker 7 into beaker 6",
                "mix beaker 6, the one just filled (it turns brown)",
                "empty beaker 6, the one just mixed",
            ],
        ),
        (
            "alchemy",
            BEAKERS,
            ["p PColor all-objects 2 index APour", "-1 H2 all-objects 4 index APour"],
            ["pour beaker 7 into beaker 2", "pour beaker 2, the one just filled, into beaker 4"],
        ),
        (
            "tangrams",
            ROW,
            ["all-objects 2 index ARemove", "1 -1 H1 AAdd", "-1 H2 all-objects 2 index ASwap"],
            [
                "remove the second figure",
                "put the removed figure back in first place",
                "swap the first figure, the one just put back, and the second figure",
            ],
        ),
        ("alchemy", BEAKERS, ["g PColor 2 ADrain"], ["pour out two units of beaker 1"]),
        (
            "tangrams-where",
            ROW,
            ["all-objects 2 index ARemove", "-1 W1 -1 H1 AAdd"],
            ["remove the second figure", "put the removed figure back in second place"],
        ),
        (
            "scene-where",
            STAGE,
            ["r PShirt -1 AMove", "-1 H1 -1 W1 AMove"],
            ["the person in red with no hat moves to position 10", "the person who just moved moves to position 1"],
        ),
        (
            "tangrams",
            ROW,
            ["all-objects 2 index ARemove", "-1 -1 H1 AAdd", "all-objects 1 index all-objects 3 index ASwap"],
            [
                "remove the second figure",
                "put the removed figure back in fourth place",
                "swap the first figure and the third figure",
            ],
        ),
    ],
)
def test_references_are_resolved(domain, world, commands, words):
    assert told(domain, world, commands) == words


def told(domain: str, world: str, commands: list[str]) -> list[str | None]:
    steps = execute(domain, world, " ".join(commands))
    after = {step.commands: step.world for step in reversed(steps)}
    return tell_all(domain, world, [after[number] for number in range(1, len(commands) + 1)], commands)


@pytest.mark.parametrize("domain", ["scene", "alchemy", "tangrams"])
def test_every_command_of_the_corpus_has_words(domain):
    for made in generate(domain, 100, seed=4):
        first, *worlds = [str(world) for world in made.row.worlds]
        said = tell_all(domain, first, worlds, made.programs)
        assert all(said), (first, worlds, said)


def test_own_domains_have_no_words():
    assert tell_all("chess", "a", ["b"], ["e4"]) == [None]
    assert tell_all("scene", "not a stage", ["another"], ["go"]) == [None]


def test_nothing_may_change():
    assert tell_all("tangrams", ROW, [ROW], ["-1 H0"]) == ["nothing changes"]
