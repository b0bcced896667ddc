"""Training, resuming and evaluating from Python."""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest
from training.tiny import LOOP_CONFIG, LOOP_SEEDS, LOOP_SETTINGS, outcome

import vbsix
from vbsix import TrainedRun, UnknownName, VbsixError
from vbsix.config.choosing import choose_config
from vbsix.config.presets import METHODS, QUICK, RECIPES, preset
from vbsix.config.schema import Config, override
from vbsix.config.toml import to_toml
from vbsix.runs.folder import new_folder, open_run
from vbsix.runs.loop import Interrupted

pytestmark = pytest.mark.integration


STEPS = LOOP_CONFIG.training.steps
ROW, UTTERANCE = "1:0 2:3 3:4", "swap figure 1 and figure 3"


@pytest.fixture(scope="module")
def seen() -> list:
    """What the callback of the run was given."""
    return []


@pytest.fixture(scope="module")
def trained(tmp_path_factory, seen) -> TrainedRun:
    """A run on the built-in corpus, whose settings have dots in their names."""
    out = tmp_path_factory.mktemp("runs") / "run"
    return vbsix.train(
        "tangrams", seeds=len(LOOP_SEEDS), out=out, callback=seen.append, progress=False, **LOOP_SETTINGS
    )


def test_a_run_is_trained_with_the_settings_given(trained):
    assert trained.config == open_run(trained.folder).config == LOOP_CONFIG
    assert open_run(trained.folder).seeds == LOOP_SEEDS
    assert (trained.result["steps"], trained.result["method"]) == (STEPS, "vbsix")
    assert trained.domain is vbsix.get_domain("tangrams")


def test_metrics_and_accuracy_are_those_of_the_run(trained, seen):
    assert trained.accuracy == trained.result["accuracy"]
    assert trained.accuracy.keys() == {"dev", "held-out"}
    assert {len(shares) for by_length in trained.accuracy.values() for shares in by_length.values()} == {2}
    last = trained.metrics[-1]
    assert (last["step"], last["seed"]) == (STEPS, LOOP_SEEDS[-1])
    assert last["accuracy"]["dev"]["1"] == trained.accuracy["dev"]["1"][-1]
    assert [row for progress in seen for row in progress.metrics] == trained.metrics
    assert {progress.step: progress.accuracies for progress in seen if progress.accuracies}[STEPS] == trained.accuracy
    assert {progress.steps for progress in seen} == {STEPS}


def test_the_parser_is_the_best_seed_at_its_best_step(trained):
    best = trained.result["best"]
    place = max(range(len(LOOP_SEEDS)), key=best["score"].__getitem__)
    provenance = trained.parser.provenance
    assert (provenance["seed"], provenance["steps"]) == (LOOP_SEEDS[place], best["steps"][place])
    assert trained.parser is trained.parser, "loaded once"
    assert trained.parser.parse(ROW, [UTTERANCE]).utterances == (UTTERANCE,)


def test_the_ensemble_has_all_seeds(trained):
    assert trained.ensemble.provenance["seed"] == list(LOOP_SEEDS)
    assert trained.ensemble.provenance["steps"] == trained.result["best"]["steps"]
    assert trained.ensemble.policy.size == len(LOOP_SEEDS)


def test_a_run_a_folder_and_a_parser_are_evaluated_alike(trained):
    report = vbsix.evaluate(trained)
    assert report == vbsix.evaluate(str(trained.folder), split="dev")
    assert report.accuracy == {length: pytest.approx(shares) for length, shares in trained.accuracy["dev"].items()}
    parser = vbsix.load(trained.folder, seed=1)
    alone = vbsix.evaluate(parser, "synthetic")
    assert alone.accuracy == {length: shares[1:] for length, shares in report.accuracy.items()}
    with pytest.raises(VbsixError, match="a parser does not know its data: give `data`"):
        vbsix.evaluate(parser)
    with pytest.raises(UnknownName, match=r"unknown split of this data 'tset'\. Known: dev, held-out"):
        vbsix.evaluate(trained, split="tset")


def test_the_best_steps_and_the_ensemble_can_be_evaluated(trained):
    best = vbsix.evaluate(trained, best=True)
    scores = [sum(shares) / len(shares) for shares in zip(*best.accuracy.values(), strict=True)]
    assert scores == pytest.approx(trained.result["best"]["score"])
    together = vbsix.evaluate(trained, ensemble=True)
    assert {len(shares) for shares in together.accuracy.values()} == {1}
    assert together.examples == best.examples


@pytest.mark.parametrize("stop", [4, 5, STEPS], ids=["metrics", "evaluation", "the last step"])
def test_a_callback_stops_a_run_which_is_resumed_to_the_same_result(tmp_path, trained, stop):
    settings = {name.replace(".", "__"): value for name, value in LOOP_SETTINGS.items()}
    with pytest.raises(Interrupted, match=f"vbsix train --resume {tmp_path / 'run'}"):
        vbsix.train(
            "tangrams",
            seeds=len(LOOP_SEEDS),
            out=tmp_path / "run",
            callback=lambda progress: progress.step == stop,
            progress=False,
            **settings,
        )
    assert open_run(tmp_path / "run").config == LOOP_CONFIG
    assert not (tmp_path / "run" / "result.json").exists()
    resumed = vbsix.resume(tmp_path / "run", progress=False)
    assert outcome(tmp_path / "run") == outcome(trained.folder)
    assert resumed.accuracy == trained.accuracy
    assert resumed.result["spurious"] == trained.result["spurious"]


def test_only_true_stops_a_run(tmp_path, trained):
    assert vbsix.resume(trained.folder, callback=lambda progress: "go on", progress=False).accuracy == trained.accuracy


@pytest.mark.parametrize("progress", [False, True])
def test_progress_is_printed_if_wanted(trained, capfd, progress):
    vbsix.resume(trained.folder, progress=progress)
    out, err = capfd.readouterr()
    assert err == ""
    assert (f"step {STEPS}  dev accuracy, 1 instructions: " in out) == bool(out) == progress


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"domain": "tangram"}, "unknown domain 'tangram'. Did you mean 'tangrams'?"),
        ({"method": "vbsics"}, "unknown method 'vbsics'. Did you mean 'vbsix'?"),
        ({"recipe": "publisht"}, "unknown recipe 'publisht'. Did you mean 'published'?"),
        ({"variant": "suffix"}, "unknown variant 'suffix'. Did you mean 'suffixes'?"),
    ],
)
def test_unknown_names_are_errors_that_name_the_known_ones(tmp_path, options, message):
    with pytest.raises(UnknownName) as error:
        vbsix.train(**options, out=tmp_path / "run")
    assert str(error.value).startswith(message)
    assert not (tmp_path / "run").exists()


def test_unknown_settings_are_errors(tmp_path):
    with pytest.raises(VbsixError, match=r"unknown setting 'search\.bean'\. Did you mean 'search\.beam'\?"):
        vbsix.train(search__bean=3, out=tmp_path / "run")
    with pytest.raises(VbsixError, match=r"search\.beam: expected a whole number, not 'many'"):
        vbsix.train(**{"search.beam": "many"}, out=tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_a_folder_with_a_run_is_not_overwritten_and_one_without_is_not_resumed(tmp_path, trained):
    with pytest.raises(VbsixError, match="is in use already"):
        vbsix.train(out=trained.folder)
    with pytest.raises(VbsixError, match="holds no run"):
        vbsix.resume(tmp_path)


def test_a_run_without_a_folder_gets_a_new_one(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert new_folder(Config()) == Path("runs", "tangrams-vbsix-stochastic-1")
    Path("runs", "tangrams-vbsix-stochastic-1").mkdir(parents=True)
    assert new_folder(Config()) == Path("runs", "tangrams-vbsix-stochastic-2")


def test_what_is_given_goes_before_what_the_file_says(tmp_path):
    file = tmp_path / "mine.toml"
    file.write_text('domain = "scene"\n[search]\nbeam = 7\nselection = "epsilon-greedy"\n[training]\nsteps = 5\n')
    chosen = choose_config(None, "folder", None, None, None, file, {})
    assert (chosen.domain, chosen.search.beam, chosen.training.steps) == ("scene", 7, 5)
    assert (chosen.search.selection, chosen.data) == ("epsilon-greedy", preset("scene").data)
    given = {"training.steps": 9, "search.beam": 8}
    chosen = choose_config("alchemy", "folder", "mml", None, None, file, given)
    assert (chosen.domain, chosen.search.beam, chosen.training.steps) == ("alchemy", 8, 9)
    assert (chosen.method, chosen.data) == ("mml", preset("alchemy").data)


PRESETS = list(itertools.product(METHODS, RECIPES))


def test_a_file_changes_a_method_only_by_what_is_changed_in_it(tmp_path):
    """A file that was printed for one method and used with another: its real changes count, its method does not."""
    file, changed = tmp_path / "other.toml", {"search.rerank": 77, "training.dropout": 0.25}
    for other in PRESETS:
        file.write_text(to_toml(override(preset("scene", *other), changed)))
        for names in PRESETS:
            chosen = choose_config(None, "folder", *names, None, file, {})
            assert chosen == override(preset("scene", *names), changed), (names, other)


def test_a_file_without_a_method_leaves_the_choice_open(tmp_path):
    file = tmp_path / "own.toml"
    file.write_text(to_toml(override(preset("scene", "mml", variant="suffixes"), {"search.beam": 7})))
    chosen = choose_config(None, "folder", None, None, None, file, {})
    assert chosen == override(preset("scene", "mml", variant="suffixes"), {"search.beam": 7})
    assert choose_config(None, "folder", None, None, "", file, {}) == override(
        preset("scene", "mml"), {"search.beam": 7}
    )


@pytest.mark.parametrize(
    ("source", "kind", "method"),
    [("synthetic", "synthetic", "vbsix"), ("folder", "scone", "vbsix"), ("a/b.jsonl", "json-lines", "execution-only")],
)
def test_each_kind_of_data_has_settings_of_its_own(source, kind, method):
    chosen = choose_config(None, source, None, None, None, None, {})
    assert chosen == preset("tangrams", method, data=kind)
    assert (chosen.training.steps == QUICK["training.steps"]) == (kind != "scone")
