"""Arithmetic word problems, learned from their answers alone: a domain in plain Python.

`python word_problems.py problems.csv > problems.jsonl` reads a file with the columns `Question`, `Numbers` and
`Answer`, as distributed with SVAMP. Without `Numbers`, they are taken from the question. The column `Equation` is not
read. `vbsix train word_problems:WordProblems --data problems.jsonl --out run` learns from the result, and
`python word_problems.py --ask run "Ann has 8 cups and gets 2. How many has she?"` answers a question.
"""

from __future__ import annotations

import csv
import json
import operator
import sys
from collections.abc import Callable
from typing import NamedTuple

import vbsix
from vbsix.data.numbers import SLOT, numbers_to_slots

NUMBERS = tuple(map(SLOT.format, range(8)))
CONSTANTS = {"1": 1.0, "2": 2.0, "7": 7.0, "12": 12.0, "60": 60.0, "100": 100.0}
OPERATIONS = {"+": operator.add, "-": operator.sub, "*": operator.mul, "/": operator.truediv}
MOST_ON_STACK = 4
PLACES = ("top", "second", "third")
"""The places of the stack that the networks see."""
DECIMALS = 2
"""Answers are compared after rounding to this many decimals, because the data rounds its own."""


class Entry(NamedTuple):
    """A value on the stack, and the token that put it there."""

    value: float
    token: str


class State(NamedTuple):
    numbers: tuple[float, ...]
    stack: tuple[Entry, ...] = ()
    used: frozenset[str] = frozenset()
    operations: int = 0
    is_done: bool = False


class WordProblems:
    """A stack language: `number0 number1 + answer`. Each number of the question is used at most once."""

    max_tokens_per_instruction = 2 * MOST_ON_STACK
    constants = CONSTANTS
    operations = OPERATIONS
    commutative = ("+", "*")
    """Operations for which one order of the numbers is enough."""

    def __init__(self):
        names = (*NUMBERS, *self.constants, *self.operations)
        self.tokens = (*names, "answer")
        self.attributes = {**dict.fromkeys(PLACES, names), "depth": MOST_ON_STACK + 1, "operations": MOST_ON_STACK}

    def start(self, context):
        if not isinstance(context, list) or not 1 <= len(context) <= len(NUMBERS):
            raise ValueError(f"a context is a list of 1 to {len(NUMBERS)} numbers")
        return State(tuple(map(float, context)))

    def valid_tokens(self, state):
        if state.is_done:
            return ()
        pushed = (*NUMBERS[: len(state.numbers)], *self.constants)
        return (*pushed, *self.operations, "answer") if state.stack else pushed

    def step(self, state, token):
        if state.is_done:
            return None
        if token == "answer":
            return state._replace(is_done=True) if state.operations and len(state.stack) == 1 else None
        return self.apply(state, token) if token in self.operations else self.push(state, token)

    def push(self, state, token):
        place = NUMBERS.index(token) if token in NUMBERS else None
        if place is not None and place >= len(state.numbers):
            return None
        # A stack that can still come down to one value within the limit on tokens.
        if token in state.used or len(state.stack) + state.operations >= MOST_ON_STACK:
            return None
        value = self.constants[token] if place is None else state.numbers[place]
        return state._replace(stack=(*state.stack, Entry(value, token)), used=state.used | {token})

    def apply(self, state, name):
        if len(state.stack) < 2:
            return None
        *below, left, right = state.stack
        if name in self.commutative and left.token in NUMBERS and right.token in NUMBERS and left.token > right.token:
            return None
        value = calculate(self.operations[name], left.value, right.value)
        if value is None:
            return None
        return state._replace(stack=(*below, Entry(value, name)), operations=state.operations + 1)

    def instructions_done(self, state):
        return int(state.is_done)

    def denotation(self, state):
        return to_answer(state.stack[-1].value) if state.is_done else None

    def describe(self, state):
        seen = dict(zip(PLACES, (entry.token for entry in state.stack[::-1]), strict=False))
        return {**seen, "depth": len(state.stack), "operations": min(state.operations, MOST_ON_STACK - 1)}


def calculate(operation: Callable[[float, float], float], left: float, right: float) -> float | None:
    """The result, rounded so that equal results are equal; None if it is negative or not defined."""
    try:
        value = operation(left, right)
    except ArithmeticError:
        return None
    return None if value < 0 else float(f"{value:.12g}")


def to_answer(value: float) -> float:
    """A number as answers are compared."""
    return round(value, DECIMALS)


def read_problems(path: str):
    """The problems of a CSV file as examples. Raises `ValueError` with file and line."""
    with open(path, newline="", encoding="utf-8") as file:
        rows = csv.DictReader(file)
        lacking = {"Question", "Answer"} - set(rows.fieldnames or ())
        if lacking:
            raise ValueError(f"{path}: no column {', '.join(sorted(lacking))} in the first line")
        for number, row in enumerate(rows, start=1):
            try:
                question, numbers = row["Question"], row.get("Numbers")
                if "Numbers" in row:
                    numbers = [float(text) for text in numbers.split()]
                else:
                    question, numbers = numbers_to_slots(question)
                answer = to_answer(float(row["Answer"]))
                WordProblems().start(numbers)
            except (ValueError, AttributeError, TypeError, vbsix.VbsixError) as error:
                raise ValueError(f"{path}:{rows.line_num}: {error}") from None
            yield {"id": number, "context": numbers, "instructions": [question.lower()], "target": answer}


def ask(run: str, question: str) -> str:
    """The program that a trained parser gives a question, and its answer."""
    text, numbers = numbers_to_slots(question)
    parser = vbsix.load(run, domain=vbsix.PythonDomain(WordProblems))
    readings = parser.parse(numbers, [text.lower()]).readings
    return f"{readings[0].commands[0]} = {readings[0].denotations[0]}" if readings else "no program found"


if __name__ == "__main__":
    try:
        if len(sys.argv) == 4 and sys.argv[1] == "--ask":
            print(ask(*sys.argv[2:]))
        elif len(sys.argv) > 1 and sys.argv[1] != "--ask":
            for path in sys.argv[1:]:
                for example in read_problems(path):
                    print(json.dumps(example))
        else:
            sys.exit('usage: word_problems.py FILE.csv ... > problems.jsonl, or word_problems.py --ask RUN "QUESTION"')
    except (OSError, ValueError, vbsix.VbsixError) as error:
        sys.exit(str(error))
