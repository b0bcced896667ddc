from __future__ import annotations

import json

import pytest

from vbsix.benchmarks import executor

WORLDS = executor.WORLDS


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    monkeypatch.setattr(executor, "STATES", 16)
    monkeypatch.setattr(executor, "REFERENCE_SECONDS", 0.01)
    monkeypatch.setattr(executor, "WORLDS", {"tangrams": WORLDS["tangrams"]})


@pytest.mark.parametrize(
    "domains", [["tangrams"], pytest.param(["alchemy", "scene"], marks=pytest.mark.slow)], ids=" ".join
)
def test_json(vbsix, monkeypatch, domains):
    assert set(WORLDS) == {"alchemy", "scene", "tangrams"}
    monkeypatch.setattr(executor, "WORLDS", {name: WORLDS[name] for name in domains})
    ended = vbsix("bench", "executor", "--json")
    assert (ended.code, ended.err) == (0, "")
    results = json.loads(ended.out)
    assert list(results) == domains
    for result in results.values():
        slowest, median, fastest = (result[f"{which}transitions_per_second"] for which in ("slowest_", "", "fastest_"))
        assert 0 < slowest <= median <= fastest
        assert result["reference_transitions_per_second"] > 0
        assert result["times_reference"] == pytest.approx(median / result["reference_transitions_per_second"])
        assert result["python_transitions_per_second"] > 0
        assert "python_microseconds_beyond_step" in result
        assert result["compile_seconds"] > 0
        assert result["device"] and result["cores"] > 0
        assert {"vbsix", "python", "jax", "jaxlib", "numpy"} <= set(result["versions"])


def test_a_twin_that_is_not_installed_is_no_error(vbsix, monkeypatch):
    monkeypatch.setattr(executor, "_reference_module", lambda: None)
    result = json.loads(vbsix("bench", "executor", "--json").out)["tangrams"]
    assert result["reference_transitions_per_second"] is None
    assert result["times_reference"] is None
    monkeypatch.setenv("COLUMNS", "120")
    table = vbsix("bench", "executor").out
    assert "tangrams" in table
    assert "not installed" in table
