"""What can be reproduced: tables and figures, and the runs that they are made of."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from vbsix.config.presets import changed
from vbsix.data.dataset import SYNTHETIC
from vbsix.evaluation.critic_analysis import STATES
from vbsix.evaluation.spurious import FOUND
from vbsix.reproduction import paper
from vbsix.reproduction.runs import NO_VARIANT, TEST, Result, System, data_name, system_of
from vbsix.runs.folder import Run
from vbsix.utilities.numbers import MISSING, mean_std

AFTER = {end: f"after {end}" for end in range(1, 5)}
"""The intermediate worlds of five utterances."""
TESTED = ("last step", "best on dev", "ensemble")
"""What is measured on test."""
NAMES = ("domain", "method", "recipe", "variant")
"""The columns that name a row."""
SUFFIXES = "oov-words+suffixes"
ABLATIONS = ("mml", "execution-only", "value-only", "vbsix")
BEAM_64, WIDE = System("mml", variant="beam-64"), System("execution-only", variant="beam-256")
PLAIN = {name: System(name) for name in (*ABLATIONS, "expert-mml", "reinforce")}
TABLE1 = (
    *(PLAIN["mml"], BEAM_64, PLAIN["expert-mml"], PLAIN["reinforce"], PLAIN["vbsix"], WIDE),
    *(System("vbsix", variant="oov-words"), System("vbsix", variant="oov-words+init-0.1")),
    *(WIDE._replace(variant="beam-256+oov-words"), System("vbsix", variant=SUFFIXES)),
    WIDE._replace(variant=f"beam-256+{SUFFIXES}"),
)
WITH_CRITIC = (PLAIN["vbsix"], System("vbsix", variant=SUFFIXES))
PUBLISHED = {name: system._replace(recipe="published") for name, system in PLAIN.items()}
PUBLISHED1 = (
    *(PUBLISHED["mml"], BEAM_64._replace(recipe="published")),
    *(PUBLISHED["expert-mml"], PUBLISHED["reinforce"], PUBLISHED["vbsix"]),
)
PUBLISHED2 = tuple(PUBLISHED[name] for name in ABLATIONS)
TABLE2 = (*(PLAIN[name] for name in ABLATIONS), *(System(name, variant=SUFFIXES) for name in ABLATIONS))


@dataclass(frozen=True)
class TableTarget:
    """A table with some rows for each run."""

    title: str
    systems: tuple[System, ...]
    columns: tuple[str, ...]
    rows: Callable[[Run, Result], Iterable[list[str]]]
    """The rows of a run; its result is empty if it has not ended."""
    note: str
    needs: str = "accuracy"
    """What a result must contain; see `lacks`."""


@dataclass(frozen=True)
class FigureTarget:
    """A figure with a panel for each domain and curves for each system."""

    title: str
    systems: tuple[System, ...]
    curves: Mapping[str, str]
    """Metrics and their labels."""
    share: bool = False
    """Whether they lie between 0 and 1."""
    needs: str = "accuracy"


Target = TableTarget | FigureTarget


def _test_rows(run: Run, result: Result) -> Iterator[list[str]]:
    split = TEST[data_name(run.source)]
    measured = [_on(split, one) for one in (result, result.get("best", {}), result.get("ensemble", {}))]
    yield from _accuracy_rows(run, "test", measured)


def _in_one_row(rows: Callable[[Run, Result], Iterable[list[str]]]) -> Callable[[Run, Result], Iterator[list[str]]]:
    """Rows that have all numbers of utterances: the accuracy at the last step, and the paper's."""

    def short(run: Run, result: Result) -> Iterator[list[str]]:
        last, *_, published = list(zip(*rows(run, result), strict=True))[len(NAMES) + 1 :]
        yield [*_names(run), *last, *published]

    return short


def _names(run: Run) -> list[str]:
    """The cells that name a row."""
    system = system_of(run)
    variant = (system.variant or NO_VARIANT) + (", changed" if changed(run.config) else "")
    return [run.config.domain, system.method, system.recipe, variant]


def _paper_accuracy(run: Run, split: str) -> Mapping[int, tuple[float, float]]:
    """The paper's numbers for the system of a run, by number of utterances."""
    system = system_of(run)
    return paper.ACCURACY[split][run.config.domain].get((system.method, system.variant), {})


def _dev_rows(run: Run, result: Result) -> Iterator[list[str]]:
    yield from _accuracy_rows(run, "dev", [_on("dev", result), _on(TEST[SYNTHETIC], result)])


def _on(split: str, measured: Result) -> Mapping[str, Sequence[float]]:
    """The accuracies on a split, by the number of utterances."""
    return measured.get("accuracy", {}).get(split, {})


def _accuracy_rows(
    run: Run, paper_split: str, measured: Sequence[Mapping[str, Sequence[float]]]
) -> Iterator[list[str]]:
    published = _paper_accuracy(run, paper_split)
    for length in run.config.data.evaluation:
        ours = [mean_std(one.get(str(length), []), 100) for one in measured]
        yield [*_names(run), str(length), *ours, _published(run, published.get(length))]


def _analysis_rows(run: Run, result: Result) -> Iterator[list[str]]:
    published = system_of(run)[::2] == ("vbsix", "")
    for name, theirs in paper.ANALYSIS[run.config.domain].items():
        metrics = result.get("metrics", {})
        ours = [mean_std(metrics.get(f"{name}{kind}", {}).get("average", [])) for kind in ("", "_longest")]
        yield [*_names(run), name.replace("_", " "), *ours, _published(run, theirs if published else None)]


def _prior_rows(run: Run, result: Result) -> Iterator[list[str]]:
    domain = run.config.domain
    published = [*(work[domain] for work in paper.PRIOR_WORK.values()), paper.ACCURACY["test"][domain]["vbsix", ""]]
    for length, row in zip(run.config.data.evaluation, _test_rows(run, result), strict=True):
        yield [*row[:-1], *(_published(run, by_length.get(length)) for by_length in published)]


def _critic_rows(run: Run, result: Result) -> Iterator[list[str]]:
    scene = run.config.domain == "scene"
    for name, theirs in paper.CRITIC.items():
        if "people" in name and not scene:
            continue
        found = result.get("critic", {}).get(name, {"states": [], "share": []})
        published = _published(run, theirs if scene and system_of(run)[::2] == ("vbsix", "") else None)
        shown = name, mean_std(found["states"]), mean_std(found["share"], 100)
        yield [*_names(run), *shown, published]


def _spurious_rows(run: Run, result: Result) -> Iterator[list[str]]:
    spurious, intermediate = result.get("spurious", {}), result.get("intermediate", {}).get("dev", {})
    after = [mean_std(intermediate.get(str(end), []), 100) for end in AFTER]
    shares = [mean_std(spurious.get(name, []), 100) for name in (FOUND, "dev")]
    accuracy = _on("dev", result).get(str(max(run.config.data.evaluation)), [])
    together = correlation(spurious.get(FOUND, [None] * len(accuracy)), accuracy)
    yield [*_names(run), *shares, *after, mean_std(accuracy, 100), together]


def _published(run: Run, number: float | tuple[float, float] | None) -> str:
    """A number of the paper beside one of a run: the paper has none of the built-in corpus, or of other settings."""
    if number is None or run.source == SYNTHETIC or changed(run.config):
        return MISSING
    return "{} ± {}".format(*number) if isinstance(number, tuple) else str(number)


def correlation(shares: Sequence[float | None], others: Sequence[float]) -> str:
    """The correlation of two measures over seeds, where both are known and vary."""
    known = [pair for pair in zip(shares, others, strict=True) if None not in pair]
    columns = list(zip(*known, strict=True))
    if len(known) < 3 or any(len(set(column)) == 1 for column in columns):
        return MISSING
    return f"{statistics.correlation(*columns):.2f}"


def _by_length(*columns: str) -> tuple[str, ...]:
    """The headings of columns with an accuracy for each number of utterances."""
    return tuple(f"{what}, {length}" for what in columns for length in (3, 5))


TARGETS: Mapping[str, Target] = {
    "table1": TableTarget(
        "Table 1: test accuracy, %",
        (*PUBLISHED1, *TABLE1),
        (*NAMES, "utterances", *TESTED, "paper"),
        _test_rows,
        "Best on dev: each seed at its best step on dev. Ensemble: these policies as one parser, which adds up the "
        "probabilities of all programs that lead to the same world.",
        needs="test",
    ),
    "table2": TableTarget(
        "Table 2: dev accuracy without execution space, without a critic, without both, %",
        (*PUBLISHED2, *TABLE2),
        (*NAMES, "utterances", "last step", "other phrasings", "paper"),
        _dev_rows,
        "MML has neither execution space nor critic.",
    ),
    "figure5": FigureTarget(
        "Figure 5: hit accuracy on the longest training examples",
        (*PUBLISHED2, *(PLAIN[name] for name in ABLATIONS), WIDE),
        {"hit_longest": "{system}"},
        share=True,
    ),
    "figure6": FigureTarget(
        "Figure 6: error of the value network",
        (PUBLISHED["vbsix"], *WITH_CRITIC),
        {"value_error": "{system}, all states", "value_error_high": "{system}, reward above 0.7"},
    ),
    "analysis": TableTarget(
        "Analysis: what the beam holds in execution space",
        (*WITH_CRITIC, System("vbsix", variant="oov-words")),
        (*NAMES, "property", "all examples", "the longest", "paper"),
        _analysis_rows,
        "Averaged over all steps. The paper reports its longest examples, of 5 utterances.",
    ),
    "prior-work": TableTarget(
        "Prior work: test accuracy after training on examples of 1 and 2 utterances, %",
        (System("mml", variant="prior-work"), System("vbsix", variant="prior-work")),
        (*NAMES, "utterances", *TESTED, *paper.PRIOR_WORK, "paper's VBSiX"),
        _prior_rows,
        "According to the paper, prior work reports medians of 5 runs. Long et al. and Guu et al. learned from the "
        "last worlds of examples of 1 and 2 utterances, as here, Suhr and Artzi from the world after every utterance, "
        "Fried et al. from programs. The paper's VBSiX learned from the longer examples of Table 1.",
        needs="test",
    ),
    "critic": TableTarget(
        "Critic: where the value network is right and where it is not, %",
        (PUBLISHED["vbsix"], *WITH_CRITIC),
        (*NAMES, "states", "number of states", "ours, %", "paper, %"),
        _critic_rows,
        f"For each seed, {STATES} states of the last utterance from searches for training examples: half have an "
        "estimated reward of 0, half one above 0.7. Only states count for which the critic is off by less than 0.2 or "
        "by more than 0.5. Ours: the share of a group for which the critic's value is as follows. Many differences "
        "(no reward, at least 3 places differ from the target): below 0.2. One difference (no reward, 1 place "
        "differs): above 0.5. Few people (reward, at most 2 people): above 0.5. Many people (reward, at least 3): "
        "below 0.5.",
        needs="critic",
    ),
    "spurious": TableTarget(
        "Spurious programs: right in the end, wrong on the way, %",
        tuple(dict.fromkeys((*PUBLISHED1, *PUBLISHED2, *TABLE1, *TABLE2))),
        (*NAMES, "found in training", "spurious on dev", *AFTER.values(), "accuracy", "correlation"),
        _spurious_rows,
        "Found in training: the share of spurious programs among the correct ones found for the longest training "
        "examples, weighted by the probability that the searching policy (for expert-mml, the expert) gives them. "
        "Spurious on dev: the share of correct predictions that pass through a wrong world. After 1, 2, ...: the share "
        "of correct predictions with the right world after that utterance. Accuracy: on dev. Correlation: over seeds, "
        "of the share found in training with accuracy. All for the longest sequences.",
        needs="spurious",
    ),
}
"""What can be reproduced, by name."""

SHORT: Mapping[str, Target] = {
    "short": TableTarget(
        "Test accuracy, %",
        tuple(
            PLAIN[name]._replace(recipe=recipe, variant=variant)
            for recipe in ("published", "stochastic")
            for name, variant in (("mml", ""), ("mml", "beam-64"), ("expert-mml", ""), ("vbsix", ""))
        ),
        (*NAMES, *_by_length("ours", "paper")),
        _in_one_row(_test_rows),
        "Ours: at the last step.",
        needs="test",
    ),
    "short-ablation": TableTarget(
        "Dev accuracy without execution space, without a critic, without both, %",
        (*PUBLISHED2, *(PLAIN[name] for name in ABLATIONS)),
        (*NAMES, *_by_length("ours", "paper")),
        _in_one_row(_dev_rows),
        "Ours: at the last step. MML has neither execution space nor a critic.",
    ),
}
"""Tables 1 and 2 with the paper's rows alone, one for each run."""
