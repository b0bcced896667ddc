"""Checkpoints: a folder for each, with a file for each seed and a manifest of checksums. No pickle."""

from __future__ import annotations

import dataclasses
import json
import logging
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import jax
import numpy as np

from vbsix.config.schema import Config, flatten_json
from vbsix.models.heads import Networks
from vbsix.training.step import Learner
from vbsix.utilities.errors import VbsixError
from vbsix.utilities.files import read_json, read_tensors, rename_folder, sha256, write_json, write_tensors
from vbsix.utilities.processes import writes_files

KEPT = 2
"""How many checkpoints of a run are kept: the last one, and the one before should that be damaged."""
MANIFEST = "manifest.json"
"""The last file of a checkpoint to be written."""
_logger = logging.getLogger("vbsix")


class Checkpoint(NamedTuple):
    step: int
    learners: Learner
    """Leaves have a leading axis over seeds."""
    progress: dict[str, Any]


Origin = Mapping[str, str | int | float | bool | list[int]]
"""Everything that determines what a run learns, by name."""
LONG = 40
"""Characters of a value that a message does not repeat."""


def save_checkpoint(
    folder: Path, step: int, learners: Learner, seeds: Sequence[int], origin: Origin, progress: Mapping[str, Any]
) -> Path:
    """Writes a checkpoint and removes those that are too old. Of several processes that compute together, one writes.

    Args:
        folder: where the checkpoints of a run are.
        step: steps done.
        learners: one for each seed, stacked.
        seeds: their seeds.
        origin: what the run is made of; a checkpoint is only read again where it is the same.
        progress: what else the run must know to go on, as JSON.
    """
    final = folder / _name(step)
    if not writes_files():
        return final
    beside = folder / f".{final.name}.part"
    for left_over in folder.glob(".step-*.part"):  # of a run that was killed while it wrote
        shutil.rmtree(left_over)
    arrays = jax.tree.map(np.asarray, learners)
    files = {}
    for place, seed in enumerate(seeds):
        name = f"seed-{seed}.safetensors"
        tensors = to_tensors(jax.tree.map(lambda leaf, place=place: leaf[place], arrays))
        files[name] = write_tensors(beside / name, tensors, {"step": step, "seed": seed})
    manifest = {"step": step, "origin": origin, "progress": progress, "files": files}
    write_json(beside / MANIFEST, manifest | {"sha256": _checksum(manifest)})
    rename_folder(beside, final)
    for old in _folders(folder)[:-KEPT]:
        shutil.rmtree(old)
    return final


def checkpoint_steps(folder: Path) -> set[int]:
    """The steps of which there are checkpoints, intact or not."""
    return {int(path.name.removeprefix("step-")) for path in _folders(folder)}


def drop_checkpoints_after(folder: Path, step: int) -> None:
    """Removes the checkpoints of later steps, which a run that goes back to a step makes again."""
    for later in _folders(folder):
        if later.name > _name(step):
            shutil.rmtree(later)


def load_checkpoint(
    folder: Path, like: Learner, seeds: Sequence[int], origin: Origin, step: int | None = None
) -> Checkpoint | None:
    """The newest checkpoint that is intact; None if there is none. A damaged one is reported and passed over.

    Args:
        folder: where the checkpoints of a run are.
        like: learners of the shapes wanted (`jax.eval_shape` gives them), stacked over seeds.
        seeds: the seeds wanted.
        origin: see `save_checkpoint`.
        step: take the checkpoint of this step alone; None if it is damaged.
    """
    found = _newest(folder, seeds, origin, step)
    return found and Checkpoint(found.step, _stack(found, like), found.progress)


def load_networks(folder: Path, like: Networks, seeds: Sequence[int]) -> tuple[int, Networks] | None:
    """The step and the networks of the newest intact checkpoint, without the optimiser; None if there is none.

    The policy is the averaged one, where there is one.
    """
    found = _newest(folder, seeds, None)
    if found is None:
        return None
    networks = _stack(found, like, ".networks")
    if any(name.startswith(".average") for name in found.files[0][1]):
        networks = networks._replace(policy=_stack(found, like.policy, ".average"))
    return found.step, networks


class _Found(NamedTuple):
    """An intact checkpoint: the tensors of each seed's file."""

    step: int
    progress: dict[str, Any]
    files: list[tuple[Path, dict[str, np.ndarray]]]


def _newest(folder: Path, seeds: Sequence[int], origin: Origin | None, step: int | None = None) -> _Found | None:
    damaged = []
    for candidate in reversed(_folders(folder)):
        if step is not None and candidate.name != _name(step):
            continue
        paths = [candidate / f"seed-{seed}.safetensors" for seed in seeds]
        try:
            manifest = _read_manifest(candidate / MANIFEST)
            for path in paths:
                if not path.exists() or sha256(path.read_bytes()) != manifest["files"].get(path.name):
                    raise VbsixError(f"{path}: damaged or missing.")
        except (VbsixError, OSError) as error:
            damaged.append(str(error))
            continue
        made_by = (manifest.get("origin") or {}).get("vbsix", "0.1")
        if origin is not None and made_by != origin["vbsix"]:
            raise VbsixError(
                f"{candidate}: made by vbsix {made_by}; vbsix {origin['vbsix']} cannot resume it, but can load, "
                "evaluate and export it. Start a new run in another folder."
            )
        if origin is not None and (differences := _differences(manifest.get("origin"), origin)):
            raise VbsixError(
                f"{candidate}: made with {' and '.join(differences)}; "
                "resume as its run was begun, or start a new run in another folder."
            )
        for reason in damaged:
            _logger.warning("%s Continuing from step %d instead.", reason, manifest["step"])
        return _Found(manifest["step"], manifest["progress"], [(path, read_tensors(path)[0]) for path in paths])
    if damaged and step is not None:
        _logger.warning("%s", " ".join(damaged))
    elif damaged:
        raise VbsixError("\n".join([*damaged, f"{folder}: no checkpoint is intact; start a new run."]))
    return None


def _stack(found: _Found, like: Any, part: str = "") -> Any:
    """The tree of all seeds, or a part of it, whose names begin with the given text."""
    one = jax.tree.map(lambda leaf: jax.ShapeDtypeStruct(leaf.shape[1:], leaf.dtype), like)

    def read(path: Path, tensors: dict[str, np.ndarray]) -> Any:
        wanted = {name.removeprefix(part): each for name, each in tensors.items() if name.startswith(part)}
        return from_tensors(wanted, one, path)

    trees = [read(*file) for file in found.files]
    return jax.tree.map(lambda *leaves: np.stack(leaves), *trees)


def to_tensors(tree: Any) -> dict[str, np.ndarray]:
    """The leaves of a tree by their path."""
    leaves = jax.tree_util.tree_flatten_with_path(tree)[0]
    return {jax.tree_util.keystr(path): np.asarray(leaf) for path, leaf in leaves}


def from_tensors(tensors: dict[str, np.ndarray], like: Any, path: Path) -> Any:
    """A tree from its leaves by path; `like` has their shapes and types."""
    wanted, structure = jax.tree_util.tree_flatten_with_path(like)
    names = [jax.tree_util.keystr(name) for name, _ in wanted]
    if set(names) != set(tensors):
        raise VbsixError(f"{path}: has other parameters than this version of vbsix trains with these settings.")
    for name, (_, leaf) in zip(names, wanted, strict=True):
        if tensors[name].shape != leaf.shape or tensors[name].dtype != leaf.dtype:
            raise VbsixError(f"{path}: {name} has shape {tensors[name].shape}, expected {leaf.shape}.")
    return jax.tree_util.tree_unflatten(structure, [tensors[name] for name in names])


def _differences(there: Mapping[str, Any] | None, here: Origin) -> list[str]:
    """What a checkpoint was made with, where it differs; long values are not repeated.

    A setting that did not exist yet had the value that is now its default.
    """
    if there is None:
        return ["an earlier version of vbsix"]
    found, there = [], {**flatten_json(dataclasses.asdict(Config())), **there}
    for name, value in here.items():
        if there.get(name) != value:
            short = max(len(str(value)), len(str(there.get(name)))) < LONG
            found.append(f"{name} = {there.get(name)}, not {value}" if short else f"other {name}")
    return found


def _read_manifest(path: Path) -> dict[str, Any]:
    manifest = read_json(path)
    covered = {name: value for name, value in manifest.items() if name not in ("format", "sha256")}
    if manifest.get("sha256") != _checksum(covered):
        raise VbsixError(f"{path}: damaged.")
    return manifest


def _checksum(manifest: Mapping[str, Any]) -> str:
    return sha256(json.dumps(manifest, sort_keys=True).encode())


def _name(step: int) -> str:
    return f"step-{step:08d}"


def _folders(folder: Path) -> list[Path]:
    """Finished checkpoints, the oldest first."""
    return sorted(path for path in folder.glob("step-*") if path.is_dir())
