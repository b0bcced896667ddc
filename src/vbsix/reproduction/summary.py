"""The best run of each domain beside the paper's VBSiX: a figure and a table."""

from __future__ import annotations

import statistics
import textwrap
from collections.abc import Mapping, Sequence

from matplotlib.figure import Figure

from vbsix.reproduction import paper
from vbsix.reproduction.runs import DOMAINS, NO_VARIANT, TEST, Result, System, data_name, system_of
from vbsix.runs.folder import Run
from vbsix.show.curves import as_label
from vbsix.utilities.numbers import MISSING, mean_std

TITLE = "Test accuracy on SCONE after 5 instructions, %, mean and standard deviation over seeds"
LENGTH = 5
COLOURS = {
    "the paper's VBSiX": "#8b96a1",
    "our VBSiX, beam of 32": "#6aa5ff",
    "our best run, mean of seeds": "#1f5fbf",
    "our best run, ensemble": "#d9a400",
}
"""The bars of a domain, from left to right."""
COLUMNS = ("domain", "method, variant, stages", "mean of seeds", "ensemble", "the paper", "mean minus the paper")
LINE = 32
"""Letters of a run's name that fit below its bars in one line."""
_PRIOR_WORK = "prior-work"
"""A variant with fewer examples, which is compared with prior work alone."""


def best_tested(results: Mapping[Run, Result], domain: str) -> Run | None:
    """The run with the highest dev accuracy in a domain of SCONE, of those that were measured on test."""
    tested = [
        run
        for run, result in results.items()
        if run.config.domain == domain
        and data_name(run.source) == "scone"
        and _PRIOR_WORK not in system_of(run).variant.split("+")
        and accuracy_on_test(result)
    ]
    return max(tested, key=lambda run: statistics.mean(results[run]["accuracy"]["dev"][str(LENGTH)]), default=None)


def best_runs(results: Mapping[Run, Result]) -> dict[str, Run]:
    """The best run of each domain that has one measured on test."""
    return {domain: run for domain in DOMAINS if (run := best_tested(results, domain))}


def accuracy_on_test(result: Result) -> Sequence[float]:
    """The accuracy of each seed on test at the last step, or where only that was measured, at the best on dev."""
    return _on_test(result) or _on_test(result.get("best", {}))


def best_rows(results: Mapping[Run, Result]) -> list[list[str]]:
    """A row for each domain that has a run measured on test."""
    return [_best_row(domain, run, results[run]) for domain, run in best_runs(results).items()]


def _best_row(domain: str, run: Run, result: Result) -> list[str]:
    names = [system_of(run).method, *filter(None, (system_of(run).variant, result.get("schedule")))]
    ours, step = accuracy_on_test(result), "" if _on_test(result) else " (best step)"
    mean, spread = paper.ACCURACY["test"][domain]["vbsix", ""][LENGTH]
    ensemble = _on_test(result.get("ensemble", {}))
    return [
        domain,
        ", ".join(f"`{name}`" for name in names),
        mean_std(ours, 100) + step,
        mean_std(ensemble, 100) if ensemble else MISSING,
        f"{mean} ± {spread}",
        f"{100 * statistics.mean(ours) - mean:+.1f}",
    ]


def draw_summary(results: Mapping[Run, Result]) -> Figure | None:
    """Draws four bars for each domain that has a run measured on test; None if no domain has."""
    found = best_runs(results)
    if not found:
        return None
    figure = Figure(figsize=(10, 5), layout="constrained")
    axes = figure.subplots()
    axes.set(title=TITLE, ylim=(0, 100), xlim=(-0.5, len(found) - 0.5))
    axes.grid(axis="y", alpha=0.3)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)
    width, labelled = 0.2, set()
    for place, (domain, best) in enumerate(found.items()):
        for bar, (label, measured) in enumerate(_bars(results, domain, best).items()):
            if measured is None:
                continue
            mean, spread = measured
            x = place + (bar - (len(COLOURS) - 1) / 2) * width
            shown = None if label in labelled else label
            labelled.add(label)
            axes.bar(x, mean, 0.9 * width, color=COLOURS[label], label=shown)
            if spread is not None:
                axes.errorbar(x, mean, spread, color="#333333", capsize=4, linewidth=1.2)
            axes.text(x, mean + (spread or 0) + 1.5, f"{mean:.1f}", ha="center", fontsize=10)
    labels = {domain: as_label(variant_name(run, results[run])) for domain, run in found.items()}
    names = [f"best: {system_of(run).method}, {labels[domain]}" for domain, run in found.items()]
    lines = [textwrap.fill(name, LINE, break_on_hyphens=False) for name in names]
    axes.set_xticks(range(len(found)), [f"{domain}\n{name}" for domain, name in zip(found, lines, strict=True)])
    axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.24), ncols=2, frameon=False)
    return figure


def _bars(results: Mapping[Run, Result], domain: str, best: Run) -> dict[str, tuple[float, float | None] | None]:
    """The height of each bar and its standard deviation; None where there is no run."""
    plain = next((result for run, result in results.items() if _is_plain_vbsix(run, domain)), {})
    theirs = paper.ACCURACY["test"][domain]["vbsix", ""][LENGTH]
    ensemble = _on_test(results[best].get("ensemble", {}))
    ours = accuracy_on_test(plain), accuracy_on_test(results[best]), ensemble
    return dict(zip(COLOURS, (theirs, *map(_in_percent, ours)), strict=True))


def _is_plain_vbsix(run: Run, domain: str) -> bool:
    return (run.config.domain, data_name(run.source), system_of(run)) == (domain, "scone", System("vbsix"))


def _in_percent(shares: Sequence[float]) -> tuple[float, float | None] | None:
    if not shares:
        return None
    return 100 * statistics.mean(shares), 100 * statistics.stdev(shares) if len(shares) > 1 else None


def _on_test(measured: Result) -> Sequence[float]:
    return measured.get("accuracy", {}).get(TEST["scone"], {}).get(str(LENGTH), [])


def variant_name(run: Run, result: Result) -> str:
    """The variant of a run and, of a staged one, the name of its schedule of stages."""
    variant = system_of(run).variant or NO_VARIANT
    return f"{variant}, stages {result['schedule']}" if "schedule" in result else variant
