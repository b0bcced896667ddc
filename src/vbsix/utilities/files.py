"""Writing files so that none is ever left half written, and reading them without running code."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save

from vbsix.utilities.errors import VbsixError
from vbsix.utilities.processes import writes_files

FORMAT = 1
"""Version of all the files that we write."""


def write_bytes(path: Path, content: bytes) -> None:
    """Writes a file beside its final name, then renames it. Of several processes that compute together, one writes."""
    if not writes_files():
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    beside = path.with_name(f".{path.name}.part")
    try:
        with beside.open("wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        beside.replace(path)
    except OSError as error:
        beside.unlink(missing_ok=True)
        raise OSError(error.errno, error.strerror, str(path)) from error  # a full disk does not say which file


def write_json(path: Path, content: Mapping[str, Any]) -> None:
    """Writes a JSON object with the format's version."""
    write_bytes(path, (json.dumps({"format": FORMAT, **content}, indent=2) + "\n").encode())


def read_json(path: Path) -> dict[str, Any]:
    """Reads what `write_json` wrote."""
    try:
        content = json.loads(path.read_bytes())
    except FileNotFoundError:
        raise VbsixError(f"{path}: no such file.") from None
    except ValueError as error:
        raise VbsixError(f"{path}: not a JSON file: {error}.") from error
    if not isinstance(content, dict):
        raise VbsixError(f"{path}: expected a JSON object.")
    check_format(path, content.get("format"))
    return content


def check_format(path: Path, found: Any) -> None:
    """Refuses files of another version."""
    if str(found) != str(FORMAT):
        raise VbsixError(f"{path}: has format {found}, this version of vbsix reads format {FORMAT}.")


def write_tensors(path: Path, tensors: Mapping[str, np.ndarray], metadata: Mapping[str, Any]) -> str:
    """Writes arrays with metadata and a checksum as a safetensors file, and gives the file's SHA-256.

    The same arrays and metadata give the same file: all metadata is one entry, as safetensors keeps no order of them.
    """
    header = {"vbsix": json.dumps({"format": FORMAT, **metadata, "sha256": checksum(tensors)})}
    content = save({name: np.asarray(array, order="C") for name, array in tensors.items()}, header)
    write_bytes(path, content)
    return sha256(content)


def read_tensors(path: Path) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
    """The arrays and the metadata of a file of ours; those of earlier versions have no checksum."""
    try:
        with safe_open(path, "numpy") as file:
            header = json.loads((file.metadata() or {}).get("vbsix", "{}"))
            check_format(path, header.pop("format", None))
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 (not a mapping)
    except FileNotFoundError:
        raise VbsixError(f"{path}: no such file.") from None
    except (SafetensorError, AttributeError, TypeError, ValueError, OSError) as error:
        raise VbsixError(f"{path}: cannot be read: {error}") from error
    if header.pop("sha256", None) not in (None, checksum(tensors)):
        raise VbsixError(f"{path}: damaged: its numbers do not agree with their checksum.")
    return tensors, header


def checksum(tensors: Mapping[str, np.ndarray]) -> str:
    """A hash of the numbers of tensors."""
    return sha256(b"".join(np.asarray(tensors[name]).tobytes() for name in sorted(tensors)))


def sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def remove_file(path: Path) -> None:
    """Removes a file, if it is there. Of several processes that compute together, one removes it."""
    if writes_files() and path.exists():
        path.unlink()


def rename_folder(beside: Path, final: Path) -> None:
    """Gives a finished folder its name; a folder of that name is replaced."""
    if final.exists():
        shutil.rmtree(final)
    beside.replace(final)
