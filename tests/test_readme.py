"""What the README shows is what happens."""

from __future__ import annotations

import doctest
import re
import shlex
from pathlib import Path

import pytest

from vbsix.cli import app
from vbsix.reproduction.runs import VARIANTS
from vbsix.training.config import METHODS

ROOT = Path(__file__).parents[1]
README = ROOT / "README.md"


def test_the_python_examples_give_what_they_say():
    failed, tried = doctest.testfile(str(README), module_relative=False, encoding="utf-8")
    assert tried and not failed


def test_the_execute_examples_run(capsys):
    commands = re.findall(r"^vbsix (execute .*)$", README.read_text(encoding="utf-8"), re.MULTILINE)
    assert commands
    for command in commands:
        with pytest.raises(SystemExit) as end:
            app(shlex.split(command, comments=True))
        assert end.value.code == 0, capsys.readouterr().err


def test_there_is_one_test_command_for_ci_to_find():
    lines = README.read_text(encoding="utf-8").splitlines()
    assert len([line for line in lines if 'pip install -e ".[test]"' in line]) == 1


def test_the_methods_that_pages_name_are_there():
    pages = [README, *ROOT.glob("docs/*.md"), *ROOT.glob("examples/*/README.md")]
    named = {
        (page.name, name)
        for page in pages
        for names in re.findall(r"--methods?[ =]([a-z][\w,-]*)", page.read_text(encoding="utf-8"))
        for name in names.split(",")
    }
    assert named
    assert {(page, name) for page, name in named if name not in METHODS and name not in VARIANTS} == set()
