from __future__ import annotations

import json

import pytest

from vbsix.benchmarks import predict

MEASURED = "milliseconds_batched", "milliseconds_single", "compile_seconds", "first_single_seconds"

pytestmark = pytest.mark.usefixtures("tiny_presets")


@pytest.mark.slow
def test_json(vbsix):
    ended = vbsix("bench", "predict", "tangrams", "--seeds", "2", "--json")
    assert (ended.code, ended.err) == (0, "")
    result = json.loads(ended.out)
    assert [result[name] for name in ("domain", "utterances", "seeds", "beam", "batch")] == ["tangrams", 5, 2, 4, 3]
    assert all(result[name] > 0 for name in MEASURED)
    assert result["milliseconds_single"] < 1000 * result["first_single_seconds"]
    assert result["device"] and "jax" in result["versions"]


def test_all_domains_by_default(vbsix, monkeypatch):
    monkeypatch.setattr(
        predict, "bench_predict", lambda config, seeds: {"domain": config.domain, **dict.fromkeys(MEASURED, 12.345)}
    )
    results = json.loads(vbsix("bench", "predict", "--json").out)
    assert [result["domain"] for result in results] == ["alchemy", "scene", "tangrams"]
    out = vbsix("bench", "predict").out
    assert all(text in out for text in ("alchemy", "scene", "tangrams", "batched", "12.35", "12.3"))


def test_unknown_domains_are_refused_before_anything_is_measured(vbsix, monkeypatch):
    monkeypatch.setattr(predict, "bench_predict", lambda *sizes: pytest.fail("measured"))
    ended = vbsix("bench", "predict", "chess")
    assert ended.code == 2
    assert "chess" in ended.err and "tangrams" in ended.err
