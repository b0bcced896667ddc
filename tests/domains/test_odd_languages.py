"""Languages in plain Python that are odd or wrong: each is searched, or refused with a reason."""

from __future__ import annotations

import itertools
import json
import time
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from reference.comparison import quick_jit
from training.tiny_config import tiny_config, tiny_dataset

from vbsix import InvalidDomain, InvalidWorld, PythonDomain, VbsixError, execute
from vbsix.data.dataset import Split
from vbsix.domains import python
from vbsix.domains.base import Domain
from vbsix.evaluation.accuracy import accuracy
from vbsix.evaluation.report import report
from vbsix.parsing.evaluation import predict_rows
from vbsix.parsing.loading import make_parser
from vbsix.runs.folder import Run
from vbsix.runs.loop import train
from vbsix.search import Problem, Programs, SearchConfig, program_search, search_graph
from vbsix.testing import check_domain
from vbsix.training.chunk import create_learners


class Counter:
    """Adds up to a target: `one` and `two` add, `end` ends an instruction."""

    tokens = ("one", "two", "end")
    max_tokens_per_instruction = 3
    attributes = {"sum": 12}

    def start(self, context):
        return (context, 0)

    def step(self, state, token):
        total, done = state
        if token == "end":
            return (total, done + 1)
        total += 1 if token == "one" else 2
        return (total, done) if total < 12 else None

    def instructions_done(self, state):
        return state[1]

    def denotation(self, state):
        return state[0]

    def describe(self, state):
        return {"sum": state[0]}

    def describe_target(self, target):
        return {"sum": target}


class Fresh(Counter):
    """States never repeat."""

    def start(self, context):
        return (context, 0, ())

    def step(self, state, token):
        after = super().step(state[:2], token)
        return after and (*after, (*state[2], token))


class DeadEnd(Counter):
    """At 1, every token is invalid."""

    def step(self, state, token):
        return None if state[0] == 1 else super().step(state, token)


class Click(Counter):
    """A single token."""

    tokens = ("end",)


class Dial(Counter):
    """Five hundred tokens."""

    tokens = tuple(f"{number}" for number in range(500))
    max_tokens_per_instruction = 1
    attributes = {"sum": 500}

    def step(self, state, token):
        return (int(token), state[1] + 1)


class Silent(Counter):
    """Describes nothing."""

    describe = property()  # as if it had none


def search(domain: Domain, context: str, target: str, instructions: int = 1, beam: int = 8) -> tuple[Programs, list]:
    """Programs found by a uniform policy, and their tokens."""
    count = len(domain.tokens)

    @quick_jit
    def run(world, target):
        return program_search(
            domain,
            lambda state, valid: jnp.full(count, -np.log(count), jnp.float32),
            None,
            Problem(world, jnp.int32(instructions), target),
            jax.random.key(0),
            instructions=instructions,
            config=SearchConfig(beam=beam, selection="epsilon-greedy", epsilon=0.0, program_beam=4),
        )[0]

    programs = jax.block_until_ready(run(domain.parse_world(context), domain.parse_target(target)))
    domain.raise_failure()
    found = [[domain.tokens[token] for token in row if token >= 0] for row in np.asarray(programs.tokens)]
    return programs, [tokens for tokens in found if tokens]


def test_a_single_instruction_and_several():
    domain = PythonDomain(Counter)
    check_domain(domain, ["0", "3"])
    assert search(domain, "0", "3")[1] == [["one", "two", "end"], ["two", "one", "end"]]
    _, found = search(domain, "2", "3", instructions=2)
    assert sorted(found) == [["end", "one", "end"], ["one", "end", "end"]]


def test_states_that_never_repeat():
    domain = PythonDomain(Fresh)
    check_domain(domain, ["0"])
    assert sorted(search(domain, "0", "3")[1]) == [["one", "two", "end"], ["two", "one", "end"]]


def test_every_token_invalid_at_some_state():
    domain = PythonDomain(DeadEnd)
    check_domain(domain, ["0"])
    assert search(domain, "0", "2")[1] == [["two", "end"]]
    with pytest.raises(InvalidDomain, match="No token is valid at the start of '1'"):
        check_domain(domain, ["1", "0"])


def test_a_single_token():
    domain = PythonDomain(Click)
    check_domain(domain, ["5"])
    programs, found = search(domain, "5", "5")
    assert found == [["end"]]
    assert programs.log_probability[0] == 0


def test_five_hundred_tokens():
    domain = PythonDomain(Dial)
    check_domain(domain, ["0"])
    assert search(domain, "0", "321", beam=4)[1] == [["321"]]


class Raising(Counter):
    def step(self, state, token):
        return {"one": (state[0] + 1, 0), "end": (state[0], 1)}[token] if state[0] else (1, 0)


@pytest.mark.parametrize(
    ("raised", "kind", "message"),
    [
        (SystemExit("stop"), VbsixError, "a search raised SystemExit: stop"),
        (KeyboardInterrupt("stop"), KeyboardInterrupt, "stop"),
    ],
    ids=["sys.exit", "Ctrl-C"],
)
def test_what_is_no_error_passes_through_compiled_code(raised, kind, message):
    class Ending(Counter):
        def step(self, state, token):
            raise raised

    domain = PythonDomain(Ending)
    for _ in range(2):
        with pytest.raises(kind, match=message) as caught:
            execute(domain, "1", ["one"])
    arrays = [value for entry in caught.traceback for value in entry.frame.f_locals.values()]
    assert not any(isinstance(value, np.ndarray) and value.base is not None for value in arrays)


def test_a_step_that_raises_is_told_with_token_and_state():
    domain = PythonDomain(Raising)
    with pytest.raises(VbsixError, match=r"Raising.step\(state, 'two'\) raised KeyError: 'two'.* The state: \(1, 0\)"):
        search(domain, "0", "3")
    with pytest.raises(InvalidDomain, match=r"step\(state, 'two'\) raised KeyError"):
        check_domain(domain, ["0"])
    with pytest.raises(VbsixError, match=r"step\(state, 'two'\) raised"):
        execute(domain, "0", "one one")
    assert search(PythonDomain(Counter), "0", "3")[1], "another domain is none the worse"


def test_a_finished_program_is_not_gone_on_with():
    class Strict(Counter):
        def step(self, state, token):
            assert not state[1], "the only instruction is done"
            return super().step(state, token)

    domain = PythonDomain(Strict)
    check_domain(domain, ["0"], instructions=1)
    assert search(domain, "0", "0")[1] == [["end"]]


@pytest.mark.parametrize("method", ["instructions_done", "denotation", "describe"])
def test_other_methods_that_raise_are_told_too(method):
    def fail(self, state):
        raise ValueError("out of order")

    domain = PythonDomain(type("Broken", (Counter,), {method: fail})())
    with pytest.raises(VbsixError, match=rf"Broken.{method}\(state\) raised ValueError: out of order"):
        execute(domain, "0", "one")


@pytest.mark.parametrize(
    ("name", "wrong", "told"),
    [
        ("instructions_done", 0.5, r"instructions_done\(state\) raised TypeError"),
        ("instructions_done", 1 << 40, "a search raised OverflowError"),
        ("observe", ([0, 0], []), r"observe\(state\) raised ValueError: 3 numbers, where .* make 2"),
    ],
)
def test_wrong_results_are_told_too(name, wrong, told):
    sizes = {"slots": 1, "objects": 0, "elements": 1, "values": 1, "attributes": {"sum": 1}}
    looks = {"observe_world": lambda self, state: [[0]], "observe_target": lambda self, target: [[0]]}
    members = {**(sizes | looks if name == "observe" else {}), name: lambda self, state: wrong}
    with pytest.raises(VbsixError, match=told):
        execute(PythonDomain(type("Wrong", (Counter,), members)), "0", "one")


def test_a_failure_is_told_once():
    domain = PythonDomain(Raising)
    for _ in range(2):
        with pytest.raises(VbsixError, match="raised KeyError"):
            execute(domain, "0", "one one")
    domain.raise_failure()


def test_each_thread_gets_its_own_failures(monkeypatch):
    domain, told = PythonDomain(Raising), PythonDomain.raise_failure
    monkeypatch.setattr(PythonDomain, "raise_failure", lambda self: time.sleep(0.002) or told(self))

    def outcome(program):
        try:
            return execute(domain, "0", program)[-1].world
        except VbsixError as error:
            return str(error)[:12]

    with ThreadPoolExecutor(2) as threads:
        found = list(threads.map(outcome, ["one one", "one"] * 20))
    assert found == ["Raising.step", "1"] * 20


def test_a_step_that_is_not_deterministic_is_refused():
    chance = itertools.cycle([0, 1, 2])

    class Fickle(Counter):
        def step(self, state, token):
            return (state[0] + next(chance), state[1] + (token == "end"))

    with pytest.raises(InvalidDomain, match="gave two different results when called twice"):
        check_domain(PythonDomain(Fickle), ["0"])


def test_states_that_cannot_be_compared_are_refused():
    class Box:
        def __init__(self, total):
            self.total = total

    class Boxed(Counter):
        def start(self, context):
            return Box(context)

    with pytest.raises(InvalidDomain, match="not equal when called twice"):
        check_domain(PythonDomain(Boxed), ["0"])

    class Listed(Counter):
        def start(self, context):
            return [context]

    with pytest.raises(InvalidDomain, match="unhashable"):
        check_domain(PythonDomain(Listed), ["0"])


class Narrow(NamedTuple):
    """Two parts, of which only the first is compared."""

    total: int
    done: int

    __eq__ = lambda self, other: self.total == other.total  # noqa: E731
    __hash__ = lambda self: hash(self.total)  # noqa: E731


def test_equal_states_that_behave_differently_are_refused():
    class Narrowed(Counter):
        def start(self, context):
            return Narrow(context, 0)

        def step(self, state, token):
            return (after := super().step(state, token)) and Narrow(*after)

    with pytest.raises(InvalidDomain, match="equal behave differently"):
        check_domain(PythonDomain(Narrowed), ["0"])

    class Moody(Narrowed):
        """What differs is which tokens are valid."""

        instructions_done = lambda self, state: 0  # noqa: E731
        step = lambda self, state, token: None if state.done else Narrow(state.total, 1)  # noqa: E731

    with pytest.raises(InvalidDomain, match="equal behave differently"):
        check_domain(PythonDomain(Moody), ["0"])


def test_a_step_that_changes_its_state_is_refused():
    class Cell(list):
        __hash__ = lambda self: 0  # noqa: E731

    class Careless(Counter):
        def start(self, context):
            return Cell([context, 0])

        def step(self, state, token):
            state.append(token)
            return Cell([0, 0])

    with pytest.raises(InvalidDomain, match=r"step\(state, 'one'\) changed the state"):
        check_domain(PythonDomain(Careless), ["0"])


def test_a_denotation_that_no_file_can_hold_is_refused():
    class Sets(Counter):
        def denotation(self, state):
            return frozenset([state[0]])

    with pytest.raises(InvalidDomain, match="which JSON does not have"):
        check_domain(PythonDomain(Sets), ["0"])


def test_training_and_evaluation_agree_on_what_is_equal(tmp_path):
    class Halved(Click):
        denotation = lambda self, state: state[0] / 2  # noqa: E731
        describe_target = lambda self, target: {}  # noqa: E731

    domain, path = PythonDomain(Halved), tmp_path / "examples.jsonl"
    lines = [{"context": 2, "instructions": [f"halve {n}"], "target": 1 if n % 2 else True} for n in range(20)]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    config = tiny_config("execution-only", domain=domain.name, data__lengths=(0,), data__evaluation=(0,))
    dataset = tiny_dataset(config, str(path), domain)
    learners, whole = create_learners(domain, config, jnp.array([0])), Split(dataset.train.rows)
    arrays = dataset.arrays(whole.examples(0))
    policies = learners.networks.policy
    share = accuracy(domain, policies, dataset.words.vectors, arrays, beam=2, batch=20)
    policy = jax.tree.map(lambda leaf: leaf[0], policies)
    found = report([predict_rows(make_parser(domain, policy, dataset.words, config, {}), whole.rows)])
    wanted = [sum(row.worlds[1] == "1" for row in whole.rows) / len(whole.rows)]
    assert share == found.accuracy["1"] == wanted
    assert 0 < wanted[0] < 1, "1.0 is 1, and is not true"


def test_an_attribute_that_was_not_declared_is_told():
    class Wrong(Counter):
        attributes = {"sum": ("none", "some")}

    with pytest.raises(VbsixError, match=r"describe\(state\) raised .*sum is 0, `attributes` has 'none', 'some'"):
        execute(PythonDomain(Wrong), "0", "one")

    class Undeclared(Counter):
        attributes = {"total": 12}

    with pytest.raises(VbsixError, match=r"\['sum'\] not in `attributes`"):
        execute(PythonDomain(Undeclared), "0", "one")


@pytest.mark.parametrize("lacking", ["start", "step", "instructions_done", "denotation"])
def test_a_class_that_lacks_a_method_is_told(lacking):
    with pytest.raises(VbsixError, match=f"has no method {lacking}"):
        PythonDomain(type("Lacking", (Counter,), {lacking: None})())


def test_a_context_that_start_does_not_take_is_an_invalid_world():
    class Picky(Counter):
        def start(self, context):
            return (int(context), 0)

    with pytest.raises(InvalidWorld, match="raised ValueError"):
        PythonDomain(Picky).parse_world("much")


@pytest.mark.parametrize("text", ['{"a": 1', "[1,", '"much', "[" * 100_000])
def test_half_of_json_is_no_text(text):
    with pytest.raises(InvalidWorld, match="not JSON"):
        PythonDomain(Counter).parse_world(text)


def test_worlds_can_be_given_as_json():
    check_domain(PythonDomain(Counter), [0, 3])
    with pytest.raises(InvalidWorld, match="neither a text nor JSON"):
        check_domain(PythonDomain(Counter), [{1, 2}])


@pytest.mark.parametrize(
    ("values", "told"), [(("a", None), "None"), (("a", "a"), "twice"), ([["a"]], "needs a list"), (0.5, "needs a list")]
)
def test_categories_that_cannot_be_told_apart_are_refused(values, told):
    with pytest.raises(VbsixError, match=f"sum .*{told}"):
        PythonDomain(type("Odd", (Counter,), {"attributes": {"sum": values}}))


def test_without_a_description_the_parts_of_a_state_are_seen():
    domain = PythonDomain(Silent)
    check_domain(domain, ["0"])
    states = [domain.start(domain.parse_world(text), 1) for text in ("0", "1", "0")]
    seen = [np.asarray(domain.observe(state).values).tolist() for state in states]
    assert seen[0] == seen[2] != seen[1]


@pytest.mark.parametrize("slots", [(), ("total", "done")])
def test_of_states_without_a_text_the_fields_are_seen(slots):
    class Plain:
        __slots__ = slots or ("__dict__",)

        def __init__(self, total, done):
            self.total, self.done = total, done

        __eq__ = lambda self, other: (self.total, self.done) == (other.total, other.done)  # noqa: E731
        __hash__ = lambda self: hash((self.total, self.done))  # noqa: E731
        __iter__ = lambda self: iter((self.total, self.done))  # noqa: E731
        __getitem__ = lambda self, place: (self.total, self.done)[place]  # noqa: E731

    class Plainly(Silent):
        def start(self, context):
            return Plain(context, 0)

        def step(self, state, token):
            return (after := super().step(state, token)) and Plain(*after)

    domain = PythonDomain(Plainly)
    check_domain(domain, ["0"])
    one, same, other = (domain.features.state(Plain(number, 0)) for number in (1, 1, 2))
    assert one == same != other


def test_a_state_that_has_no_lasting_text_is_refused():
    def held():
        pass

    class Holding(Silent):
        def start(self, context):
            return (context, 0, held)

    with pytest.raises(InvalidDomain, match=r"held at 0x.* give describe\(state\)"):
        check_domain(PythonDomain(Holding), ["0"])


@pytest.mark.parametrize("lacking", ["slots", "observe_target"])
def test_an_own_look_without_its_sizes_is_told(lacking):
    names = ("observe", "observe_world", "observe_target", "slots", "objects", "elements", "values")
    with pytest.raises(VbsixError, match=rf"with observe\(state\) goes {lacking}, which it lacks"):
        PythonDomain(type("Looking", (Counter,), {name: 1 for name in names if name != lacking}))


def test_old_states_are_dropped_when_there_are_too_many(monkeypatch):
    monkeypatch.setattr(python, "FULL_TABLE", 2)
    monkeypatch.setattr(python, "KEPT_STATES", 20)
    domain = PythonDomain(Silent)
    states = [domain.start(domain.parse_world(str(number)), 1) for number in range(60)]
    assert [domain.host_state(state) for state in states[-3:]] == [(57, 0), (58, 0), (59, 0)]
    assert sum(len(table.states) for table in domain._tables.values()) <= 22
    assert len(domain._denotations._numbers) <= 22
    with pytest.raises(VbsixError, match="no longer kept"):
        domain.host_state(states[0])
    domain.expand(states[0])
    with pytest.raises(VbsixError, match="no longer kept"):
        domain.raise_failure()


def test_contexts_and_targets_that_were_read_long_ago_are_forgotten(monkeypatch):
    monkeypatch.setattr(python, "KEPT_TEXTS", 20)
    monkeypatch.setattr(python, "FULL_TABLE", 20)
    monkeypatch.setattr(python, "KEPT_STATES", 20)
    domain = PythonDomain(type("Same", (Silent,), {"start": lambda self, context: (0, 0)}))
    first, kept = (domain.parse_world(text) for text in ("0", "1"))
    for number in range(1, 1000):
        domain.start(domain.parse_world(str(number)), 1)
        domain.parse_target(str(number))
        assert domain.format_world(domain.parse_world("1")) == domain.format_world(kept) == "1"  # it is in use
    assert max(len(domain._contexts), len(domain._context_numbers), len(domain._targets)) <= 20
    assert len(domain._denotations._numbers) <= 50
    assert all(table.size <= 21 for table in domain._tables.values()) and len(domain._tables) <= 5
    with pytest.raises(VbsixError, match="a context is no longer kept"):
        domain.format_world(first)
    domain.start(first, 1)
    with pytest.raises(VbsixError, match="a context is no longer kept"):
        domain.raise_failure()
    assert domain.format_world(domain.parse_world("0")) == "0"
    assert domain.matches(domain.start(domain.parse_world("0"), 1), domain.parse_target("0"))


def test_searches_go_on_when_the_first_states_are_forgotten(monkeypatch):
    """Empty places of a beam hold invalid successors, which must not point to states that are gone."""
    monkeypatch.setattr(python, "FULL_TABLE", 2)
    monkeypatch.setattr(python, "KEPT_STATES", 20)

    class NeverFirst(Counter):
        tokens = ("never", *Counter.tokens)
        step = lambda self, state, token: None if token == "never" else Counter.step(self, state, token)  # noqa: E731

    domain = PythonDomain(NeverFirst)
    for _ in range(8):
        assert search(domain, "0", "3")[1] == [["one", "two", "end"], ["two", "one", "end"]]
    assert 0 not in domain._tables


def test_what_one_search_finds_is_remembered_by_the_next():
    calls = []

    class Recorded(Counter):
        def step(self, state, token):
            calls.append((state, token))
            return super().step(state, token)

    domain = PythonDomain(Recorded)
    found = search(domain, "0", "3")[1]
    count = len(calls)
    assert search(domain, "0", "3")[1] == found
    assert len(calls) == count == len(set(calls)), "each state and token once"


def test_valid_tokens_saves_the_steps_with_the_others():
    calls = []

    class Knowing(Counter):
        def valid_tokens(self, state):
            return ("two", "end")

        def step(self, state, token):
            calls.append(token)
            return super().step(state, token)

    assert search(PythonDomain(Knowing), "0", "2")[1] == [["two", "end"]]
    assert "one" not in calls

    class Mistaken(Counter):
        def valid_tokens(self, state):
            return ("three",)

    with pytest.raises(VbsixError, match=r"valid_tokens\(state\) raised an error: 'three' is no token"):
        search(PythonDomain(Mistaken), "0", "2")


def test_one_callback_an_iteration_serves_all_examples_and_seeds(monkeypatch):
    calls = []
    expand, start = PythonDomain._expand_on_host, PythonDomain._start_on_host
    monkeypatch.setattr(
        PythonDomain, "_expand_on_host", lambda self, *given: calls.append("expand") or expand(self, *given)
    )
    monkeypatch.setattr(
        PythonDomain, "_start_on_host", lambda self, *given: calls.append("start") or start(self, *given)
    )
    domain = PythonDomain(Counter)
    worlds = np.array([domain.parse_world(text) for text in ("0", "1", "2")])
    target = domain.parse_target("3")

    def search(preference, world):
        return search_graph(
            domain,
            lambda state, valid: jax.nn.log_softmax(preference * jnp.arange(3, dtype=jnp.float32)),
            lambda state: domain.observe_world(state)[0, 0] / 12,
            Problem(world, jnp.int32(2), target),
            jax.random.key(0),
            instructions=2,
            config=SearchConfig(beam=4, selection="epsilon-greedy", rerank=8),
        ).hit

    seeds = jax.vmap(jax.vmap(search, in_axes=(None, 0)), in_axes=(0, None))
    hits = np.asarray(quick_jit(seeds)(jnp.array([0.1, -0.1]), worlds))
    domain.raise_failure()
    assert hits.shape == (2, 3)
    assert calls == ["start"] + ["expand"] * 2 * domain.max_tokens_per_instruction


@pytest.mark.slow
@pytest.mark.parametrize("language", [Counter, Fresh, DeadEnd, Click, Dial, Silent])
def test_it_trains(language, tmp_path):
    from training.tiny import Watcher

    domain = PythonDomain(language)
    target = 7 if language is Dial else 2
    path = tmp_path / "examples.jsonl"
    example = {"context": 2, "instructions": ["as it is"], "target": target}
    path.write_text("".join(json.dumps({**example, "instructions": [f"as it is {n}"]}) + "\n" for n in range(20)))
    config = tiny_config("execution-only", domain=domain.name, data__lengths=(0,), data__evaluation=(0,))
    dataset, watcher = tiny_dataset(config, str(path), domain), Watcher()
    trained = train(Run(tmp_path / "run", config, (0, 1), str(path)), dataset, watcher)
    assert all(row["hit"] > 0 for row in watcher.rows)
    assert watcher.rows[-1]["policy_loss"] < watcher.rows[0]["policy_loss"] or len(domain.tokens) == 1
    assert trained.accuracies["dev"]["all"] == [1.0, 1.0]


def test_a_language_may_not_be_named_like_a_built_in_one():
    """Its worlds would be drawn, and its data generated, as those of the other."""
    named = type("Scene", (Click,), {})
    with pytest.raises(VbsixError, match="scene: this is the name of a built-in domain"):
        PythonDomain(named)
    PythonDomain(type("Scene", (Click,), {"name": "theatre"}))
