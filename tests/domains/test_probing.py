"""Random searches for examples, and the advice that follows from them."""

from __future__ import annotations

import itertools
import json
import logging
import random
import time

import pytest
from training.tiny_config import tiny_config

from vbsix import PythonDomain
from vbsix.domains import probing
from vbsix.domains.probing import Findings, Trial, advise, probe, summarise
from vbsix.runs.folder import Run, create_run
from vbsix.utilities.errors import VbsixError


class Counter:
    """`add` adds one, `stay` adds nothing; each is a command."""

    tokens = ("add", "stay")
    max_tokens_per_instruction = 1
    attributes = {"sum": 40}
    steps = 0

    def start(self, context):
        return (context, 0)

    def step(self, state, token):
        self.steps += 1
        return (state[0] + (token == "add"), state[1] + 1)

    def instructions_done(self, state):
        return state[1]

    def denotation(self, state):
        return state[0]

    def describe(self, state):
        return {"sum": min(state[0], 39)}


def make_trials(count, instructions=1, added=1):
    return [Trial(str(one), instructions, str(one + added), f"file:{one}") for one in range(count)]


def advice(trials, **settings):
    domain = PythonDomain(Counter)
    return [one for one in advise(domain, trials, probe(domain, trials), **settings)]


def test_commands_that_change_nothing_are_pointed_out_also_with_longer_examples():
    (single,) = advice(make_trials(9))
    assert "50% of the commands that were tried change nothing, and no example of one instruction asks" in single.text
    (longer,) = advice(make_trials(9, instructions=2))
    assert "0 of 9 examples end where they began, so perhaps no instruction asks for that" in longer.text
    assert not single.is_wrong and not longer.is_wrong


@pytest.mark.parametrize("instructions", [1, 2])
def test_commands_that_change_nothing_may_be_asked_for(instructions):
    asked = make_trials(2, instructions, added=0)
    assert advice(make_trials(9, instructions) + asked) == []


def test_examples_that_ask_for_no_change_cannot_be_answered_without_such_commands():
    trials = [*make_trials(9), *make_trials(3, added=0), *make_trials(2, instructions=2, added=0)]
    assert advice(trials) == []
    (refused,) = advice(trials, skips_no_ops=True)
    assert refused.text.startswith("file:0: the target is what the context gives already, and search.skip_no_ops=true")
    assert "(3 examples)" in refused.text
    assert advice(make_trials(9), skips_no_ops=True) == []


@pytest.mark.parametrize("limit", [0.0, 1e9])
def test_that_no_example_asks_for_no_change_is_said_only_if_all_were_compared(monkeypatch, limit):
    monkeypatch.setattr(probing, "COMPARING", limit)
    assert len(advice(make_trials(9))) == len(advice(make_trials(9, instructions=2))) == (limit > 0)


def test_the_examples_that_are_compared_are_random_and_take_their_own_time(monkeypatch):
    clock = itertools.count()
    monkeypatch.setattr(probing.time, "monotonic", lambda: next(clock) / 100)
    trials = make_trials(500) + make_trials(500, added=0)
    found = probe(PythonDomain(Counter), trials)
    assert 90 <= found.compared <= 100 * probing.COMPARING
    assert 20 < len(found.unchanging) < 80 and found.searched > 40
    (refused,) = advise(PythonDomain(Counter), trials, found, skips_no_ops=True)
    assert f"(at least {len(found.unchanging)} examples)" in refused.text


def test_all_targets_are_compared_with_the_denotations_in_kind():
    trials = make_trials(2000)
    odd = Trial("3", 1, '["four"]', "file:odd")
    trials[1234] = odd
    domain = PythonDomain(Counter)
    found = probe(domain, trials)
    assert ([*found.unlike], odd in found.missed, found.reached) == ([odd], True, probing.SEARCHED)
    odd_one, *_ = advise(domain, trials, found)
    assert odd_one.text.startswith("file:odd: the target '[\"four\"]' is unlike any denotation that searches met, such")
    assert "(1 of 2000 examples)" in odd_one.text


class Safe:
    """A code of six digits opens a safe, which random searches never find."""

    tokens = (*"0123456789", "open", "end")
    max_tokens_per_instruction = 8

    def __init__(self, unopened):
        self.unopened = unopened

    def start(self, context):
        return ("", self.unopened, 0)

    def step(self, state, token):
        digits, content, done = state
        if token == "end":
            return (digits, content, done + 1)
        if token == "open":
            return (digits, "gold", done) if digits == "735812" else None
        return ((digits + token)[-6:], content, done)

    def instructions_done(self, state):
        return state[2]

    def denotation(self, state):
        return {"last": state[0][-1:], "content": state[1]}


def safe_advice(unopened, contents):
    trials = [
        Trial("0", 1, json.dumps({"last": str(number % 10), "content": content}), f"file:{number}")
        for number, content in enumerate(contents)
    ]
    domain = PythonDomain(Safe(unopened))
    return [one for one in advise(domain, trials, probe(domain, trials)) if "is unlike" in one.text]


def test_a_value_in_place_of_null_may_be_right():
    assert safe_advice(None, [None] * 20 + ["gold"]) == safe_advice(None, ["gold"] * 20) == []


def test_a_type_that_only_some_targets_have_may_be_right():
    (note,) = safe_advice(0, [0] * 20 + ["gold"])
    assert "target['content'] is a text, denotation(state)['content'] is a number. Unless a rare command" in note.text
    assert not note.is_wrong


def test_a_type_that_all_targets_have_and_no_denotation_is_wrong():
    (wrong,) = safe_advice(0, ["gold"] * 20)
    assert wrong.text.endswith("is a number. Write targets as denotation(state) gives them.") and wrong.is_wrong


def test_a_type_that_all_targets_have_may_be_right_where_denotations_may_be_null():
    class Halving(Counter):
        def denotation(self, state):
            return None if state[0] % 2 else state[0] / 2

    domain = PythonDomain(Halving)
    trials = [Trial(str(one), 1, f'"{one}"', f"file:{one}") for one in range(20)]
    note, *_ = advise(domain, trials, probe(domain, trials))
    assert "denotation(state) is a number or null. Unless a rare command" in note.text and not note.is_wrong


def test_comparing_targets_in_type_takes_its_own_time(monkeypatch):
    """Here, looking at the clock takes 10 ms, and nothing else takes time."""
    clock = itertools.count()
    monkeypatch.setattr(probing.time, "monotonic", lambda: next(clock) / 100)
    trials = [*make_trials(2000), *[Trial(str(one), 1, f'"{one}"', f"text:{one}") for one in range(2000)]]
    found = probe(PythonDomain(Counter), trials)
    assert next(clock) <= 100 * probing.SECONDS + 10
    assert 40 <= found.judged <= 100 * probing.JUDGING and found.searched > 40
    assert 0 < len(found.unlike) < found.judged
    wrong = next(one for one in advise(PythonDomain(Counter), trials, found) if "is unlike" in one.text)
    assert f"({len(found.unlike)} of {found.judged} examples)" in wrong.text


def test_a_target_of_another_kind_that_is_reached_is_right():
    class Named(Counter):
        def denotation(self, state):
            return {str(state[0]): 1} if state[0] > 1000 else state[0]

    trials = [*make_trials(2000), Trial("2000", 1, '{"2001": 1}', "file:rare")]
    assert probe(PythonDomain(Named), trials).unlike == {}


class Spelling:
    """A command spells a number in tallies and ends with `stop`."""

    tokens = ("tally", "stop")

    def __init__(self, limit):
        self.max_tokens_per_instruction = limit

    def start(self, context):
        return (0, 0, 0)

    def step(self, state, token):
        tallies, total, done = state
        if token == "tally":
            return (tallies + 1, total, done)
        return (0, total * 100 + tallies, done + 1) if tallies else None

    def instructions_done(self, state):
        return state[2]

    def denotation(self, state):
        return state[1]


def test_each_denotation_is_computed_once_in_a_search():
    asked = []

    class Recorded(Counter):
        def denotation(self, state):
            asked.append(state)
            return state[0]

    domain, trials = PythonDomain(Recorded), [Trial("0", 9, "100", "file:1")]
    asked.clear()
    found = Findings()
    probing._search(domain, trials[0], random.Random(0), found, 1, end=time.monotonic() + 60)
    assert found.commands > len(asked) == len(set(asked)) == 1 + sum(range(2, 11))


@pytest.mark.parametrize("limit", [6, 9])
def test_the_number_of_tokens_that_commands_need_is_named(limit):
    """Also where the mean over instructions is less."""
    domain = PythonDomain(Spelling(limit))
    trials = [Trial("0", 2, "1101", "file:1"), Trial("0", 1, "11", "file:2")]
    (short,) = advise(domain, trials, probe(domain, trials))
    assert "commands of up to 12 tokens: set max_tokens_per_instruction = 12" in short.text
    enough = PythonDomain(Spelling(12))
    assert not [*advise(enough, trials, probe(enough, trials))]


def test_targets_that_searches_miss_at_the_limit_point_to_it():
    domain = PythonDomain(Spelling(2))
    trials = [Trial("0", 1, "99", f"file:{number}") for number in range(4)]
    (far,) = advise(domain, trials, probe(domain, trials))
    assert "4 of these searches used up their tokens: if commands need more than 2" in far.text


def test_searches_for_targets_of_another_type_do_not_point_to_the_limit():
    domain = PythonDomain(Spelling(2))
    trials = [Trial("0", 1, "99", f"file:{number}") for number in range(4)]
    trials += [Trial("0", 1, '"99"', f"file:{number}") for number in range(4, 7)]
    *_, far = advise(domain, trials, probe(domain, trials))
    assert "4 of these searches used up their tokens" in far.text


def test_a_search_that_takes_too_long_is_given_up(monkeypatch):
    class Slow(Counter):
        max_tokens_per_instruction = 500

        def step(self, state, token):
            self.steps += 1
            return (*state, token)  # states never repeat

        def instructions_done(self, state):
            return 0

    clock = itertools.count()
    monkeypatch.setattr(probing.time, "monotonic", lambda: next(clock) / 100)
    domain, trials = PythonDomain(Slow), make_trials(5)
    found = probe(domain, trials)
    assert domain.language.steps < 2 * 100 * probing.SECONDS
    assert (found.searched, found.missed) == (0, [])
    assert summarise(found) == "No search ended within 5 s."
    (slow,) = advise(domain, trials, found)
    assert "not one search ended within 5 s" in slow.text and not slow.is_wrong


@pytest.mark.parametrize(
    ("skips", "told"), [(False, "no example of one instruction asks for that"), (True, "They cannot be answered")]
)
def test_a_run_begins_with_this_advice(tmp_path, caplog, skips, told):
    path = tmp_path / "examples.jsonl"
    examples = [{"context": one, "instructions": ["add"], "target": one + 1 - skips} for one in range(20)]
    path.write_text("".join(json.dumps(example) + "\n" for example in examples))
    settings = {"data__lengths": (0,), "data__evaluation": (0,), "search__skip_no_ops": skips}
    config = tiny_config("execution-only", domain="counter", **settings)
    with caplog.at_level(logging.WARNING, "vbsix"):
        create_run(Run(tmp_path / "run", config, (0,), str(path)), PythonDomain(Counter))
    assert told in caplog.text


def test_a_mistake_that_a_late_example_shows_ends_a_run_before_it_begins(tmp_path):
    class Failing(Counter):
        def denotation(self, state):
            return state[0] / (state[0] != 39)

    path = tmp_path / "examples.jsonl"
    examples = [{"context": one, "instructions": ["add"], "target": one} for one in range(40)]
    path.write_text("".join(json.dumps(example) + "\n" for example in examples))
    config = tiny_config("execution-only", domain="failing", data__lengths=(0,), data__evaluation=(0,))
    with pytest.raises(VbsixError, match=r"jsonl:40: Failing\.denotation\(state\) raised ZeroDivisionError"):
        create_run(Run(tmp_path / "run", config, (0,), str(path)), PythonDomain(Failing))
