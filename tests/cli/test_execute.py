from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

from vbsix import execute

STAGE = "1:__ 2:r_ 3:__ 4:by 5:__ 6:__ 7:__ 8:__ 9:__ 10:__"

DRAWN = """\
     hat                     ▟y▙
   shirt    ·    █r█    ·    █b█    ·     ·     ·     ·     ·     ·
position    1     2     3     4     5     6     7     8     9    10

r PShirt 5 AMove
     hat                     ▟y▙
   shirt    ·     ·     ·    █b█   █r█    ·     ·     ·     ·     ·
position    1     2     3     4     5     6     7     8     9    10

b PShirt ALeave
     hat
   shirt    ·     ·     ·     ·    █r█    ·     ·     ·     ·     ·
position    1     2     3     4     5     6     7     8     9    10

"""


def test_worlds_are_drawn_before_and_after_each_command(vbsix):
    assert vbsix("execute", "scene", "--context", STAGE, "r PShirt 5 AMove b PShirt ALeave") == (0, DRAWN, "")


def test_quotes_may_be_left_out_and_minus_one_is_no_option(vbsix):
    quoted = vbsix("execute", "scene", "--context", STAGE, "-1 r e ACreate")
    assert quoted.code == 0
    assert vbsix("execute", "scene", "--context", STAGE, "-1", "r", "e", "ACreate") == quoted


def test_an_unfinished_command_shows_the_stack(vbsix):
    ended = vbsix("execute", "scene", "--context", STAGE, "all-objects 2")
    assert ended.code == 0
    assert ended.out.endswith("all-objects 2\n  no command yet; on the stack: list:[2,4] number:2\n")


def test_an_empty_program_shows_the_world(vbsix):
    assert vbsix("execute", "tangrams", "--context", "", "") == (0, "(an empty row)\n\n", "")


def test_json_holds_every_step(vbsix):
    program = "r PShirt 5 AMove"
    ended = vbsix("execute", "scene", "--json", "--context", STAGE, program)
    report = json.loads(ended.out)
    assert report["format"] == 1
    assert report["domain"] == "scene"
    steps = execute("scene", STAGE, program)
    assert report["steps"] == [{**step._asdict(), "denotation": step.world} for step in steps]
    assert report["context"] == report["world"] == STAGE


@pytest.mark.parametrize("json_flag", [[], ["--json"]])
def test_an_invalid_program_shows_where_and_why(vbsix, json_flag):
    ended = vbsix("execute", "scene", *json_flag, "--context", STAGE, "r PShirt   4 AMove 1")
    assert ended.code == 2
    assert ended.out == ""
    assert "token 4" in ended.err
    assert "AMove: position 4 is occupied" in ended.err
    assert ended.err.endswith("\n  r PShirt 4 AMove 1\n             ^^^^^\n")


def test_a_rejected_first_token_is_marked(vbsix):
    ended = vbsix("execute", "scene", "--context", STAGE, "jump high")
    assert ended.err.endswith("\n  jump high\n  ^^^^\n")


@pytest.mark.parametrize(
    ("domain", "world", "named"),
    [
        ("scene", STAGE.replace("4:by", "4:xy"), "position 4 ('xy')"),
        ("scenery", STAGE, "Did you mean 'scene'?"),
    ],
)
def test_an_invalid_world_or_domain_is_named(vbsix, domain, world, named):
    ended = vbsix("execute", domain, "--context", world, "all-objects")
    assert (ended.code, ended.out) == (2, "")
    assert named in ended.err
    assert "Traceback" not in ended.err


def test_output_that_cannot_be_encoded_does_not_fail():
    ended = subprocess.run(
        [sys.executable, "-m", "vbsix", "execute", "alchemy", "--context", "1:ggg 2:_ 3:yy 4:_ 5:_ 6:_ 7:_", ""],
        env={**os.environ, "PYTHONIOENCODING": "ascii"},
        capture_output=True,
        text=True,
    )
    assert (ended.returncode, ended.stderr) == (0, "")
    assert "? g ?" in ended.stdout


def test_the_demonstration_runs_in_every_domain(vbsix):
    ended = vbsix("demo")
    assert (ended.code, ended.err) == (0, "")
    assert all(f" {domain} " in ended.out for domain in ("scene", "alchemy", "tangrams"))
    assert ended.out.rstrip().endswith("vbsix execute --help")
