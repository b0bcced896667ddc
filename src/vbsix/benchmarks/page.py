"""The page about speed: what `vbsix bench` wrote with `--out`, beside the speed of the published code."""

from __future__ import annotations

import math
import shlex
from collections import defaultdict
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import mode
from typing import Any, NamedTuple

from matplotlib.figure import Figure

from vbsix.benchmarks import peers
from vbsix.benchmarks.requests import DRIVER, WORKER
from vbsix.benchmarks.search import COMBINATIONS
from vbsix.benchmarks.search import PARTS as SEARCH_PARTS
from vbsix.config.presets import preset
from vbsix.show.curves import save
from vbsix.utilities.errors import VbsixError
from vbsix.utilities.files import read_json, write_bytes
from vbsix.utilities.markdown import fill_parts, read_page, to_markdown
from vbsix.utilities.numbers import MISSING

PAGE = Path("docs", "speed.md")
RESULTS = Path("benchmarks", "results")
FIGURE = Path("figures", "growth.svg")
GROWTH = "growth"
"""The name of the part that shows the figure."""
DOMAINS = tuple(peers.TRAINING)
METHODS = "mml", "vbsix"
SEEDS = 6
"""Of the paper, and of training on a GPU."""
TEST_ROWS = {"scene": 1035, "alchemy": 899, "tangrams": 800}
"""Of SCONE."""
AIMS = {"scene": 100, "alchemy": 150, "tangrams": 200}
"""Our aims: steps a second of VBSiX with six seeds on a GPU."""
SIZES = "beam", "batch", "seeds"
IDENTITY = "domain", "engine", "method", "recipe", "device", "cores", "chunk", "warm", "runs", *SIZES
"""Of results that agree in these, the latest counts."""
Result = dict[str, Any]
"""Figures of one domain, with the command and the date of their file."""


class Part(NamedTuple):
    """A part of the page."""

    fits: Callable[[Result], bool]
    """Whether it shows a result."""
    show: Callable[[list[Result]], str]


def write_page(folder: Path) -> list[Path]:
    """Updates the tables and the figure of a folder's page from all its results.

    Returns:
        The files written.
    """
    text, results = read_page(folder, PAGE, RESULTS), read_results(folder / RESULTS)
    files = [folder / PAGE]
    if grown := _choose(GROWTH, results):
        files.append(folder / PAGE.parent / FIGURE)
        save(draw_growth(grown), files[-1])
    write_bytes(folder / PAGE, fill_page(text, results).encode())
    return files


def read_results(folder: Path) -> list[Result]:
    """The results of all files of a folder, the latest last."""
    found = []
    for path in sorted(folder.glob("*.json")):
        try:
            found += _read_file(path)
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            wrong = "not what `vbsix bench` writes with --out; take it away or measure again."
            raise VbsixError(f"{path}: {wrong}") from error
    return sorted(found, key=lambda result: result["date"])


def _read_file(path: Path) -> list[Result]:
    file = read_json(path)
    results, (program, bench, _, *_) = file["results"], shlex.split(file["command"])
    if isinstance(results, dict):
        results = [results] if "domain" in results else [{"domain": name, **one} for name, one in results.items()]
    known = all(one["domain"] in DOMAINS and one["device"] for one in results)
    if (program, bench) != ("vbsix", "bench") or not known:
        raise ValueError
    return [
        {"warm": 0, "seeds": 1, "runs": 1, **one, "command": file["command"], "date": file["date"]} for one in results
    ]


def fill_page(text: str, results: Sequence[Result]) -> str:
    """The text with the parts between `<!-- PART -->` and `<!-- end -->` replaced."""

    def make(name: str) -> str:
        chosen = _choose(name, results)
        return f"{PARTS[name].show(chosen)}\n\n{_origins(chosen)}" if chosen else "Not measured yet."

    return fill_parts(text, PARTS, make)


def draw_growth(results: Sequence[Result]) -> Figure:
    """The time of a step against each size."""
    figure = Figure(figsize=(15, 4.5), layout="constrained")
    panels = figure.subplots(1, len(SIZES), sharey=True)
    for axes, size in zip(panels, SIZES, strict=True):
        axes.set(xlabel=size, xscale="log", yscale="log")
        for name, curve in _curves(results, size).items():
            axes.plot(curve.keys(), curve.values(), marker=".", label=name)
        measured = sorted({result[size] for result in results})
        axes.set_xticks(measured, map(str, measured))
        axes.minorticks_off()
        axes.grid(alpha=0.3)
    panels[0].set_ylabel("milliseconds of a step")
    panels[0].yaxis.set_major_formatter("{x:g}")
    figure.legend(*panels[0].get_legend_handles_labels(), loc="outside lower center", ncols=3)
    return figure


def _choose(name: str, results: Sequence[Result]) -> list[Result]:
    """The results that a part shows, in order."""
    latest = {tuple(map(result.get, IDENTITY)): result for result in results if PARTS[name].fits(result)}
    return sorted(
        latest.values(),
        key=lambda result: (
            result["device"],
            DOMAINS.index(result["domain"]),
            result.get("engine", ""),
            result.get("method", ""),
            result["runs"],
        ),
    )


def _is_of(command: str, result: Result) -> bool:
    return shlex.split(result["command"])[2] == command


def _is_sweep(result: Result) -> bool:
    return _is_of("train", result) and "--sweep" in shlex.split(result["command"])


def _is_paper_training(result: Result) -> bool:
    """Whether a result is of training at the paper's sizes."""
    return (
        _is_of("train", result)
        and not _is_sweep(result)
        and not _is_of_runs(result)
        and result["method"] in METHODS
        and not result["warm"]
        and (result["beam"], result["batch"]) == _paper_sizes(result)
    )


def _paper_sizes(result: Result) -> tuple[int, int]:
    config = preset(result["domain"], result["method"])
    return config.search.beam, config.training.batch


def _on_cpu(result: Result) -> bool:
    return result["device"].startswith("cpu:")


def _training_on_gpu(results: list[Result]) -> str:
    def row(result: Result) -> list[str]:
        domain, method, speed = result["domain"], result["method"], result["steps_per_second"]
        memory = result["peak_memory_bytes"]
        return [
            domain,
            method,
            _number(speed),
            str(AIMS[domain]) if method == "vbsix" else MISSING,
            _number(preset(domain, method).training.steps / speed / 60),
            _number(result["compile_seconds"]),
            MISSING if memory is None else _number(memory / 1e6),
        ]

    heading = ["domain", "method", "steps/s", "aim", "the paper's run, min", "compile, s", "memory, MB"]
    return to_markdown([heading, *map(row, results)])


def _training_on_cpu(results: list[Result]) -> str:
    speed = {(result["domain"], result["method"]): result["steps_per_second"] for result in results}

    def row(domain: str) -> list[str]:
        mml, vbsix = (speed.get((domain, method), math.nan) for method in METHODS)
        published, ported = peers.TRAINING[domain]
        figures = mml, 1 / mml, published, ported, published * mml, ported * mml, vbsix, mml / vbsix
        return [domain, *map(_number, figures)]

    heading = [
        "domain",
        "mml, steps/s",
        "mml, s a step",
        "Guu et al.'s code, s a step",
        "ported, s a step",
        "times Guu et al.'s",
        "times ported",
        "vbsix, steps/s",
        "time of vbsix / mml",
    ]
    return to_markdown([heading, *map(row, DOMAINS)])


def _prediction(results: list[Result]) -> str:
    def row(result: Result) -> list[str]:
        batched, alone = result["milliseconds_batched"], result["milliseconds_single"]
        published, ported = (1000 * seconds for seconds in peers.PREDICTION[result["domain"]])
        return [
            _device(result),
            result["domain"],
            *map(_number, (batched, alone, published, ported, published / batched, ported / batched)),
        ]

    heading = ["device", "domain", "batched, ms", "alone, ms", "Guu et al.'s code, ms", "ported, ms"]
    return to_markdown([[*heading, "times Guu et al.'s, batched", "times ported, batched"], *map(row, results)])


def _is_of_runs(result: Result) -> bool:
    """Whether a result is of runs side by side, or of the one run that they are compared with."""
    return _is_of("train", result) and "--runs" in shlex.split(result["command"])


def _runs(results: list[Result]) -> str:
    """Runs side by side, and how much longer a step of all of them takes than a step of one."""

    def row(result: Result) -> list[str]:
        same = [one for one in results if all(one[name] == result[name] for name in ("device", "domain", "seeds"))]
        alone = next((one["steps_per_second"] for one in same if one["runs"] == 1), math.nan)
        names = [_device(result), result["domain"], *(str(result[size]) for size in ("runs", "seeds"))]
        speed = result["steps_per_second"]
        return [*names, _number(speed), _number(alone / speed), _number(alone / speed / result["runs"])]

    heading = ["device", "domain", "runs", "seeds of each", "steps/s", "time relative to one run"]
    return to_markdown([[*heading, "relative to the same runs one after the other"], *map(row, results)])


def _evaluation(results: list[Result]) -> str:
    def row(result: Result) -> list[str]:
        domain, milliseconds = result["domain"], result["milliseconds_batched"]
        batches = math.ceil(TEST_ROWS[domain] / result["batch"])  # the last one is filled up
        seconds = milliseconds * batches * result["batch"] / 1000
        figures = map(_number, (milliseconds, TEST_ROWS[domain], seconds, result["compile_seconds"]))
        return [_device(result), domain, str(result["seeds"]), *figures]

    heading = ["device", "domain", "seeds", "an example, ms", "test rows", "all of them, s", "compile, s"]
    return to_markdown([heading, *map(row, results)])


def _requests(results: list[Result]) -> str:
    """Files of requests; memory in both halves of the time."""

    def memory(result: Result, kind: str) -> str:
        peaks = result["memory_bytes"].get(kind)
        if peaks is None:
            return MISSING
        half = len(peaks) // 2
        return ", ".join(_number(max(part) / 1e6) for part in (peaks[:half], peaks[half:]))

    def row(result: Result) -> list[str]:
        names = [_device(result), result["domain"], result["engine"], f"{result['requests']:,}"]
        speeds = (_number(result[name]) for name in ("requests_per_second", "cpu_milliseconds"))
        return [*names, *speeds, *(memory(result, kind) for kind in (DRIVER, WORKER))]

    heading = [
        "device",
        "domain",
        "engine",
        "requests",
        "requests/s",
        "CPU time of each, ms",
        "memory of the command, MB",
    ]
    return to_markdown([[*heading, "of Ray's workers, MB"], *map(row, results)])


def _executor(results: list[Result]) -> str:
    def row(result: Result) -> list[str]:
        speed = result["transitions_per_second"]
        published, ported = peers.EXECUTOR
        millions = (_number(each / 1e6) for each in (speed, published, ported))
        return [_device(result), result["domain"], *millions, _number(speed / published), _number(speed / ported)]

    heading = [
        "device",
        "domain",
        "millions a second",
        "Guu et al.'s code",
        "ported",
        "times Guu et al.'s",
        "times ported",
    ]
    return to_markdown([heading, *map(row, results)])


def _search(results: list[Result]) -> str:
    heading = ["device", "domain", "search", "searches/s", *(f"{part}, %" for part in SEARCH_PARTS)]
    rows = [
        [
            _device(result),
            result["domain"],
            combination,
            _number(result[combination]["searches_per_second"]),
            *(f"{100 * result[combination]['shares'][part]:.0f}" for part in SEARCH_PARTS),
        ]
        for result in results
        for combination in COMBINATIONS
    ]
    return to_markdown([heading, *rows])


def _growth(results: list[Result]) -> str:
    image = f"![The time of a training step against beam, batch and seeds]({FIGURE.as_posix()})"
    costs = [
        f"{name}: {(curve[SEEDS] / curve[1] - 1) / (SEEDS - 1):.0%}"
        for name, curve in _curves(results, "seeds").items()
        if {1, SEEDS} <= set(curve)
    ]
    line = f"Time that each further seed adds, up to six, relative to one seed: {'; '.join(costs)}."
    return f"{image}\n\n{line}" if costs else image


def _curves(results: Sequence[Result], size: str) -> dict[str, dict[int, float]]:
    """Milliseconds of a step by one size, the others being as most results of a curve have them."""
    groups = defaultdict(list)
    for result in results:
        groups[f"{result['domain']}, {result['method']}, {_device(result)}"].append(result)
    curves = {}
    for name, group in groups.items():
        usual = {other: mode(result[other] for result in group) for other in SIZES if other != size}
        fixed = [result for result in group if usual.items() <= result.items()]
        points = {result[size]: 1000 / result["steps_per_second"] for result in fixed}
        curves[name] = dict(sorted(points.items()))
    return curves


def _origins(results: Sequence[Result]) -> str:
    """How each file was made."""
    lines = [
        f"- {_device(result)} ({result['processor']}), {result['date']}, vbsix {result['versions']['vbsix']}, "
        f"jax {result['versions']['jax']}: `{result['command']}`"
        for result in results
    ]
    return "\n".join(dict.fromkeys(lines))


def _device(result: Result) -> str:
    return f"{result['cores']} CPU cores" if _on_cpu(result) else result["device"].partition(": ")[2]


def _number(value: float) -> str:
    """Three digits, or all of those before the point."""
    if math.isnan(value):
        return MISSING
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


PARTS = {
    "training-gpu": Part(
        lambda result: _is_paper_training(result) and not _on_cpu(result) and result["seeds"] == SEEDS,
        _training_on_gpu,
    ),
    "training-cpu": Part(
        lambda result: _is_paper_training(result) and _on_cpu(result) and (result["cores"], result["seeds"]) == (2, 1),
        _training_on_cpu,
    ),
    "side-by-side": Part(_is_of_runs, _runs),
    "prediction": Part(lambda result: _is_of("predict", result) and result["seeds"] == 1, _prediction),
    "evaluation": Part(lambda result: _is_of("predict", result) and result["seeds"] > 1, _evaluation),
    "requests": Part(lambda result: _is_of("requests", result), _requests),
    "executor": Part(lambda result: _is_of("executor", result), _executor),
    "search": Part(lambda result: _is_of("search", result), _search),
    GROWTH: Part(_is_sweep, _growth),
}
