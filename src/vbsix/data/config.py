"""What a run learns from."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from vbsix.utilities.settings import setting

VOCABULARY = ("data.vectors", "data.glove_words", "data.oov_min_count", "data.normalise")
"""Settings that make the vocabulary of a run. A run that continues a policy has the policy's."""


@dataclass(frozen=True)
class DataConfig:
    """What is learned from."""

    split: Literal["train", "train-orig"] = setting(
        "train",
        "The rows to learn from. `train`: the file of that name of SCONE, or the rows of the built-in corpus. "
        "`train-orig`: SCONE's file with the examples of 1 and 2 instructions that earlier papers used; of the "
        "built-in corpus, the first 1 and the first 2 instructions of each row, as rows of their own.",
    )
    lengths: tuple[int, ...] = setting(
        (1, 2, 3),
        "Which beginnings of a row are training examples: with `[1, 2, 3]`, a row gives three examples: its first "
        "instruction, its first two and its first three. 0 is the whole row. Training on JSON lines reads no worlds in "
        "between, so only `[0]` is possible.",
        least=0,
    )
    suffixes: bool = setting(
        False,
        "Also train on suffix examples: if a shorter example is the beginning of a longer one, the rest of the longer "
        "one is an example, too. It starts from the target of the shorter one.",
    )
    waypoints: bool = setting(
        False,
        "Where a shorter example is the beginning of a longer one, search only for programs of the longer one that "
        "pass through the shorter one's target. REINFORCE, which does not search, ignores it.",
    )
    least_posterior: float = setting(
        0.7,
        "Runs with teachers: learn only from rows where the inferred worlds have at least this posterior: their share "
        "of the probability of all correct programs that the teacher finds. 0 leaves out no row.",
        least=0,
        most=1,
        input_of="data",
    )
    evaluation: tuple[int, ...] = setting(
        (1, 2, 3),
        "Which beginnings of a row are evaluated during training, in instructions; 0 is the whole row.",
        least=0,
    )
    max_words: int = setting(25, "Words of an instruction that are read; the rest is cut.", least=1)
    normalise: bool = setting(
        True, "Look words up without attached punctuation or possessive 's, and with ordinals spelled out."
    )
    glove_words: int = setting(
        0,
        "Use only the first n words of the GloVe file; 0 for all. Guu et al.'s code uses "
        "20,000, which leaves out `leftmost`, `rightmost` and `beaker`.",
        least=0,
    )
    vectors: str = setting(
        "",
        "A file of word vectors, instead of the GloVe file of the data folder: the text form of GloVe, word2vec or "
        "fastText, or word2vec's binary form (`.bin`), also compressed (`.gz`). Words of the training rows that it "
        "lacks get random, fixed vectors of their own.",
    )
    oov_min_count: int = setting(
        0,
        "Words that occur at least this often in training rows get random, fixed vectors of their own, if the file of "
        "word vectors lacks them or there is none; the others share one vector. With 0, all words that GloVe lacks "
        "share one vector; without GloVe, each word of the data has its own.",
        least=0,
    )
    folds: int = setting(
        0,
        "Cross-validation: the number of folds into which the training rows are divided; 0 for none. One fold is left "
        "out of training and evaluated on.",
        least=0,
    )
    fold: int = setting(0, "Cross-validation: the fold that is left out, from 0 on.", least=0, input_of="data")
    dev_file: str = setting("", "JSON lines: a second file to evaluate on. Without one, a share of rows is set aside.")
    dev_share: float = setting(0.1, "JSON lines: the share of rows that is set aside for evaluation.", least=0, most=1)
    synthetic_rows: int = setting(3000, "Training rows of the built-in corpus.", least=1)
    synthetic_dev_rows: int = setting(
        200, "Evaluation rows of the built-in corpus: this many in `dev`, and this many in `held-out`.", least=1
    )
