"""Random worlds as texts, corners included: an empty and a full stage, full beakers, an empty row."""

from __future__ import annotations

from random import Random

from vbsix.domains.names import base_name

COLORS = "rygopb"


def random_world(domain: str, random: Random) -> str:
    """The text of a random world."""
    contents = {"scene": _stage, "alchemy": _beakers, "tangrams": _row}[base_name(domain)](random)
    return " ".join(f"{position}:{content}" for position, content in enumerate(contents, 1))


def _stage(random: Random) -> list[str]:
    few_colors = random.sample(COLORS, random.randint(1, 6))  # so that people often look alike
    people = random.randint(0, 10)
    stage = [random.choice(few_colors) + random.choice([*few_colors, "_"]) for _ in range(people)]
    stage += ["__"] * (10 - people)
    random.shuffle(stage)
    return stage


def _beakers(random: Random) -> list[str]:
    lowest, highest = sorted(random.choices(range(5), k=2))
    few_colors = random.sample(COLORS, random.randint(1, 6))
    beakers = []
    for _ in range(7):
        colors = few_colors if random.random() < 0.4 else random.choice(few_colors)
        beakers.append("".join(random.choices(colors, k=random.randint(lowest, highest))) or "_")
    return beakers


def _row(random: Random) -> list[str]:
    return random.sample("01234", random.randint(0, 5))
