"""What the README shows is what happens; see also `test_docs.py`."""

from __future__ import annotations

import doctest
import re
from pathlib import Path

from vbsix.config.presets import METHODS, RECIPES, VARIANTS

ROOT = Path(__file__).parents[1]
README = ROOT / "README.md"
NAMES = {"method": {*METHODS}, "recipe": {*RECIPES}, "variant": {*VARIANTS, "none"}}


def test_the_python_examples_give_what_they_say():
    failed, tried = doctest.testfile(str(README), module_relative=False, encoding="utf-8")
    assert tried and not failed


def test_there_is_one_test_command_for_ci_to_find():
    lines = README.read_text(encoding="utf-8").splitlines()
    assert len([line for line in lines if 'pip install -e ".[test]" && pytest' in line]) == 1


def test_the_methods_recipes_and_variants_that_pages_name_are_there():
    pages = [README, *ROOT.glob("docs/**/*.md"), *ROOT.glob("examples/*/README.md")]
    named = {
        (page.name, kind, name)
        for page in pages
        for kind, names in re.findall(
            r"--(method|recipe|variant)s?[ =]([a-z][\w,.+-]*)", page.read_text(encoding="utf-8")
        )
        for name in re.split(r"[,+]", names)
    }
    assert {kind for _, kind, _ in named} == set(NAMES)
    assert {(page, kind, name) for page, kind, name in named if name not in NAMES[kind]} == set()
