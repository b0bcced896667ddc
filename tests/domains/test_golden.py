"""Programs with their outcome after every token, kept outside this repository."""

from __future__ import annotations

import json

import jaxtyping
import pytest
from reference.outcomes import After, Outcome, by_batch, by_execute, by_twin

SAMPLED = 50
"""Every case with a number divisible by this is also run token by token, through `execute`."""


@pytest.mark.parametrize("domain", ["scene", "alchemy", "tangrams"])
def test_every_golden_case(golden_dir, domain, monkeypatch):
    # Types and shapes are checked in all other tests; here it would take a third of the time.
    monkeypatch.setattr(jaxtyping.config, "jaxtyping_disable", True)
    lines = (golden_dir / f"{domain}.jsonl").read_text(encoding="utf-8").splitlines()
    cases = [json.loads(line) for line in lines]
    assert cases
    expected = [Outcome([After(**step) for step in case["trace"]], case["rejected_at"]) for case in cases]
    assert [outcome.rejected_at is None for outcome in expected] == [case["valid"] for case in cases]
    requests = [(case["world"], case["program"]) for case in cases]
    found = {
        "the twin": [by_twin(domain, *request) for request in requests],
        "the compiled executor": by_batch(domain, requests),
        "execute": [
            by_execute(domain, *request) if number % SAMPLED == 0 else outcome
            for number, (request, outcome) in enumerate(zip(requests, expected, strict=True))
        ],
    }
    for who, outcomes in found.items():
        wrong = [case["id"] for case, *both in zip(cases, outcomes, expected, strict=True) if both[0] != both[1]]
        assert not wrong, f"{len(wrong)} of {len(cases)} cases differ in {who}, the first: {wrong[:5]}"
