"""Runs that differ in some settings: all combinations of values, and which of them share a compiled program."""

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from itertools import product
from typing import Any

from vbsix.config.schema import Config, changes, override, to_settings
from vbsix.utilities.errors import VbsixError
from vbsix.utilities.settings import Input

NAMES = ("method", "recipe", "variant")
"""Settings that say where the others come from, and change nothing themselves."""


def combinations(base: Config, values: Mapping[str, Sequence[Any]]) -> list[Config]:
    """The config with each combination of values, the last setting varying fastest."""
    for name in (*NAMES, "domain"):
        if name in values:
            raise VbsixError(f"{name} cannot vary within a sweep: make a sweep for each.")
    return [override(base, dict(zip(values, chosen, strict=True))) for chosen in product(*values.values())]


def describe(config: Config, names: Iterable[str]) -> str:
    """A run's name within a sweep: its values of the settings that vary, such as `learning_rate=0.001,fold=2`."""
    settings = to_settings(config)
    return ",".join(f"{name.rpartition('.')[2]}={_text(settings[name])}" for name in names)


def group_by_program(configs: Sequence[Config]) -> list[list[Config]]:
    """The configs that can be trained by one compiled program, together."""
    groups: dict[Config, list[Config]] = {}
    for config in configs:
        groups.setdefault(program_of(config), []).append(config)
    return list(groups.values())


def program_of(config: Config) -> Config:
    """What configs have in common that share a program: inputs have their default, or 0 where they are 0.

    0 turns a part of the program off, so that it is another one.
    """
    common: dict[str, Any] = dict.fromkeys(NAMES, "")
    settings, defaults = to_settings(config), to_settings(Config())
    for name in inputs():
        common[name] = type(settings[name])(0 if settings[name] == 0 and name != "data.fold" else defaults[name] or 1)
    return _set(config, common)


def varied(configs: Sequence[Config]) -> list[str]:
    """The settings that differ among configs."""
    found: dict[str, None] = {}
    for config in configs[1:]:
        found |= dict.fromkeys(name for name in changes(configs[0], config) if name not in NAMES)
    return [name for name in to_settings(configs[0]) if name in found]


def inputs() -> dict[str, Input]:
    """The settings that a program takes as inputs."""
    return {
        f"{section.name}.{entry.name}": entry.metadata["input_of"]
        for section in dataclasses.fields(Config)
        if dataclasses.is_dataclass(value := getattr(Config(), section.name))
        for entry in dataclasses.fields(value)
        if entry.metadata["input_of"]
    }


def with_inputs(config: Config, values: Mapping[str, Any]) -> Config:
    """The config with numbers that only the compiled program knows. It can be read, but not compared or hashed."""
    return _set(config, values)


def _set(config: Any, values: Mapping[str, Any]) -> Any:
    for name, value in values.items():
        section, _, last = name.rpartition(".")
        if section:
            last, value = section, _set(getattr(config, section), {last: value})
        config = copy.copy(config)
        object.__setattr__(config, last, value)  # `replace` would have it checked, and it may be no number yet
    return config


def _text(value: Any) -> str:
    text = "+".join(map(str, value)) if isinstance(value, tuple) else str(value)
    return text.replace("/", "_").replace("\\", "_")
