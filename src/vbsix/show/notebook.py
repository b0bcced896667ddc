"""What notebooks display for parses, parsers, searches and runs.

Instructions, worlds and models may come from strangers, so every text is escaped.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from vbsix.config.presets import full_name
from vbsix.config.schema import Config
from vbsix.data.words import UNKNOWN, UtteranceVectors
from vbsix.models import Ensemble
from vbsix.parsing.parser import Parser
from vbsix.runs.metrics import Row
from vbsix.search.prediction import Parse, Reading
from vbsix.show.html import code, heading, image, note, page_part, table, world_card
from vbsix.show.learning_curve import draw_learning_curve
from vbsix.show.phrases import tell_all
from vbsix.show.searching import Search
from vbsix.show.svg.elements import plain, tag
from vbsix.show.svg.states import probability
from vbsix.utilities.numbers import mean_std

USAGE = 'parser.parse(world, ["an instruction", "another"])'


def parse_html(parse: Parse) -> str:
    """The worlds and commands of the best reading, and the other outcomes in short."""
    domain, first = parse.domain, world_card(parse.domain, parse.world)
    if not parse.readings:
        instructions = table([[plain(text)] for text in parse.utterances])
        return page_part(heading("No program found"), instructions, first, _words(parse))
    best = parse.readings[0]
    rows = [["", "", first]]
    words = tell_all(domain, parse.world, best.worlds, best.commands)
    for utterance, command, said, world in zip(parse.utterances, best.commands, words, best.worlds, strict=True):
        rows.append([plain(utterance), code(command) + (note(said) if said else ""), world_card(domain, world)])
    parts = [table(rows, ["instruction", "command", "world"]), _confidence(parse), _words(parse)]
    others = [outcome.readings[0] for outcome in parse.outcomes[1:]]
    if others:
        parts += [heading("Other outcomes"), _others(domain, others)]
    return page_part(*parts)


def _confidence(parse: Parse) -> str:
    doubt = "" if parse.understood else note("not understood: this is a guess")
    return tag("div", "confidence ", tag("b", f"{parse.confidence:.0%}")) + doubt


def _words(parse: Parse) -> str:
    """Which words the parser did not read."""
    unknown = note(f"unknown words: {', '.join(parse.unknown_words)}") if parse.unknown_words else ""
    return unknown + (note(f"not read: {' '.join(parse.unread_words)}") if parse.unread_words else "")


def _others(domain: str, readings: Sequence[Reading]) -> str:
    rows = [
        [
            "".join(tag("div", code(command)) for command in reading.commands),
            world_card(domain, reading.worlds[-1]),
            f"{reading.confidence:.0%}",
        ]
        for reading in readings
    ]
    return table(rows, ["commands", "last world", "confidence"])


def parser_html(parser: Parser) -> str:
    """What the parser is for, how it was trained, and how to call it."""
    given = parser.provenance
    known = len(parser.words.words) - UNKNOWN - 1
    entries = "utterance vectors" if isinstance(parser.words, UtteranceVectors) else "words"
    rows = {
        "domain": parser.domain.name,
        "method": given.get("method", ""),
        "recipe": given.get("recipe", ""),
        "variant": given.get("variant") or "none",
        "seeds" if isinstance(parser.policy, Ensemble) else "seed": _listed(given.get("seed", "")),
        "steps": _listed(given.get("steps", "")),
        "data": given.get("data", ""),
        "vocabulary": f"{known} {entries}",
        "program tokens": str(len(parser.domain.tokens)),
    }
    kind = "Ensemble" if isinstance(parser.policy, Ensemble) else "Parser"
    lines = [[plain(name), plain(str(value))] for name, value in rows.items()]
    return page_part(heading(f"{kind} for {parser.domain.name}"), table(lines), code(USAGE))


def _listed(value: Any) -> str:
    return ", ".join(map(str, value)) if isinstance(value, list | tuple) else str(value)


def search_html(search: Search) -> str:
    """The graph, and the programs found as text that can be copied."""
    found = search.programs
    words = (
        f"A search in {search.inspection.space} space with a beam of {search.beam}; "
        f"{len(found) or 'no'} program{'s' * (len(found) != 1)} found."
    )
    rows = [[plain(probability(one.log_probability)), code(" ".join(one.tokens))] for one in found]
    programs = table(rows, ["probability", "program"]) if rows else ""
    return page_part(heading(words), programs, image(search.svg, words, scroll=True))


def run_html(folder: Path, config: Config, result: Mapping[str, Any], metrics: Sequence[Row]) -> str:
    """The accuracy on each split, and the learning curve.

    Args:
        folder: of the run.
        config: its settings.
        result: what `result.json` holds.
        metrics: the rows of `metrics.jsonl`.
    """
    seeds = result["seeds"]
    count = f"{len(seeds)} seed{'s' * (len(seeds) != 1)}"
    words = f"{full_name(config)}, {config.training.steps} steps, {count}, in {folder}"
    rows = [
        [plain(split), "all" if length == "all" else plain(length), plain(mean_std(values, 100))]
        for split, by_length in result["accuracy"].items()
        for length, values in by_length.items()
    ]
    curve = draw_learning_curve(metrics)
    picture = image(curve, "The learning curve: hit accuracy and dev accuracy by step") if curve else ""
    return page_part(
        heading(f"Run of {config.domain}"),
        note(words),
        table(rows, ["split", "instructions", "accuracy, %"]),
        picture,
    )
