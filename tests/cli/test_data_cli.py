from __future__ import annotations

import json

import pytest

from vbsix.data.download import GLOVE_FILE
from vbsix.domains.sail_maps import MAPS

SWAP = "1:0 2:1\tswap the first, two\t1:1 2:0"


@pytest.fixture
def folder(tmp_path):
    """A folder as `vbsix data fetch` leaves it, with made-up rows."""
    (tmp_path / "scone").mkdir()
    (tmp_path / "glove").mkdir()
    five = SWAP + "\tundo\t1:0 2:1" * 4
    (tmp_path / "scone" / "tangrams-train.tsv").write_text(f"a\t{five}\nb\t{five}\n")
    (tmp_path / "scone" / "tangrams-train-orig.tsv").write_text(f"1\t{SWAP}\n1\t{SWAP}\n1\t{SWAP}\n")
    (tmp_path / "glove" / GLOVE_FILE).write_text("swap 1 2\nthe 3 4\nfirst 5 6\n")
    return tmp_path


def test_sail_is_read_where_the_domain_finds_its_maps(vbsix, tmp_path, monkeypatch):
    monkeypatch.setenv("VBSIX_DATA", str(tmp_path))
    (tmp_path / "sail").mkdir()
    for name in MAPS:
        trace = "turn left\nLEFT(3,4,0);(3, 4, 270)"
        (tmp_path / "sail" / f"{name}.settrc").write_text(f"one\ny=1\tmap={name}\tx=2\n{trace}\n")
    ended = vbsix("data", "sail", "--out", str(tmp_path / "out"))
    assert ended.code == 0, ended.err
    line = json.loads((tmp_path / "out" / "sentences-l.jsonl").read_text())
    assert (line["context"], line["target"]) == ("l 3 4 0", "l 3 4 270")


def test_without_the_corpus_sail_says_how_to_get_it(vbsix, tmp_path, monkeypatch):
    monkeypatch.setenv("VBSIX_DATA", str(tmp_path))
    ended = vbsix("data", "sail", "--out", str(tmp_path / "out"))
    assert (ended.code, ended.out) == (2, "") and "vbsix data fetch --only sail" in ended.err


def test_an_unknown_data_set_is_refused(vbsix, tmp_path):
    ended = vbsix("data", "fetch", "--out", str(tmp_path), "--only", "sial")
    assert (ended.code, ended.out) == (2, "") and "Did you mean 'sail'?" in ended.err


def test_check_counts_what_is_there(vbsix, folder):
    ended = vbsix("data", "check", str(folder), "--json")
    report = json.loads(ended.out)
    assert ended.code == 0 and not ended.err
    orig, train = report["files"]
    assert train == {
        "file": str(folder / "scone" / "tangrams-train.tsv"),
        "domain": "tangrams",
        "split": "train",
        "problems": [],
        "rows": 2,
        "examples": 4,
        "utterances": 10,
        "words": 16,
        "longest_utterance": 4,
        "vocabulary": 5,
        "unknown_words": 10,
        "unknown_vocabulary": 2,
        "max_words": 15,
        "cut": 0.0,
        "notes": [],
        "search": "",
    }
    assert (orig["split"], orig["rows"], orig["examples"]) == ("train-orig", 3, 3)
    assert report["format"] == 1 and report["glove"] == str(folder / "glove" / GLOVE_FILE)


def test_check_takes_the_scone_folder_itself(vbsix, folder):
    ended = vbsix("data", "check", str(folder / "scone"))
    assert ended.code == 0 and "no GloVe file" in ended.out


def test_check_prints_a_table_that_fits_a_terminal(vbsix, folder):
    ended = vbsix("data", "check", str(folder))
    assert ended.code == 0
    (line,) = [line for line in ended.out.splitlines() if "tangrams-train.tsv" in line and len(line) <= 80]
    assert line.split() == ["tangrams-train.tsv", "2", "4", "1.6", "4", "5", "2", "62.5%"]


def test_check_reports_the_problems_of_all_files_and_exits_with_2(vbsix, folder):
    (folder / "scone" / "tangrams-dev.tsv").write_text(f"a\t{SWAP}\nb\t1:8\tgo\t1:0\n")
    (folder / "scone" / "scene-dev.tsv").write_text("")
    (folder / "scone" / "tangrams-test.tsv").write_text(f"short\t{SWAP}\n")
    (folder / "scone" / "tangram-train.tsv").write_text(f"a\t{SWAP}\n")
    (folder / "glove" / GLOVE_FILE).write_text("the 1 2\nman 1\n")
    ended = vbsix("data", "check", str(folder))
    assert ended.code == 2 and "tangrams-train.tsv" in ended.out
    lines = ended.err.splitlines()
    for start in (
        "scone/tangrams-dev.tsv:2: the first world: position 1 ('8')",
        "scone/scene-dev.tsv: no rows",
        "scone/tangrams-test.tsv:1: an example of 3 utterances cannot be made of 1",
        "scone/tangram-train.tsv: expected a name such as",
        f"glove/{GLOVE_FILE}:2: 1 numbers",
    ):
        assert any(line.startswith(f"{folder}/{start}") for line in lines), start


def test_check_prints_the_first_problems_of_a_file_and_json_has_all(vbsix, folder):
    (folder / "scone" / "tangrams-dev.tsv").write_text("x\n" * 1000)
    ended = vbsix("data", "check", str(folder))
    assert ended.code == 2 and len(ended.err.splitlines()) == 21 and "and 980 more" in ended.err
    ended = vbsix("data", "check", str(folder), "--json")
    assert ended.code == 2
    assert sum(len(file["problems"]) for file in json.loads(ended.out)["files"]) == 1000


def test_check_names_what_it_did_not_check(vbsix, folder):
    (folder / "notes.txt").write_text("")
    (folder / "scone" / "more").mkdir()
    report = json.loads(vbsix("data", "check", str(folder), "--json").out)
    assert report["unchecked"] == [str(folder / "notes.txt"), str(folder / "scone" / "more")]
    assert "notes.txt" in vbsix("data", "check", str(folder)).out


def test_check_of_a_folder_without_data_fails(vbsix, tmp_path):
    ended = vbsix("data", "check", str(tmp_path))
    assert ended.code == 2 and "no data files" in ended.err
    ended = vbsix("data", "check", str(tmp_path / "nowhere"))
    assert ended.code == 2 and "no such folder" in ended.err and len(ended.err.splitlines()) == 1


@pytest.mark.slow
def test_check_agrees_with_what_is_known_of_scone(vbsix, data_dir):
    ended = vbsix("data", "check", str(data_dir), "--json")
    assert ended.code == 0
    files = {f"{file['domain']} {file['split']}": file for file in json.loads(ended.out)["files"]}
    assert {name: file["rows"] for name, file in files.items() if "orig" not in name} == {
        "alchemy dev": 245,
        "alchemy test": 899,
        "alchemy train": 3657,
        "scene dev": 198,
        "scene test": 1035,
        "scene train": 3352,
        "tangrams dev": 199,
        "tangrams test": 800,
        "tangrams train": 4189,
    }
    for name, file in files.items():
        if "orig" not in name:
            assert file["utterances"] == 5 * file["rows"] and file["examples"] == 2 * file["rows"]
        assert file["unknown_words"] < 0.12 * file["words"]


@pytest.mark.parametrize(
    ("only", "names", "said"),
    [
        ((), ("scone", "glove"), "SCONE, GloVe 6B: in "),
        (("--only", "math"), ["math"], "MAWPS, ASDiv-A and SVAMP: in "),
    ],
)
def test_fetch_downloads_into_the_folder(vbsix, tmp_path, monkeypatch, only, names, said):
    asked = []
    monkeypatch.setattr("vbsix.data.download.fetch", lambda *given: asked.append(given) or [tmp_path / "x.tsv"])
    ended = vbsix("data", "fetch", "--out", str(tmp_path), *only)
    assert (ended.code, ended.err, asked) == (0, "", [(tmp_path, names)])
    assert ended.out == f"{tmp_path / 'x.tsv'}\n{said}{tmp_path}\n"


def test_fetch_says_what_went_wrong_in_one_message(vbsix, tmp_path):
    (tmp_path / "scone").mkdir()
    (tmp_path / "scone" / "scene-dev.tsv").write_text("mine")
    ended = vbsix("data", "fetch", "--out", str(tmp_path))
    assert ended.code == 2 and "scene-dev.tsv" in ended.err and "Traceback" not in ended.err


def test_synth_writes_files_that_check_accepts(vbsix, tmp_path):
    ended = vbsix("data", "synth", "tangrams", "--rows", "20", "--seed", "1", "--out", str(tmp_path))
    assert ended.code == 0 and str(tmp_path) in ended.out
    report = json.loads(vbsix("data", "check", str(tmp_path), "--json").out)
    assert sum(file["rows"] for file in report["files"]) == 20 and not report["problems"]


def test_synth_of_an_unknown_domain_names_the_known_ones(vbsix, tmp_path):
    ended = vbsix("data", "synth", "tangram", "--out", str(tmp_path))
    assert ended.code == 2 and "tangrams" in ended.err
