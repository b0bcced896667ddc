from __future__ import annotations

import io
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from rich.console import Console
from training.tiny import tiny_config

from vbsix.runs.display import LiveDisplay, PlainDisplay, QuietDisplay, create_display
from vbsix.runs.folder import Run
from vbsix.runs.loop import Observer

RUN = Run(Path("run"), tiny_config(), (0, 3), "synthetic")
ROWS = [
    {"step": 4, "seed": 0, "hit": 0.25, "hit_longest": 0.125, "policy_loss": 1.5},
    {"step": 4, "seed": 3, "hit": 0.5, "hit_longest": 0.25, "policy_loss": 2.5, "value_error": 0.1},
]

WAITING = """
import sys, time
from pathlib import Path
from rich.console import Console
from vbsix.config.schema import Config
from vbsix.runs.display import PlainDisplay, stop_on_interrupt
from vbsix.runs.folder import Run
display = PlainDisplay([Run(Path("run"), Config(), (0,), "synthetic")], Console())
with stop_on_interrupt(display):
    display.on_message("ready")
    while not display.wants_to_stop():
        time.sleep(0.01)
    if sys.argv[1] == "stubborn":
        time.sleep(60)
display.on_message("stopped")
"""


def show(display: QuietDisplay) -> None:
    display.on_progress(0)
    display.on_progress(2)
    display.on_progress(4)
    display.on_metrics(4, ROWS, 3.0)
    display.on_evaluation(4, {"dev": {"1": [0.5, 0.75]}, "held-out": {"1": [0.0, 0.25]}})
    display.on_message("a [word] to the user")


def console(terminal: bool = False) -> Console:
    return Console(file=io.StringIO(), width=150, force_terminal=terminal, highlight=False, markup=False)


def test_lines_tell_the_numbers_of_every_seed():
    display = PlainDisplay([RUN], console())
    show(display)
    assert display.console.file.getvalue().splitlines() == [
        "from step 0; compiling, which takes a while the first time",
        "step 4/10  3.0 steps/s  0:00:02 left  hit 25.0% 50.0%  hit, longest 12.5% 25.0%  policy loss 1.500 2.500  "
        "value error - 0.100",
        "step 4  dev accuracy, 1 instructions: 50.0% 75.0%",
        "step 4  held-out accuracy, 1 instructions: 0.0% 25.0%",
        "a [word] to the user",
    ]


def test_the_live_display_has_a_bar_and_a_line_for_each_seed():
    display = LiveDisplay([RUN], console(terminal=True))
    with display:
        show(display)
    plain = console()
    plain.print(display.render())
    text = plain.file.getvalue()
    for part in ("training", "4/10", "3.0 steps/s", "dev accuracy"):
        assert part in text
    lines = [line.split() for line in text.splitlines()]
    assert ["0", "25.0%", "12.5%", "1.500", "-", "50.0%"] in lines
    assert ["3", "50.0%", "25.0%", "2.500", "0.100", "75.0%"] in lines
    assert "a [word] to the user" in display.console.file.getvalue()


def test_the_live_display_says_that_it_compiles_before_the_first_steps():
    display, plain = LiveDisplay([RUN], console(terminal=True)), console()
    display.on_progress(4)
    plain.print(display.render())
    assert "compiling" in plain.file.getvalue()
    assert "4/10" in plain.file.getvalue()


def test_quiet_shows_messages_alone():
    display = QuietDisplay([RUN], console())
    show(display)
    assert display.console.file.getvalue() == "a [word] to the user\n"


def test_what_suits_a_pipe_is_plain():
    assert type(create_display([RUN], quiet=False)) is PlainDisplay
    quiet = create_display([RUN], quiet=True)
    assert type(quiet) is QuietDisplay
    assert quiet.console.stderr
    assert isinstance(quiet, Observer)


@pytest.mark.parametrize("manner", ["willing", "stubborn"])
def test_ctrl_c_asks_and_then_insists(manner):
    command = [sys.executable, "-c", WAITING, manner]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout
        assert process.stdout.readline() == "ready\n"
        process.send_signal(signal.SIGINT)
        assert process.stdout.readline() == "Stopping after this chunk of steps; Ctrl-C again stops at once.\n"
        if manner == "stubborn":
            start = time.perf_counter()
            process.send_signal(signal.SIGINT)
            assert process.wait() == 130
            assert time.perf_counter() - start < 30
        else:
            assert process.stdout.read() == "stopped\n"
            assert process.wait() == 0
