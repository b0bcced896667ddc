from __future__ import annotations

import json

import pytest

from vbsix.data.synthetic import write_corpus

pytestmark = pytest.mark.integration


def test_the_ceiling_of_a_language(vbsix, tmp_path):
    write_corpus("tangrams", 60, 1, tmp_path)
    found = json.loads(vbsix("ceiling", "tangrams-where", "--data", str(tmp_path), "--least", "2", "--json").out)
    assert (found["domain"], found["split"], found["rows"], found["unexplained"]) == ("tangrams-where", "dev", 6, 0)
    assert found["right"] <= 6
    pairs = [(one, other) for one in range(5) for other in range(5) if one != other]
    asked = {"instructions": ["delete the first", "delete it"], "target": ""}
    lines = [{"context": f"1:{one} 2:{other}", "targets": [f"1:{other}", ""], **asked} for one, other in pairs]
    (tmp_path / "rows.jsonl").write_text("\n".join(map(json.dumps, lines)) + "\n")
    found = json.loads(vbsix("ceiling", "tangrams", "--data", str(tmp_path / "rows.jsonl"), "--json").out)
    assert found["rows"] == found["right"] > 0
    shown = vbsix("ceiling", "tangrams-where", "--data", str(tmp_path), "--least", "2").out
    assert "tangrams-where: one command for each utterance, on dev" in shown
    assert "Rows with a step that no command explains: 0 on dev, 0 in training." in shown


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("tangrams", "--data", "nowhere"), "nowhere: no such folder"),
        (("tangrams", "--split", "moon", "--data", "synthetic"), "unknown split of this data 'moon'"),
        (("tangram",), "unknown domain 'tangram'"),
        (("tangrams", "--data", "rows.jsonl"), "the ceiling needs the world after each instruction"),
    ],
)
def test_bad_input_is_one_message(vbsix, tmp_path, monkeypatch, arguments, message):
    monkeypatch.chdir(tmp_path)
    line = {"context": "1:0 2:3", "instructions": ["delete it", "add it"], "target": "1:0 2:3"}
    other = {**line, "context": "1:0 2:3 3:4"}
    (tmp_path / "rows.jsonl").write_text(json.dumps(line) + "\n" + json.dumps(other) + "\n")
    ended = vbsix("ceiling", *arguments)
    assert ended.code == 2
    assert message in ended.err
    assert ended.err.startswith("error: ")
