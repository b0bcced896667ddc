"""Random requests to the playground's API."""

from __future__ import annotations

from collections import Counter

import pytest
import schemathesis
from hypothesis import HealthCheck, given, settings
from playground.conftest import MODEL, ROW

pytestmark = pytest.mark.browser


def _fuzz(server: str, examples: int, real: tuple[str, ...]) -> None:
    """Sends what the API's description allows, to some paths with real models and worlds, and what it does not."""
    schema = schemathesis.openapi.from_url(f"{server}/openapi.json")
    seen: Counter[tuple[str, int]] = Counter()
    for operation in (one.ok() for one in schema.get_all_operations()):
        _send(operation.as_strategy(), examples, seen, operation.path in real)
        if operation.path != "/api/models":  # which takes nothing that could be wrong
            _send(operation.as_strategy(generation_mode=schemathesis.GenerationMode.NEGATIVE), examples, seen, False)
    print(dict(sorted(seen.items())))
    assert all(seen[path, 200] for path in real)
    assert any(status >= 400 for _, status in seen)


def _send(cases, examples: int, seen: Counter[tuple[str, int]], real: bool) -> None:
    @settings(max_examples=examples, database=None, deadline=None, suppress_health_check=list(HealthCheck))
    @given(cases)
    def send(case) -> None:
        if real:
            case.body.update({"model": MODEL, "context": ROW})
        answer = case.call(timeout=120)
        seen[case.operation.path, answer.status_code] += 1
        assert answer.status_code < 500, case.as_curl_command()

    send()


def test_a_few_random_requests_find_no_fault(server):
    _fuzz(server, 4, ("/api/parse",))


@pytest.mark.slow
@pytest.mark.timeout(1200)
def test_many_random_requests_find_no_fault(server):
    _fuzz(server, 1000, ("/api/parse", "/api/search"))
