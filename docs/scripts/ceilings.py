"""Counts what no program of a language can do: `python docs/scripts/ceilings.py DATA`.

Writes `results/beyond/ceilings.json`. The annotated equations of word problems and the traces of SAIL are read for
this alone.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parent))
import beyond
import word_problems

from vbsix.data.sail import misses_goal, read_sail
from vbsix.domains.sail import MOST_MOVEMENTS, Sail
from vbsix.domains.sail_maps import find_maps
from vbsix.utilities.files import write_json


def sail(data: Path) -> dict[str, int]:
    """Sentences whose last pose no command reaches, and sequences that do not end at their goal."""
    domain, maps = Sail(), {map_.name: map_ for map_ in find_maps()}
    reaches = reachable(domain)
    sequences = [one for name in maps for one in read_sail(data / "sail" / f"{name}.settrc")]
    traces = [trace for one in sequences for trace in one.traces]
    ends = [(int(domain.parse_world(trace.poses[0])), int(domain.parse_world(trace.poses[-1]))) for trace in traces]
    return {
        "sentences": len(traces),
        "sentences that no command explains": sum(not reaches[pair] for pair in ends),
        "sequences": len(sequences),
        "sequences that miss their goal": sum(misses_goal(one, maps[one.map]) for one in sequences),
        "sequences with a gap": sum(not one.is_continuous for one in sequences),
    }


def reachable(domain: Sail) -> np.ndarray:
    """Whether a command leads from one pose to another."""
    poses = len(domain.poses)
    step = np.eye(poses, dtype=bool)
    for pose, successors in enumerate(domain.movements.reshape(poses, -1)):
        step[pose, successors[successors >= 0]] = True
    return np.linalg.matrix_power(step.astype(float), MOST_MOVEMENTS) > 0


def problems(data: Path, names: Sequence[str]) -> dict[str, int]:
    """Problems, and those whose equation some program of the language has the value of, whatever the numbers."""
    rows = [row for name in names for row in beyond.read_equations(data / "math" / f"{name}-dev.csv")]
    return {"problems": len(rows), "expressible": sum(is_expressible(*row) for row in rows)}


def is_expressible(numbers: Sequence[float], equation: Sequence[str]) -> bool:
    """Whether the language has a program for an equation; equal numbers may stand for each other."""
    tree, rest = parse(equation)
    assert not rest, equation
    found = [[*program, "answer"] for program in programs(tree, numbers)]
    return any(is_valid(program, numbers) and beyond.agree(program, equation, numbers) for program in found)


def is_valid(program: Sequence[str], numbers: Sequence[float]) -> bool:
    """Whether the language has the program for these numbers."""
    language = word_problems.WordProblems()
    state = language.start(list(numbers))
    for token in program:
        if (state := language.step(state, token)) is None:
            return False
    return len(program) <= language.max_tokens_per_instruction


Tree = str | tuple[str, "Tree", "Tree"]


def parse(equation: Sequence[str]) -> tuple[Tree, Sequence[str]]:
    """The tree of an equation in prefix notation, and the tokens behind it."""
    first, rest = equation[0], equation[1:]
    if first not in word_problems.OPERATIONS:
        return first, rest
    left, rest = parse(rest)
    right, rest = parse(rest)
    return (first, left, right), rest


def programs(tree: Tree, numbers: Sequence[float]) -> Iterator[list[str]]:
    """Programs for a tree, in both orders of what may be swapped."""
    if isinstance(tree, str):
        if tree.startswith("number"):
            value = numbers[int(tree.removeprefix("number"))]
            yield from ([word_problems.NUMBERS[place]] for place, other in enumerate(numbers) if other == value)
        else:
            yield from ([name] for name, constant in word_problems.CONSTANTS.items() if constant == float(tree))
        return
    operation, left, right = tree
    for one in programs(left, numbers):
        for other in programs(right, numbers):
            yield [*one, *other, operation]
            if operation in word_problems.WordProblems.commutative:
                yield [*other, *one, operation]


if __name__ == "__main__":
    folder = Path(sys.argv[1])
    os.environ["VBSIX_DATA"] = str(folder)  # where the domain sail finds its maps
    found = {
        "sail": sail(folder),
        "mawps": problems(folder, [f"cv_mawps-fold{number}" for number in range(beyond.MAWPS_FOLDS)]),
        "svamp": problems(folder, ["mawps-asdiv-a_svamp"]),
    }
    write_json(beyond.ROOT / "results" / "beyond" / "ceilings.json", found)
    print(json.dumps(found, indent=1))
