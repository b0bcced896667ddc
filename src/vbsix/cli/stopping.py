"""What a command does when its user stops it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import typer

from vbsix.runs.loop import Interrupted


@contextmanager
def exit_when_stopped(again: Callable[[], str] | None = None) -> Iterator[None]:
    """Ends with exit code 130 when its user stops it, and prints how to continue, if there is anything to continue."""
    try:
        yield
    except (Interrupted, KeyboardInterrupt) as stopped:
        typer.echo(str(stopped) or (f"Stopped. Continue with: {again()}" if again else "Stopped."), err=True)
        raise typer.Exit(130) from None
