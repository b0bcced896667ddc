from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from xml.etree import ElementTree

import pytest

from vbsix.benchmarks import executor, page, predict, requests, search, train
from vbsix.benchmarks.page import PARTS, draw_growth, fill_page, read_results
from vbsix.utilities.files import read_json, write_json

CPU = {"device": "cpu: cpu", "processor": "x86_64", "cores": 2, "versions": {"vbsix": "1.0", "jax": "0.10.2"}}
GPU = CPU | {"device": "gpu: NVIDIA H200", "cores": 16}
SIZES = {"beam": 32, "batch": 8, "seeds": 1}


def training(domain: str, method: str, speed: float, **others) -> dict:
    measured = {"steps_per_second": speed, "compile_seconds": 25.04, "peak_memory_bytes": 367_000_000}
    return {"domain": domain, "method": method, **SIZES, **measured, **CPU, **others}


def write(folder: Path, name: str, command: str, results, date: str = "2026-01-02") -> None:
    content = {"command": f"vbsix bench {command}", "date": date, "results": results}
    write_json(folder / "benchmarks" / "results" / f"{name}.json", content)


@pytest.fixture
def folder(tmp_path):
    """A page with all parts, and nothing measured."""
    (tmp_path / "docs" / "figures").mkdir(parents=True)
    parts = "".join(f"<!-- {name} -->\nold\n<!-- end -->\n" for name in PARTS)
    (tmp_path / "docs" / "speed.md").write_text(f"Ours.\n{parts}kept\n")
    return tmp_path


def fill(folder: Path, name: str) -> list[str]:
    """The lines of one part."""
    text = fill_page(f"<!-- {name} -->\n<!-- end -->", read_results(folder / page.RESULTS))
    return text.splitlines()[2:-2]


def test_the_committed_page_agrees_with_the_committed_results():
    root = Path(__file__).parents[2]
    text, results = (root / page.PAGE).read_text(), read_results(root / page.RESULTS)
    assert fill_page(text, results) == text, "make it anew: vbsix bench page --out ."
    assert all(f"<!-- {name} -->" in text for name in PARTS)
    if grown := page._choose(page.GROWTH, results):
        drawn = (root / "docs" / page.FIGURE).read_text()
        assert all(f"<!-- {name} -->" in drawn for name in page._curves(grown, "seeds"))


def test_the_command_fills_the_page(vbsix, folder):
    ended = vbsix("bench", "page", "--out", str(folder))
    text = folder / "docs" / "speed.md"
    assert (ended.code, ended.err, ended.out) == (0, "", f"written: {text}\n")
    nothing = "".join(f"<!-- {name} -->\n\nNot measured yet.\n\n<!-- end -->\n" for name in PARTS)
    assert text.read_text() == f"Ours.\n{nothing}kept\n"
    write(folder, "any", "train scene --sweep", [training("scene", "vbsix", 4.0)])
    figure = folder / "docs" / "figures" / "growth.svg"
    assert vbsix("bench", "page", "--out", str(folder)).out == f"written: {text}, {figure}\n"
    assert "(figures/growth.svg)" in text.read_text()
    drawn = figure.read_text()
    ElementTree.fromstring(drawn)
    assert "<!-- scene, vbsix, 2 CPU cores -->" in drawn
    assert vbsix("bench", "page", "--out", str(folder)).code == 0
    assert figure.read_text() == drawn
    refused = vbsix("bench", "page", "--out", str(folder / "docs"))
    assert refused.code == 2 and "no such file; --out names the folder that holds benchmarks/results/" in refused.err


@pytest.mark.parametrize(
    "odd",
    [
        {"results": []},
        {"command": "vbsix bench train", "date": "2026-01-02", "results": [1]},
        {"command": "vbsix bench train", "date": "2026-01-02", "results": {"domain": "chess", **CPU}},
        {"command": "vbsix bench train", "date": "2026-01-02", "results": {"domain": "scene"}},
        {"command": "vbsix", "date": "2026-01-02", "results": {"domain": "scene", **CPU}},
    ],
)
def test_other_files_are_refused(vbsix, folder, odd):
    write(folder, "a", "train scene --sweep", [training("scene", "vbsix", 4.0)])
    content, odd = odd, folder / "benchmarks" / "results" / "odd.json"
    write_json(odd, content)
    ended = vbsix("bench", "page", "--out", str(folder))
    assert ended.code == 2 and f"{odd}: not what `vbsix bench` writes" in ended.err


def test_training_on_a_gpu(folder):
    six = GPU | {"seeds": 6}
    write(folder, "a", "train --seeds 6", [training(name, "vbsix", 100, **six) for name in ("tangrams", "scene")])
    write(folder, "b", "train scene --seeds 6", training("scene", "vbsix", 250, **six), date="2026-01-03")
    mml = training("scene", "mml", 7.5, **six, peak_memory_bytes=None)
    others = [training("scene", "mml", 1, **six, beam=64), training("scene", "mml", 1, **GPU)]
    write(folder, "c", "train --seeds 6 --method mml", [mml, *others])
    write(folder, "d", "train --sweep --seeds 6", [training("scene", "mml", 1, **six)], date="2026-01-04")
    _, _, *rows = fill(folder, "training-gpu")
    assert rows == [
        "| scene | mml | 7.5 | - | 50 | 25 | - |",
        "| scene | vbsix | 250 | 100 | 1.5 | 25 | 367 |",
        "| tangrams | vbsix | 100 | 200 | 6.67 | 25 | 367 |",
        "",
        "- NVIDIA H200 (x86_64), 2026-01-02, vbsix 1.0, jax 0.10.2: `vbsix bench train --seeds 6 --method mml`",
        "- NVIDIA H200 (x86_64), 2026-01-03, vbsix 1.0, jax 0.10.2: `vbsix bench train scene --seeds 6`",
        "- NVIDIA H200 (x86_64), 2026-01-02, vbsix 1.0, jax 0.10.2: `vbsix bench train --seeds 6`",
    ]


def test_training_on_cpu_beside_the_published_code(folder):
    write(folder, "mml", "train --method mml", [training("scene", "mml", 10), training("alchemy", "mml", 300)])
    write(folder, "vbsix", "train", [training("scene", "vbsix", 4), training("tangrams", "vbsix", 4, cores=8)])
    _, _, *rows = fill(folder, "training-cpu")
    assert rows[:3] == [
        "| scene | 10 | 0.1 | 5.5 | 3.4 | 55 | 34 | 4 | 2.5 |",
        "| alchemy | 300 | 0.00333 | 3.5 | 2 | 1,050 | 600 | - | - |",
        "| tangrams | - | - | 3.2 | 1.9 | - | - | - | - |",
    ]


def test_prediction_executor_and_search(folder):
    alone = {"domain": "tangrams", "milliseconds_batched": 1.1, "milliseconds_single": 20.0, **CPU}
    write(folder, "predict", "predict tangrams", alone)
    assert "| 2 CPU cores | tangrams | 1.1 | 20 | 330 | 200 | 300 | 182 |" in fill(folder, "prediction")
    many = alone | GPU | {"domain": "scene", "seeds": 6, "batch": 64, "compile_seconds": 8.04}
    write(folder, "many", "predict scene --seeds 6", many)
    assert "| 2 CPU cores | tangrams | 1.1 | 20 | 330 | 200 | 300 | 182 |" in fill(folder, "prediction")
    assert fill(folder, "evaluation")[2] == "| NVIDIA H200 | scene | 6 | 1.1 | 1,035 | 1.2 | 8.04 |"
    peaks = {"driver": [1e6, 3e6, 2e6, 4e6], "worker": [5e6, 6e6, 9e6, 7e6]}
    figures = {"requests": 1000, "requests_per_second": 123.4, "cpu_milliseconds": 1.5, **CPU}
    for engine in ("ray", "local"):
        memory = peaks if engine == "ray" else {"driver": peaks["driver"]}
        measured = {"domain": "tangrams", "engine": engine, "memory_bytes": memory, **figures}
        write(folder, engine, f"requests --engine {engine}", measured)
    assert fill(folder, "requests")[2:4] == [
        "| 2 CPU cores | tangrams | local | 1,000 | 123 | 1.5 | 3, 4 | - |",
        "| 2 CPU cores | tangrams | ray | 1,000 | 123 | 1.5 | 3, 4 | 6, 9 |",
    ]
    speeds = {"scene": {"transitions_per_second": 34e6, **CPU}, "alchemy": {"transitions_per_second": 2.2e9, **GPU}}
    write(folder, "executor", "executor", speeds)
    assert fill(folder, "executor")[2:4] == [
        "| 2 CPU cores | scene | 34 | 0.34 | 0.55 | 100 | 61.8 |",
        "| NVIDIA H200 | alchemy | 2,200 | 0.34 | 0.55 | 6,471 | 4,000 |",
    ]
    shares = dict.fromkeys(search.PARTS, 0.125)
    figures = {how: {"searches_per_second": 120.4, "shares": shares} for how in search.COMBINATIONS}
    write(folder, "search", "search scene", {"scene": figures | CPU})
    assert "| 2 CPU cores | scene | program+critic | 120 | 12 | 12 | 12 | 12 | 12 | 12 |" in fill(folder, "search")


def test_growth_shows_one_size_at_a_time_and_what_seeds_cost(folder):
    grown = [("beam", 64, 2), ("beam", 16, 8), ("batch", 16, 2), ("seeds", 2, 3), ("seeds", 6, 1.6)]
    results = [training("scene", "vbsix", 4), *(training("scene", "vbsix", v, **{n: s}) for n, s, v in grown)]
    write(folder, "cpu", "train scene --sweep", results)
    write(folder, "gpu", "train alchemy --sweep", [training("alchemy", "vbsix", 100, **GPU)])
    image, _, cost, *_ = fill(folder, "growth")
    assert image.startswith("![") and image.endswith("(figures/growth.svg)")
    assert cost.endswith("relative to one seed: scene, vbsix, 2 CPU cores: 30%.")
    panels = draw_growth(page._choose(page.GROWTH, read_results(folder / page.RESULTS))).axes
    assert [panel.get_xlabel() for panel in panels] == ["beam", "batch", "seeds"]
    assert [panel.lines[0].get_xydata().tolist() for panel in panels] == [
        [[16, 125], [32, 250], [64, 500]],
        [[8, 250], [16, 500]],
        [[1, 250], [2, pytest.approx(1000 / 3)], [6, 625]],
    ]
    assert [panel.lines[1].get_xydata().tolist() for panel in panels] == [[[32, 10]], [[8, 10]], [[1, 10]]]


@pytest.mark.parametrize("given", [["--out", "{}"], ["--out={}"]])
@pytest.mark.parametrize(
    "command",
    [
        "train scene --seeds 2",
        "train --sweep",
        "predict",
        "predict scene",
        "requests scene",
        "executor",
        "search scene",
    ],
)
def test_results_are_written_with_command_and_date(vbsix, monkeypatch, tmp_path, command, given):
    result = {"domain": "scene", **CPU}
    for module in executor, predict, requests, search, train:
        name = f"bench_{module.__name__.rpartition('.')[2]}"
        monkeypatch.setattr(module, name, lambda *sizes, **options: result)
    path = tmp_path / "new" / "a file.json"
    ended = vbsix("bench", *command.split(), "--json", *(word.format(path) for word in given))
    assert (ended.code, ended.err) == (0, "")
    written = read_json(path)
    assert written["command"] == f"vbsix bench {command} --json"
    assert written["date"] == datetime.now(UTC).date().isoformat()
    assert written["results"] == json.loads(ended.out)


def test_what_was_measured_before_an_interruption_is_written(vbsix, monkeypatch, tmp_path):
    def bench_train(config, seeds, warm, runs):
        if config.search.beam == 64:
            raise KeyboardInterrupt
        return training("scene", "vbsix", 1.0, beam=config.search.beam)

    monkeypatch.setattr(train, "bench_train", bench_train)
    path = tmp_path / "sweep.json"
    assert vbsix("bench", "train", "scene", "--sweep", "--json", "--out", str(path)).code != 0
    assert [result["beam"] for result in read_json(path)["results"]] == [16, 32]
