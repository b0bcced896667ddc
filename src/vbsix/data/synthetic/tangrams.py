"""The English of tangrams: a row of shapes that are removed, put back and swapped."""

from __future__ import annotations

from collections.abc import Mapping
from random import Random

from vbsix.data.examples import PAPER_SETTINGS
from vbsix.data.synthetic.grammar import (
    Grammar,
    Phrase,
    Story,
    a_step,
    command,
    format_cells,
    ordinal,
    place_in_row,
    step,
    taken,
)

_SHAPES = 5
_SWAPS = ("swap", "swap with")


def _first_world(random: Random) -> str:
    size = random.choice((3, 4, 5, 5, 5, 5))
    return format_cells(random.sample("01234", size))


def _voice(random: Random) -> Mapping[str, str]:
    return {"noun": random.choice(("figure", "figure", "object", "item", "shape"))}


def _nth(story: Story, random: Random, phrases: Mapping[str, Phrase]) -> Phrase | None:
    """`second`: a place in the row, for use before a noun."""
    size = len(story.world)
    free = set(range(1, size + 1)) - taken(phrases)
    if phrases and random.random() < 0.75:  # "the first and third" is more usual than "the third and first"
        free = {number for number in free if number > max(taken(phrases), default=0)} or free
    if not free:
        return None
    number = random.choice(sorted(free))
    place = place_in_row(number, size, story, random)
    return Phrase(place.text, f"all-objects {place.program} index", about=number)


def _shape(story: Story, random: Random, phrases: Mapping[str, Phrase]) -> Phrase | None:
    """`the second figure`, `figure 2`, ..."""
    nth, noun = _nth(story, random, phrases), story.voice["noun"]
    if nth is None:
        return None
    forms = [f"the {nth.text} {noun}"] * 3
    if nth.program != "all-objects -1 index":
        number = ordinal(nth.about or 0, story)
        forms += [f"{noun} {nth.about}", f"the {number} {noun} from the left"]
        forms += [f"the {number} one"] if phrases else []
    return nth._replace(text=random.choice(forms))


def _where(story: Story, random: Random, phrases: Mapping[str, Phrase]) -> Phrase:
    """Where a shape is added."""
    number = random.randint(1, min(len(story.world) + 1, _SHAPES))
    nth = ordinal(number, story)
    forms = [f"in the {nth} place", f"in the {nth} spot", f"in the {nth} position", f"at position {number}"]
    options = [Phrase(form, str(number)) for form in forms]
    if number == 1:
        options += [Phrase(form, "1") for form in ("at the front", "at the beginning", "at the left end")]
    if number == len(story.world) + 1:
        options += [Phrase(form, "-1") for form in ("at the end", "in the last place", "at the right end")]
    return random.choice(options)


def _old_swap(story: Story, random: Random, phrases: Mapping[str, Phrase]) -> Phrase | None:
    """A swap whose two shapes stand in the same two places now: by shape or by place, repeating it is the same."""
    return a_step([number for number in story.steps(*_SWAPS) if _stands(story, number)], random)


def _stands(story: Story, number: int) -> bool:
    swapped, now, places = story.worlds[number], story.world, story.changed(number)
    return max(places) < len(now) and {swapped[place] for place in places} == {now[place] for place in places}


def _several(story: Story) -> bool:
    return len(story.world) > 1


_COMMANDS = (
    command(
        "remove",
        "{shape} ARemove",
        "(remove|delete|take away|get rid of|take out|erase) {shape}",
        "(take|throw) {shape} away",
        "(take|pull) {shape} out (|of the row)",
        when=_several,
        weight=6,
    ),
    command(
        "swap",
        "{nth} {nth2} ASwap",
        "(swap|switch|exchange) the {nth} and {nth2} {noun}s",
        "(swap|switch|exchange) the {noun}s in the {nth} and {nth2} (places|spots)",
        "the {nth} and {nth2} {noun}s (trade|switch|swap) places",
        weight=2,
    ),
    command(
        "swap",
        "{shape} {shape2} ASwap",
        "(swap|switch|exchange) {shape} and {shape2}",
        "(swap|switch) the (places|positions) of {shape} and {shape2}",
        "{shape} and {shape2} (trade|switch|swap) places",
    ),
    command(
        "swap with",
        "{shape} {shape2} ASwap",
        "(swap|switch|exchange|trade) {shape} with {shape2}",
        "(swap|switch) the (place|position) of {shape} with that of {shape2}",
        "let {shape} (trade|switch|swap) places with {shape2}",
        weight=2,
    ),
    command(
        "swap",
        "all-objects 1 index all-objects 2 index ASwap",
        "(swap|switch|exchange) the first two {noun}s",
        "the first two {noun}s (trade|switch|swap) places",
        when=_several,
        weight=0.5,
    ),
    command(
        "remove",
        "{shape} -1 H0",
        "do the same (with|to|for) {shape}",
        "do that (with|to) {shape} (too|as well)",
        "(the same|same thing) (with|for) {shape}",
        "repeat that (with|for) {shape}",
        after=("remove",),
        when=_several,
        weight=2,
    ),
    command(
        "add",
        "{where} -1 H1 AAdd",
        "(add|put|place|bring) it back {where}",
        "(add|put|place|insert) it {where}",
        "(add|put|place|insert) the {noun} (you just|just) removed {where}",
        "(add|put|bring) that {noun} back {where}",
        after=("remove",),
        weight=5,
    ),
    command(
        "add",
        "{where} {removal} H1 AAdd",
        "(add|put|bring) back the {noun} (removed|deleted) in step {removal} {where}",
        "(add|put|place|insert) the {noun} (removed|deleted|taken out) in step {removal} {where}",
        "(add|put) the {noun} from step {removal} back {where}",
        weight=2.5,
    ),
    command(
        "swap",
        "-1 H2 -1 H1 ASwap",
        "(swap|switch|put|trade) them back",
        "undo (that|it|the swap|the last step|the last move|that swap)",
        "reverse (that|the swap|the last step)",
        "(swap|switch) (those|the same) two back",
        after=_SWAPS,
        weight=2,
    ),
    command(
        "swap",
        "-1 H2 -1 H1 -1 H0",
        "do (it|that|the same) again",
        "repeat (that|it|the last step|the last move)",
        "(swap|switch|trade) them (again|once more)",
        "do (it|that) once more",
        after=_SWAPS,
        weight=2,
    ),
    command(
        "swap",
        "{old_swap} H2 {old_swap} H1 {old_swap} H0",
        "(repeat|redo) step {old_swap} (|once more)",
        "do step {old_swap} (again|once more)",
        "do the same as in step {old_swap}",
        "do what you did in step {old_swap} (again|once more)",
    ),
    command(
        "swap",
        "{old_swap} H2 {old_swap} H1 ASwap",
        "(undo|reverse) (step|the swap of step|the swap in step) {old_swap}",
        "undo what you did in step {old_swap}",
    ),
    command(
        "remove",
        "-1 H2 ARemove",
        "(remove|delete|erase) it again",
        "take it (away|out) again",
        "(remove|delete|take away|take out) the {noun} (you just|just) added",
        "get rid of it (again|once more)",
        after=("add",),
        when=_several,
        weight=3,
    ),
    command(
        "swap with",
        "-1 H2 {shape} ASwap",
        "(swap|switch|exchange|trade) it with {shape}",
        "let it (trade|switch|swap) places with {shape}",
        after=("add", "swap with"),
        weight=3,
    ),
    command(
        "swap with",
        "-1 H2 {shape} ASwap",
        "(swap|switch|exchange|trade) the {noun} (you just|just) added with {shape}",
        after=("add",),
    ),
    command(
        "swap with",
        "{addition} H2 {shape} ASwap",
        "(swap|switch|exchange) the {noun} added in step {addition} with {shape}",
        "(swap|switch) the {noun} you added in step {addition} with {shape}",
        weight=0.7,
    ),
    command(
        "remove",
        "{addition} H2 ARemove",
        "(remove|delete|take away|take out) the {noun} added in step {addition}",
        "get rid of the {noun} (added|you added) in step {addition}",
        when=_several,
        weight=0.7,
    ),
)

GRAMMAR = Grammar(
    most_words=PAPER_SETTINGS["tangrams"].max_words,
    commands=_COMMANDS,
    slots={
        "nth": _nth,
        "shape": _shape,
        "where": _where,
        "old_swap": _old_swap,
        "removal": step("remove"),
        "addition": step("add"),
    },
    voice=_voice,
    first_world=_first_world,
)
