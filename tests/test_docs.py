"""The documentation agrees with the code: numbers, settings, metrics, commands, links and vocabulary."""

from __future__ import annotations

import importlib.util
import json
import re
import shlex
import statistics
import sys
from functools import cache
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest
import typer
from training.tiny import ARGUMENTS
from training.tiny_config import SETTINGS, tiny_config, tiny_dataset

import vbsix
from vbsix.cli import app, main
from vbsix.config.presets import METHODS, preset
from vbsix.config.schema import Config, to_settings
from vbsix.domains.names import FROM_FILES
from vbsix.reproduction import page, paper
from vbsix.training.step import create_learner, train_step

ROOT = Path(__file__).parents[1]
README, DOCS = ROOT / "README.md", ROOT / "docs"
PAGES = [README, *sorted(DOCS.rglob("*.md"))]
OTHER_PAGES = [ROOT / name for name in ("CONTRIBUTING.md", "CHANGELOG.md", "SECURITY.md")]
GENERATED = re.compile(r"<!-- ([a-z][\w -]*) -->\n.*?<!-- end -->", re.DOTALL)
CODE = re.compile(r"^```(\w+)[^\n]*\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def name_of(path: Path) -> str:
    return str(path.relative_to(ROOT))


each_page = pytest.mark.parametrize("path", PAGES, ids=name_of)


def read(path: Path) -> str:
    return path.read_text(encoding="utf-8")


def prose(path: Path) -> str:
    """What is written by hand on a page."""
    return re.sub(r"<!--.*?-->", "", GENERATED.sub("", read(path)), flags=re.DOTALL)


# Numbers: a number that is followed by a comment such as <!-- = test RUN 5 --> is the value that the comment names.

NUMBER = r"(?P<number>[+-]?\d[\d,]*(?:\.\d+)?)"
VALUE = re.compile(NUMBER + r"(?: ± (?P<spread>\d+\.\d+))?%?<!-- = (?P<what>.*?) -->")


@cache
def result(run: str) -> dict[str, Any]:
    return json.loads(read(ROOT / "results" / f"{run}.json"))


def values_of(term: str) -> list[float]:
    """The values over seeds, or the single value, that a term names."""
    kind, *names = term.split()
    if kind == "setting":
        name, *of = names
        domain, *others = of or ["tangrams"]
        return [to_settings(preset(domain, *others) if of else Config())[name]]
    if kind == "paper":
        split, domain, method, *variant, length = names
        return [paper.ACCURACY[split][domain][method, " ".join(variant)][int(length)][0]]
    if kind == "metric":
        name, run, step = names
        curve = result(run)["metrics"][name]
        return [curve["mean"][-1 if step == "last" else curve["steps"].index(int(step))]]
    if kind == "devat":
        run, length, step = names
        curve = result(run)["dev"]
        return [100 * share for share in curve[length][curve["steps"].index(int(step))]]
    if kind == "critic":
        run, *states = names
        return [100 * share for share in result(run)["critic"][" ".join(states)]["share"]]
    if kind == "spurious":
        run, split = names
        return [100 * share for share in result(run)["spurious"][split] if share is not None]
    if kind == "beyond":
        task, *what, fold = names
        return [100 * share for share in result(f"beyond/{task}")[" ".join(what)][fold]]
    if kind == "count":
        task, fold = names
        return [result(f"beyond/{task}")["examples"][fold]]
    if kind == "ceiling":
        data, *what = names
        return [result("beyond/ceilings")[data][" ".join(what)]]
    run, length = names
    measured = result(run) if kind in ("test", "dev", "held-out") else result(run)[kind]
    return [100 * share for share in measured["accuracy"]["test" if kind in ("best", "ensemble") else kind][length]]


@each_page
def test_numbers_are_those_of_settings_and_results(path):
    for found in VALUE.finditer(read(path)):
        terms = [values_of(term) for term in found["what"].split(" - ")]
        value = statistics.mean(terms[0]) - sum(statistics.mean(term) for term in terms[1:])
        decimals = len(found["number"].partition(".")[2])
        sign = "+" if found["number"].startswith("+") else ""
        written = f"{value:{sign},.{decimals}f}"
        assert found["number"] in (written, written.replace(",", "")), found[0]
        if found["spread"]:
            assert found["spread"] == f"{statistics.stdev(terms[0]):.1f}", found[0]


def test_every_marked_number_is_checked():
    text = "".join(map(read, PAGES))
    assert len(VALUE.findall(text)) == text.count("<!-- = ") > 50


def is_tested(run: str) -> bool:
    """Whether test was read for a run, with the policies of its last step or with its best ones."""
    return any(
        "test" in measured["accuracy"] for measured in (result(run), result(run)["best"]) if "accuracy" in measured
    )


def test_the_readme_shows_the_run_that_is_best_on_dev():
    folder = ROOT / "results"
    files = [*folder.glob("*.json"), *folder.glob("staged/*.json")]
    tested = [run for run in (str(path.relative_to(folder).with_suffix("")) for path in files) if is_tested(run)]
    rows = [line for line in read(README).splitlines() if "<!-- = ensemble " in line]
    assert len(rows) == 3
    for row in rows:
        domain = row.strip("| ").split(" | ")[0]
        of_domain = [run for run in tested if Path(run).name.startswith(domain) and not run.endswith("prior-work")]
        best = max(of_domain, key=lambda run: statistics.mean(result(run)["accuracy"]["dev"]["5"]))
        kind = "test" if "test" in result(best)["accuracy"] else "best"
        assert f"<!-- = {kind} {best} 5 -->" in row and f"<!-- = ensemble {best} 5 -->" in row


def test_every_domain_and_every_example_is_documented():
    text = "".join(read(path) for path in PAGES)
    names = [*vbsix.available_domains(), *FROM_FILES]
    assert [name for name in names if f"`{name}`" not in text and f"*{name}*" not in text] == []
    folders = [
        path.name for path in (ROOT / "examples").iterdir() if path.is_dir() and not path.name.startswith((".", "_"))
    ]
    examples = read(DOCS / "examples.md")
    assert [name for name in folders if f"`examples/{name}`" not in examples] == []


# Generated pages


def load_script(name: str) -> Any:
    spec = importlib.util.spec_from_file_location(name, DOCS / "scripts" / f"{name}.py")
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def test_generated_pages_and_figures_are_up_to_date(monkeypatch):
    monkeypatch.syspath_prepend(str(DOCS / "scripts"))
    generate = load_script("generate")
    for path, text in generate.generate().items():
        assert read(path) == text, f"{name_of(path)}: run python docs/scripts/generate.py"
    generate.figures.checks()


def test_all_pages_with_tables_of_results_agree_with_the_results():
    results, incomplete = page.read_results(ROOT / "results"), page.read_results(ROOT / "results" / "incomplete")
    for path in PAGES:
        assert page.fill_page(read(path), results, incomplete) == read(path), "run vbsix reproduce page --out ."


def test_all_pages_with_parts_are_filled_and_others_left_alone(tmp_path):
    (tmp_path / "results").mkdir()
    name = "alchemy-vbsix-stochastic.json"
    (tmp_path / "results" / name).write_bytes((ROOT / "results" / name).read_bytes())
    pages = {"docs/results.md": "runs", "docs/deeper/other.md": "table2", "README.md": "short", "docs/plain.md": None}
    for path, part in pages.items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(f"<!-- {part} -->\nold\n<!-- end -->\n" if part else "old\n")
    written = page.write_page(tmp_path)
    assert {str(path.relative_to(tmp_path)) for path in written} == {path for path, part in pages.items() if part}
    for path, part in pages.items():
        assert ("alchemy" in read(tmp_path / path)) == (part is not None)
        assert ("old" in read(tmp_path / path)) == (part is None)


def test_every_setting_is_on_the_settings_page():
    text = read(DOCS / "settings.md")
    assert [name for name in to_settings(Config()) if "." in name and f"| `{name}` |" not in text] == []


CONFIGURATIONS = [
    ("vbsix", "stochastic"),
    ("vbsix", "published"),
    ("mml", "published"),
    ("expert-mml", "stochastic"),
    ("reinforce", "stochastic"),
]


def metrics_of(method: str, recipe: str, taught: bool = False) -> set[str]:
    """The names of the metrics that a training step gives."""
    config = tiny_config(method, recipe=recipe)
    dataset = tiny_dataset(config)
    learner = jax.eval_shape(lambda seed: create_learner(dataset.domain, config, seed), jax.numpy.int32(0))
    examples = dataset.arrays(dataset.examples)

    folds = np.zeros(len(dataset.examples), np.int32)

    def step(learner, key, number):
        vectors = jax.numpy.asarray(dataset.words.vectors)
        given = dataset.domain, config, learner, vectors, examples._replace(fold=folds), key, number
        teachers = jax.tree.map(lambda leaf: leaf[None, None], learner.networks.policy) if taught else None
        return train_step(*given, critic_ranks=True, teachers=teachers)[1]

    return set(jax.eval_shape(step, learner, jax.random.key(0), jax.numpy.int32(0)))


@pytest.mark.integration
def test_the_metrics_page_has_every_metric_of_training_and_no_other():
    produced = {name for configuration in CONFIGURATIONS for name in metrics_of(*configuration)}
    produced |= metrics_of("vbsix", "stochastic", taught=True)
    text = read(DOCS / "metrics.md").partition("## Results")[0].partition("## Every run")[2]
    cells = [line.split("|")[1] for line in text.splitlines() if line.startswith("| `")]
    documented = {name for cell in cells for name in re.findall(r"`(\w+)`", cell)}
    assert documented == produced | {"step", "seed", "stage", "accuracy"}


def test_each_method_has_its_page():
    assert {path.stem for path in (DOCS / "methods").glob("*.md")} == set(METHODS)


# Commands: run here, run by another test, or marked with what they need.

NEEDS = re.compile(r"# needs .*\b(SCONE|GPU|cores?|network|browser|docs|no GPU)\b")
ELSEWHERE = {
    "tutorial.md": "tests/test_tutorial.py",
    "vbsix serve": "tests/cli/test_serve_cli.py",
    "vbsix report": "tests/show/test_report.py",
    "vbsix bench": "tests/benchmarks/test_speed_page.py",
    "vbsix data": "tests/cli/test_data_cli.py",
    "curl": "tests/playground/test_playground.py",
}
"""Pages and commands that another test runs."""
OTHER_TOOLS = ("pip ", "python3 -m venv", "python ", ". .venv", "mkdocs ", "pre-commit ", "cd ", "git ", "export ")
"""Not commands of ours; `.ci/run` runs the README's."""


def commands(path: Path) -> list[str]:
    """The commands of a page's shell blocks, each with its comment."""
    blocks = [text for language, text in CODE.findall(read(path)) if language in ("sh", "bash")]
    lines = "\n".join(blocks).replace("\\\n", " ").splitlines()
    return [line.strip() for line in lines if line.strip() and not line.startswith("#")]


def is_run_elsewhere(path: Path, command: str) -> bool:
    return path.name in ELSEWHERE or any(command.startswith(start) for start in ELSEWHERE)


def parse_only(arguments: list[str]) -> None:
    """Reads a command line without running it; raises for options and commands that do not exist."""
    command: Any = typer.main.get_command(app)
    name, context = "vbsix", None
    while hasattr(command, "commands"):
        context = command.make_context(name, arguments[:1], parent=context)
        name, arguments = arguments[0], arguments[1:]
        command = command.commands[name]
    command.make_context(name, list(arguments), parent=context)


@pytest.mark.parametrize("path", [*PAGES, *OTHER_PAGES], ids=name_of)
def test_commands_exist_and_are_run_or_say_what_they_need(path):
    for command in commands(path):
        for part in command.partition(" # ")[0].split(" && "):
            if part.startswith("vbsix "):
                parse_only(shlex.split(part, comments=True)[1:])
            elif not is_run_elsewhere(path, part):
                assert part.startswith((*OTHER_TOOLS, "pytest", "ruff ", "pyright", "bash .ci/run")), part
        if command.startswith("vbsix ") and not is_run_elsewhere(path, command):
            assert NEEDS.search(command) or command in RUN_HERE, f"{name_of(path)}: not run: {command}"


def test_the_tests_that_run_commands_elsewhere_are_there():
    assert [test for test in ELSEWHERE.values() if not (ROOT / test).exists()] == []


FIRST_PAGES = README, DOCS / "concepts.md", DOCS / "index.md", DOCS / "languages.md"
RUN_HERE = {command: path for path in FIRST_PAGES for command in commands(path)}


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.integration
def test_the_commands_of_the_first_pages_run(folder, monkeypatch, capsys):
    """Training is short, and its networks are small."""
    done = []
    for command, path in RUN_HERE.items():
        arguments = shlex.split(command, comments=True)
        if not command.startswith("vbsix ") or is_run_elsewhere(path, command):
            continue
        tiny = [*ARGUMENTS, "--steps=4"] if arguments[1] == "train" else []
        if NEEDS.search(command) and not (tiny and "SCONE" not in command):
            continue
        monkeypatch.setattr("sys.argv", [*arguments, *tiny])
        with pytest.raises(SystemExit) as end:
            main()
        assert not end.value.code, f"{command}: {capsys.readouterr().err}"
        done.append(arguments[1])
    assert {"train", "evaluate", "parse", "export", "search", "execute", "config"} <= set(done)


@pytest.mark.integration
def test_the_python_examples_run(folder, monkeypatch, capsys):
    """Those that train do so with small networks and few steps."""
    tiny = {name.replace(".", "__"): value for name, value in SETTINGS.items()}
    quiet = {**tiny, "progress": False}
    for name in ("train", "sweep"):
        original = getattr(vbsix, name)
        monkeypatch.setattr(vbsix, name, lambda *given, of=original, **named: of(*given, **{**quiet, **named}))
    ran = 0
    for path in (README, DOCS / "extend.md", DOCS / "index.md", DOCS / "sweeps.md"):
        session: dict[str, Any] = {}
        for language, text in CODE.findall(read(path)):
            if language == "python" and ">>>" not in text:
                exec(compile(text, name_of(path), "exec"), session)
                ran += 1
    assert ran >= 2


def test_the_environment_of_the_results_is_that_of_the_result_files():
    lines = read(ROOT / "results" / "requirements.txt").splitlines()
    pinned = dict(line.split("==") for line in lines if line and not line.startswith("#"))
    for path in (ROOT / "results").glob("*.json"):
        versions = json.loads(read(path))["versions"]
        assert {name: pinned[name] for name in ("jax", "jaxlib", "numpy")}.items() <= versions.items(), path.name


# Links


def anchors(path: Path) -> set[str]:
    """The anchors of a page's headings, as GitHub makes them."""
    headings = re.findall(r"^#+ (.*)$", re.sub(r"```.*?```", "", read(path), flags=re.DOTALL), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).strip().replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("path", [*PAGES, *OTHER_PAGES], ids=name_of)
def test_relative_links_lead_somewhere(path):
    text = re.sub(r"```.*?```", "", read(path), flags=re.DOTALL)
    for link in re.findall(r"\]\(([^)\s]+)\)", text):
        if re.match(r"[a-z]+:", link):
            continue
        file, _, anchor = link.partition("#")
        target = (path.parent / file).resolve() if file else path
        assert target.exists(), f"{name_of(path)}: {link}"
        if anchor and target.name != "api.md":
            assert anchor in anchors(target), f"{name_of(path)}: {link}"


# Language

BANNED = (
    *("committee", "elects?", "votes?", "rests", "short_first", "is_late", "drawn", "token_spread", "embedding_spread"),
    *("own_words", "looks", "judgements?", "correct_flow", "add_up", "line_up", "put_on_all", "trials?", "broken off"),
    *("mend(?:s|ed|ing)?", "told", "anew", "of which alone", "what is left of", "so many", "likewise", "shown"),
    *("together", "first embeddings", "paper-vbsix", "paper-mml", "execution-256", "mml-64", "flow", "late"),
)
ALLOWED = {
    "docs/results.md": ("`paper-vbsix` and `paper-mml`",),
    "docs/metrics.md": ("late in training",),
    "docs/domains.md": ("control flow",),
    "docs/notebook.md": ("`paper-vbsix` of version 0.1",),
}
"""Uses that are meant: names of version 0.1, a button of the playground, everyday words in their everyday sense."""


@each_page
def test_no_word_of_the_old_vocabulary_is_left(path):
    text = re.sub(r"<!--.*?-->", "", read(path), flags=re.DOTALL)
    for phrase in ALLOWED.get(name_of(path), ()):
        assert phrase in text, f"{phrase!r} is no longer there: take it off the list"
        text = text.replace(phrase, "")
    found = re.findall(rf"\b(?:{'|'.join(BANNED)})\b", text, re.IGNORECASE)
    assert found == []


NOWHERE = (
    *("committee", "elects?", "votes?", "rests", "short_first", "is_late", "token_spread", "embedding_spread"),
    *("own_words", "judgements?", "correct_flow", "add_up", "line_up", "put_on_all", "broken off", "drawn beam"),
    *("mend(?:s|ed|ing)?", "told", "anew", "of which alone", "what is left of", "so many", "likewise", "freshly drawn"),
)


def test_no_word_of_the_old_vocabulary_is_left_in_the_code():
    files = [path for folder in ("src", "examples") for path in sorted((ROOT / folder).rglob("*.py"))]
    pattern = re.compile(rf"\b(?:{'|'.join(NOWHERE)})\b", re.IGNORECASE)
    found = {name_of(path): pattern.findall(read(path)) for path in files if path.name != "legacy.py"}
    assert {name: words for name, words in found.items() if words} == {}


@pytest.mark.parametrize("path", [*PAGES, *OTHER_PAGES], ids=name_of)
def test_pages_name_no_place_of_one_machine(path):
    assert not re.search(r"(?<![\w.])/(?:work|tmp|home|root)/", read(path))


def test_the_pages_are_short():
    without_code = CODE.sub("", prose(README))
    assert len(without_code.split()) <= 900
    assert len(CODE.sub("", prose(DOCS / "results.md")).split()) <= 2500
