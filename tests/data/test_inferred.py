"""What a learner makes of the worlds that teachers inferred."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from runs.sums import CONFIG, SUMS

from vbsix.config.schema import override
from vbsix.data.dataset import Dataset, load_dataset, rows_to_infer
from vbsix.data.examples import Row
from vbsix.data.inferred import (
    Inferred,
    InferredRow,
    examples_of,
    identify_rows,
    longest_examples,
    read_inferred,
    with_targets,
    write_inferred,
)
from vbsix.utilities.errors import VbsixError

ROW = Row("a", ("0", "1", "3", "4"), ("one", "two", "one again"))


def write_rows(folder: Path) -> str:
    """Rows of three utterances in SCONE's form; the last two begin with the same one."""
    folder.mkdir()
    rows = [
        ("a", "one", "1", "two", "3", "one", "4"),
        ("b", "two", "2", "two", "4", "one", "5"),
        ("c", "three", "3", "two", "5", "one", "6"),
        ("d", "three", "3", "one", "4", "one", "5"),
    ]
    text = "".join("\t".join([name, "0", *steps]) + "\n" for name, *steps in rows)
    for split in ("train", "dev"):
        (folder / f"sums-{split}.tsv").write_text(text)
    return str(folder)


def load(source: str, inferred: Inferred | None, **settings) -> Dataset:
    given = {"data.lengths": (2, 3), **{f"data.{name}": value for name, value in settings.items()}}
    data = override(CONFIG, given).data
    return load_dataset(data, SUMS, source, word_size=100, inferred=inferred)


def infer(source: str, *found: tuple[tuple[str, ...], float], lengths: tuple[int, ...] = (2, 3)) -> Inferred:
    rows, _ = rows_to_infer(CONFIG.data, SUMS, source, lengths, 1)
    inferred = [InferredRow(row.id, worlds, share) for row, (worlds, share) in zip(rows, found, strict=True)]
    return Inferred(tuple(inferred), lengths, "teachers", identify_rows(rows, lengths))


@pytest.mark.parametrize(
    ("lengths", "known"), [((2,), [0, 2]), ((1, 3), [0, 1, 3]), ((0,), [0, 3]), ((2, 0), [0, 2, 3])]
)
def test_a_row_keeps_its_targets_alone(lengths, known):
    kept = with_targets(ROW, lengths)
    assert [place for place, world in enumerate(kept.worlds) if world is not None] == known
    assert replace(kept, worlds=ROW.worlds) == ROW


def test_worlds_are_inferred_for_the_longest_example():
    short = Row("b", ("0", "1"), ("one",))
    (three,), (one,) = longest_examples([ROW], (1, 3)), longest_examples([short], (0, 1))
    assert (three.instructions, three.target) == (ROW.utterances, "4")
    assert (one.instructions, one.target) == (("one",), "1")


def test_own_targets_win_over_inferred_worlds():
    row = with_targets(ROW, (2, 3))
    examples = examples_of(row, InferredRow("a", ("2", "9", "9"), 0.8))
    assert [(one.id, len(one.instructions), one.target) for one in examples] == [
        ("a/1", 1, "2"),
        ("a/2", 2, "3"),
        ("a/3", 3, "4"),
    ]


def test_a_row_without_inferred_worlds_keeps_its_targets():
    examples = examples_of(with_targets(ROW, (2, 3)), InferredRow("a", (), 0.0))
    assert [(one.id, one.target) for one in examples] == [("a/2", "3"), ("a/3", "4")]


def test_rows_that_are_likely_to_be_right_are_learned_from(tmp_path):
    source = write_rows(tmp_path / "data")
    inferred = infer(source, (("1", "3", "4"), 0.9), ((), 0.0), (("3", "5", "6"), 0.7), (("2", "4", "5"), 0.69))
    dataset = load(source, inferred)
    assert [example.id for example in dataset.examples] == ["a/1", "a/2", "a/3", "c/1", "c/2", "c/3"]
    assert [row.id for row in dataset.train.rows] == ["a", "c"]
    assert [row.id for row in dataset.splits["dev"].rows] == ["a", "b", "c", "d"]
    assert dataset.waypoints == {
        ("0", ("one",)): "1",
        ("0", ("one", "two")): "3",
        ("0", ("one", "two", "one")): "4",
        ("0", ("three",)): "3",
        ("0", ("three", "two")): "5",
        ("0", ("three", "two", "one")): "6",
    }
    known = dataset.arrays(dataset.examples, 3).waypoints.known
    assert known.tolist() == [[False, False, False], [True, False, False], [True, True, False]] * 2
    plain = load(source, None)
    assert dataset.words.words == plain.words.words, "rows that are left out have no say in the vocabulary"
    everything = load(source, inferred, least_posterior=0.0)
    assert [example.id for example in everything.examples if example.id[0] == "b"] == ["b/2", "b/3"]
    # The two rows that begin with the same words disagree about the world after them.
    assert everything.waypoints["0", ("three",)] is None
    assert ("0", ("two",)) not in everything.waypoints


def test_inferred_worlds_make_another_data_set(tmp_path):
    source = write_rows(tmp_path / "data")
    worlds = [(("1", "3", "4"), 0.9), (("2", "4", "5"), 0.9), (("3", "5", "6"), 0.9), (("3", "4", "5"), 0.9)]
    one = load(source, infer(source, *worlds))
    other = load(source, infer(source, (("2", "3", "4"), 0.9), *worlds[1:]))
    plain, waypoints = load(source, None), load(source, None, waypoints=True)
    assert {example.id for example in plain.examples} < {example.id for example in one.examples}
    assert len({dataset.fingerprint() for dataset in (one, other, plain)}) == 3
    assert plain.fingerprint() == waypoints.fingerprint(), "known targets say nothing new"
    assert one.fingerprint() == load(source, infer(source, *worlds)).fingerprint()


def test_a_fold_is_left_out_of_what_is_learned_but_not_of_what_is_evaluated(tmp_path):
    source = write_rows(tmp_path / "data")
    worlds = [(("1", "3", "4"), 0.9), (("2", "4", "5"), 0.1), (("3", "5", "6"), 0.9), (("3", "4", "5"), 0.9)]
    inferred = infer(source, *worlds)
    _, folds = rows_to_infer(CONFIG.data, SUMS, source, (2, 3), 3)
    for fold in range(3):
        dataset = load(source, inferred, folds=3, fold=fold)
        own = [name for name, number in zip("abcd", folds, strict=True) if number == fold]
        assert [row.id for row in dataset.splits["fold"].rows] == own
        assert [row.id for row in dataset.train.rows] == [name for name in "acd" if name not in own]


def test_a_file_gives_back_what_was_written(tmp_path):
    inferred = Inferred((InferredRow("ä\u2028", ("1", "2"), 0.5), InferredRow("b", (), 0.0)), (1, 0), "they", "these")
    write_inferred(tmp_path / "inferred.jsonl", inferred)
    assert read_inferred(tmp_path / "inferred.jsonl") == inferred
    lines = (tmp_path / "inferred.jsonl").read_text(encoding="utf-8").splitlines()
    assert json.loads(lines[1]) == {"id": "ä\u2028", "worlds": ["1", "2"], "posterior": 0.5}


@pytest.mark.parametrize("text", ["", "no JSON", '{"format": 1}', '{"format": 1, "lengths": [1]}\n{"id": "a"}', "[1]"])
def test_a_damaged_file_is_one_message(tmp_path, text):
    (tmp_path / "inferred.jsonl").write_text(text)
    with pytest.raises(VbsixError, match=r"inferred\.jsonl: not what teachers inferred"):
        read_inferred(tmp_path / "inferred.jsonl")
    with pytest.raises(VbsixError, match="no such file"):
        read_inferred(tmp_path / "missing")


def test_nothing_to_learn_from_is_one_message(tmp_path):
    source = write_rows(tmp_path / "data")
    with pytest.raises(VbsixError, match="teachers inferred no worlds with a posterior of"):
        load(source, infer(source, *[(("1", "3", "4"), 0.5)] * 4))


def test_what_was_inferred_for_other_rows_is_refused(tmp_path):
    source = write_rows(tmp_path / "data")
    inferred = infer(source, *[(("1", "3", "4"), 0.9)] * 4)
    file = tmp_path / "data" / "sums-train.tsv"
    lines = file.read_text()
    file.write_text(lines.replace("a\t0\tone\t1\t", "a\t0\tone\t2\t"))  # no target of an example
    assert load(source, inferred).examples
    file.write_text(lines.replace("a\t0\tone\t1\ttwo\t3", "a\t0\tone\t1\ttwo\t2"))
    with pytest.raises(VbsixError, match="belong to other rows"):
        load(source, inferred)
