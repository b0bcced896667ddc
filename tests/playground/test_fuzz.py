"""Random requests to the playground's API."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
import schemathesis
from hypothesis import HealthCheck, given, settings
from playground.conftest import MODEL, ROW, SAID, serve

import vbsix
from vbsix.data.json_lines import read_json_lines

pytestmark = pytest.mark.browser

KNOWN: dict[str, Any] = {"model": MODEL, "context": ROW}
REAL: dict[str, dict[str, Any]] = {
    "/api/parse": {**KNOWN, "begin": []},
    "/api/search": {**KNOWN, "target": ROW},
    "/api/attention": {**KNOWN, "instructions": SAID[:1], "commands": ["all-objects 2 index ARemove"]},
    "/api/feedback": {**KNOWN, "target": ROW},
}
"""What makes a random request to a path one that can be answered, as far as it goes."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    return tmp_path_factory.mktemp("feedback")


@pytest.fixture(scope="module")
def saving(models, folder) -> Iterator[str]:
    """The address of a playground that saves corrections."""
    with serve(models, folder) as address:
        yield address


def _fuzz(server: str, examples: int, folder: Path, real: tuple[str, ...]) -> None:
    """Sends what the API's description allows, to some paths with real models and worlds, and what it does not."""
    schema = schemathesis.openapi.from_url(f"{server}/openapi.json")
    seen: Counter[tuple[str, int]] = Counter()
    for path in real:  # whatever chance has: one request that is answered
        answer = httpx.post(server + path, json={"instructions": SAID[:1], **REAL[path]}, timeout=120)
        assert answer.status_code == 200, (path, answer.text)
    for operation in (one.ok() for one in schema.get_all_operations()):
        path = operation.path
        _send(operation.as_strategy(), examples, seen, REAL[path] if path in real else {})
        if path != "/api/models":  # which takes nothing that could be wrong
            _send(operation.as_strategy(generation_mode=schemathesis.GenerationMode.NEGATIVE), examples, seen, {})
    print(dict(sorted(seen.items())))
    assert {path for path, _ in seen} >= set(REAL)
    assert any(status >= 400 for _, status in seen)
    for file in folder.iterdir():
        assert read_json_lines(file, vbsix.get_domain(file.stem))


def _send(cases, examples: int, seen: Counter[tuple[str, int]], real: dict[str, Any]) -> None:
    @settings(max_examples=examples, database=None, deadline=None, suppress_health_check=list(HealthCheck))
    @given(cases)
    def send(case) -> None:
        if real:
            case.body.update(real)
        answer = case.call(timeout=120)
        seen[case.operation.path, answer.status_code] += 1
        assert answer.status_code < 500, case.as_curl_command()

    send()


def test_a_few_random_requests_find_no_fault(saving, folder):
    _fuzz(saving, 4, folder, ("/api/parse", "/api/attention", "/api/feedback"))


@pytest.mark.slow
@pytest.mark.timeout(1200)
def test_many_random_requests_find_no_fault(saving, folder):
    _fuzz(saving, 1000, folder, tuple(REAL))
