"""A file of requests that is answered block by block."""

from __future__ import annotations

import errno
import json
import os

import pytest

from vbsix.parsing.streaming import answer_file
from vbsix.utilities.errors import VbsixError

LINES = [f'{{"id": {number}}}\n'.encode() for number in range(25)]
LINES[7] = b"\n"
ORIGIN = {"model": "abc", "best": 1}


@pytest.fixture
def source(tmp_path):
    path = tmp_path / "requests.jsonl"
    path.write_bytes(b"".join(LINES))
    return path


class Echo:
    """Answers a line that is not blank with its number; dies before some block."""

    def __init__(self, dies_before: int | None = None):
        self.dies_before, self.blocks = dies_before, []

    def __call__(self, blocks):
        for block in blocks:
            if len(self.blocks) == self.dies_before:
                raise KeyboardInterrupt
            self.blocks.append(block)
            kept = [number for number, line in enumerate(block.lines, start=block.first) if line.strip()]
            yield block, "".join(f"{number}\n" for number in kept).encode()


def run(source, target, answer, origin=ORIGIN):
    return list(answer_file(source, target, origin, answer, block=4))


WANTED = "".join(f"{number}\n" for number in range(1, 26) if number != 8)


def test_answers_are_in_order_and_blank_lines_have_none(source, tmp_path):
    target = tmp_path / "answers.jsonl"
    seen = run(source, target, Echo())
    assert target.read_text() == WANTED
    assert (seen[0].answers, seen[-1].answers, seen[-1].own, seen[-1].read) == (0, 24, 24, source.stat().st_size)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["answers.jsonl", "requests.jsonl"]


@pytest.mark.parametrize("dies", range(1, 7))
def test_a_call_that_died_is_continued_and_nothing_is_answered_twice(source, tmp_path, dies):
    target = tmp_path / "answers.jsonl"
    with pytest.raises(KeyboardInterrupt):
        run(source, target, Echo(dies))
    with (tmp_path / "answers.jsonl.part").open("ab") as file:
        file.write(b"half a li")  # of a block that was being written
    rest = Echo()
    seen = run(source, target, rest)
    assert target.read_text() == WANTED
    assert rest.blocks[0].first == 4 * dies + 1
    assert seen[0].answers + seen[-1].own == seen[-1].answers == 24


def test_a_call_that_died_before_its_first_block_begins_again(source, tmp_path):
    with pytest.raises(KeyboardInterrupt):
        run(source, tmp_path / "answers.jsonl", Echo(0))
    run(source, tmp_path / "answers.jsonl", Echo())
    assert (tmp_path / "answers.jsonl").read_text() == WANTED


def test_an_output_of_something_else_is_not_touched(source, tmp_path):
    target, part = tmp_path / "answers.jsonl", tmp_path / "answers.jsonl.part"
    with pytest.raises(KeyboardInterrupt):
        run(source, target, Echo(3))
    before = part.read_bytes()
    for origin, message in (({**ORIGIN, "best": 2}, "best = 1, not 2"), ({**ORIGIN, "model": "x"}, "another model")):
        with pytest.raises(VbsixError, match=rf"part: was begun with {message}\. .*or remove answers\.jsonl\.part and"):
            run(source, target, Echo(), origin)
    content = source.read_bytes()
    for changed in (content.replace(b"3", b"4", 1), content[:20]):
        source.write_bytes(changed)
        with pytest.raises(VbsixError, match=r"another input: .*requests\.jsonl has changed"):
            run(source, target, Echo())
    source.write_bytes(content)
    part.write_bytes(before[:-1])
    with pytest.raises(VbsixError, match="has lost its end"):
        run(source, target, Echo())
    part.write_bytes(before)
    run(source, target, Echo())
    assert target.read_text() == WANTED
    with pytest.raises(VbsixError, match=r"answers\.jsonl: exists already"):
        run(source, target, Echo())


def test_a_disk_that_fills_up_is_one_message_and_loses_nothing(source, tmp_path, monkeypatch):
    target, sync, calls = tmp_path / "answers.jsonl", os.fsync, 0

    def fills_up(descriptor):
        nonlocal calls
        calls += 1
        if calls > 5:  # two a block
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        sync(descriptor)

    monkeypatch.setattr(os, "fsync", fills_up)
    with pytest.raises(VbsixError, match=r"part: No space left on device\. .* the same command continues\.$"):
        run(source, target, Echo())
    monkeypatch.undo()
    assert json.loads((tmp_path / "answers.jsonl.part.json").read_text())["lines"] == 8
    rest = Echo()
    run(source, target, rest)
    assert (rest.blocks[0].first, target.read_text()) == (9, WANTED)
