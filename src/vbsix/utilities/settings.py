"""Settings: dataclass fields that carry their help text and their bounds."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from vbsix.utilities.registry import Registry


@dataclass(frozen=True)
class Bounds:
    """The values that a setting accepts besides what its type says."""

    least: float | None = None
    most: float | None = None
    below: float | None = None
    choices: tuple[str, ...] | Registry = ()

    @property
    def names(self) -> Iterable[str]:
        """The choices, if they are limited."""
        return self.choices.names() if isinstance(self.choices, Registry) else self.choices


def setting(
    default: Any,
    help: str,
    *,
    least: float | None = None,
    most: float | None = None,
    below: float | None = None,
    choices: tuple[str, ...] | Registry = (),
) -> Any:
    """A field of a section of the configuration.

    Args:
        default: the value, whose type is the field's.
        help: what it means, for `vbsix config show`.
        least: the smallest number accepted.
        most: the largest number accepted.
        below: numbers must be smaller than this.
        choices: the names accepted.
    """
    return field(default=default, metadata={"help": help, "bounds": Bounds(least, most, below, choices)})
