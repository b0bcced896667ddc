from __future__ import annotations

import json
import math
from xml.etree import ElementTree

import pytest

from vbsix import available_domains
from vbsix.domains.names import BUILT_IN, FROM_FILES

pytestmark = pytest.mark.integration


ROW, SWAPPED = "1:0 2:3 3:4", "1:4 2:3 3:0"
ASKED = (
    "search",
    "tangrams",
    "--context",
    ROW,
    "--target",
    SWAPPED,
    "--beam",
    "400",
    "swap the first and the last shape",
)
PROGRAMS = {
    f"all-objects {one} index all-objects {other} index ASwap"
    for one, other in [("1", "3"), ("1", "-1"), ("3", "1"), ("-1", "1")]
}
TOKENS_OF_TANGRAMS = 14


def test_programs_and_iterations_are_printed(vbsix):
    ended = vbsix(*ASKED)
    assert (ended.code, ended.err) == (0, "")
    head, *rows = ended.out.split("probability  program\n")
    assert head == "policy: uniform (no checkpoint given)\nsearch: execution space, beam 400\n\n"
    lines = rows[0].splitlines()
    probability = f"{TOKENS_OF_TANGRAMS**-7.0:.2g}"
    assert {tuple(line.split(maxsplit=1)) for line in lines[:4]} == {(probability, program) for program in PROGRAMS}
    counts = [line.split() for line in lines if line.split() and line.split()[0] in "1234567"]
    assert counts[0] == "1 1 7 0 0 0 7 0".split()
    assert counts[-1] == "7 9 69 0 2 4 0 63".split()


def test_json_holds_programs_iterations_and_states(vbsix):
    ended = vbsix(*ASKED, "--json", "--limit", "10")
    report = json.loads(ended.out)
    assert report["format"] == 1
    assert (report["policy"], report["space"], report["beam"]) == ("uniform", "execution", 400)
    assert report["utterances"] == report["instructions"] == ["swap the first and the last shape"]
    assert report["context"] == report["world"]
    assert {" ".join(program["tokens"]) for program in report["programs"]} == PROGRAMS
    for program in report["programs"]:
        assert program["log_probability"] == pytest.approx(-7 * math.log(TOKENS_OF_TANGRAMS), abs=1e-4)
    assert len(report["states"]) == 10
    assert report["left_out"] + 10 == 1 + sum(row["successors"] - row["merged"] for row in report["iterations"])


def test_the_graph_is_drawn_up_to_the_limit(vbsix, tmp_path):
    path = tmp_path / "search.svg"
    ended = vbsix(*ASKED, "--graph", str(path), "--limit", "20")
    assert ended.out.splitlines()[-1] == f"20 of 820 states are drawn in {path}"
    root = ElementTree.parse(path).getroot()
    kinds = [group.get("class") for group in root.iter() if group.get("class")]
    assert len(kinds) == 20
    assert "correct" in kinds
    vbsix(*ASKED, "--graph", str(tmp_path / "again.svg"), "--limit", "20")
    assert (tmp_path / "again.svg").read_bytes() == path.read_bytes()


def test_program_space_merges_nothing(vbsix):
    report = json.loads(vbsix(*ASKED, "--space", "program", "--json").out)
    assert {" ".join(program["tokens"]) for program in report["programs"]} == PROGRAMS
    assert not any(row["merged"] for row in report["iterations"])


def test_the_seed_decides_what_is_explored(vbsix):
    def explored(seed: str) -> str:
        return vbsix(*ASKED, "--epsilon", "0.5", "--beam", "20", "--json", "--seed", seed).out.replace(
            f'"seed": {seed}', ""
        )

    assert explored("1") == explored("1") != explored("2")


def test_a_search_that_finds_nothing_says_so(vbsix):
    ended = vbsix(*ASKED, "--target", ROW)
    assert ended.code == 0
    assert "No program found. A larger --beam searches more" in ended.out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ("tangrams", "--context", "1:9", "--target", ROW),
            "error: --context: position 1 ('9'): expected a shape from 0 to 4\n",
        ),
        (
            ("tangrams", "--context", ROW, "--target", "0"),
            "error: --target: element 1 ('0'): a world lists its positions, '1:... 2:...'\n",
        ),
        (
            ("tangram", "--context", ROW, "--target", ROW),
            "error: unknown domain 'tangram'. Did you mean 'tangrams'? Known: KNOWN. One of your "
            "own is named MODULE:CLASS.\n",
        ),
    ],
)
def test_bad_input_is_one_message(vbsix, arguments, message):
    known = sorted({*available_domains(), *FROM_FILES})  # other tests register domains
    assert {*BUILT_IN, *FROM_FILES} <= set(known)
    message = message.replace("KNOWN", ", ".join(known))
    assert vbsix("search", *arguments, "do it") == (2, "", message)


@pytest.mark.parametrize(
    "wrong", [("--beam", "0"), ("--limit", "0"), ("--epsilon", "2"), ("--space", "outer"), ("--seed", "-1")]
)
def test_options_out_of_range_are_usage_errors(vbsix, wrong):
    ended = vbsix(*ASKED, *wrong)
    assert ended.code == 2
    assert wrong[0] in ended.err


def test_a_graph_that_cannot_be_written_is_one_message(vbsix, tmp_path):
    path = tmp_path / "missing" / "search.svg"
    assert vbsix(*ASKED, "--graph", str(path))[::2] == (2, f"error: {path}: No such file or directory\n")
