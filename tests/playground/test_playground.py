"""The playground's models and searches, and its API as a stranger uses it."""

from __future__ import annotations

import functools
import itertools
import json
import re
import sys
from dataclasses import replace
from pathlib import Path

import httpx
import jax
import numpy as np
import pytest
from asgi import call
from playground.conftest import MODEL, OTHER, ROW, SAID
from tiny_run import SETTINGS, make_run

import vbsix
from vbsix import PythonDomain, VbsixError
from vbsix.data.json_lines import read_json_lines
from vbsix.models import Policy
from vbsix.parsing.loading import PRETRAINED, find_model, make_ensemble
from vbsix.playground import answers
from vbsix.playground.answers import answer_attention, answer_parse
from vbsix.playground.app import create_app
from vbsix.playground.examples import EXAMPLES, GUIDED
from vbsix.playground.feedback import Feedback
from vbsix.playground.messages import AttentionRequest, FeedbackRequest, ParseRequest
from vbsix.playground.models import Model, load_models
from vbsix.playground.preparing import Preparation, compile_parses, compile_searches, in_order
from vbsix.playground.searching import search
from vbsix.utilities.renaming import note_old_name

sys.path.insert(0, str(Path(__file__).parents[2] / "docs" / "scripts"))
from playground_examples import is_right, wins

pytestmark = pytest.mark.integration


TARGET = "1:0 2:3 3:4"
builtin = functools.cache(vbsix.load)
"""Loads a built-in model once for all tests, so that it is compiled once."""


# What the models are, and what searches say about the critic.


def test_names_are_unique_and_each_seed_is_a_model(models, run_folder, tmp_path):
    exported = tmp_path / "tiny.safetensors"
    models[MODEL].parser.export(exported)
    loaded = load_models([run_folder, exported, exported])
    assert loaded[MODEL].accuracy and not loaded["tiny"].accuracy
    assert list(loaded) == [MODEL, OTHER, "tiny", "tiny (2)"]
    assert [model.parser.critic is not None for model in loaded.values()] == [True, True, False, False]


def test_an_exported_critic_scores_states_as_its_run_does(models, tmp_path):
    parser = models[MODEL].parser
    parser.export(tmp_path / "tiny.safetensors", critic=True)
    (exported,) = load_models([tmp_path / "tiny.safetensors"]).values()
    own, other = (
        [
            (one.tokens, one.value)
            for one in search(model, ROW, TARGET, SAID, space="execution", beam=64, critic=True)[0].states
        ]
        for model in (models[MODEL], exported)
    )
    assert own == other and any(value is not None for _, value in own)
    with pytest.raises(VbsixError, match="this model has no critic"):
        replace(parser, critic=None).export(tmp_path / "other.safetensors", critic=True)


@pytest.mark.parametrize("count", [1, 2])
def test_the_critic_s_window_is_the_last_two_instructions(models, count):
    """Its scores are probabilities, and with one or two instructions all unfinished states have one."""
    model = models[MODEL]
    listed, _ = search(model, ROW, TARGET, SAID[:count], space="execution", beam=64, critic=True)
    values = [state.value for state in listed.states if state.kind in ("beam", "pruned")]
    assert values and all(value is not None and 0 < value < 1 for value in values)
    assert len(set(values)) > 2
    assert all(state.value is None for state in listed.states if state.kind in ("correct", "incorrect"))


def test_outside_of_the_critic_s_window_there_are_no_values(models):
    model = models[MODEL]
    listed, drawn = search(model, ROW, TARGET, [*SAID, SAID[0]], space="execution", beam=64, critic=True)
    for state in listed.states:
        inside = state.kind in ("beam", "pruned") and state.instructions_done >= 1
        assert (state.value is not None) == inside
    assert len(drawn.states) <= 28


def test_an_ensemble_searches_too(run_folder, tmp_path):
    exported = tmp_path / "ensemble.safetensors"
    vbsix.load(run_folder, ensemble=True).export(exported)
    (model,) = load_models([exported]).values()
    listed, _ = search(model, ROW, TARGET, SAID[:1], space="execution", beam=64, critic=False)
    assert listed.iterations[0].kept > 1


def test_errors_of_an_own_language_are_reported(models):
    class Broken:
        tokens, max_tokens_per_instruction = ("go", "stop"), 2

        def start(self, context):
            return (context, 0)

        def step(self, state, token):
            raise RuntimeError("it is broken")

        def instructions_done(self, state):
            return state[1]

        def denotation(self, state):
            return state[0]

    domain, parser = PythonDomain(Broken), models[MODEL].parser
    policy = Policy(domain, parser.config.network, key=jax.random.key(0))
    own = replace(parser, domain=domain, policy=policy, critic=None)
    with pytest.raises(VbsixError, match="it is broken"):
        search(Model("own", own), "3", "4", ["go on"], space="execution", beam=4, critic=False)


def test_all_searches_are_compiled_behind_the_scenes(models, monkeypatch):
    seen = []
    monkeypatch.setattr("vbsix.playground.answers.answer_search", lambda model, request: seen.append(request))
    compile_searches(models)
    asked = {(one.model, one.beam, one.critic) for one in seen}
    assert asked == set(itertools.product(models, (4, 16, 64), (True, False)))
    assert (seen[0].beam, seen[0].critic) == (16, True)


def test_models_are_prepared_one_after_the_other(models, monkeypatch):
    told, compiled = [], []
    monkeypatch.setattr(
        "vbsix.playground.preparing.compile_parses", lambda model, room: compiled.append((model.name, room))
    )
    monkeypatch.setattr("vbsix.playground.preparing.compile_searches", lambda models: told.append("searches"))
    prepared = Preparation()
    assert prepared.words and prepared.words.startswith("loading the models (")
    prepared._prepare(lambda: models, told.append, lambda: told.append("failed"))
    fewest = answers.ROOMS[0]
    assert (compiled, prepared.ready, prepared.words) == ([(MODEL, fewest), (OTHER, fewest)], set(models), None)
    assert [line.partition(" after")[0] for line in told] == [
        f"{MODEL} is ready",
        f"{OTHER} is ready",
        "searches",
        "searches with any beam are ready",
    ]


def test_one_model_of_each_domain_is_prepared_first(all_models):
    assert [model.name for model in in_order(all_models.values())] == [MODEL, "alchemy", "scene", OTHER]


def test_models_that_cannot_be_loaded_end_the_server():
    def load():
        raise VbsixError("damaged")

    told, prepared = [], Preparation()
    prepared._prepare(load, told.append, lambda: told.append("failed"))
    assert told == ["failed"] and str(prepared.failure) == "damaged" == prepared.words


# The API, as a stranger uses it.

GOOD = {"model": MODEL, "world": ROW, "utterances": SAID[:1]}


@pytest.mark.parametrize(
    ("path", "more"),
    [("parse", {}), ("search", {"target": ROW}), ("attention", {"commands": ["all-objects 2 index ARemove"]})],
)
def test_a_model_that_is_not_ready_asks_for_patience(models, path, more):
    prepared = Preparation(models)
    prepared.ready = {OTHER}
    answer = call(create_app(prepared), "POST", f"/api/{path}", json={**GOOD, **more})
    assert (answer.status_code, answer.json()["detail"]) == (503, f"{MODEL} is being prepared; try again soon.")
    assert int(answer.headers["Retry-After"]) > 0


def test_a_model_that_is_not_ready_hinders_no_other_one(models):
    prepared = Preparation(models)
    prepared.ready = {OTHER}
    app = create_app(prepared)
    other = call(app, "POST", "/api/parse", json={**GOOD, "model": OTHER, "explain": False})
    assert other.status_code == 200 and other.json()["readings"]
    drawn = call(app, "POST", "/api/parse", json={**GOOD, "utterances": []})
    assert drawn.status_code == 200 and list(drawn.json()["pictures"]) == [ROW]


def test_while_models_are_loaded_no_name_is_called_unknown():
    answer = call(create_app(Preparation()), "POST", "/api/parse", json=GOOD)
    assert (answer.status_code, answer.json()["detail"]) == (503, "the models are being loaded; try again soon.")
    assert int(answer.headers["Retry-After"]) > 0


@pytest.mark.parametrize(
    ("body", "status", "words"),
    [
        ({**GOOD, "world": "1:0 2:7"}, 422, "context: position 2 ('7'): expected a shape"),
        ({**GOOD, "world": "x" * 4001}, 422, "world: String should have at most 4000 characters"),
        ({**GOOD, "utterances": ["go"] * 10_000}, 422, "utterances: List should have at most 10 items"),
        ({**GOOD, "utterances": ["x" * 301]}, 422, "utterances.0: String should have at most 300 characters"),
        ({**GOOD, "utterances": ["  "]}, 422, "instruction 1 is empty"),
        ({**GOOD, "utterances": ["\x00"]}, 200, ""),
        ({**GOOD, "begin": ["1 AJump"]}, 422, "unknown token 'AJump'"),
        ({**GOOD, "begin": ["1 " * 100]}, 422, "the commands to begin with have 100 tokens, more than"),
        ({**GOOD, "utterances": ["x" * 3_000_000]}, 413, "more than 65536 bytes"),
        ({**GOOD, "utterances": "go"}, 422, "utterances: Input should be a valid list"),
        ({**GOOD, "world": 3}, 422, "world: Input should be a valid string"),
        ({"model": MODEL, "context": ROW, "instructions": SAID[:1]}, 200, ""),
        ({"model": MODEL, "instructions": SAID[:1]}, 422, "context: Field required"),
        ({**GOOD, "wordl": ROW}, 422, "wordl: Extra inputs are not permitted"),
        ({**GOOD, "wordl" * 12_000: ROW}, 422, "wordlwordl"),
        ({**GOOD, "model": "nobody"}, 404, "unknown model 'nobody'"),
        ({**GOOD, "model": "../tiny"}, 404, "unknown model"),
        ({**GOOD, "model": "/etc/passwd"}, 404, "unknown model"),
        ({}, 422, "model: Field required"),
        ([], 422, "Input should be a valid dictionary"),
        (b"{", 400, "not JSON"),
        (b'{"model": "\\ud800"}', 422, "model"),
        (b"[" * 20_000, 400, "not JSON"),
        (b"\xff", 400, ""),
    ],
)
def test_bad_requests_are_told_what_is_wrong(server, body, status, words):
    content = body if isinstance(body, bytes) else json.dumps(body)
    answer = httpx.post(f"{server}/api/parse", content=content, headers={"Content-Type": "application/json"})
    assert answer.status_code == status, answer.text
    assert status == 200 or words in answer.json()["detail"]
    assert status == 200 or len(answer.text) < 500


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"beam": 5}, "beam: Input should be 4, 16 or 64"),
        ({"utterances": []}, "utterances: List should have at least 1 item"),
        ({"utterances": ["go"] * 6}, "utterances: List should have at most 5 items"),
        ({"utterances": ["go", "  "]}, "instruction 2 is empty"),
        ({"target": "1:0 1:1"}, "target: element 2 ('1:1'): expected position 2, in order"),
    ],
)
def test_bad_searches_are_told_what_is_wrong(server, change, words):
    answer = httpx.post(f"{server}/api/search", json={**GOOD, "target": ROW, **change})
    assert (answer.status_code, answer.json()["detail"][: len(words)]) == (422, words)


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", "/api/parse", 405),
        ("DELETE", "/api/models", 405),
        ("GET", "/api/nothing", 404),
        ("GET", "/static/../app.py", 404),
        ("GET", "/static/%2e%2e/app.py", 404),
        ("GET", "/static/..%2fapp.py", 404),
        ("GET", "/static//etc/passwd", 404),
        ("GET", "/api/random?model=..%2f..%2fetc%2fpasswd", 404),
        ("GET", "/api/random", 422),
    ],
)
def test_what_is_not_there_cannot_be_had(server, method, path, status):
    assert httpx.request(method, server + path).status_code == status


def test_only_this_machine_is_answered(server):
    """A page of another site that gets its own name to mean 127.0.0.1 is refused."""
    refused = httpx.get(f"{server}/api/models", headers={"Host": "evil.example"})
    assert (refused.status_code, refused.json()) == (400, {"detail": "this server does not answer to that name."})
    for name in ("localhost:8000", "[::1]:8000"):
        assert httpx.get(f"{server}/api/models", headers={"Host": name}).status_code == 200
    answer = httpx.get(f"{server}/")
    assert "default-src 'none'" in answer.headers["Content-Security-Policy"]
    assert not re.search(r"(src|href)=\"(https?:)?//", answer.text)


def test_models_say_where_they_come_from(server):
    first, second, *_ = httpx.get(f"{server}/api/models").json()["models"]
    assert (first["name"], second["name"]) == (MODEL, OTHER)
    assert (first["domain"], first["critic"]) == ("tangrams", True)
    assert first["provenance"]["steps"] == 7
    assert [one["title"] for one in first["examples"]] == [one.title for one in EXAMPLES["tangrams"]]
    assert first["ready"] and first["random"]
    assert (first["accuracy"], first["accuracy_split"]) == ({"1": 0.6}, "dev")


@pytest.mark.parametrize("domain", EXAMPLES)
def test_built_in_models_say_how_good_they_are_on_test(domain):
    (model,) = load_models([find_model(domain)]).values()
    card = (PRETRAINED / f"{domain}.md").read_text(encoding="utf-8")
    *_, after_3, after_5 = next(line for line in card.splitlines() if line.startswith("| test")).strip("| ").split("|")
    stated = {"3": float(after_3), "5": float(after_5)}
    assert (model.accuracy_split, model.parser.provenance["data"]) == ("test", "SCONE")
    assert {length: round(100 * model.accuracy[length], 1) for length in stated} == stated


def test_languages_that_remember_where_have_the_examples_of_the_paper(models, monkeypatch):
    where = replace(models[MODEL].parser, domain=vbsix.get_domain("tangrams-where"))
    (known,) = call(create_app({"where": Model("where", where)}), "GET", "/api/models").json()["models"]
    assert known["domain"] == "tangrams-where" and known["examples"]


def test_readings_are_grouped_by_outcome(server):
    answer = httpx.post(f"{server}/api/parse", json=GOOD).json()
    ends = [reading["commands"][-1]["world"] for reading in answer["readings"]]
    assert sorted(place for one in answer["outcomes"] for place in one["readings"]) == list(range(len(ends)))
    for outcome in answer["outcomes"]:
        assert {ends[place] for place in outcome["readings"]} == {outcome["world"]}
        assert {answer["readings"][place]["confidence"] for place in outcome["readings"]} == {outcome["confidence"]}
    assert sum(one["confidence"] for one in answer["outcomes"]) <= 1.0001
    assert answer["understood"] == (not any(one["doubtful"] for one in answer["readings"][0]["commands"]))


@pytest.mark.parametrize("domain", EXAMPLES)
def test_the_built_in_models_get_the_examples_right(domain):
    """And understand them; those whose known target is a world of the domain."""
    parser = builtin(domain)
    for one in EXAMPLES[domain]:
        parser.domain.parse_target(one.target)
        assert is_right(parser, one), one.title


def test_an_example_with_a_wrong_outcome_is_not_right():
    (one, *_) = EXAMPLES["tangrams"]
    assert not is_right(builtin("tangrams"), replace(one, target=one.world))


@pytest.mark.parametrize(
    ("name", "one"),
    [
        pytest.param(name, one, marks=pytest.mark.slow if name == "alchemy" else ())  # as in tangrams, states merge
        for name, every in GUIDED.items()
        for one in every
    ],
)
def test_guided_searches_show_what_they_say(name, one):
    """The program passes through the known worlds; without merging, or without the critic, there is none."""
    (model,) = load_models([find_model(name)]).values()
    assert wins(model, one)
    assert not wins(model, replace(one, worlds=(one.world, *one.worlds[1:])))  # through another world
    assert not wins(model, replace(one, utterances=one.utterances[:1], worlds=one.worlds[:1]))  # easy without either


@pytest.mark.parametrize(
    ("domain", "world", "utterance", "reason"),
    [
        ("tangrams", "1:0 2:1", "swap the first and fourth figures", "there is no fourth figure"),
        ("alchemy", "1:ggg 2:_ 3:yo 4:_ 5:rr 6:y 7:pppp", "throw out the second beaker", "beaker 2 is empty"),
        ("alchemy", "1:ggg 2:_ 3:_ 4:_ 5:_ 6:y 7:pppp", "pour the first beaker into the last one", "beaker 7 is full"),
        ("alchemy", "1:ggg 2:_ 3:yo 4:_ 5:rr 6:y 7:pp", "pour the green beaker into the last one", "room for 2, not 3"),
        ("scene", "1:r_ 2:__ 3:__ 4:by 5:__ 6:__ 7:go 8:__ 9:__ 10:__", "the man with the purple hat leaves", "purple"),
        ("scene", "1:r_ 2:__ 3:__ 4:by 5:__ 6:__ 7:go 8:__ 9:__ 10:__", "the man in green leaves", None),
        ("alchemy", "1:ggg 2:_ 3:yo 4:_ 5:rr 6:y 7:pppp", "throw out the orange beaker", "no beaker holds only orange"),
        ("alchemy", "1:g 2:_ 3:yo 4:_ 5:rr 6:y 7:pp", "pour the first beaker into the last one", None),
        ("alchemy", "1:o 2:y 3:_ 4:g 5:g 6:y 7:ggg", "pour out one part of the last green chemical", None),
        ("alchemy", "1:ggg 2:_ 3:yo 4:_ 5:rr 6:y 7:pppp", "mix the first beaker", None),
        ("alchemy", "1:ggg 2:_ 3:yo 4:_ 5:rr 6:y 7:pppp", "throw out the first beaker", None),
        ("alchemy", "1:ggg 2:_ 3:yo 4:_ 5:rr 6:y 7:pppp", "please book a flight to Paris", None),
    ],
)
def test_what_cannot_be_done_says_why(domain, world, utterance, reason):
    model = Model(domain, builtin(domain))
    answer = answer_parse(model, ParseRequest(model=domain, world=world, utterances=[utterance]))
    (found,) = answer.reasons
    assert found is None if reason is None else found is not None and reason in found
    assert reason is None or not answer.understood


def test_a_command_that_leaves_out_a_hat_is_doubtful_and_not_called_impossible():
    """In SCONE nobody comes with a hat, so the model does not know that this can be done."""
    world, text = "1:__ 2:__ 3:__ 4:by 5:__ 6:__ 7:go 8:__ 9:__ 10:__", "a man in a green shirt and a red hat appears"
    asked = ParseRequest(model="scene", world=world, utterances=[f"{text} on the far left"])
    answer = answer_parse(Model("scene", builtin("scene")), asked)
    (command,) = answer.readings[0].commands
    assert "red hat" not in (command.words or "")
    assert (command.doubtful, answer.understood, answer.reasons) == (True, False, [None])


# Corrections.


def test_attention_is_to_the_words_of_each_instruction(models):
    """The attention of an ensemble is the mean of its members'."""
    commands = ["all-objects 2 index ARemove", "all-objects 1 index all-objects -1 index ASwap"]

    def weights(model: Model) -> list[np.ndarray]:
        asked = AttentionRequest(model=model.name, world=ROW, utterances=SAID, commands=commands)
        answer = answer_attention(model, asked)
        assert [[one.token for one in command] for command in answer.commands] == [text.split() for text in commands]
        return [np.array([one.weights for one in command]) for command in answer.commands]

    members = [weights(model) for model in models.values()]
    for of_first, of_second in members:
        assert (of_first.shape, of_second.shape) == ((4, 4), (7, 7))
        np.testing.assert_allclose([*of_first.sum(1), *of_second.sum(1)], 1, atol=1e-3)
    ensemble = Model("both", make_ensemble([model.parser for model in models.values()]))
    for mean, one, other in zip(weights(ensemble), *members, strict=True):
        np.testing.assert_allclose(mean, (one + other) / 2, atol=2e-4)
        assert np.abs(one - other).max() > 1e-3


def test_a_command_with_more_than_its_share_of_tokens_has_attention():
    """The limit holds for a whole program, so a short command leaves tokens for a long one."""
    model, example = Model("scene", builtin("scene")), EXAMPLES["scene"][0]
    commands = ["g PShirt ALeave", "all-objects 1 index all-objects 2 index PRight AMove"]
    assert len(commands[1].split()) > model.parser.domain.max_tokens_per_instruction
    asked = AttentionRequest(model="scene", world=example.world, utterances=list(example.utterances), commands=commands)
    found = answer_attention(model, asked).commands
    assert [[one.token for one in command] for command in found] == [text.split() for text in commands]


def test_requests_for_attention_accept_new_names_and_old_ones_with_a_note(server, caplog):
    commands = ["all-objects 2 index ARemove"]
    new = {"model": MODEL, "context": ROW, "instructions": SAID[:1], "commands": commands}
    old = {"model": MODEL, "world": ROW, "utterances": SAID[:1], "commands": commands}
    answers = [httpx.post(f"{server}/api/attention", json=body, timeout=60) for body in (new, old)]
    assert [answer.status_code for answer in answers] == [200, 200]
    assert answers[0].json() == answers[1].json()
    note_old_name.cache_clear()
    httpx.post(f"{server}/api/attention", json=new, timeout=60)
    assert caplog.messages == []
    httpx.post(f"{server}/api/attention", json=old, timeout=60)
    httpx.post(f"{server}/api/attention", json=old, timeout=60)
    assert caplog.messages == [  # once
        'note: "world" is now called "context".',
        'note: "utterances" is now called "instructions".',
    ]


def test_preparing_asks_by_the_new_names(caplog):
    """Notes come once, so those about the server's own requests would hide a client's."""
    note_old_name.cache_clear()
    model = Model("tangrams", builtin("tangrams"))
    compile_parses(model, 1)
    assert caplog.messages == []


def test_tokens_for_where_something_was_are_shown_like_others(tmp_path):
    """A run of a language that has them: the figure goes back to where it was."""
    make_run(tmp_path / "where", (6,), SETTINGS | {"domain": "tangrams-where", "run.evaluation_beam": 8})
    (model,) = load_models([tmp_path / "where"]).values()
    commands = ["all-objects 2 index ARemove", "1 W1 1 H1 AAdd"]
    asked = {"model": model.name, "world": ROW, "utterances": ["remove the second figure", "put it back"]}
    shown = answer_parse(model, ParseRequest(**asked, begin=commands)).readings[0].commands
    assert [" ".join(one.tokens) for one in shown] == commands
    assert shown[0].world != ROW and shown[1].world == ROW
    assert shown[1].words == "put the removed figure back in second place"
    found = answer_attention(model, AttentionRequest(**asked, commands=commands))
    assert [one.token for one in found.commands[1]] == commands[1].split()


@pytest.mark.parametrize(
    ("commands", "words"),
    [
        (["all-objects 2 index ARemove"] * 2, "2 commands for 1 instructions"),
        (["2 nonsense"], "nonsense"),
        (["ASwap"], "ASwap"),
        ([" "], "each has at least one token"),
        (["1 " * 8], "all together have up to 7"),
        (["all-objects 2 index"], "each must be one whole command"),
    ],
)
def test_attention_of_wrong_programs_is_refused(models, commands, words):
    request = AttentionRequest(model=MODEL, world=ROW, utterances=["remove it"], commands=commands)
    with pytest.raises(VbsixError, match=words):
        answer_attention(models[MODEL], request)


def test_corrections_are_saved_as_examples_to_learn_from(models, tmp_path):
    app, path = create_app(models, feedback=tmp_path), tmp_path / "tangrams.jsonl"
    assert call(app, "GET", "/api/models").json()["feedback"]
    for number in (1, 2):
        saved = call(app, "POST", "/api/feedback", json={**GOOD, "target": TARGET})
        assert (saved.status_code, saved.json()) == (200, {"saved": number})
    first, second = read_json_lines(path, vbsix.get_domain("tangrams"))
    assert (first.worlds, first.utterances) == ((ROW, TARGET), tuple(SAID[:1])) and second.id == "2"


def test_wrong_corrections_are_refused(models, tmp_path, server):
    refused = call(create_app(models, feedback=tmp_path), "POST", "/api/feedback", json={**GOOD, "target": "1:9"})
    assert refused.status_code == 422 and refused.json()["detail"].startswith("target: position 1 ('9')")
    blank = {**GOOD, "utterances": [*SAID, " \u2028"], "target": TARGET}
    empty = call(create_app(models, feedback=tmp_path), "POST", "/api/feedback", json=blank)
    assert (empty.status_code, empty.json()["detail"]) == (422, "instruction 3 is empty.")
    assert not list(tmp_path.iterdir())
    off = httpx.post(f"{server}/api/feedback", json={**GOOD, "target": TARGET})
    assert off.status_code == 404 and "--feedback" in off.json()["detail"]


def test_only_json_is_accepted(server):
    """A page of another site can send anything else without asking first."""
    answer = httpx.post(f"{server}/api/parse", content=json.dumps(GOOD), headers={"content-type": "text/plain"})
    assert answer.status_code == 415 and "application/json" in answer.json()["detail"]


def test_corrections_of_a_python_language_hold_values(tmp_path):
    class Counter:
        tokens, max_tokens_per_instruction = ("up",), 1

        def start(self, context):
            return (context["n"], 0)

        def step(self, state, token):
            return (state[0] + 1, state[1] + 1)

        def instructions_done(self, state):
            return state[1]

        def denotation(self, state):
            return {"n": state[0]}

    model = Model("counter", replace(vbsix.load("tangrams"), domain=PythonDomain(Counter)))
    request = FeedbackRequest(model="counter", world='{"n": 1}', utterances=["one more"], target='{"n": 2}')
    assert Feedback(tmp_path).save(model, request) == 1
    (row,) = read_json_lines(next(tmp_path.iterdir()), vbsix.PythonDomain(Counter))
    assert row.worlds == ('{"n": 1}', '{"n": 2}')


def test_the_page_answers_head(server):
    assert httpx.head(f"{server}/").status_code == httpx.head(f"{server}/docs").status_code == 200
