"""Mistakes that people make with a language or examples of their own, and what `vbsix data check` says of each."""

from __future__ import annotations

import inspect
import json
import sys
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import pytest

from vbsix import PythonDomain

COLOURS = ("red", "green", "off")


class State(NamedTuple):
    lamps: tuple
    chosen: int = -1
    done: int = 0


class Lamps:
    """Two lamps; a command says which and what colour."""

    tokens = ("1", "2", *COLOURS)
    max_tokens_per_instruction = 2
    attributes = {"chosen": 2}

    def start(self, context):
        return State(tuple(context))

    def step(self, state, token):
        if token in COLOURS:
            if state.chosen < 0:
                return None
            lamps = tuple(token if place == state.chosen else lamp for place, lamp in enumerate(state.lamps))
            return State(lamps, done=state.done + 1)
        return None if state.chosen >= 0 else state._replace(chosen=int(token) - 1)

    def instructions_done(self, state):
        return state.done

    def denotation(self, state):
        return state.lamps

    def describe(self, state):
        return {"chosen": state.chosen if state.chosen >= 0 else None}


EXAMPLES = [
    {"id": number, "context": ["off", "off"], "instructions": [f"first {one}", f"second {two}"], "target": [one, two]}
    for number, (one, two) in enumerate((one, two) for one in COLOURS for two in COLOURS)
]


class Mutable:
    """Without `__repr__`, but with `__eq__` and `__hash__`."""

    def __init__(self, lamps, chosen=-1, done=0):
        self.lamps, self.chosen, self.done = tuple(lamps), chosen, done

    def __eq__(self, other):
        return (self.lamps, self.chosen, self.done) == (other.lamps, other.chosen, other.done)  # fails on None

    def __hash__(self):
        return hash((self.lamps, self.chosen, self.done))


class EqualFails(Lamps):
    """Its states cannot be compared with None, and need not be."""

    def start(self, context):
        return Mutable(context)

    def step(self, state, token):
        after = super().step(State(state.lamps, state.chosen, state.done), token)
        return after and Mutable(*after)


class Mutating(EqualFails):
    def step(self, state, token):
        if token not in COLOURS and state.chosen < 0:
            state.chosen = int(token) - 1
            return Mutable(state.lamps, state.chosen, state.done)
        return super().step(state, token)


class Shared:
    """Never changes, and equals nothing but itself."""


class SharingState(NamedTuple):
    shared: Shared
    lamps: tuple
    chosen: int = -1
    done: int = 0


class Sharing(Lamps):
    """Its states hold an object that is compared by identity, such as a map."""

    shared = Shared()

    def start(self, context):
        return SharingState(self.shared, tuple(context))

    def step(self, state, token):
        after = super().step(State(*state[1:]), token)
        return after and SharingState(state.shared, *after)


@dataclass(frozen=True)
class CachingState:
    """Keeps what was computed from it once."""

    lamps: tuple
    chosen: int = -1
    done: int = 0

    @cached_property
    def plain(self):
        return State(self.lamps, self.chosen, self.done)


class Caching(Lamps):
    def start(self, context):
        return CachingState(tuple(context))

    def step(self, state, token):
        after = super().step(state.plain, token)
        return after and CachingState(*after)


class SharingMutating(Sharing):
    """Changes a state next to what it shares."""

    def start(self, context):
        return SharingMutable(context)

    def step(self, state, token):
        if token not in COLOURS and state.chosen < 0:
            state.chosen = int(token) - 1
            return SharingMutable(state.lamps, state.chosen, state.done)
        after = Lamps.step(self, State(state.lamps, state.chosen, state.done), token)
        return after and SharingMutable(*after)


class SharingMutable:
    """Equal and hashed by some of its attributes only."""

    def __init__(self, lamps, chosen=-1, done=0):
        self.shared, self.lamps, self.chosen, self.done = Sharing.shared, tuple(lamps), chosen, done

    def __eq__(self, other):
        return (self.shared, self.lamps) == (other.shared, other.lamps)

    def __hash__(self):
        return hash(self.lamps)


class KeepsTheContext(Lamps):
    def start(self, context):
        context.append(len(context))
        return State(tuple(context[:2]))


def returns_false(self, state, token):
    return Lamps.step(self, state, token) or False


def raises(self, state, token):
    return self.nothing


def fails_in_the_dark(method):
    """A method that raises an error after the context of the fortieth line only."""

    def call(self, state):
        return [1][state.lamps[:2].count("dark")] and getattr(Lamps, method)(self, state)

    return call


def change(**members):
    return type("Lamps", (Lamps,), members)


def lines(**changes):
    return [{**example, **changes} for example in EXAMPLES]


FORTY = [EXAMPLES[number % 9] | {"id": number} for number in range(39)] + [EXAMPLES[0] | {"context": ["off", "dark"]}]
MISTAKES = {
    "commands longer than allowed": (
        change(max_tokens_per_instruction=1),
        EXAMPLES,
        "no search completes 2 commands with max_tokens_per_instruction = 1. Searches with more tokens reach targets "
        "with commands of up to 2 tokens: set max_tokens_per_instruction = 2.",
    ),
    "commands that never end": (
        change(instructions_done=lambda self, state: 0),
        EXAMPLES,
        "no search completes 1 command with max_tokens_per_instruction = 2, nor with 16. Let instructions_done(state) "
        "count complete commands",
    ),
    "a count that stops at 1": (
        change(instructions_done=lambda self, state: min(state.done, 1)),
        EXAMPLES,
        "instructions_done(state) never passed 1, but examples have up to 2 instructions",
    ),
    "targets of another type": (
        Lamps,
        lines(target="red green"),
        'the target \'"red green"\' is unlike any denotation that searches met, such as \'["off", "off"]\' (9 of 9 '
        "examples): target is a text, denotation(state) is a list",
    ),
    "targets with texts where numbers belong": (
        change(denotation=lambda self, state: tuple(COLOURS.index(lamp) for lamp in state.lamps)),
        lines(target=[0, "1"]),
        "(9 of 9 examples): target[1] is a text, denotation(state)[1] is a number",
    ),
    "targets without the list inside a tuple": (
        change(denotation=lambda self, state: (state.lamps, state.done)),
        lines(target=["red", "green", 2]),
        "target is a list of 3, denotation(state) is a list of 2",
    ),
    "targets with a field of another type": (
        change(denotation=lambda self, state: {"lit": {"first": state.lamps[0] != "off"}, "done": state.done}),
        lines(target={"lit": {"first": 1}, "done": 2}),
        "target['lit']['first'] is a number, denotation(state)['lit']['first'] is true or false",
    ),
    "NaN": (Lamps, lines(target=[float("nan"), "off"]), "target: has NaN or Infinity in it"),
    "a denotation that is NaN": (
        change(denotation=lambda self, state: float("nan")),
        EXAMPLES,
        "denotation(state) raised an error: NaN equals nothing, not even itself",
    ),
    "a text for the instructions": (
        Lamps,
        lines(instructions="first red"),
        '"instructions" is a text, not a list of texts: write ["first red"]',
    ),
    "a text for the categories": (
        lambda: PythonDomain(change(attributes={"chosen": "red"})),
        EXAMPLES,
        "`attributes`: chosen needs a list of categories, such as ['red'], not the text 'red'",
    ),
    "a tolerance that is no number": (
        lambda: PythonDomain(change(tolerance="1%")),
        EXAMPLES,
        "Lamps.tolerance must be a number from 0 on, not '1%'",
    ),
    "no attributes": (
        lambda: PythonDomain(change(attributes=None)),
        EXAMPLES,
        "with describe(state) goes `attributes`",
    ),
    "a description that is no mapping": (
        change(describe=lambda self, state: state.chosen),
        EXAMPLES,
        "expected a mapping of names to values, not -1",
    ),
    "a description that fails after some commands": (
        change(describe=lambda self, state: [Lamps.describe(self, state)][state.lamps[0] == "red"]),
        EXAMPLES,
        "the state: \"State(lamps=('red', ",
    ),
    "a description that no attribute has": (
        change(attributes={"chosen": 1}),
        EXAMPLES,
        "the state: \"State(lamps=('off', 'off'), chosen=1, done=0)\"",
    ),
    "a step that returns False": (
        change(step=returns_false),
        EXAMPLES,
        "returned False; return None where a token is invalid",
    ),
    "a step that raises": (
        change(step=raises),
        EXAMPLES,
        f"step(state, '1') raised AttributeError: 'Lamps' object has no attribute 'nothing' ({__file__}:",
    ),
    "a state that changes, without a text": (
        Mutating,
        EXAMPLES,
        "step(state, '1') changed the state that it was given",
    ),
    "a state that changes, next to an object that it shares": (
        SharingMutating,
        EXAMPLES,
        "step(state, '1') changed the state that it was given",
    ),
    "a context that changes": (
        KeepsTheContext,
        EXAMPLES,
        "start or step changed the context",
    ),
    "a denotation that raises in the fortieth line": (
        change(denotation=fails_in_the_dark("denotation")),
        FORTY,
        "examples.jsonl:40: Lamps.denotation(state) raised IndexError: list index out of range",
    ),
    "a count that raises in the fortieth line": (
        change(instructions_done=fails_in_the_dark("instructions_done")),
        FORTY,
        "examples.jsonl:40: Lamps.instructions_done(state) raised IndexError: list index out of range",
    ),
    "states that are lists": (
        change(start=lambda self, context: list(context)),
        EXAMPLES,
        "unhashable type: 'list'; use a NamedTuple or a frozen dataclass whose fields are tuples",
    ),
    "tokens to try as a text": (
        change(valid_tokens=lambda self, state: "red"),
        EXAMPLES,
        "valid_tokens(state) returned the text 'red'; return a list of tokens",
    ),
    "a valid token that is not offered": (
        change(valid_tokens=lambda self, state: ("1", *COLOURS)),
        EXAMPLES,
        "valid_tokens(state) leaves out '2', which step takes",
    ),
    "targets that do not end where target says": (
        Lamps,
        lines(targets=[["red", "off"], ["red", "green"]]),
        'leads to ["red", "green"], "target" is',
    ),
    "programs of the wrong number": (Lamps, lines(programs=["1 red"]), '"programs" is not a list of 2 texts'),
    "programs that do not run": (Lamps, lines(programs=["red", "2 red"]), "programs: token 1: red: not valid"),
}
NOTES = {
    "tokens that are never valid": (
        change(tokens=(*Lamps.tokens, "blue"), step=lambda self, s, t: None if t == "blue" else Lamps.step(self, s, t)),
        EXAMPLES,
        "tokens that were never valid: blue",
    ),
    "ids that occur twice": (Lamps, lines(id=7), ":2: the id 7 is taken by"),
    "rows that contradict each other": (
        Lamps,
        [{**example, "instructions": ["first so", "second so"]} for example in EXAMPLES],
        "has the context and the instructions of",
    ),
    "targets that cannot be reached": (
        Lamps,
        lines(target=["blue", "blue"]),
        "a random search reached 0 of 9 targets. One that it did not reach: ",
    ),
    "commands that change nothing": (
        Lamps,
        [{**example, "instructions": ["do it"], "target": ["red", "off"]} for example in EXAMPLES],
        "of the commands that were tried change nothing",
    ),
    "commands that are too long now and then": (
        change(
            tokens=(*Lamps.tokens, "wait"),
            step=lambda self, s, t: (
                (s._replace(chosen=s.chosen - 10) if s.chosen >= 0 else None)
                if t == "wait"
                else Lamps.step(self, s._replace(chosen=s.chosen + 10), t)
                if s.chosen < -1
                else None
                if s.chosen >= 0 and t == "green"
                else Lamps.step(self, s, t)
            ),
        ),
        [{**example, "instructions": ["do it"], "target": ["green", "off"]} for example in EXAMPLES],
        "are reached with commands of up to 3 tokens: set max_tokens_per_instruction = 3 instead of 2.",
    ),
}


@pytest.fixture
def check(vbsix, monkeypatch, tmp_path):
    """Checks a language and examples."""

    def call(language, examples):
        def open_domain(name):
            return PythonDomain(language) if isinstance(language, type) else language()

        monkeypatch.setattr("vbsix.cli.data.open_domain", open_domain)
        path = tmp_path / "examples.jsonl"
        path.write_text("".join(json.dumps(example) + "\n" for example in examples))
        return vbsix("data", "check", str(path), "--domain=lamps:Lamps")

    return call


@pytest.mark.parametrize(("language", "examples", "told"), MISTAKES.values(), ids=MISTAKES)
def test_a_mistake_is_named_and_ends_with_code_2(check, language, examples, told):
    ended = check(language, examples)
    assert told in ended.err
    assert ended.code == 2
    assert "Traceback" not in ended.err


@pytest.mark.parametrize(("language", "examples", "told"), NOTES.values(), ids=NOTES)
def test_what_may_be_a_mistake_is_noted(check, language, examples, told):
    ended = check(language, examples)
    assert told in ended.err
    assert ended.code == 0


def test_a_mistake_in_a_module_ends_training_before_it_begins(vbsix, monkeypatch, tmp_path):
    """From a file of one's own, as a user has it."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend("")
    head = f"from typing import NamedTuple\n\nCOLOURS = {COLOURS}\n\n"
    source = inspect.getsource(Lamps).replace("return None", "return False")
    (tmp_path / "false_lamps.py").write_text(head + inspect.getsource(State) + "\n\n" + source)
    (tmp_path / "examples.jsonl").write_text("".join(json.dumps(example) + "\n" for example in EXAMPLES))
    try:
        ended = vbsix("train", "false_lamps:Lamps", "--data=examples.jsonl", "--out=run")
    finally:
        sys.modules.pop("false_lamps", None)
    assert "step(state, 'red') returned False; return None where a token is invalid" in ended.err
    assert ended.code == 2
    assert "Traceback" not in ended.err
    assert not (tmp_path / "run").exists()


def test_a_mistake_of_the_language_is_said_once(check):
    ended = check(change(start=lambda self, context: list(context)), EXAMPLES)
    assert ended.err.count("unhashable") == 1


@pytest.mark.parametrize("language", [Lamps, EqualFails, Sharing, Caching])
def test_a_sound_language_has_no_notes(check, language):
    ended = check(language, EXAMPLES)
    assert (ended.code, ended.err) == (0, "")
    assert "A random search reached 9 of 9 targets" in ended.out


def test_a_file_of_another_name_is_not_a_missing_folder(vbsix, tmp_path):
    path = tmp_path / "examples.json"
    path.write_text("{}")
    for command in (["data", "check", str(path)], ["train", "--data", str(path)]):
        ended = vbsix(*command)
        assert (ended.code, "a file, whose name does not end in .jsonl" in ended.err) == (2, True)


def test_the_share_of_instructions_that_are_cut_is_shown(check):
    long = [{**example, "instructions": ["so " * 100, "and so on"]} for example in EXAMPLES]
    assert (
        "examples.jsonl: 50.0% of the instructions have more than the 80 words that are read" in check(Lamps, long).out
    )
