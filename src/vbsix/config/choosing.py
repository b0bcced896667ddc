"""The settings of a run: from a preset, a policy that it continues, the data, a file and the command line."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from vbsix.config import presets
from vbsix.config.schema import Config, changes, override, require_sense
from vbsix.config.toml import read_stages, read_toml
from vbsix.data.config import VOCABULARY
from vbsix.data.json_lines import choose_settings
from vbsix.data.words import vector_size
from vbsix.utilities.errors import VbsixError


def choose_config(
    domain: str | None,
    source: str,
    method: str | None,
    recipe: str | None,
    variant: str | None,
    file: Path | None,
    settings: Mapping[str, Any],
) -> Config:
    """The settings of a new run: a preset, changed by a file, changed by what is given besides.

    With JSON lines, some of the preset's settings come from the data.

    A file counts by its changes from the preset that it names, so that another method can be given with it.
    """
    kind = presets.data_kind(source)
    given = read_toml(file) if file else {}
    named = {name: given.get(name) for name in ("domain", "method", "recipe", "variant")}
    for name, value in {"domain": domain, "method": method, "recipe": recipe, "variant": variant}.items():
        named[name] = value if value is not None else settings.get(name, named[name])

    def make(names: Mapping[str, Any]) -> Config:
        chosen_recipe = names.get("recipe") or presets.DEFAULT_RECIPE
        name = named["domain"] or Config().domain
        return presets.preset(name, names.get("method"), chosen_recipe, names.get("variant") or "", data=kind)

    preset = make(named)
    if kind == "json-lines":
        steps = settings.get("training.steps", given.get("training.steps", preset.training.steps))
        chosen = choose_settings(Path(source), steps) if isinstance(steps, int) else {}
        preset = override(preset, {name: value for name, value in chosen.items() if name not in given})
    sized = "network.word" in {**given, **settings}
    if given:
        base = make(given)
        given = {name: value for name, value in changes(base, override(base, given)).items() if name not in named}
    own = {name: value for name, value in settings.items() if name not in named}
    chosen = override(preset, {**given, **own, **_resolved({**given, **own})})
    if chosen.data.vectors and not sized and (size := vector_size(Path(chosen.data.vectors))):
        chosen = override(chosen, {"network.word": size})
    return require_sense(chosen)


def _resolved(settings: Mapping[str, Any]) -> dict[str, str]:
    """The files among the settings as absolute paths: the run may be resumed from another folder."""
    files = {name: settings.get(name) for name in ("data.dev_file", "data.vectors")}
    return {name: str(Path(file).resolve()) for name, file in files.items() if isinstance(file, str) and file}


def continue_config(
    trained: Config, file: Path | None, settings: Mapping[str, Any], domain: str | None = None, *, has_words: bool
) -> Config:
    """The settings of a run that continues a policy: those it was trained with, changed by a file and by others.

    A policy that does not have its words' vectors may be given the file that it was trained with, as `data.vectors`.
    """
    fixed = [name for name in VOCABULARY if has_words or name != "data.vectors"]
    given = {**(read_toml(file) if file else {}), **settings}
    given = {name: value for name, value in given.items() if name not in ("method", "recipe", "variant")}
    given |= _resolved(given)
    if (wanted := domain or given.get("domain", trained.domain)) != trained.domain:
        raise VbsixError(f"the policy was trained for {trained.domain}, not for {wanted}.")
    config = require_sense(override(trained, given))
    if changed := next((name for name in fixed if name in changes(trained, config)), None):
        raise VbsixError(f"{changed}: a run that continues a policy has the policy's vocabulary.")
    return config


def choose_stages(stages: str | Path | Sequence[Mapping[str, Any]]) -> Sequence[Mapping[str, Any]]:
    """The settings of each stage: given, in a TOML file, or of a schedule that is known by its name."""
    if not isinstance(stages, str | Path):
        return stages
    is_file = str(stages) not in presets.STAGES and (Path(stages).exists() or Path(stages).suffix)
    return read_stages(Path(stages)) if is_file else presets.find_stages(str(stages))
