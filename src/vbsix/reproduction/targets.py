"""What can be reproduced: tables and figures, and the runs that they are made of."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from vbsix.pages import MISSING
from vbsix.reproduction import paper
from vbsix.reproduction.runs import TEST, Result, data_name
from vbsix.training.judgement import STATES
from vbsix.training.run import Run
from vbsix.training.spurious import FOUND
from vbsix.training.task import SYNTHETIC

BETWEEN = {end: f"after {end}" for end in range(1, 5)}
"""The worlds in between of five utterances."""
TESTED = ("last step", "best on dev", "together")
"""What is measured on test."""
TABLE1 = (
    *("mml", "mml-64", "expert-mml", "reinforce", "vbsix", "execution-256"),
    *("vbsix-words", "vbsix-spread", "execution-256-words", "vbsix-rests", "execution-256-rests"),
)
WITH_CRITIC = ("vbsix", "vbsix-rests")
ABLATIONS = ("mml", "execution-only", "value-only", "vbsix")
TABLE2 = (*ABLATIONS, *(f"{method}-rests" for method in ABLATIONS))


@dataclass(frozen=True)
class TableTarget:
    """A table: some lines for each run."""

    title: str
    methods: tuple[str, ...]
    columns: tuple[str, ...]
    rows: Callable[[Run, Result], Iterable[list[str]]]
    """The lines of a run; its result is empty if it has not ended."""
    note: str
    needs: str = "accuracy"
    """What must be in a result; see `lacks`."""


@dataclass(frozen=True)
class FigureTarget:
    """A figure: a panel for each domain, with curves of each method."""

    title: str
    methods: tuple[str, ...]
    curves: Mapping[str, str]
    """Metrics and their labels."""
    share: bool = False
    """Whether they lie between 0 and 1."""
    needs: str = "accuracy"


Target = TableTarget | FigureTarget


def _test_rows(run: Run, result: Result) -> Iterator[list[str]]:
    split = TEST[data_name(run.source)]
    measured = [_on(split, one) for one in (result, result.get("best", {}), result.get("committee", {}))]
    yield from _accuracy_rows(run, "test", measured)


def _short_rows(run: Run, result: Result) -> Iterator[list[str]]:
    """One line for all numbers of utterances."""
    last, _, together, published = list(zip(*_test_rows(run, result), strict=True))[3:]
    yield [run.config.domain, run.method, *last, *together, *published]


def _dev_rows(run: Run, result: Result) -> Iterator[list[str]]:
    yield from _accuracy_rows(run, "dev", [_on("dev", result), _on(TEST[SYNTHETIC], result)])


def _on(split: str, measured: Result) -> Mapping[str, Sequence[float]]:
    """The accuracies on a split, by the number of utterances."""
    return measured.get("accuracy", {}).get(split, {})


def _accuracy_rows(
    run: Run, paper_split: str, measured: Sequence[Mapping[str, Sequence[float]]]
) -> Iterator[list[str]]:
    published = paper.ACCURACY[paper_split][run.config.domain].get(run.method, {})
    for length in run.config.data.evaluation:
        ours = [spread(one.get(str(length), []), 100) for one in measured]
        yield [run.config.domain, run.method, str(length), *ours, _published(run, published.get(length))]


def _analysis_rows(run: Run, result: Result) -> Iterator[list[str]]:
    published = run.method == "vbsix"
    for name, theirs in paper.ANALYSIS[run.config.domain].items():
        metrics = result.get("metrics", {})
        ours = [spread(metrics.get(f"{name}{kind}", {}).get("average", [])) for kind in ("", "_longest")]
        about = run.config.domain, run.method, name.replace("_", " ")
        yield [*about, *ours, _published(run, theirs if published else None)]


def _prior_rows(run: Run, result: Result) -> Iterator[list[str]]:
    domain = run.config.domain
    published = [*(work[domain] for work in paper.PRIOR_WORK.values()), paper.ACCURACY["test"][domain]["vbsix"]]
    for length, row in zip(run.config.data.evaluation, _test_rows(run, result), strict=True):
        yield [*row[:-1], *(_published(run, by_length.get(length)) for by_length in published)]


def _critic_rows(run: Run, result: Result) -> Iterator[list[str]]:
    scene = run.config.domain == "scene"
    for name, theirs in paper.CRITIC.items():
        if "people" in name and not scene:
            continue
        found = result.get("critic", {}).get(name, {"states": [], "share": []})
        published = _published(run, theirs if scene and run.method == "vbsix" else None)
        shown = name, spread(found["states"]), spread(found["share"], 100)
        yield [run.config.domain, run.method, *shown, published]


def _spurious_rows(run: Run, result: Result) -> Iterator[list[str]]:
    spurious, between = result.get("spurious", {}), result.get("between", {}).get("dev", {})
    after = [spread(between.get(str(end), []), 100) for end in BETWEEN]
    shares = [spread(spurious.get(name, []), 100) for name in (FOUND, "dev")]
    accuracy = _on("dev", result).get(str(max(run.config.data.evaluation)), [])
    together = correlation(spurious.get(FOUND, [None] * len(accuracy)), accuracy)
    yield [run.config.domain, run.method, *shares, *after, spread(accuracy, 100), together]


def _published(run: Run, number: float | tuple[float, float] | None) -> str:
    """A number of the paper beside one of a run: the paper has none of the embedded corpus."""
    if number is None or run.source == SYNTHETIC:
        return MISSING
    return "{} ± {}".format(*number) if isinstance(number, tuple) else str(number)


def spread(values: Sequence[float | None], scale: float = 1) -> str:
    """The mean and the standard deviation of what is known."""
    known = [scale * value for value in values if value is not None]
    deviation = f" ± {statistics.stdev(known):.1f}" if len(known) > 1 else ""
    return f"{statistics.mean(known):.1f}{deviation}" if known else MISSING


def correlation(shares: Sequence[float | None], others: Sequence[float]) -> str:
    """How two measures go together over seeds, where both are known and differ."""
    known = [pair for pair in zip(shares, others, strict=True) if None not in pair]
    columns = list(zip(*known, strict=True))
    if len(known) < 3 or any(len(set(column)) == 1 for column in columns):
        return MISSING
    return f"{statistics.correlation(*columns):.2f}"


TARGETS: Mapping[str, Target] = {
    "table1": TableTarget(
        "Table 1: test accuracy, %",
        TABLE1,
        ("domain", "method", "utterances", *TESTED, "paper"),
        _test_rows,
        "Best on dev: of each seed, the policy at the step where it did best there. Together: all these policies "
        "decide by the mean of their probabilities, summed over the programs that lead to a world.",
        needs="test",
    ),
    "table2": TableTarget(
        "Table 2: dev accuracy without execution space, without a critic, without both, %",
        TABLE2,
        ("domain", "method", "utterances", "last step", "other phrasings", "paper"),
        _dev_rows,
        "The method mml has neither execution space nor critic.",
    ),
    "figure5": FigureTarget(
        "Figure 5: hit accuracy on the longest training examples",
        (*ABLATIONS, "execution-256"),
        {"hit_longest": "{method}"},
        share=True,
    ),
    "figure6": FigureTarget(
        "Figure 6: error of the value network",
        WITH_CRITIC,
        {"value_error": "{method}, all states", "value_error_high": "{method}, reward above 0.7"},
    ),
    "analysis": TableTarget(
        "Analysis: what the beam holds in execution space",
        (*WITH_CRITIC, "vbsix-words"),
        ("domain", "method", "property", "all examples", "the longest", "paper"),
        _analysis_rows,
        "Over all steps; the paper's numbers are of its examples of 5 utterances, the longest.",
    ),
    "prior-work": TableTarget(
        "Prior work: test accuracy after training on examples of 1 and 2 utterances, %",
        ("mml-orig", "vbsix-orig"),
        ("domain", "method", "utterances", *TESTED, *paper.PRIOR_WORK, "paper's VBSiX"),
        _prior_rows,
        "Prior work has medians of 5 runs; Fried et al. learned from programs, the others from the same examples as "
        "ours, and the paper's VBSiX from the longer ones of Table 1.",
        needs="test",
    ),
    "critic": TableTarget(
        "Critic: where the value network is right and where it is not, %",
        WITH_CRITIC,
        ("domain", "method", "states", "how many", "ours", "paper"),
        _critic_rows,
        f"Of each seed {STATES} states of the last utterance, half of them with an estimated reward of 0 and half with "
        "one above 0.7, from searches for training examples, whose value is off by less than 0.2 or more than 0.5. "
        "Many differences: without reward, and the world differs from the target in 3 places or more; how many have a "
        "value below 0.2. One difference: likewise in 1 place; a value above 0.5. Few people: with reward, and 2 in "
        "the world at most; a value above 0.5. Many people: likewise 3 or more; a value below 0.5.",
        needs="critic",
    ),
    "spurious": TableTarget(
        "Spurious programs: right in the end, wrong on the way, %",
        tuple(dict.fromkeys((*TABLE1, *TABLE2))),
        ("domain", "method", "found in training", "right on dev", *BETWEEN.values(), "accuracy", "correlation"),
        _spurious_rows,
        "Found in training: how much of the probability of what a search finds for the longest training examples "
        "passes through a wrong world, by the policy that searches, of expert-mml the expert. Right on dev: how many "
        "of the right predictions for the longest sequences do; after 1, 2, ...: how many of them have the right world "
        "there. Accuracy: on dev, for the longest sequences. Correlation: over seeds, of what is found in training "
        "with it.",
        needs="spurious",
    ),
}
"""What can be reproduced, by name."""

SHORT: Mapping[str, Target] = {
    "short": TableTarget(
        "Test accuracy, %",
        ("mml", "vbsix", "vbsix-spread", "vbsix-rests", "execution-256", "execution-256-words"),
        (
            *("domain", "method"),
            *(f"{what}, {length}" for what in ("each seed", "together", "paper") for length in (3, 5)),
        ),
        _short_rows,
        "Each seed at the last step; together, six policies, each at its best on dev, decide at once.",
        needs="test",
    ),
    "short2": replace(TARGETS["table2"], methods=("mml", "vbsix")),
}
"""Tables 1 and 2 for those who read no more than a page."""
