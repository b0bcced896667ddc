"""A domain of the user's own on the command line, from examples to a model."""

from __future__ import annotations

import json
import sys

import pytest
from training.tiny import ARGUMENTS

import vbsix as package
from vbsix.cli import main
from vbsix.domains import registry

pytestmark = pytest.mark.integration


LANGUAGE = '''
class Sums:
    """Adds words up: `one` and `two` add, `end` ends an instruction."""

    tokens = ("one", "two", "end")
    max_tokens_per_instruction = 2
    attributes = {"sum": 20, "added": 3}

    def start(self, context):
        return (context, 0, 0)

    def step(self, state, token):
        total, added, done = state
        if token == "end":
            return (total, 0, done + 1) if added else None
        if total == 13:
            raise RuntimeError("thirteen is bad luck")
        return None if added else (total + 1 + (token == "two"), added + 1, done)

    def instructions_done(self, state):
        return state[2]

    def denotation(self, state):
        return state[0]

    def describe(self, state):
        return {"sum": min(state[0], 19), "added": state[1]}
'''
WAYS = {1: ["add one", "a single more"], 2: ["add two", "a pair more"]}
TINY = [*ARGUMENTS, "--set=data.lengths=[0]", "--set=data.evaluation=[0]", "--steps=6", "--quiet"]


def examples(first: int, count: int):
    for number in range(count):
        added = [1 + (number >> place) % 2 for place in range(1 + number % 2)]
        said = [WAYS[one][number // 4 % 2] for one in added]
        yield {"id": number, "context": first, "instructions": said, "target": first + sum(added)}


def write(path, *made):
    path.write_text("".join(json.dumps(example) + "\n" for example in made))
    return str(path)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder with a module, examples and a run."""
    folder = tmp_path_factory.mktemp("own")
    (folder / "own_sums.py").write_text(LANGUAGE)
    write(folder / "train.jsonl", *(example for first in range(8) for example in examples(first, 8)))
    write(folder / "dev.jsonl", *examples(8, 8))
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        patch.setattr("sys.argv", ["vbsix", "train", "own_sums:Sums", *TINY, "--data=train.jsonl", "--out=run"])
        with pytest.raises(SystemExit) as end:
            main()
    assert not end.value.code
    yield folder
    sys.modules.pop("own_sums", None)
    registry._registered.pop("sums", None)
    registry._origins.pop("sums", None)


@pytest.fixture
def here(folder, monkeypatch):
    monkeypatch.chdir(folder)
    return folder


@pytest.fixture
def stranger(here, monkeypatch):
    """As in a process that has not seen the domain yet."""
    monkeypatch.setattr(registry, "_registered", {})
    monkeypatch.setattr(registry, "_origins", {})
    monkeypatch.delitem(sys.modules, "own_sums")
    return here


def test_a_run_holds_what_runs_hold(here):
    result = json.loads((here / "run" / "result.json").read_text())
    assert result["domain"] == "sums"
    assert set(result["accuracy"]) == {"dev"}
    assert set(result["accuracy"]["dev"]) == {"all"}
    assert 0 <= result["accuracy"]["dev"]["all"][0] <= 1
    assert "own_sums" not in (here / "run" / "run.json").read_text(), "a run never says what code to run"


def test_evaluate_takes_the_held_out_share_and_other_files(here, vbsix):
    own = json.loads(vbsix("evaluate", "run", "--domain=own_sums:Sums", "--json").out)
    assert sum(own["examples"].values()) == 5
    other = vbsix("evaluate", "run", "--domain=own_sums:Sums", "--data=dev.jsonl", "--json")
    assert (other.code, json.loads(other.out)["examples"]) == (0, {"1": 4, "2": 4})
    assert (own["split"], json.loads(other.out)["split"]) == ("dev", "dev.jsonl")
    refused = vbsix("evaluate", "run", "--domain=own_sums:Sums", "--data=dev.jsonl", "--split=dev")
    assert (refused.code, "have no splits" in refused.err) == (2, True)


PARTS = """
import vbsix
from vbsix.models.encoder import UtteranceEncoder
from own_sums import Sums

vbsix.register_encoder("mine", type("Mine", (UtteranceEncoder,), {}))
Sums = type("Sums", (Sums,), {"name": "sums-mine"})
"""


def test_the_module_of_a_language_registers_parts(here, vbsix):
    (here / "own_parts.py").write_text(PARTS)
    ended = vbsix("train", "own_parts:Sums", *TINY, "--data=train.jsonl", "--out=mine", "--set=network.encoder=mine")
    assert (ended.code, ended.err) == (0, "")
    assert vbsix("parse", "mine", "--domain=own_parts:Sums", "--context=3", "add two").code == 0


def test_dev_needs_json_lines(here, vbsix):
    ended = vbsix("train", "tangrams", "--dev=dev.jsonl", "--out=nowhere")
    assert (ended.code, "--dev needs JSON lines" in ended.err) == (2, True)
    assert not (here / "nowhere").exists()


def test_parse_export_and_load_give_the_same(here, vbsix):
    request = ["--domain=own_sums:Sums", "--context=3", "add two", "--json"]
    from_run = vbsix("parse", "run", *request)
    reading = json.loads(from_run.out)["readings"][0]
    assert reading["worlds"] in (["4"], ["5"])
    assert vbsix("export", "run", "--domain=own_sums:Sums", "--out=model.safetensors").code == 0
    from_model = json.loads(vbsix("parse", "model.safetensors", *request).out)["readings"][0]
    assert from_model["tokens"] == reading["tokens"]
    parser = package.load("model.safetensors", domain=package.get_domain("sums"))
    assert list(parser.parse("3", ["add two"]).readings[0].tokens) == reading["tokens"]
    with pytest.raises(package.VbsixError, match="is for the domain 'sums', not for 'tangrams'"):
        package.load("model.safetensors", domain=package.get_domain("tangrams"))


def test_a_model_is_refused_where_its_domain_shows_something_else(here, vbsix, monkeypatch):
    assert vbsix("export", "run", "--domain=own_sums:Sums", "--out=shown.safetensors").code == 0
    language = package.get_domain("sums").language
    monkeypatch.setattr(language, "attributes", {"added": 3, "sum": 20}, raising=False)
    for path in ("run", "shown.safetensors"):
        with pytest.raises(package.VbsixError, match="its attributes differ"):
            package.load(path, domain=package.PythonDomain(language))
    ended = vbsix("train", "own_sums:Sums", "--resume=run", "--quiet")
    assert (ended.code, "its attributes differ" in ended.err) == (2, True)


@pytest.mark.parametrize(
    "command", [["parse", "run", "--context=3", "add"], ["evaluate", "run"], ["train", "--resume=run"]]
)
def test_no_code_runs_that_the_user_did_not_name(stranger, vbsix, command):
    ended = vbsix(*command)
    assert ended.code == 2
    assert "unknown domain 'sums'" in ended.err
    assert "MODULE:CLASS" in ended.err
    assert "Traceback" not in ended.err
    assert "own_sums" not in sys.modules


def test_resume_takes_the_domain_along(here, vbsix):
    assert vbsix("train", "own_sums:Sums", "--resume=run", "--quiet") == (0, "", "")
    ended = vbsix("train", "tangrams", "--resume=run")
    assert (ended.code, "is for the domain 'sums', not for 'tangrams'" in ended.err) == (2, True)


def test_execute_and_search_take_it(here, vbsix):
    report = json.loads(vbsix("execute", "own_sums:Sums", "--context=3", "two end", "--json").out)
    steps = [(step["world"], step["denotation"], step["commands"]) for step in report["steps"]]
    assert (report["context"], steps) == (3, [("5", 5, 0), ("5", 5, 1)])
    ended = vbsix("search", "own_sums:Sums", "--context=3", "--target=5", "add two", "--json", "--beam=4")
    assert [program["tokens"] for program in json.loads(ended.out)["programs"]] == [["two", "end"]]


def test_data_check_reads_the_examples_and_checks_the_domain(here, vbsix):
    ended = vbsix("data", "check", "train.jsonl", "--domain=own_sums:Sums", "--json")
    (file,) = json.loads(ended.out)["files"]
    assert (ended.code, file["rows"], file["problems"]) == (0, 64, [])
    path = write(here / "unlucky.jsonl", *examples(12, 8), {"context": 0})
    ended = vbsix("data", "check", path, "--domain=own_sums:Sums")
    assert (ended.code, '"instructions" is missing' in ended.err) == (2, True)
    path = write(here / "unlucky.jsonl", *examples(12, 8))
    ended = vbsix("data", "check", path, "--domain=own_sums:Sums")
    assert ended.code == 2
    assert f"raised RuntimeError: thirteen is bad luck ({here / 'own_sums.py'}:17); the state: '(13, " in ended.err
    assert vbsix("data", "check", path).code == 2


def test_a_step_that_raises_ends_a_run_with_one_message(here, vbsix):
    """One that the check at the beginning does not reach; as many examples as before, so nothing is compiled anew."""
    path = write(here / "late.jsonl", *examples(0, 40), *examples(12, 24))
    ended = vbsix("train", "own_sums:Sums", *TINY, f"--data={path}", "--out=unlucky")
    assert ended.code == 2
    assert ended.err.startswith(
        f"error: {path}:59: Sums.step(state, 'one') raised RuntimeError: thirteen is bad luck ("
    )
    assert "own_sums.py:17). The state: (13" in ended.err
    assert "Traceback" not in ended.err
