"""The packages form layers: a module imports from its own package or from those below it."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

SOURCES = Path(__file__).parents[1] / "src"
LAYERS = [
    {"utilities"},
    {"domains"},
    {"testing"},
    {"data"},
    {"models"},
    {"search"},
    {"config"},
    {"training"},
    {"evaluation"},
    {"runs"},
    {"parsing"},
    {"cluster"},
    {"show"},
    {"trained"},
    {"reproduction", "benchmarks", "playground", "api", "plugins"},
    {"cli"},
]
"""From the bottom up; packages in one layer do not import each other."""
OUTSIDE = {"__init__", "__main__"}
"""Modules that put the package together: they may import everything."""


def layer_of(package: str) -> int:
    return next((number for number, layer in enumerate(LAYERS) if package in layer), -1)


def modules() -> Iterator[tuple[str, Path]]:
    """The package and the file of every module."""
    for path in sorted((SOURCES / "vbsix").rglob("*.py")):
        package = path.relative_to(SOURCES / "vbsix").parts[0].removesuffix(".py")
        if package not in OUTSIDE:
            yield package, path


def imported(tree: ast.AST, module: str, *, is_package: bool = False) -> Iterator[tuple[int, str]]:
    """The line and the name of everything that is imported, inside functions and for type checkers only, too.

    Registries name modules as `vbsix.x.y:attribute`, which is not an import and may point upwards.
    """
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            around = module.split(".") if is_package else module.split(".")[:-1]
            base = around[: len(around) + 1 - node.level] if node.level else []
            base += [node.module] if node.module else []
            yield from ((node.lineno, ".".join([*base, alias.name])) for alias in node.names)


def packages_of(names: Iterator[tuple[int, str]]) -> Iterator[tuple[int, str]]:
    """The packages of vbsix among what is imported; names of `vbsix` itself, such as its version, have none."""
    known = set().union(*LAYERS)
    for line, name in names:
        first, _, rest = name.partition(".")
        if first == "vbsix" and rest != "__version__":
            package = rest.partition(".")[0]
            yield line, package if package in known else f"vbsix itself ({rest})"


def test_every_package_has_a_layer():
    assert {package for package, _ in modules()} <= set().union(*LAYERS)


@pytest.mark.parametrize("package", sorted({package for package, _ in modules()}))
def test_imports_go_downwards(package):
    upwards = []
    for own, path in modules():
        if own == package:
            module = ".".join(path.relative_to(SOURCES).with_suffix("").parts).removesuffix(".__init__")
            names = imported(ast.parse(path.read_text(encoding="utf-8")), module, is_package=path.stem == "__init__")
            upwards += [
                f"{path.relative_to(SOURCES)}:{line} imports {other}"
                for line, other in packages_of(names)
                if other != package and (other.startswith("vbsix") or layer_of(other) >= layer_of(package))
            ]
    assert not upwards, "\n".join(upwards)


def test_imports_are_found_wherever_they_are():
    code = """
import vbsix.cli.main
from vbsix import __version__, runs
from vbsix.search import beam
from . import heads
from ..config.schema import Config
if TYPE_CHECKING:
    from vbsix.show.report import Report
def function():
    import vbsix.parsing, numpy
"""
    names = list(imported(ast.parse(code), "vbsix.models.policy"))
    found = sorted(package for _, package in packages_of(iter(names)))
    assert found == ["cli", "config", "models", "parsing", "runs", "search", "show"]
    assert (2, "vbsix.cli.main") in names and (5, "vbsix.models.heads") in names
    assert list(imported(ast.parse("from . import beam"), "vbsix.search", is_package=True)) == [
        (1, "vbsix.search.beam")
    ]
