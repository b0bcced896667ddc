from __future__ import annotations

import json

import pytest

from vbsix import benchmarks
from vbsix.benchmarks import train
from vbsix.config.presets import preset

MEASURED = "steps_per_second", "examples_per_second", "compile_seconds", "peak_memory_bytes"
SIZES = "domain", "method", "recipe", "runs", "seeds", "beam", "batch"

pytestmark = pytest.mark.usefixtures("tiny_presets")


@pytest.fixture
def not_measured(monkeypatch):
    """Settings stay as they are, numbers are made up."""

    def bench_train(config, seeds, warm, runs):
        sizes = (config.domain, "mml", config.recipe, runs, seeds, config.search.beam, config.training.batch)
        return dict(zip(SIZES, sizes, strict=True)) | dict.fromkeys(MEASURED, 1234.5) | {"warm": warm}

    monkeypatch.setattr(train, "bench_train", bench_train)


@pytest.mark.slow
def test_json(vbsix):
    names = ("--method", "mml", "--recipe", "published")
    ended = vbsix(
        "bench", "train", "tangrams", "--json", *names, "--seeds", "2", "--runs", "2", "--beam", "5", "--batch", "3"
    )
    assert (ended.code, ended.err) == (0, "")
    result = json.loads(ended.out)
    assert [result[name] for name in SIZES] == ["tangrams", "mml", "published", 2, 2, 5, 3]
    assert all(result[name] > 0 for name in MEASURED)
    assert result["examples_per_second"] == pytest.approx(2 * 2 * 3 * result["steps_per_second"])
    assert result["device"] and "jax" in result["versions"]


@pytest.mark.parametrize(("method", "critic_ranks"), [("vbsix", True), ("mml", False)])
def test_warm_steps_come_before_the_measured_ones(vbsix, monkeypatch, method, critic_ranks):
    steps, before = [], []

    class Compiled:
        def __call__(self, learners, seeds, vectors, examples, step, renaming):
            assert renaming is None
            steps.append(int(step))
            return learners, {}

        def memory_analysis(self):
            return None

    def compile_apart(*arguments, **options):
        assert options == {"steps": 4, "critic_ranks": critic_ranks, "at_once": None}
        return Compiled(), 1.5

    def repeat(call, compile_seconds):
        before.extend(steps)
        return benchmarks.repeat(call, compile_seconds)

    monkeypatch.setattr(train, "create_learners", lambda domain, config, seeds: 0)
    monkeypatch.setattr(train, "compile_apart", compile_apart)
    monkeypatch.setattr(train, "repeat", repeat)
    result = json.loads(vbsix("bench", "train", "tangrams", "--json", "--method", method, "--warm", "6").out)
    assert before == [0, 4]
    assert steps == [0, 4, 8, 12, 16, 20]
    assert result["method"] == method
    assert (result["compile_seconds"], result["peak_memory_bytes"]) == (1.5, None)


@pytest.mark.usefixtures("not_measured")
def test_all_domains_by_default(vbsix):
    results = json.loads(vbsix("bench", "train", "--json", "--method", "mml", "--warm", "7").out)
    assert [result["domain"] for result in results] == ["alchemy", "scene", "tangrams"]
    assert {result["warm"] for result in results} == {7}
    out = vbsix("bench", "train", "--method", "mml").out
    assert "Training with mml, stochastic recipe" in out
    assert all(name in out for name in ("alchemy", "scene", "tangrams", "examples/s", "1.23e+03", "1234.5"))


def test_growth_changes_one_size_at_a_time():
    grown = train.grow(preset("scene"), 1)
    sizes = [(config.search.beam, config.training.batch, seeds) for config, seeds in grown]
    assert sizes == [
        *((beam, 8, 1) for beam in (16, 32, 64, 128, 256)),
        *((32, batch, 1) for batch in (16, 32, 64)),
        *((32, 8, seeds) for seeds in (2, 4, 6, 8, 12)),
    ]


@pytest.mark.usefixtures("not_measured")
def test_sweep(vbsix):
    results = json.loads(vbsix("bench", "train", "scene", "--sweep", "--json", "--beam", "32", "--batch", "8").out)
    assert len(results) == 13
    assert all({*SIZES, *MEASURED} <= set(result) for result in results)
    title, columns, *rows = vbsix("bench", "train", "--sweep", "--beam", "32", "--batch", "8").out.splitlines()
    assert "cores" in title
    assert columns.split()[:4] == ["domain", "seeds", "beam", "batch"]
    assert len(rows) == 3 * 13
    assert rows[-1].split() == ["tangrams", "12", "32", "8", "1.23e+03", "1.23e+03", "1234.5", "0"]


def test_an_interrupted_sweep_leaves_its_rows(vbsix, monkeypatch, not_measured):
    bench_train = train.bench_train

    def interrupted(config, seeds, warm, runs):
        if config.search.beam == 64:
            raise KeyboardInterrupt
        return bench_train(config, seeds, warm, runs)

    monkeypatch.setattr(train, "bench_train", interrupted)
    ended = vbsix("bench", "train", "scene", "--sweep")
    assert ended.code != 0
    assert [line.split()[2] for line in ended.out.splitlines()[2:]] == ["16", "32"]


@pytest.mark.parametrize(
    ("arguments", "wrong", "known"),
    [
        (["chess"], "chess", "tangrams"),
        (["--method", "magic"], "magic", "vbsix"),
        (["--recipe", "magic"], "magic", "published"),
        (["--beam", "0"], "--beam", ""),
    ],
)
def test_bad_input_is_refused_before_anything_is_measured(vbsix, monkeypatch, arguments, wrong, known):
    monkeypatch.setattr(train, "bench_train", lambda *sizes, **options: pytest.fail("measured"))
    ended = vbsix("bench", "train", *arguments)
    assert ended.code == 2
    assert wrong in ended.err and known in ended.err
