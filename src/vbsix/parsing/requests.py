"""Requests as lines of JSON, and the line of JSON that answers each."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any, NamedTuple

from vbsix.parsing.parser import Parser
from vbsix.search.prediction import Parse
from vbsix.utilities.errors import VbsixError
from vbsix.utilities.renaming import note_old_fields


class Answering(NamedTuple):
    """How requests are answered."""

    best: int = 1
    """How many readings are given."""
    min_confidence: float = 0.0
    """Readings are withheld where the best one's confidence is lower."""


def answer_lines(parser: Parser, lines: Sequence[bytes], first: int, how: Answering, *, explain: bool = False) -> bytes:
    """A line of JSON for each line that is not blank, errors too.

    Args:
        parser: reads the instructions.
        lines: the requests.
        first: the number of the first line, for messages.
        how: what is asked for.
        explain: whether to say why instructions cannot be done.
    """
    requests: list[Any] = []
    answers: list[dict[str, Any]] = []
    asked: dict[int, tuple[Any, list[str]]] = {}
    for number, line in enumerate(lines, start=first):
        if not line.strip():
            continue
        request, answer = None, {}
        try:
            request = json.loads(line.decode(), parse_constant=_refuse)
            asked[len(answers)] = _check_request(request)
        except (ValueError, RecursionError) as error:
            answer = {"error": f"line {number}: not JSON: {error}"}
        except VbsixError as error:
            answer = {"error": f"line {number}: {error}"}
        answers.append(answer or {"line": number})
        requests.append(request)
    for place, parse in zip(asked, parser.parse_each(list(asked.values()), how.best, explain), strict=True):
        if isinstance(parse, VbsixError):
            answers[place] = {"error": f"line {answers[place]['line']}: {parse}"}
        else:
            answers[place] = to_json(parse, how.min_confidence)
    named = (
        {"id": request["id"], **answer} if isinstance(request, dict) and "id" in request else answer
        for request, answer in zip(requests, answers, strict=True)
    )
    return "".join(json.dumps(answer) + "\n" for answer in named).encode()


def _refuse(constant: str) -> None:
    raise ValueError(f"{constant} is no JSON value")


def _check_request(request: Any) -> tuple[Any, list[str]]:
    """The context and the instructions of a request, under these names or under their old ones."""
    if not isinstance(request, dict):
        raise VbsixError('expected an object such as {"context": "...", "instructions": ["..."]}.')
    if not {"context", "world"} & request.keys():
        raise VbsixError('"context" is missing.')
    note_old_fields(request)
    context = request.get("context", request.get("world"))
    instructions = request.get("instructions", request.get("utterances"))
    if not isinstance(instructions, list) or not all(isinstance(instruction, str) for instruction in instructions):
        raise VbsixError('"instructions" is missing or not a list of texts.')
    return context, instructions


def to_json(found: Parse, min_confidence: float) -> dict[str, Any]:
    """The parse; one that is not confident enough is withheld."""
    abstained = found.confidence < min_confidence
    withheld = {"readings": []} if abstained else {}
    names = {"context": found.context, "instructions": found.instructions}
    answer = {"format": 1, "abstained": abstained, "confidence": found.confidence, **names, **asdict(found)}
    for reading, written in zip(found.readings, answer["readings"], strict=True):
        written["denotations"] = reading.denotations
    return {**answer, **withheld}
