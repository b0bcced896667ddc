from __future__ import annotations

import contextlib
import os
import re
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import httpx
import pytest
import uvicorn
from asgi import call

from vbsix import VbsixError
from vbsix.cli.serve import _hosts, listen
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
    monkeypatch.setattr("vbsix.parsing.loading.find_model", lambda path: Path(path))
    monkeypatch.setattr(
        "vbsix.playground.preparing.Preparation.start",
        lambda self, load, say, fail: say(f"getting ready: {', '.join(load())}"),
    )
    monkeypatch.setattr(uvicorn.Server, "run", lambda self, sockets: seen.append((self.config.app, sockets[0])))
    monkeypatch.setattr("os._exit", sys.exit)
    return seen


def test_it_says_first_where_it_is(vbsix, run, served):
    ended = vbsix("serve", run, "--port", "0")
    assert (ended.code, ended.err) == (0, "getting ready: run\n")
    assert re.fullmatch(r"http://127\.0\.0\.1:[1-9]\d*\n", ended.out)
    assert served[0][0].title == "vbsix playground"


def test_a_model_that_is_not_there_is_one_message(vbsix):
    ended = vbsix("serve", "nothing-here", "--port", "0")
    assert ended.code == 2 and ended.err.startswith("error: nothing-here: no such run or model.")


def test_a_model_that_cannot_be_loaded_ends_the_server(vbsix, run, served, monkeypatch):
    def start(self, load, say, fail) -> None:
        self.failure = VbsixError("run: damaged")

    monkeypatch.setattr("vbsix.playground.preparing.Preparation.start", start)
    ended = vbsix("serve", run, "--port", "0")
    assert (ended.code, ended.err) == (2, "error: run: damaged\n")


def test_connections_send_small_answers_at_once():
    with listen("127.0.0.1", 0) as listener, socket.create_connection(listener.getsockname()):
        connection, _ = listener.accept()
        with connection:
            assert connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)


SERVE = """
import signal, sys, time
signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell ignores it for jobs in the background
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from vbsix.cli import main
from vbsix.parsing import loading
from vbsix.playground import models, preparing

def compile(*_):
    print("compiling", flush=True)
    list(ThreadPoolExecutor().map(time.sleep, [30, 30]))

model = models.Model("model", loading.load("tangrams"))
loading.find_model = Path
models.load_models = lambda paths, domain: print("loading", flush=True) or {"model": model}
preparing.compile_parses = preparing.compile_searches = lambda *_: None
preparing.WHEN = compile
sys.argv = ["vbsix", "serve", "run", "--port", "0"]
main()
"""


@pytest.mark.parametrize("when", ["compile_parses", "compile_searches"])
def test_the_page_is_there_at_once_and_an_interrupt_waits_for_nothing(when):
    command = [sys.executable, "-c", SERVE.replace("WHEN", when)]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with subprocess.Popen(command, **pipes, text=True) as process, contextlib.ExitStack() as at_the_end:
        at_the_end.callback(process.kill)  # or leaving the block would wait for it
        assert process.stdout
        address, loading, compiling = (process.stdout.readline().strip() for _ in range(3))
        assert address.startswith("http://") and (loading, compiling) == ("loading", "compiling")
        page = httpx.get(address, timeout=30)  # it answers while it compiles
        assert (page.status_code, "vbsix playground" in page.text) == (200, True)
        doing = httpx.get(f"{address}/api/models", timeout=30).json()["preparing"]
        assert when == "compile_searches" or doing.startswith("compiling model, model 1 of 1")
        deaf = at_the_end.enter_context(socket.create_connection(("127.0.0.1", int(address.rpartition(":")[2]))))
        deaf.sendall(b"GET /static/main.js HTTP/1.1\r\nHost: localhost\r\n\r\n" * 500)  # and never reads the answers
        time.sleep(0.5)
        process.send_signal(signal.SIGINT)
        assert process.wait(10) in (0, 130)
        assert process.stderr and "Traceback" not in process.stderr.read()


def test_others_can_reach_it_only_with_a_warning(vbsix, run, served):
    ended = vbsix("serve", run, "--port", "0", "--host", "0.0.0.0", "--allow-host", "Lab.example")
    assert ended.code == 0
    assert ended.err.startswith("warning: everybody who can reach 0.0.0.0")
    for name, status in (("lab.example:8000", 200), ("localhost", 200), ("evil.example", 400), ("0.0.0.0", 400)):
        assert call(served[0][0], "GET", "/api/models", headers={"Host": name}).status_code == status


@pytest.mark.parametrize("host", ["", "0", "::", "0:0:0:0:0:0:0:0"])
def test_all_addresses_are_no_name_however_they_are_written(host):
    with pytest.raises(VbsixError, match="--allow-host"):
        _hosts(host, [])
    assert host not in _hosts(host, ["lab.example"])


def test_who_listens_everywhere_must_name_the_hosts(vbsix, run):
    ended = vbsix("serve", run, "--port", "0", "--host", "0.0.0.0")
    assert ended.code == 2 and "--allow-host" in ended.err


@pytest.mark.parametrize(("host", "named"), [("192.0.2.7", "192.0.2.7"), ("2001:db8::7", "[2001:db8::7]")])
def test_an_address_is_its_own_name(host, named):
    assert named in _hosts(host, []) and "evil.example" not in _hosts(host, [])


def test_without_a_model_the_built_in_ones_are_served(vbsix, run, served):
    ended = vbsix("serve", "--port", "0")
    assert (ended.code, ended.err) == (
        0,
        "getting ready: alchemy.safetensors, scene.safetensors, tangrams.safetensors, tangrams-critic.safetensors\n",
    )


def test_without_its_extra_it_names_it(vbsix, monkeypatch):
    monkeypatch.setitem(sys.modules, "uvicorn", None)
    ended = vbsix("serve")
    assert ended.code == 2
    assert "pip install 'vbsix[playground]'" in ended.err


def test_a_port_in_use_is_one_message(vbsix, run):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        ended = vbsix("serve", run, "--port", str(port))
    hint = "Take another port: --port 0 takes any that is free."
    assert ended == (2, "", f"error: cannot listen at 127.0.0.1, port {port}: Address already in use. {hint}\n")


def test_a_domain_of_ones_own_is_named(vbsix, run, served, monkeypatch):
    seen = []
    monkeypatch.setattr(models, "load_models", lambda paths, domain: seen.append(domain.name) or {})
    assert vbsix("serve", run, "--port", "0", "--domain", "scene").code == 0
    assert seen == ["scene"]


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_the_second_start_is_quick(tmp_path):
    """Compiled programs are kept. CPU time counts, for other programs may run; 15 seconds on two cores are 30."""
    environment = {name: value for name, value in os.environ.items() if name != "XLA_FLAGS"}
    environment["JAX_COMPILATION_CACHE_DIR"] = str(tmp_path)
    command = [sys.executable, "-m", "vbsix", "serve", "--port", "0"]
    pipe, seconds = subprocess.PIPE, []
    for _ in range(2):
        with subprocess.Popen(command, stdout=pipe, stderr=pipe, text=True, env=environment) as process:
            assert process.stderr
            while "tangrams-critic is ready" not in (said := process.stderr.readline()):
                assert process.poll() is None
            fields = Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()
            seconds.append((int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK"))
            print(f"{said.strip()}, {seconds[-1]:.0f} s of CPU time")
            process.kill()
    assert seconds[1] < min(30, seconds[0] / 2)
