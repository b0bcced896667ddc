from __future__ import annotations

import functools
import json

import pytest

from vbsix.benchmarks import search
from vbsix.benchmarks.search import COMBINATIONS, PARTS, Sizes, bench_search
from vbsix.models import NetworkConfig
from vbsix.search import SearchConfig

TINY = Sizes(
    examples=2,
    instructions=1,
    seeds=2,
    search=SearchConfig(beam=4, rerank=6, program_beam=2),
    network=NetworkConfig(word=5, lstm=3, slot=4, attribute=2, hidden=6, token=5),
)


@pytest.fixture(autouse=True)
def tiny(monkeypatch):
    monkeypatch.setattr(search, "bench_search", functools.partial(bench_search, sizes=TINY))


def check_figures(result: dict, combination: str) -> None:
    figures = result[combination]
    slowest, median, fastest = (figures[f"{which}searches_per_second"] for which in ("slowest_", "", "fastest_"))
    assert 0 < slowest <= median <= fastest
    assert figures["compile_seconds"] > 0
    shares = figures["shares"]
    assert tuple(shares) == PARTS
    assert sum(shares.values()) == pytest.approx(1)
    assert all(share > 0 for part, share in shares.items() if part not in ("critic", "rest"))
    assert (shares["critic"] > 0) == ("critic" in combination)
    assert ("execution_over_program" in figures) == ("execution" in combination)


@pytest.mark.slow
def test_json(vbsix):
    ended = vbsix("bench", "search", "--json", "tangrams")
    assert (ended.code, ended.err) == (0, "")
    ((name, result),) = json.loads(ended.out).items()
    assert name == "tangrams"
    for combination in COMBINATIONS:
        check_figures(result, combination)
    for ending in "", "+critic":
        program, execution = result[f"program{ending}"], result[f"execution{ending}"]
        ratio = program["searches_per_second"] / execution["searches_per_second"]
        assert execution["execution_over_program"] == pytest.approx(ratio)
    assert (result["examples"], result["instructions"], result["beam"], result["rerank"]) == (2, 1, 4, 6)
    assert (result["memory_seeds"], result["memory_bytes"] > 0) == (2, True)
    assert 0 < result["beam_filled"] <= 1
    assert result["device"] and result["cores"] > 0
    assert "jax" in result["versions"]


def test_tables(vbsix, monkeypatch):
    figures = {
        "searches_per_second": 120.4,
        "fastest_searches_per_second": 130.0,
        "slowest_searches_per_second": 110.0,
        "compile_seconds": 1.25,
        "shares": dict.fromkeys(PARTS, 0.25),
        "execution_over_program": 1.37,
    }
    measured_on = {"device": "cpu: cpu", "cores": 2, "versions": {"jax": "0.10"}}
    of_domain = {"examples": 8, "memory_seeds": 6, "memory_bytes": 57_000_000, **measured_on}
    monkeypatch.setattr(search, "bench_search", lambda name: dict.fromkeys(COMBINATIONS, figures) | of_domain)
    out = vbsix("bench", "search").out
    for name in "alchemy", "scene", "tangrams":
        assert f"{name} execution+critic" in out
        assert f"time goes in {name}" in out
    assert all(part in out for part in PARTS)
    assert "110 to 130" in out
    assert "1.37" in out
    assert "57" in out


def test_unknown_domains_are_refused_before_anything_is_measured(vbsix, monkeypatch):
    monkeypatch.setattr(search, "bench_search", lambda name: pytest.fail("measured"))
    ended = vbsix("bench", "search", "scene", "chess")
    assert ended.code == 2
    assert "chess" in ended.err
    assert "tangrams" in ended.err


def test_shares_are_of_the_parts_where_these_take_longer_than_the_search():
    parts = {"executor": 2.0, "merging in program": 1.0, "merging in execution": 3.0, "critic": 9.0}
    assert search._shares("program", parts, total=4.0) == {
        "executor": 0.5,
        "merging": 0.25,
        "policy": 0.0,
        "critic": 0.0,
        "extraction": 0.0,
        "rest": 0.25,
    }
    assert search._shares("execution+critic", parts, total=4.0)["critic"] == pytest.approx(9 / 14)
