"""The word problems in `examples/math`: the executor, the reader of CSV files, and that it learns."""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from vbsix import InvalidProgram, PythonDomain, execute
from vbsix.data.json_lines import read_json_lines
from vbsix.testing import check_domain

pytestmark = pytest.mark.integration

PATH = Path(__file__).parents[1] / "examples" / "math" / "word_problems.py"
HEADER = "Question,Numbers,Equation,Answer\n"
PROBLEMS = HEADER + (
    "Ann has number0 cups and gets number1 . How many cups has she ?,8 2,+ number0 number1,10.0\n"
    "Bob had number0 pens and lost number1 . How many pens are left ?,8 2,- number0 number1,6.0\n"
)


@pytest.fixture(scope="module")
def module():
    spec = importlib.util.spec_from_file_location("example_math", PATH)
    assert spec and spec.loader
    found = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = found
    spec.loader.exec_module(found)
    return found


@pytest.fixture(scope="module")
def domain(module):
    return PythonDomain(module.WordProblems)


@pytest.mark.parametrize(
    ("numbers", "program", "answer"),
    [
        ([8, 2], "number0 number1 + answer", 10.0),
        ([8, 2], "number0 number1 - answer", 6.0),
        ([8, 2], "number0 number1 / answer", 4.0),
        ([5, 3, 4], "number0 number1 - number2 * answer", 8.0),
        ([5, 3, 4], "number0 number1 number2 * + answer", 17.0),
        ([10, 3], "number0 number1 / answer", 3.33),
        ([3], "number0 12 * answer", 36.0),
    ],
)
def test_programs_worked_by_hand(domain, numbers, program, answer):
    assert json.loads(execute(domain, json.dumps(numbers), program)[-1].world) == answer


@pytest.mark.parametrize(
    ("numbers", "program"),
    [
        ([2, 8], "number0 number1 - answer"),
        ([2, 0], "number0 number1 / answer"),
        ([8, 2], "number1 number0 + answer"),
        ([8, 2], "number0 number0 + answer"),
        ([8, 2], "number0 number2 + answer"),
        ([8, 2], "number0 answer"),
        ([8, 2], "number0 + answer"),
    ],
    ids=["negative", "by zero", "the other order", "used twice", "no such number", "no operator", "one operand"],
)
def test_programs_that_are_invalid(domain, numbers, program):
    with pytest.raises(InvalidProgram):
        execute(domain, json.dumps(numbers), program)


def test_the_language_is_sound(domain):
    check_domain(domain, ["[8.0, 2.0]", "[5.0, 3.0, 4.0]", "[7.0]"])


def test_the_reader_takes_questions_numbers_and_answers_only(module, domain, tmp_path):
    path = tmp_path / "problems.csv"
    path.write_text(PROBLEMS)
    first, second = module.read_problems(str(path))
    assert first == {
        "id": 1,
        "context": [8.0, 2.0],
        "instructions": ["ann has number0 cups and gets number1 . how many cups has she ?"],
        "target": 10.0,
    }
    assert (second["id"], second["target"]) == (2, 6.0)
    lines = tmp_path / "problems.jsonl"
    lines.write_text("".join(json.dumps(example) + "\n" for example in (first, second)))
    assert len(read_json_lines(lines, domain)) == 2


def test_without_a_column_of_numbers_the_question_has_them(module, tmp_path):
    path = tmp_path / "problems.csv"
    path.write_text('Question,Answer\n"Ann has 8 cups, Bob 1,250. How many have they?",1258\n')
    (example,) = module.read_problems(str(path))
    assert example["instructions"] == ["ann has number0 cups , bob number1 . how many have they ?"]
    assert (example["context"], example["target"]) == ([8.0, 1250.0], 1258.0)


def test_a_question_in_digits_is_asked_with_its_numbers(module, domain, monkeypatch):
    """The parser that is asked is one whose best reading is a sum."""
    asked = []

    class Adds:
        def parse(self, context, instructions):
            asked.append((context, instructions))
            program = "number0 number1 + answer"
            answer = json.loads(execute(domain, json.dumps(context), program)[-1].world)
            return SimpleNamespace(readings=[SimpleNamespace(commands=[program], denotations=[answer])])

    monkeypatch.setattr(module.vbsix, "load", lambda run, domain: Adds())
    answer = module.ask("run", "Ann has 8 cups and gets 2.5. How many?")
    assert answer == "number0 number1 + answer = 10.5"
    assert asked == [([8.0, 2.5], ["ann has number0 cups and gets number1 . how many ?"])]


def test_a_variant_has_the_constants_and_operations_of_its_class(module):
    class Powers(module.WordProblems):
        constants = {"3": 3.0}
        operations = {**module.OPERATIONS, "power": pow}

    powers = PythonDomain(Powers)
    assert execute(powers, "[2.0]", "number0 3 power answer")[-1].world == "8.0"
    assert set(powers.tokens) - set(PythonDomain(module.WordProblems).tokens) == {"3", "power"}
    with pytest.raises(InvalidProgram):
        execute(powers, "[2.0]", "number0 12 + answer")


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        ("", "no column Answer, Question in the first line"),
        ("Question,Numbers\nWhat ?,1\n", "no column Answer in the first line"),
        (HEADER + "What ?,1 two,,3\n", "problems.csv:2: could not convert"),
        (HEADER + "What ?,1 2,,three\n", "problems.csv:2: could not convert"),
        (HEADER + "What ?,,,3\n", "problems.csv:2: a context is a list of 1 to 8 numbers"),
        (HEADER + "What ?,1 2\n", "problems.csv:2: "),
    ],
)
def test_what_is_wrong_with_a_file_is_said_without_a_traceback(tmp_path, content, reason):
    path = tmp_path / "problems.csv"
    path.write_text(content)
    ended = subprocess.run([sys.executable, PATH, path], capture_output=True, text=True, check=False)
    assert ended.returncode == 1 and reason in ended.stderr and "Traceback" not in ended.stderr


def test_a_missing_file_is_an_error(tmp_path):
    ended = subprocess.run([sys.executable, PATH, tmp_path / "no.csv"], capture_output=True, text=True, check=False)
    assert ended.returncode == 1 and "no.csv" in ended.stderr and "Traceback" not in ended.stderr


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_it_learns_a_few_problems(tmp_path):
    """Additions and subtractions that one word tells apart."""
    rows = [
        f"{name} had number0 cups and {verb} number1 . How many cups now ?,{one} {other},,{answer}\n"
        for name in ("Ann", "Bob", "Eve", "Tom", "Joe")
        for one, other in ((8, 2), (9, 5), (13, 4), (20, 6), (11, 3), (17, 8))
        for verb, answer in (("bought", one + other), ("lost", one - other))
    ]
    (tmp_path / "problems.csv").write_text(HEADER + "".join(rows))
    (tmp_path / PATH.name).write_bytes(PATH.read_bytes())
    made = subprocess.run(
        [sys.executable, PATH.name, "problems.csv"], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    (tmp_path / "problems.jsonl").write_text(made.stdout)
    command = "-m vbsix train word_problems:WordProblems --data problems.jsonl --seeds 1 --steps 300 --out run"
    subprocess.run([sys.executable, *command.split()], cwd=tmp_path, check=True)
    assert json.loads((tmp_path / "run" / "result.json").read_text())["accuracy"]["dev"]["all"][0] > 0.9
