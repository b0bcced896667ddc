"""Encoders, vectors, policies, objectives and selection rules of one's own: the examples train with them."""

from __future__ import annotations

import importlib.util
import json
import shutil
import sys
from pathlib import Path

import jax.numpy as jnp
import pytest
from training.tiny_config import SETTINGS, tiny_config

import vbsix
from vbsix.config.schema import OBJECTIVES, to_settings
from vbsix.models.config import ENCODERS, POLICIES
from vbsix.runs import finish
from vbsix.runs.folder import open_run
from vbsix.training.step import create_learner

pytestmark = pytest.mark.integration


EXAMPLES = Path(__file__).parents[1] / "examples" / "plugins"
TINY = SETTINGS | {"search.beam": 32, "training.policy_states": 32}


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


@pytest.fixture(scope="module", autouse=True)
def unmeasured():
    """Spurious programs are not counted at the end of a run, which would compile two more functions."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(finish, "predict_longest", lambda *_: {})
        patch.setattr(finish, "spurious_shares", lambda *_: {})
        yield


PARTS = {
    "network.encoder": "bag-of-words",
    "network.policy": "linear",
    "training.objective": "hard-em",
    "training.programs": "extracted",
    "search.selection": "noisy",
}


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """A run with all parts of one's own at once: vectors of utterances, encoder, policy, objective, selection rule."""
    for name in ("encoder", "policy", "objective", "selection"):
        load(name)
    folder, settings = (
        tmp_path_factory.mktemp("parts"),
        {**TINY, **PARTS, "data.lengths": (0,), "data.evaluation": (0,)},
    )
    return load("utterance_vectors").main(folder / "tangrams.jsonl", 40, out=folder / "run", progress=False, **settings)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "part"),
    [("encoder", "bag-of-words"), ("policy", "linear"), ("objective", "hard-em"), ("selection", "noisy")],
)
def test_an_example_trains_and_parses(tmp_path, name, part):
    run = load(name).main(out=tmp_path / "run", progress=False, **TINY)
    assert any(row["hit"] > 0 for row in run.metrics), "something was learned from"
    assert run.parser.parse("1:0 2:3 3:4", ["swap the first and last figure"]).utterances
    saved = json.loads((run.folder / "run.json").read_text())["config"]
    assert part in {str(value) for section in saved.values() if isinstance(section, dict) for value in section.values()}


def test_all_parts_train(run):
    assert any(row["hit"] > 0 for row in run.metrics), "something was learned from"
    saved = to_settings(open_run(run.folder).config)
    assert {name: saved[name] for name in PARTS} == PARTS


def test_vectors_from_elsewhere_are_read(run):
    known = json.loads((run.folder.parent / "tangrams.jsonl").read_text().splitlines()[0])
    assert run.parser.parse(known["context"], known["instructions"]).unknown_words == ()
    new = "please swap everything"
    found = run.parser.parse(known["context"], [new])
    assert (found.unknown_words, found.unread_words) == ((new,), ())
    words = vbsix.UtteranceVectors.from_vectors({new: load("utterance_vectors").embed(new)})
    assert vbsix.load(run.folder, words=words).parse(known["context"], [new]).unknown_words == ()


def test_a_run_is_resumed_with_its_own_vectors(run):
    assert vbsix.resume(run.folder, progress=False).accuracy == run.accuracy


def stranger(run, folder: Path, section: str, part: str) -> Path:
    """A copy of a run with a part that nobody has registered."""
    shutil.copytree(run.folder, folder)
    description = json.loads((folder / "run.json").read_text())
    description["config"][section][part] = "unheard-of"
    (folder / "run.json").write_text(json.dumps(description))
    return folder


def test_a_run_with_an_unknown_part_is_an_error_that_names_it(run, tmp_path):
    unknown = stranger(run, tmp_path / "run", "network", "policy")
    with pytest.raises(vbsix.VbsixError, match=r"unknown policy 'unheard-of'.*Known: .*linear"):
        vbsix.load(unknown)


def test_a_parser_needs_no_objective_and_no_selection_rule(run, tmp_path):
    unknown = stranger(run, tmp_path / "run", "training", "objective")
    assert vbsix.load(unknown).domain.name == "tangrams"
    with pytest.raises(vbsix.VbsixError, match=r"made with training\.objective = hard-em, not unheard-of"):
        vbsix.resume(unknown, progress=False)
    shutil.rmtree(unknown / "checkpoints")
    with pytest.raises(vbsix.VbsixError, match=r"unknown objective 'unheard-of'"):
        vbsix.resume(unknown, progress=False)


def test_a_leaf_that_is_not_an_array_is_named():
    class Named(load("policy").LinearPolicy):
        label: str

        def __init__(self, *given, **named):
            super().__init__(*given, **named)
            self.label = "mine"

    POLICIES.register("named", Named)
    config = tiny_config("execution-only", network__policy="named")
    with pytest.raises(vbsix.VbsixError, match=r"'mine' at \.policy\.label.*static"):
        create_learner(vbsix.get_domain("tangrams"), config, jnp.int32(0))


def test_a_name_is_taken_once():
    load("encoder")
    with pytest.raises(vbsix.VbsixError, match="exists already"):
        vbsix.register_encoder("lstm", ENCODERS.get("bag-of-words"))
    with pytest.raises(vbsix.VbsixError, match="exists already"):
        vbsix.register_objective("mml", print)
    vbsix.register_encoder("bag-of-words", ENCODERS.get("bag-of-words"))  # the same again is fine
    assert "mml" in OBJECTIVES.names()
