"""How scene's English speaks of people and places."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from random import Random

from vbsix.data.synthetic.grammar import Phrase, Slot, Story, ordinal, place_in_row, taken

COLOURS = {"r": "red", "y": "yellow", "g": "green", "o": "orange", "p": "purple", "b": "blue"}
LETTERS = "".join(COLOURS)
NOBODY, BARE = "__", "_"


def people(story: Story) -> list[int]:
    """Places where somebody stands."""
    return [place for place, person in enumerate(story.world) if person != NOBODY]


def _free(story: Story) -> list[int]:
    return [place for place, person in enumerate(story.world) if person == NOBODY]


def anyone(person: str) -> bool:
    return True


def bare(person: str) -> bool:
    return person[1] == BARE


def hatted(person: str) -> bool:
    return not bare(person)


def who(wanted: Callable[[str], bool]) -> Slot:
    """A slot for one of the people who are as wanted."""

    def slot(story: Story, random: Random, phrases: Mapping[str, Phrase]) -> Phrase | None:
        places = [n for n in people(story) if wanted(story.world[n]) and n not in taken(phrases)]
        return _describe(random.choice(places), story, random) if places else None

    return slot


def _describe(place: int, story: Story, random: Random) -> Phrase:
    """Somebody by clothes where these tell them apart, by their place among those who look alike where not."""
    (shirt, hat), noun, everyone = story.world[place], story.voice["noun"], people(story)
    shirt_word, hat_token = COLOURS[shirt], "e" if hat == BARE else hat
    same_shirt = [n for n in everyone if story.world[n][0] == shirt]
    same_hat = [n for n in everyone if story.world[n][1] == hat]
    options: list[tuple[str, str]] = []
    if len(everyone) > 1:
        number = everyone.index(place) + 1
        nth = place_in_row(number, len(everyone), story, random)
        options.append((f"the {nth.text} {noun}", f"all-objects {nth.program} index"))
        options.append((f"the {ordinal(number, story)} {noun} from the left", f"all-objects {number} index"))
    if len(same_shirt) == 1:
        forms = (f"in the {shirt_word} shirt", f"in {shirt_word}", f"with the {shirt_word} shirt")
        options += [(f"the {noun} {form}", f"{shirt} PShirt") for form in forms]
    else:
        nth = place_in_row(same_shirt.index(place) + 1, len(same_shirt), story, random)
        forms = (f"in a {shirt_word} shirt", f"in {shirt_word}")
        options += [(f"the {nth.text} {noun} {form}", f"{shirt} PShirt {nth.program} index") for form in forms]
    if len(same_hat) == 1:
        options += [(form, f"{hat_token} PHat") for form in _by_hat(hat, noun)]
    else:
        nth = place_in_row(same_hat.index(place) + 1, len(same_hat), story, random)
        form = "without a hat" if hat == BARE else f"in a {COLOURS[hat]} hat"
        options.append((f"the {nth.text} {noun} {form}", f"{hat_token} PHat {nth.program} index"))
    if len(set(same_shirt) & set(same_hat)) == 1:
        options.append((f"the {noun} {random.choice(_clothes(shirt, hat, 'the'))}", f"{shirt} {hat_token} DShirtHat"))
    text, program = random.choice(options)
    return Phrase(text, program, about=place)


def _by_hat(hat: str, noun: str) -> tuple[str, ...]:
    if hat == BARE:
        return f"the {noun} without a hat", f"the {noun} with no hat", f"the hatless {noun}"
    return tuple(f"the {noun} {form} {COLOURS[hat]} hat" for form in ("in the", "with the", "wearing the"))


def _clothes(shirt: str, hat: str, article: str) -> tuple[str, ...]:
    """Shirt and hat, both named."""
    in_shirt = f"in {article} {COLOURS[shirt]} shirt"
    if hat == BARE:
        return f"{in_shirt} and no hat", f"{in_shirt} without a hat", f"in {COLOURS[shirt]} with no hat"
    colour = COLOURS[hat]
    return (
        f"{in_shirt} and {article} {colour} hat",
        f"{in_shirt} and {colour} hat",
        f"in {COLOURS[shirt]} with {article} {colour} hat",
        f"with {article} {COLOURS[shirt]} shirt and {colour} hat",
    )


def newcomer(story: Story, random: Random, phrases: Mapping[str, Phrase]) -> Phrase:
    """Somebody who comes in, and who wears no hat if none is mentioned."""
    shirt, hat = random.choice(LETTERS), random.choice(LETTERS + BARE * len(LETTERS))
    clothes = list(_clothes(shirt, hat, "a"))
    if hat == BARE:
        clothes += [f"in a {COLOURS[shirt]} shirt", f"in {COLOURS[shirt]}", f"wearing a {COLOURS[shirt]} shirt"]
    return Phrase(f"{story.voice['noun']} {random.choice(clothes)}", f"{shirt} {'e' if hat == BARE else hat}")


def side(story: Story, random: Random, phrases: Mapping[str, Phrase]) -> Phrase:
    return random.choice((Phrase("left", "PLeft"), Phrase("right", "PRight")))


def end(to: str) -> Slot:
    """A slot for an end of the stage."""

    def slot(story: Story, random: Random, phrases: Mapping[str, Phrase]) -> Phrase:
        left_or_right, number = random.choice((("left", "1"), ("right", "-1")))
        forms = (f"far {left_or_right}", f"{left_or_right} end", f"{left_or_right} edge of the stage")
        return Phrase(f"{to} the {random.choice(forms)}", number)

    return slot


def where(to: str, at: str) -> Slot:
    """A slot for an empty position; `to` and `at` are the prepositions."""
    an_end = end(to)

    def slot(story: Story, random: Random, phrases: Mapping[str, Phrase]) -> Phrase | None:
        kind = random.random()
        if kind < 0.3:
            return an_end(story, random, phrases)
        if kind < 0.5:
            number = random.choice(_free(story)) + 1
            forms = (f"{at} position {number}", f"{at} spot {number}", f"{at} the {ordinal(number, story)} spot")
            return Phrase(random.choice(forms), str(number))
        beside = side(story, random, phrases)
        offset = -1 if beside.text == "left" else 1
        places = [n for n in people(story) if n not in taken(phrases) and n + offset in _free(story)]
        if not places:
            return None
        person = _describe(random.choice(places), story, random)
        form = random.choice(("to the {}", "to the {}", "directly to the {}", "just to the {}")).format(beside.text)
        return Phrase(f"{form} of {person.text}", f"{person.program} {beside.program}", about=person.about)

    return slot


def him(word: str, wanted: Callable[[str], bool] = anyone) -> Slot:
    """A slot for a pronoun for the person who moved or came last."""

    def slot(story: Story, random: Random, phrases: Mapping[str, Phrase]) -> Phrase | None:
        place = next(place for place in story.changed() if story.world[place] != NOBODY)
        return Phrase(story.voice[word], "-1 H1", about=place) if wanted(story.world[place]) else None

    return slot
