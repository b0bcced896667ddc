"""Pages of the documentation, parts of which are made from files of results."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from vbsix.utilities.errors import VbsixError


def read_page(folder: Path, page: Path, results: Path) -> str:
    """The text of a page.

    Args:
        folder: that holds the other two.
        page: the file.
        results: the folder that the page is made from.
    """
    if not (folder / page).exists():
        raise VbsixError(f"{folder / page}: no such file; --out names the folder that holds {results}/ and {page}.")
    return (folder / page).read_text(encoding="utf-8")


def find_parts(text: str, names: Iterable[str]) -> list[str]:
    """The names of the parts that a text has."""
    return [part[1] for part in _parts(names).finditer(text)]


def fill_parts(text: str, names: Iterable[str], make: Callable[[str], str]) -> str:
    """The text with the parts between `<!-- NAME -->` and `<!-- end -->` replaced."""
    return _parts(names).sub(lambda part: f"<!-- {part[1]} -->\n\n{make(part[1])}\n\n<!-- end -->", text)


def _parts(names: Iterable[str]) -> re.Pattern[str]:
    return re.compile(rf"<!-- ({'|'.join(names)}) -->\n.*?<!-- end -->", re.DOTALL)


def to_markdown(rows: Sequence[Sequence[str]]) -> str:
    """A table; the first row is its heading."""
    heading, *others = (f"| {' | '.join(row)} |" for row in rows)
    return "\n".join([heading, "|" + "---|" * len(rows[0]), *others])
