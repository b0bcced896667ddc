"""Numbers that a page states, compared with settings and result files.

A number that is followed by a comment such as <!-- = test RUN 5 --> is the value that the comment names. A comment has
one or more expressions, with semicolons between them. An expression is a term, or terms with ` - ` between them. These
are the terms; the mean over seeds is compared, and after `±` the standard deviation of the first term.

    test RUN 5, dev RUN 5, held-out RUN 5      accuracy in % after 5 utterances, at the last step
    best RUN 5, ensemble RUN 5                 the same on test, at the best step on dev; of the ensemble
    stage 1 RUN 5                              the same on dev, after the first stage
    devat RUN 5 STEP                           the same on dev, at a step
    spurious RUN train                         the share of spurious programs in %
    critic RUN STATES                          the share of states in % that the critic values as the paper says
    metric NAME RUN STEP                       a metric of training; STEP may be `last`
    correlation RUN                            over seeds, of the spurious share in training with accuracy on dev
    paper SPLIT DOMAIN METHOD 5                the paper's number
    prior WORK DOMAIN 5                        prior work's number
    beyond TASK WHAT FOLD, count TASK FOLD     of a data set other than SCONE: a share in %, the number of examples
    ceiling DATA WHAT                          how many of its examples the language can express
    model NAME 5                               accuracy in % of a model that comes with vbsix, on test
    setting NAME [DOMAIN METHOD ...]           a setting, by default or in a preset
    std TERM                                   the standard deviation of a term in place of its mean

`{a,b}` in an expression stands for an expression with a and one with b; the same braces have the same value in all
terms. `scene-*` stands for all runs on SCONE of that name that have all that is asked for. ` where learns` keeps those
with more than 20% on dev after 5 utterances, ` where not learns` the others, ` except NAME` those without NAME.

The first word may say what the number is if there are several expressions:

    range        `A to B`: the smallest and the largest value
    most         no value is larger, whatever its sign; rounded up
    least        no value is smaller; rounded down
    positive     `A of B`, or A alone if it is all of them: how many values are above 0
    negative     the same for values below 0
"""

from __future__ import annotations

import json
import math
import re
import statistics
from collections.abc import Iterator
from fnmatch import fnmatch
from functools import cache
from pathlib import Path
from typing import Any

from vbsix.config.presets import preset
from vbsix.config.schema import Config, to_settings
from vbsix.parsing.loading import pretrained_models
from vbsix.reproduction import paper
from vbsix.utilities.files import read_tensors

RESULTS = Path(__file__).parents[1] / "results"
NUMBER = r"[+-]?\d[\d,]*(?:\.\d+)?"
STATED = re.compile(rf"(?P<number>{NUMBER})(?: (?P<word>±|to|of) (?P<other>{NUMBER}))?%?<!-- = (?P<what>.*?) -->")
LEARNS = 20
"""In %; see `where learns`."""
_CONDITIONS = re.compile(r"(?P<term>.*?)(?: where (?P<which>not )?learns)?(?: except (?P<without>\S+))?")


@cache
def result(run: str) -> dict[str, Any]:
    return json.loads((RESULTS / f"{run}.json").read_text(encoding="utf-8"))


def check_stated(found: re.Match[str]) -> None:
    """Raises an AssertionError if a number is not what its comment names."""
    kind, _, rest = found["what"].partition(" ")
    kinds = {"range": _range, "most": _most, "least": _least, "positive": _count, "negative": _count}
    if kind not in kinds:
        kind, rest = "", found["what"]
    expressions = list(_expressions(rest))
    written = found[0].partition("<!--")[0].rstrip("%")
    values = [value_of(expression) for expression in expressions]
    if kind:
        right = kinds[kind](found, [-value for value in values] if kind == "negative" else values)
    else:
        assert len(expressions) == 1, found[0]
        right = _as(found["number"], values[0])
        if found["word"]:
            right += f" ± {spread_of(expressions[0].split(' - ')[0]):.1f}"
    assert written.replace(",", "") == right, f"{found[0]}: {right}"


def _range(found: re.Match[str], values: list[float]) -> str:
    return f"{_as(found['number'], min(values))} to {_as(found['other'], max(values))}"


def _most(found: re.Match[str], values: list[float]) -> str:
    scale = 10 ** _decimals(found["number"])
    return _as(found["number"], math.ceil(round(scale * max(map(abs, values)), 6)) / scale)


def _least(found: re.Match[str], values: list[float]) -> str:
    scale = 10 ** _decimals(found["number"])
    return _as(found["number"], math.floor(round(scale * min(values), 6)) / scale)


def _count(found: re.Match[str], values: list[float]) -> str:
    above = sum(value > 0 for value in values)
    return f"{above} of {len(values)}" if found["other"] or above < len(values) else str(above)


def _decimals(number: str) -> int:
    return len(number.partition(".")[2])


def _as(number: str, value: float) -> str:
    """The value with the decimals and the sign of a number."""
    return f"{value:{'+' if number.startswith('+') else ''}.{_decimals(number)}f}"


def _expressions(text: str) -> Iterator[str]:
    """The expressions of a comment, without braces and wildcards."""
    for part in text.split("; "):
        conditions = _CONDITIONS.fullmatch(part)
        assert conditions
        for expression in _without_braces(conditions["term"]):
            pattern = next((word for word in expression.split() if "*" in word), None)
            if not pattern:
                yield expression
                continue
            for run in sorted(path.stem for path in RESULTS.glob("*.json")):
                one = expression.replace(pattern, run)
                learned = _learns(run) != (conditions["which"] == "not ") or " where " not in part
                if fnmatch(run, pattern) and learned and _is_meant(run, conditions["without"]) and _is_known(one):
                    yield one


def _without_braces(text: str) -> Iterator[str]:
    if not (group := re.search(r"\{([^}]*)\}", text)):
        yield text
        return
    for choice in group[1].split(","):
        yield from _without_braces(text.replace(group[0], choice))


def _learns(run: str) -> bool:
    return value_of(f"dev {run} 5") > LEARNS if _is_known(f"dev {run} 5") else False


def _is_meant(run: str, without: str | None) -> bool:
    return not run.startswith("synthetic-") and not (without and without in run)


def _is_known(expression: str) -> bool:
    """Whether a run has all that an expression asks for."""
    try:
        return all(values_of(term) for term in expression.split(" - "))
    except (KeyError, statistics.StatisticsError):
        return False


def value_of(expression: str) -> float:
    first, *others = map(_mean_of, expression.split(" - "))
    return first - sum(others)


def _mean_of(term: str) -> float:
    return spread_of(term.removeprefix("std ")) if term.startswith("std ") else statistics.mean(values_of(term))


def spread_of(term: str) -> float:
    """The standard deviation over seeds; the paper's where the number is the paper's."""
    return _paper(*term.split()[1:])[1] if term.startswith("paper ") else statistics.stdev(values_of(term))


def _paper(split: str, domain: str, method: str, *names: str) -> tuple[float, float]:
    *variant, length = names
    return paper.ACCURACY[split][domain][method, " ".join(variant)][int(length)]


def values_of(term: str) -> list[float]:
    """The values over seeds, or the single value, that a term names."""
    kind, *names = term.split()
    if kind == "setting":
        name, *of = names
        domain, *others = of or ["tangrams"]
        return [to_settings(preset(domain, *others) if of else Config())[name]]
    if kind == "paper":
        return [_paper(*names)[0]]
    if kind == "prior":
        *work, domain, length = names
        return [paper.PRIOR_WORK[" ".join(work)][domain][int(length)]]
    if kind == "metric":
        name, run, step = names
        curve = result(run)["metrics"][name]
        return [curve["mean"][-1 if step == "last" else curve["steps"].index(int(step))]]
    if kind == "devat":
        run, length, step = names
        curve = result(run)["dev"]
        return [100 * share for share in curve[length][curve["steps"].index(int(step))]]
    if kind == "stage":
        number, run, length = names
        return [100 * share for share in result(run)["stages"][int(number) - 1]["accuracy"]["dev"][length]]
    if kind == "critic":
        run, *states = names
        return [100 * share for share in result(run)["critic"][" ".join(states)]["share"]]
    if kind == "beyond":
        task, *what, fold = names
        return [100 * share for share in result(f"beyond/{task}")[" ".join(what)][fold]]
    if kind == "count":
        task, fold = names
        return [result(f"beyond/{task}")["examples"][fold]]
    if kind == "model":
        name, length = names
        known = read_tensors(pretrained_models()[name])[1]["provenance"]
        assert known["accuracy_split"] == "test"
        return [100 * known["accuracy"][length]]
    if kind == "ceiling":
        data, *what = names
        return [result("beyond/ceilings")[data][" ".join(what)]]
    if kind == "spurious":
        run, split = names
        return [100 * share for share in result(run)["spurious"][split] if share is not None]
    if kind == "correlation":
        (run,) = names
        shares, accuracies = result(run)["spurious"]["train"], result(run)["accuracy"]["dev"]["5"]
        pairs = [pair for pair in zip(shares, accuracies, strict=True) if None not in pair]
        return [statistics.correlation(*zip(*pairs, strict=True))] if len(pairs) > 2 else []
    run, length = names
    measured = result(run) if kind in ("test", "dev", "held-out") else result(run)[kind]
    return [100 * share for share in measured["accuracy"]["test" if kind in ("best", "ensemble") else kind][length]]
