from __future__ import annotations

import dataclasses
import gzip
import json
import logging
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from vbsix import get_domain
from vbsix.config.choosing import choose_config
from vbsix.data.dataset import load_dataset
from vbsix.data.words import (
    PADDING,
    UNKNOWN,
    UtteranceVectors,
    Words,
    load_glove,
    load_vectors,
    load_words,
    random_words,
    read_words,
    vector_size,
)
from vbsix.utilities.errors import InvalidData

VOCABULARY = ("<padding>", "<unknown>", "move", "the", "second", "man", "then", "he's", "2nd-hand", ",")
WORDS = Words(VOCABULARY, np.arange(30, dtype=np.float32).reshape(10, 3))


@pytest.fixture
def glove(tmp_path):
    def write(content: str | bytes) -> Path:
        path = tmp_path / "glove.txt"
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return path

    return write


@pytest.mark.parametrize(
    ("token", "found"),
    [
        ("the", "the"),
        ("THE", "the"),
        ("then,", "then"),
        ("(Then", "then"),
        ("**second**", "second"),
        ("2nd", "second"),
        ("2nd,", "second"),
        ("2nd-hand", "2nd-hand"),
        ("man's", "man"),
        ("man\N{RIGHT SINGLE QUOTATION MARK}s.", "man"),
        ("he's", "he's"),
        (",", ","),
        ("--", "<unknown>"),
        ("22nd", "<unknown>"),
        ("m-an", "<unknown>"),
        ("<padding>", "<unknown>"),
        ("", "<unknown>"),
    ],
)
def test_the_first_form_that_the_vocabulary_has_is_found(token, found):
    assert VOCABULARY[WORDS.lookup(token)] == found


def test_normalising_can_be_turned_off():
    strict = Words(VOCABULARY, WORDS.vectors, normalise=False)
    assert strict.encode("THEN then, 2nd man's") == [strict.lookup("then"), UNKNOWN, UNKNOWN, UNKNOWN]


def test_every_ordinal_is_spelt_out():
    spelt = ["first", "second", "third", "fourth", "tenth", "eleventh", "twelfth", "thirteenth", "twentieth"]
    words = random_words(spelt)
    tokens = "1st 2nd 3rd 4th 10th 11th 12th 13th 20th"
    assert [words.words[id_] for id_ in words.encode(tokens)] == spelt


def test_unknown_words_are_told_in_order_and_as_often_as_they_occur():
    assert WORDS.unknown("Move the Flask, then the flask,") == ("flask,", "flask,")


def test_a_text_without_words_has_no_ids():
    assert WORDS.encode("") == [] and WORDS.encode(" \t ") == []


def test_a_long_token_takes_no_long_time():
    assert WORDS.lookup("-" * 200_000 + "x" + "-" * 200_000 + "y") == UNKNOWN


@given(texts=st.lists(st.text(st.sampled_from("the man's,2nd .X"))), others=st.text())
def test_a_restricted_vocabulary_encodes_its_texts_alike(texts, others):
    small = WORDS.restrict(texts)
    for text in texts:
        np.testing.assert_array_equal(small.vectors[small.encode(text)], WORDS.vectors[WORDS.encode(text)])
        assert small.unknown(text) == WORDS.unknown(text)
    assert small.words[:2] == WORDS.words[:2]
    assert set(small.words[2:]) <= {WORDS.words[id_] for text in texts for id_ in WORDS.encode(text)}
    small.encode(others)


def test_glove_is_read_in_order_up_to_the_limit(glove):
    words = load_glove(glove("the 0.5 -1\n, 2e-1 3\r\n2/3 1 2"), limit=2)
    assert words.words[2:] == ("the", ",")
    np.testing.assert_array_equal(words.vectors[2:], np.array([[0.5, -1], [0.2, 3]], np.float32))
    assert load_glove(glove("a 1\nb 2\nc 3\n"), limit=None).words[2:] == ("a", "b", "c")


def test_words_with_unusual_spaces_stay_whole(glove):
    assert load_glove(glove("a\N{NO-BREAK SPACE}b 1 2\nc\x85d\u2028 3 4\n")).words[2:] == ("a\xa0b", "c\x85d\u2028")


def test_the_first_of_equal_words_counts(glove):
    words = load_glove(glove("a 1\na 2\n"))
    assert words.vectors[words.lookup("a")] == 1


def test_padding_and_unknown_are_the_same_however_much_of_the_file_is_there(glove):
    few, many = load_glove(glove("a 1 2 3 4\n")), load_glove(glove("a 1 2 3 4\nb 5 6 7 8\n"))
    special = few.vectors[[PADDING, UNKNOWN]]
    assert 0.1 < special.std() < 1 and (special[0] != special[1]).all()
    np.testing.assert_array_equal(special, many.vectors[[PADDING, UNKNOWN]])


def test_all_malformed_lines_are_reported_together(glove):
    lines = ["good 1 2", "short 1", "word x y", "lonely", "", "inf 1 inf", "big 1 1e300", "nan nan 1", "good 3 4"]
    path = glove("\n".join(lines).encode() + b"\n\xff 1 2\n")
    with pytest.raises(InvalidData) as caught:
        load_glove(path)
    assert [problem.split(": ")[0] for problem in caught.value.problems] == [
        f"{path}:{line}" for line in (2, 3, 4, 5, 6, 7, 8, 10)
    ]
    assert "1 numbers, the first word has 2" in caught.value.problems[0]
    assert "not UTF-8" in caught.value.problems[-1]


def test_an_empty_file_and_a_folder_are_no_glove(glove, tmp_path):
    with pytest.raises(InvalidData, match="no words"):
        load_glove(glove(""))
    with pytest.raises(InvalidData, match="cannot be read"):
        load_glove(tmp_path)


@given(content=st.binary() | st.text().map(str.encode) | st.text(st.sampled_from("a 1.\n-e")).map(str.encode))
def test_any_file_gives_words_or_our_error(content, tmp_path_factory):
    path = tmp_path_factory.mktemp("glove") / "glove.txt"
    path.write_bytes(content)
    try:
        words = load_glove(path)
    except InvalidData as error:
        assert error.problems
    else:
        assert len(words.words) == len(words.vectors) and np.isfinite(words.vectors).all()


def test_random_words_are_those_of_the_texts_in_their_plainest_form():
    words = random_words(["Then, the 2nd man's hat", "then {}"], dimensions=7)
    assert words.words[2:] == ("hat", "man", "second", "the", "then", "{}")
    assert words.vectors.shape == (8, 7) and words.vectors.dtype == np.float32
    assert words.unknown("then the 2nd, man's hat {}") == ()


def test_random_vectors_depend_on_words_and_seed_alone():
    texts = ["the green man", "leaves"]
    first, again, other = random_words(texts), random_words(reversed(texts)), random_words(texts, seed=1)
    assert first.words == again.words
    np.testing.assert_array_equal(first.vectors, again.vectors)
    assert (first.vectors != other.vectors).any()


def test_frequent_out_of_vocabulary_words_can_have_vectors_of_their_own(glove):
    words = load_glove(glove(b"pour 1 2\nthe 3 4\n"))
    own = words.with_oov(["pour 2/3, 2/3 of the 3/4", "the 2/3 pour"], least=3)
    assert own.words == (*words.words, "2/3")
    np.testing.assert_array_equal(own.vectors[:-1], words.vectors)
    assert own.encode("Pour 2/3") == [2, 4] and own.encode("3/4") == [UNKNOWN]
    assert (own.vectors[4] != own.vectors[:4]).all()
    assert words.with_oov([], least=1).words == words.words


def test_random_words_without_texts_know_nothing():
    assert random_words([]).encode("the man") == [UNKNOWN, UNKNOWN]


def test_without_a_glove_file_random_vectors_are_used_and_said_in_one_line(tmp_path, caplog):
    with caplog.at_level(logging.WARNING, logger="vbsix"):
        nameless = load_words(None, ["the man"])
        missing = load_words(tmp_path / "glove.txt", ["the man"])
    assert nameless.words == missing.words == random_words(["the man"]).words
    messages = [record.getMessage() for record in caplog.records]
    assert len(messages) == 2 and all("random" in message and "\n" not in message for message in messages)
    assert str(tmp_path / "glove.txt") in messages[1]


def test_with_a_glove_file_nothing_is_said(glove, caplog):
    assert load_words(glove("the 1 2\n"), ["man"]).words[2:] == ("the",)
    assert not caplog.records


def test_normalising_helps_on_scone(scone_data, glove_file):
    files = [scone_data / f"{domain}-train.tsv" for domain in ("alchemy", "scene", "tangrams")]
    lines = [line for file in files for line in file.read_text().split("\n")]
    counts = Counter(token for line in lines for text in line.split("\t")[2::2] for token in text.split())

    def unknown(words: Words) -> int:
        return sum(count for token, count in counts.items() if words.lookup(token) == UNKNOWN)

    for limit, share in ((20_000, 0.65), (None, 0.1)):
        words = load_glove(glove_file, limit)
        assert unknown(words) < share * unknown(dataclasses.replace(words, normalise=False))


def test_vectors_of_whole_utterances():
    """One utterance has a vector for each of its three word pieces, the other one for all of it."""
    pieces, whole = np.arange(6, dtype=np.float32).reshape(3, 2), np.array([7.0, 8.0])
    words = UtteranceVectors.from_vectors({"remove it": pieces, "undo that": whole})
    np.testing.assert_array_equal(words.vectors[words.encode("remove it")], pieces)
    np.testing.assert_array_equal(words.vectors[words.encode("undo that")], [whole])
    assert (words.unknown("undo that"), words.unknown("undo")) == ((), ("undo",))
    assert words.encode("undo") == [UNKNOWN], "an utterance without vectors is one unknown word"
    few = words.restrict(["undo that"])
    np.testing.assert_array_equal(few.vectors[few.encode("undo that")], [whole])
    assert few.encode("remove it") == [UNKNOWN]
    again = read_words(json.loads(json.dumps(words.to_json())), words.vectors)
    assert isinstance(again, UtteranceVectors) and again.encode("remove it") == words.encode("remove it")


@pytest.mark.parametrize("vectors", [{}, {"one": np.zeros(2), "two": np.zeros((1, 3))}])
def test_vectors_of_utterances_have_one_length(vectors):
    with pytest.raises(InvalidData, match="utterance vectors: give at least one utterance, and vectors of one length"):
        UtteranceVectors.from_vectors(vectors)


VECTORS = {"red": (1, 2), "unused": (3, 4), "blue": (5, 6)}
GLOVE = b"red 1 2\nunused 3 4\nblue 5 6\n"
BINARY = b"3 2\n" + b"".join(
    word.encode() + b" " + np.array(vector, "<f4").tobytes() + b"\n" for word, vector in VECTORS.items()
)
FILES = {
    "glove.txt": GLOVE,
    "fasttext.vec": b"3 2\n" + GLOVE,
    "glove.txt.gz": gzip.compress(GLOVE),
    "word2vec.bin": BINARY,
    "word2vec.bin.gz": gzip.compress(BINARY.replace(b"\n", b"").replace(b"3 2", b"3 2\n")),
}


@pytest.mark.parametrize("name", FILES)
def test_vectors_for_json_lines_come_from_a_file(tmp_path, name):
    vectors = tmp_path / name
    vectors.write_bytes(FILES[name])
    assert vector_size(vectors) == 2
    examples = tmp_path / "examples.jsonl"
    lines = [{"context": "1:0 2:3", "instructions": [f"Red, blue zork {n}"], "target": "1:3"} for n in range(3)]
    examples.write_text("".join(json.dumps(line) + "\n" for line in lines))
    config = choose_config("tangrams", str(examples), None, None, None, None, {"data.vectors": str(vectors)})
    assert config.network.word == 2
    dataset = load_dataset(config.data, get_domain("tangrams"), str(examples), word_size=2)
    found = {word: dataset.words.vectors[id_].tolist() for id_, word in enumerate(dataset.words.words)}
    assert (found["red"], found["blue"]) == ([1, 2], [5, 6])
    assert "unused" not in found
    assert found["zork"] != found["<unknown>"], "a word that the file lacks has its own vector"


@pytest.mark.parametrize("has_file", [True, False])
@pytest.mark.parametrize(("least", "own"), [(2, {"rare", "zork"}), (3, {"zork"}), (4, set())])
def test_words_of_json_lines_that_occur_often_enough_have_vectors_of_their_own(tmp_path, has_file, least, own):
    examples = tmp_path / "examples.jsonl"
    said = ["red zork", "red zork rare", "blue zork rare once", "red blue"]
    lines = [{"context": f"1:{n} 2:4", "instructions": [text], "target": "1:4"} for n, text in enumerate(said)]
    examples.write_text("".join(json.dumps(line) + "\n" for line in lines))
    (tmp_path / "some.vec").write_bytes(GLOVE)
    settings = {"data.vectors": str(tmp_path / "some.vec")} if has_file else {"network.word": 2}
    settings |= {"data.oov_min_count": least, "data.dev_file": str(examples)}
    config = choose_config("tangrams", str(examples), None, None, None, None, settings)
    words = load_dataset(config.data, get_domain("tangrams"), str(examples), word_size=2).words
    frequent = {"red", "blue"} if has_file else {word for word, count in (("red", 3), ("blue", 2)) if count >= least}
    assert {*words.words} - {"<padding>", "<unknown>"} == own | frequent
    assert words.unknown("zork rare once") == tuple(word for word in ("zork", "rare", "once") if word not in own)


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (BINARY[:-6], "it ends too early"),
        (b"\xba\x16\x4f\x2f" + BINARY, "it does not begin with the number of words"),  # fastText's own form
        (b"1 2\nred " + np.array([1, np.nan], "<f4").tobytes(), "a number of 'red' is not finite"),
        (b"1 2\nblue " + bytes(8), "has no word of the examples"),
    ],
)
def test_what_is_not_word2vec_s_binary_form_is_one_message(tmp_path, content, told):
    path = tmp_path / "some.bin"
    path.write_bytes(content)
    with pytest.raises(InvalidData, match=told):
        load_vectors(path, ["red"])


def test_vectors_come_from_arrays():
    words = Words.from_vectors({word: np.array(vector) for word, vector in VECTORS.items()})
    assert [words.vectors[id_].tolist() for id_ in words.encode("Red, blue")] == [[1, 2], [5, 6]]
    assert words.unknown("zork red") == ("zork",)
    for wrong in ({}, {"red": np.zeros(2), "blue": np.zeros(3)}, {"red": np.zeros((1, 2))}):
        with pytest.raises(InvalidData, match="word vectors: give at least one word, and vectors of one length"):
            Words.from_vectors(wrong)
    with pytest.raises(InvalidData, match="that of 'red' has a number that is not finite"):
        Words.from_vectors({"Red": np.array([1.0, np.nan])})
    assert Words.from_vectors({"Red": np.ones(2)}).unknown("red") == ()


def test_a_file_without_a_word_of_the_examples_is_refused(tmp_path):
    (tmp_path / "some.vec").write_text("red 1 2\n")
    with pytest.raises(InvalidData, match="has no word of the examples"):
        load_vectors(tmp_path / "some.vec", ["blue"])
    assert vector_size(tmp_path / "none.vec") is None


COMPRESSED = gzip.compress(GLOVE, mtime=0)


@pytest.mark.parametrize(
    "content",
    [GLOVE, COMPRESSED[:-9], COMPRESSED[:10] + b"\xff" + COMPRESSED[11:]],
    ids=["plain", "cut off", "changed"],
)
def test_a_damaged_compressed_file_is_one_message(tmp_path, content):
    (tmp_path / "some.gz").write_bytes(content)
    assert vector_size(tmp_path / "some.gz") in (None, 2)
    with pytest.raises(InvalidData, match=r"some\.gz: cannot be read: (Not|Comp|Error)"):
        load_vectors(tmp_path / "some.gz", ["blue"])
