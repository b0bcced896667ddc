"""How a grammar makes one more instruction, with its program, from a world and what was said before.

A grammar is a table of commands. A command has a program with slots and many wordings of it with the same slots; a
slot is filled by a phrase, which is again words with their part of the program. So the program follows from the
words alone; the world and the history only decide what can be said truthfully.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import product
from random import Random
from typing import NamedTuple

PHRASINGS = ("all", "seen", "held-out")
"""Which wordings are used; `all` is both others."""

MOST_TOKENS = 7
"""Longest program of one instruction, so that every prefix of a row fits the language's limit."""

_HELD_OUT_EVERY = 7
"""Every seventh wording of a command is held out, and at least one of four."""

_TRIES = 20
_CONNECTIVES = ("then", "now", "next", "after that")
_CONNECTIVE_SHARE = 0.15

_ALTERNATIVES = re.compile(r"\(([^()]*)\)")
_SLOT = re.compile(r"\{(\w+)\}")
_ORDINALS = "first second third fourth fifth sixth seventh eighth ninth tenth".split()
_SHORT_ORDINALS = "1st 2nd 3rd 4th 5th 6th 7th 8th 9th 10th".split()

NUMERALS = "zero one two three four five six seven eight nine ten".split()


class Phrase(NamedTuple):
    """Words and what they mean."""

    text: str
    program: str
    about: int | None = None
    """The place of the object meant; no two phrases of an instruction are about the same one."""


@dataclass(frozen=True)
class Command:
    """One thing that can be asked for, in many wordings.

    Attributes:
        name: what later instructions know it by.
        program: tokens and slots.
        wordings: texts with the same slots, and with words of the row's voice.
        after: names of commands one of which must come right before; none: no matter.
        when: whether it can be said now.
        weight: how often it is said where it can be.
    """

    name: str
    program: str
    wordings: tuple[str, ...]
    after: tuple[str, ...] = ()
    when: Callable[[Story], bool] = lambda story: True
    weight: int | float = 1

    def fits(self, story: Story) -> bool:
        return (not self.after or story.last in self.after) and self.when(story)

    def restricted(self, phrasings: str) -> Command:
        """The command with only the seen, or only the held-out wordings."""
        if phrasings == "all":
            return self
        held_out = self._held_out()
        kept = held_out if phrasings == "held-out" else [text for text in self.wordings if text not in held_out]
        return replace(self, wordings=tuple(kept))

    def _held_out(self) -> tuple[str, ...]:
        if len(self.wordings) < 4:
            return ()
        # Where it begins differs from command to command, or else the same verb would be held out everywhere.
        first = len(self.program) % min(len(self.wordings), _HELD_OUT_EVERY)
        return self.wordings[first::_HELD_OUT_EVERY]


def command(name: str, program: str, *patterns: str, **conditions) -> Command:
    """A command from patterns of wordings: `(swap|switch) them (again|)` stands for four."""
    wordings = dict.fromkeys(wording for pattern in patterns for wording in _expand(pattern))
    return Command(name, program, tuple(wordings), **conditions)


@dataclass
class Story:
    """A row so far: who speaks, which worlds there were and which commands led from one to the next."""

    voice: Mapping[str, str]
    worlds: list[tuple[str, ...]]
    commands: list[Command] = field(default_factory=list)
    programs: list[str] = field(default_factory=list)

    @property
    def world(self) -> tuple[str, ...]:
        return self.worlds[-1]

    @property
    def last(self) -> str | None:
        """Name of the last command."""
        return self.commands[-1].name if self.commands else None

    def steps(self, *names: str) -> Iterator[int]:
        """Numbers, from 1, of the commands of these names."""
        return (n for n, done in enumerate(self.commands, start=1) if done.name in names)

    def changed(self, step: int = -1) -> list[int]:
        """Places at which a command changed a world of fixed size, the last command by default."""
        number = step if step > 0 else len(self.commands)
        before, after = self.worlds[number - 1], self.worlds[number]
        return [place for place, (old, new) in enumerate(zip(before, after, strict=True)) if old != new]


class Instruction(NamedTuple):
    """What is said, what it means, and the command it is an instance of."""

    text: str
    program: str
    command: Command


Slot = Callable[[Story, Random, Mapping[str, Phrase]], Phrase | None]
"""Fills a slot, given those filled already; None where nothing true can be said."""


@dataclass(frozen=True)
class Grammar:
    """The English of one domain.

    Attributes:
        most_words: longest text.
        commands: all that can be said.
        slots: how slots are filled, by name; a digit at the end of a slot's name tells two of a kind apart.
        voice: draws the words that a speaker keeps to, by name, and the `ordinals` and `articles` they use.
        first_world: draws the text of a world to start from.
    """

    most_words: int
    commands: Sequence[Command]
    slots: Mapping[str, Slot]
    voice: Callable[[Random], Mapping[str, str]]
    first_world: Callable[[Random], str]

    def restricted(self, phrasings: str) -> Grammar:
        """The grammar with only the seen, or only the held-out wordings."""
        commands = [command.restricted(phrasings) for command in self.commands]
        return replace(self, commands=[command for command in commands if command.wordings])

    def begin(self, world: str, random: Random) -> Story:
        """A story with nothing said yet, in a voice of its own."""
        voice = {
            "ordinals": random.choice(("words", "words", "digits")),
            "articles": random.choice(("kept",) * 5 + ("dropped",)),
            **self.voice(random),
        }
        return Story(voice, [cells(world)])

    def propose(self, story: Story, random: Random) -> Instruction | None:
        """Something that could be said next; whether its program can be executed is for the executor to say."""
        fitting = [command for command in self.commands if command.fits(story)]
        weights = [command.weight for command in fitting]
        for _ in range(_TRIES if fitting else 0):
            command = random.choices(fitting, weights)[0]
            phrases = self._fill(command, story, random)
            if phrases is None:
                continue
            texts = {name: phrase.text for name, phrase in phrases.items()}
            programs = {name: phrase.program for name, phrase in phrases.items()}
            text = _spoken(random.choice(command.wordings).format_map({**story.voice, **texts}), story, random)
            program = command.program.format_map(programs)
            if len(program.split()) <= MOST_TOKENS and len(text.split()) <= self.most_words:
                return Instruction(text, program, command)
        return None

    def _fill(self, command: Command, story: Story, random: Random) -> dict[str, Phrase] | None:
        phrases: dict[str, Phrase] = {}
        for name in dict.fromkeys(_SLOT.findall(command.program)):
            phrase = self.slots[name.rstrip("0123456789")](story, random, phrases)
            if phrase is None or (phrase.about is not None and phrase.about in taken(phrases)):
                return None
            phrases[name] = phrase
        return phrases


def cells(world: str) -> tuple[str, ...]:
    """What stands at each position of a world's text form."""
    return tuple(cell.partition(":")[2] for cell in world.split())


def format_cells(contents: Sequence[str]) -> str:
    """The text form of a world from what stands at each position."""
    return " ".join(f"{position}:{content}" for position, content in enumerate(contents, start=1))


def taken(phrases: Mapping[str, Phrase]) -> set[int]:
    """Places that phrases are about."""
    return {phrase.about for phrase in phrases.values() if phrase.about is not None}


def ordinal(number: int, story: Story) -> str:
    """`second` or `2nd`, as the story's speaker has it."""
    return (_SHORT_ORDINALS if story.voice["ordinals"] == "digits" else _ORDINALS)[number - 1]


def place_in_row(number: int, size: int, story: Story, random: Random) -> Phrase:
    """A word for the n-th of a row of things, and the number it means: `second`, `last`, `leftmost`."""
    options = [Phrase(ordinal(number, story), str(number))] * 3
    if number == 1:
        options.append(Phrase("leftmost", "1"))
    if number == size:
        options += [Phrase("last", "-1"), Phrase("last", "-1"), Phrase("rightmost", "-1")]
    return random.choice(options)


def step(*names: str) -> Slot:
    """A slot for the number of a step that was one of these commands."""
    return lambda story, random, phrases: a_step(list(story.steps(*names)), random)


def a_step(numbers: Sequence[int], random: Random) -> Phrase | None:
    """One of these step numbers as a word or a digit."""
    if not numbers:
        return None
    number = random.choice(numbers)
    return Phrase(random.choice((str(number), str(number), NUMERALS[number])), str(number))


def _expand(pattern: str) -> Iterator[str]:
    """All texts that a pattern with alternatives in parentheses stands for."""
    parts = _ALTERNATIVES.split(pattern)
    choices = [part.split("|") if n % 2 else [part] for n, part in enumerate(parts)]
    return (" ".join("".join(choice).split()) for choice in product(*choices))


def _spoken(text: str, story: Story, random: Random) -> str:
    """The text as the speaker would have it: with a connective, with or without articles."""
    if story.commands and random.random() < _CONNECTIVE_SHARE:
        text = f"{random.choice(_CONNECTIVES)} {text}"
    if story.voice["articles"] == "dropped":
        text = re.sub(r"\bthe ", "", text)
    return re.sub(r"\ba (?=[aeio])", "an ", text)
