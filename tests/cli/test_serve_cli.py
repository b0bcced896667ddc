from __future__ import annotations

import re
import signal
import socket
import subprocess
import sys
import time

import pytest
import uvicorn

from vbsix.cli.serve import listen
from vbsix.playground import models

pytestmark = pytest.mark.integration


@pytest.fixture
def run(monkeypatch) -> str:
    """A run that need not be there."""
    monkeypatch.setattr(
        models, "load_models", lambda paths, domain: {path.name: object.__new__(models.Model) for path in paths}
    )
    return "runs/run"


@pytest.fixture
def served(monkeypatch) -> list:
    """What would be served; nothing is compiled and nothing waits."""
    seen = []
    monkeypatch.setattr(
        "vbsix.playground.answers.warm_up", lambda loaded, say: say(f"getting ready: {', '.join(loaded)}")
    )
    monkeypatch.setattr("vbsix.playground.answers.warm_up_rest", lambda loaded, say: say("then the rest"))
    monkeypatch.setattr(uvicorn.Server, "run", lambda self, sockets: seen.append((self.config.app, sockets[0])))
    return seen


def test_it_says_when_it_is_ready_and_where(vbsix, run, served):
    ended = vbsix("serve", run, "--port", "0")
    assert (ended.code, ended.err) == (0, "getting ready: run\nthen the rest\n")
    assert re.fullmatch(r"ready after \d+ s: http://127\.0\.0\.1:[1-9]\d*\n", ended.out)
    assert served[0][0].title == "vbsix playground"


def test_connections_send_small_answers_at_once():
    with listen("127.0.0.1", 0) as listener, socket.create_connection(listener.getsockname()):
        connection, _ = listener.accept()
        with connection:
            assert connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)


SERVE = """
import signal, sys, time
signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell ignores it for jobs in the background
from concurrent.futures import ThreadPoolExecutor
from vbsix.cli import main
from vbsix.playground import answers, models

def compile(*_):
    print("compiling", flush=True)
    list(ThreadPoolExecutor().map(time.sleep, [30, 30]))

models.load_models = lambda paths, domain: {}
answers.warm_up = answers.warm_up_rest = lambda *_: None
answers.WHEN = compile
sys.argv = ["vbsix", "serve", "run", "--port", "0"]
main()
"""


@pytest.mark.parametrize("when", ["warm_up", "warm_up_rest"])
def test_an_interrupt_waits_for_nothing_that_is_compiled(when):
    command = [sys.executable, "-c", SERVE.replace("WHEN", when)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout
        while "compiling" not in process.stdout.readline():
            assert process.poll() is None
        time.sleep(0.5)  # until the server hears
        process.send_signal(signal.SIGINT)
        assert process.wait(10) == 130


def test_others_can_reach_it_only_with_a_warning(vbsix, run, served):
    ended = vbsix("serve", run, "--port", "0", "--host", "0.0.0.0")
    assert ended.code == 0
    assert ended.err.startswith("warning: everybody who can reach 0.0.0.0")


def test_without_a_model_the_built_in_ones_are_served(vbsix, run, served):
    ended = vbsix("serve", "--port", "0")
    names = "alchemy.safetensors, scene.safetensors, tangrams.safetensors"
    assert (ended.code, ended.err) == (0, f"getting ready: {names}\nthen the rest\n")


def test_without_its_extra_it_names_it(vbsix, monkeypatch):
    monkeypatch.setitem(sys.modules, "uvicorn", None)
    ended = vbsix("serve")
    assert ended.code == 2
    assert "pip install 'vbsix[playground]'" in ended.err


def test_a_port_in_use_is_one_message(vbsix, run):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        ended = vbsix("serve", run, "--port", str(port))
    assert ended == (2, "", f"error: cannot listen at 127.0.0.1, port {port}: Address already in use.\n")


def test_a_domain_of_ones_own_is_named(vbsix, run, served, monkeypatch):
    seen = []
    monkeypatch.setattr(models, "load_models", lambda paths, domain: seen.append(domain.name) or {})
    assert vbsix("serve", run, "--port", "0", "--domain", "scene").code == 0
    assert seen == ["scene"]
