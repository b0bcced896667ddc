"""The English of alchemy: beakers that are drained, poured into each other and mixed."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from random import Random

from vbsix.data.examples import PAPER_SETTINGS
from vbsix.data.synthetic.grammar import (
    NUMERALS,
    Grammar,
    Phrase,
    Slot,
    Story,
    a_step,
    command,
    format_cells,
    ordinal,
    place_in_row,
    step,
    taken,
)

_COLOURS = {"r": "red", "y": "yellow", "g": "green", "o": "orange", "p": "purple", "b": "brown"}
_COLOURED = (
    "{nth}{colour} beaker",
    "{nth}{colour} beaker",
    "{nth}{colour} chemical",
    "{nth}beaker with the {colour} chemical",
    "{nth}beaker of {colour} liquid",
)
_BEAKERS, _CAPACITY = 7, 4
_MIDDLE = 4
_EMPTY = "_"


def _first_world(random: Random) -> str:
    contents = [random.choice("rygop") * random.randint(0, _CAPACITY) or _EMPTY for _ in range(_BEAKERS)]
    if random.random() < 0.2:  # a beaker that can be mixed at once
        contents[random.randrange(_BEAKERS)] = "".join(random.sample("rygop", random.randint(2, 3)))
    return format_cells(contents)


def _voice(random: Random) -> Mapping[str, str]:
    unit = random.choice(("unit", "unit", "part"))
    numerals = random.choice(("words", "words", "digits"))
    return {"unit": unit, "units": f"{unit}s", "numerals": numerals, "coloured": random.choice(_COLOURED)}


def _amount(beaker: str) -> int:
    return 0 if beaker == _EMPTY else len(beaker)


def _uniform(beaker: str) -> bool:
    return beaker != _EMPTY and len(set(beaker)) == 1


def _mixed(beaker: str) -> bool:
    return len(set(beaker)) > 1


def _beaker(candidates: Callable[[Story, Mapping[str, Phrase]], Collection[int]], coloured: str | None = None) -> Slot:
    """A slot for one of the beakers that `candidates` allows; `coloured` replaces the colour names of the voice."""

    def slot(story: Story, random: Random, phrases: Mapping[str, Phrase]) -> Phrase | None:
        places = sorted(set(candidates(story, phrases)) - taken(phrases))
        if not places:
            return None
        place = random.choice(places)
        if _uniform(story.world[place]) and random.random() < 0.65:
            return _by_colour(place, coloured or story.voice["coloured"], story, random)
        return _by_position(place, story, random)

    return slot


def _by_colour(place: int, coloured: str, story: Story, random: Random) -> Phrase:
    """`the red beaker` where there is one, `the second red beaker` where there are more."""
    letter = story.world[place][0]
    alike = [n for n, beaker in enumerate(story.world) if _uniform(beaker) and beaker[0] == letter]
    colour, nth, index = _COLOURS[letter], "", ""
    if len(alike) > 1:
        found = place_in_row(alike.index(place) + 1, len(alike), story, random)
        nth, index = f"{found.text} ", f" {found.program} index"
    form = "{nth}{colour} one" if random.random() < 0.15 else coloured
    return Phrase(f"the {form.format(nth=nth, colour=colour)}", f"{letter} PColor{index}", about=place)


def _by_position(place: int, story: Story, random: Random) -> Phrase:
    """`the second beaker`, `beaker 2`, ..."""
    nth = place_in_row(place + 1, _BEAKERS, story, random)
    options = [(f"the {nth.text} beaker", nth.program)] * 3
    if nth.program != "-1":
        options.append((f"beaker {nth.program}", nth.program))
        options.append((f"the {ordinal(place + 1, story)} beaker from the left", nth.program))
    if place + 1 == _MIDDLE:
        options.append(("the middle beaker", nth.program))
    text, number = random.choice(options)
    return Phrase(text, f"all-objects {number} index", about=place)


def _full(story: Story, phrases: Mapping[str, Phrase]) -> list[int]:
    return [place for place, beaker in enumerate(story.world) if beaker != _EMPTY]


def _other(story: Story, phrases: Mapping[str, Phrase]) -> list[int]:
    """Beakers that the last command did not touch."""
    return [place for place in _full(story, phrases) if place not in story.changed()]


def _sources(story: Story, phrases: Mapping[str, Phrase]) -> list[int]:
    return [place for place, beaker in enumerate(story.world) if _uniform(beaker)]


def _other_sources(story: Story, phrases: Mapping[str, Phrase]) -> list[int]:
    return [place for place in _sources(story, phrases) if place not in story.changed()]


def _targets(story: Story, phrases: Mapping[str, Phrase]) -> list[int]:
    """Beakers with room for what is poured, other than the one in hand."""
    source = min(taken(phrases), default=story.changed()[-1] if story.commands else 0)
    poured = _amount(story.world[source])
    return [n for n, beaker in enumerate(story.world) if n != source and _amount(beaker) + poured <= _CAPACITY]


def _mixable(story: Story, phrases: Mapping[str, Phrase]) -> list[int]:
    return [place for place, beaker in enumerate(story.world) if _mixed(beaker)]


def _quantity(story: Story, random: Random, phrases: Mapping[str, Phrase]) -> Phrase:
    """`two units`"""
    number = _small_number(story, random, phrases)
    return Phrase(f"{_numeral(number, story)} {story.voice['unit' if number == 1 else 'units']}", str(number))


def _more(story: Story, random: Random, phrases: Mapping[str, Phrase]) -> Phrase:
    """`two more units`, `another unit`"""
    number = _small_number(story, random, phrases)
    if number == 1 and random.random() < 0.5:
        return Phrase(f"another {story.voice['unit']}", "1")
    return Phrase(f"{_numeral(number, story)} more {story.voice['unit' if number == 1 else 'units']}", str(number))


def _small_number(story: Story, random: Random, phrases: Mapping[str, Phrase]) -> int:
    most = _amount(story.world[phrases["full"].about or 0]) if "full" in phrases else 2
    return random.randint(1, min(most, 3))


def _numeral(number: int, story: Story) -> str:
    return str(number) if story.voice["numerals"] == "digits" else NUMERALS[number]


def _old_drain(story: Story, random: Random, phrases: Mapping[str, Phrase]) -> Phrase | None:
    """A drain of a beaker named by its position: then "the same" can only be the same beaker."""
    named = [n for n in story.steps("drain") if story.programs[n - 1].startswith("all-objects")]
    return a_step(named, random)


_COMMANDS = (
    command(
        "drain",
        "{full} {quantity} ADrain",
        "(drain|pour out|throw out|remove|throw away|dump) {quantity} (of|from) {full}",
        "(take|pour|let) {quantity} out of {full}",
        weight=4,
    ),
    command(
        "empty",
        "{full} X1/1 ADrain",
        "(empty|drain|pour out|throw out|throw away|dump|discard) {full}",
        "(throw out|pour out|drain|dump) all of {full}",
        "(empty|drain) {full} completely",
        weight=2,
    ),
    command(
        "empty",
        "{container} X1/1 ADrain",
        "(throw out|pour out|dump) everything in {container}",
        "(throw out|pour out|get rid of) the contents of {container}",
        weight=0.7,
    ),
    command(
        "pour",
        "{source} {target} APour",
        "(pour|empty|dump) {source} into {target}",
        "add {source} to {target}",
        "(pour|empty|dump) all of {source} into {target}",
        "add all of {source} to {target}",
        weight=3.5,
    ),
    command(
        "pour",
        "{source_container} {target} APour",
        "(pour|empty|dump) (the contents of|what is in) {source_container} into {target}",
        "add (the contents of|what is in) {source_container} to {target}",
        weight=1.5,
    ),
    command(
        "mix",
        "{mixable} AMix",
        "(mix|stir|shake) {mixable}",
        "(mix|stir) (the contents of|the chemicals in|what is in) {mixable}",
        "(stir|mix) {mixable} until it is brown",
        weight=2,
    ),
    command(
        "mix",
        "-1 H2 AMix",
        "mix",
        "(mix|stir|shake) (it|them)",
        "mix (it|them) together",
        "mix the two (|chemicals) (|together)",
        "(it turns|they turn|watch it turn) brown",
        "(mix|stir) it until it is brown",
        "(mix|stir) them until they are brown",
        after=("pour",),
        when=lambda story: any(_mixed(story.world[place]) for place in story.changed()),
        weight=12,
    ),
    command(
        "drain",
        "-1 H1 {quantity} ADrain",
        "(drain|pour out|throw out|remove|throw away|dump) {quantity} (of|from) it",
        "(take|pour|let) {quantity} out of it",
        after=("mix",),
        weight=3,
    ),
    command(
        "drain",
        "-1 H1 {more} ADrain",
        "(drain|pour out|throw out|remove|throw away|dump) {more} (|from it)",
        "(take|pour|let) {more} out of it",
        "{more} (from it|from the same beaker)",
        after=("drain",),
        weight=2.5,
    ),
    command(
        "empty",
        "-1 H1 X1/1 ADrain",
        "(empty|drain|discard|dump) it",
        "(throw|pour) it (out|away)",
        "(throw out|pour out|drain|dump) all of it",
        after=("drain", "mix"),
        weight=1.5,
    ),
    command(
        "empty",
        "-1 H1 X1/1 ADrain",
        "(throw out|pour out|throw away|dump|drain) the rest (|of it)",
        "get rid of the rest (|of it)",
        after=("drain",),
    ),
    command(
        "pour",
        "-1 H1 {target} APour",
        "(pour|empty|dump) it into {target}",
        "add it to {target}",
        after=("drain", "mix"),
        weight=1.5,
    ),
    command(
        "pour",
        "-1 H1 {target} APour",
        "(pour|empty|dump) the rest (|of it) into {target}",
        "add the rest (|of it) to {target}",
        after=("drain",),
    ),
    command(
        "pour",
        "{other_source} -1 H1 APour",
        "(pour|empty|dump) {other_source} into it",
        "add {other_source} to it",
        "fill it with {other_source}",
        after=("drain", "mix", "empty"),
        weight=1.5,
    ),
    command(
        "drain",
        "-1 H1 -1 H2 -1 H0",
        "do (it|that|the same) again",
        "(repeat|redo) (that|it|the last step)",
        "do (it|that) once more",
        "(once more|and again)",
        after=("drain",),
        weight=2,
    ),
    command(
        "drain",
        "{other} -1 H2 -1 H0",
        "do the same (with|to|for) {other}",
        "do that (with|to) {other} (too|as well)",
        "(the same|same thing) (with|for) {other}",
        "repeat that (with|for) {other}",
        after=("drain",),
        weight=2,
    ),
    command(
        "pour",
        "{other_source} -1 H2 -1 H0",
        "do the same (with|to|for) {other_source}",
        "do that (with|to) {other_source} (too|as well)",
        "(the same|same thing) (with|for) {other_source}",
        "repeat that (with|for) {other_source}",
        after=("pour",),
        weight=0.7,
    ),
    command(
        "pour",
        "{other_source} -1 H2 APour",
        "(pour|empty|dump) {other_source} into the same beaker",
        "add {other_source} (|to the same beaker) (too|as well)",
        "(pour|add) {other_source} in (too|as well)",
        after=("pour",),
        weight=1.5,
    ),
    command(
        "drain",
        "-1 H2 {quantity} ADrain",
        "(drain|pour out|throw out|remove) {quantity} from the beaker (you just|just) (filled|poured into)",
        after=("pour",),
        weight=1.5,
    ),
    command(
        "empty",
        "-1 H2 X1/1 ADrain",
        "(empty|drain|pour out|throw out|dump) the beaker (you just|just) (filled|poured into)",
        after=("pour",),
    ),
    command(
        "drain",
        "{old_drain} H1 {old_drain} H2 {old_drain} H0",
        "(repeat|redo) step {old_drain} (|once more)",
        "do step {old_drain} (again|once more)",
        "do the same as in step {old_drain}",
        "do what you did in step {old_drain} (again|once more)",
        weight=1.5,
    ),
    command(
        "drain",
        "{drained} H1 {quantity} ADrain",
        "(drain|remove|pour out|throw out) {quantity} from the beaker (drained|used) in step {drained}",
        weight=1.5,
    ),
    command(
        "empty",
        "{drained} H1 X1/1 ADrain",
        "(empty|drain|throw out) the beaker (drained|used) in step {drained}",
        weight=0.7,
    ),
    command(
        "mix",
        "{filled} H2 AMix",
        "(mix|stir|shake) (|the contents of) the beaker (filled|poured into) in step {filled}",
        weight=1.5,
    ),
    command(
        "drain",
        "{filled} H2 {quantity} ADrain",
        "(drain|remove|pour out|throw out) {quantity} from the beaker (filled|poured into) in step {filled}",
    ),
)

GRAMMAR = Grammar(
    most_words=PAPER_SETTINGS["alchemy"].max_words,
    commands=_COMMANDS,
    slots={
        "full": _beaker(_full),
        "container": _beaker(_full, "{nth}{colour} beaker"),
        "source_container": _beaker(_sources, "{nth}{colour} beaker"),
        "other": _beaker(_other),
        "source": _beaker(_sources),
        "other_source": _beaker(_other_sources),
        "target": _beaker(_targets),
        "mixable": _beaker(_mixable),
        "quantity": _quantity,
        "more": _more,
        "old_drain": _old_drain,
        "drained": step("drain"),
        "filled": step("pour"),
    },
    voice=_voice,
    first_world=_first_world,
)
