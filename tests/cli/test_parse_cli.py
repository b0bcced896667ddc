from __future__ import annotations

import io
import json
import math

import pytest
from tiny_run import SEEDS

import vbsix as library
from vbsix.cli.parse import _print_readings
from vbsix.parsing.parser import Parser
from vbsix.search.prediction import Parse, Reading
from vbsix.utilities.renaming import note_old_name

pytestmark = pytest.mark.integration


ROW = "1:0 2:3 3:4"
UTTERANCE = "swap figure 1 and figure 3"


@pytest.fixture(scope="module")
def run(tiny_run) -> str:
    return str(tiny_run.run.folder)


@pytest.fixture(scope="module")
def parser(run) -> Parser:
    return library.load(run, SEEDS[0])


@pytest.fixture
def ask(vbsix, run):
    def call(*arguments: str):
        return vbsix("parse", run, "--seed", str(SEEDS[0]), "--context", ROW, *arguments)

    return call


@pytest.fixture
def pipe(vbsix, run, monkeypatch):
    """Gives lines to `vbsix parse` and returns its answers."""

    def call(lines: bytes, *options: str) -> list[dict]:
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(lines)))
        ended = vbsix("parse", run, "--seed", str(SEEDS[0]), *options)
        assert (ended.code, ended.err) == (0, "")
        return [json.loads(line) for line in ended.out.splitlines()]

    return call


def test_commands_and_worlds_are_printed(ask, parser):
    reading = parser.parse(ROW, [UTTERANCE]).readings[0]
    ended = ask(UTTERANCE)
    assert (ended.code, ended.err) == (0, "Not understood: this is a guess.\n")  # nothing was learned
    assert f"\n{UTTERANCE}\n{reading.commands[0]}\n" in ended.out
    assert ended.out.count("position") == 2
    assert ended.out.endswith(f"\nconfidence {reading.confidence:.0%}\n\n")


def test_readings_that_end_in_one_world_are_one_outcome(capsys):
    def reading(command: str, world: str) -> Reading:
        return Reading(tuple(command.split()), (command,), (0.5,), (world,), 0.5, 0.4, 0.5)

    readings = reading("first", "1:0"), reading("second", "1:3"), reading("third", "1:0")
    _print_readings("tangrams", Parse(ROW, (UTTERANCE,), readings, (), ()))
    shown = capsys.readouterr().out
    assert (shown.count("outcome "), shown.count("confidence 40%")) == (2, 2)
    assert shown.index("first") < shown.index("the same by: third") < shown.index("second")


def test_the_best_readings_come_as_json(ask, parser):
    report = json.loads(ask(UTTERANCE, "--best", "2", "--json").out)
    found = parser.parse(ROW, [UTTERANCE], best=2)
    assert (report["format"], report["abstained"], report["world"]) == (1, False, ROW)
    assert [reading["tokens"] for reading in report["readings"]] == [list(one.tokens) for one in found.readings]
    assert report["readings"][0]["worlds"] == list(found.readings[0].worlds)
    assert report["confidence"] == pytest.approx(found.confidence)
    assert report["understood"] is False


def test_words_that_the_model_does_not_know_are_named(ask):
    ended = ask("swap the flurb with the first figure" + " and the last one" * 2)
    assert ended.code == 0
    assert (
        ended.err
        == "The model does not know: flurb\nThe model does not read, at the end of instructions: the last one\n"
        "Not understood: this is a guess.\n"
    )


def test_it_abstains_below_the_confidence_asked_for(ask, parser):
    confidence = parser.parse(ROW, [UTTERANCE]).confidence
    assert 0 < confidence < 0.5
    above, below = f"{2 * confidence:.12f}", f"{confidence / 2:.12f}"
    ended = ask(UTTERANCE, "--min-confidence", above)
    assert (ended.code, ended.out) == (
        0,
        f"Abstained: the confidence is {confidence:.4g}, less than {float(above):g}.\n",
    )
    report = json.loads(ask(UTTERANCE, "--min-confidence", above, "--json").out)
    assert (report["abstained"], report["readings"]) == (True, [])
    assert not json.loads(ask(UTTERANCE, "--min-confidence", below, "--json").out)["abstained"]


@pytest.mark.parametrize(
    ("names", "notes"),
    [
        (("context", "instructions"), []),
        (
            ("world", "utterances"),
            ['note: "world" is now called "context".', 'note: "utterances" is now called "instructions".'],
        ),
    ],
)
def test_requests_with_old_names_are_answered_with_a_note(pipe, caplog, names, notes):
    note_old_name.cache_clear()
    lines = (json.dumps(dict(zip(names, (ROW, [UTTERANCE]), strict=True))) + "\n").encode() * 2
    first, second = pipe(lines)
    assert (first, first["context"], first["instructions"]) == (second, ROW, [UTTERANCE])
    assert caplog.messages == notes  # once
    assert first["readings"][0]["denotations"] == first["readings"][0]["worlds"]


def test_an_old_option_is_taken_with_a_note(ask, vbsix, run, caplog):
    note_old_name.cache_clear()
    ended = vbsix("parse", run, "--seed", str(SEEDS[0]), "--world", ROW, UTTERANCE)
    assert caplog.messages == ["note: --world is now called --context."]
    assert ended.out == ask(UTTERANCE).out


def test_requests_come_line_by_line(pipe, parser):
    requests = [
        {"world": ROW, "utterances": [UTTERANCE], "id": 7},
        {"world": "1:9", "utterances": [UTTERANCE], "id": "x"},
        {"world": ROW, "utterances": "swap"},
        {"utterances": []},
        [],
        {"world": ROW, "utterances": []},
        {"world": ROW, "utterances": [UTTERANCE, "", "x"]},
        {"context": ROW, "instructions": [UTTERANCE]},
    ]
    lines = "\n".join(map(json.dumps, requests)).encode() + b'\n\n{\n\xff\n{"id": NaN}\n' + b"[" * 100_000
    answers = pipe(lines)
    assert (answers[0]["id"], answers[0]["readings"]) == (7, answers[7]["readings"])
    assert answers[0]["readings"][0]["commands"] == list(parser.parse(ROW, [UTTERANCE]).readings[0].commands)
    assert answers[1] == {"id": "x", "error": "line 2: context: position 1 ('9'): expected a shape from 0 to 4"}
    errors = [answer.get("error", "")[:48] for answer in answers]
    assert errors[2:] == [
        'line 3: "instructions" is missing or not a list ',
        'line 4: "context" is missing.',
        'line 5: expected an object such as {"context": "',
        "line 6: 0 instructions: expected 1 to 80.",
        "line 7: instruction 2 is empty.",
        "",
        "line 10: not JSON: Expecting property name enclo",
        "line 11: not JSON: 'utf-8' codec can't decode by",
        "line 12: not JSON: NaN is no JSON value",
        errors[-1],
    ]
    assert errors[-1].startswith("line 13: not JSON")
    assert pipe(b"") == []


def test_an_exported_model_parses_alike(vbsix, run, tmp_path, ask):
    model = tmp_path / "model.safetensors"
    ended = vbsix("export", run, "--seed", str(SEEDS[0]), "--out", str(model))
    assert ended.code == 0
    assert ended.out.startswith(f"{model}: tangrams, ")
    assert f"seed {SEEDS[0]}, data synthetic" in ended.out
    assert vbsix("parse", str(model), "--context", ROW, UTTERANCE) == ask(UTTERANCE)
    assert vbsix("export", run, "--half", "--out", str(tmp_path / "half.safetensors")).code == 0


def test_bad_input_is_one_message(ask, vbsix, run, tmp_path):
    both = "error: give --context and instructions, or neither to read requests from standard input.\n"
    assert ask() == vbsix("parse", run, UTTERANCE) == (2, "", both)
    assert ask(" ") == (2, "", "error: instruction 1 is empty.\n")
    assert vbsix("parse", run, "--context", "x", UTTERANCE)[::2] == (
        2,
        "error: context: element 1 ('x'): a world lists its positions, '1:... 2:...'\n",
    )
    many = "error: 99 readings cannot be given: ask for 1 to 32, the beam of this model.\n"
    assert ask(UTTERANCE, "--best", "99") == (2, "", many)
    assert vbsix("parse", run, "--seed", "9", "--context", ROW, "x") == (
        2,
        "",
        f"error: {run}: has no seed 9; it has 1, 4.\n",
    )
    broken = tmp_path / "model"
    broken.write_bytes(b"x" * 100)
    ended = vbsix("parse", str(broken), "--context", ROW, "x")
    assert ended.code == 2
    assert ended.err.startswith(f"error: {broken}: cannot be read: ")
    ended = vbsix("export", run, "--out", str(broken / "model"))
    assert (ended.code, ended.out) == (2, "")
    assert "Traceback" not in ended.err


@pytest.mark.parametrize("wrong", [("--best", "0"), ("--min-confidence", "2"), ("--seed", "-1")])
def test_options_out_of_range_are_usage_errors(ask, wrong):
    ended = ask(UTTERANCE, *wrong)
    assert ended.code == 2
    assert wrong[0] in ended.err


def test_a_search_takes_the_policy_of_a_run(vbsix, run):
    reading = library.load(run).parse(ROW, [UTTERANCE]).readings[0]
    asked = (
        "search",
        "tangrams",
        "--context",
        ROW,
        "--target",
        reading.worlds[0],
        "--beam",
        "32",
        "--space",
        "program",
    )
    report = json.loads(vbsix(*asked, "--checkpoint", run, "--json", UTTERANCE).out)
    assert report["policy"] == run
    best = report["programs"][0]
    assert best["tokens"] == list(reading.tokens)
    assert best["log_probability"] == pytest.approx(math.log(reading.probability), rel=1e-4)
    ended = vbsix(*asked, "--checkpoint", run, "swap the flurb")
    assert f"policy: {run}\n" in ended.out
    assert ended.err == "The model does not know: flurb\n"
    scene = " ".join(f"{position}:__" for position in range(1, 11))
    ended = vbsix("search", "scene", "--context", scene, "--target", scene, "--checkpoint", run, "leave")
    assert ended == (2, "", f"error: --checkpoint: {run} was trained for tangrams, not for scene.\n")


def test_a_file_of_requests_is_answered_like_its_lines(vbsix, pipe, run, tmp_path):
    lengths = [3, 1, 2, 1, 4, 2, 1, 9, 1, 1, 2, 3, 1]  # more than a batch, and one that needs more room
    requests = [{"context": ROW, "instructions": [UTTERANCE] * length, "id": length} for length in lengths]
    requests[5:5] = [{"context": "1:9", "instructions": [UTTERANCE]}, {"context": ROW, "instructions": [" "]}, []]
    lines = "\n".join(map(json.dumps, requests)).encode() + b"\n\n{"
    source, target = tmp_path / "requests.jsonl", tmp_path / "answers.jsonl"
    source.write_bytes(lines)
    asked = ("parse", run, "--seed", str(SEEDS[0]), "--input", str(source), "--output", str(target))
    ended = vbsix(*asked)
    assert (ended.code, ended.err) == (0, "")
    assert ended.out.startswith(f"{target}: 17 answers (")
    answers, wanted = [json.loads(line) for line in target.read_text().splitlines()], pipe(lines)
    assert [one.get("error") for one in answers] == [one.get("error") for one in wanted]
    assert sum("error" in one for one in answers) == 4 and answers[-1]["error"].startswith("line 18: not JSON")
    for one, other in zip(answers, wanted, strict=True):
        assert one.get("id") == other.get("id")
        for mine, theirs in zip(one.get("readings", []), other.get("readings", []), strict=True):
            assert mine["commands"] == theirs["commands"] and mine["worlds"] == theirs["worlds"]
            assert mine["confidence"] == pytest.approx(theirs["confidence"], rel=1e-4)
    ended = vbsix(*asked)
    assert ended == (2, "", f"error: {target}: exists already. Remove it, or give another --output.\n")


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (["--input", "requests.jsonl"], "give --input and --output together"),
        (["--input", "nowhere", "--output", "out", "--context", ROW, UTTERANCE], "neither --context nor instructions"),
        (["--input", "nowhere", "--output", "out"], "nowhere: No such file or directory"),
        (["--input", "requests.jsonl", "--output", "no/folder/out"], "out.part: No such file or directory"),
        (["--input", "requests.jsonl", "--output", "out", "--best", "99"], "99 readings cannot be given"),
    ],
)
def test_what_is_wrong_with_files_is_one_message(vbsix, run, tmp_path, monkeypatch, given, message):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "requests.jsonl").write_text(json.dumps({"context": ROW, "instructions": [UTTERANCE]}))
    ended = vbsix("parse", run, *given)
    assert (ended.code, ended.out) == (2, "")
    assert message in ended.err and "Traceback" not in ended.err
