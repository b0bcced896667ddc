"""Questions over a small table, answered by programs that are never shown: a domain in plain Python.

`python table.py 4000 > table.jsonl` makes examples; `vbsix train table:Table --data table.jsonl` learns from them. The
denotation of a program is its answer, and an example is a single question.
"""

from __future__ import annotations

import json
import random
import sys
from typing import NamedTuple

NAMES = ("Ann", "Bob", "Cleo", "Dan", "Eve", "Finn", "Gus", "Hana")
CITIES = ("Oslo", "Rome", "Lima", "Cairo")
TEAMS = ("red", "blue", "green")
NUMBERS = ("age", "points")
ROWS = 6


class Player(NamedTuple):
    name: str
    city: str
    team: str
    age: int
    points: int


class State(NamedTuple):
    """The rows that a program has come to, and its answer at the end."""

    table: tuple[Player, ...]
    rows: tuple[Player, ...]
    named: bool = False
    """Whether the rows were chosen by name, so that another name adds one."""
    column: str | None = None
    answer: int | str | None = None


class Table:
    """A program narrows down the rows, may choose a column, and ends with a token that answers."""

    tokens = (*NAMES, *CITIES, *TEAMS, *NUMBERS, "most", "least", "count", "sum", "difference", "name")
    max_tokens_per_instruction = 5
    attributes = {"rows": ROWS + 1, "named": 2, "column": NUMBERS}

    def start(self, context):
        table = tuple(Player(*row) for row in context)
        return State(table, table)

    def step(self, state, token):
        if token in NAMES:
            return self.choose_name(state, token)
        if token in CITIES or token in TEAMS:
            rows = tuple(row for row in state.rows if token in (row.city, row.team))
            return state._replace(rows=rows) if rows and rows != state.rows and not state.named else None
        if token in NUMBERS:
            return state._replace(column=token) if state.column is None else None
        if token in ("most", "least"):
            if state.column is None or len(state.rows) < 2:
                return None
            values = sorted({getattr(row, state.column) for row in state.rows})
            wanted = values[-1] if token == "most" else values[0]
            return state._replace(
                rows=tuple(row for row in state.rows if getattr(row, state.column) == wanted), column=None
            )
        answer = self.answer(state, token)
        return None if answer is None else state._replace(answer=answer)

    def choose_name(self, state, name):
        before = state.rows if state.named else ()
        chosen = tuple(row for row in state.table if row.name == name and row not in before)
        narrowed_down = not state.named and state.rows != state.table
        return None if narrowed_down or not chosen else state._replace(rows=tuple(sorted(before + chosen)), named=True)

    def answer(self, state, token):
        values = [getattr(row, state.column) for row in state.rows] if state.column else []
        if token == "count" and not values:
            return len(state.rows)
        if token == "sum" and values:
            return sum(values)
        if token == "difference" and len(values) == 2:
            return abs(values[0] - values[1])
        if token == "name" and not values and len(state.rows) == 1:
            return state.rows[0].name
        return None

    def instructions_done(self, state):
        return int(state.answer is not None)

    def denotation(self, state):
        return state.answer

    def describe(self, state):
        return {"rows": len(state.rows), "named": int(state.named), "column": state.column}


WORDINGS = {
    "{city} count": ["how many players live in {city}", "what is the number of people from {city}", "count {city}"],
    "{team} count": ["how many are in the {team} team", "count the {team} players", "number of players in {team}"],
    "{city} {team} count": [
        "how many {team} players live in {city}",
        "count the people from {city} in the {team} team",
    ],
    "age most name": ["who is the oldest", "name the oldest player", "which player is the oldest of all"],
    "age least name": ["who is the youngest", "tell me the youngest player"],
    "points most name": ["who scored the most", "which player has the highest score", "who is the best"],
    "points least name": ["who scored the least", "which player has the lowest score"],
    "{team} age most name": ["who is the oldest in the {team} team", "name the oldest {team} player"],
    "{city} points most name": ["who scored the most in {city}", "which player from {city} has the highest score"],
    "points sum": ["how many points are there in all", "what is the total score of all players"],
    "{team} points sum": ["how many points has the {team} team", "total score of the {team} players"],
    "{city} points sum": ["how many points come from {city}", "what is the total score of {city}"],
    "{name} age sum": ["how old is {name}", "what is the age of {name}"],
    "{name} points sum": ["how many points has {name}", "what did {name} score"],
    "{name} {other} age difference": [
        "what is the age difference between {name} and {other}",
        "by how many years do {name} and {other} differ",
    ],
    "{name} {other} points difference": [
        "what is the difference between the scores of {name} and {other}",
        "by how many points do {name} and {other} differ",
    ],
}


def make_example(number: int, chance: random.Random) -> dict:
    """A table, a question and its answer."""
    names = sorted(chance.sample(NAMES, ROWS))
    rows = [
        Player(name, chance.choice(CITIES), chance.choice(TEAMS), chance.randint(18, 60), chance.randint(1, 40))
        for name in names
    ]
    language, state = Table(), None
    program, wordings = "", [""]
    filled = {}
    while state is None:
        program, wordings = chance.choice(list(WORDINGS.items()))
        one, other = chance.sample(names, 2)
        filled = {"city": chance.choice(CITIES), "team": chance.choice(TEAMS), "name": one, "other": other}
        state = language.start(rows)
        for token in program.format(**filled).split():
            state = state and language.step(state, token)
    question = chance.choice(wordings).format(**filled)
    return {"id": number, "context": rows, "instructions": [question], "target": language.denotation(state)}


if __name__ == "__main__":
    for number in range(int(sys.argv[1])):
        print(json.dumps(make_example(number, random.Random(number))))
