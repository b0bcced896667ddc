"""The learning curve of one run as a small SVG file, without matplotlib."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence

from vbsix.runs.metrics import Row
from vbsix.show.svg.elements import FAINT, Picture, document, label, path, tag

WIDTH, HEIGHT = 460, 210
LEFT, RIGHT, TOP, BOTTOM = 44, 16, 34, 36
HIT, DEV = "#1f5fbf", "#b5473a"
Points = list[tuple[int, float]]


def draw_learning_curve(rows: Sequence[Row]) -> str | None:
    """Hit accuracy and dev accuracy on the longest examples by step, means over seeds; None where there is neither."""
    hits = _means((row["step"], row["hit"]) for row in rows if "hit" in row)
    dev = _means((row["step"], list(by_length.values())[-1]) for row in rows if (by_length := _dev(row)))
    if not hits and not dev:
        return None
    last = max(step for step, _ in hits + dev)
    parts = [_grid(last)]
    for points, colour, dashes in ((hits, HIT, ""), (dev, DEV, "5 3")):
        parts += _line(points, last, colour, dashes)
    legend = [("hit accuracy in training", HIT, ""), ("dev accuracy", DEV, "5 3")]
    x = float(LEFT)
    for (words, colour, dashes), points in zip(legend, (hits, dev), strict=True):
        if points:
            parts.append(path("M", x, 16, "h", 22, stroke=colour, stroke_width=2, **_dashed(dashes)))
            parts.append(label(words, x + 28, 20, 12))
            x += 28 + 6.6 * len(words) + 24
    title = "Learning curve"
    return document(Picture("".join(parts), WIDTH, HEIGHT), title, f"Hit accuracy and dev accuracy over {last} steps.")


def _dev(row: Row) -> dict[str, float]:
    return row.get("accuracy", {}).get("dev", {})


def _means(values: Iterable[tuple[int, float]]) -> Points:
    by_step: dict[int, list[float]] = defaultdict(list)
    for step, value in values:
        by_step[step].append(value)
    return [(step, sum(found) / len(found)) for step, found in sorted(by_step.items())]


def _at(step: int, share: float, last: int) -> tuple[float, float]:
    across, down = WIDTH - LEFT - RIGHT, HEIGHT - TOP - BOTTOM
    return LEFT + across * step / last, TOP + down * (1 - share)


def _grid(last: int) -> str:
    parts = []
    for share in (0, 0.5, 1):
        x, y = _at(0, share, last)
        parts.append(path("M", x, y, "H", WIDTH - RIGHT, stroke="#d5dae0", stroke_width=1))
        parts.append(label(f"{share:.0%}", x - 6, y + 4, 11, fill=FAINT, text_anchor="end"))
    for step in (0, last):
        x, y = _at(step, 0, last)
        parts.append(label(str(step), x, y + 16, 11, fill=FAINT, text_anchor="middle"))
    middle = (LEFT + WIDTH - RIGHT) / 2
    return "".join([*parts, label("steps", middle, HEIGHT - 8, 11, fill=FAINT, text_anchor="middle")])


def _line(points: Points, last: int, colour: str, dashes: str) -> list[str]:
    corners = [_at(step, share, last) for step, share in points]
    dots = [tag("circle", cx=x, cy=y, r=3, fill=colour) for x, y in corners] if len(corners) < 30 else []
    if len(corners) < 2:
        return dots
    commands = [part for number, (x, y) in enumerate(corners) for part in ("L" if number else "M", x, y)]
    return [path(*commands, fill="none", stroke=colour, stroke_width=2, **_dashed(dashes)), *dots]


def _dashed(dashes: str) -> dict[str, str]:
    return {"stroke_dasharray": dashes} if dashes else {}
