"""Displays in notebooks: what they show, and that no text of a stranger becomes markup."""

from __future__ import annotations

import base64
import re
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import pytest
from rich.console import Console

import vbsix
from vbsix.config.schema import Config, override
from vbsix.domains.registry import get_domain
from vbsix.parsing.loading import load
from vbsix.runs.display import NotebookDisplay, create_display
from vbsix.runs.folder import Run
from vbsix.search.prediction import Parse, Reading
from vbsix.show.learning_curve import draw_learning_curve
from vbsix.show.notebook import parser_html, run_html

WORLD, AFTER = "1:0 2:3 3:4", "1:0 2:4"
EVIL = "<script>alert(1)</script>\"'><img src=x onerror=alert(2)> &amp; \x00"
TAGS = {"div", "b", "code", "table", "tbody", "tr", "th", "td", "img"}
ATTRIBUTES = {"style", "src", "alt"}
SVG_TAGS = {"svg", "title", "desc", "g", "rect", "path", "text", "circle"}


def reading(*worlds: str, commands=("all-objects 2 index ARemove",), confidence=0.75) -> Reading:
    tokens = tuple(" ".join(commands).split())
    return Reading(tokens, tuple(commands), (0.5,) * len(commands), worlds, 0.5, confidence, 0.4)


def a_parse(*readings: Reading, world: str = WORLD, said=("remove the circle",), domain: str = "tangrams") -> Parse:
    return Parse(world, tuple(said), readings, (), (), domain)


def read_html(html: str) -> ElementTree.Element:
    """The display as a tree. It holds no other elements and attributes than ours, in its images too."""
    root = ElementTree.fromstring(html)
    for element in root.iter():
        assert element.tag in TAGS
        assert set(element.attrib) <= ATTRIBUTES
        assert not re.search(r"url|expression|[<>]", element.get("style", ""))
    for picture in pictures(root):
        assert {element.tag.partition("}")[2] for element in picture.iter()} <= SVG_TAGS
        assert not any(name.startswith("on") for element in picture.iter() for name in element.attrib)
    return root


def pictures(root: ElementTree.Element) -> list[ElementTree.Element]:
    start = "data:image/svg+xml;base64,"
    sources = [element.attrib["src"] for element in root.iter("img")]
    assert all(source.startswith(start) for source in sources)
    return [ElementTree.fromstring(base64.b64decode(source.removeprefix(start))) for source in sources]


def text_of(root: ElementTree.Element) -> str:
    return " ".join(" ".join(root.itertext()).split())


# Parses


def test_a_parse_shows_instructions_commands_confidence_and_worlds():
    root = read_html(a_parse(reading(AFTER))._repr_html_())
    text = text_of(root)
    for part in ("remove the circle", "all-objects 2 index ARemove", "remove the second figure", "confidence 75%"):
        assert part in text
    assert [element.get("alt") for element in root.iter("img")] == [f"the world {WORLD}", f"the world {AFTER}"]


def test_what_is_not_understood_is_a_guess():
    parse = replace(a_parse(reading(AFTER)), understood=False)
    assert "not understood: this is a guess" in text_of(read_html(parse._repr_html_()))


def test_other_outcomes_are_listed_below():
    parse = a_parse(reading(AFTER), reading("1:0", confidence=0.11), reading("", confidence=0.1))
    root = read_html(parse._repr_html_())
    assert text_of(root).count("Other outcomes") == 1
    assert "11%" in text_of(root)
    assert [element.get("alt") for element in root.iter("img")][-2:] == ["the world 1:0", "the world (empty)"]


def test_a_parse_without_a_reading_says_so():
    root = read_html(a_parse()._repr_html_())
    assert "No program found" in text_of(root) and "remove the circle" in text_of(root)
    assert len(pictures(root)) == 1


def test_words_that_were_not_read_are_named():
    parse = replace(a_parse(reading(AFTER)), unknown_words=("circle",), unread_words=("at", "last"))
    assert "unknown words: circle" in text_of(read_html(parse._repr_html_()))
    assert "not read: at last" in text_of(read_html(parse._repr_html_()))


def test_worlds_of_other_domains_are_text():
    parse = a_parse(reading('["red"]', commands=("1 red",)), world='["off"]', domain="lamps")
    root = read_html(parse._repr_html_())
    assert not pictures(root)
    assert '["off"]' in text_of(root) and '["red"]' in text_of(root)


def test_a_domain_that_has_the_name_of_a_built_in_one_is_text():
    root = read_html(a_parse(reading("3"), world="9:9")._repr_html_())
    assert not pictures(root)
    assert "9:9" in text_of(root)


@pytest.mark.parametrize("domain", ["tangrams", "lamps", EVIL])
def test_no_text_of_a_parse_becomes_markup(domain):
    readings = reading(EVIL, commands=(EVIL,)), reading(EVIL, commands=(EVIL,))
    parse = replace(a_parse(*readings, world=EVIL, said=(EVIL,), domain=domain), unknown_words=(EVIL,))
    for one in (parse, replace(parse, readings=())):
        assert "<script>alert(1)</script>" in text_of(read_html(one._repr_html_()))


# Parsers and runs


def test_a_parser_shows_what_it_is_and_how_to_call_it():
    text = text_of(read_html(load("tangrams")._repr_html_()))
    for part in ("Parser for tangrams", "method vbsix", "recipe stochastic", "377 words", "parser.parse(world"):
        assert part in text
    assert repr(load("tangrams")).startswith("<parser for tangrams: vbsix-stochastic")


def test_no_text_of_a_model_becomes_markup():
    parser = load("tangrams")
    provenance = {name: EVIL for name in parser.provenance} | {"seed": [EVIL, 2], "steps": {EVIL: EVIL}}
    text = text_of(read_html(parser_html(replace(parser, provenance=provenance))))
    assert text.count("<script>alert(1)</script>") >= 5


RESULT = {"seeds": [0, 1], "accuracy": {"dev": {"1": [0.5, 0.7]}, "held-out": {"1": [1.0, 1.0]}}}
METRICS = [
    {"step": step, "seed": seed, "hit": share, "accuracy": {"dev": {"1": share}}}
    for step, share in ((10, 0.25), (20, 0.75))
    for seed in (0, 1)
]


def test_a_run_shows_its_accuracy_and_its_curve(tmp_path):
    config = override(Config(), {"training.steps": 20})
    root = read_html(run_html(Path("runs/first"), config, RESULT, METRICS))
    text = text_of(root)
    for part in ("Run of", "20 steps, 2 seeds, in runs/first", "dev 1 60.0 ± 14.1", "held-out 1 100.0 ± 0.0"):
        assert part in text
    (curve,) = pictures(root)
    assert len([element for element in curve.iter() if element.tag.endswith("circle")]) == 4


def test_a_run_without_metrics_has_no_curve():
    assert draw_learning_curve([]) is None
    assert not pictures(read_html(run_html(Path(EVIL), Config(), RESULT, [{"step": 1, "seed": 0}])))


def test_a_trained_run_is_displayed(tmp_path):
    (tmp_path / "metrics.jsonl").write_text('{"step": 1, "seed": 0, "hit": 0.5}\n')
    run = vbsix.TrainedRun(tmp_path, Config(), RESULT, get_domain("tangrams"))
    assert len(pictures(read_html(run._repr_html_()))) == 1
    assert "accuracy" not in repr(run)


# Worlds


class Lamp:
    tokens = ("red", "off")
    max_tokens_per_instruction = 1

    def start(self, context):
        return tuple(context)

    def step(self, state, token):
        return (*state, token)

    def instructions_done(self, state):
        return len(state) - 1

    def denotation(self, state):
        return state[-1]


def test_worlds_are_drawn_with_captions():
    root = read_html(vbsix.draw_world("tangrams", WORLD, AFTER, captions=["before <b>"])._repr_html_())
    assert len(pictures(root)) == 2
    assert "before <b>" in text_of(root)


def test_a_world_of_your_own_may_be_json_and_is_text():
    drawing = vbsix.draw_world(Lamp, ["off", EVIL])
    assert not pictures(read_html(drawing._repr_html_()))
    assert drawing.worlds[0].startswith('["off", ')


@pytest.mark.parametrize(
    ("arguments", "captions", "message"),
    [
        (("tangrams", WORLD, "1:9"), (), "world 2: position 1"),
        (("tangrams", WORLD), ("one", "two"), "2 captions for 1 worlds"),
        (("tangram", WORLD), (), "Did you mean 'tangrams'"),
    ],
)
def test_wrong_worlds_are_errors(arguments, captions, message):
    with pytest.raises(vbsix.VbsixError, match=message):
        vbsix.draw_world(*arguments, captions=captions)


# Progress


class Handle:
    def __init__(self):
        self.texts = []

    def update(self, bundle, raw):
        assert raw
        self.texts.append(bundle["text/plain"])


def test_progress_is_one_text_that_is_updated(monkeypatch, tmp_path):
    handle = Handle()
    monkeypatch.setattr("IPython.display.display", lambda bundle, raw, display_id: handle)
    monkeypatch.setattr("rich.console._is_jupyter", lambda: True)
    run = Run(tmp_path, override(Config(), {"training.steps": 7}), (0,), "synthetic")
    display = create_display([run], quiet=False)
    assert isinstance(display, NotebookDisplay)
    with display:
        display.on_progress(0)
        display.on_progress(7)
        display.on_metrics(7, [{"step": 7, "seed": 0, "hit": 0.5}], 2.0)
        display.on_evaluation(7, {"dev": {"1": [0.25]}})
    assert "compiling" in handle.texts[0]
    assert all(part in handle.texts[-1] for part in ("training", "7/7", "50.0%", "25.0%"))
    assert "\x1b" not in handle.texts[-1]


def test_other_places_have_their_displays(tmp_path):
    run = Run(tmp_path, Config(), (0,), "synthetic")
    assert not isinstance(create_display([run], quiet=False), NotebookDisplay)
    assert not Console().is_jupyter
