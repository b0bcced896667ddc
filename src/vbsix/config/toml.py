"""Settings as text: TOML files, and assignments such as `search.beam=64`."""

from __future__ import annotations

import dataclasses
import json
import re
import textwrap
import tomllib
import typing
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Literal

from vbsix.config.schema import Config, flatten
from vbsix.utilities.errors import VbsixError

_OUTSIDE_BRACKETS = re.compile(r",(?![^\[]*\])")


def read_assignments(assignments: Iterable[str]) -> dict[str, Any]:
    """Settings given as `search.beam=64`; values are read as TOML, or else as plain text."""
    settings = {}
    for assignment in assignments:
        name, equals, text = assignment.partition("=")
        if not equals:
            raise VbsixError(f"{assignment!r} is not a setting: write NAME=VALUE, as in search.beam=64.")
        if name.strip() in ("method", "recipe", "variant"):
            raise VbsixError(f"{name.strip()} is not a setting to change: give --{name.strip()} {text.strip()}.")
        settings[name.strip()] = _read_value(text.strip())
    return settings


def read_variations(variations: Iterable[str]) -> dict[str, list[Any]]:
    """Settings given with several values, as `search.beam=32,64` or `data.lengths=[1,5],[4,5]`."""
    settings: dict[str, list[Any]] = {}
    for variation in variations:
        name, _, text = variation.partition("=")
        if name.strip() in settings:
            raise VbsixError(f"{name.strip()} varies already: give all its values at once.")
        values = [read_assignments([f"{name}={part}"]) for part in _OUTSIDE_BRACKETS.split(text)] if text else []
        if not values:
            raise VbsixError(f"{variation!r}: write NAME=VALUE,VALUE,... as in training.learning_rate=0.001,0.0003.")
        settings[name.strip()] = [next(iter(value.values())) for value in values]
    return settings


def read_toml(path: Path) -> dict[str, Any]:
    """The settings of a TOML file."""
    try:
        return dict(flatten(tomllib.loads(path.read_text(encoding="utf-8"))))
    except FileNotFoundError:
        raise VbsixError(f"{path}: no such file.") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise VbsixError(f"{path}: not a TOML file: {error}") from error


def read_stages(path: Path) -> list[dict[str, Any]]:
    """The settings of each stage in a TOML file, in which a stage is a table `[[stages]]`."""
    tables = read_toml(path)
    if wrong := sorted(name for name in tables if name.partition(".")[0] != "stages"):
        raise VbsixError(f"{path}: {wrong[0]} is in no stage; write it below [[stages]], or give it with --set.")
    found = tables.get("stages")
    if not isinstance(found, list) or not found or not all(isinstance(stage, dict) for stage in found):
        raise VbsixError(f"{path}: has no stages; write a table [[stages]] with settings for each.")
    return [dict(flatten(stage)) for stage in found]


def to_toml(config: Config) -> str:
    """The config as a TOML text that `read_toml` reads, with a comment that explains each setting."""
    lines, tables = [], []
    for entry in dataclasses.fields(config):
        value = getattr(config, entry.name)
        if dataclasses.is_dataclass(value):
            tables += ["", f"[{entry.name}]"]
            for inner in dataclasses.fields(value):
                tables += _lines(value, inner)
        else:
            lines += _lines(config, entry)
    return "\n".join([*lines, *tables]) + "\n"


def write_value(value: Any) -> str:
    """A setting's value in TOML."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, tuple | list):
        return f"[{', '.join(map(write_value, value))}]"
    return json.dumps(value, ensure_ascii=False) if isinstance(value, str) else repr(value)


def _lines(section: Any, entry: dataclasses.Field[Any]) -> Iterator[str]:
    wanted = typing.get_type_hints(type(section))[entry.name]
    choices = typing.get_args(wanted) if typing.get_origin(wanted) is Literal else entry.metadata["bounds"].names
    meaning = entry.metadata["help"] + (f" One of: {', '.join(choices)}." if choices else "")
    yield from textwrap.wrap(meaning, 100, initial_indent="# ", subsequent_indent="# ", break_on_hyphens=False)
    yield f"{entry.name} = {write_value(getattr(section, entry.name))}"


def _read_value(text: str) -> Any:
    try:
        return tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        return text
