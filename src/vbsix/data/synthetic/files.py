"""A synthetic corpus as files: rows that SCONE's reader takes, and the programs beside them."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from pathlib import Path

from vbsix.data.synthetic.corpus import Synthetic, generate
from vbsix.domains.names import base_name
from vbsix.utilities.errors import VbsixError

SPLITS = {"train": 0.8, "dev": 0.1, "test": 0.1}
"""The share of the rows that goes into each file."""

FORMAT = "vbsix-programs"
FORMAT_VERSION = 1


def write_corpus(domain_name: str, rows: int, seed: int, out: Path) -> list[Path]:
    """Writes `<domain>-train.tsv`, `-dev.tsv`, `-test.tsv` and `<domain>-programs.jsonl`.

    All rows use seen phrasings, so what is trained on them can be tested on held-out ones. The first line of the
    programs' file tells its format and how the corpus was made; then comes a line for each row, with its id.

    Returns:
        The files written.

    Raises:
        VbsixError: there are too few rows for the three files, or the folder cannot be written.
    """
    if rows < len(SPLITS):
        raise VbsixError(f"{rows} rows are too few for {len(SPLITS)} files, one row each at least.")
    domain_name = base_name(domain_name)
    corpus = generate(domain_name, rows, seed, phrasings="seen")
    texts = {f"{domain_name}-{split}.tsv": _tsv(part) for split, part in _split(corpus).items()}
    header = {"format": FORMAT, "version": FORMAT_VERSION, "domain": domain_name, "rows": rows, "seed": seed}
    lines = [header, *({"id": made.row.id, "programs": made.programs} for made in corpus)]
    texts[f"{domain_name}-programs.jsonl"] = "".join(json.dumps(line) + "\n" for line in lines)
    return _write(texts, out)


def _split(corpus: Sequence[Synthetic]) -> dict[str, Sequence[Synthetic]]:
    held = {split: max(1, round(share * len(corpus))) for split, share in SPLITS.items() if split != "train"}
    sizes = {"train": len(corpus) - sum(held.values()), **held}
    parts, start = {}, 0
    for split, size in sizes.items():
        parts[split], start = corpus[start : start + size], start + size
    return parts


def _tsv(corpus: Sequence[Synthetic]) -> str:
    lines = []
    for made in corpus:
        first, *after = made.row.worlds
        fields = [made.row.id, first]
        for utterance, world in zip(made.row.utterances, after, strict=True):
            fields += [utterance, world]
        lines.append("\t".join(map(str, fields)) + "\n")
    return "".join(lines)


def _write(texts: dict[str, str], out: Path) -> list[Path]:
    """Writes all files beside their places, then renames them, so that no half-written file is ever found there."""
    parts = {out / name: out / f".{name}.{os.getpid()}.part" for name in texts}
    try:
        out.mkdir(parents=True, exist_ok=True)
        try:
            for part, text in zip(parts.values(), texts.values(), strict=True):
                part.write_text(text, encoding="utf-8", newline="\n")
            for path, part in parts.items():
                part.replace(path)
        finally:
            for part in parts.values():
                part.unlink(missing_ok=True)
    except OSError as error:
        raise VbsixError(f"{out}: the corpus cannot be written there: {error.strerror or error}") from error
    return list(parts)
