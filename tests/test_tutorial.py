"""The tutorial, followed block by block in an empty folder; data and networks are smaller, and training is shorter."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from training.tiny import ARGUMENTS

from vbsix.cli import main
from vbsix.domains import registry

pytestmark = pytest.mark.integration


TUTORIAL = Path(__file__).parents[1] / "docs" / "tutorial.md"
BLOCK = re.compile(r'^```(\w+)(?: title="([^"\n]*)")?\n(.*?)^```$', re.MULTILINE | re.DOTALL)
SMALLER = [
    *ARGUMENTS,
    "--set=data.lengths=[0]",
    "--set=data.evaluation=[0]",
    "--set=run.evaluation_batch=64",
    "--steps=4",
]


@pytest.fixture
def empty_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(registry, "_registered", {})
    monkeypatch.setattr(registry, "_origins", {})
    monkeypatch.syspath_prepend("")
    for example in ("hallway/hallway.py", "math/word_problems.py"):
        copied = TUTORIAL.parents[1] / "examples" / example
        (tmp_path / copied.name).write_bytes(copied.read_bytes())
    yield tmp_path
    for name in ("lamps", "visible", "hallway", "word_problems", "averages"):
        sys.modules.pop(name, None)


def run_command(line: str, monkeypatch) -> None:
    arguments = shlex.split(line)
    if arguments[0] == "python":
        line = line.replace(" 3000 ", " 100 ").replace(" 300 ", " 20 ")  # examples
        assert subprocess.run(line.replace("python", sys.executable, 1), shell=True, timeout=60).returncode == 0
        return
    assert arguments[0] == "vbsix"
    monkeypatch.setattr("sys.argv", [*arguments, *(SMALLER if arguments[1] == "train" else [])])
    with pytest.raises(SystemExit) as end:
        main()
    assert not end.value.code, line


def test_every_block_of_the_tutorial_runs(empty_folder, monkeypatch, capsys):
    blocks = BLOCK.findall(TUTORIAL.read_text(encoding="utf-8"))
    assert {language for language, _, _ in blocks} == {"python", "sh", "text"}
    session: dict = {}
    printed = ""
    for language, title, text in blocks:
        if language == "text":
            assert "".join(line.rstrip() + "\n" for line in printed.splitlines()).strip() == text.strip()
        elif title:
            (empty_folder / title).write_text(text)
        elif language == "python":
            exec(compile(text, "tutorial.md", "exec"), session)
        else:
            capsys.readouterr()
            for line in text.splitlines():
                run_command(line, monkeypatch)
            printed = capsys.readouterr().out
    assert session["parse"].readings, "the last block parses"
    assert {path.name for path in empty_folder.iterdir()} >= {"examples.jsonl", "lamps.safetensors", "runs"}
    assert len(json.loads((empty_folder / "examples.jsonl").read_text().splitlines()[0])["context"]) == 4


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_the_lamps_are_learned_as_the_page_says(tmp_path):
    """As a user would, at full size: above 90% of the held-out examples."""
    blocks = BLOCK.findall(TUTORIAL.read_text(encoding="utf-8"))
    for _, title, text in blocks:
        if title:
            (tmp_path / title).write_text(text)
    lines = [line for language, _, text in blocks if language == "sh" for line in text.splitlines()]
    make, train = (line for line in lines if line.startswith(("python make_examples.py", "vbsix train lamps:Lamps")))
    for command in (make, train.replace("vbsix", "python -m vbsix", 1)):
        subprocess.run(command.replace("python", sys.executable, 1), shell=True, cwd=tmp_path, check=True)
    result = json.loads((tmp_path / "runs" / "lamps" / "result.json").read_text())
    assert result["accuracy"]["dev"]["all"][0] > 0.9
