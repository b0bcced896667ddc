"""The English of scene: people in coloured shirts and hats who come, go, move and swap hats."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from random import Random

from vbsix.data.examples import PAPER_SETTINGS
from vbsix.data.synthetic.grammar import Command, Grammar, Story, command, format_cells, step
from vbsix.data.synthetic.scene_phrases import (
    BARE,
    LETTERS,
    NOBODY,
    anyone,
    bare,
    end,
    hatted,
    him,
    newcomer,
    people,
    side,
    where,
    who,
)

_STAGE = 10
_CROWD = 6
"""With this many people on stage nobody comes in."""

_MALE = {"he": "he", "him": "him", "his": "his"}
_FEMALE = {"he": "she", "him": "her", "his": "her"}
_VOICES = (
    {"noun": "man", **_MALE},
    {"noun": "man", **_MALE},
    {"noun": "person", **_MALE},
    {"noun": "person", **_MALE},
    {"noun": "guy", **_MALE},
    {"noun": "woman", **_FEMALE},
)
_AFTER_HIM = ("move", "appear")
"""Commands after which a pronoun can only mean the one who moved or came."""
_PRONOUN_SLOTS = {"who": "he", "bare": "bare_he", "hatted": "hatted_he"}


def _first_world(random: Random) -> str:
    stage = [NOBODY] * _STAGE
    for place in random.sample(range(_STAGE), random.choice((2, 2, 2, 3, 3, 4))):
        stage[place] = random.choice(LETTERS) + random.choice(LETTERS * 2 + BARE * 3)
    return format_cells(stage)


def _voice(random: Random) -> Mapping[str, str]:
    return random.choice(_VOICES)


def _several(story: Story) -> bool:
    return len(people(story)) > 1


def _room(story: Story) -> bool:
    return len(people(story)) < _CROWD


def _with_pronoun(spoken: Command, subject: str) -> tuple[Command, Command]:
    """A command, and the same with a pronoun for the person who moved or came last in place of the subject."""

    def put(text: str) -> str:
        return text.replace(f"{{{subject}}}", f"{{{_PRONOUN_SLOTS[subject]}}}")

    return spoken, replace(
        spoken, program=put(spoken.program), wordings=tuple(map(put, spoken.wordings)), after=_AFTER_HIM
    )


_COMMANDS = (
    *_with_pronoun(
        command(
            "move",
            "{who} {to} AMove",
            "{who} (moves|walks|goes|runs) {to}",
            "{who} (moves|walks) over {to}",
            weight=3,
        ),
        "who",
    ),
    *_with_pronoun(
        command(
            "move",
            "{who} {at} AMove",
            "{who} (goes|walks) and stands {at}",
            "{who} (goes|moves) over and stands {at}",
        ),
        "who",
    ),
    *_with_pronoun(
        command(
            "move",
            "{who} {who} {side} AMove",
            "{who} (moves|steps|walks) one (space|spot) to the {side}",
            "{who} (takes|moves) (one|a) step to the {side}",
            "{who} (moves|goes) {side} (by one|one step)",
            weight=2,
        ),
        "who",
    ),
    *_with_pronoun(
        command(
            "leave",
            "{who} ALeave",
            "{who} (leaves|disappears|exits|vanishes|goes away|goes home)",
            "{who} (leaves|exits|walks off) the (stage|scene)",
            when=_several,
            weight=2,
        ),
        "who",
    ),
    *_with_pronoun(
        command(
            "trade",
            "{hatted} {hatted2} ASwapHats",
            "{hatted} and {hatted2} (swap|trade|switch|exchange) hats",
            "{hatted} (swaps|trades|switches|exchanges) hats with {hatted2}",
            weight=1.5,
        ),
        "hatted",
    ),
    *_with_pronoun(
        command(
            "take",
            "{bare} {hatted} ASwapHats",
            "{bare} (takes|steals|grabs|gets|borrows) the hat (of|from) {hatted}",
            weight=1.5,
        ),
        "bare",
    ),
    *_with_pronoun(
        command(
            "take",
            "{hatted} {bare} ASwapHats",
            "{hatted} (gives|hands|passes) {his} hat to {bare}",
            "{hatted} (gives|hands) {his} hat over to {bare}",
            weight=1.5,
        ),
        "hatted",
    ),
    command(
        "appear",
        "{at} {newcomer} ACreate",
        "a {newcomer} (appears|enters|shows up|arrives|comes in) {at}",
        "a {newcomer} (enters|comes in) and stands {at}",
        "a new {newcomer} (appears|shows up) {at}",
        when=_room,
        weight=3,
    ),
    command(
        "move",
        "{he} {he} {side} AMove",
        "{he} (moves|steps|walks) another (space|spot) to the {side}",
        "{he} (takes|moves) another step to the {side}",
        after=("move",),
    ),
    command(
        "move",
        "{who} {him} {side} AMove",
        "{who} (moves|walks|goes|runs) to the {side} of {him}",
        "{who} (goes and stands|moves over) to the {side} of {him}",
        after=_AFTER_HIM,
        weight=1.5,
    ),
    command(
        "move",
        "{who} {their} {side} AMove",
        "{who} (moves|walks|goes|runs) to {their} {side}",
        "{who} (goes and|moves over and) stands on {their} {side}",
        after=_AFTER_HIM,
    ),
    command(
        "appear",
        "{him} {side} {newcomer} ACreate",
        "a {newcomer} (appears|enters|shows up|arrives|comes in) to the {side} of {him}",
        after=_AFTER_HIM,
        when=_room,
        weight=1.5,
    ),
    command(
        "appear",
        "{their} {side} {newcomer} ACreate",
        "a {newcomer} (appears|enters|shows up|arrives|comes in) (on|to) {their} {side}",
        after=_AFTER_HIM,
        when=_room,
    ),
    command(
        "leave",
        "-1 H1 ALeave",
        "the {noun} who just (appeared|entered|arrived) (leaves|disappears|goes away) (|again)",
        after=("appear",),
        when=_several,
    ),
    command(
        "trade",
        "-1 H2 -1 H1 ASwapHats",
        "they (swap|trade|switch|change) back",
        "they (swap|trade|switch) (hats|their hats) back",
        "(undo|reverse) (that|it|the last step)",
        after=("trade", "take"),
        weight=3,
    ),
    command(
        "take",
        "-1 H2 -1 H1 ASwapHats",
        "{he} (gives|hands|passes) (it|the hat) back",
        "the hat (goes|is given|is handed) back",
        after=("take",),
        weight=3,
    ),
    command(
        "trade",
        "-1 H2 -1 H1 -1 H0",
        "they do (it|that|the same) (again|once more)",
        "they (swap|trade|switch) (again|once more)",
        "do (it|that) (again|once more)",
        "repeat that (|once more)",
        after=("trade",),
        weight=2,
    ),
    command(
        "leave",
        "{who} -1 H0",
        "so does {who}",
        "{who} does (that|it|the same) (too|as well)",
        "{who} (follows|does too|does the same)",
        "the same (with|for) {who}",
        after=("leave",),
        when=_several,
        weight=3,
    ),
    command(
        "leave",
        "{arrival} H1 ALeave",
        "the {noun} who (appeared|entered|arrived) in step {arrival} (leaves|disappears|goes away)",
        when=_several,
        weight=0.8,
    ),
    command(
        "move",
        "{arrival} H1 {to_end} AMove",
        "the {noun} who (appeared|entered|arrived) in step {arrival} (moves|walks|goes) {to_end}",
        weight=1.2,
    ),
    command(
        "leave",
        "{mover} H1 ALeave",
        "the {noun} who moved in step {mover} (leaves|disappears|exits|goes away)",
        when=_several,
        weight=0.8,
    ),
    command(
        "move",
        "{mover} H1 {to_end} AMove",
        "the {noun} who moved in step {mover} (moves|walks|goes|runs) {to_end}",
        weight=1.2,
    ),
    command(
        "move",
        "{he} {mover} H2 AMove",
        "{he} (moves|walks|goes|runs) to where the {noun} went in step {mover}",
        "{he} (moves|walks|goes) to the spot reached in step {mover}",
        after=_AFTER_HIM,
        weight=1.5,
    ),
)

GRAMMAR = Grammar(
    most_words=PAPER_SETTINGS["scene"].max_words,
    commands=_COMMANDS,
    slots={
        "who": who(anyone),
        "hatted": who(hatted),
        "bare": who(bare),
        "he": him("he"),
        "him": him("him"),
        "their": him("his"),
        "bare_he": him("he", bare),
        "hatted_he": him("he", hatted),
        "to": where("to", "to"),
        "at": where("on", "in"),
        "to_end": end("to"),
        "side": side,
        "newcomer": newcomer,
        "mover": step("move"),
        "arrival": step("appear"),
    },
    voice=_voice,
    first_world=_first_world,
)
