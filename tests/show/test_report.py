from __future__ import annotations

import base64
import re
import shutil
import struct
import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import parse_qs

import pytest
from axe_playwright_python.sync_playwright import Axe
from browser import open_browser

from vbsix.cli import app
from vbsix.evaluation.calibration import calibrate
from vbsix.show.report import SECTIONS, _calibration, was_fitted

sys.path.insert(0, str(Path(__file__).parents[2] / "docs" / "scripts"))
import pictures

pytestmark = pytest.mark.integration


VOID = {"meta", "link", "img"}


class Outline(HTMLParser):
    """Checks that elements nest, and collects texts by element."""

    def __init__(self, page: str):
        super().__init__()
        self.open: list[str] = []
        self.texts: dict[str, list[str]] = {}
        self.links: list[str] = []
        self.feed(page)
        assert not self.open

    def handle_starttag(self, tag, attrs):
        self.links += [value or "" for name, value in attrs if name in ("src", "href")]
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.links += [value or "" for name, value in attrs if name in ("src", "href")]

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if self.open:
            self.texts.setdefault(self.open[-1], []).append(data)


@pytest.fixture(scope="module")
def page(tmp_path_factory, tiny_run) -> str:
    folder = tmp_path_factory.mktemp("runs")
    shutil.copytree(tiny_run.run.folder, folder / "first<&>")
    shutil.copytree(folder / "first<&>", folder / "_$^$second")
    out = folder / "report.html"
    with pytest.raises(SystemExit) as end:
        app(["report", str(folder / "first<&>"), str(folder / "_$^$second"), "--split", "held-out", "--out", str(out)])
    assert not end.value.code
    return out.read_text(encoding="utf-8")


def test_the_page_is_whole_and_needs_no_other_file(page):
    outline = Outline(page)
    inside = [link for link in outline.links if not link.startswith(("data:", "http://127.0.0.1:8000/#"))]
    assert inside and all(link.startswith("#") and f'id="{link[1:]}"' in page for link in inside)
    assert not re.search(r"<script|@import|url\(", page)
    assert outline.texts["h2"] == ["first<&>", "_$^$second"]
    assert outline.texts["h3"] == [*SECTIONS, *SECTIONS]


def test_it_says_when_it_was_made_and_how_far_confidence_can_be_trusted(page):
    outline = Outline(page)
    assert any(re.match(r"Made on \d{4}-\d\d-\d\d with vbsix", text) for text in outline.texts["p"])
    assert any("Calibration error: " in text for text in outline.texts["p"])
    assert any(re.fullmatch(r"\d+ to \d+%", text) for text in outline.texts["th"])
    assert any(text.startswith(("add: ", "remove: ", "swap: ")) for text in outline.texts["th"])


def test_calibration_is_called_in_sample_where_it_is(tmp_path):
    assert not was_fitted(tmp_path, "dev")  # the run has not ended
    (tmp_path / "confidence.json").write_text("{}")
    assert was_fitted(tmp_path, "dev") and not was_fitted(tmp_path, "held-out")
    found = calibrate([0.9, 0.8], [True, False])
    assert "was calibrated on this split" in _calibration(found, fitted=True)
    assert "was calibrated on this split" not in _calibration(found, fitted=False)


def test_mistakes_lead_into_the_playground(page):
    (link, *_) = [link for link in Outline(page).links if link.startswith("http")]
    state = parse_qs(link.partition("#")[2], keep_blank_values=True)
    assert state["domain"] == ["tangrams"] and state["model"] == [f"first<&>, seed {state['model'][0][-1]}"]
    assert state["say"] and state["world"] and state["target"]


def test_results_and_mistakes_are_there(page):
    outline = Outline(page)
    assert len([link for link in outline.links if link.startswith("data:image/svg+xml")]) == 2  # no panel is empty
    for link in [link for link in outline.links if link.startswith("data:image/svg+xml")]:
        assert "_$^$second (tangrams)<" in base64.b64decode(link.partition(",")[2]).decode()
    assert any("12 rows of held-out" in text for text in outline.texts["p"])
    assert "instruction 1" in outline.texts["th"] and {"add", "remove", "swap"} & set(outline.texts["th"])
    assert {"predicted", "should be", "at first"} <= set(outline.texts["figcaption"])
    assert outline.texts["q"]
    assert any("from generated sentences" in text for text in outline.texts["p"])


@pytest.mark.browser
def test_it_fits_a_phone_and_is_accessible(page):
    with open_browser() as browser:
        for scheme, width in (("light", 1000), ("dark", 1000), ("light", 360), ("dark", 320)):
            opened = browser.new_page(color_scheme=scheme, viewport={"width": width, "height": 800})
            opened.set_content(page)
            opened.get_by_text("All settings").first.click()
            assert opened.evaluate("document.documentElement.scrollWidth") <= width
            found = Axe().run(opened)
            assert not found.response["violations"], found.generate_report()


@pytest.mark.browser
def test_bars_stay_in_forced_colours(page):
    with open_browser() as browser:
        opened = browser.new_page(forced_colors="active")
        opened.set_content(page)
        ground, bar = (
            opened.locator(name).first.evaluate("one => getComputedStyle(one).backgroundColor")
            for name in ("body", ".bar")
        )
        assert bar != ground and bar != "rgba(0, 0, 0, 0)"
        assert opened.locator(".step.wrong").first.evaluate("one => getComputedStyle(one).borderLeftWidth") == "3px"


@pytest.mark.browser
def test_its_pictures_in_the_docs_can_be_renewed(page, tmp_path):
    page_file = tmp_path / "report.html"
    page_file.write_text(page, encoding="utf-8")
    with open_browser() as browser:
        for make in pictures.OF_REPORT.values():
            make(browser, page_file, tmp_path)
    made = sorted(tmp_path.glob("*.png"))
    assert [path.name for path in made] == ["report-mistakes.png", "report.png"]
    for path in made:
        width, height = struct.unpack(">II", path.read_bytes()[16:24])
        assert width == 1000 and 300 < height < 2500


def test_bad_arguments_are_one_message(tmp_path, capsys, monkeypatch):
    from vbsix.cli import main

    monkeypatch.setattr("sys.argv", ["vbsix", "report", str(tmp_path), "--out", str(tmp_path / "x.html")])
    with pytest.raises(SystemExit) as end:
        main()
    assert (end.value.code, capsys.readouterr().err) == (
        2,
        f"error: {tmp_path}: holds no run; a run's folder has a file run.json.\n",
    )
