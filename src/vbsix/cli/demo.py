"""`vbsix demo`: what the worlds and their programs look like."""

from __future__ import annotations

from typing import NamedTuple


class _Example(NamedTuple):
    domain: str
    about: str
    world: str
    commands: dict[str, str]
    """Each instruction with its program."""


_EXAMPLES = [
    _Example(
        "scene",
        "A stage of ten positions. A person has a shirt and perhaps a hat.",
        "1:__ 2:r_ 3:__ 4:by 5:__ 6:__ 7:__ 8:__ 9:__ 10:__",
        {
            "The person in red moves to the left end.": "r PShirt 1 AMove",
            "Somebody in green without a hat appears on his right.": "-1 H1 PRight g e ACreate",
            "He swaps hats with the person in blue.": "-1 H1 b PShirt ASwapHats",
        },
    ),
    _Example(
        "alchemy",
        "Seven beakers of up to four units of coloured liquid.",
        "1:ggg 2:_ 3:yo 4:_ 5:rr 6:_ 7:p",
        {
            "Mix the third beaker.": "all-objects 3 index AMix",
            "Pour the red one into it.": "r PColor -1 H1 APour",
            "Throw out two units of the first beaker.": "all-objects 1 index 2 ADrain",
        },
    ),
    _Example(
        "tangrams",
        "A row of up to five different shapes.",
        "1:0 2:3 3:4 4:1",
        {
            "Remove the second shape.": "all-objects 2 index ARemove",
            "Swap the first and the last.": "all-objects 1 index all-objects -1 index ASwap",
            "Bring the removed shape back at the right end.": "-1 1 H1 AAdd",
        },
    ),
]


def demo() -> None:
    """Run a small program in each domain and draw every step.

    The output is the first world, then for each instruction its English, the program that does it and the world that
    results. `H1` and its like take an argument of an earlier command: that is how "it" and "him" are said.
    """
    from rich.console import Console

    from vbsix.cli.execute import print_run, run_program

    console = Console(highlight=False, soft_wrap=True)
    console.print("An instruction in English, the program that carries it out, and the world that it leaves.\n")
    for example in _EXAMPLES:
        console.print(f"[bold reverse] {example.domain} [/] {example.about}\n")
        program = " ".join(example.commands.values()).split()
        steps = run_program(example.domain, example.world, program)
        print_run(example.domain, example.world, steps, captions=list(example.commands))
    console.print(
        "To learn to write such programs from the English and the last world alone is the task of VBSiX.\n"
        "Run one of your own: [bold]vbsix execute --help[/]"
    )
