"""Words and their fixed vectors: GloVe where there is a file of it, random vectors where there is none."""

from __future__ import annotations

import gzip
import logging
import re
import zlib
from collections import Counter
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from io import BufferedReader
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float32

from vbsix.utilities.errors import InvalidData

PADDING, UNKNOWN = 0, 1
"""The ids that are no word's."""

GLOVE_LIMIT = 20_000
"""How many words of GloVe the paper uses: the most frequent ones."""

RANDOM_SPREAD = 0.5
"""Standard deviation of random vectors, about that of GloVe's."""

_ORDINAL_WORDS = (
    "first second third fourth fifth sixth seventh eighth ninth tenth eleventh twelfth thirteenth fourteenth "
    "fifteenth sixteenth seventeenth eighteenth nineteenth twentieth"
)
_ENDINGS = {1: "st", 2: "nd", 3: "rd"}
_ORDINALS = {f"{n}{_ENDINGS.get(n, 'th')}": word for n, word in enumerate(_ORDINAL_WORDS.split(), start=1)}
_WITHOUT_PUNCTUATION = re.compile(r"[^\W_](?:.*[^\W_])?", re.DOTALL)
_logger = logging.getLogger("vbsix")


@dataclass(frozen=True, eq=False)
class Words:
    """A vocabulary with a vector for every word.

    Attributes:
        words: the word of every id; the names at ids 0 (padding) and 1 (unknown) are for show, no text reaches them.
        vectors: the vector of every id.
        normalise: whether a word that is not in the vocabulary is tried in the plainer forms that `spellings` gives.
    """

    words: tuple[str, ...]
    vectors: Float32[np.ndarray, "V D"]
    normalise: bool = True

    @classmethod
    def from_vectors(cls, vectors: Mapping[str, np.ndarray]) -> Words:
        """From a vector for each word. Case does not count. All other words are unknown."""
        rows = {word.lower(): np.asarray(vector, np.float32) for word, vector in vectors.items()}
        if not rows or len({vector.shape for vector in rows.values()}) > 1 or next(iter(rows.values())).ndim != 1:
            raise InvalidData(["word vectors: give at least one word, and vectors of one length"])
        if wrong := [word for word, vector in rows.items() if not np.isfinite(vector).all()]:
            raise InvalidData([f"word vectors: that of {wrong[0]!r} has a number that is not finite"])
        return _with_special(list(rows), np.stack(list(rows.values())), normalise=True)

    def to_json(self) -> dict[str, Any]:
        """The vocabulary without its vectors; see `read_words`."""
        kind = {"utterances": True} if isinstance(self, UtteranceVectors) else {}
        return {"words": list(self.words), "normalise": self.normalise, **kind}

    def lookup(self, token: str) -> int:
        """The id of the first form of the token that the vocabulary has, else 1."""
        forms = spellings(token) if self.normalise else (token.lower(),)
        return next((self._ids[form] for form in forms if form in self._ids), UNKNOWN)

    def encode(self, text: str) -> list[int]:
        """The ids of a text's words, which white space separates."""
        return [self.lookup(token) for token in text.split()]

    def unknown(self, text: str) -> tuple[str, ...]:
        """The words of a text that the vocabulary does not know, lower-cased, in order, each as often as it occurs."""
        return tuple(token.lower() for token in text.split() if self.lookup(token) == UNKNOWN)

    def unread(self, text: str, most: int) -> tuple[str, ...]:
        """The words of a text beyond the first `most`."""
        return tuple(text.split()[most:])

    def with_oov(self, texts: Iterable[str], least: int) -> Words:
        """Adds random vectors for out-of-vocabulary words that occur at least `least` times in the texts."""
        unknown = (word for text in texts for word in text.split() if self.lookup(word) == UNKNOWN)
        counts = Counter(_plainest(word, self.normalise) for word in unknown)
        words = sorted(word for word, count in counts.items() if count >= least)
        drawn = _draw(words, self.vectors.shape[1], seed=1)  # 0 has drawn padding and unknown
        return Words((*self.words, *words), np.concatenate([self.vectors, drawn]), self.normalise)

    def restrict(self, texts: Iterable[str]) -> Words:
        """The part of the vocabulary that these texts use; it encodes them into the same words and vectors."""
        kept = sorted({PADDING, UNKNOWN}.union(*(self.encode(text) for text in texts)))
        return replace(self, words=tuple(self.words[id_] for id_ in kept), vectors=self.vectors[kept])

    @cached_property
    def _ids(self) -> dict[str, int]:
        named = list(enumerate(self.words))[UNKNOWN + 1 :]
        return {word: id_ for id_, word in reversed(named)}  # the first of equal words counts


@dataclass(frozen=True, eq=False)
class UtteranceVectors(Words):
    """Vectors that were computed elsewhere for whole utterances, such as a pretrained transformer's.

    An entry of the vocabulary is an utterance and a place in it. A new utterance is unknown until its vectors are given
    too, as in `vbsix.load(run, words=...)`.
    """

    @classmethod
    def from_vectors(cls, vectors: Mapping[str, np.ndarray]) -> UtteranceVectors:
        """From a vector for each utterance, or a vector for each of its words, as an array [T, D]."""
        rows = {text: np.atleast_2d(np.asarray(array, np.float32)) for text, array in vectors.items()}
        if not rows or len({array.shape[1] for array in rows.values()}) > 1:
            raise InvalidData(["utterance vectors: give at least one utterance, and vectors of one length"])
        names = [_place(text, place) for text, array in rows.items() for place in range(len(array))]
        whole = _with_special(names, np.concatenate(list(rows.values())), normalise=False)
        return cls(whole.words, whole.vectors, normalise=False)

    def encode(self, text: str) -> list[int]:
        """The ids of an utterance's vectors; of an utterance without vectors, one unknown word."""
        ids = []
        while (entry := _place(text, len(ids))) in self._ids:
            ids.append(self._ids[entry])
        return ids or [UNKNOWN]

    def unknown(self, text: str) -> tuple[str, ...]:
        """The utterance, if it has no vectors."""
        return (text,) if self.encode(text) == [UNKNOWN] else ()

    def unread(self, text: str, most: int) -> tuple[str, ...]:
        """The utterance, if it has more than `most` vectors."""
        return (text,) if len(self.encode(text)) > most else ()


def _place(text: str, place: int) -> str:
    return f"{text}\x1f{place}"


def spellings(token: str) -> Iterator[str]:
    """The forms under which a word is looked up, ever plainer.

    It is lower-cased, then loses the punctuation around it (`Then,`), then a possessive 's (`man's`); an ordinal in
    digits (`2nd`) is spelt out.
    """
    lower = token.lower()
    yield lower
    if core := _WITHOUT_PUNCTUATION.search(lower):
        yield core[0]
        plain = core[0].removesuffix("'s").removesuffix("\u2019s")
        yield _ORDINALS.get(plain, plain)


def read_words(saved: Mapping[str, Any], vectors: np.ndarray) -> Words:
    """A vocabulary from what `Words.to_json` gave."""
    kind = UtteranceVectors if saved.get("utterances") else Words
    return kind(tuple(map(str, saved["words"])), vectors, bool(saved.get("normalise", True)))


def load_words(
    path: Path | None, texts: Iterable[str], limit: int | None = GLOVE_LIMIT, normalise: bool = True
) -> Words:
    """GloVe's words from `path`; where that file is missing, the words of the texts with random vectors."""
    if path is not None and path.exists():
        return load_glove(path, limit, normalise)
    _logger.warning("%s: word vectors are random, the same ones every time", f"no {path}" if path else "no GloVe file")
    return random_words(texts, normalise=normalise)


def load_glove(
    path: Path, limit: int | None = GLOVE_LIMIT, normalise: bool = True, wanted: Container[str] | None = None
) -> Words:
    """The first `limit` words (None: all) of a file in GloVe's text form: a line is a word and its numbers.

    Files of word2vec and fastText may begin with a line that says how many words and numbers follow. Padding and
    unknown words get random vectors, the same ones however much of the file is there. With `wanted`, only those words
    are read. Raises `InvalidData` with every malformed line.
    """
    words: list[str] = []
    rows: list[np.ndarray] = []
    problems: list[str] = []
    try:
        with _open(path) as lines:
            for number, line in enumerate(islice(lines, limit), start=1):
                if (number == 1 and _is_header(line)) or not (wanted is None or _first_word(line) in wanted):
                    continue
                try:
                    word, vector = _parse_line(line, len(rows[0]) if rows else None)
                    words.append(word)
                    rows.append(vector)
                except ValueError as error:
                    problems.append(f"{path}:{number}: {error}")
    except (OSError, EOFError, zlib.error) as error:
        raise InvalidData([f"{path}: cannot be read: {getattr(error, 'strerror', None) or error}"]) from error
    if not words and not problems:
        problems.append(f"{path}: no words in the file" if wanted is None else f"{path}: has no word of the examples")
    if problems:
        raise InvalidData(problems)
    return _with_special(words, np.stack(rows), normalise)


def load_vectors(path: Path, texts: Sequence[str], normalise: bool = True) -> Words:
    """The words of some texts, as far as a file of vectors has them, whatever its size.

    A file whose name ends in `.bin` has word2vec's binary form; one in `.gz` is compressed.
    """
    tokens = {token for text in texts for token in text.split()}
    wanted = {form for token in tokens for form in (*spellings(token), token.lower())}
    if not _is_binary(path):
        return load_glove(path, None, normalise, wanted)
    try:
        with _open(path) as file:
            found = dict(_read_binary(file, wanted))
    except (OSError, EOFError, ValueError, zlib.error) as error:
        reason = getattr(error, "strerror", None) or error
        raise InvalidData([f"{path}: cannot be read as word2vec's binary form: {reason}"]) from error
    if not found:
        raise InvalidData([f"{path}: has no word of the examples"])
    return _with_special(list(found), np.stack(list(found.values())), normalise)


def _is_binary(path: Path) -> bool:
    return path.name.removesuffix(".gz").endswith(".bin")


def _open(path: Path) -> BufferedReader | gzip.GzipFile:
    return gzip.open(path) if path.suffix == ".gz" else path.open("rb")


def _read_binary(file: BufferedReader | gzip.GzipFile, wanted: Container[str]) -> Iterator[tuple[str, np.ndarray]]:
    """The wanted words of word2vec's binary form: a line with two counts, then words and their numbers."""
    header = file.readline(100)
    if not _is_header(header):
        raise ValueError("it does not begin with the number of words and the length of their vectors")
    count, size = map(int, header.split())
    for _ in range(count):
        word = bytearray()
        while (letter := file.read(1)) not in (b" ", b""):
            word += letter
        numbers = file.read(4 * size)
        if len(numbers) < 4 * size:
            raise ValueError("it ends too early")
        if (text := word.decode(errors="replace").lstrip("\n")) in wanted:
            vector = np.frombuffer(numbers, "<f4")
            if not np.isfinite(vector).all():
                raise ValueError(f"a number of {text!r} is not finite")
            yield text, vector


def vector_size(path: Path) -> int | None:
    """How many numbers the vectors of a file have; None if that cannot be read."""
    try:
        with _open(path) as lines:
            first = lines.readline()
            if _is_binary(path):
                return int(first.split()[1]) if _is_header(first) else None
            return len(_parse_line(lines.readline() if _is_header(first) else first, None)[1])
    except (OSError, EOFError, ValueError, zlib.error):
        return None


def _is_header(line: bytes) -> bool:
    parts = line.split()
    return len(parts) == 2 and all(part.isdigit() for part in parts)


def _first_word(line: bytes) -> str:
    return line.partition(b" ")[0].decode(errors="replace")


def random_words(texts: Iterable[str], dimensions: int = 100, seed: int = 0, normalise: bool = True) -> Words:
    """The words of the texts, in their plainest form, with random vectors that depend on words and seed alone."""
    tokens = {token for text in texts for token in text.split()}
    words = sorted({_plainest(token, normalise) for token in tokens})
    return _with_special(words, _draw(words, dimensions, seed), normalise)


def _plainest(token: str, normalise: bool) -> str:
    return list(spellings(token))[-1] if normalise else token.lower()


def _draw(words: Sequence[str], dimensions: int, seed: int = 0) -> Float32[np.ndarray, "V D"]:
    return np.random.default_rng(seed).normal(0.0, RANDOM_SPREAD, (len(words), dimensions)).astype(np.float32)


def _parse_line(line: bytes, dimensions: int | None) -> tuple[str, np.ndarray]:
    try:
        word, *numbers = line.decode().rstrip("\r\n").rstrip(" ").split(" ")
        vector = np.array(list(map(float, numbers)))
    except UnicodeDecodeError:
        raise ValueError("not UTF-8 text") from None
    except ValueError as error:
        raise ValueError(f"expected a word and its numbers, but {error}") from None
    if not word or not numbers:
        raise ValueError("expected a word and its numbers, separated by single spaces")
    if dimensions not in (None, len(vector)):
        raise ValueError(f"{len(vector)} numbers, the first word has {dimensions}")
    if not (np.abs(vector) < np.finfo(np.float32).max).all():
        raise ValueError("a number is not finite")
    return word, vector.astype(np.float32)


def _with_special(words: list[str], vectors: np.ndarray, normalise: bool) -> Words:
    special = ("<padding>", "<unknown>")
    return Words((*special, *words), np.concatenate([_draw(special, vectors.shape[1]), vectors]), normalise)
