"""A report of runs as one HTML page: short words, pictures first, nothing loaded from elsewhere."""

from __future__ import annotations

import base64
import io
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import numpy as np
from matplotlib import rc_context
from matplotlib.figure import Figure
from matplotlib.ticker import PercentFormatter

from vbsix import __version__
from vbsix.config.presets import full_name
from vbsix.config.toml import to_toml
from vbsix.data.dataset import SYNTHETIC
from vbsix.evaluation.calibration import Calibration
from vbsix.evaluation.error_analysis import (
    ReadStep,
    Share,
    argument_confusion,
    argument_shares,
    confident_mistakes,
    confusion,
    read_steps,
    shares,
    spurious_examples,
)
from vbsix.evaluation.report import Prediction, Report, report
from vbsix.runs.calibration import FILE as CONFIDENCE
from vbsix.runs.folder import Run
from vbsix.show.curves import as_label, draw_panel, read_panels
from vbsix.show.phrases import tell_all
from vbsix.show.svg import world_html
from vbsix.show.svg.elements import plain, tag
from vbsix.utilities.files import read_json
from vbsix.utilities.numbers import mean, mean_std, percent

NOTHING_COUNTED = "There is nothing to count."
MISTAKES = 6
SPURIOUS = 4
CONFUSIONS = 12
FITTED_ON = "dev"
"""The split that a run is calibrated on at its end."""
SPLITS = {"held-out": "held-out phrasings"}
PLAYGROUND = "http://127.0.0.1:8000"
"""Where `vbsix serve` shows a run by default."""
STYLE = Path(__file__).with_name("report.css")


@dataclass(frozen=True)
class Examined:
    """A run and what its seeds predict for a split."""

    run: Run
    seeds: Sequence[int]
    split: str
    by_seed: Sequence[Sequence[Prediction]]
    best: bool = False
    """Whether the policies are those that were best on dev, not those of the last step."""

    @property
    def name(self) -> str:
        return self.run.folder.resolve().name

    @property
    def domain(self) -> str:
        return self.run.config.domain


def report_page(runs: Sequence[Examined], made: date | None = None) -> str:
    """The page.

    Args:
        runs: what it is about.
        made: the date of the report; None takes today.
    """
    results = [report(one.by_seed) for one in runs]
    title = f"Report: {', '.join(one.name for one in runs)}"
    body = [
        tag("h1", plain(title)),
        _note(f"Made on {made or date.today():%Y-%m-%d} with vbsix {__version__}."),
        _contents(runs),
        *(tag("p", _headline(one, found), class_="headline") for one, found in zip(runs, results, strict=True)),
        tag("div", *_figures(runs, results), class_="charts"),
        *(_section(number, one, found) for number, (one, found) in enumerate(zip(runs, results, strict=True))),
    ]
    head = (
        '<meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">'
        '<link rel="icon" href="data:,">'
        f"<title>{plain(title)}</title><style>{STYLE.read_text(encoding='utf-8')}</style>"
    )
    return f'<!doctype html>\n<html lang="en"><head>{head}</head><body><main>{"".join(body)}</main></body></html>\n'


def _headline(one: Examined, found: Report) -> str:
    longest = list(found.accuracy)[-1]
    low, high = found.intervals[longest]
    accuracy = mean(found.accuracy[longest])
    words = (
        f" of the {found.examples[longest]} rows of {one.split} end in the right world after {longest} "
        f"instruction{'s' * (longest != '1')} (95% interval {percent(low)} to {percent(high)}%)."
    )
    return tag("b", plain(f"{one.name}: {percent(accuracy)}%")) + plain(words)


SECTIONS = (
    "Results",
    "Calibration",
    "By position of the instruction",
    "By kind of command",
    "By kind of reference",
    "Commands taken for others",
    "Arguments taken for others",
    "The most confident mistakes",
    "Spurious programs",
)


def _contents(runs: Sequence[Examined]) -> str:
    """Links to all sections."""
    of_run = lambda number: tag("ul", *(tag("li", _link(number, name, name)) for name in SECTIONS))  # noqa: E731
    items = [tag("li", _link(number, "", one.name), of_run(number)) for number, one in enumerate(runs)]
    return tag("nav", tag("details", tag("summary", "Contents"), tag("ul", *items)), aria_label="Contents")


def _link(run: int, section: str, words: str) -> str:
    return tag("a", plain(words), href=f"#{_anchor(run, section)}")


def _anchor(run: int, section: str) -> str:
    return f"run-{run + 1}" + (f"-{section.lower().replace(' ', '-')}" if section else "")


def _section(number: int, one: Examined, found: Report) -> str:
    steps = [step for predictions in one.by_seed for step in read_steps(one.domain, predictions)]
    parts = {
        "Results": _results(found)
        + _note("accuracy: mean over seeds ± standard deviation. spurious: right, but through a wrong world.")
        + _other_splits(one),
        "Calibration": _calibration(found.calibration, fitted=was_fitted(one.run.folder, one.split)),
        "By position of the instruction": _bars(
            [_share(share, f"instruction {share.name}") for share in shares(steps, lambda step: step.position)]
        ),
        "By kind of command": _bars([_share(share, share.name) for share in shares(steps, lambda step: step.kind)])
        + _note("Of instructions that were read in the right world, those whose command led to the right one."),
        "By kind of reference": _bars(
            [_share(share, share.name) for share in shares(steps, lambda step: step.reference)]
        )
        + _note("How the instruction says what it is about, judging by its words."),
        "Commands taken for others": _confusion(steps)
        + _note("Rows: what should have happened. Columns: what did, by the change of the world."),
        "Arguments taken for others": _arguments(steps),
        "The most confident mistakes": _note(_how_to_open(one))
        + _examples(one, confident_mistakes(one.by_seed, MISTAKES), "No mistakes."),
        "Spurious programs": _note("They come to the right world by the wrong way.")
        + _examples(one, spurious_examples(one.by_seed, SPURIOUS), "None were found."),
    }
    headed = [tag("h3", name, id=_anchor(number, name)) + parts[name] for name in SECTIONS]
    return tag("section", tag("h2", plain(one.name), id=_anchor(number, "")), _setting(one), *headed)


# Pictures.


def _figures(runs: Sequence[Examined], results: Sequence[Report]) -> Iterator[str]:
    """One chart each, so that they stand below each other on a narrow page."""
    yield _figure(_accuracy_figure(runs, results), "Accuracy by number of instructions, with 95% intervals")
    for panel in read_panels([one.run.folder for one in runs]):
        figure = Figure(layout="constrained")
        axes = figure.subplots()
        draw_panel(axes, panel)
        axes.legend(axes.get_lines(), [_label(one) for one in runs], loc="best")
        yield _figure(figure, f"While learning: {panel.title}")


def _accuracy_figure(runs: Sequence[Examined], results: Sequence[Report]) -> Figure:
    figure = Figure(layout="constrained")
    axes = figure.subplots()
    for place, (one, found) in enumerate(zip(runs, results, strict=True)):
        lengths = [int(name) + 0.06 * (place - (len(runs) - 1) / 2) for name in found.accuracy]
        means = np.mean(list(found.accuracy.values()), axis=1)
        low, high = np.array(list(found.intervals.values())).T
        reach = np.maximum([means - low, high - means], 0)
        axes.errorbar(lengths, means, yerr=reach, marker="o", capsize=4, label=_label(one))
    axes.set(xlabel="instructions", ylabel=f"accuracy on {runs[0].split}", ylim=(-0.03, 1.03))
    axes.yaxis.set_major_formatter(PercentFormatter(1.0))
    axes.set_xticks(sorted({int(name) for found in results for name in found.accuracy}))
    axes.grid(alpha=0.3)
    axes.legend(loc="best")
    return figure


def _label(one: Examined) -> str:
    """In legends. Settings, which are below, would leave a chart no room."""
    return as_label(f"{one.name} ({one.domain})")


def _figure(figure: Figure, words: str) -> str:
    """A drawing in the page itself; as an image, so that the names in it are its own."""
    file = io.BytesIO()
    figure.set_size_inches(5, 3.6)  # one size, so that their letters are of one size too
    with rc_context({"svg.hashsalt": "vbsix", "svg.fonttype": "none"}):
        figure.savefig(file, format="svg", metadata={"Date": None})
    data = base64.b64encode(file.getvalue()).decode()
    image = tag("img", src=f"data:image/svg+xml;base64,{data}", alt=words)
    return tag("figure", image, tag("figcaption", plain(words)))


def _world(domain: str, world: str, words: str) -> str:
    return tag("figure", world_html(domain, world), tag("figcaption", plain(words)), class_="world")


def _bars(rows: Sequence[tuple[str, float, str]]) -> str:
    """A line for each: a name, a share as a bar, and what it is of."""
    lines = []
    for name, share, words in rows:
        bar = tag("span", "&#8203;", class_="bar", style=f"width:{100 * share:.1f}%")
        cells = tag("th", plain(name), scope="row"), tag("td", bar, class_="bars"), tag("td", plain(words))
        lines.append(tag("tr", *cells))
    return tag("table", tag("tbody", *lines)) if lines else tag("p", NOTHING_COUNTED)


def _share(share: Share, name: str) -> tuple[str, float, str]:
    return name, share.share, f"{percent(share.share)}% of {share.count}"


# Tables.


def _setting(one: Examined) -> str:
    config, seeds = one.run.config, ", ".join(map(str, one.seeds))
    source = "generated sentences" if one.run.source == SYNTHETIC else Path(one.run.source).name
    words = (
        f"{one.domain}, learned by {full_name(one.run.config)} from {source}, "
        f"{config.training.steps} steps, seed{'s' * (len(one.seeds) > 1)} {seeds}{_made_on(one.run)}."
    )
    return tag("p", plain(words)) + tag(
        "details", tag("summary", "All settings"), tag("pre", plain(to_toml(config)), tabindex="0")
    )


def _made_on(run: Run) -> str:
    """How long it took and on what, once the run has come to its end."""
    path = run.folder / "result.json"
    result: dict[str, Any] = read_json(path) if path.exists() else {}
    took = f", in {timedelta(seconds=round(result['seconds']))}" if "seconds" in result else ""
    device = result.get("device")
    return took + (f" on {device.rpartition(': ')[2]}" if isinstance(device, str) else "")


def _results(found: Report) -> str:
    rows = []
    for name, accuracies in found.accuracy.items():
        interval = " to ".join(map(percent, found.intervals[name]))
        spurious = percent(mean(found.spurious[name]))
        rows.append([name, str(found.examples[name]), mean_std(accuracies, 100), interval, spurious])
    return _table(["instructions", "examples", "accuracy, %", "95% interval, %", "spurious, %"], rows)


def _other_splits(one: Examined) -> str:
    """The accuracy at the end of training on splits other than the report's, such as held-out phrasings."""
    path = one.run.folder / "result.json"
    accuracies: dict[str, Any] = read_json(path).get("accuracy", {}) if path.exists() else {}
    rows = [
        [SPLITS.get(split, split), length, mean_std(shares, 100)]
        for split, by_length in accuracies.items()
        if split != one.split
        for length, shares in by_length.items()
    ]
    return _table(["at the end of training", "instructions", "accuracy, %"], rows) if rows else ""


def was_fitted(folder: Path, split: str) -> bool:
    """Whether a run's confidences were fitted on a split; a run that did not end has none that were."""
    return split == FITTED_ON and (folder / CONFIDENCE).exists()


def _calibration(found: Calibration, fitted: bool) -> str:
    """For each range of confidences, how often such predictions are right; `fitted` if this split calibrated them."""
    rows = [
        (
            f"{100 * one.low:.0f} to {100 * one.high:.0f}%",
            one.accuracy,
            f"{percent(one.accuracy)}% of {one.count} right",
        )
        for one in found.bins
        if one.count and one.accuracy is not None
    ]
    words = f"Calibration error: {percent(found.error)}%, the mean distance of confidence and accuracy."
    if fitted:
        words += " Confidence was calibrated on this split, so on others the error is likely to be larger."
    return _bars(rows) + _note(f"Confidence of the predictions, and how many are right. {words}")


def _arguments(steps: Sequence[ReadStep]) -> str:
    """How often each argument is right where the kind of the command is, and what it is taken for."""
    bars = _bars([_share(share, share.name) for share in argument_shares(steps)])
    rows = [[name, wanted, done, str(count)] for name, wanted, done, count in argument_confusion(steps, CONFUSIONS)]
    table = _table(["argument", "wanted", "done", "times"], rows) if rows else ""
    return bars + _note("Of commands of the right kind. Numbers alone are positions, from the left.") + table


def _confusion(steps: Sequence[ReadStep]) -> str:
    counts = confusion(steps)
    if not counts:
        return tag("p", NOTHING_COUNTED)
    kinds = sorted({kind for row in counts.values() for kind in row} | set(counts))
    lines = []
    for wanted, row in counts.items():
        total = row.total()
        cells = [
            tag(
                "td",
                str(row[kind] or "·"),
                class_="same" if kind == wanted else "other",
                style=_shade(row[kind] / total),
            )
            for kind in kinds
        ]
        lines.append(tag("tr", tag("th", plain(wanted), scope="row"), *cells))
    heads = [tag("th", plain(kind), scope="col") for kind in ("wanted / done", *kinds)]
    table = tag("table", tag("thead", tag("tr", *heads)), tag("tbody", *lines), class_="counts")
    return tag("div", table, class_="wide", tabindex="0")


def _shade(share: float) -> str:
    return f"--share:{100 * share:.0f}%"


def _table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    head = tag("tr", *(tag("th", plain(text), scope="col") for text in heads))
    lines = [tag("tr", *(tag("td", plain(text)) for text in row)) for row in rows]
    return tag("div", tag("table", tag("thead", head), tag("tbody", *lines)), class_="wide", tabindex="0")


def _note(words: str) -> str:
    return tag("p", plain(words), class_="quiet")


# Examples.


def _examples(one: Examined, found: Sequence[tuple[int, Prediction]], nothing: str) -> str:
    if not found:
        return tag("p", nothing)
    return "".join(_example(one, one.seeds[place], prediction) for place, prediction in found)


def _how_to_open(one: Examined) -> str:
    words = f"Links open a playground that serves the run: start it with vbsix serve {one.run.folder}."
    return words + " It has the policies of the last step, this report those that were best on dev." * one.best


def _example(one: Examined, seed: int, prediction: Prediction) -> str:
    """The first world, then for each instruction the world that came of it beside the one that should have."""
    reading, row = prediction.parse.readings[0], prediction.row
    steps = [tag("div", _world(one.domain, prediction.parse.world, "at first"), class_="step")]
    said = tell_all(one.domain, prediction.parse.world, reading.worlds, reading.commands)
    for place, utterance in enumerate(prediction.parse.utterances):
        command, right = reading.commands[place], prediction.right[place]
        worlds = _world(one.domain, reading.worlds[place], "right" if right else "predicted")
        if right is False:
            worlds += _world(one.domain, str(row.worlds[place + 1]), "should be")
        words = said[place]
        text = tag("p", tag("q", plain(utterance)))
        text += tag("p", *([tag("b", plain(words)), " "] if words else []), tag("code", plain(command)))
        steps.append(
            tag("div", text, tag("div", worlds, class_="pair"), class_="step wrong" if right is False else "step")
        )
    about = f"seed {seed}, confidence {percent(prediction.parse.confidence)}%, {row.id}"
    link = tag("a", "open in the playground", href=_playground_link(one, seed, prediction))
    return tag("article", tag("p", plain(f"{about}; "), link, class_="quiet"), tag("div", *steps, class_="steps"))


def _playground_link(one: Examined, seed: int, prediction: Prediction) -> str:
    """Where the example is in a playground that serves the run: `vbsix serve RUN`."""
    name = f"{one.name}, seed {seed}" if len(one.run.seeds) > 1 else one.name
    pairs = [("view", "play"), ("domain", one.domain), ("model", name), ("world", prediction.parse.world)]
    pairs += [("say", text) for text in prediction.parse.utterances]
    pairs.append(("target", str(prediction.row.worlds[prediction.length])))
    return f"{PLAYGROUND}/#{urlencode(pairs)}"
