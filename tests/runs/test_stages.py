"""Staged training: each stage continues the policies of the one before."""

from __future__ import annotations

import json
import runpy
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest
from training.tiny import LOOP_CONFIG, LOOP_SEEDS, SECOND_STAGE, Watcher, outcome

from vbsix.config.choosing import choose_stages
from vbsix.config.presets import STAGES, preset
from vbsix.config.toml import read_stages
from vbsix.domains.registry import get_domain
from vbsix.parsing.loading import load
from vbsix.runs.checkpoints import to_tensors
from vbsix.runs.folder import Run, create_run, load_best, open_run
from vbsix.runs.loop import Interrupted
from vbsix.runs.metrics import read_metrics
from vbsix.runs.stages import create_stages, open_stages, plan_stages, train_stages
from vbsix.runs.sweep import runs_of
from vbsix.utilities.errors import VbsixError
from vbsix.utilities.files import read_tensors

ROOT = Path(__file__).parents[2]


def begin(folder, *stages):
    create_stages(folder, plan_stages(folder, LOOP_CONFIG, stages, LOOP_SEEDS, "synthetic"))


def go_on(folder, stop_at: tuple[int, int] | None = None) -> dict[int, Watcher]:
    """Trains stages, and stops in a stage after a step."""
    watchers: dict[int, Watcher] = {}

    @contextmanager
    def observe(run: Run, dataset, count: int):
        assert count == len(open_stages(folder))
        watchers[run.stage] = Watcher(stop_at[1] if stop_at and stop_at[0] == run.stage else None)
        yield watchers[run.stage]

    train_stages(folder, observe)
    return watchers


@pytest.fixture(scope="module")
def left_alone(tmp_path_factory):
    folder = tmp_path_factory.mktemp("stages") / "alone"
    begin(folder, {}, SECOND_STAGE)
    return folder, go_on(folder)


@pytest.mark.slow
def test_a_stage_starts_from_the_best_policies_of_the_one_before(left_alone):
    folder, watchers = left_alone
    best = load_best(open_run(folder / "stage-1"), get_domain("tangrams"))
    start = read_tensors(folder / "stage-2" / "start.safetensors")[0]
    for name, tensor in to_tensors(best.policies).items():
        np.testing.assert_array_equal(start[name], tensor)
    scores = np.mean(list(watchers[2].accuracies[0]["dev"].values()), axis=0)
    np.testing.assert_allclose(scores, best.scores)
    assert [run.config.network.context for run in open_stages(folder)] == [0, 4]


@pytest.mark.slow
def test_metrics_name_the_stage(left_alone):
    folder, _ = left_alone
    for stage, last in ((1, LOOP_CONFIG.training.steps), (2, 4)):
        rows = read_metrics(folder / f"stage-{stage}" / "metrics.jsonl")
        assert {row["stage"] for row in rows} == {stage}
        assert rows[-1]["step"] == last


@pytest.mark.slow
def test_the_result_of_a_staged_run_has_what_committed_ones_have(left_alone):
    folder, watchers = left_alone
    script = runpy.run_path(str(ROOT / "docs" / "scripts" / "staged.py"))
    found = json.loads(json.dumps(script["staged_result"](folder, "vbsix train --stages context", ("dev", "held-out"))))
    files = sorted((ROOT / "results" / "staged").glob("*.json"))
    assert files
    for file in files:
        committed = json.loads(file.read_text())
        assert committed.keys() - {"format", "test_command"} <= found.keys()
        for stage in committed["stages"]:
            assert all(stage.keys() == new.keys() for new in found["stages"])
    assert [stage["steps"] for stage in found["stages"]] == [LOOP_CONFIG.training.steps, 4]
    assert found["stages"][1]["dev"]["steps"] == sorted(watchers[2].accuracies)
    assert found["best"]["score"] == pytest.approx(
        np.mean([found["best"]["accuracy"]["dev"][str(n)] for n in LOOP_CONFIG.data.evaluation], axis=0)
    )
    assert set(found["ensemble"]["accuracy"]) == {"dev", "held-out"}
    assert found["schedule"] == "context"


@pytest.mark.slow
def test_the_folder_stands_for_its_last_stage(left_alone, tmp_path):
    folder, _ = left_alone
    assert open_run(folder) == open_run(folder / "stage-2")
    assert runs_of(folder) == [folder / "stage-1", folder / "stage-2"]
    parser = load(folder, best=True)
    assert parser.config.network.context == 4
    assert parser.provenance == load(folder / "stage-2", best=True).provenance


@pytest.mark.integration
@pytest.mark.parametrize(
    "stops",
    [
        pytest.param([(1, 5)], id="in the first", marks=pytest.mark.slow),
        pytest.param([(1, 14), (2, 3)], id="between, and in the second"),
    ],
)
def test_stages_that_were_stopped_continue_as_if_they_were_not(left_alone, tmp_path, stops):
    folder = tmp_path / "cut"
    begin(folder, {}, SECOND_STAGE)
    for stop in stops:
        with pytest.raises(Interrupted, match=f"Continue with: vbsix train --resume {folder}$"):
            go_on(folder, stop)
    go_on(folder)
    for stage in ("stage-1", "stage-2"):
        assert outcome(folder / stage) == outcome(left_alone[0] / stage)


def test_a_stage_has_the_settings_of_the_one_before(tmp_path):
    first, second, third = plan_stages(
        tmp_path, LOOP_CONFIG, [{}, {"training.dropout": 0.2}, {"training.steps": 3}], (0,), "synthetic"
    )
    assert first.config == LOOP_CONFIG
    assert (third.config.training.dropout, third.config.training.steps, third.stage) == (0.2, 3, 3)
    assert second.folder == tmp_path / "stage-2"


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"training.step": 1}, "stage 2: unknown setting 'training.step'"),
        ({"method": "mml"}, "stage 2: method is the same in all stages"),
        ({"data.dev_share": 0.3}, r"stage 2: data\.dev_share is the same in all stages"),
        ({"data.oov_min_count": 3}, r"stage 2: data\.oov_min_count is the same in all stages"),
        ({"training.objective": "reinforce"}, r"stage 2: training\.critic: the objective reinforce"),
    ],
)
def test_a_wrong_stage_is_named(tmp_path, settings, message):
    with pytest.raises(VbsixError, match=message):
        plan_stages(tmp_path, LOOP_CONFIG, [{}, settings], (0,), "synthetic")


def test_a_file_of_stages(tmp_path):
    file = tmp_path / "stages.toml"
    file.write_text(
        '[[stages]]\ntraining.steps = 10\n[[stages]]\n"network.context" = 64\n[stages.training]\nbeta = 2.0\n'
    )
    assert read_stages(file) == [{"training.steps": 10}, {"network.context": 64, "training.beta": 2.0}]
    assert choose_stages(file) == read_stages(file)
    for text in ("", "[stages]\nsteps = 1\n", "stages = []\n"):
        file.write_text(text)
        with pytest.raises(VbsixError, match="has no stages"):
            read_stages(file)
    file.write_text("[training]\nsteps = 7\n[[stages]]\n[[stages]]\n")
    with pytest.raises(VbsixError, match=r"training\.steps is in no stage"):
        read_stages(file)


def test_named_schedules_are_settings(tmp_path):
    for name in STAGES:
        for domain in ("scene", "alchemy", "tangrams"):
            assert plan_stages(tmp_path, preset(domain), choose_stages(name), (0,), "synthetic")
    with pytest.raises(VbsixError, match=r"unknown schedule of stages 'contxt'\. Did you mean 'context'"):
        choose_stages("contxt")
    with pytest.raises(VbsixError, match="no such file"):
        choose_stages("contxt.toml")
    with pytest.raises(VbsixError, match="at least one stage"):
        plan_stages(tmp_path, LOOP_CONFIG, [], (0,), "synthetic")


@pytest.mark.slow
def test_a_folder_in_use_is_refused(left_alone):
    folder, _ = left_alone
    with pytest.raises(VbsixError, match="is in use already"):
        begin(folder, {})
    with pytest.raises(VbsixError, match="is in use already"):
        create_run(Run(folder, LOOP_CONFIG, (0,), "synthetic"))
    description = json.loads((folder / "stages.json").read_text())
    assert len(description["stages"]) == 2
