"""The speed of a language in plain Python, as docs/speed.md reports it: `python docs/scripts/hallway_speed.py`.

Two runs on the hallway in turn, of 100 and of 600 steps, after one that fills the compilation cache. The difference
between the two is that of 500 training steps; the shorter one is a second start. To compare with another commit, call
the script of this one with that commit's `src` as PYTHONPATH, and let both take turns.
"""

from __future__ import annotations

import resource
import subprocess
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

HALLWAY = Path(__file__).parents[2] / "examples" / "hallway" / "hallway.py"
SETTINGS = ["training.curriculum_steps=0", "run.evaluate_every=100000", "data.max_words=22"]
FEW, MANY, REPEATS = 100, 600, 3


class Spent(NamedTuple):
    """Seconds of a command, and those that processors were busy with it."""

    elapsed: float
    processor: float


def main() -> None:
    with TemporaryDirectory() as name:
        folder = Path(name)
        (folder / HALLWAY.name).write_bytes(HALLWAY.read_bytes())
        with (folder / "hallway.jsonl").open("w") as file:
            subprocess.run([sys.executable, HALLWAY.name, "3000"], cwd=folder, stdout=file, check=True)
        train(folder, "warm-up", FEW)
        for number in range(REPEATS):
            few, many = train(folder, f"few-{number}", FEW), train(folder, f"many-{number}", MANY)
            step = [1000 * (long - short) / (MANY - FEW) for short, long in zip(few, many, strict=True)]
            print(f"a training step: {step[0]:.1f} ms elapsed, {step[1]:.1f} ms CPU;", end=" ")
            print(f"a second start: {few.processor:.1f} s CPU", flush=True)


def train(folder: Path, out: str, steps: int) -> Spent:
    command = [sys.executable, "-m", "vbsix", "train", "hallway:Hallway", "--data", "hallway.jsonl", "--seeds", "1"]
    command += ["--steps", str(steps), "--out", out, "--quiet", *(f"--set={setting}" for setting in SETTINGS)]
    before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    subprocess.run(command, cwd=folder, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    busy = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return Spent(time.perf_counter() - began, busy)


if __name__ == "__main__":
    main()
