"""Workflows, templates and the files of a release: they agree with the package, though nothing runs them here."""

from __future__ import annotations

import re
import shlex
import subprocess
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml
from command_lines import parse_only

import vbsix

ROOT = Path(__file__).parents[1]
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
VERSIONS = ("3.11", "3.12", "3.13")
each_workflow = pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)


def load(path: Path) -> dict[Any, Any]:
    return yaml.safe_load(path.read_text(encoding="utf-8"))


def triggers(workflow: dict[Any, Any]) -> Any:
    return workflow[True]  # YAML 1.1 reads the key `on` as true


def scripts(workflow: dict[Any, Any]) -> list[str]:
    """The shell lines of a workflow's steps, without GitHub's expressions."""
    steps = [step for job in workflow["jobs"].values() for step in job.get("steps", [])]
    return [re.sub(r"\$\{\{.*?\}\}", "expression", step["run"]) for step in steps if "run" in step]


@each_workflow
def test_workflows_are_complete(path):
    workflow = load(path)
    assert workflow["name"] and triggers(workflow) and workflow["permissions"] == {"contents": "read"}
    for job in workflow["jobs"].values():
        needed = job.get("needs", [])
        assert ({needed} if isinstance(needed, str) else set(needed)) <= workflow["jobs"].keys()
        if "uses" in job:
            assert "workflow_call" in triggers(load(ROOT / job["uses"]))
            continue
        assert job["runs-on"]
        for step in job["steps"]:
            assert ("uses" in step) != ("run" in step)
            assert re.fullmatch(r"[\w-]+/[\w-]+@(v\d+|release/v1)", step.get("uses", "a/b@v1"))


@each_workflow
def test_shell_lines_are_bash(path):
    for script in scripts(load(path)):
        subprocess.run(["bash", "-n"], input=script, text=True, check=True)


def test_slow_tests_run_every_week():
    workflow = load(ROOT / ".github" / "workflows" / "slow.yml")
    (scheduled,) = triggers(workflow)["schedule"]
    assert re.fullmatch(r"\d+ \d+ \* \* \d", scheduled["cron"])
    assert "pytest -m slow" in scripts(workflow)


def test_a_mistake_in_a_shell_line_would_be_found():
    assert subprocess.run(["bash", "-n"], input="if true; then", text=True, capture_output=True).returncode


def test_commands_of_workflows_are_those_of_the_package():
    lines = "\n".join(script for path in WORKFLOWS for script in scripts(load(path))).splitlines()
    extras = [extra for line in lines for names in re.findall(r'"\.\[([\w,]+)\]"', line) for extra in names.split(",")]
    assert extras and set(extras) <= PROJECT["project"]["optional-dependencies"].keys()
    markers = {marker.partition(":")[0] for marker in PROJECT["tool"]["pytest"]["ini_options"]["markers"]}
    chosen = [line for line in lines if line.startswith("pytest -m ")]
    assert chosen and all(
        set(re.findall(r"\w+", shlex.split(line)[2])) <= {*markers, "or", "and", "not"} for line in chosen
    )
    ours = [line.partition("bin/vbsix ")[2] for line in lines if "bin/vbsix " in line]
    for line in ours:
        if line != "--version":
            parse_only(shlex.split(line))
    assert len(ours) >= 3


def test_ci_is_bash():
    subprocess.run(["bash", "-n", ROOT / ".ci" / "run"], check=True)


def test_python_versions_are_the_same_everywhere():
    project = PROJECT["project"]
    listed = [entry.rpartition(" :: ")[2] for entry in project["classifiers"] if " :: Python :: 3." in entry]
    assert tuple(listed) == VERSIONS and project["requires-python"] == f">={VERSIONS[0]}"
    matrix = load(ROOT / ".github" / "workflows" / "tests.yml")["jobs"]["test"]["strategy"]["matrix"]
    assert tuple(matrix["python-version"]) == VERSIONS


def test_nothing_is_published_that_was_not_linted_and_tested():
    jobs = load(ROOT / ".github" / "workflows" / "release.yml")["jobs"]
    assert jobs["publish"]["needs"] == "build" and set(jobs["build"]["needs"]) == {"lint", "tests"}
    assert {Path(jobs[name]["uses"]).stem for name in ("lint", "tests")} == {"lint", "tests"}


@pytest.mark.parametrize(
    "path", sorted((ROOT / ".github" / "ISSUE_TEMPLATE").glob("*.yml")), ids=lambda path: path.stem
)
def test_issue_templates_are_forms(path):
    form = load(path)
    if path.stem == "config":
        assert form == {"blank_issues_enabled": True}
        return
    assert form["name"] and form["description"]
    assert all("label" in part["attributes"] or part["type"] == "markdown" for part in form["body"])


def test_the_newest_entry_of_the_changelog_is_this_version():
    text = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    version, date = re.findall(r"^## \[(\d\S*)\] - (\S+)$", text, re.MULTILINE)[0]
    assert version == vbsix.__version__
    citation = load(ROOT / "CITATION.cff")
    assert (citation["version"], str(citation["date-released"])) == (version, date)


def test_each_entry_of_the_changelog_is_sorted():
    text = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    for entry in re.split(r"^## ", text, flags=re.MULTILINE)[1:]:
        titles = [title.split()[0] for title in re.findall(r"^### (.*)$", entry, re.MULTILINE)]
        order = [title for title in ("Added", "Changed", "Removed", "Fixed") if title in titles]
        assert titles == order


def test_the_readme_on_pypi_has_no_relative_links():
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    relative = re.compile(r"\]\((?!https?:)")
    assert relative.search(text)
    for change in PROJECT["tool"]["hatch"]["metadata"]["hooks"]["fancy-pypi-readme"]["substitutions"]:
        text = re.sub(change["pattern"], change["replacement"], text)
    assert not relative.search(text) and "<!--" not in text
    assert "[SCONE](https://" in text and "| scene |" in text


def test_the_source_distribution_has_what_the_tests_read():
    included = PROJECT["tool"]["hatch"]["build"]["targets"]["sdist"]["include"]
    assert [name for name in included if not (ROOT / name.lstrip("/")).exists()] == []
    read = {"docs", "examples", "results", "benchmarks", "src", "tests", ".ci", ".github", "README.md", "CITATION.cff"}
    assert read <= {name.lstrip("/") for name in included}
