"""Where the vertices of a layered graph go: in each layer an order and heights that keep edges short."""

from __future__ import annotations

from collections.abc import Sequence

SWEEPS = 8


def arrange(layers: Sequence[Sequence[int]], edges: Sequence[tuple[int, int]], distance: float) -> dict[int, float]:
    """The height of each vertex; vertices of one layer are at least `distance` apart.

    Sweeps back and forth over the layers: each vertex wants to be level with its neighbours in the layer before (then
    after), and each layer is sorted by these wishes and fulfils them as well as the distance allows.

    Args:
        layers: vertices of each layer.
        edges: pairs of vertices of neighbouring layers, from the earlier to the later.
        distance: between the heights of two vertices of a layer.
    """
    before: dict[int, list[int]] = {vertex: [] for layer in layers for vertex in layer}
    after: dict[int, list[int]] = {vertex: [] for vertex in before}
    for origin, destination in edges:
        before[destination].append(origin)
        after[origin].append(destination)
    heights = {vertex: place * distance for layer in layers for place, vertex in enumerate(layer)}
    for sweep in range(SWEEPS):
        forward = sweep % 2 == 1
        neighbours = before if forward else after
        for layer in layers if forward else reversed(layers):
            wishes = {vertex: _mean([heights[n] for n in neighbours[vertex]] or [heights[vertex]]) for vertex in layer}
            order = sorted(layer, key=lambda vertex: (wishes[vertex], heights[vertex], vertex))
            heights.update(zip(order, spread([wishes[vertex] for vertex in order], distance), strict=True))
    top = min(heights.values(), default=0.0)
    return {vertex: height - top for vertex, height in heights.items()}


def spread(wishes: Sequence[float], distance: float) -> list[float]:
    """Heights nearest to sorted wishes (in least squares) that are at least `distance` apart.

    Less the distances, heights must not fall: neighbours that would come too close move as one block (this is
    isotonic regression by pooling).
    """
    blocks: list[list[float]] = []
    for place, wish in enumerate(wishes):
        blocks.append([wish - place * distance])
        while len(blocks) > 1 and _mean(blocks[-2]) >= _mean(blocks[-1]):
            last = blocks.pop()
            blocks[-1] += last
    levels = [_mean(block) for block in blocks for _ in block]
    return [level + place * distance for place, level in enumerate(levels)]


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)
