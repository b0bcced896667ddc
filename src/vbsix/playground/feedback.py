"""Corrections by hand, saved as JSON lines that `vbsix train --data` takes."""

from __future__ import annotations

import json
import threading
from pathlib import Path

from vbsix.domains.python import PythonDomain
from vbsix.playground.messages import FeedbackRequest
from vbsix.playground.models import Model
from vbsix.utilities.errors import VbsixError, naming

MOST_BYTES = 10_000_000


class Feedback:
    """A file of corrections for each domain, `FOLDER/DOMAIN.jsonl`: a file for training holds one domain."""

    def __init__(self, folder: Path):
        self._folder, self._lock = folder, threading.Lock()

    def save(self, model: Model, request: FeedbackRequest) -> int:
        """Appends an example, and counts those of its file.

        Raises:
            VbsixError: a world does not parse, an instruction is empty, or the file is full.
        """
        for number, text in enumerate(request.utterances, start=1):
            if not text.strip():  # one such line, and no example of the file could be read
                raise VbsixError(f"instruction {number} is empty.")
        domain = model.parser.domain
        with naming("context"):
            context = domain.format_world(domain.parse_world(request.world))
        with naming("target"):
            target = domain.format_target(domain.parse_target(request.target))
        if isinstance(domain.unwrapped, PythonDomain):  # its texts are JSON, and a line holds the values themselves
            context, target = (domain.unwrapped.context(text) for text in (context, target))
        path = self._folder / f"{domain.name}.jsonl"
        with self._lock:
            path.parent.mkdir(parents=True, exist_ok=True)
            lines = path.read_bytes() if path.exists() else b""
            if len(lines) > MOST_BYTES:
                raise VbsixError(f"{path.name} has {MOST_BYTES} bytes already; move it away to save more.")
            number = lines.count(b"\n") + 1
            example = {"id": number, "context": context, "instructions": request.utterances, "target": target}
            with path.open("a", encoding="utf-8") as file:
                file.write(json.dumps(example) + "\n")
        return number
