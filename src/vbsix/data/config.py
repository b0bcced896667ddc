"""What a run learns from."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from vbsix.utilities.settings import setting


@dataclass(frozen=True)
class DataConfig:
    """What is learned from."""

    split: Literal["train", "train-orig"] = setting(
        "train",
        "SCONE's file to learn from. `train-orig` has the examples of 1 and 2 instructions that earlier papers used, "
        "one a row. On the embedded corpus: its rows, or their first 1 and 2 instructions as rows of their own.",
    )
    lengths: tuple[int, ...] = setting(
        (1, 2, 3),
        "Which prefixes of a row are training examples, in instructions; 0 for the whole row.",
        least=0,
    )
    suffixes: bool = setting(
        False,
        "Also train on suffix examples: where one example is a prefix of another, the rest of the longer one, starting "
        "from the shorter one's target.",
    )
    evaluation: tuple[int, ...] = setting(
        (1, 2, 3),
        "Which prefixes of a row are evaluated while training, in instructions; 0 for the whole row.",
        least=0,
    )
    max_words: int = setting(25, "Words of an instruction that are read; the rest is cut.", least=1)
    normalise: bool = setting(True, "Look words up without attached punctuation and with ordinals spelled out.")
    glove_words: int = setting(
        0,
        "Use only the first n words of the GloVe file, 0 for all. The paper uses 20,000, which leaves out `leftmost`, "
        "`rightmost` and `beaker`.",
        least=0,
    )
    oov_min_count: int = setting(
        0,
        "Out-of-vocabulary words that occur at least this often in training rows get random vectors of their own; 0 "
        "for none, so that all of them share one vector.",
        least=0,
    )
    dev_file: str = setting("", "For JSON lines: a second file to evaluate on. Without one, a share is held out.")
    dev_share: float = setting(0.1, "For JSON lines: the share of rows that is held out.", least=0, most=1)
    synthetic_rows: int = setting(3000, "Training rows of the embedded corpus.", least=1)
    synthetic_dev_rows: int = setting(
        200, "Evaluation rows of the embedded corpus, and as many with held-out phrasings.", least=1
    )
