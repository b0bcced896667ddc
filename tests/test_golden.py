"""Programs with their outcome after every token, kept outside this repository."""

from __future__ import annotations

import json

import jaxtyping
import pytest
from reference.outcomes import After, Outcome, by_execute, by_twin


@pytest.mark.parametrize("run", [by_twin, by_execute])
@pytest.mark.parametrize("domain", ["scene", "alchemy", "tangrams"])
def test_every_golden_case(golden_dir, domain, run, monkeypatch):
    # Types and shapes are checked in all other tests; here it would take a third of the time.
    monkeypatch.setattr(jaxtyping.config, "jaxtyping_disable", True)
    lines = (golden_dir / f"{domain}.jsonl").read_text(encoding="utf-8").splitlines()
    cases = [json.loads(line) for line in lines]
    assert cases
    wrong = []
    for case in cases:
        expected = Outcome([After(**step) for step in case["trace"]], case["rejected_at"])
        assert (expected.rejected_at is None) == case["valid"]
        if run(domain, case["world"], case["program"]) != expected:
            wrong.append(case["id"])
    assert not wrong, f"{len(wrong)} of {len(cases)} cases differ, the first: {wrong[:5]}"
