"""Encoders, vectors, policies, objectives and selection rules of one's own: the examples train with them."""

from __future__ import annotations

import importlib.util
import json
import shutil
import sys
from pathlib import Path

import pytest

import vbsix
import vbsix.api
from vbsix.config.schema import OBJECTIVES
from vbsix.models.config import ENCODERS

EXAMPLES = Path(__file__).parents[1] / "examples" / "plugins"
TINY = {
    "data.lengths": (1,),
    "data.evaluation": (1,),
    "data.max_words": 10,
    "data.synthetic_rows": 30,
    "data.synthetic_dev_rows": 6,
    "network.lstm": 4,
    "network.hidden": 8,
    "network.token": 8,
    "network.slot": 4,
    "network.attribute": 4,
    "search.beam": 32,
    "search.program_beam": 4,
    "training.batch": 4,
    "training.steps": 10,
    "training.policy_states": 32,
    "run.evaluation_beam": 4,
    "run.evaluation_batch": 8,
}


def load(name: str):
    """The example as a module, whose registration runs once."""
    module_name = f"plugin_{name}"
    if module_name not in sys.modules:
        spec = importlib.util.spec_from_file_location(module_name, EXAMPLES / f"{name}.py")
        assert spec and spec.loader
        module = importlib.util.module_from_spec(spec)
        sys.modules[module_name] = module
        spec.loader.exec_module(module)
    return sys.modules[module_name]


@pytest.fixture(autouse=True)
def unmeasured(monkeypatch):
    """Spurious programs are not counted at the end of a run, which would compile two more functions."""
    monkeypatch.setattr(vbsix.api, "predict_longest", lambda *_: {})
    monkeypatch.setattr(vbsix.api, "spurious_shares", lambda *_: {})


@pytest.mark.parametrize("name", ["encoder", "policy", "objective", "selection"])
def test_an_example_trains_and_parses(name, tmp_path):
    run = load(name).main(out=tmp_path / "run", progress=False, **TINY)
    assert any(row["hit"] > 0 for row in run.metrics), "something was learned from"
    if name in ("encoder", "policy"):  # a parser has these parts, the others are for training alone
        assert run.parser.parse("1:0 2:3 3:4", ["swap the first and last figure"]).utterances
    part = {"encoder": "bag-of-words", "policy": "linear", "objective": "hard-em", "selection": "noisy"}[name]
    saved = json.loads((tmp_path / "run" / "run.json").read_text())["config"]
    assert part in {str(value) for section in saved.values() if isinstance(section, dict) for value in section.values()}


def test_vectors_from_elsewhere_train_and_parse(tmp_path):
    settings = {**TINY, "data.lengths": (0,), "data.evaluation": (0,)}
    example = load("utterance_vectors")
    run = example.main(tmp_path / "tangrams.jsonl", 40, out=tmp_path / "run", progress=False, **settings)
    known = json.loads((tmp_path / "tangrams.jsonl").read_text().splitlines()[0])
    assert run.parser.parse(known["context"], known["instructions"]).unknown_words == ()
    new = "please swap everything"
    assert run.parser.parse(known["context"], [new]).unknown_words == (new,)
    words = vbsix.UtteranceVectors.from_vectors({new: example.embed(new)})
    assert vbsix.load(run.folder, words=words).parse(known["context"], [new]).unknown_words == ()


def test_a_run_with_an_unknown_part_is_an_error_that_names_it(tmp_path):
    run = load("objective").main(out=tmp_path / "run", progress=False, **{**TINY, "training.steps": 2})
    stranger = tmp_path / "stranger"
    shutil.copytree(run.folder, stranger)
    description = json.loads((stranger / "run.json").read_text())
    description["config"]["training"]["objective"] = "soft-em"
    (stranger / "run.json").write_text(json.dumps(description))
    with pytest.raises(vbsix.VbsixError, match=r"training\.objective: expected one of .*'hard-em', not 'soft-em'"):
        vbsix.load(stranger)


def test_a_name_is_taken_once():
    load("encoder")
    with pytest.raises(vbsix.VbsixError, match="exists already"):
        vbsix.register_encoder("lstm", ENCODERS.get("bag-of-words"))
    with pytest.raises(vbsix.VbsixError, match="exists already"):
        vbsix.register_objective("mml", print)
    vbsix.register_encoder("bag-of-words", ENCODERS.get("bag-of-words"))  # the same again is fine
    assert "mml" in OBJECTIVES.names()
