"""What a run, a parser and an ensemble make of a language in plain Python."""

from __future__ import annotations

import inspect
import json
import logging
import math
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from reference.comparison import quick_jit
from training.tiny_config import tiny_config

import vbsix
from vbsix import PythonDomain, VbsixError
from vbsix.config.choosing import choose_config
from vbsix.config.schema import override, to_settings
from vbsix.data.dataset import examine, load_dataset, warn_about, warn_about_words
from vbsix.data.json_lines import read_json_lines
from vbsix.data.words import UtteranceVectors
from vbsix.domains.denotations import TOLERANCE, Denotations, close_neighbours, freeze, is_match
from vbsix.domains.no_ops import without_no_ops
from vbsix.evaluation.spurious import is_spurious
from vbsix.models.ensemble import Ensemble
from vbsix.parsing.loading import make_ensemble, make_parser
from vbsix.runs.folder import Run, create_run, open_run
from vbsix.runs.identity import Behaviour, behave, domain_of, read_identity
from vbsix.runs.loop import _advise
from vbsix.search import Problem, SearchConfig, search_graph
from vbsix.training.chunk import create_learners
from vbsix.training.mml import _graph_policy_loss, correct_paths
from vbsix.training.objective import Context
from vbsix.utilities.errors import InvalidData


class Sums:
    """`one` and `two` add, `same` adds nothing; each is a command."""

    tokens = ("one", "two", "same")
    max_tokens_per_instruction = 1
    attributes = {"sum": 20}

    def start(self, context):
        return (context, 0)

    def step(self, state, token):
        return (state[0] + self.tokens.index(token) + 1 if token != "same" else state[0], state[1] + 1)

    def instructions_done(self, state):
        return state[1]

    def denotation(self, state):
        return state[0]

    def describe(self, state):
        return {"sum": min(state[0], 19)}


def write(path: Path, examples) -> Path:
    path.write_text("".join(json.dumps(example) + "\n" for example in examples))
    return path


def make(count: int, length: int = 1, words: str = "add one"):
    return [{"context": n, "instructions": [f"{words} {n}"] * length, "target": n + length} for n in range(count)]


def make_parsers(domain: PythonDomain, path: Path, seeds: int) -> list:
    """Untrained parsers."""
    config = tiny_config("execution-only", domain=domain.name, data__lengths=(0,), data__evaluation=(0,))
    dataset = load_dataset(config.data, domain, str(path), word_size=config.network.word)
    policies = create_learners(domain, config, jnp.arange(seeds)).networks.policy
    of_seed = [jax.tree.map(lambda leaf, seed=seed: leaf[seed], policies) for seed in range(seeds)]
    names = {"seed": 0, "steps": 0}
    return [make_parser(domain, policy, dataset.words, config, names) for policy in of_seed]


def test_confidence_and_ensembles_tell_denotations_apart_that_no_target_named(tmp_path):
    """A domain that has read no targets, as in `parse` and `serve`."""
    made = make_parsers(PythonDomain(Sums), write(tmp_path / "examples.jsonl", make(20)), 3)
    fresh = PythonDomain(Sums)
    parsers = [vbsix.Parser(fresh, one.policy, one.words, one.config, one.provenance) for one in made]
    for parser in (parsers[0], make_ensemble(parsers)):
        found = parser.parse(5, ["add one"], best=3)
        assert sorted(reading.worlds[-1] for reading in found.readings) == ["5", "6", "7"]
        confidences = [reading.confidence for reading in found.readings]
        assert sum(confidences) == pytest.approx(1.0)
        assert max(confidences) < 0.99, "an untrained parser is not sure"
    assert isinstance(make_ensemble(parsers).policy, Ensemble)


def test_a_denotation_is_its_own_key_whenever_a_target_is_read():
    domain = PythonDomain(Sums)
    start = domain.start(domain.parse_world("3"), 2)
    successors, _ = domain.expand(start)
    keys = np.asarray(jax.vmap(domain.denotation_key)(successors)).tolist()
    assert keys[0] != keys[1] != keys[2]
    later = domain.parse_target("4")
    assert np.asarray(jax.vmap(lambda state: domain.matches(state, later))(successors)).tolist() == [True, False, False]
    other, _ = domain.expand(domain.start(domain.parse_world("2"), 2))
    assert np.asarray(domain.denotation_key(other[1])).tolist() == keys[0], "2 + two is 3 + one"


def test_errors_of_floating_point_do_not_make_denotations_differ():
    assert freeze([0.1 + 0.2, 1.0]) == freeze([0.3, 1])
    assert freeze(0.1 + 0.2 - 0.3) == freeze(0)
    assert freeze(0.12345) != freeze(0.12346)
    assert freeze(True) != freeze(1)


@pytest.mark.parametrize(
    ("tolerance", "target", "denotation", "is_one"),
    [
        (TOLERANCE, 0, 0.1 + 0.2 - 0.3, True),
        (TOLERANCE, 12345678.25, 12345678.250000002, True),
        (TOLERANCE, 3.33, 10 / 3, False),
        (0.005, 3.33, 10 / 3, True),
        (0.005, 3.34, 10 / 3, False),
        (0.005, {"sum": [3.33, "left"]}, {"sum": (10 / 3, "left")}, True),
        (0.005, {"sum": [3.33, "left"]}, {"sum": (10 / 3, "right")}, False),
        (0.005, 10**400, 10**400 + 1, False),
        (0, 0.3, 0.1 + 0.2, False),
        (0, 0.3, 0.3, True),
        (1, 5, 6, True),
        (1, 5, 7, False),
        (1, True, 1, False),
        (1, 10**400, 0.5, False),
        (1, 5, math.inf, False),
    ],
)
def test_numbers_equal_the_targets_within_the_tolerance(tolerance, target, denotation, is_one):
    numbers = Denotations(tolerance)
    wanted, _ = numbers.number_target(target)
    other, _ = numbers.number_target([0.5, target])  # of another shape
    assert (numbers.number(denotation) == wanted) == (numbers.find(denotation) == wanted) == is_one
    assert is_match(denotation, target, tolerance) == is_one
    assert numbers.number(denotation) != other != wanted


def test_the_nearest_target_counts():
    numbers = Denotations(tolerance=0.01)
    targets = [numbers.number_target(one / 100)[0] for one in range(100, 120)]
    assert len(set(targets)) == 20, "targets within the tolerance of each other stay apart"
    assert [numbers.number(value) for value in (1.003, 1.049, 1.19)] == [targets[0], targets[5], targets[19]]
    numbers.keep({targets[5]})
    assert [numbers.find(value) for value in (1.003, 1.049)] == [-1, targets[5]]


def test_huge_numbers_are_compared_and_nan_is_refused():
    huge = 10**400
    pairs = [(1e305, 1e301), (huge, 1e305), (huge, huge + 1), (math.inf, 1e308), (math.inf, -math.inf)]
    assert not any(is_match(one, other, 0.01) or is_match(other, one, 0.01) for one, other in pairs)
    assert is_match(math.inf, math.inf, 0.01) and is_match(huge, huge, 0.01) and is_match(1e305, int(1e305), 0.01)
    for value in (math.inf, 1.5, 3):
        with pytest.raises(VbsixError, match="NaN equals nothing"):
            is_match([math.nan], [value], 0.01)
    numbers = Denotations(0.01)
    targets = [numbers.number_target([one, 3.33])[0] for one in (1e305, 1e301, huge)]
    assert [numbers.find([one, 3.331]) for one in (1e305, 1e301, huge, 1e302)] == [*targets, -1]


def test_targets_that_a_denotation_may_both_match_are_found():
    assert close_neighbours([3.33, 3.5, 3.333, 3.5], 0.01) == {0: 2, 2: 0}
    assert close_neighbours([round(0.01 * one, 2) for one in range(-500, 500)], 0.005) == {}, "all rounded alike"
    assert close_neighbours([[1, "a"], [1.001, "b"], [1.001, "a"], 1.001], 0.01) == {0: 2, 2: 0}
    assert close_neighbours([*range(9), 1e305, 1e304, 10**400, True, "3", None], 1e-6) == {}
    assert close_neighbours([3.33, 3.33, 3.33 + 1e-9], 0.01) == {}, "one target"


class Thirds(Sums):
    """Its denotations are thirds."""

    tolerance = 0.01

    def denotation(self, state):
        return state[0] / 3


def test_targets_within_the_tolerance_are_matched_whenever_they_are_read():
    domain = PythonDomain(Thirds)

    def matched(target):
        successors, _ = domain.expand(domain.start(domain.parse_world("9"), 1))
        return np.asarray(jax.vmap(lambda state: domain.matches(state, target))(successors)).tolist()

    assert matched(domain.parse_target("3.33")) == [True, False, False]
    assert matched(domain.parse_target("3.67")) == [False, True, False]  # 11/3 was met before
    assert matched(domain.parse_target("3.5")) == [False, False, False]
    assert domain.is_right("3.3333", "3.33") and not domain.is_right("3.3333", "3.35")


def test_targets_that_are_too_close_for_the_tolerance_are_warned_of(tmp_path):
    lines = [{"context": 9, "instructions": ["add"], "target": target} for target in (3.33, 3.67, 3.333)]
    path, domain = write(tmp_path / "close.jsonl", lines), PythonDomain(Thirds)
    told = [one.text for one in examine(domain, read_json_lines(path, domain))[1]]
    (close,) = [text for text in told if "tolerance" in text]
    assert close.startswith(f"{path}:1: the target '3.33' and that of {path}:3, '3.333', are less than twice")
    assert "(2 such targets)" in close
    matched = domain.matches(domain.expand(domain.start(domain.parse_world("9"), 1))[0][0], domain.parse_target("3.33"))
    assert domain.is_right(str(10 / 3), "3.33") and not matched, "what is warned of"


def test_programs_in_lines_may_reach_the_target_within_the_tolerance(tmp_path):
    lines = [{"context": 9, "instructions": ["add"], "target": target, "programs": ["one"]} for target in (3.33, 3.5)]
    domain = PythonDomain(Thirds)
    assert read_json_lines(write(tmp_path / "good.jsonl", lines[:1]), domain)
    with pytest.raises(InvalidData, match=r'leads to 3.33.*"target" is 3.5'):
        read_json_lines(write(tmp_path / "bad.jsonl", lines[1:]), domain)


@pytest.mark.parametrize(("skips", "found"), [(False, [True, True]), (True, [True, False])])
def test_commands_that_change_nothing_are_left_out(skips, found):
    """5 can be reached from 4 in two commands by `one same` and `same one`; from 5 by `same same` alone."""
    domain = without_no_ops(PythonDomain(Sums)) if skips else PythonDomain(Sums)
    config = SearchConfig(beam=9, selection="epsilon-greedy", epsilon=0.0)

    def search(world, target):
        return search_graph(
            domain,
            lambda state, valid: jnp.where(valid, 0.0, -jnp.inf),
            None,
            Problem(world, jnp.int32(2), target),
            jax.random.key(0),
            instructions=2,
            config=config,
        ).hit

    targets = [domain.parse_target(text) for text in ("6", "5")]
    hits = [bool(quick_jit(search)(domain.parse_world(str(n)), one)) for n, one in zip((4, 5), targets, strict=True)]
    domain.raise_failure()
    assert hits == found


class Walk(Sums):
    """A command is a walk: `one` goes right, `two` goes left, `same` ends it."""

    max_tokens_per_instruction = 3

    def step(self, state, token):
        moved = {"one": 1, "two": -1, "same": 0}[token]
        return (state[0] + moved, state[1] + (token == "same"))


def test_a_command_of_several_tokens_is_compared_with_the_state_before_it():
    domain = without_no_ops(PythonDomain(Walk))
    config = SearchConfig(beam=9, selection="epsilon-greedy", epsilon=0.0)

    @quick_jit
    def search(target):
        return search_graph(
            domain,
            lambda state, valid: jnp.where(valid, 0.0, -jnp.inf),
            None,
            Problem(domain.parse_world("4"), jnp.int32(1), target),
            jax.random.key(0),
            instructions=1,
            config=config,
        ).hit

    hits = {text: bool(search(domain.parse_target(text))) for text in ("4", "5", "6", "3")}
    domain.raise_failure()
    assert hits == {"4": False, "5": True, "6": True, "3": True}


@pytest.mark.parametrize(("penalty", "expected"), [(0.0, 2.25), (math.log(3), 2.1), (50.0, 2.0)])
def test_a_length_penalty_prefers_short_programs(penalty, expected):
    """2 is reached by `two` and `same` or by `one`, `one` and `same`: 1/9 and 1/27 of all, divided by e to the penalty
    for each token.
    """

    class Adding(Walk):
        def step(self, state, token):
            return Sums.step(self, (state[0], state[1] - (token != "same")), token)

    domain = PythonDomain(Adding)
    problem = Problem(domain.parse_world("0"), jnp.int32(1), domain.parse_target("2"))
    uniform = lambda state, valid: jnp.full(3, -math.log(3))  # noqa: E731
    search = SearchConfig(beam=9, selection="epsilon-greedy", epsilon=0.0)
    config = override(tiny_config(), {"training.length_penalty": penalty})

    @quick_jit
    def loss():
        graph = search_graph(domain, uniform, None, problem, jax.random.key(0), instructions=1, config=search)
        context: Any = Context(domain, config, *[None] * 6)
        return _graph_policy_loss(context, uniform, graph, correct_paths(context, graph))[0]

    found = float(loss())
    domain.raise_failure()
    assert found == pytest.approx(expected * math.log(3), rel=1e-4), "the expected length, with a uniform policy"


def test_iterations_that_no_example_needs_change_nothing():
    domain = PythonDomain(Sums)
    worlds = np.array([domain.parse_world(str(n)) for n in range(3)])
    target, counts = domain.parse_target("3"), jnp.array([1, 2, 1])

    def search(world, count, longest):
        return search_graph(
            domain,
            lambda state, valid: jax.nn.log_softmax(jnp.arange(3.0)),
            None,
            Problem(world, count, target),
            jax.random.key(0),
            instructions=5,
            config=SearchConfig(beam=4, selection="stochastic"),
            longest=longest,
        )

    both = [
        quick_jit(lambda one=one: jax.vmap(lambda world, count: search(world, count, one))(worlds, counts))()
        for one in (None, jnp.int32(2))
    ]
    domain.raise_failure()
    for name in ("kind", "successor_keys"):
        whole, short = (np.asarray(getattr(graph.expansion, name)) for graph in both)
        np.testing.assert_array_equal(whole[:, :2], short[:, :2])
    whole, short = (np.asarray(graph.expansion.kind) for graph in both)
    np.testing.assert_array_equal(whole, short)
    np.testing.assert_array_equal(*(np.asarray(graph.beam.log_chart) for graph in both))


def test_settings_that_depend_on_the_data(tmp_path):
    def choose(examples, **given):
        path = write(tmp_path / "examples.jsonl", examples)
        config = choose_config("sums", str(path), None, None, None, None, given)
        settings = to_settings(config)
        return [settings[name] for name in ("data.max_words", "training.curriculum_steps")]

    long = make(40, words="so " * 30)
    assert choose(long) == [31, 0]
    assert choose(long + make(40, 2), **{"training.steps": 50}) == [31, 10]
    assert choose(long, **{"data.max_words": 7}) == [7, 0]


def test_words_that_are_not_read_and_critics_that_see_nothing_are_warned_of(tmp_path, caplog):
    domain, path = PythonDomain(Sums), write(tmp_path / "examples.jsonl", make(40))
    config = tiny_config("execution-only", domain="sums", data__lengths=(0,), data__max_words=2)
    dataset = load_dataset(config.data, without_no_ops(domain), str(path), word_size=config.network.word)
    with caplog.at_level(logging.WARNING, "vbsix"):
        warn_about(dataset, sees_targets=True)
        warn_about_words(dataset)
    assert "Of the instructions, 100.0% in train, 100.0% in dev have more than 2 words; what" in caplog.text
    assert "Sums: has no describe_target(target)" in caplog.text
    assert "change nothing" not in caplog.text


def test_words_that_are_not_read_in_dev_alone_are_warned_of(tmp_path, caplog):
    path, dev = write(tmp_path / "examples.jsonl", make(40)), write(tmp_path / "dev.jsonl", make(4, words="so add one"))
    settings = {"data__lengths": (0,), "data__max_words": 3, "data__dev_file": str(dev)}
    config = tiny_config("execution-only", domain="sums", **settings)
    with caplog.at_level(logging.WARNING, "vbsix"):
        create_run(Run(tmp_path / "run", config, (0,), str(path)), PythonDomain(Sums))
    assert "Of the instructions, 0.0% in train, 100.0% in dev have more than 3 words; what" in caplog.text


@pytest.mark.parametrize(("most", "warned"), [(2, True), (20, False)])
def test_words_that_are_not_read_of_the_built_in_corpus_are_warned_of(tmp_path, caplog, most, warned):
    with caplog.at_level(logging.WARNING, "vbsix"):
        create_run(Run(tmp_path / "run", tiny_config(data__max_words=most), (0,), "synthetic"))
    assert (f"more than {most} words; what comes after that is not read" in caplog.text) == warned


@pytest.mark.parametrize(("vectors", "warned"), [(1, False), (3, True)])
def test_of_utterance_vectors_the_vectors_are_counted(tmp_path, caplog, vectors, warned):
    domain, path = PythonDomain(Sums), write(tmp_path / "examples.jsonl", make(40))
    config = tiny_config("execution-only", domain="sums", data__lengths=(0,), data__max_words=2)
    size = config.network.word
    texts = {text for row in read_json_lines(path, domain) for text in row.utterances}
    words = UtteranceVectors.from_vectors({text: np.ones((vectors, size)) for text in texts})
    dataset = load_dataset(config.data, domain, str(path), word_size=size, words=words)
    with caplog.at_level(logging.WARNING, "vbsix"):
        warn_about_words(dataset)
    assert ("100.0% in dev have more than 2 vectors; what comes after" in caplog.text) == warned
    assert "2 words" not in caplog.text


def test_a_run_whose_language_has_changed_is_refused(tmp_path):
    domain, path = PythonDomain(Sums), write(tmp_path / "examples.jsonl", make(40))
    config = tiny_config("execution-only", domain="sums", data__lengths=(0,), data__evaluation=(0,))
    create_run(Run(tmp_path / "run", config, (0,), str(path)), domain)
    run = open_run(tmp_path / "run")
    reordered = PythonDomain(type("Sums", (Sums,), {"tokens": ("two", "one", "same")}))
    with pytest.raises(VbsixError, match="its tokens differ: number 1 was 'one', now it is 'two'"):
        domain_of(run.config, run.folder, reordered, run.identity)
    wider = PythonDomain(type("Sums", (Sums,), {"attributes": {"sum": 21}}))
    with pytest.raises(VbsixError, match=r"its attributes differ: number 1 was \['sum', 20\], now it is \['sum', 21\]"):
        domain_of(run.config, run.folder, wider, run.identity)
    longer = PythonDomain(type("Sums", (Sums,), {"max_tokens_per_instruction": 2}))
    with pytest.raises(VbsixError, match="max_tokens_per_instruction was 1, now it is 2"):
        domain_of(run.config, run.folder, longer, run.identity)
    assert domain_of(run.config, run.folder, domain, run.identity) is domain


@pytest.mark.parametrize(
    "changed",
    [
        {"step": lambda self, state, token: (state[0] + 5, state[1] + 1)},
        {"denotation": lambda self, state: -state[0]},
        {"describe": lambda self, state: {"sum": 0}},
        {"start": lambda self, context: 1 / 0},
    ],
    ids=lambda changed: next(iter(changed)),
)
def test_a_run_or_a_model_whose_language_does_other_things_is_warned_of(tmp_path, caplog, changed):
    domain, path = PythonDomain(Sums), write(tmp_path / "examples.jsonl", make(40))
    run = Run(tmp_path / "run", tiny_config("execution-only", domain="sums", data__lengths=(0,)), (0,), str(path))
    create_run(run, domain)
    behaviour = open_run(run.folder).identity.behaviour
    assert behaviour is not None and len(behaviour.contexts) == 4
    (parser,) = make_parsers(domain, path, 1)
    parser = replace(parser, provenance={"recipe": "", "seed": 0}, behaviour=behaviour)
    parser.export(tmp_path / "model.safetensors")
    for language, warnings in ((domain, 0), (PythonDomain(type("Sums", (Sums,), changed)), 1)):
        with caplog.at_level(logging.WARNING, "vbsix"):
            domain_of(run.config, run.folder, language, open_run(run.folder).identity)
            loaded = vbsix.load(tmp_path / "model.safetensors", domain=language)
        assert caplog.text.count("the same programs do not do the same any more") == 2 * warnings
        assert loaded.behaviour == behaviour
    assert b"contexts" in (tmp_path / "model.safetensors").read_bytes()
    replace(parser, behaviour=None).export(tmp_path / "model.safetensors")
    assert b"contexts" not in (tmp_path / "model.safetensors").read_bytes()


def test_several_programs_from_a_context_notice_rarer_differences():
    seldom = type("Sums", (Sums,), {"denotation": lambda self, state: 99 if state[0] == 3 else state[0]})
    domain, changed = PythonDomain(Sums), PythonDomain(seldom)
    assert behave(domain, ["0"], walks=1) == behave(changed, ["0"], walks=1)
    assert behave(domain, ["0"]) != behave(changed, ["0"])


@pytest.mark.parametrize("contexts", [["1"] * 200_000, ["1" * 2001]], ids=["many", "long"])
def test_a_model_with_too_many_or_too_long_contexts_is_refused(tmp_path, contexts):
    domain = PythonDomain(Sums)
    (parser,) = make_parsers(domain, write(tmp_path / "examples.jsonl", make(40)), 1)
    parser = replace(parser, provenance={"recipe": "", "seed": 0}, behaviour=Behaviour(tuple(contexts), "0"))
    parser.export(tmp_path / "model.safetensors")

    class Untouched(Sums):
        def start(self, context):
            raise AssertionError("run on contexts of a stranger's file")

    with pytest.raises(VbsixError, match="not a model that `vbsix export` has written"):
        vbsix.load(tmp_path / "model.safetensors", domain=PythonDomain(Untouched))


@pytest.mark.parametrize("walks", [0, -1, 9, 10**9, float("inf"), 2.5, "8", None])
def test_a_number_of_programs_that_nobody_recorded_is_refused(walks):
    with pytest.raises(ValueError, match="programs for each"):
        read_identity({"behaviour": {"contexts": ["1"], "digest": "0", "walks": walks}})


def test_what_cannot_be_known_is_not_called_correct():
    assert is_spurious([True]) is None, "a single command has no world in between"
    assert is_spurious([False, True]) is True


def test_advice_for_json_lines_can_be_followed():
    assert "data.lengths" not in _advise(tiny_config(data__lengths=(0,)), 500)
    assert "data.lengths" in _advise(tiny_config(data__lengths=(1, 2)), 500)


@pytest.mark.integration
def test_in_a_fresh_process_an_unknown_sentence_is_not_certain(tmp_path):
    """From a run's folder, as a user would: five unknown words leave a parser that learned little unsure."""
    (tmp_path / "own.py").write_text(inspect.getsource(Sums))
    twos = [{**one, "target": one["target"] + 1} for one in make(15, words="put two")]
    write(tmp_path / "examples.jsonl", make(15) + twos)
    small = ["--steps=4", "--set=network.hidden=8", "--set=search.beam=4", "--set=run.evaluation_beam=4", "--quiet"]
    command = [sys.executable, "-m", "vbsix"]
    train = [*command, "train", "own:Sums", "--data=examples.jsonl", "--out=run", *small]
    subprocess.run(train, cwd=tmp_path, check=True)
    request = ["--domain=own:Sums", "--context=3", "das sind fünf deutsche Wörter", "--json", "--best=3"]
    done = subprocess.run([*command, "parse", "run", *request], cwd=tmp_path, check=True, capture_output=True)
    answer = json.loads(done.stdout)
    assert answer["confidence"] < 0.9
    assert len({reading["worlds"][-1] for reading in answer["readings"]}) == len(answer["readings"]) == 3


def test_large_whole_numbers_are_not_rounded():
    assert freeze(123456789012.0) == freeze(123456789012) != freeze(123456789013.0)
    assert freeze(0.1 + 0.2) == freeze(0.3) != freeze(0.31)
