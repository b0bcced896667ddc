"""Examples as lines of JSON."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from vbsix import InvalidData, PythonDomain, get_domain
from vbsix.data.config import DataConfig
from vbsix.data.dataset import load_dataset
from vbsix.data.examples import whole_rows
from vbsix.data.json_lines import hold_out, read_json_lines


class Echo:
    """Ends at once with what it began with."""

    tokens = ("end",)
    max_tokens_per_instruction = 1

    def start(self, context):
        if context is None:
            raise ValueError("nothing to begin with")
        return (json.dumps(context), 0)

    def step(self, state, token):
        return (state[0], state[1] + 1)

    def instructions_done(self, state):
        return state[1]

    def denotation(self, state):
        return json.loads(state[0])


def write(folder: Path, *examples: object) -> Path:
    path = folder / "examples.jsonl"
    path.write_text("".join(json.dumps(example) + "\n" for example in examples), encoding="utf-8")
    return path


def example(number: int = 0, **changes: object) -> dict:
    return {"id": number, "context": {"b": 1, "a": [number]}, "instructions": ["do it"], "target": number} | changes


def test_an_example_is_a_row_whose_worlds_in_between_are_unknown(tmp_path):
    path = write(tmp_path, example(), example(7, instructions=["one", "two"], target="é"))
    rows = read_json_lines(path, PythonDomain(Echo))
    assert rows[0].worlds == ('{"a": [0], "b": 1}', "0")
    assert rows[1].worlds == ('{"a": [7], "b": 1}', None, '"é"')
    assert (rows[1].id, rows[1].origin) == ("7", f"{path}:2")
    assert [made.instructions for made in whole_rows(rows)] == [("do it",), ("one", "two")]


def test_a_built_in_domain_takes_its_own_text_form(tmp_path):
    path = write(tmp_path, {"context": "1:0 2:3", "instructions": ["remove the first"], "target": "1:3"})
    (row,) = read_json_lines(path, get_domain("tangrams"))
    assert (row.id, row.worlds) == ("1", ("1:0 2:3", "1:3"))


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("{", "not JSON"),
        ("[]", "expected an object"),
        (json.dumps({"id": 1}), '"context" is missing'),
        (json.dumps(example(instructions=[])), "at least one"),
        (json.dumps(example(instructions="do it")), "not a list"),
        (json.dumps(example(instructions=["a", " "])), "instruction 2 is empty"),
        (json.dumps(example(context=None)), r"context: start\('null'\) raised ValueError: nothing to begin with"),
    ],
)
def test_every_problem_is_told_with_its_line(tmp_path, line, told):
    path = write(tmp_path, example())
    path.write_text(path.read_text() + f"\n{line}\n{line}\n")
    with pytest.raises(InvalidData, match=told) as caught:
        read_json_lines(path, PythonDomain(Echo))
    assert {problem.split(": ")[0] for problem in caught.value.problems} == {f"{path}:3", f"{path}:4"}


def test_a_file_without_examples_is_told(tmp_path):
    with pytest.raises(InvalidData, match="no examples"):
        read_json_lines(write(tmp_path), PythonDomain(Echo))
    with pytest.raises(InvalidData, match="no such file"):
        read_json_lines(tmp_path / "none.jsonl", PythonDomain(Echo))


def test_what_is_held_out_depends_on_the_examples_alone(tmp_path):
    rows = read_json_lines(write(tmp_path, *map(example, range(100)), example(3, id="again")), PythonDomain(Echo))
    train, dev = hold_out(rows, 0.1)
    assert len(dev) == 10
    assert not {row.worlds[0] for row in train} & {row.worlds[0] for row in dev}, "equal examples stay together"
    assert len(train) + len(dev) == 100 + ("3" not in {row.id for row in dev})
    _, again = hold_out(rows[::-1], 0.1)
    assert {row.worlds for row in again} == {row.worlds for row in dev}
    with pytest.raises(InvalidData, match="too few"):
        hold_out(rows[:1], 0.1)


def test_nothing_learns_from_targets_between_instructions(tmp_path):
    line, domain = {"context": "1:0", "targets": ["1:1", "1:2", "1:3"], "target": "1:3"}, get_domain("tangrams")
    path = write(tmp_path, *[line | {"instructions": [str(number), "b", "c"]} for number in range(4)])
    whole = load_dataset(DataConfig(lengths=(0,), evaluation=(0,)), domain, str(path), word_size=4)
    assert {example.target for example in whole.examples} == {"1:3"}
    assert {row.worlds for row in whole.train.rows} == {("1:0", "1:1", "1:2", "1:3")}, "spurious programs are measured"
    with pytest.raises(InvalidData, match="no world after utterance 2"):
        load_dataset(DataConfig(lengths=(2,), evaluation=(0,)), domain, str(path), word_size=4)
