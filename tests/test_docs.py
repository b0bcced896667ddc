"""The documentation agrees with the code: numbers, settings, metrics, commands, links and vocabulary."""

from __future__ import annotations

import importlib.util
import json
import re
import shlex
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jax
import pytest
from command_lines import parse_only, unknown_options
from stated_numbers import STATED, check_stated, result
from training.tiny import ARGUMENTS
from training.tiny_config import SETTINGS, tiny_config, tiny_dataset

import vbsix
from vbsix.cli import main
from vbsix.config.legacy import read_config
from vbsix.config.presets import METHODS, STAGES, data_kind, preset
from vbsix.config.schema import Config, to_settings
from vbsix.config.variation import inputs
from vbsix.domains.names import FROM_FILES
from vbsix.reproduction import page
from vbsix.reproduction.runs import NO_VARIANT
from vbsix.reproduction.summary import best_tested
from vbsix.runs.metrics import METRICS
from vbsix.runs.stages import plan_stages
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


# Numbers


@each_page
def test_numbers_are_those_of_settings_and_results(path):
    for found in STATED.finditer(read(path)):
        check_stated(found)


def test_every_marked_number_is_checked():
    text = "".join(map(read, PAGES))
    assert len(STATED.findall(text)) == text.count("<!-- = ") > 50


UNMARKED = {
    "README.md": {
        "1.8",  # of a run without a result file, which docs/notebook.md has
        *("96.5", "91.5"),  # of the quick start's run, whose command, hardware and date are given
    },
    "docs/results.md": {
        *("1.8", "2.1", "2.9", "1.9"),  # runs without a result file, which docs/notebook.md has
        *("16.8", "11.1", "22.6"),  # the same, of context over a control
    },
}
"""Numbers with decimals of no result file."""


@pytest.mark.parametrize("page", UNMARKED)
def test_every_number_with_decimals_is_marked(page):
    text = re.sub(
        r"<!-- (?!=).*?-->|`[^`\n]*`|\[[^]]*\]\([^)]*\)|\d+\.\d+\.\d+|[Vv]ersion \d\.\d",
        "",
        GENERATED.sub("", read(ROOT / page)),
    )
    unmarked = re.findall(r"\d+\.\d+", CODE.sub("", STATED.sub("", text)))
    assert {number for number in unmarked if number != "3.11"} == UNMARKED[page]


@pytest.mark.parametrize("path", [README, DOCS / "results.md"], ids=name_of)
def test_the_table_of_best_runs_has_the_run_that_is_best_on_dev(path):
    results = page.read_all_results(ROOT / "results")
    table = read(path).partition("<!-- best -->")[2].partition("<!-- end -->")[0]
    rows = {row["domain"]: row for row in table_rows(table)}
    assert list(rows) == ["scene", "alchemy", "tangrams"]
    for domain, row in rows.items():
        best = best_tested(results, domain)
        assert best
        found = results[best]
        ensemble = found["ensemble"]["accuracy"]["test"]["5"]
        assert row["ensemble"] == f"{100 * ensemble[0]:.1f}"
        assert names_of_row(row) == [
            *(found["method"], found["recipe"], found["variant"]),
            found.get("schedule", ""),
        ]


def test_the_results_begin_with_a_figure():
    text = read(DOCS / "results.md")
    assert 0 < text.index("\n![") < text.index("\n|")
    assert len(text[: text.index("\n![")].split()) < 100


def test_the_notebook_lists_its_sections():
    text = read(DOCS / "notebook.md")
    listed = re.findall(r"\]\(#([^)]+)\)", text.split("\n## Contents\n")[1].split("\n## ")[0])
    assert sorted(listed) == sorted(anchors(DOCS / "notebook.md") - {"notebook", "contents"})


def test_results_were_made_with_the_presets_that_they_name(tmp_path):
    """All but incomplete runs, which say what was changed."""
    for path in sorted((ROOT / "results").rglob("*.json")):
        if path.parent.name == "beyond":  # measured by a script of its own
            continue
        found = json.loads(read(path))
        names = [found.get(name, "") for name in ("domain", "method", "recipe", "variant")]
        named = preset(*names, data=data_kind(found["data"]))
        if "stages" in found:
            planned = plan_stages(tmp_path, named, STAGES[found["schedule"]], found["seeds"], found["data"])
            assert [read_config(stage["config"]) for stage in found["stages"]] == [run.config for run in planned], path
            assert f"--stages {found['schedule']} " in found["command"]
        elif path.parent.name != page.INCOMPLETE:
            assert read_config(found["config"]) == named, path


def table_rows(text: str) -> Iterator[dict[str, str]]:
    """The rows of all tables of a page, as cells by heading."""
    heading = None
    for line in text.splitlines():
        cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
        if not line.startswith("|"):
            heading = None
        elif heading is None:
            heading = cells
        elif set(line) - set("|-"):
            yield dict(zip(heading, cells, strict=True))


def names_of_row(row: dict[str, str]) -> list[str] | None:
    """The names in a row of results: method, recipe, variant and schedule of stages, empty where there is none."""
    if row.keys() >= {"domain", "method", "variant"}:
        variant = row["variant"].replace(NO_VARIANT, "")
        return [row["method"], row.get("recipe", "stochastic"), variant, ""]
    listed = row.get("method, variant") or row.get("method, variant, stages")
    if listed is None:
        return None
    method, *others = re.findall("`(.*?)`", listed)
    schedules = [name for name in others if name in STAGES]
    return [method, "stochastic", "+".join(name for name in others if name not in STAGES), "".join(schedules)]


@pytest.mark.parametrize("path", [README, DOCS / "results.md"], ids=name_of)
def test_every_row_of_results_can_be_trained_by_its_names(path):
    """And its numbers are those of that run."""
    rows = [(row, names) for row in table_rows(read(path)) if (names := names_of_row(row))]
    assert len(rows) >= 3
    for row, (method, recipe, variant, schedule) in rows:
        domain = row.get("domain", "tangrams")
        preset(domain, method, recipe, variant)
        assert not schedule or STAGES[schedule]
        marked = re.findall(r"<!-- = (?:test|dev|best|ensemble) (\S+)", " ".join(row.values()))
        for found in map(result, marked):
            named = [found[name] for name in ("domain", "method", "recipe")]
            assert [*named, found["variant"], found.get("schedule", "")] == [domain, method, recipe, variant, schedule]


def test_the_paper_in_the_code_names_functions_that_say_so():
    """Each name can be imported, and its own or its module's docstring speaks of the paper's part."""
    part = read(DOCS / "concepts.md").split("## The paper in the code")[1].split("\n## ")[0]
    rows = re.findall(r"^\| ([^|]+) \| \[`(\w+)`\]\(api\.md#([\w.]+)\) \|$", part, re.MULTILINE)
    assert len(rows) == 18
    for concept, name, path in rows:
        module, _, last = path.rpartition(".")
        thing = getattr(importlib.import_module(module), last)
        assert last == name == thing.__name__
        defined = sys.modules[thing.__module__]
        text = f"{thing.__doc__} {defined.__doc__}".lower()
        words = [word for word in re.findall(r"[a-zε][\w-]{3,}", concept.lower())]
        assert any(word.rstrip("s") in text for word in words), concept


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


def test_each_picture_of_a_page_is_made_by_a_script_and_is_small():
    pictures, script = sorted((DOCS / "images").glob("*.png")), read(DOCS / "scripts" / "pictures.py")
    assert pictures
    for picture in pictures:
        assert f'"{picture.name}"' in script
        assert picture.stat().st_size < 300_000


def test_the_figures_of_results_are_up_to_date(tmp_path):
    """The texts in them are compared; lines may differ slightly with the version of matplotlib."""
    shutil.copytree(ROOT / "results", tmp_path / "results")
    (tmp_path / "docs").mkdir()
    for name in ("results.md", "notebook.md"):
        shutil.copy(DOCS / name, tmp_path / "docs")
    page.write_page(tmp_path)
    drawn = sorted((tmp_path / "docs" / "figures").iterdir())
    assert {path.stem for path in drawn} == {"summary", "figure5", "figure6"}
    for path in drawn:
        texts = (re.findall("<!-- (.*?) -->", read(file)) for file in (path, DOCS / "figures" / path.name))
        assert next(texts) == next(texts), f"{path.name}: run vbsix reproduce page --out ."


def test_all_pages_with_tables_of_results_agree_with_the_results():
    folders = [ROOT / "results" / name for name in ("", page.INCOMPLETE, page.STAGED)]
    results = [page.read_results(folder) for folder in folders]
    for path in PAGES:
        assert page.fill_page(read(path), *results) == read(path), "run vbsix reproduce page --out ."


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


def metrics_of(method: str, recipe: str) -> set[str]:
    """The names of the metrics that a training step gives."""
    config = tiny_config(method, recipe=recipe)
    dataset = tiny_dataset(config)
    learner = jax.eval_shape(lambda seed: create_learner(dataset.domain, config, seed), jax.numpy.int32(0))
    examples = dataset.arrays(dataset.examples)

    def step(learner, key, number):
        vectors = jax.numpy.asarray(dataset.words.vectors)
        given = dataset.domain, config, learner, vectors, examples, key, number
        return train_step(*given, critic_ranks=True)[1]

    return set(jax.eval_shape(step, learner, jax.random.key(0), jax.numpy.int32(0)))


def test_the_sweeps_page_has_every_input_of_programs():
    rows = re.findall(r"^\| `(\w+)` \| (`.*) \|$", read(DOCS / "sweeps.md"), re.MULTILINE)
    assert {f"{section}.{name}" for section, names in rows for name in re.findall(r"`(\w+)`", names)} == inputs().keys()


@pytest.mark.integration
def test_every_metric_of_training_has_a_meaning_and_no_other():
    produced = {name for configuration in CONFIGURATIONS for name in metrics_of(*configuration)}
    names = [name for group in METRICS.values() for name in group]
    assert len(names) == len(set(names))
    assert set(names) == produced | {"step", "seed", "stage", "accuracy"}


def test_every_group_of_metrics_has_its_table():
    text = read(DOCS / "metrics.md")
    for group, meanings in METRICS.items():
        table = text.partition(f"<!-- metrics {group} -->")[2].partition("<!-- end -->")[0]
        assert re.findall(r"^\| `(\w+)` \|", table, re.MULTILINE) == list(meanings)


def test_runs_in_stages_are_on_the_pages_of_their_methods():
    rows = read(DOCS / "methods" / "mml.md").splitlines()
    best = [row for row in rows if "| waypoints, stages tangrams-context | test, best step |" in row]
    assert len(best) == 1 and "65.7 ± 0.6" in best[0]


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


@pytest.mark.parametrize("path", [*PAGES, *OTHER_PAGES], ids=name_of)
def test_commands_within_sentences_have_known_options(path):
    for command in re.findall(r"`vbsix ([^`]+)`", CODE.sub("", read(path))):
        assert unknown_options(command.split()) == [], f"{name_of(path)}: vbsix {command}"


def test_an_unknown_option_would_be_found():
    assert unknown_options(["train", "--beam", "4", "--seeds=6"]) == ["--beam"]
    assert unknown_options(["config", "show", "--methods"]) == ["--methods"]


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
    for path in (*(ROOT / "results").glob("*.json"), *(ROOT / "results" / "staged").glob("*.json")):
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
    "docs/domains.md": ("control flow",),
}
"""Uses that are meant: names of version 0.1, a button of the playground, everyday words in their everyday sense."""
WRITTEN = [
    *PAGES,
    *(ROOT / name for name in ("CONTRIBUTING.md", "SECURITY.md", ".github/pull_request_template.md")),
    *sorted(ROOT.glob("examples/*/README.md")),
    ROOT / "examples" / "tour.ipynb",
]
"""The changelog has names of version 0.1."""


@pytest.mark.parametrize("path", WRITTEN, ids=name_of)
def test_no_word_of_the_old_vocabulary_is_left(path):
    text = re.sub(r"<!--.*?-->", "", read(path), flags=re.DOTALL)
    if path.suffix == ".ipynb":
        text = "".join("".join(cell["source"]) for cell in json.loads(text)["cells"])
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
    static = ROOT / "src" / "vbsix" / "playground" / "static"
    files = [path for folder in ("src", "examples") for path in sorted((ROOT / folder).rglob("*.py"))]
    files += [path for kind in ("js", "html", "css") for path in sorted(static.glob(f"*.{kind}"))]
    pattern = re.compile(rf"\b(?:{'|'.join(NOWHERE)})\b", re.IGNORECASE)
    found = {name_of(path): pattern.findall(read(path)) for path in files if path.name != "legacy.py"}
    assert {name: words for name, words in found.items() if words} == {}


@pytest.mark.parametrize("path", [*PAGES, *OTHER_PAGES], ids=name_of)
def test_pages_name_no_place_of_one_machine(path):
    assert not re.search(r"(?<![\w.])/(?:work|tmp|home|root)/", read(path))


def words_seen(path: Path) -> list[str]:
    """The words of a page as a reader sees them, with those in tables and code."""
    text = re.sub(r"<!--.*?-->|!\[[^]]*\]\([^)]*\)", "", read(path), flags=re.DOTALL)
    text = re.sub(r"^(```.*|[|-]+|#+ |[ ]*- )", "", re.sub(r"\]\([^)]*\)", "]", text), flags=re.MULTILINE)
    return [word for word in text.split() if word != "|"]


@pytest.mark.parametrize(("page", "most"), [(README, 900), (DOCS / "results.md", 2500)])
def test_the_pages_are_short(page, most):
    assert len(words_seen(page)) <= most
