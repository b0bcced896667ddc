from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pytest
import uvicorn
from tiny_run import SETTINGS, make_run

from vbsix.cli.serve import listen
from vbsix.playground.answers import answer_parse, random_rows
from vbsix.playground.app import create_app
from vbsix.playground.messages import ParseRequest
from vbsix.playground.models import Model, load_models

MODEL, OTHER = "tiny, seed 6", "tiny, seed 1"
ROW = "1:0 2:3 3:4 4:1"
SAID = ["remove the second figure", "swap the first and the last shape"]


@pytest.fixture(scope="session")
def run_folder(tmp_path_factory) -> Path:
    """Two seeds of a run with a critic: what they need is compiled once for both.

    They are not trained, but their random policies happen to read what the tests say in several ways.
    """
    folder = tmp_path_factory.mktemp("runs") / "tiny"
    own = {"training.critic": True, "network.renormalise": True, "run.evaluation_beam": 64}
    make_run(folder, (6, 1), SETTINGS | own)
    return folder


@pytest.fixture(scope="session")
def models(run_folder) -> Mapping[str, Model]:
    """The seeds of that run."""
    return load_models([run_folder])


@pytest.fixture(scope="session")
def all_models(run_folder) -> Mapping[str, Model]:
    """The seeds of that run, and a model of each other domain, likewise."""
    others = {"scene": 4, "alchemy": 2}
    for domain, seed in others.items():
        own = {"domain": domain, "network.renormalise": True, "run.evaluation_beam": 64}
        make_run(run_folder.with_name(domain), (seed,), SETTINGS | own)
    return load_models([run_folder, *map(run_folder.with_name, others)])


@contextmanager
def serve(models: Mapping[str, Model], feedback: Path | None = None) -> Iterator[str]:
    """The address of a running playground that has compiled what parses and reasons need, of one size only."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("vbsix.playground.answers.ROOMS", (5, 10))
        for model in models.values():
            world = str(random_rows(model.domain)[0].row.worlds[0])
            answer_parse(model, ParseRequest(model=model.name, world=world, utterances=["swap the first two"]))
        with listen("127.0.0.1", 0) as listener:
            app = create_app(models, feedback=feedback)
            served = uvicorn.Server(uvicorn.Config(app, log_config=None, timeout_graceful_shutdown=3))
            thread = threading.Thread(target=served.run, kwargs={"sockets": [listener]})
            thread.start()
            while not served.started:
                time.sleep(0.01)
            yield f"http://127.0.0.1:{listener.getsockname()[1]}"
            served.should_exit = True
            thread.join(timeout=60)
            assert not thread.is_alive(), "the server did not stop"


@pytest.fixture(scope="session")
def server(models) -> Iterator[str]:
    with serve(models) as address:
        yield address
