"""Metrics as an event file that TensorBoard shows, written without TensorFlow."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any


class EventFile:
    """The one event file of a run, with a tag for each metric and seed; one that is there already is replaced."""

    def __init__(self, folder: Path):
        from tensorboard.summary.writer.event_file_writer import EventFileWriter

        for old in folder.glob("events.out.tfevents.*"):
            old.unlink()
        self._writer = EventFileWriter(str(folder))

    def write(self, rows: Iterable[Mapping[str, Any]]) -> None:
        """Adds rows of `metrics.jsonl`."""
        from tensorboard.compat.proto.event_pb2 import Event  # pyright: ignore[reportAttributeAccessIssue]
        from tensorboard.compat.proto.summary_pb2 import Summary  # pyright: ignore[reportAttributeAccessIssue]

        for row in rows:
            values = [Summary.Value(tag=tag, simple_value=value) for tag, value in scalars(row)]
            self._writer.add_event(Event(wall_time=time.time(), step=row["step"], summary=Summary(value=values)))
        self._writer.flush()

    def close(self) -> None:
        self._writer.close()


def scalars(row: Mapping[str, Any]) -> Iterator[tuple[str, float]]:
    """The numbers of a row with their tags, such as `hit/seed-0` and `accuracy-dev-3/seed-0`."""
    for name, value in row.items():
        if name == "accuracy":
            for split, by_length in value.items():
                for length, share in by_length.items():
                    yield f"accuracy-{split}-{length}/seed-{row['seed']}", share
        elif name not in ("step", "seed"):
            yield f"{name}/seed-{row['seed']}", value
