from __future__ import annotations

import inspect
import re
import subprocess
import sys

import pytest

import vbsix as package
from vbsix.cli import app
from vbsix.cli.train import train
from vbsix.config.presets import METHODS, RECIPES, STAGES, VARIANTS
from vbsix.utilities.errors import VbsixError

TIMED_HELP = """
import sys, time
from vbsix.cli import main
sys.argv = ["vbsix", "--help"]
try:
    main()
except SystemExit:
    print(time.process_time(), "jax" in sys.modules, file=sys.stderr)
"""


@pytest.fixture
def raising(monkeypatch):
    """Makes every command end in the given error."""

    def install(error: BaseException) -> None:
        def fail():
            raise error

        command = next(command for command in app.registered_commands if command.callback.__name__ == "demo")
        monkeypatch.setattr(command, "callback", fail)
        monkeypatch.setattr(command, "name", "demo")

    return install


def help_of_every_command() -> list[tuple[str, ...]]:
    names = [command.name or command.callback.__name__ for command in app.registered_commands]
    groups = [
        (group.name, command.name or command.callback.__name__)
        for group in app.registered_groups
        for command in group.typer_instance.registered_commands
    ]
    return [(), *((name,) for name in names), *((group.name,) for group in app.registered_groups), *groups]


@pytest.mark.parametrize("command", help_of_every_command(), ids=" ".join)
def test_every_command_has_help(vbsix, command):
    ended = vbsix(*command, "--help")
    assert ended.code == 0
    assert f"Usage: {' '.join(['vbsix', *command])}" in ended.out
    assert ended.err == ""


def test_the_help_of_train_names_all_presets():
    """It is written by hand, since presets import JAX."""
    options = inspect.get_annotations(train, eval_str=True)
    known = {"method": METHODS, "recipe": RECIPES, "variant": VARIANTS, "stages": STAGES}
    for option, names in known.items():
        words = re.findall(r"[\w.-]*\w", options[option].__metadata__[0].help)
        assert set(names) <= set(words), option


def test_version(vbsix):
    assert vbsix("--version") == (0, f"vbsix {package.__version__}\n", "")


def test_without_a_command_the_help_is_shown(vbsix):
    ended = vbsix()
    assert ended.code == 2
    assert "Usage: vbsix" in ended.out


def test_as_a_module():
    ended = subprocess.run([sys.executable, "-m", "vbsix", "--version"], capture_output=True, text=True)
    assert ended.stdout == f"vbsix {package.__version__}\n"


def test_help_is_quick():
    ended = subprocess.run([sys.executable, "-c", TIMED_HELP], capture_output=True, text=True, check=True)
    seconds, jax_is_loaded = ended.stderr.split()
    assert float(seconds) < 1.5, "0.2 s of CPU on a quiet machine; the rest is slack for a busy one"
    assert jax_is_loaded == "False"


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (VbsixError("no such thing [as] this"), "error: no such thing [as] this\n"),
        (FileNotFoundError(2, "No such file or directory", "rows.tsv"), "error: rows.tsv: No such file or directory\n"),
        (OSError("the server is gone"), "error: the server is gone\n"),
    ],
)
def test_what_the_user_can_fix_is_one_message(vbsix, raising, error, message):
    raising(error)
    assert vbsix("demo") == (2, "", message)


def test_an_interrupt_ends_with_130(vbsix, raising):
    raising(KeyboardInterrupt())
    assert vbsix("demo").code == 130


def test_a_fault_of_ours_is_not_hidden(vbsix, raising):
    raising(RuntimeError("a bug"))
    with pytest.raises(RuntimeError, match="a bug"):
        vbsix("demo")


def test_usage_errors_end_with_2(vbsix):
    ended = vbsix("exekute")
    assert ended.code == 2
    assert ended.out == ""
    assert "No such command 'exekute'" in ended.err


def test_a_reader_that_leaves_is_no_error():
    command = f"{sys.executable} -m vbsix --help | true; echo ${{PIPESTATUS[0]}}"
    ended = subprocess.run(["bash", "-c", command], capture_output=True, text=True)
    assert ended.stderr == ""
    assert ended.stdout in ("0\n", "1\n")  # 0 where the pipe took everything before its reader left
