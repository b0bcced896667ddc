"""Requests answered on a Ray cluster: each block of lines is a task."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from vbsix.cluster.connection import Cluster, Place, connect, enter, fetch_result, missing_on_node
from vbsix.domains.registry import import_domain
from vbsix.parsing.loading import load, pretrained_models
from vbsix.parsing.parser import Parser
from vbsix.parsing.requests import Answering, answer_lines
from vbsix.parsing.streaming import Block

AHEAD = 2
"""Blocks in flight for each task that the cluster runs at a time: few, so that memory does not grow with the file."""


class Model(NamedTuple):
    """What a process loads its parser from."""

    path: str
    """A path that all nodes share, or the name of a model that comes with vbsix."""
    seed: int | None
    domain: str | None
    """`module:Class`, for a language of the user's own."""


def answer_on(cluster: Cluster, model: Model, how: Answering, blocks: Iterable[Block]) -> Iterator[tuple[Block, bytes]]:
    """Each block with its answers, in order. A block whose process or node dies is answered again elsewhere."""
    path = Path(model.path)
    model = model._replace(path=str(path.resolve()) if path.exists() else model.path)
    place = Place.here(cluster)
    with connect(cluster) as ray:
        answer = ray.remote(**cluster.task_options)(_answer)
        window: deque[tuple[Block, Any]] = deque()
        try:
            for block in blocks:
                window.append((block, answer.remote(place, model, how, block.first, block.lines)))
                if len(window) >= AHEAD * _at_a_time(ray, cluster):
                    yield _take(ray, window)
            while window:
                yield _take(ray, window)
        finally:
            for _, ref in window:
                ray.cancel(ref, force=True)


def _at_a_time(ray: Any, cluster: Cluster) -> int:
    """How many tasks the cluster, as it is now, runs at a time."""
    has = ray.cluster_resources()
    asked = {"CPU": cluster.cpus, "GPU": cluster.gpus}
    return max(1, int(min(has.get(name, 0) / amount for name, amount in asked.items() if amount)))


def _take(ray: Any, window: deque[tuple[Block, Any]]) -> tuple[Block, bytes]:
    block, ref = window.popleft()
    return block, fetch_result(ray, ref, f"lines {block.first} to {block.first + len(block.lines) - 1}")


def _answer(place: Place, model: Model, how: Answering, first: int, lines: tuple[bytes, ...]) -> bytes:
    """What a task does."""
    return answer_lines(_parser(place, model), lines, first, how)


@cache
def _parser(place: Place, model: Model) -> Parser:
    """Loaded once in each process; Ray keeps processes for later tasks."""
    enter(place)
    if not Path(model.path).exists() and model.path not in pretrained_models():
        raise missing_on_node(Path(model.path))
    return load(model.path, model.seed, domain=import_domain(model.domain) if model.domain else None)
