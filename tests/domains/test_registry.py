"""Domains by name and by place."""

from __future__ import annotations

import importlib
import sys

import pytest

from vbsix import VbsixError, available_domains, get_domain, register_domain
from vbsix.domains import registry
from vbsix.domains.registry import as_domain, import_domain, origin_of

LANGUAGE = """
class Click:
    tokens = ("end",)
    max_tokens_per_instruction = 1
    def start(self, context): return (context, 0)
    def step(self, state, token): return (state[0], state[1] + 1)
    def instructions_done(self, state): return state[1]
    def denotation(self, state): return state[0]

import vbsix.domains.tangrams

class Small(vbsix.domains.tangrams.Tangrams):
    name = "small"

ready = vbsix.PythonDomain(Click())
ready.name = "ready"
number = 3

class Sized(Click):
    def __init__(self, size): pass

class SmallSized(Small):
    def __init__(self, size): pass

class Known(Click):
    pass

vbsix.register_domain(vbsix.PythonDomain(Known()))
"""


@pytest.fixture
def here(tmp_path, monkeypatch):
    """A folder with a module of the user's, and a registry that forgets."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [entry for entry in sys.path if entry])
    monkeypatch.setattr(registry, "_registered", {})
    monkeypatch.setattr(registry, "_origins", {})
    (tmp_path / "clicks.py").write_text(LANGUAGE)
    yield tmp_path
    sys.modules.pop("clicks", None)


@pytest.mark.parametrize("name", ["Scene", "Sail"])
def test_a_plain_class_with_the_name_of_a_built_in_domain_is_refused(here, name):
    sys.path.append("")
    named = type(name, (importlib.import_module("clicks").Click,), {})
    with pytest.raises(VbsixError, match=f"{name.lower()}: this is the name of a built-in domain"):
        as_domain(named)


def test_a_class_in_the_current_folder(here):
    domain = import_domain("clicks:Click")
    assert domain is import_domain("clicks:Click") is get_domain("click")
    assert origin_of("click") == "clicks:Click"
    assert origin_of("tangrams") is None


def test_installed_modules_go_before_those_in_the_current_folder(here, monkeypatch):
    (here / "colorsys.py").write_text("1 / 0")
    monkeypatch.delitem(sys.modules, "colorsys", raising=False)
    import_domain("clicks:Click")
    assert importlib.import_module("colorsys").rgb_to_hsv


def test_an_object_a_class_of_domains_and_a_name(here):
    assert import_domain("clicks:ready").name == "ready"
    assert import_domain("tangrams") is get_domain("tangrams")
    assert type(import_domain("clicks:Small")).__name__ == "Small"


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("no_such_module:Thing", "no_such_module cannot be imported: ModuleNotFoundError"),
        ("clicks:Clack", "clicks has no Clack"),
        ("clicks:number", "int has no method start"),
        ("broken:Thing", "broken cannot be imported: ZeroDivisionError"),
        ("clicks", "unknown domain"),
        ("clicks:Sized", r"Sized\(\) raised TypeError.* create the object yourself"),
        ("clicks:SmallSized", r"SmallSized\(\) raised TypeError"),
    ],
)
def test_what_cannot_be_found_is_told(here, name, told):
    (here / "broken.py").write_text("1 / 0")
    with pytest.raises(VbsixError, match=told):
        import_domain(name)


def test_a_name_can_be_taken_once(here):
    import_domain("clicks:Click")
    with pytest.raises(VbsixError, match="'click' is taken"):
        register_domain(type(get_domain("click"))(get_domain("click").language))


def test_a_name_from_a_file_is_never_imported(here):
    with pytest.raises(VbsixError, match="unknown domain"):
        get_domain("clicks:Click")
    assert "clicks" not in sys.modules


def test_what_a_module_has_registered_itself_is_taken(here):
    domain = import_domain("clicks:Known")
    assert domain is get_domain("known")
    assert origin_of("known") == "clicks:Known"


def test_a_domain_that_needs_files_is_never_among_those_that_need_none(here, data_dir):
    get_domain("sail")
    assert "sail" not in available_domains()
