"""Errors that a user can fix. The command line prints them without a traceback and exits with code 2."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from difflib import get_close_matches


def shorten(text: str, limit: int = 40) -> str:
    """A piece of user input, quoted, cut to a readable length."""
    return repr(text if len(text) <= limit else text[:limit] + "...")


MOST_LISTED = 40
"""How many names or problems a message lists; a longer list of names is left out where the nearest is known."""


class VbsixError(Exception):
    """Base of all errors that come from what the user gave, not from a fault of ours."""


def describe_os_error(error: OSError) -> str:
    """Which file, and what is wrong with it."""
    return f"{error.filename}: {error.strerror}" if error.filename else str(error)


class InvalidWorld(VbsixError):
    """A world's text that does not parse; the message names the wrong element."""


def with_article(words: str) -> str:
    """`a red hat`, `an orange hat`."""
    return f"{'an' if words[0] in 'aeiou' else 'a'} {words}"


@contextmanager
def naming(world: str) -> Iterator[None]:
    """Has the message about a world that does not parse begin with what it is: `--target: position 2 ...`."""
    try:
        yield
    except InvalidWorld as error:
        raise InvalidWorld(f"{world}: {error}") from None


class InvalidProgram(VbsixError):
    """A program that cannot run.

    Attributes:
        position: index of the rejected token in the program.
        token: the rejected token.
        reason: why it was rejected, for a person.
    """

    def __init__(self, position: int, token: str, reason: str):
        self.position, self.token, self.reason = position, token, reason
        super().__init__(f"token {position + 1}: {reason}")


class InvalidData(VbsixError):
    """A data file that cannot be used.

    Attributes:
        problems: every problem found, each with file, line and reason; the message shows the first of them.
    """

    def __init__(self, problems: Iterable[str]):
        self.problems = tuple(problems)
        shown, hidden = self.problems[:MOST_LISTED], len(self.problems) - MOST_LISTED
        super().__init__("\n".join([*shown, f"... and {hidden} more problems"] if hidden > 0 else shown))


class InvalidDomain(VbsixError):
    """A domain that does not keep what searches and networks rely on.

    Attributes:
        problems: every problem found, a sentence each.
    """

    def __init__(self, name: str, problems: Iterable[str]):
        self.problems = tuple(problems)
        super().__init__("\n".join(f"{name}: {problem}" for problem in self.problems))


class UnknownName(VbsixError):
    """A name that is not known; the message lists the known ones and the nearest."""

    def __init__(self, kind: str, name: str, known: Iterable[str]):
        known = sorted(known)
        nearest = get_close_matches(name, known, n=1)
        hint = f" Did you mean {nearest[0]!r}?" if nearest else ""
        listed = "" if nearest and len(known) > MOST_LISTED else f" Known: {', '.join(known)}."
        super().__init__(f"unknown {kind} {shorten(name)}.{hint}{listed}")
