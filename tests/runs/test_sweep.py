"""Sweeps: runs that are trained side by side learn what they learn alone."""

from __future__ import annotations

import json
import re
import shutil
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from rich.console import Console
from runs.sums import MOST, WORDS, Sums, write_sums
from training.tiny import LOOP_CONFIG, REINFORCE_SETTINGS, Watcher, fill_disk, outcome
from training.tiny_config import tiny_config

import vbsix
from vbsix.cli.sweep import accuracy_table
from vbsix.config.schema import Config, override, to_settings
from vbsix.config.variation import inputs
from vbsix.data.dataset import FOLD, leave_out, load_dataset, rows_to_infer
from vbsix.data.examples import Row
from vbsix.data.inferred import Inferred, InferredRow, identify_rows, write_inferred
from vbsix.runs.checkpoints import checkpoint_steps
from vbsix.runs.folder import Run, create_run, open_run, reopen_run
from vbsix.runs.loop import Interrupted, train, train_together
from vbsix.runs.metrics import read_metrics
from vbsix.runs.sweep import _Datasets, create_sweep, mean_over_folds, open_sweep, plan_sweep, train_sweep
from vbsix.utilities.errors import VbsixError
from vbsix.utilities.files import read_tensors, write_json

pytestmark = pytest.mark.integration

FOLDS = {"data.folds": 2, "data.synthetic_rows": 20}
DIFFERENT = {
    "vbsix": (
        {
            "data.fold": 0,
            "network.token_init_std": 0.02,
            "network.embedding_init_std": 0.3,
            "search.epsilon": 0.1,
            "search.critic_window": 2,
            "training.learning_rate": 0.02,
            "training.decay_share": 0.5,
            "training.dropout": 0.1,
            "training.curriculum_steps": 3,
            "training.value_ranking_start": 4,
            "training.word_dropout": 0.1,
            "training.beta": 2.0,
            "training.length_penalty": 0.3,
        },
        {
            "data.fold": 1,
            "network.token_init_std": 0.2,
            "network.embedding_init_std": 0.1,
            "search.epsilon": 0.3,
            "search.critic_window": 1,
            "training.learning_rate": 0.01,
            "training.decay_share": 0.9,
            "training.dropout": 0.4,
            "training.curriculum_steps": 6,
            "training.value_ranking_start": 9,
            "training.word_dropout": 0.4,
            "training.beta": 0.5,
            "training.length_penalty": 1.0,
        },
    ),
    "reinforce": (
        {"training.sample_epsilon": 0.2, "training.baseline": 0.3},
        {"training.sample_epsilon": 0.5, "training.baseline": 0.1},
    ),
    "mml": (
        {"training.beta": 1.0, "training.beta_steps": 6},
        {"training.beta": 0.5, "training.beta_steps": 0},
    ),
    "taught": (
        {
            "training.averaging": 0.5,
            "training.context_dropout": 0.1,
            "data.least_posterior": 0.1,
        },
        {
            "training.averaging": 0.9,
            "training.context_dropout": 0.7,
            "data.least_posterior": 0.8,
        },
    ),
}
"""Two runs of each kind, which differ in inputs of the program. All inputs occur."""
PAUSES = {
    "domain": "sums",
    "data.folds": 2,
    "data.lengths": (1, 2),
    "data.max_words": 4,
    "data.glove_words": 0,
    "search.beam": 3,
    "training.batch": 4,
}
METHODS = {
    "vbsix": PAUSES,
    "reinforce": {
        "training.objective": "reinforce",
        "training.critic": False,
        "search.space": "program",
        "training.baseline": 0.1,
        "training.learning_rate": 0.005,
    },
    "mml": {
        **PAUSES,
        "training.critic": False,
        "training.programs": "extracted",
        "training.learning_rate": 0.01,
        "search.program_beam": 8,
    },
    "taught": {
        "training.critic": False,
        "training.learning_rate": 0.01,
        "network.context": 4,
        "data.lengths": (1, 2),
    },
}


class Pauses(Sums):
    """Sums with a token that does nothing, so that there are correct programs of several lengths for all instructions.

    In the languages of SCONE, a search of this size rarely finds any, and what is not found hides errors.
    """

    tokens = (*WORDS, "pause")
    max_tokens_per_instruction = 2

    def expand(self, state):
        added = jnp.array([1, 2, 3, 0], jnp.int32)
        sums = state["sum"] + added
        return {"sum": sums, "done": state["done"] + (added > 0)}, sums <= MOST


def begin(folder, config: Config, seeds=(0, 1), inferred: Path | None = None):
    is_own = config.domain == "sums"
    source = write_sums(folder.parent / "data") if is_own else "synthetic"
    run = Run(folder, config, seeds, source, inferred=inferred)
    return run, create_run(run, Pauses() if is_own else None)


def assert_alike(one, other, tolerance: float = 1e-5) -> None:
    """Checkpoints, best policies and metrics of two runs are the same up to rounding."""
    for mine in one.rglob("*.safetensors"):
        (tensors, _), (others, _) = read_tensors(mine), read_tensors(other / mine.relative_to(one))
        assert tensors.keys() == others.keys()
        for name, array in tensors.items():
            np.testing.assert_allclose(array, others[name], atol=tolerance, err_msg=f"{mine.name} {name}")
    rows, others = read_metrics(one / "metrics.jsonl"), read_metrics(other / "metrics.jsonl")
    assert len(rows) == len(others) > 0
    for row, wanted in zip(rows, others, strict=True):
        assert row.keys() == wanted.keys()
        assert row.get("accuracy") == wanted.get("accuracy")
        for name in row.keys() - {"accuracy"}:
            assert row[name] == pytest.approx(wanted[name], rel=1e-4, abs=1e-5), name


@pytest.fixture
def smooth_adam(monkeypatch):
    """Adam with a larger epsilon, in both of what is compared.

    With the usual one, 1e-8, Adam divides a gradient of about that size, which is mostly rounding, by its own size: the
    parameter then moves by as much as with a large gradient. Programs round differently, so such parameters differ by
    up to the learning rate, however right the programs are. With 1e-3, an update is at most 1e3 times the learning rate
    times the gradient, and so is the difference.
    """
    jax.clear_caches()
    monkeypatch.setattr(optax, "adam", partial(optax.adam, eps=1e-3))
    yield
    jax.clear_caches()


def infer(path: Path, config: Config) -> Path:
    """What teachers may have inferred: every second row's worlds are doubtful."""
    lengths = config.data.lengths
    rows, _ = rows_to_infer(config.data, vbsix.get_domain(config.domain), "synthetic", lengths, 1)
    found = [
        InferredRow(row.id, tuple(map(str, row.worlds[1:3])), 0.9 if place % 2 else 0.5)
        for place, row in enumerate(rows)
    ]
    write_inferred(path, Inferred(tuple(found), lengths, "nobody", identify_rows(rows, lengths)))
    return path


def distance(one, other) -> float:
    """The largest difference of a parameter of the last networks of two runs."""
    largest = 0.0
    for mine in max((one / "checkpoints").glob("step-*")).glob("*.safetensors"):
        tensors, others = (read_tensors(file)[0] for file in (mine, other / mine.relative_to(one)))
        networks = [name for name in tensors if name.startswith((".networks", ".average"))]
        largest = max(largest, *(float(np.max(np.abs(tensors[name] - others[name]), initial=0.0)) for name in networks))
    return largest


@pytest.mark.parametrize(
    "kind", [pytest.param(kind, marks=[] if kind == "reinforce" else pytest.mark.slow) for kind in DIFFERENT]
)
def test_runs_side_by_side_learn_what_they_learn_alone(tmp_path, smooth_adam, kind):
    base = override(LOOP_CONFIG, METHODS[kind])
    inferred = infer(tmp_path / "inferred.jsonl", base) if kind == "taught" else None
    first, second = DIFFERENT[kind]
    both = [override(base, values) for values in (first, second)]
    single = {name: override(both[0], {name: value}) for name, value in second.items()} if len(second) > 1 else {}
    configs, watcher = [*both, *single.values()], Watcher()
    together = [begin(tmp_path / str(place), config, inferred=inferred) for place, config in enumerate(configs)]
    trained = train_together(*zip(*together, strict=True), watcher)
    for place, config in enumerate(both):
        alone = train(*begin(tmp_path / f"alone-{place}", config, inferred=inferred), Watcher())
        found = trained[place]
        assert not isinstance(found, VbsixError)
        assert found.accuracies == alone.accuracies
        assert found.best.steps == alone.best.steps
        assert_alike(tmp_path / str(place), tmp_path / f"alone-{place}")
    # An input without an effect would hide errors.
    effects = [distance(tmp_path / "0", tmp_path / str(place)) for place in range(1, len(configs))]
    assert min(effects) > 1e-3, dict(zip(["all", *single], effects, strict=True))
    assert len(next(iter(watcher.accuracies[14]["dev"].values()))) == 2 * len(configs), "two seeds of each run"


def test_every_input_is_among_those_that_are_compared():
    assert {name for runs in DIFFERENT.values() for values in runs for name in values} == inputs().keys()


QUICK = override(tiny_config("reinforce"), REINFORCE_SETTINGS)
VALUES = {"training.learning_rate": [0.002, 0.001], "training.batch": [2, 3]}


@contextmanager
def unseen(runs, title):
    yield Watcher()


@pytest.fixture(scope="module")
def swept(tmp_path_factory):
    """A sweep of two programs with two runs each, trained to its end."""
    sweep = plan_sweep(tmp_path_factory.mktemp("sweep") / "sweep", QUICK, VALUES, (0, 1), "synthetic")
    create_sweep(sweep)
    assert train_sweep(sweep, unseen) == {}
    return sweep


def test_a_sweep_has_a_run_for_each_combination(swept):
    names = [f"learning_rate={rate},batch={batch}" for rate in VALUES["training.learning_rate"] for batch in (2, 3)]
    assert [run.folder.name for run in open_sweep(swept.folder).runs] == names
    assert [len(group) for group in swept.groups] == [2, 2]
    for run in swept.runs:
        assert open_run(run.folder).config == run.config
        result = json.loads((run.folder / "result.json").read_text())
        assert len(result["accuracy"]["dev"]["1"]) == 2
        assert vbsix.load(run.folder, seed=1).config == run.config


def test_a_sweep_that_was_stopped_continues_as_if_it_was_not(swept, tmp_path):
    sweep = plan_sweep(tmp_path / "sweep", QUICK, VALUES, (0, 1), "synthetic")
    create_sweep(sweep)
    stops = iter([Watcher(stop_at=5), Watcher(stop_at=8), Watcher(), Watcher(stop_at=8), Watcher()])

    @contextmanager
    def stopping(runs, title):
        yield next(stops)

    for _ in range(3):
        with pytest.raises(Interrupted, match=rf"Continue with: vbsix train --resume {sweep.folder}$"):
            train_sweep(open_sweep(sweep.folder), stopping)
    # As if the process had been killed while it wrote the checkpoints of this group.
    behind = sweep.groups[1][0]
    shutil.rmtree(max((behind.folder / "checkpoints").glob("step-*")))
    assert train_sweep(open_sweep(sweep.folder), stopping) == {}
    for run, wanted in zip(sweep.runs, swept.runs, strict=True):
        assert outcome(run.folder) == outcome(wanted.folder)


def test_what_has_a_result_is_not_trained_again(swept, monkeypatch):
    monkeypatch.setattr("vbsix.runs.sweep.train_together", lambda *_: pytest.fail("trained again"))
    assert train_sweep(open_sweep(swept.folder), unseen) == {}


def test_a_run_that_diverges_does_not_stop_the_others(swept, tmp_path):
    values = {"training.learning_rate": [0.002, 1e30]}
    sweep = plan_sweep(tmp_path / "sweep", QUICK, values, (0, 1), "synthetic")
    create_sweep(sweep)
    failed = train_sweep(sweep, unseen)
    ((folder, error),) = failed.items()
    assert folder.name == "learning_rate=1e+30"
    assert "not finite after step" in str(error) and "smaller training.learning_rate" in str(error)
    assert not (folder / "result.json").exists()
    again = train_sweep(open_sweep(sweep.folder), unseen)
    assert {name: str(reason) for name, reason in again.items()} == {folder: str(error)}
    assert outcome(sweep.runs[0].folder) == outcome(swept.runs[0].folder)


@pytest.mark.slow
def test_a_run_that_diverges_alone_in_its_group_does_not_stop_the_others_either(tmp_path):
    values = {"training.batch": [2, 3]}
    base = override(QUICK, {"training.learning_rate": 1e30})
    sweep = plan_sweep(tmp_path / "sweep", base, values, (0,), "synthetic")
    create_sweep(sweep)
    assert [folder.name for folder in train_sweep(sweep, unseen)] == ["batch=2", "batch=3"]
    assert sweep.good == []


def test_a_disk_that_fills_up_stops_a_sweep_and_nothing_is_lost(swept, tmp_path, monkeypatch):
    sweep = plan_sweep(tmp_path / "sweep", QUICK, VALUES, (0, 1), "synthetic")
    create_sweep(sweep)
    fill_disk(monkeypatch, after=25)
    with pytest.raises(OSError, match="No space left on device") as raised:
        train_sweep(sweep, unseen)
    assert str(sweep.folder) in raised.value.filename
    monkeypatch.undo()
    left = {run.folder: checkpoint_steps(run.checkpoints) for run in sweep.runs}
    assert any(steps for steps in left.values()) and not all(steps for steps in left.values()), "in the middle"
    assert train_sweep(open_sweep(sweep.folder), unseen) == {}
    for run, wanted in zip(sweep.runs, swept.runs, strict=True):
        assert outcome(run.folder) == outcome(wanted.folder)


def test_a_run_that_was_continued_alone_is_not_set_back(swept, tmp_path):
    sweep = plan_sweep(tmp_path / "sweep", QUICK, {"training.learning_rate": [0.002, 0.001]}, (0, 1), "synthetic")
    create_sweep(sweep)

    @contextmanager
    def stopping(runs, title):
        yield Watcher(stop_at=4)

    with pytest.raises(Interrupted):
        train_sweep(sweep, stopping)
    ahead = sweep.runs[0]
    with pytest.raises(Interrupted):
        train(*reopen_run(ahead.folder), Watcher(stop_at=11))
    watchers = []

    @contextmanager
    def watched(runs, title):
        watchers.append(Watcher())
        yield watchers[-1]

    assert train_sweep(open_sweep(sweep.folder), watched) == {}
    assert sorted(watcher.steps[0] for watcher in watchers) == [4, 11]
    for run, wanted in zip(sweep.runs, (swept.runs[0], swept.runs[2]), strict=True):
        assert_alike(run.folder, wanted.folder)


def test_cross_validation_averages_over_folds(tmp_path):
    values = {"data.fold": [0, 1], "training.batch": [2, 3]}
    sweep = plan_sweep(tmp_path / "sweep", override(QUICK, FOLDS), values, (0, 1), "synthetic")
    shares = {"fold=0,batch=2": [0.2, 0.4], "fold=1,batch=2": [0.6, 1.0], "fold=0,batch=3": [0.5, 0.5]}
    accuracies = {tmp_path / "sweep" / name: {"fold": {"1": own}} for name, own in shares.items()}
    assert mean_over_folds(sweep, accuracies) == {
        "batch=2, mean over folds": {"fold": {"1": [pytest.approx(0.4), pytest.approx(0.7)]}}
    }, "of each seed; without what lacks a fold"
    plain = plan_sweep(tmp_path / "plain", QUICK, {"training.batch": [2, 3]}, (0, 1), "synthetic")
    assert mean_over_folds(plain, {run.folder: {"dev": {"1": [0.5, 0.5]}} for run in plain.runs}) == {}
    for name, own in shares.items():
        write_json(tmp_path / "sweep" / name / "result.json", {"accuracy": {"fold": {"1": own}}})
    page = Console(width=100, color_system=None)
    with page.capture() as captured:
        page.print(accuracy_table(sweep))
    assert re.search(r"batch=2, mean over folds +55\.0 ± 21\.2", captured.get())


@pytest.fixture
def again(swept):
    """The arguments with which `vbsix.sweep` finds the sweep as it is."""
    settings = {name: value for name, value in to_settings(QUICK).items() if "." in name}
    return {"method": QUICK.method, "vary": VALUES, "seeds": 2, "out": swept.folder, "progress": False, **settings}


def test_a_sweep_from_python_gives_runs_and_an_ensemble(swept, again):
    found = vbsix.sweep("tangrams", **again)
    assert list(found.runs) == [run.folder.name for run in swept.runs] and not found.failed
    assert found.ensemble.policy.size == 8
    request = "1:0 2:3 3:4", ["remove the first figure"]
    assert found.ensemble.parse(*request) == vbsix.load(swept.folder, best=True, ensemble=True).parse(*request)
    resumed = vbsix.resume(swept.folder, progress=False)
    assert {name: run.accuracy for name, run in resumed.runs.items()} == {
        name: run.accuracy for name, run in found.runs.items()
    }
    with pytest.raises(VbsixError, match="holds another sweep"):
        vbsix.sweep("tangrams", **{**again, "seeds": 3})
    with pytest.raises(VbsixError, match=r"holds a sweep; load one of its runs \(learning_rate=0\.002,batch=2"):
        vbsix.load(swept.folder)


@pytest.mark.parametrize(
    ("vary", "message"),
    [
        ({}, "nothing varies"),
        ({"training.learning_rate": 0.1}, "give a list of at least one value, not 0.1"),
        ({"training.learning_rate": []}, "give a list of at least one value"),
        ({"method": ["mml", "vbsix"]}, "method cannot vary"),
        ({"domain": ["scene", "alchemy"]}, "domain cannot vary"),
        ({"data.fold": [0, 1]}, r"data\.fold: 1, but data\.folds is 0"),
        ({"training.objective": ["mml", "reinforce"], "training.critic": [True]}, "does not train a critic"),
    ],
)
def test_what_cannot_vary_is_refused_before_anything_is_written(tmp_path, vary, message):
    with pytest.raises(VbsixError, match=message):
        vbsix.sweep("tangrams", vary=vary, out=tmp_path / "sweep", progress=False, data__synthetic_rows=20)
    assert not (tmp_path / "sweep").exists()


def test_numbers_of_numpy_are_numbers(tmp_path):
    values = {"training.learning_rate": np.array([0.1, 0.2]), "data.folds": [2], "data.fold": np.arange(2)}
    sweep = plan_sweep(tmp_path / "sweep", QUICK, values, (0,), "synthetic")
    create_sweep(sweep)
    assert [run.config for run in open_sweep(sweep.folder).runs] == [run.config for run in sweep.runs]


def test_rows_that_belong_together_are_in_one_fold():
    rows = [Row(str(number // 3), (f"w{number}", "x"), ("u",)) for number in range(30)]
    rows += [Row(f"new {number}", (f"w{number}", "y"), ("u",)) for number in range(5)]  # as the first rows, but for ids
    for fold in range(4):
        kept, left_out = leave_out(rows, 4, fold, rows)
        assert len(kept) + len(left_out) == len(rows)
        assert not {row.id for row in kept} & {row.id for row in left_out}
        assert not {row.worlds[0] for row in kept} & {row.worlds[0] for row in left_out}


def test_folds_divide_the_rows():
    def load(fold: int):
        config = override(LOOP_CONFIG, {**FOLDS, "data.folds": 3, "data.fold": fold}).data
        return load_dataset(config, vbsix.get_domain("tangrams"), "synthetic", word_size=100)

    datasets = [load(fold) for fold in range(3)]
    held_out = [[row.id for row in dataset.splits[FOLD].rows] for dataset in datasets]
    every = {row.id for dataset in datasets for row in dataset.train.rows}
    assert sorted(id_ for own in held_out for id_ in own) == sorted(every)
    for dataset, own in zip(datasets, held_out, strict=True):
        assert not {row.id for row in dataset.train.rows} & set(own)
        assert dataset.words.words == datasets[0].words.words
    with pytest.raises(VbsixError, match=r"data\.fold: 3 of data\.folds = 3"):
        load(3)


def test_runs_that_offer_other_commands_have_their_own_domain(tmp_path):
    sweep = plan_sweep(tmp_path, LOOP_CONFIG, {"search.skip_no_ops": [False, True]}, (0,), "synthetic")
    datasets = _Datasets(None, None)
    plain, skipping = (datasets.read(run).domain for run in sweep.runs)
    assert skipping.unwrapped is plain
