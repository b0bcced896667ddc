"""Runs that start from a trained policy."""

from __future__ import annotations

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from tiny_run import SEEDS, SETTINGS, make_run
from training.tiny import LOOP_CONFIG, LOOP_SEEDS, SECOND_STAGE, Watcher, outcome, run_tiny

import vbsix
from vbsix.config.schema import override
from vbsix.data.words import Words
from vbsix.evaluation.accuracy import evaluate_splits
from vbsix.parsing.continuing import open_source
from vbsix.parsing.loading import load, load_all
from vbsix.runs.checkpoints import to_tensors
from vbsix.runs.folder import Run, create_run, load_best, open_run, read_dataset
from vbsix.runs.group import Group
from vbsix.runs.loop import Interrupted, train
from vbsix.utilities.errors import VbsixError

pytestmark = pytest.mark.integration

WITH_CONTEXT = {"network.context": 4}


def begin(folder, source, seeds=SEEDS, **settings):
    """A new run that continues a source, and its first learners."""
    run = Run(folder, override(source.config, {**WITH_CONTEXT, **settings}), seeds, "synthetic")
    dataset = create_run(run, words=source.words, start=source.start)
    return run, dataset, Group([run], [dataset]).start()


def accuracies(run, dataset, learners):
    return evaluate_splits(dataset, learners.networks.policy, run.config)


def test_a_run_is_continued_exactly(tiny_run, tmp_path):
    """The policies are the same, bit for bit, and so is what they predict; context comes with weights of zero."""
    source = open_source(tiny_run.run.folder)
    run, dataset, learners = begin(tmp_path / "run", source)
    before, after = (to_tensors(each.networks.policy) for each in (tiny_run.learners, learners))
    assert {name for name in after if name not in before} == {
        ".context.commands.rows",
        ".context.world.rows",
        ".context.output",
        ".context.stack",
        ".context.utterances.weight",
        ".context.utterances.bias",
    }
    for name, tensor in before.items():
        np.testing.assert_array_equal(after[name], tensor)
    assert not np.any(after[".context.output"])
    np.testing.assert_array_equal(dataset.words.vectors, tiny_run.dataset.words.vectors)
    found = accuracies(run, dataset, learners)
    assert found == accuracies(tiny_run.run, tiny_run.dataset, tiny_run.learners)
    assert any(share > 0 for by_length in found.values() for shares in by_length.values() for share in shares)


def test_seeds_that_the_source_lacks_continue_its_best_one(tiny_run, tmp_path):
    _, _, learners = begin(tmp_path / "run", open_source(tiny_run.run.folder), seeds=(1, 2, 3))
    first, others = tiny_run.learners.networks.policy.tokens
    assert np.array_equal(learners.networks.policy.tokens, np.stack([first, others, others])), "seed 4 is best"


@pytest.mark.parametrize("ensemble", [False, True], ids=["one seed", "an ensemble"])
def test_an_exported_model_is_continued(tiny_run, tmp_path, ensemble):
    """A model has no word vectors, but what the encoder makes of them: its weights are recovered from that.

    Every seed of a run that continues a single one begins with its policy.
    """
    file = tmp_path / "model.safetensors"
    load(tiny_run.run.folder, seed=None if ensemble else 4, ensemble=ensemble).export(file)
    run, dataset, learners = begin(tmp_path / "run", open_source(file))
    known = accuracies(tiny_run.run, tiny_run.dataset, tiny_run.learners)
    expected = {
        split: {length: shares if ensemble else shares[1:] * 2 for length, shares in by_length.items()}
        for split, by_length in known.items()
    }
    assert accuracies(run, dataset, learners) == expected
    parser = load_all(tiny_run.run.folder)[-1]
    encoder = jax.tree.map(lambda leaf: leaf[-1], learners.networks.policy.utterances)
    projected = encoder.project(jnp.asarray(dataset.words.vectors))
    np.testing.assert_allclose(projected, parser.words.vectors, atol=1e-5)


def test_other_word_vectors_are_refused(tiny_run, tmp_path):
    file = tmp_path / "model.safetensors"
    load(tiny_run.run.folder, seed=4).export(file)
    source, words = open_source(file), tiny_run.dataset.words
    many = Words(words.words * 3, np.random.default_rng(0).normal(size=(3 * len(words.words), 100)).astype(np.float32))
    run = Run(tmp_path / "run", source.config, (0,), "synthetic")
    with pytest.raises(VbsixError, match="was trained with other word vectors"):
        source.start(run, replace(tiny_run.dataset, words=many))


def test_settings_that_the_policy_does_not_fit_are_refused_before_anything_is_written(tiny_run, tmp_path):
    source = open_source(tiny_run.run.folder)
    with pytest.raises(VbsixError, match=r"start\.safetensors: \S+ has shape"):
        begin(tmp_path / "run", source, **{"network.hidden": 9})
    assert not (tmp_path / "run").exists()
    made = make_run(tmp_path / "context", (0,), {**SETTINGS, **WITH_CONTEXT})
    with pytest.raises(VbsixError, match="has other parameters"):
        begin(tmp_path / "run", open_source(made.run.folder), (0,), **{"network.context": 0})


@pytest.fixture(scope="module")
def first(tmp_path_factory):
    """A run to continue."""
    folder = tmp_path_factory.mktemp("runs") / "first"
    run_tiny(folder, LOOP_CONFIG, LOOP_SEEDS)
    return folder


@pytest.mark.slow
def test_a_continued_run_starts_from_the_best_step_and_can_be_stopped(first, tmp_path):
    source = open_source(first)
    best = load_best(open_run(first), read_dataset(open_run(first)).domain)

    def go_on(name: str, stop_at: int | None = None) -> Watcher:
        run, watcher = (
            Run(tmp_path / name, override(source.config, WITH_CONTEXT), LOOP_SEEDS, "synthetic"),
            Watcher(stop_at),
        )
        begun = (run.folder / "run.json").exists()
        train(run, read_dataset(run) if begun else create_run(run, words=source.words, start=source.start), watcher)
        return watcher

    watcher = go_on("alone")
    scores = np.mean(list(watcher.accuracies[0]["dev"].values()), axis=0)
    np.testing.assert_allclose(scores, best.scores)
    for stop in (2, 9):
        with pytest.raises(Interrupted):
            go_on("cut", stop)
    go_on("cut")
    assert outcome(tmp_path / "cut") == outcome(tmp_path / "alone")
    parser = load(tmp_path / "alone", best=True)
    parser.export(tmp_path / "model.safetensors")
    example = read_dataset(open_run(first)).splits["dev"].examples(2)[0]
    request = example.context, example.instructions
    assert load(tmp_path / "model.safetensors").parse(*request) == parser.parse(*request)


def test_a_run_is_not_resumed_from_another_start(first, tmp_path):
    source = open_source(first)
    run = Run(tmp_path / "run", override(source.config, SECOND_STAGE), LOOP_SEEDS, "synthetic")
    with pytest.raises(Interrupted):
        train(run, create_run(run, words=source.words, start=source.start), Watcher(2))
    content = bytearray(run.start.read_bytes())
    content[-1] ^= 1
    run.start.write_bytes(content)
    with pytest.raises(VbsixError, match="made with other start"):
        train(run, read_dataset(run), Watcher())


def test_a_policy_with_context_searches(tmp_path):
    """Given the domain by its name, which is the one without context."""
    made = make_run(tmp_path / "context", (0,), {**SETTINGS, **WITH_CONTEXT})
    found = vbsix.search_programs(
        "tangrams", "1:0 2:3", ["swap them"], "1:3 2:0", parser=load(made.run.folder), beam=64, epsilon=0.5
    )
    assert found.programs
