from __future__ import annotations

import json

import pytest
from tiny_run import SETTINGS, make_run

pytestmark = pytest.mark.integration


def test_two_runs_are_compared_as_they_are_evaluated(vbsix, tiny_run, tmp_path):
    one, other = str(tiny_run.run.folder), str(make_run(tmp_path / "other", (4, 7)).run.folder)
    found = json.loads(vbsix("compare", one, other, "--split", "held-out", "--json").out)
    assert (found.pop("format"), found.pop("split")) == (1, "held-out")
    accuracies = [
        json.loads(vbsix("evaluate", run, "--split", "held-out", "--json").out)["accuracy"] for run in (one, other)
    ]
    for length, each in found.items():
        first, second = (sum(accuracy[length]) / 2 for accuracy in accuracies)
        assert (each["first"], each["second"]) == pytest.approx((first, second))
        assert each["difference"] == pytest.approx(second - first)
        for low, high in (each["interval"], each["row_interval"]):
            assert low <= each["difference"] <= high
    assert list(found) == ["1", "2"]
    ended = vbsix("compare", one, one, "--ensemble")
    assert "accuracy on dev, %" in ended.out
    assert ended.out.count("+0.0 to +0.0") == 2
    assert max(map(len, ended.out.splitlines()[:5])) <= 100


def test_runs_without_common_rows_are_one_message(vbsix, tiny_run, tmp_path):
    one = str(tiny_run.run.folder)
    scene = str(make_run(tmp_path / "scene", (0,), {**SETTINGS, "domain": "scene"}).run.folder)
    message = f"error: {one} is for tangrams, {scene} for scene: they share no rows.\n"
    assert vbsix("compare", one, scene) == (2, "", message)
    ended = vbsix("compare", "tangrams", "tangrams")
    assert (ended.code, ended.out) == (2, "")
    assert "say with --data on which to compare them" in ended.err


@pytest.mark.slow
def test_runs_of_other_languages_have_the_same_rows(vbsix, tiny_run, tmp_path):
    where = str(make_run(tmp_path / "where", (0,), {**SETTINGS, "domain": "tangrams-where"}).run.folder)
    assert vbsix("compare", str(tiny_run.run.folder), where).code == 0
