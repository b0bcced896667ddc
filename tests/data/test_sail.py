"""Reading the SAIL corpus, and the JSON lines made of it."""

from __future__ import annotations

import json

import pytest

from vbsix.data.sail import convert_sail, misses_goal, read_sail
from vbsix.domains.sail_maps import MAPS, Map, read_map
from vbsix.utilities.errors import InvalidData

BLOCK = """one
y=1\tmap=l\tx=2
turn left
LEFT(3,4,0);(3, 4, 270)
walk
FORWARD(3,4,270);FORWARD(2,4,270);(1, 4, 270)
"""


def test_sequences_are_read_with_their_poses(tmp_path):
    path = tmp_path / "l.settrc"
    path.write_text(BLOCK + "\n\n" + BLOCK.replace("one", "two"))
    first, second = read_sail(path)
    assert (first.id, second.id, first.map, first.is_continuous) == ("one", "two", "l", True)
    assert first.traces[1].actions == ("FORWARD", "FORWARD")
    assert first.traces[1].poses == ("l 3 4 270", "l 2 4 270", "l 1 4 270")


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ("walk\n", "", "1: 5 lines: expected an id"),
        ("y=1\t", "", "2: 'map=l.*x=2': expected y=NUMBER map=l x=NUMBER"),
        ("map=l", "map=grid", "2: .*: expected y=NUMBER map=l x=NUMBER"),
        ("LEFT(", "JUMP(", "4: 'JUMP': an action is one of FORWARD, LEFT, RIGHT"),
        ("(3, 4, 270)", "(3, 4, 45)", "4: '.*45.*': expected ACTION"),
        (";(1, 4, 270)", "", "6: the last pose has an action"),
    ],
)
def test_every_problem_is_reported_with_its_line(tmp_path, old, new, told):
    path = tmp_path / "l.settrc"
    path.write_text(BLOCK.replace(old, new))
    with pytest.raises(InvalidData, match=f"l.settrc:{told}"):
        read_sail(path)


def test_a_file_that_is_empty_or_missing_is_an_error(tmp_path):
    path = tmp_path / "l.settrc"
    with pytest.raises(InvalidData, match=r"l\.settrc: "):
        read_sail(path)
    path.write_text("\n\n")
    with pytest.raises(InvalidData, match="no instructions in the file"):
        read_sail(path)


def test_no_map_is_both_learned_from_and_evaluated_on(tmp_path):
    for name in MAPS:
        (tmp_path / f"{name}.settrc").write_text(BLOCK.replace("map=l", f"map={name}"))
    out = tmp_path / "out"
    out.mkdir()
    assert len(convert_sail(tmp_path, out)) == 12
    for name in MAPS:
        lines = {
            kind: [json.loads(line) for line in (out / f"{kind}-{name}.jsonl").read_text().splitlines()]
            for kind in ("sentences", "sequences", "sentences-without", "sequences-without")
        }
        assert {line["context"].split()[0] for line in lines["sentences"] + lines["sequences"]} == {name}
        others = {line["context"].split()[0] for line in lines["sentences-without"] + lines["sequences-without"]}
        assert others == set(MAPS) - {name}
        (sequence,) = lines["sequences"]
        assert (sequence["target"], sequence["targets"]) == (f"{name} 1 4", [f"{name} 3 4 270", f"{name} 1 4"])
        assert lines["sequences-without"][0]["target"].endswith("1 4 270")
        assert len(lines["sentences"]) == 2 and len(lines["sentences-without"]) == 4


def test_a_trace_that_ends_elsewhere_than_at_its_goal_misses_it(tmp_path):
    path = tmp_path / "l.settrc"
    path.write_text(BLOCK)
    (sequence,) = read_sail(path)
    assert sequence.goal == 2
    assert [misses_goal(sequence, Map("l", {}, {}, {2: place})) for place in ((1, 4), (2, 4))] == [False, True]


def test_how_many_sequences_of_the_corpus_miss_their_goal_or_are_broken(data_dir):
    """Numbers of docs/beyond-scone.md."""
    folder = data_dir / "sail"
    if not folder.is_dir():
        pytest.skip(f"no {folder}")
    missed = broken = sequences = sentences = 0
    for name in MAPS:
        map_ = read_map(folder / f"map-{name}.xml")
        for sequence in read_sail(folder / f"{name}.settrc"):
            sequences += 1
            sentences += len(sequence.traces)
            missed += misses_goal(sequence, map_)
            broken += not sequence.is_continuous
    assert (sequences, sentences, missed, broken) == (701, 3233, 27, 27)
