"""Settings: dataclass fields that carry their help text and their bounds."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, Literal

from jaxtyping import Array, Float, Int

from vbsix.utilities.registry import Registry

Number = int | float | Int[Array, ""] | Float[Array, ""]
"""A setting that may be known to the compiled program alone."""
Input = Literal["step", "start", "data"]
"""What takes a setting as an input: the training step, the initial parameters, or the choice of training rows. Runs
that differ in inputs alone can share a compiled program."""


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
    input_of: Input | None = None,
) -> Any:
    """A field of a section of the configuration.

    Args:
        default: the value, whose type is the field's.
        help: what it means, for `vbsix config show`.
        least: the smallest number accepted.
        most: the largest number accepted.
        below: numbers must be smaller than this.
        choices: the names accepted.
        input_of: what takes it as an input; None if another value makes another program.
    """
    bounds = Bounds(least, most, below, choices)
    return field(default=default, metadata={"help": help, "bounds": bounds, "input_of": input_of})


def is_off(value: Any) -> bool:
    """Whether a setting is 0, which turns a part of the program off.

    A number that only the compiled program knows is never 0: runs that share a program have the same parts.
    """
    return isinstance(value, int | float) and value == 0
