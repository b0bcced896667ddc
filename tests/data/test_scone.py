from __future__ import annotations

import time
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from vbsix import get_domain
from vbsix.data.examples import Row
from vbsix.data.scone import SPLITS, load_examples, load_split, read_rows
from vbsix.utilities.errors import InvalidData, UnknownName

TANGRAMS = get_domain("tangrams")
DOMAINS = ("alchemy", "scene", "tangrams")
EMPTY_WORLD = {
    "alchemy": " ".join(f"{place}:_" for place in range(1, 8)),
    "scene": " ".join(f"{place}:__" for place in range(1, 11)),
    "tangrams": "",
}


@pytest.fixture
def tsv(tmp_path):
    def write(content: str | bytes) -> Path:
        path = tmp_path / "tangrams-train.tsv"
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return path

    return write


def problems_of(path: Path, domain: str = "tangrams") -> list[str]:
    """What is wrong, without the file's name."""
    with pytest.raises(InvalidData) as caught:
        read_rows(path, get_domain(domain))
    assert all(problem.startswith(str(path)) for problem in caught.value.problems)
    return [problem.removeprefix(str(path)).lstrip(":") for problem in caught.value.problems]


@pytest.mark.parametrize("end", ["\n", "\r\n", ""])
def test_both_kinds_of_rows_are_read(tsv, end):
    path = tsv("a-1\t1:0 2:1\tswap them\t1:1 2:0\tclear\t\n7\t1:0\tdo it\t?\tundo it\t1:0" + end)
    assert read_rows(path, TANGRAMS) == [
        Row("a-1", ("1:0 2:1", "1:1 2:0", ""), ("swap them", "clear")),
        Row("7", ("1:0", None, "1:0"), ("do it", "undo it")),
    ]


def test_rows_may_share_an_id_and_a_byte_order_mark_is_skipped(tsv):
    assert [row.id for row in read_rows(tsv("\ufeffa\t\tgo\t\na\t\tgo\t\n"), TANGRAMS)] == ["a", "a"]


def test_lines_end_at_line_feeds_only(tsv):
    text = "swap\x0bthe\x1cfirst\x85two\u2028now\rthen"
    (row,) = read_rows(tsv(f"a\t1:0\t{text}\t1:0\n"), TANGRAMS)
    assert row.utterances == (text,)


def test_all_bad_rows_are_reported_together(tsv):
    path = tsv(
        "good\t1:0\tgo\t1:1\n"
        "short\t1:0\tgo\n"
        "\n"
        "odd\t1:0\tgo\t1:1\tgo\n"
        "\t1:0\t  \t1:1\n"
        "worlds\t1:0 3:1\tgo\t1:7\tgo\t1:2\n"
        "unknown\t?\tgo\t?\tgo\t?\n"
        "nul\t1:0\tg\0o\t1:1\n"
        "good\t1:0\tgo\t1:1\n"
    )
    fields = "expected an even number from 4 on, separated by tabs: id, world, then utterance and world in turn"
    assert problems_of(path) == [
        f"2: 3 fields, {fields}",
        "3: the line is empty",
        f"4: 5 fields, {fields}",
        "5: the id is empty",
        "5: utterance 1 is empty",
        "6: the first world: element 2 ('3:1'): expected position 2, in order",
        "6: the world after utterance 1: position 1 ('7'): expected a shape from 0 to 4",
        "7: the first world is unknown (?); only one in the middle can be",
        "7: the world after utterance 2 is unknown (?); only one in the middle can be",
        "8: a NUL character",
    ]


def test_a_line_that_is_no_text_does_not_hide_the_others(tsv):
    path = tsv(b"a\t1:0\tgo\t1:1\nb\t1:0\tg\xffo\t1:1\nc\t1:9\tgo\t1:1\n")
    assert problems_of(path)[0] == "2: not UTF-8 text, at byte 8"
    assert problems_of(path)[1].startswith("3: the first world: ")


@pytest.mark.parametrize("domain", DOMAINS)
@pytest.mark.parametrize("digit", ["\u0661", "01", "+1", "1_0", " 1", "9" * 5000])
def test_numbers_are_plain_digits(tsv, domain, digit):
    world = EMPTY_WORLD[domain]
    path = tsv(f"a\t{world}\tgo\t{digit}:{world[2:]}\n")
    (problem,) = problems_of(path, domain)
    assert problem.startswith("1: the world after utterance 1: ") and len(problem) < 300


def test_files_that_cannot_be_read(tsv, tmp_path):
    assert problems_of(tmp_path / "no.tsv")[0].startswith(" no such file")
    assert problems_of(tmp_path) == [" cannot be read: Is a directory"]
    assert problems_of(tsv("")) == [" no rows in the file"]


def test_a_file_of_another_domain_is_one_problem(tmp_path):
    path = tmp_path / "tangrams-dev.tsv"
    path.write_text("row\t1:ggg 2:_ 3:_ 4:_ 5:_ 6:_ 7:_\tgo\t1:_ 2:_ 3:_ 4:_ 5:_ 6:_ 7:_\n" * 20)
    with pytest.raises(InvalidData, match="not a file of tangrams, none of its lines has its form") as caught:
        load_split(tmp_path, get_domain("tangrams"), "dev")
    assert len(caught.value.problems) == 2, "and what is wrong with the first"
    path.write_text(path.read_text() + "row\t1:0 2:1\tgo\t1:1 2:0\n")
    with pytest.raises(InvalidData, match=r"tangrams-dev.tsv:20: the first world") as caught:
        load_split(tmp_path, get_domain("tangrams"), "dev")
    assert len(caught.value.problems) >= 20


PIECES = ["\t", "\t", "\n", "\r", "\0", "a", "1:0", "2:1", " ", "?", ":", "go", "\u2028", "\u0661", "1:__", "1:_"]


@pytest.mark.parametrize("domain", DOMAINS)
@given(
    content=st.binary()
    | st.text().map(str.encode)
    | st.lists(st.sampled_from(PIECES)).map(lambda t: "".join(t).encode())
)
@example(content=b"a\t\tgo\t")
@example(content=b"\t" * 10_000)
def test_any_file_gives_rows_or_our_error(domain, content, tmp_path_factory):
    path = tmp_path_factory.mktemp("scone") / f"{domain}-train.tsv"
    path.write_bytes(content)
    try:
        rows = read_rows(path, get_domain(domain))
    except InvalidData as error:
        assert error.problems
    else:
        lines = []
        for row in rows:
            worlds = ["?" if world is None else world for world in row.worlds]
            pairs = zip(row.utterances, worlds[1:], strict=True)
            lines.append("\t".join([row.id, worlds[0], *(field for pair in pairs for field in pair)]))
        told = content.decode().removeprefix("\ufeff").removesuffix("\n").split("\n")
        assert lines == [line.removesuffix("\r") for line in told]  # nothing is dropped


def test_a_split_is_found_in_the_folder_or_in_its_scone_folder(tmp_path):
    (tmp_path / "scone").mkdir()
    (tmp_path / "scone" / "tangrams-dev.tsv").write_text("a\t1:0\tgo\t1:1\n")
    assert load_split(tmp_path, TANGRAMS, "dev") == load_split(tmp_path / "scone", TANGRAMS, "dev")
    with pytest.raises(InvalidData, match=r"tangrams-test.tsv: no such file.*vbsix data fetch"):
        load_split(tmp_path, TANGRAMS, "test")
    with pytest.raises(UnknownName, match="'dev'"):
        load_split(tmp_path, TANGRAMS, "deb")


@pytest.mark.parametrize(
    ("domain", "split", "lengths"),
    [
        ("alchemy", "train", [1, 5]),
        ("scene", "train", [4, 5]),
        ("tangrams", "train", [4, 5]),
        ("alchemy", "dev", [3, 5]),
        ("scene", "test", [3, 5]),
        ("tangrams", "train-orig", [5]),
    ],
)
def test_examples_are_the_papers(tmp_path, domain, split, lengths):
    world = EMPTY_WORLD[domain]
    (tmp_path / f"{domain}-{split}.tsv").write_text(f"a\t{world}" + f"\tgo\t{world}" * 5 + "\n")
    examples = load_examples(tmp_path, get_domain(domain), split)
    assert [len(example.instructions) for example in examples] == lengths


def test_all_of_scone_is_valid_and_read_in_seconds(scone_data):
    start = time.process_time()
    rows = {domain: [len(load_split(scone_data, get_domain(domain), split)) for split in SPLITS] for domain in DOMAINS}
    assert rows == {
        "alchemy": [3657, 245, 899, 18305],
        "scene": [3352, 198, 1035, 6722],
        "tangrams": [4189, 199, 800, 8378],
    }
    assert time.process_time() - start < 20  # it takes some 1 s
