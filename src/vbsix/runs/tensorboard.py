"""Metrics as an event file that TensorBoard shows, written without TensorFlow."""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any


class EventFile:
    """The one event file of a run, with a tag for each metric and seed; one that is there already is replaced."""

    def __init__(self, folder: Path):
        from tensorboard.compat.proto.event_pb2 import Event  # pyright: ignore[reportAttributeAccessIssue]
        from tensorboard.summary.writer.record_writer import RecordWriter

        for old in folder.glob("events.out.tfevents.*"):
            old.unlink()
        name = f"events.out.tfevents.{int(time.time()):010d}.{socket.gethostname()}.{os.getpid()}"
        self._file = (folder / name).open("wb")  # TensorBoard's own writer has a thread, whose errors are tracebacks
        self._records = RecordWriter(self._file)
        self._add(Event(wall_time=time.time(), file_version="brain.Event:2"))

    def write(self, rows: Iterable[Mapping[str, Any]]) -> None:
        """Adds rows of `metrics.jsonl`."""
        from tensorboard.compat.proto.event_pb2 import Event  # pyright: ignore[reportAttributeAccessIssue]
        from tensorboard.compat.proto.summary_pb2 import Summary  # pyright: ignore[reportAttributeAccessIssue]

        for row in rows:
            values = [Summary.Value(tag=tag, simple_value=value) for tag, value in scalars(row)]
            self._add(Event(wall_time=time.time(), step=row["step"], summary=Summary(value=values)))
        self._file.flush()

    def close(self) -> None:
        self._file.close()

    def _add(self, event: Any) -> None:
        self._records.write(event.SerializeToString())


def scalars(row: Mapping[str, Any]) -> Iterator[tuple[str, float]]:
    """The numbers of a row with their tags, such as `hit/seed-0` and `accuracy-dev-3/seed-0`."""
    for name, value in row.items():
        if name == "accuracy":
            for split, by_length in value.items():
                for length, share in by_length.items():
                    yield f"accuracy-{split}-{length}/seed-{row['seed']}", share
        elif name not in ("step", "seed"):
            yield f"{name}/seed-{row['seed']}", value
