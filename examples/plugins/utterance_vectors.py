"""Vectors computed elsewhere: one vector per utterance, as a pretrained sentence encoder gives them."""

from __future__ import annotations

import json
import zlib
from pathlib import Path

import numpy as np

import vbsix
from vbsix.data.synthetic import generate

SIZE = 64


def embed(utterance):
    """Stands in for a pretrained model, such as SentenceTransformer(...).encode(utterance): hashed trigrams."""
    vector, padded = np.zeros(SIZE, np.float32), f"  {utterance} "
    for start in range(len(padded) - 2):
        vector[zlib.crc32(padded[start : start + 3].encode()) % SIZE] += 1
    return vector / np.linalg.norm(vector)


def main(path="tangrams.jsonl", rows=1000, **settings):
    examples = [one.row for one in generate("tangrams", rows, seed=1, utterances=1)]
    lines = [{"context": row.worlds[0], "instructions": row.utterances, "target": row.worlds[1]} for row in examples]
    Path(path).write_text("".join(json.dumps(line) + "\n" for line in lines))
    utterances = {text for row in examples for text in row.utterances}
    words = vbsix.UtteranceVectors.from_vectors({text: embed(text) for text in utterances})
    return vbsix.train("tangrams", path, words=words, network__word=SIZE, **settings)


if __name__ == "__main__":
    print(main().accuracy)
