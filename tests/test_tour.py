"""The notebook `examples/tour.ipynb`: what is committed agrees with itself and with the package.

`pytest -m slow` executes it in a clean kernel.
"""

from __future__ import annotations

import ast
import inspect
import json
import os
import re
from pathlib import Path
from typing import Any

import pytest

import vbsix
from vbsix.config.schema import Config, override

NOTEBOOK = Path(__file__).parents[1] / "examples" / "tour.ipynb"
ABSOLUTE = re.compile(r"(?<![\w.:/<])/(?:work|tmp|home|root|Users|usr|var|opt|mnt)\b|\b[A-Z]:\\\\")


def read_cells(kind: str) -> list[dict[str, Any]]:
    notebook = json.loads(NOTEBOOK.read_text(encoding="utf-8"))
    return [cell for cell in notebook["cells"] if cell["cell_type"] == kind]


def text_of(cell: dict[str, Any]) -> str:
    """What a cell printed, and the texts of what it displayed."""
    texts = []
    for output in cell["outputs"]:
        data = output.get("data", {})
        texts += ["".join(output.get("text", "")), *("".join(data[kind]) for kind in data)]
    return "\n".join(texts)


def test_the_cells_are_python_and_were_executed_in_order():
    cells = read_cells("code")
    for cell in cells:
        ast.parse("".join(cell["source"]))
    assert [cell["execution_count"] for cell in cells] == list(range(1, len(cells) + 1))


def test_the_outputs_are_there_and_none_is_an_error():
    cells = read_cells("code")
    assert sum(bool(cell["outputs"]) for cell in cells) >= len(cells) - 2
    outputs = [output for cell in cells for output in cell["outputs"]]
    assert not [output for output in outputs if output["output_type"] == "error" or output.get("name") == "stderr"]
    displayed = "".join(map(text_of, cells))
    for part in ("<search in execution space", "Run of tangrams", "Parser for tangrams", "confidence", "Run of lift"):
        assert part in displayed


def test_no_output_has_an_absolute_path():
    texts = [text_of(cell) for cell in read_cells("code")]
    without_images = [re.sub(r"base64,[\w+/=]+", "", text) for text in texts]
    assert [text for text in without_images if ABSOLUTE.search(text)] == []


def test_an_absolute_path_would_be_found():
    assert ABSOLUTE.search("in /home/someone/runs") and ABSOLUTE.search("'/tmp/x'")
    assert not ABSOLUTE.search("</home> runs/tmp https://x.org/tmp")


def test_the_links_lead_somewhere():
    links = re.findall(r"\]\(([^)\s]+)\)", "".join("".join(cell["source"]) for cell in read_cells("markdown")))
    local = [link for link in links if "://" not in link]
    assert len(local) >= 3
    assert [link for link in local if not (NOTEBOOK.parent / link).exists()] == []


def test_the_accuracy_in_the_text_is_that_of_the_output():
    claimed = re.search(r"reached ([\d.]+)% on dev and ([\d.]+)% on held-out", str(read_cells("markdown")))
    displayed = next(text for text in map(text_of, read_cells("code")) if "Run of tangrams" in text)
    measured = re.findall(r">(\d+\.\d)</td>", displayed)
    assert claimed and list(claimed.groups()) == measured


def test_the_cells_call_functions_that_exist_with_arguments_that_they_have():
    """With values of the right kind, as far as they are written out."""
    called = set()
    for cell in read_cells("code"):
        for node in ast.walk(ast.parse("".join(cell["source"]))):
            if isinstance(node, ast.Call) and ast.unparse(node.func).startswith("vbsix."):
                name = ast.unparse(node.func).removeprefix("vbsix.")
                given = {keyword.arg: keyword.value for keyword in node.keywords if keyword.arg}
                settings = {known.replace("__", "."): given.pop(known) for known in list(given) if "__" in known}
                inspect.signature(getattr(vbsix, name)).bind(*node.args, **given)
                override(Config(), {known: ast.literal_eval(value) for known, value in settings.items()})
                called.add(name)
    assert {"draw_world", "execute", "search_programs", "train", "PythonDomain"} <= called


@pytest.mark.slow
@pytest.mark.timeout(1500)
@pytest.mark.filterwarnings("default")
def test_the_notebook_runs_in_a_clean_kernel_and_learns(tmp_path):
    import nbformat
    from nbclient import NotebookClient

    notebook = nbformat.read(NOTEBOOK, as_version=4)
    cells = [cell for cell in notebook.cells if cell.cell_type == "code"]
    for cell in cells:
        cell.outputs, cell.execution_count = [], None
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("XLA_", "JAX_"))}
    quick = "--xla_backend_optimization_level=0 --xla_cpu_use_fusion_emitters=false"  # compiles faster
    clean = {
        "XLA_FLAGS": quick,
        "XDG_CACHE_HOME": str(tmp_path / "cache"),
        "IPYTHONDIR": str(tmp_path / "ipython"),
    }
    folder = tmp_path / "work"
    folder.mkdir()
    resources = {"metadata": {"path": str(folder)}}
    NotebookClient(notebook, timeout=1200, kernel_name="python3", resources=resources).execute(env={**kept, **clean})
    assert not [output for cell in cells for output in cell.outputs if output.get("name") == "stderr"]
    assert (folder / "lift.jsonl").exists() and (folder / "runs").is_dir()
    wrong = re.search(r"(\d+) of 200 are wrong", "\n".join(map(text_of, cells)))
    assert wrong and int(wrong[1]) < 60
