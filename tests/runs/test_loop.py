from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from training.tiny import LOOP_CONFIG, LOOP_SEEDS, Watcher, fill_disk, outcome, run_tiny, tiny_config

from vbsix.config.schema import Config
from vbsix.domains.registry import get_domain
from vbsix.runs import loop
from vbsix.runs.checkpoints import load_networks
from vbsix.runs.folder import Run, create_run, load_best, open_run, open_words, save_result
from vbsix.runs.loop import Interrupted, Trained, _advise, _next_stop
from vbsix.runs.metrics import read_metrics
from vbsix.training.chunk import create_learners, learner_shapes, train_chunk
from vbsix.utilities.errors import VbsixError

pytestmark = pytest.mark.integration


def run_loop(folder, watcher: Watcher | None = None, seeds=LOOP_SEEDS) -> Trained:
    return run_tiny(folder, LOOP_CONFIG, seeds, watcher)


@dataclasses.dataclass
class Finished:
    folder: object
    watcher: Watcher
    trained: Trained


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """A run that was left alone."""
    folder, watcher = tmp_path_factory.mktemp("runs") / "alone", Watcher()
    return Finished(folder, watcher, run_loop(folder, watcher))


@pytest.mark.parametrize(("backend", "stop"), [("cpu", 5), ("gpu", 50)])
def test_chunks_are_short_on_a_cpu(monkeypatch, backend, stop):
    monkeypatch.setattr(jax, "default_backend", lambda: backend)
    assert _next_stop([Run(Path("run"), Config(), (0,), "synthetic")], 0) == stop


def test_a_chunk_ends_wherever_something_is_due():
    config, stops = tiny_config(run__chunk=4, training__steps=14, training__value_ranking_start=7), [0]
    while stops[-1] < 14:
        stops.append(_next_stop([Run(Path("run"), config, (0,), "synthetic")], stops[-1]))
    assert stops == [0, 4, 6, 7, 8, 12, 14]


def test_progress_is_reported_after_every_chunk(finished):
    assert finished.watcher.steps == list(range(15))


def test_there_is_one_row_for_each_seed_at_each_step_that_is_due(finished):
    rows = read_metrics(finished.folder / "metrics.jsonl")
    assert [(row["step"], row["seed"]) for row in rows] == [
        (step, seed) for step in (4, 5, 8, 10, 12, 14) for seed in LOOP_SEEDS
    ]
    assert rows == finished.watcher.rows
    for row in rows:
        assert {"hit", "hit_longest"} <= row.keys()
        assert row["hit"] == 0 or {"policy_loss", "critic_loss", "gradient_norm"} <= row.keys()
        assert ("accuracy" in row) == (row["step"] in (5, 10, 14))
    assert any(row["hit"] > 0 for row in rows), "a run that finds nothing would prove little"


def test_the_accuracy_is_that_of_every_seed_on_every_split(finished):
    assert finished.trained.accuracies == finished.watcher.accuracies[14]
    assert finished.trained.accuracies.keys() == {"dev", "held-out"}
    for by_length in finished.trained.accuracies.values():
        assert [len(by_seed) for by_seed in by_length.values()] == [2, 2]
        assert by_length.keys() == {"1", "2"}
    last = read_metrics(finished.folder / "metrics.jsonl")[-1]
    assert last["accuracy"]["dev"]["1"] == finished.trained.accuracies["dev"]["1"][1]


def test_the_last_two_checkpoints_are_kept_with_a_file_for_each_seed(finished):
    files = sorted(str(path.relative_to(finished.folder)) for path in finished.folder.glob("checkpoints/*/*"))
    names = ["manifest.json", *(f"seed-{seed}.safetensors" for seed in LOOP_SEEDS)]
    assert files == [f"checkpoints/step-{step:08d}/{name}" for step in (12, 14) for name in names]


def test_a_run_can_be_opened_again(finished):
    run = open_run(finished.folder)
    assert (run.config, run.seeds, run.source) == (LOOP_CONFIG, LOOP_SEEDS, "synthetic")
    words = open_words(finished.folder)
    assert words.vectors.shape == (len(words.words), 100)


def test_the_result_says_what_was_run_and_what_came_of_it(finished):
    _, accuracies, best, seconds = finished.trained
    save_result(open_run(finished.folder), accuracies, best, seconds, {"dev": [0.5, None]})
    result = json.loads((finished.folder / "result.json").read_text())
    names = ("method", "recipe", "variant", "domain", "steps", "seeds")
    assert [result[name] for name in names] == ["vbsix", "stochastic", "", "tangrams", 14, [*LOOP_SEEDS]]
    assert result["accuracy"] == finished.trained.accuracies
    assert result["spurious"] == {"dev": [0.5, None]}
    assert result["seconds"] > 0
    assert result["config"]["search"]["beam"] == LOOP_CONFIG.search.beam
    assert {"vbsix", "jax"} <= result["versions"].keys()
    assert result["device"].startswith(jax.devices()[0].platform)


def test_a_finished_run_that_is_resumed_is_evaluated_again(finished):
    before, watcher = outcome(finished.folder), Watcher()
    trained = run_loop(finished.folder, watcher)
    assert watcher.steps == [14]
    assert trained.accuracies == finished.trained.accuracies
    assert outcome(finished.folder) == before


def test_the_policies_that_did_best_on_dev_are_kept(finished):
    best, evaluated = finished.trained.best, finished.watcher.accuracies
    scores = {step: np.mean(list(accuracies["dev"].values()), axis=0) for step, accuracies in evaluated.items()}
    assert best.scores == pytest.approx([max(of_seed) for of_seed in zip(*scores.values(), strict=True)])
    assert best.steps == [max(scores, key=lambda step, place=place: scores[step][place]) for place in range(2)]
    loaded = load_best(open_run(finished.folder), get_domain("tangrams"))
    assert (loaded.steps, loaded.scores) == (best.steps, best.scores)
    for kept, read in zip(jax.tree.leaves(best.policies), jax.tree.leaves(loaded.policies), strict=True):
        np.testing.assert_array_equal(kept, read)
    for place, step in enumerate(best.steps):
        if step == 14:
            newest = jax.tree.map(lambda leaf, place=place: leaf[place], finished.trained.learners.networks.policy)
            kept = jax.tree.map(lambda leaf, place=place: leaf[place], best.policies)
            assert jax.tree.all(jax.tree.map(np.array_equal, newest, kept))


def test_better_policies_replace_worse_ones_seed_by_seed():
    first = {"dev": {"1": [0.5, 0.2], "2": [0.1, 0.2]}, "held-out": {"1": [0.0, 0.0]}}
    then = {"dev": {"1": [0.5, 0.4], "2": [0.1, 0.1]}, "held-out": {"1": [1.0, 1.0]}}
    best = loop.keep_best(None, 5, {"weight": jnp.array([1.0, 2.0])}, first)
    best = loop.keep_best(best, 10, {"weight": jnp.array([3.0, 4.0])}, then)
    assert best.policies["weight"].tolist() == [1.0, 4.0], "of equals the first"
    assert best.steps == [5, 10]
    assert best.scores == pytest.approx([0.3, 0.25])


def test_a_folder_with_a_run_is_not_overwritten(finished):
    with pytest.raises(VbsixError, match="is in use already"):
        create_run(open_run(finished.folder))


def test_a_folder_without_a_run_says_so(tmp_path):
    with pytest.raises(VbsixError, match="holds no run"):
        open_run(tmp_path)


@pytest.mark.parametrize(
    "wrong", [{"config": 3}, {"seeds": None}, {"config": {"method": "mml", "search": {"beam": "many"}}}]
)
def test_a_wrong_description_is_an_error(finished, tmp_path, wrong):
    description = json.loads((finished.folder / "run.json").read_text())
    (tmp_path / "run.json").write_text(json.dumps({**description, **wrong}))
    with pytest.raises(VbsixError, match=r"run\.json: not the description|search\.beam: expected a whole number"):
        open_run(tmp_path)


@pytest.mark.slow
def test_a_seed_alone_learns_what_it_learns_among_others(tmp_path):
    domain, found = get_domain("tangrams"), []
    for seeds in ((0,), LOOP_SEEDS):
        folder = tmp_path / str(len(seeds))
        with pytest.raises(Interrupted):
            run_loop(folder, Watcher(stop_at=7), seeds)
        found.append(load_networks(folder / "checkpoints", learner_shapes(domain, LOOP_CONFIG, (0,)).networks, (0,)))
    (_, alone), (_, among) = found
    start = create_learners(domain, LOOP_CONFIG, jnp.array([0])).networks
    for one, other in zip(jax.tree.leaves(alone), jax.tree.leaves(among), strict=True):
        # Adam makes a step of a gradient that is nothing but rounding, so that a few parameters differ a little.
        np.testing.assert_allclose(one, other, atol=0.02)
        assert float(np.mean(np.abs(one - other))) < 4e-3
    moves = jax.tree.map(lambda one, first: float(jnp.max(jnp.abs(one - first))), alone, start)
    assert max(jax.tree.leaves(moves)) > 0.1


@pytest.mark.parametrize("place", ["policy_loss", "parameters"])
def test_what_is_not_finite_stops_the_run_and_spares_the_checkpoint(tmp_path, monkeypatch, place):
    def fails_late(*arguments, **options):
        learners, sums = train_chunk(*arguments, **options)
        if int(arguments[6]) < 6:
            return learners, sums
        if place == "policy_loss":
            return learners, sums | {place: sums[place]._replace(total=sums[place].total * jnp.nan)}
        return jax.tree.map(lambda leaf: leaf + jnp.inf, learners), sums

    monkeypatch.setattr(loop, "train_chunk", fails_late)
    with pytest.raises(VbsixError, match=rf"not finite after step 6: {place}\. .*learning_rate"):
        run_loop(tmp_path / "run")
    kept = sorted(path.name for path in (tmp_path / "run" / "checkpoints").iterdir())
    assert kept == ["step-00000003", "step-00000006"]
    monkeypatch.undo()
    watcher = Watcher()
    run_loop(tmp_path / "run", watcher)
    assert watcher.steps == list(range(6, 15))


@pytest.mark.parametrize(
    ("text", "advice"),
    [
        ("INTERNAL: CUDA_ERROR_LAUNCH_FAILED\nat 0x1", "the device failed: INTERNAL: CUDA_ERROR_LAUNCH_FAILED"),
        ("RESOURCE_EXHAUSTED: Out of memory", "the device has too little memory: train fewer seeds"),
    ],
)
def test_a_device_that_fails_is_one_message_and_the_run_continues(finished, tmp_path, monkeypatch, text, advice):
    def fails_late(*arguments, **options):
        if int(arguments[6]) >= 7:
            raise jax.errors.JaxRuntimeError(text)
        return train_chunk(*arguments, **options)

    monkeypatch.setattr(loop, "train_chunk", fails_late)
    folder = tmp_path / "run"
    with pytest.raises(VbsixError, match=rf"{advice}.* It was at step 7; .*--resume {folder}$") as error:
        run_loop(folder)
    assert "\n" not in str(error.value)
    monkeypatch.undo()
    run_loop(folder)
    assert outcome(folder) == outcome(finished.folder)


def test_a_disk_that_fills_up_stops_the_run_and_spares_the_checkpoint(finished, tmp_path, monkeypatch):
    fill_disk(monkeypatch, after=10)
    with pytest.raises(OSError, match=r"No space left on device: .*step-00000009"):
        run_loop(tmp_path / "run")
    monkeypatch.undo()
    watcher = Watcher()
    run_loop(tmp_path / "run", watcher)
    assert watcher.steps == list(range(6, 15))
    assert outcome(tmp_path / "run") == outcome(finished.folder)


ADVICES = {
    "vbsix": ["No search has", "search.beam=", "search.epsilon", "data.lengths"],
    "reinforce": ["No sample has", "training.samples=", "training.sample_epsilon", "data.lengths"],
}


@pytest.mark.parametrize("method", ADVICES)
def test_advice_names_settings_that_help(method):
    text = _advise(tiny_config(method), 6)
    assert "found a correct program in 6 steps" in text
    assert all(advice in text for advice in ADVICES[method])


def test_a_run_without_a_hit_says_so_early_and_once(tmp_path, monkeypatch):
    def never_hits(*arguments, **options):
        learners, sums = train_chunk(*arguments, **options)
        return learners, sums | {"hit": sums["hit"]._replace(total=sums["hit"].total * 0)}

    monkeypatch.setattr(loop, "train_chunk", never_hits)
    monkeypatch.setattr(loop, "PATIENCE", 5)
    watcher = Watcher()
    run_loop(tmp_path / "run", watcher)
    assert watcher.messages == [_advise(LOOP_CONFIG, 5)]


def test_speed_is_that_of_most_chunks(monkeypatch):
    times = iter([0.0, 0.0, 90.0, 100.0, 101.0, 200.0, 202.0, 300.0])
    monkeypatch.setattr(loop.time, "perf_counter", times.__next__)
    watch = loop._Stopwatch(seconds=5.0)
    for _ in range(3):  # the first one compiles, and something else is done in between
        with watch.chunk(steps=4):
            pass
    assert watch.steps_per_second() == 2.0
    assert watch.steps_per_second() == 0.0, "since the last time"
    assert watch.seconds() == 305.0


def test_a_run_with_hits_has_nothing_to_say(finished):
    assert finished.watcher.messages == []


def test_a_folder_that_cannot_be_written_is_an_error(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(NotADirectoryError):
        create_run(Run(tmp_path / "file" / "run", tiny_config(), (0,), "synthetic"))
