"""Tables and figures as they are written down: each on its own, or all of them on a page."""

from __future__ import annotations

import math
from collections.abc import Mapping
from datetime import timedelta
from itertools import product
from pathlib import Path

from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from vbsix.config.legacy import read_config
from vbsix.config.presets import changed
from vbsix.data.dataset import SYNTHETIC
from vbsix.reproduction.incomplete import COLUMNS, NOTE, incomplete_rows
from vbsix.reproduction.runs import DOMAINS, INCOMPLETE, Result, Results, lacks, system_of
from vbsix.reproduction.summary import COLUMNS as BEST_COLUMNS
from vbsix.reproduction.summary import TITLE, best_rows, draw_summary
from vbsix.reproduction.targets import SHORT, TARGETS, FigureTarget, TableTarget, Target
from vbsix.runs.folder import Run
from vbsix.show.curves import FORMATS, Summary, as_label, draw_curve, prepare, save
from vbsix.utilities.files import read_json, write_bytes
from vbsix.utilities.markdown import fill_parts, find_parts, read_page, to_markdown
from vbsix.utilities.numbers import MISSING

PAGE = Path("docs", "results.md")
README = Path("README.md")
"""May have parts, too."""
RESULTS = Path("results")
STAGED = "staged"
"""The folder, inside that of results, of runs in stages."""
RUNS, SUMMARY, BEST = "runs", "summary", "best"
"""The names of the parts with the list of all runs, the figure and the table of the best runs; that of incomplete runs
is `INCOMPLETE`."""
NOTHING = "No run of these has ended yet."
_EMBEDDED = f" {SYNTHETIC}"
"""Ends the names of parts that are of the built-in corpus."""
_TARGETS: Mapping[str, Target] = {**TARGETS, **SHORT}
_OF_TARGETS = (*_TARGETS, *(target + _EMBEDDED for target in _TARGETS))
_PARTS = (RUNS, SUMMARY, BEST, INCOMPLETE, *_OF_TARGETS)


def write_page(folder: Path) -> list[Path]:
    """Fills in the tables and figures of a folder's pages, from all its results.

    Pages are the README and all Markdown files of `docs/`; those without such parts are left alone.

    Returns:
        The files written.
    """
    read_page(folder, PAGE, RESULTS)  # says so if the folder is not ours
    results = read_results(folder / RESULTS)
    others = read_results(folder / RESULTS / INCOMPLETE), read_results(folder / RESULTS / STAGED)
    files = []
    more = [path for path in sorted((folder / PAGE).parent.rglob("*.md")) if path != folder / PAGE]
    for page in (folder / PAGE, *more, folder / README):
        text = page.read_text(encoding="utf-8") if page.exists() else ""
        if not (parts := find_parts(text, _PARTS)):
            continue
        files.append(page)
        for part in parts:
            if figure := _draw(part, folder, results):
                files.append(page.parent / _figure_file(part))
                files[-1].parent.mkdir(exist_ok=True)
                save(figure, files[-1])
        write_bytes(page, fill_page(text, results, *others).encode())
    return files


def _draw(part: str, folder: Path, results: Mapping[Run, Result]) -> Figure | None:
    """The figure of a part; None if it has none."""
    if part == SUMMARY:
        return draw_summary(read_all_results(folder / RESULTS))
    target = _TARGETS.get(part.removesuffix(_EMBEDDED))
    if isinstance(target, FigureTarget) and (chosen := _choose(part, results)):
        return draw_figure(target, chosen)
    return None


def read_results(folder: Path) -> dict[Run, Result]:
    """All results of a folder, whatever settings they were made with; a staged run has those of its last stage."""
    results = {}
    for path in sorted(folder.glob("*.json")):
        result = read_json(path)
        measured = result["stages"][-1] if "stages" in result else result
        config, seeds = read_config(measured["config"]), tuple(result["seeds"])
        results[Run(Path(RUNS, path.stem), config, seeds, result["data"])] = result
    return results


def read_all_results(folder: Path) -> dict[Run, Result]:
    """The results of a folder and those of runs in stages."""
    return read_results(folder) | read_results(folder / STAGED)


def fill_page(
    text: str, results: Mapping[Run, Result], incomplete: Mapping[Run, Result], staged: Mapping[Run, Result]
) -> str:
    """The text with the parts between `<!-- TARGET -->` and `<!-- end -->` replaced.

    `<!-- TARGET synthetic -->` is of runs on the built-in corpus, `<!-- runs -->` the list of all runs, `<!--
    incomplete -->` the table of incomplete runs, `<!-- summary -->` the figure of the best runs, `<!-- best -->` their
    table.
    """

    def make(part: str) -> str:
        if part == INCOMPLETE:
            on_scone = {run: found for run, found in incomplete.items() if run.source != SYNTHETIC}
            return f"{to_markdown([COLUMNS, *incomplete_rows(on_scone, results)])}\n\n{NOTE}" if on_scone else "None."
        if part in (SUMMARY, BEST):
            rows = best_rows({**results, **staged})
            shown = _embed(TITLE, part) if part == SUMMARY else to_markdown([BEST_COLUMNS, *rows])
            return shown if rows else NOTHING
        chosen = _choose(part, results)
        if not chosen:
            return NOTHING
        if part == RUNS:
            return "\n".join(_origins(chosen))
        match _TARGETS[part.removesuffix(_EMBEDDED)]:
            case TableTarget() as target:
                rows = _trim([list(target.columns), *table_rows(target, chosen)])
                return f"{to_markdown(rows)}\n\n{table_note(target, chosen)}"
            case FigureTarget() as target:
                return _embed(target.title, part)

    return fill_parts(text, _PARTS, make)


def _embed(title: str, part: str) -> str:
    return f"![{title}]({_figure_file(part)})"


def _figure_file(part: str) -> str:
    return f"figures/{part.replace(' ', '-')}.svg"


def _choose(part: str, results: Mapping[Run, Result]) -> dict[Run, Result]:
    """The results that a part of the page shows, in order."""
    if part == RUNS:
        return dict(results)
    target = _TARGETS[part.removesuffix(_EMBEDDED)]
    fitting = {
        (run.config.domain, system_of(run)): run
        for run, result in results.items()
        if (run.source == SYNTHETIC) == part.endswith(_EMBEDDED) and not lacks(target.needs, run, result)
    }
    wanted = [(domain, system) for domain in DOMAINS for system in target.systems]
    return {fitting[name]: results[fitting[name]] for name in wanted if name in fitting}


def write_table(target: TableTarget, results: Results, path: Path) -> None:
    """Writes a table as Markdown, and below it where each number comes from."""
    table = to_markdown([target.columns, *table_rows(target, results)])
    lines = [f"# {target.title}", "", table, "", table_note(target, results), "", *_origins(results)]
    write_bytes(path, ("\n".join(lines).rstrip() + "\n").encode())


def table_rows(target: TableTarget, results: Results) -> list[list[str]]:
    """The lines of a table."""
    return [row for run, result in results.items() for row in target.rows(run, result or {})]


def table_note(target: TableTarget, results: Results) -> str:
    """What the numbers of a table are."""
    corpus = "the built-in corpus" if next(iter(results)).source == SYNTHETIC else "SCONE"
    seeds = " or ".join(map(str, sorted({len(run.seeds) for run in results})))
    recipes = " and ".join(f"`{name}`" for name in sorted({run.config.recipe for run in results}))
    return (
        f"Mean ± standard deviation over {seeds} seeds, on {corpus}, recipe {recipes}. {target.note}"
        f"{_changes_note(results)}"
    )


def _changes_note(results: Results) -> str:
    """Which settings are not those that the names of runs stand for."""
    names = sorted({name for run in results for name in changed(run.config)})
    return f" Changed, so that methods are not what their names stand for: {', '.join(names)}." if names else ""


def _trim(rows: list[list[str]]) -> list[list[str]]:
    """A table without empty columns, and without that of recipes if all are the same: the note below names it."""
    columns = [column for column in zip(*rows, strict=True) if set(column[1:]) != {MISSING}]
    columns = [column for column in columns if column[0] != "recipe" or len(set(column[1:])) > 1]
    return [list(row) for row in zip(*columns, strict=True)]


def _origins(results: Results) -> list[str]:
    """How each run was made."""
    return [
        f"- {run.folder.name}: {result['steps']} steps in {timedelta(seconds=round(result['seconds']))} on "
        f"{result['device']}, {result['date']}, vbsix {result['versions']['vbsix']}: `{result['command']}`"
        for run, result in results.items()
        if result
    ]


def write_figure(target: FigureTarget, results: Results, path: Path) -> list[Path]:
    """Draws a figure into files whose name is given without the suffix, and says which."""
    figure, files = draw_figure(target, results), [path.with_suffix(suffix) for suffix in FORMATS]
    for file in files:
        save(figure, file)
    return files


def draw_figure(target: FigureTarget, results: Results) -> Figure:
    """Means over seeds and their standard deviation against steps; a system without a run has `-` in the legend."""
    domains = list(dict.fromkeys(run.config.domain for run in results))
    figure = Figure(figsize=(5 * len(domains), 5), layout="constrained")
    figure.suptitle(target.title + (" (settings changed)" if _changes_note(results) else ""))
    lines: dict[str, bool] = {}
    for axes, domain in zip(figure.subplots(1, len(domains), squeeze=False)[0], domains, strict=True):
        prepare(axes, domain, target.share)
        for run, metric in product(results, target.curves):
            label = target.curves[metric].format(system=system_of(run).label)
            colour = f"C{list(lines).index(label) if label in lines else len(lines)}"  # the same in all panels
            lines.setdefault(label, False)
            if run.config.domain == domain:
                points = _points((results[run] or {}).get("metrics", {}).get(metric))
                draw_curve(axes, label, points, colour)
                lines[label] = lines[label] or bool(points)
    labels = [label if drawn else f"{label}: {MISSING}" for label, drawn in lines.items()]
    handles = [Line2D([], [], color=f"C{number}") for number in range(len(lines))]
    figure.legend(handles, [as_label(label) for label in labels], loc="outside lower center", ncols=2)
    return figure


def _points(metric: Mapping[str, list[float]] | None) -> Summary:
    """The curve of a metric. Result files hold the deviation that divides by n, all else the one by n - 1."""
    if not metric:
        return []
    seeds = len(metric["average"])
    scale = math.sqrt(seeds / max(seeds - 1, 1))
    columns = zip(metric["steps"], metric["mean"], metric["std"], strict=True)
    return [(int(step), mean, scale * spread) for step, mean, spread in columns]
