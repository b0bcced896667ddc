"""Corners of the language, one line each, for the twin and for the compiled executor."""

from __future__ import annotations

import functools
from dataclasses import dataclass

import jax
import numpy as np
import pytest
from reference.language import Language
from reference.outcomes import by_execute, by_twin

from vbsix import InvalidProgram, execute, get_domain


def stage(**people: str) -> str:
    """A scene: `stage(at2="r_")` has one person, at position 2."""
    return " ".join(f"{position}:{people.get(f'at{position}', '__')}" for position in range(1, 11))


def beakers(*contents: str) -> str:
    """An alchemy world; beakers that are not given are empty."""
    filled = [*contents, *[""] * (7 - len(contents))]
    return " ".join(f"{position}:{units or '_'}" for position, units in enumerate(filled, 1))


def row(shapes: str) -> str:
    """A tangrams world: `row("304")` has shape 3 first."""
    return " ".join(f"{position}:{shape}" for position, shape in enumerate(shapes, 1))


EMPTY_STAGE = stage()
FULL_STAGE = stage(**{f"at{position}": "ry" for position in range(1, 11)})
TWO = stage(at2="r_", at7="by")
ALIKE = stage(at3="gp", at5="gp")


@dataclass(frozen=True)
class Case:
    """A program whose last token is rejected, or that ends with this stack and, if the world changes, this world."""

    name: str
    world: str
    program: str
    rejected: bool = False
    stack: str = ""
    then: str | None = None


def invalid(name: str, world: str, program: str) -> Case:
    return Case(name, world, program, rejected=True)


def ends(name: str, world: str, program: str, then: str, stack: str = "") -> Case:
    return Case(name, world, program, then=then, stack=stack)


def pushes(name: str, world: str, program: str, stack: str) -> Case:
    return Case(name, world, program, stack=stack)


SCENE = [
    # lists, index, properties
    invalid("all-objects on an empty stage", EMPTY_STAGE, "all-objects"),
    invalid("all-objects after the last one has left", stage(at4="r_"), "r PShirt ALeave all-objects"),
    pushes("all-objects on a full stage", FULL_STAGE, "all-objects", "list:[1,2,3,4,5,6,7,8,9,10]"),
    pushes("index counts places in the list, not positions", TWO, "all-objects 2 index", "object:7"),
    pushes("index -1 is the last", TWO, "all-objects -1 index", "object:7"),
    pushes("index 10 of a full stage", FULL_STAGE, "all-objects 10 index", "object:10"),
    invalid("index past the end of the list", TWO, "all-objects 3 index"),
    invalid("index on a single object", TWO, "all-objects 1 index 1 index"),
    pushes("index on a list of one", TWO, "r PShirt -1 index", "object:2"),
    invalid("index without a list", TWO, "1 index"),
    invalid("index with the number below the list", TWO, "1 all-objects index"),
    invalid("index with a colour", TWO, "all-objects r index"),
    pushes("one match is still a list", TWO, "r PShirt", "list:[2]"),
    pushes("no hat is matched by e", TWO, "e PHat", "list:[2]"),
    invalid("e PShirt matches nobody", TWO, "e PShirt"),
    invalid("e as the shirt of DShirtHat matches nobody", TWO, "e e DShirtHat"),
    pushes("DShirtHat with no hat", TWO, "r e DShirtHat", "list:[2]"),
    pushes("DShirtHat takes the shirt first", stage(at1="by", at2="yb"), "b y DShirtHat", "list:[1]"),
    invalid("DShirtHat where shirt and hat match different people", TWO, "r y DShirtHat"),
    invalid("DShirtHat with one colour", TWO, "r DShirtHat"),
    invalid("a colour nobody wears", TWO, "g PHat"),
    invalid("PShirt of a number", TWO, "1 PShirt"),
    # beside
    pushes("PLeft of an object", TWO, "all-objects 2 index PLeft", "number:6"),
    pushes("PRight of a list of one", TWO, "r PShirt PRight", "number:3"),
    invalid("PLeft of a list of two", ALIKE, "g PShirt PLeft"),
    invalid("PLeft at the left end", stage(at1="r_"), "r PShirt PLeft"),
    invalid("PRight at the right end", stage(at10="r_"), "r PShirt PRight"),
    pushes("PRight need not be empty", stage(at4="r_", at5="b_"), "r PShirt PRight", "number:5"),
    pushes("PLeft's number serves index", FULL_STAGE, "all-objects all-objects 6 index PLeft index", "object:5"),
    # the stack
    pushes("three elements", TWO, "1 r all-objects", "number:1 color:r list:[2,7]"),
    invalid("a fourth element", TWO, "1 r all-objects b"),
    pushes("a property on a full stack", TWO, "1 2 r PShirt", "number:1 number:2 list:[2]"),
    invalid("an action that leaves something on the stack", TWO, "1 r PShirt ALeave"),
    invalid("an action on an empty stack", TWO, "ALeave"),
    invalid("an action with too few arguments", TWO, "5 AMove"),
    # leave, move
    ends("leave by a list of one", TWO, "r PShirt ALeave", stage(at7="by")),
    invalid("leave by a list of two", ALIKE, "g PShirt ALeave"),
    ends("the stage may become empty", stage(at4="r_"), "r PShirt ALeave", EMPTY_STAGE),
    ends("move", TWO, "r PShirt 1 AMove", stage(at1="r_", at7="by")),
    ends("move to -1", TWO, "r PShirt -1 AMove", stage(at7="by", at10="r_")),
    invalid("move to -1 when 10 is occupied", stage(at2="r_", at10="by"), "r PShirt -1 AMove"),
    invalid("move to one's own position", TWO, "r PShirt 2 AMove"),
    invalid("move to another's position", TWO, "r PShirt 7 AMove"),
    invalid("move with the arguments the wrong way round", TWO, "1 r PShirt AMove"),
    invalid("move to a colour", TWO, "r PShirt b AMove"),
    # swap hats
    ends("no hat counts as a hat", TWO, "r PShirt b PShirt ASwapHats", stage(at2="ry", at7="b_")),
    ends("equal hats swap", ALIKE, "all-objects 1 index all-objects 2 index ASwapHats", ALIKE),
    invalid("the same person twice", TWO, "r PShirt all-objects 1 index ASwapHats"),
    pushes("H1 of a hat swap is the one that was on top", TWO, "r PShirt b PShirt ASwapHats 1 H1", "object:7"),
    pushes("H2 of a hat swap is the other", TWO, "r PShirt b PShirt ASwapHats 1 H2", "object:2"),
    # create
    ends("create without a hat", TWO, "1 g e ACreate", stage(at1="g_", at2="r_", at7="by")),
    ends("create on an empty stage", EMPTY_STAGE, "-1 g o ACreate", stage(at10="go")),
    invalid("create with shirt e", TWO, "1 e g ACreate"),
    invalid("create where somebody is", TWO, "2 g g ACreate"),
    invalid("create on a full stage", FULL_STAGE, "-1 g g ACreate"),
    pushes("H1 of a create is the new person", TWO, "4 g o ACreate -1 H1", "object:4"),
    invalid("H2 of a create", TWO, "4 g o ACreate -1 H2"),
    invalid("H3 of a create", TWO, "4 g o ACreate -1 H3"),
    invalid("H0 of a create, for want of a fourth element", TWO, "4 g o ACreate 5 g o -1"),
    invalid("H0 of a create with too few arguments", TWO, "4 g o ACreate g o -1 H0"),
    # history
    invalid("H1 with no history", TWO, "1 H1"),
    invalid("H1 -1 with no history", TWO, "-1 H1"),
    invalid("H1 without a number", TWO, "r PShirt 1 AMove H1"),
    invalid("H1 beyond the history", TWO, "r PShirt 1 AMove 2 H1"),
    invalid("H1 of a colour", TWO, "r PShirt 1 AMove r H1"),
    pushes("H2 after a move to -1 is 10", TWO, "r PShirt -1 AMove -1 H2", "number:10"),
    invalid("H3 of a move", TWO, "r PShirt 1 AMove 1 H3"),
    invalid("H2 of a leave", TWO, "r PShirt ALeave 1 H2"),
    pushes("a person is found where they are now", TWO, "r PShirt 1 AMove r PShirt 9 AMove 1 H1", "object:9"),
    pushes("a list of one comes back as an object", TWO, "r PShirt 1 AMove 1 H1", "object:1"),
    invalid("so index cannot take it", TWO, "r PShirt 1 AMove 1 H1 1 index"),
    pushes(
        "people who look alike are told apart",
        ALIKE,
        "all-objects 2 index 1 AMove all-objects 2 index 9 AMove 2 H1",
        "object:9",
    ),
    ends(
        "H0 repeats the action on the arguments now on the stack",
        TWO,
        "r PShirt 1 AMove b PShirt 2 1 H0",
        stage(at1="r_", at2="by"),
    ),
    pushes("H0 is recorded with its new arguments", TWO, "r PShirt 1 AMove b PShirt -1 1 H0 2 H2", "number:10"),
    ends(
        "H0 of an H0 runs the action that it ran",
        TWO,
        "r PShirt 1 AMove b PShirt 2 1 H0 r PShirt 5 2 H0",
        stage(at2="by", at5="r_"),
    ),
    invalid("H0 takes its action from n, not the last", TWO, "r PShirt 1 AMove b PShirt ALeave r PShirt 1 H0"),
    invalid("H0 must leave the stack empty", TWO, "r PShirt ALeave 1 b PShirt 1 H0"),
    invalid("H0 with nothing to act on", TWO, "r PShirt 1 AMove 1 H0"),
    # gone people
    pushes("somebody who left is pushed as gone", TWO, "b PShirt ALeave 1 H1", "gone:1"),
    pushes("a created person's number follows the others", TWO, "1 g e ACreate 1 H1 ALeave -1 H1", "gone:2"),
    pushes(
        "numbers are not used again",
        stage(at4="r_"),
        "r PShirt ALeave 4 r e ACreate r PShirt ALeave 1 H1 2 H1",
        "gone:0 gone:1",
    ),
    pushes(
        "somebody who looks like the one who left is not found",
        stage(at4="r_"),
        "r PShirt ALeave 4 r e ACreate 1 H1",
        "gone:0",
    ),
    invalid("a gone person cannot leave", TWO, "b PShirt ALeave 1 H1 ALeave"),
    invalid("a gone person cannot move", TWO, "b PShirt ALeave 1 H1 3 AMove"),
    invalid("a gone person cannot swap hats", TWO, "b PShirt ALeave r PShirt 1 H1 ASwapHats"),
    invalid("nothing is beside a gone person", TWO, "b PShirt ALeave 1 H1 PLeft"),
    invalid("a gone person is no list", TWO, "b PShirt ALeave 1 H1 1 index"),
    invalid("a gone person is no number", TWO, "b PShirt ALeave 1 H1 H1"),
]

ALCHEMY = [
    pushes("all-objects has the empty beakers too", beakers(), "all-objects", "list:[1,2,3,4,5,6,7]"),
    pushes("PColor wants one colour throughout", beakers("rr", "rg", "r"), "r PColor", "list:[1,3]"),
    invalid("PColor does not find empty beakers", beakers(), "r PColor"),
    invalid("index on a single beaker", beakers("r"), "all-objects 1 index 1 index"),
    # drain
    ends("drain takes from the end", beakers("rgb"), "all-objects 1 index 1 ADrain", beakers("rg")),
    ends("drain all by number", beakers("rgb"), "all-objects 1 index 3 ADrain", beakers()),
    ends("drain all by fraction", beakers("rgby"), "all-objects 1 index X1/1 ADrain", beakers()),
    invalid("drain more than there is", beakers("rgb"), "all-objects 1 index 4 ADrain"),
    invalid("drain 7", beakers("rgby"), "all-objects 1 index 7 ADrain"),
    invalid("drain -1", beakers("rgb"), "all-objects 1 index -1 ADrain"),
    invalid("drain an empty beaker by fraction", beakers("r"), "all-objects 2 index X1/1 ADrain"),
    invalid("drain an empty beaker by number", beakers("r"), "all-objects 2 index 1 ADrain"),
    invalid("drain a colour", beakers("r"), "r PColor r ADrain"),
    invalid("drain a list of two", beakers("r", "r"), "r PColor 1 ADrain"),
    pushes("X1/1 is recorded as a number", beakers("rgb"), "all-objects 1 index X1/1 ADrain 1 H2", "number:3"),
    invalid("a recorded amount is too much now", beakers("rr", "g"), "r PColor X1/1 ADrain g PColor 1 H2 ADrain"),
    ends(
        "a recorded amount may also serve index",
        beakers("rr", "gy"),
        "r PColor X1/1 ADrain all-objects 1 H2 index X1/1 ADrain",
        beakers(),
    ),
    invalid("a fraction is no number for index", beakers("r"), "all-objects X1/1 index"),
    invalid("a fraction is no number for H1", beakers("r"), "r PColor X1/1 ADrain X1/1 H1"),
    # pour
    ends("pour onto the end", beakers("rr", "gy"), "r PColor all-objects 2 index APour", beakers("", "gyrr")),
    ends("pour into an empty beaker", beakers("rr"), "r PColor all-objects 7 index APour", beakers(*[""] * 6, "rr")),
    invalid("pour more than 4 units together", beakers("rrr", "gg"), "r PColor g PColor APour"),
    invalid("pour mixed colours", beakers("rg"), "all-objects 1 index all-objects 2 index APour"),
    invalid("pour from an empty beaker", beakers("r"), "all-objects 2 index r PColor APour"),
    invalid("pour into itself", beakers("r"), "r PColor all-objects 1 index APour"),
    pushes("H1 of a pour is where it came from", beakers("r", "g"), "r PColor g PColor APour 1 H1", "object:1"),
    pushes("H2 of a pour is where it went", beakers("r", "g"), "r PColor g PColor APour 1 H2", "object:2"),
    invalid("H0 of a pour with one beaker", beakers("r", "g"), "r PColor g PColor APour -1 H2 1 H0"),
    # mix
    ends("mix makes brown", beakers("rgy"), "all-objects 1 index AMix", beakers("bbb")),
    invalid("mix one colour", beakers("rr"), "r PColor AMix"),
    invalid("mix what is brown already", beakers("rg"), "all-objects 1 index AMix b PColor AMix"),
    invalid("mix an empty beaker", beakers(), "all-objects 1 index AMix"),
    invalid("H2 of a mix", beakers("rg"), "all-objects 1 index AMix 1 H2"),
    pushes("a beaker that was emptied is still there", beakers("r"), "r PColor X1/1 ADrain 1 H1", "object:1"),
    pushes(
        "H0 with a fraction is recorded as a number",
        beakers("r", "gg"),
        "r PColor 1 ADrain g PColor X1/1 1 H0 -1 H2",
        "number:2",
    ),
    invalid("H3 is no token of alchemy", beakers("r"), "r PColor 1 ADrain 1 H3"),
    invalid("e is no token of alchemy", beakers("r"), "e"),
    invalid("8 is no token of alchemy", beakers("r"), "8"),
]

TANGRAMS = [
    invalid("all-objects on an empty row", row(""), "all-objects"),
    invalid("all-objects after the last one was removed", row("3"), "all-objects ARemove all-objects"),
    invalid("index on a single shape", row("30"), "all-objects 1 index 1 index"),
    # remove
    ends("the rest close up", row("3041"), "all-objects 2 index ARemove", row("341")),
    ends("remove by a list of one", row("3"), "all-objects ARemove", row("")),
    invalid("remove a list of two", row("30"), "all-objects ARemove"),
    pushes("a removed shape is pushed as gone", row("30"), "all-objects 1 index ARemove 1 H1", "gone:3"),
    invalid("a gone shape cannot be removed", row("30"), "all-objects 1 index ARemove 1 H1 ARemove"),
    invalid("nor through H0", row("30"), "all-objects 1 index ARemove 1 H1 1 H0"),
    invalid("a gone shape cannot be swapped", row("301"), "all-objects 1 index ARemove all-objects 1 index 1 H1 ASwap"),
    invalid("H2 of a remove", row("30"), "all-objects 1 index ARemove 1 H2"),
    # swap
    ends("swap", row("304"), "all-objects 1 index all-objects 3 index ASwap", row("403")),
    invalid("the same shape twice", row("304"), "all-objects 1 index all-objects 1 index ASwap"),
    pushes("H1 of a swap was on top", row("304"), "all-objects 1 index all-objects 3 index ASwap 1 H1", "object:1"),
    pushes("H2 of a swap is the other", row("304"), "all-objects 1 index all-objects 3 index ASwap 1 H2", "object:3"),
    # add
    ends("add at the front", row("304"), "all-objects 3 index ARemove 1 1 H1 AAdd", row("430")),
    ends("add at n+1", row("304"), "all-objects 1 index ARemove 3 1 H1 AAdd", row("043")),
    ends("add at -1", row("304"), "all-objects 1 index ARemove -1 1 H1 AAdd", row("043")),
    ends("add to an empty row", row("3"), "all-objects ARemove -1 1 H1 AAdd", row("3")),
    ends("add fills the row", row("30412"), "all-objects 1 index ARemove 5 1 H1 AAdd", row("04123")),
    invalid("add beyond n+1", row("304"), "all-objects 1 index ARemove 4 1 H1 AAdd"),
    invalid("add beyond n+1 of an empty row", row("3"), "all-objects ARemove 2 1 H1 AAdd"),
    invalid("add a shape of the row", row("304"), "1 all-objects 1 index AAdd"),
    invalid("add a list of one", row("3"), "1 all-objects AAdd"),
    invalid("add a number", row("304"), "1 1 AAdd"),
    invalid("add with the arguments the wrong way round", row("304"), "all-objects 1 index ARemove 1 H1 1 AAdd"),
    pushes(
        "-1 is recorded as the place it meant",
        row("304"),
        "all-objects 1 index ARemove -1 1 H1 AAdd 2 H1",
        "number:3",
    ),
    pushes("H2 of an add is the shape", row("304"), "all-objects 1 index ARemove -1 1 H1 AAdd 2 H2", "object:3"),
    pushes(
        "a shape added back is found by old history",
        row("304"),
        "all-objects 1 index ARemove -1 1 H1 AAdd 1 H1",
        "object:3",
    ),
    ends(
        "and can be removed again through it",
        row("304"),
        "all-objects 1 index ARemove -1 1 H1 AAdd 1 H1 1 H0",
        row("04"),
    ),
    ends(
        "H0 of an add",
        row("304"),
        "all-objects 1 index ARemove 1 1 H1 AAdd all-objects 3 index ARemove 1 3 H1 2",
        row("30"),
        stack="number:1 gone:4 number:2",
    ),
    ends(
        "H0 of an add, done",
        row("304"),
        "all-objects 1 index ARemove 1 1 H1 AAdd all-objects 3 index ARemove 1 3 H1 2 H0",
        row("430"),
    ),
    pushes(
        "a history number may be a position", row("304"), "all-objects 1 index ARemove 1 1 H1 AAdd 2 H1 H1", "object:1"
    ),
    invalid("H3 is no token of tangrams", row("30"), "H3"),
]


@pytest.mark.parametrize("run", [by_twin, by_execute])
@pytest.mark.parametrize(
    ("domain", "cases"),
    [("scene", SCENE), ("alchemy", ALCHEMY), ("tangrams", TANGRAMS)],
    ids=["scene", "alchemy", "tangrams"],
)
def test_corners(domain, cases, run):
    """All cases of a domain in one test: hundreds of tests would take longer than what they test."""
    wrong = {}
    for case in cases:
        program = case.program.split()
        outcome = run(domain, case.world, program)
        rejected_at = len(program) - 1 if case.rejected else None
        found, wanted = [outcome.rejected_at], [rejected_at]
        if not case.rejected and outcome.rejected_at is None:
            found += [outcome.trace[-1].stack, outcome.trace[-1].world]
            wanted += [case.stack.split(), outcome.trace[-1].world if case.then is None else case.then]
        if found != wanted:
            wrong[case.name] = found, wanted
    assert not wrong


REASONS = [
    ("scene", TWO, "r PShirt 7 AMove", r"AMove: position 7 is occupied"),
    ("scene", TWO, "r PShirt 2 AMove", r"position 2 is occupied"),
    ("scene", TWO, "4 e r ACreate", r"ACreate: .*shirt"),
    ("scene", TWO, "g PHat", r"PHat: .*hat"),
    ("scene", TWO, "all-objects 3 index", r"index: .*3"),
    ("scene", TWO, "1 2 3 4", r"stack|3 elements"),
    ("scene", TWO, "ALeave", r"ALeave: .*(stack|person|argument|missing)"),
    ("scene", TWO, "b PShirt ALeave 1 H1 ALeave", r"gone|left"),
    ("scene", TWO, "1 H1", r"H1: .*(history|command)"),
    ("scene", EMPTY_STAGE, "all-objects", r"all-objects: .*(nobody|no person|empty)"),
    ("alchemy", beakers("rg"), "all-objects 1 index all-objects 2 index APour", r"APour: .*(mixed|colou?r)"),
    ("alchemy", beakers("rrr", "gg"), "r PColor g PColor APour", r"APour: beaker 2 has room for 2, not 3"),
    ("alchemy", beakers("rgb"), "all-objects 1 index 4 ADrain", r"ADrain: .*(3|4)"),
    ("tangrams", row("304"), "1 all-objects 1 index AAdd", r"AAdd: .*row"),
    ("tangrams", row("304"), "all-objects 1 index all-objects 1 index ASwap", r"ASwap: .*(same|itself|twice)"),
    ("tangrams", row("304"), "all-objects ARemoev", r"ARemoev.*ARemove"),
]


@pytest.mark.parametrize(("domain", "world", "program", "reason"), REASONS)
def test_a_rejected_token_is_explained(domain, world, program, reason):
    with pytest.raises(InvalidProgram, match=reason) as caught:
        execute(domain, world, program)
    assert caught.value.position == len(program.split()) - 1
    assert caught.value.token == program.split()[-1]


@pytest.mark.parametrize(
    ("name", "world", "program"),
    [
        ("scene", TWO, "r PShirt ALeave"),
        ("alchemy", beakers("r"), "r PColor X1/1 ADrain"),
        ("tangrams", row("3"), "all-objects ARemove"),
    ],
)
@pytest.mark.parametrize("instructions", [1, 2])
def test_no_token_is_valid_after_the_last_instruction(name, world, program, instructions):
    domain, language = get_domain(name), Language(name, instructions)
    state, twin = domain.start(domain.parse_world(world), instructions), language.start(world)
    for token in program.split():
        state = successor(domain, state, token)
        twin = language.step(twin, token)
    expected = [language.step(twin, token) is not None for token in domain.tokens]
    assert any(expected) == (instructions == 2)
    np.testing.assert_array_equal(compiled_expand(domain)(state)[1], expected)


@functools.cache
def compiled_expand(domain):
    return jax.jit(domain.expand)


def successor(domain, state, token: str):
    """The compiled state after a valid token."""
    successors, valid = compiled_expand(domain)(state)
    choice = domain.tokens.index(token)
    assert valid[choice]
    return jax.tree.map(lambda leaf: leaf[choice], successors)


def keys_after(name: str, world: str, *programs: str) -> list[tuple[int, ...]]:
    """The key of the state that each program leads to."""
    domain = get_domain(name)
    keys = []
    for program in programs:
        state = domain.start(domain.parse_world(world), 5)
        for token in program.split():
            state = successor(domain, state, token)
        keys.append(tuple(np.asarray(domain.key(state)).tolist()))
    return keys


@pytest.mark.parametrize(
    ("name", "world", "one", "other"),
    [
        ("scene", TWO, "r PShirt 1 index", "all-objects 1 index"),
        ("scene", TWO, "r PShirt -1 AMove", "all-objects 1 index 10 AMove"),
        ("scene", TWO, "r PShirt 1 AMove r PShirt 3 AMove 1 H1", "e PHat 1 AMove 1 H1 3 -1 H0 2 H1"),
        ("alchemy", beakers("rr", "g"), "r PColor X1/1 ADrain", "all-objects 1 index 2 ADrain"),
        ("tangrams", row("3"), "all-objects ARemove -1 1 H1 AAdd", "all-objects 1 index ARemove 1 -1 H1 AAdd"),
    ],
)
def test_the_same_state_has_the_same_key_by_whatever_way(name, world, one, other):
    first, second = keys_after(name, world, one, other)
    assert first == second


@pytest.mark.parametrize(
    ("name", "world", "one", "other"),
    [
        ("scene", TWO, "r PShirt", "r PShirt 1 index"),
        ("scene", TWO, "1 2", "2 1"),
        ("scene", TWO, "1", "1 1"),
        ("scene", ALIKE, "all-objects 1 index ALeave", "all-objects 2 index ALeave"),
        (
            "scene",
            ALIKE,
            "all-objects 1 index all-objects 2 index ASwapHats",
            "all-objects 2 index all-objects 1 index ASwapHats",
        ),
        ("scene", EMPTY_STAGE, "1 r r ACreate 2 r r ACreate", "2 r r ACreate 1 r r ACreate"),
        ("alchemy", beakers("rr"), "r PColor 1 ADrain r PColor 1 ADrain", "r PColor 2 ADrain"),
        ("alchemy", beakers(), "1", "X1/1"),
        ("alchemy", beakers("rr"), "1", "r"),
        ("tangrams", row("3"), "all-objects", "all-objects 1 index"),
        ("tangrams", row("3"), "", "all-objects ARemove 1 1 H1 AAdd"),
    ],
)
def test_states_that_differ_in_stack_history_or_identity_have_different_keys(name, world, one, other):
    first, second = keys_after(name, world, one, other)
    assert first != second
