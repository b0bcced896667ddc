"""Languages that remember where: cases worked out by hand, and all that they share with the paper's domains."""

from __future__ import annotations

import jax
import pytest
from reference.outcomes import by_execute, by_twin

from vbsix import InvalidProgram, available_domains, execute, get_domain
from vbsix.config.presets import preset
from vbsix.config.schema import changes
from vbsix.data.scone import load_split
from vbsix.data.synthetic import generate, write_corpus
from vbsix.domains.names import base_name
from vbsix.domains.scene import person
from vbsix.evaluation.error_analysis import kind_of_change
from vbsix.show.svg import world_svg
from vbsix.show.terminal import draw_world
from vbsix.testing import check_domain

ROW = "1:0 2:3 3:4 4:1 5:2"
STAGE = "1:__ 2:r_ 3:__ 4:by 5:__ 6:__ 7:gg 8:__ 9:__ 10:__"
SWAPPED = "1:__ 2:r_ 3:__ 4:bg 5:__ 6:__ 7:gy 8:__ 9:__ 10:__"
BEAKERS = "1:ggg 2:_ 3:yo 4:r 5:pp 6:_ 7:_"
WORLDS = {"tangrams-where": ROW, "scene-where": STAGE, "alchemy-where": BEAKERS}

# Domain, first world, program, and the world and the stack at its end.
GOLDEN = [
    # Remove: where the shape was.
    ("tangrams-where", ROW, "all-objects 2 index ARemove 1 W1", "1:0 2:4 3:1 4:2", ["number:2"]),
    ("tangrams-where", ROW, "all-objects -1 index ARemove -1 W1", "1:0 2:3 3:4 4:1", ["number:5"]),
    # Put back where it was, though the row has changed meanwhile.
    (
        "tangrams-where",
        ROW,
        "all-objects 2 index ARemove all-objects 1 index all-objects 4 index ASwap 1 W1 1 H1 AAdd",
        "1:2 2:3 3:4 4:1 5:0",
        [],
    ),
    # Swap: the shape on top of the stack is the first argument, and both were elsewhere before.
    ("tangrams-where", ROW, "all-objects 1 index all-objects 4 index ASwap 1 W1", "1:1 2:3 3:4 4:0 5:2", ["number:4"]),
    ("tangrams-where", ROW, "all-objects 1 index all-objects 4 index ASwap 1 W2", "1:1 2:3 3:4 4:0 5:2", ["number:1"]),
    # Add: a shape that was not there is where it was put, and what is remembered does not change when it moves.
    (
        "tangrams-where",
        ROW,
        "all-objects 1 index ARemove -1 -1 H1 AAdd all-objects 1 index ARemove 2 W2",
        "1:4 2:1 3:2 4:0",
        ["number:5"],
    ),
    # The place at which something was can be a number of any kind: here the first shape of the row is taken out.
    ("tangrams-where", ROW, "all-objects 1 index ARemove all-objects 1 W1 index ARemove", "1:4 2:1 3:2", []),
    # H0 records positions, too.
    ("tangrams-where", ROW, "all-objects 1 index ARemove all-objects 3 index 1 H0 -1 W1", "1:3 2:4 3:2", ["number:3"]),
    # Move: the old position; Leave: where the person was; Create: where they came.
    ("scene-where", STAGE, "r PShirt 1 AMove 1 W1", STAGE.replace("1:__ 2:r_", "1:r_ 2:__"), ["number:2"]),
    ("scene-where", STAGE, "r PShirt -1 AMove 1 H1 1 W1 AMove", STAGE, []),
    ("scene-where", STAGE, "b PShirt ALeave -1 W1 b y ACreate", STAGE, []),
    ("scene-where", STAGE, "-1 r g ACreate r g DShirtHat 9 AMove 1 W1", STAGE.replace("9:__", "9:rg"), ["number:10"]),
    ("scene-where", STAGE, "b PShirt g PShirt ASwapHats 1 W1", SWAPPED, ["number:7"]),
    ("scene-where", STAGE, "b PShirt g PShirt ASwapHats 1 W2", SWAPPED, ["number:4"]),
    # "The same amount" after "all of it" is all of it, after a number that number.
    ("alchemy-where", BEAKERS, "g PColor X1/1 ADrain 1 H2", BEAKERS.replace("ggg", "_"), ["fraction:X1/1"]),
    (
        "alchemy-where",
        BEAKERS,
        "g PColor X1/1 ADrain p PColor -1 H2 ADrain",
        BEAKERS.replace("ggg", "_").replace("pp", "_"),
        [],
    ),
    ("alchemy-where", BEAKERS, "g PColor 3 ADrain 1 H2", BEAKERS.replace("ggg", "_"), ["number:3"]),
    (
        "alchemy-where",
        BEAKERS,
        "g PColor X1/1 ADrain p PColor -1 H2 ADrain r PColor 2 H2 2 H0 3 H2",
        "1:_ 2:_ 3:yo 4:_ 5:_ 6:_ 7:_",
        ["fraction:X1/1"],
    ),
]  # fmt: skip


@pytest.mark.parametrize(("domain", "world", "program", "after", "stack"), GOLDEN)
def test_golden_cases(domain, world, program, after, stack):
    last = execute(domain, world, program)[-1]
    assert (last.world, last.stack) == (after, stack)
    assert by_execute(domain, world, program.split()) == by_twin(domain, world, program.split())


@pytest.mark.parametrize(
    ("domain", "world", "program", "reason"),
    [
        ("tangrams-where", ROW, "1 W1", "there is no command 1"),
        ("tangrams-where", ROW, "all-objects 1 index ARemove 1 W2", "argument 2 of that command is no shape"),
        ("tangrams-where", ROW, "all-objects 1 index ARemove 1 1 H1 AAdd 2 W1", "argument 1 of that command is"),
        ("scene-where", STAGE, "r PShirt 1 AMove 1 W2", "argument 2 of that command is no person"),
    ],
)  # fmt: skip
def test_a_place_that_was_not_remembered(domain, world, program, reason):
    with pytest.raises(InvalidProgram, match=reason):
        execute(domain, world, program)
    assert by_twin(domain, world, program.split()).rejected_at == len(program.split()) - 1


@pytest.mark.parametrize("position", range(1, 6))
def test_one_command_puts_back_a_shape_from_anywhere(position):
    steps = execute("tangrams-where", ROW, f"all-objects {position} index ARemove -1 W1 -1 H1 AAdd")
    assert steps[3].world != steps[-1].world == ROW


@pytest.mark.parametrize("name", WORLDS)
def test_the_paper_s_tokens_come_first(name):
    tokens, paper = get_domain(name).tokens, get_domain(base_name(name)).tokens
    assert tokens[: len(paper)] == paper
    assert tokens[len(paper) :] == (() if name == "alchemy-where" else ("W1", "W2"))
    assert {name, base_name(name)} <= set(available_domains())


@pytest.mark.parametrize("name", WORLDS)
def test_domains_keep_what_searches_rely_on(name):
    check_domain(get_domain(name), [WORLDS[name]])


def test_what_is_remembered_makes_another_state():
    """Both ways remove shape 0 and lead to the same row; the paper's language takes them for one state."""
    ends = [("1:0 2:1", 1), ("1:1 2:0", 2)]
    assert len({_key("tangrams", world, f"all-objects {place} index ARemove") for world, place in ends}) == 1
    assert len({_key("tangrams-where", world, f"all-objects {place} index ARemove") for world, place in ends}) == 2
    amounts = ["3", "X1/1"]
    assert len({_key("alchemy", BEAKERS, f"g PColor {amount} ADrain") for amount in amounts}) == 1
    assert len({_key("alchemy-where", BEAKERS, f"g PColor {amount} ADrain") for amount in amounts}) == 2


def _key(name: str, world: str, program: str) -> tuple[int, ...]:
    domain = get_domain(name)
    state = domain.start(domain.parse_world(world), 2)
    for token in program.split():
        successors, valid = domain.expand(state)
        number = domain.tokens.index(token)
        assert valid[number]
        state = jax.tree.map(lambda leaf, number=number: leaf[number], successors)
    return tuple(domain.key(state).tolist())


def test_long_programs_run():
    """The history holds as many commands as a program can have."""
    program = "all-objects 1 index ARemove -1 W1 -1 H1 AAdd " * 60
    assert execute("tangrams-where", ROW, program)[-1].world == ROW


@pytest.mark.parametrize(
    ("name", "identity", "valid"), [("scene-where", 254, True), ("scene-where", 255, False), ("scene", 255, True)]
)
def test_people_that_cannot_be_told_apart_do_not_come(name, identity, valid):
    domain = get_domain(name)
    world = domain.parse_world(STAGE)
    world[1] = person(identity, 1, 7)
    state = domain.start(world, 2)
    for token in ("1", "r", "e"):
        state = jax.tree.map(lambda leaf, token=token: leaf[domain.tokens.index(token)], domain.expand(state)[0])
    assert domain.expand(state)[1][domain.tokens.index("ACreate")] == valid


@pytest.mark.parametrize("name", WORLDS)
def test_settings_are_those_of_the_paper_s_domain(name):
    for data in ("scone", "synthetic"):
        for variant in ("", "five-instructions"):
            options = {"variant": variant, "data": data}
            assert changes(preset(base_name(name), **options), preset(name, **options)) == {"domain": name}


def test_the_corpus_is_that_of_the_paper_s_domain(tmp_path):
    assert generate("tangrams-where", 5, seed=1) == generate("tangrams", 5, seed=1)
    assert write_corpus("tangrams-where", 5, 1, tmp_path)[0].name == "tangrams-train.tsv"
    rows = load_split(tmp_path, get_domain("tangrams-where"), "train")
    assert rows == load_split(tmp_path, get_domain("tangrams"), "train")


@pytest.mark.parametrize("name", WORLDS)
def test_worlds_look_as_in_the_paper_s_domain(name):
    world = WORLDS[name]
    assert world_svg(name, world) == world_svg(base_name(name), world)
    assert draw_world(name, world) == draw_world(base_name(name), world)
    assert kind_of_change(name, world, world.replace("1:", "2:")) == kind_of_change(
        base_name(name), world, world.replace("1:", "2:")
    )
