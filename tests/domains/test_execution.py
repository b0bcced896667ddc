from __future__ import annotations

import pytest
from reference.outcomes import by_execute, by_twin

from vbsix import InvalidProgram, InvalidWorld, Step, UnknownName, execute, get_domain
from vbsix.domains.execution import MOST_TOKENS

STAGE = "1:__ 2:r_ 3:__ 4:by 5:__ 6:__ 7:__ 8:__ 9:__ 10:__"


def test_a_step_tells_token_world_stack_and_commands():
    moved = "1:__ 2:__ 3:__ 4:by 5:r_ 6:__ 7:__ 8:__ 9:__ 10:__"
    assert execute("scene", STAGE, "r PShirt 5 AMove") == [
        Step("r", STAGE, ["color:r"], 0),
        Step("PShirt", STAGE, ["list:[2]"], 0),
        Step("5", STAGE, ["list:[2]", "number:5"], 0),
        Step("AMove", moved, [], 1),
    ]


def test_a_program_is_a_text_or_a_sequence_of_tokens():
    steps = execute("scene", STAGE, "r PShirt 5 AMove")
    assert execute("scene", STAGE, "  r PShirt\n5\tAMove ") == steps
    assert execute("scene", STAGE, ["r", "PShirt", "5", "AMove"]) == steps
    assert execute("scene", STAGE, ("r", "PShirt", "5", "AMove")) == steps


def test_a_domain_is_given_by_name_or_itself():
    assert execute(get_domain("tangrams"), "1:3", "all-objects") == execute("tangrams", "1:3", "all-objects")


@pytest.mark.parametrize("program", ["", " \n", []])
def test_the_empty_program_has_no_steps(program):
    assert execute("scene", STAGE, program) == []


def test_a_program_may_stop_in_the_middle_of_a_command():
    assert execute("scene", STAGE, "4 r")[-1] == Step("r", STAGE, ["number:4", "color:r"], 0)


def test_the_history_has_room_for_every_command():
    world = "1:0 2:1 3:2 4:3 5:4"
    program = ["all-objects", "1", "index", "all-objects", "-1", "index", "ASwap"] + ["1 H1", "1 H2", "1 H0"] * 40
    tokens = " ".join(program).split()
    outcome = by_execute("tangrams", world, tokens)
    assert outcome == by_twin("tangrams", world, tokens)
    assert outcome.trace[-1].commands == 41


def test_there_is_room_for_more_people_than_fit_on_the_stage():
    program = ["-1", "g", "e", "ACreate", "-1", "H1", "ALeave"] * 30 + ["-1", "H1"]
    outcome = by_execute("scene", STAGE, program)
    assert outcome == by_twin("scene", STAGE, program)
    assert outcome.trace[-1].stack == ["gone:31"]


def test_a_program_that_is_too_long_is_refused_at_the_first_token_too_many():
    with pytest.raises(InvalidProgram, match=str(MOST_TOKENS)) as caught:
        execute("tangrams", "1:3", ["1"] * (MOST_TOKENS + 5))
    assert caught.value.position == MOST_TOKENS


def test_an_unknown_token_is_named_with_the_nearest():
    with pytest.raises(InvalidProgram, match="AMove") as caught:
        execute("scene", STAGE, "r PShirt 5 Amove")
    assert (caught.value.position, caught.value.token) == (3, "Amove")


@pytest.mark.parametrize("token", ["X1/1", "APour", "PColor"])
def test_tokens_of_another_domain_are_unknown(token):
    with pytest.raises(InvalidProgram) as caught:
        execute("scene", STAGE, ["r", token])
    assert (caught.value.position, caught.value.token) == (1, token)


def test_an_invalid_token_stops_the_program_with_a_reason():
    with pytest.raises(InvalidProgram) as caught:
        execute("scene", STAGE, "r PShirt 4 AMove b PShirt ALeave")
    error = caught.value
    assert (error.position, error.token) == (3, "AMove")
    assert error.reason == "AMove: position 4 is occupied"
    assert error.reason in str(error)


@pytest.mark.parametrize(
    ("domain", "world", "element"),
    [
        ("scene", STAGE.replace("4:by", "4:bz"), r"4 .*bz"),
        ("scene", STAGE.replace("4:by", "4:_y"), r"4 .*_y"),
        ("scene", STAGE.replace("4:by", "4:be"), r"4 .*be"),
        ("scene", STAGE.replace("4:by", "5:by"), r"5:by"),
        ("scene", STAGE.replace(" 10:__", ""), r"10"),
        ("alchemy", "1:_ 2:rrrrr 3:_ 4:_ 5:_ 6:_ 7:_", r"2 .*rrrrr"),
        ("alchemy", "1:_ 2: 3:_ 4:_ 5:_ 6:_ 7:_", r"2 "),
        ("alchemy", "1:_ 2:r_ 3:_ 4:_ 5:_ 6:_ 7:_", r"2 .*r_"),
        ("tangrams", "1:0 2:5", r"2 .*5"),
        ("tangrams", "1:0 2:0", r"2: shape 0"),
        ("tangrams", "1:0 3:1", r"3:1"),
        ("tangrams", "1:0 2:٣", r"2 .*٣"),
    ],
)
def test_a_world_that_does_not_parse_is_refused_by_its_wrong_element(domain, world, element):
    with pytest.raises(InvalidWorld, match=element):
        execute(domain, world, "all-objects")


def test_an_unknown_domain_is_refused_with_the_known_ones():
    with pytest.raises(UnknownName, match=r"Known: alchemy, alchemy-where, .*sail, scene, scene-where, tangrams"):
        execute("scenes", STAGE, "r")
