"""The playground as a person uses it, in a browser."""

from __future__ import annotations

import json
import re
import threading
import time
from collections.abc import Iterator
from dataclasses import asdict
from itertools import pairwise
from statistics import median, quantiles
from urllib.parse import urlencode

import httpx
import pytest
from axe_playwright_python.sync_playwright import Axe
from browser import go, key_presses, open_browser
from playground.conftest import MODEL, OTHER, ROW, SAID, serve
from playwright.sync_api import Browser, Page, expect

from vbsix.playground.answers import answer_parse, answer_search
from vbsix.playground.examples import EXAMPLES, GUIDED
from vbsix.show.svg import world_html

STAGE = "1:r_ 2:__ 3:__ 4:by 5:__ 6:__ 7:go 8:__ 9:__ 10:__"
BEAKERS = "1:ggg 2:_ 3:yo 4:_ 5:rr 6:_ 7:p"
SLOWEST = 0.2
"""Seconds from a key press to the world drawn."""

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def server(all_models) -> Iterator[str]:
    """With a model of each domain."""
    with serve(all_models) as address:
        yield address


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with open_browser() as opened:
        yield opened


@pytest.fixture
def page(browser: Browser, server: str) -> Iterator[Page]:
    """A page that must stay on this server and log no error."""
    wrong: list[str] = []
    context = browser.new_context(base_url=server, viewport={"width": 1280, "height": 900})
    opened = context.new_page()
    opened.on("pageerror", lambda error: wrong.append(str(error)))
    opened.on("console", lambda message: wrong.append(message.text) if "Content Security" in message.text else None)
    opened.on(
        "request", lambda request: None if request.url.startswith((server, "data:")) else wrong.append(request.url)
    )
    yield opened
    context.close()
    assert not wrong


@pytest.fixture(scope="module")
def ask(server: str):
    def ask(path: str, **body) -> dict:
        answer = httpx.post(server + path, json=body, timeout=60)
        assert answer.status_code == 200, answer.text
        return answer.json()

    return ask


def address(view: str = "play", *said: str, model: str = MODEL, world: str = ROW, **more: str) -> str:
    pairs = [("view", view), ("model", model), ("world", world), *(("say", text) for text in said), *more.items()]
    return "/#" + urlencode(pairs)


def world_on_stage(page: Page):
    return page.locator("#stage figure")


def test_typing_shows_each_command_and_its_world(page, ask):
    go(page, address())
    page.get_by_label("Instruction 1", exact=True).click()
    page.keyboard.type(SAID[0])
    (first, *_) = ask("/api/parse", model=MODEL, world=ROW, utterances=SAID[:1])["readings"]
    expect(world_on_stage(page)).to_have_attribute("data-world", first["commands"][0]["world"])
    page.keyboard.press("Enter")
    expect(page.get_by_label("Instruction 2", exact=True)).to_be_focused()
    page.keyboard.type(SAID[1])
    both = ask("/api/parse", model=MODEL, world=ROW, utterances=SAID)["readings"][0]["commands"]
    expect(world_on_stage(page)).to_have_attribute("data-world", both[1]["world"])
    lines = page.locator("#say li")
    for line, command in zip(lines.all(), both, strict=False):
        expect(line.locator("code")).to_have_text(" ".join(command["tokens"]))
        expect(line.locator(".words")).to_have_text(command["words"])
        expect(line.locator(".doubt")).to_have_count(int(command["doubtful"]))
    shapes = page.locator("#stage [data-piece]").evaluate_all("found => found.map(one => one.dataset.piece)")
    assert shapes == [cell.partition(":")[2] for cell in both[1]["world"].split()]
    # Back and forth.
    page.get_by_role("button", name="One step back").click()
    expect(world_on_stage(page)).to_have_attribute("data-world", both[0]["world"])
    page.get_by_label("Step", exact=True).press("Home")
    expect(world_on_stage(page)).to_have_attribute("data-world", ROW)
    page.get_by_role("button", name="Show the world after instruction 2").click()
    expect(world_on_stage(page)).to_have_attribute("data-world", both[1]["world"])
    page.get_by_role("button", name="Remove instruction 1").click()
    expect(page.get_by_label("Instruction 1", exact=True)).to_have_value(SAID[1])


def test_lines_that_are_cleared_disturb_no_others(page, ask):
    said = [*SAID, "remove the first shape"]
    lines = page.locator("#say input")

    def expect_lines(*texts: str) -> None:
        """The lines say this, and those that say something have their own commands beside them."""
        expect(lines).to_have_count(len(texts))
        spoken = [text for text in texts if text]
        commands = ask("/api/parse", model=MODEL, world=ROW, utterances=spoken)["readings"][0]["commands"]
        wanted = iter(commands)
        for place, text in enumerate(texts):
            expect(lines.nth(place)).to_have_value(text)
            expect(lines.nth(place)).to_have_attribute("aria-label", f"Instruction {place + 1}")
            outcome = page.locator("#say .outcome").nth(place)
            expect(outcome.locator("code")).to_have_text([" ".join(next(wanted)["tokens"])] if text else [])

    go(page, address("play", *said))
    expect_lines(*said, "")
    lines.nth(1).fill("")
    expect_lines(said[0], "", said[2], "")
    lines.nth(2).click()  # the line stays under the hand of who clicks it
    expect(lines.nth(1)).to_be_focused()
    expect_lines(said[0], said[2], "")
    lines.nth(0).fill("")
    expect_lines("", said[2], "")
    lines.nth(0).press("Tab")
    expect_lines(said[2], "")


def test_with_ten_instructions_the_skip_link_leads_to_the_last(page):
    go(page, address("play", *SAID * 5))
    page.locator("#skip").press("Enter")
    expect(page.get_by_label("Instruction 10", exact=True)).to_be_focused()


def test_what_is_being_typed_is_one_step_of_the_address(page):
    go(page, address())
    before = page.evaluate("history.length")
    line = page.get_by_label("Instruction 1", exact=True)
    line.press_sequentially(SAID[0])
    assert "say=" + SAID[0].replace(" ", "+") in page.url
    assert page.evaluate("history.length") == before + 1
    page.reload()
    expect(line).to_have_value(SAID[0])
    page.get_by_role("button", name="Undo").click()
    expect(line).to_have_value("")


def test_another_reading_can_be_chosen_undone_and_shared(page, ask, server):
    go(page, address("play", SAID[0]))
    readings = ask("/api/parse", model=MODEL, world=ROW, utterances=SAID[:1])["readings"]
    ends = list(dict.fromkeys(reading["commands"][0]["world"] for reading in readings))
    best, other = ends[0], ends[1]
    page.locator(".reading input").nth(1).check()
    expect(world_on_stage(page)).to_have_attribute("data-world", other)
    expect(page.locator(".reading input").nth(1)).to_be_focused()
    page.get_by_role("button", name="Copy link").click()
    link = page.url
    assert link.startswith(server) and SAID[0].split()[0] in link
    page.get_by_role("button", name="Undo").click()
    expect(world_on_stage(page)).to_have_attribute("data-world", best)
    page.get_by_role("button", name="Redo").click()
    expect(world_on_stage(page)).to_have_attribute("data-world", other)
    go(page, link)
    expect(page.get_by_label("Instruction 1", exact=True)).to_have_value(SAID[0])
    expect(world_on_stage(page)).to_have_attribute("data-world", other)


def test_a_choice_stays_when_more_is_typed(page, ask):
    def first_commands(**more) -> list[str]:
        commands = ask("/api/parse", model=MODEL, world=ROW, **more)["readings"][0]["commands"]
        return [" ".join(command["tokens"]) for command in commands]

    def expect_commands(*tokens: str) -> None:
        for place, command in enumerate(tokens):
            expect(page.locator("#say code").nth(place)).to_have_text(command)

    best = first_commands(utterances=SAID)
    go(page, address("play", SAID[0]))
    answer = ask("/api/parse", model=MODEL, world=ROW, utterances=SAID[:1])
    other = answer["readings"][answer["outcomes"][-1]["readings"][0]]["commands"][0]
    chosen = " ".join(other["tokens"])
    assert chosen != best[0]
    page.locator(".reading input").last.check()
    expect_commands(chosen)
    page.get_by_label("Instruction 2", exact=True).click()
    page.keyboard.type(SAID[1])
    both = first_commands(utterances=SAID, begin=[chosen])
    assert both[0] == chosen
    expect_commands(*both)
    page.get_by_role("button", name="One step back").click()
    expect(world_on_stage(page)).to_have_attribute("data-world", other["world"])
    page.get_by_role("button", name="Copy link").click()
    link = page.url
    page.get_by_role("button", name="Undo").click()
    expect(page.get_by_label("Instruction 2", exact=True)).to_have_value("")
    expect_commands(chosen)
    page.get_by_role("button", name="Redo").click()
    expect_commands(*both)
    go(page, link)
    expect_commands(*both)
    page.get_by_role("button", name="Start over").click()
    expect_commands(*best)
    expect(page.get_by_role("button", name="Start over")).to_have_count(0)
    page.get_by_role("button", name="Undo").click()
    expect_commands(*both)


@pytest.mark.parametrize(
    ("domain", "world", "text", "place", "group", "choice", "changed"),
    [
        ("scene", STAGE, "the person in red leaves", "position 4", "hat", "red", STAGE.replace("by", "br")),
        ("alchemy", BEAKERS, "mix the third beaker", "beaker 2", "pour in", "red", BEAKERS.replace("2:_", "2:r")),
    ],
    ids=["scene", "alchemy"],
)
def test_other_worlds_are_played_with_too(page, ask, domain, world, text, place, group, choice, changed):
    go(page, address())
    page.get_by_role("radio", name=domain).click()
    expect(page.locator("#model")).to_have_value(domain)
    expect(page.get_by_label("First world as text")).to_have_value(re.compile(r"^1:\S+ 2:\S+ .* 7:\S+"))
    go(page, address(model=domain, world=world))
    page.get_by_role("button", name=f"First world: change {place}").press("Enter")
    button = page.get_by_role("group", name=group).get_by_role("button", name=choice)
    button.press("Enter")
    expect(world_on_stage(page)).to_have_attribute("data-world", changed)
    expect(button).to_be_focused()
    page.get_by_label("Instruction 1", exact=True).fill(text)
    command = ask("/api/parse", model=domain, world=changed, utterances=[text])["readings"][0]["commands"][0]
    expect(page.locator("#say .words").first).to_have_text(command["words"])
    expect(world_on_stage(page)).to_have_attribute("data-world", command["world"])
    pieces = page.locator("#stage [data-piece]").evaluate_all("found => found.map(one => one.dataset.piece)")
    contents = [cell.partition(":")[2] for cell in command["world"].split()]
    units = [unit for content in contents for unit in ([content] if domain == "scene" else content)]
    assert pieces == [unit for unit in units if unit.strip("_")]


def test_links_and_steps_back_to_what_is_not_here(page):
    alert, shown = page.get_by_role("alert"), page.get_by_label("First world as text")
    go(page, address("play", SAID[0], model="ghost", domain="scene", world=STAGE))
    expect(alert).to_have_text("There is no model ghost here; this is scene.")
    expect(world_on_stage(page)).to_have_attribute("data-world", re.compile("^1:.* 10:"))
    go(page, address("play", SAID[0], model="ghost", domain="chess", world="e4"))
    expect(alert).to_have_text(f"There is no model of chess here; this is {MODEL}, a model of tangrams.")
    expect(shown).not_to_have_value("e4")
    go(page, address("play", SAID[0], model="ghost", world=STAGE))  # nothing tells what it is of
    expect(alert).to_contain_text(f"There is no model ghost here; this is {MODEL}. First world: ")
    go(page, address("play", SAID[0]))
    page.evaluate("location.hash = 'view=play'")
    expect(page.get_by_label("Instruction 1", exact=True)).to_have_value("")
    expect(shown).to_have_value(re.compile("^1:"))
    expect(alert).to_be_hidden()
    assert "world=" in page.url
    page.go_back()
    expect(page.get_by_label("Instruction 1", exact=True)).to_have_value(SAID[0])
    expect(shown).to_have_value(ROW)


def test_the_world_is_changed_by_hand_with_keys_alone(page):
    go(page, address())
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")  # the link that skips to the instructions
    expect(page.get_by_label("Instruction 1", exact=True)).to_be_focused()
    page.get_by_role("button", name="First world: change position 2").focus()
    page.keyboard.press("Enter")
    page.keyboard.press("Tab")  # over the places that follow
    for _ in range(10):
        if page.evaluate("document.activeElement.textContent") == "take away":
            break
        page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    expect(world_on_stage(page)).to_have_attribute("data-world", "1:0 2:4 3:1")
    page.get_by_role("button", name="figure D").press("Enter")
    expect(world_on_stage(page)).to_have_attribute("data-world", "1:0 2:3 3:4 4:1")
    page.get_by_role("button", name="Undo").press("Enter")
    expect(world_on_stage(page)).to_have_attribute("data-world", "1:0 2:4 3:1")


def test_examples_say_whether_the_outcome_is_right(page, ask):
    go(page, address())
    (example, *_) = EXAMPLES["tangrams"]
    found = ask("/api/parse", model=MODEL, world=example.world, utterances=list(example.utterances))
    right = found["readings"][0]["commands"][-1]["world"] == example.target
    chip, verdict = page.get_by_role("button", name=example.title, exact=True), page.locator("#verdict")
    expect(verdict).to_be_hidden()
    chip.click()
    expect(verdict).to_contain_text("✓ This is the right outcome." if right else "✗ This is not the right outcome.")
    expect(chip).to_have_attribute("aria-pressed", "true")
    expect(verdict.locator("figure")).to_have_count(int(not right))
    expect(page.locator("#say li")).to_have_count(len(example.utterances) + 1)
    page.get_by_label("Instruction 1", exact=True).press_sequentially(" now")
    expect(verdict).to_be_hidden()  # the target is that of the example only


def test_where_the_outcome_is_wrong_the_right_one_is_shown(page, ask):
    end = ask("/api/parse", model=MODEL, world=ROW, utterances=SAID[:1])["readings"][0]["commands"][-1]["world"]
    verdict = page.locator("#verdict")
    go(page, address("play", SAID[0], target="1:4 2:0"))
    expect(verdict).to_have_text(re.compile("✗ This is not the right outcome.It should be:"))
    expect(verdict.locator("figure")).to_have_attribute("data-world", "1:4 2:0")
    pieces = verdict.locator("[data-piece]").evaluate_all("found => found.map(one => one.dataset.piece)")
    assert pieces == ["4", "0"]
    go(page, address("play", SAID[0], target=end))
    expect(verdict).to_have_text("✓ This is the right outcome.")
    go(page, address("play", SAID[0], target="nothing"))  # no world, so there is nothing to draw
    expect(verdict).to_have_text("✗ This is not the right outcome.")
    expect(page.get_by_role("alert")).to_be_hidden()


def test_the_page_says_what_it_is_and_how_good_the_model_is(page):
    go(page, address())
    intro = page.locator("#intro")
    expect(intro).to_contain_text("Type in plain English what should happen")
    expect(intro).to_contain_text("Up to five figures stand in a row")
    lead, others = page.locator(".lead"), page.locator("#intro p:not(.lead), .quiet, label")
    sizes = [float(one.evaluate("one => parseFloat(getComputedStyle(one).fontSize)")) for one in [lead, *others.all()]]
    assert sizes[0] > max(sizes[1:])  # it is read first
    about = "Share of right outcomes: 60% after 1 instruction, on generated sentences"
    expect(page.locator("#about-model")).to_contain_text(about)
    expect(page.locator("#model option").first).to_have_text(f"{MODEL} (60% right after 1 generated instruction)")


def test_the_start_page_says_what_to_type(page):
    """And shows a world in which that makes sense."""
    go(page, "/")
    for domain, (example, *_) in EXAMPLES.items():
        page.get_by_role("radio", name=domain).click()
        expect(page.get_by_label("First world as text")).to_have_value(example.world)
        line = page.get_by_label("Instruction 1", exact=True)
        expect(line).to_have_attribute("placeholder", f"Type here, for example: {example.utterances[0]}")


@pytest.mark.parametrize(("width", "height"), [(1366, 650), (390, 844)], ids=["laptop", "phone"])
def test_the_first_screen_has_the_world_and_the_line_to_type_in(page, width, height):
    page.set_viewport_size({"width": width, "height": height})
    go(page, "/")
    for domain in EXAMPLES:
        page.get_by_role("radio", name=domain).click()
        page.evaluate("scrollTo(0, 0)")
        for part in (page.locator("#stage svg"), page.get_by_label("Instruction 1", exact=True)):
            expect(part).to_be_in_viewport(ratio=1)
        assert page.evaluate("document.documentElement.scrollWidth") <= width  # however long the names of models are


@pytest.mark.parametrize("view", ["play", "search", "compare", "docs"])
def test_headings_are_in_order(page, view):
    """One of the first level, none skipped, and one for each section."""
    go(page, address(view, SAID[0], beam="64")) if view != "docs" else page.goto("/docs")
    shown = {"play": ".reading", "search": ".card", "compare": ".model", "docs": "article"}[view]
    expect(page.locator(shown).first).to_be_visible()
    headings = page.get_by_role("heading").evaluate_all("all => all.map(one => Number(one.tagName[1]))")
    assert headings[0] == 1 and headings.count(1) == 1
    assert all(after <= before + 1 for before, after in pairwise(headings)), headings
    sections = page.locator("section:visible, article:visible")
    assert sections.count() and all(one.get_by_role("heading").count() for one in sections.all())


def test_the_accuracy_of_models_that_are_compared_is_beside_their_names(page):
    go(page, address("compare", SAID[0]))
    for name, share in ((MODEL, 60), (OTHER, 10)):
        heading = page.get_by_role("heading", name=f"{name} {share}% right after 1 generated instruction", exact=True)
        expect(heading).to_be_visible()


def test_readings_that_end_in_one_world_are_one_outcome(page, ask):
    found = ask("/api/parse", model=MODEL, world=ROW, utterances=SAID)
    many = next(place for place, one in enumerate(found["outcomes"]) if len(one["readings"]) > 1)
    go(page, address("play", *SAID))
    expect(page.locator(".reading")).to_have_count(len(found["outcomes"]))
    outcome = page.locator(".readings > *").nth(many)
    expect(outcome.locator("summary")).to_have_text(f"{len(found['outcomes'][many]['readings'])} programs lead here")
    outcome.locator("summary").click()
    outcome.locator(".program input").nth(1).check()
    second = found["readings"][found["outcomes"][many]["readings"][1]]["commands"]
    expect(page.locator("#say code").first).to_have_text(" ".join(second[0]["tokens"]))
    expect(world_on_stage(page)).to_have_attribute("data-world", found["outcomes"][many]["world"])


def test_what_is_not_understood_is_called_a_guess(page):
    go(page, address("play", "frobnicate the gizmo"))
    expect(page.locator(".note").first).to_have_text("Not understood. What you see is only a guess.")
    assert set(page.locator(".confidence").all_text_contents()) == {"a guess"}
    expect(page.locator("#say .unknown")).to_have_text(["frobnicate", "gizmo"])
    expect(page.locator("#say .doubt")).to_have_text("Doubtful:")
    expect(page.locator("#stage-title")).to_contain_text("After 1 of 1: Doubtful:")
    expect(page.locator("body")).not_to_contain_text("annot be done")


def test_what_cannot_be_done_says_why(page):
    def answer(route) -> None:
        """The quick answer as it is, and the explained one with a reason."""
        asked = json.loads(route.request.post_data)
        found = route.fetch(post_data=json.dumps({**asked, "explain": False})).json()
        reason = {"understood": False, "reasons": ["beaker 7 is full"]} if asked["explain"] else {}
        route.fulfill(json={**found, **reason})

    page.route("**/api/parse", answer)
    go(page, address("play", SAID[0]))
    expect(page.locator("#say .doubt").first).to_have_text("Cannot be done: beaker 7 is full. A guess:")
    expect(page.locator("#stage-title")).to_contain_text("After 1 of 1: Cannot be done: beaker 7 is full. A guess:")
    expect(page.locator(".note").last).to_have_text("Instruction 1 cannot be done: beaker 7 is full.")
    page.get_by_role("button", name="Compare models").click()
    expect(page.locator("article .doubt")).to_have_text(["Cannot be done: beaker 7 is full. A guess: "] * 2)


def test_a_page_that_comes_early_says_what_it_waits_for(page):
    asked = []

    def list_models(route) -> None:
        asked.append(route)
        found = route.fetch().json()
        if len(asked) < 3:
            waiting = [{**one, "ready": False} for one in found["models"]]
            found = {**found, "models": waiting, "preparing": "compiling scene, model 1 of 3 (7 s)"}
        route.fulfill(json=found)

    page.route("**/api/models", list_models)
    page.goto("/")
    expect(page.locator("#preparing-words")).to_have_text("The server is compiling scene, model 1 of 3 (7 s).")
    expect(page.locator("#say")).to_be_hidden()
    page.wait_for_selector("body[data-ready]")
    expect(page.locator("#preparing")).to_be_hidden()


def test_pointing_at_a_token_shows_what_it_attends_to(page, ask):
    go(page, address("play", *SAID))
    commands = [
        " ".join(command["tokens"])
        for command in ask("/api/parse", model=MODEL, world=ROW, utterances=SAID)["readings"][0]["commands"]
    ]
    found = ask("/api/attention", model=MODEL, world=ROW, utterances=SAID, commands=commands)["commands"][1]
    line = page.locator("#say li").nth(1)
    shown, tokens = line.locator(".attention"), line.locator(".token")
    expect(shown).to_be_hidden()

    def expect_weights(place: int) -> None:
        expect(shown).to_contain_text(f"{found[place]['token']} ←")
        wanted = [f"{weight:.0%}" for weight in found[place]["weights"]]
        styled = shown.locator(".weighted").evaluate_all(
            "all => all.map(one => one.style.getPropertyValue('--weight'))"
        )
        assert styled == wanted

    tokens.first.hover()
    expect_weights(0)
    page.locator("h1").hover()
    expect(shown).to_be_hidden()
    tokens.first.focus()
    page.keyboard.press("End")
    expect(tokens.last).to_be_focused()
    expect_weights(len(found) - 1)
    seen = Axe().run(page)
    assert not seen.response["violations"], seen.generate_report()
    page.keyboard.press("Tab")
    expect(shown).to_be_hidden()


def test_corrections_are_saved(page):
    saved = []

    def list_models(route) -> None:
        route.fulfill(json={**route.fetch().json(), "feedback": True})

    def save(route) -> None:
        saved.append(json.loads(route.request.post_data))
        route.fulfill(json={"saved": len(saved)})

    page.route("**/api/models", list_models)
    page.route("**/api/feedback", save)
    go(page, address("play", SAID[0]))
    form = page.get_by_role("region", name="Was this right?")
    form.get_by_role("button", name="No, correct it").click()
    page.get_by_role("button", name="Right world: change position 1").click()
    page.get_by_role("button", name="take away").click()
    expect(page.get_by_label("Right world as text")).not_to_have_value(re.compile("1:0"))
    wanted = page.get_by_label("Right world as text").input_value()
    page.get_by_role("button", name="Save this world").click()
    expect(form).to_contain_text("Saved. The file has 1 example.")
    assert saved == [{"model": MODEL, "context": ROW, "instructions": SAID[:1], "target": wanted}]


def test_a_drawn_search_zooms_moves_and_follows(page):
    go(page, address("search", SAID[0], beam="64"))
    page.get_by_text("Execution space as a picture").click()
    frame = page.get_by_role("region", name="Execution space as a picture")

    def view() -> list[float]:
        return [float(part) for part in (frame.locator("svg").first.get_attribute("viewBox") or "").split()]

    start = view()
    frame.press("+")
    assert view()[2] < start[2]
    before = view()
    frame.press("ArrowRight")
    assert view()[0] > before[0]
    page.get_by_label("Iteration of the search").fill("4")
    here = frame.locator("[data-iteration='4']").first
    expect(here).not_to_have_class(re.compile("elsewhere"))
    expect(frame.locator("[data-iteration='1']").first).to_have_class(re.compile("elsewhere"))
    expect(here).to_be_in_viewport()
    page.get_by_role("button", name="Execution space as a picture: fit the whole drawing").click()
    assert view()[2] >= start[2]


def test_a_guided_search_takes_the_model_that_it_needs(page):
    """With another model under the name of the built-in one that has a critic."""
    go(page, address("search", SAID[0], beam="4"))
    expect(page.get_by_role("button", name="The critic wins")).to_have_count(0)
    (wins,) = GUIDED["tangrams-critic"]

    def list_models(route) -> None:
        found = route.fetch().json()
        guided = {**asdict(wins), "target": wins.worlds[-1]}  # as the server sends it
        found["models"] += [{**found["models"][0], "name": "tangrams-critic", "guided": [guided]}]
        route.fulfill(json=found)

    def answer(route) -> None:
        asked = json.loads(route.request.post_data)
        asked["model"] = {"tangrams-critic": MODEL}.get(asked["model"], asked["model"])
        route.fulfill(response=route.fetch(post_data=json.dumps(asked)))

    page.route("**/api/models", list_models)
    for path in ("parse", "search"):
        page.route(f"**/api/{path}", answer)
    go(page, address("search", SAID[0], beam="4", critic="no"))
    page.get_by_role("button", name="The critic wins").press("Enter")
    expect(page.locator("#model")).to_have_value("tangrams-critic")
    expect(page.get_by_label("the critic ranks")).to_be_checked()
    expect(page.get_by_label("Target as text")).to_have_value(wins.worlds[-1])
    expect(page.locator(".guided")).to_contain_text("the right states drop out of the beam")
    expect(page.locator(".found").first).to_be_visible()


def test_links_with_too_many_instructions_say_so(page):
    go(page, address("play", *["remove the first figure"] * 12))
    expect(page.get_by_role("alert")).to_have_text("The link has 12 instructions; the first 10 are shown.")


def test_one_model_has_nothing_to_compare_with(page):
    go(page, address(model="scene", world=STAGE))
    expect(page.get_by_role("button", name="Compare models")).to_be_hidden()
    go(page, address())
    expect(page.get_by_role("button", name="Compare models")).to_be_visible()


def test_random_worlds(page):
    go(page, "/")
    world = page.get_by_label("First world as text")
    before = world.input_value()
    for _ in range(20):  # by chance it is the same one a few times
        page.get_by_role("button", name="Random world").click()
        page.wait_for_timeout(100)
        if world.input_value() != before:
            break
    expect(world).not_to_have_value(before)


def test_a_domain_of_ones_own_is_shown_as_text(page):
    """With the domain's name made up: it has no random worlds, and no pictures."""
    world = "<b>" + "stack(a, b); " * 100

    def list_models(route) -> None:
        (first, *_) = route.fetch().json()["models"]
        own = {**first, "name": "own", "domain": "blocks", "examples": [], "random": False}
        route.fulfill(json={"models": [own], "preparing": None, "feedback": False})

    page.route("**/api/models", list_models)
    page.route(
        "**/api/parse",
        lambda route: route.fulfill(
            json={
                "readings": [],
                "outcomes": [],
                "understood": False,
                "reasons": [],
                "unknown_words": [],
                "unread_words": [],
                "pictures": {world: world_html("own", world)},
            }
        ),
    )
    page.set_viewport_size({"width": 360, "height": 740})
    go(page, address(model="own", domain="blocks", world=world))
    expect(page.locator("#stage figure code")).to_have_text(world)
    assert page.evaluate("document.documentElement.scrollWidth") <= 360
    expect(page.get_by_role("button", name="Random world")).to_be_disabled()
    expect(page.locator(".chip")).to_have_count(0)


def test_bad_input_says_what_is_wrong(page):
    go(page, address())
    text = page.get_by_label("First world as text")
    text.fill("1:0 2:9")
    text.press("Enter")
    alert = page.get_by_role("alert")
    expect(alert).to_have_text("First world: position 2 ('9'): expected a shape from 0 to 4")
    text.fill(ROW)
    text.press("Enter")
    expect(alert).to_be_hidden()
    page.get_by_label("Instruction 1", exact=True).fill("frobnicate the second figure")
    expect(page.locator(".note").last).to_contain_text("frobnicate")
    go(page, address(model="../../etc/passwd"))
    expect(page.get_by_role("alert")).to_contain_text("There is no model ../../etc/passwd here")


def test_a_search_is_shown_step_by_step(page, ask):
    go(page, address("search", SAID[0], beam="64"))
    target = ask("/api/parse", model=MODEL, world=ROW, utterances=SAID[:1])["readings"][0]["commands"][0]["world"]
    found = ask("/api/search", model=MODEL, world=ROW, target=target, utterances=SAID[:1], beam=64)
    for name in ("execution", "program"):
        space = page.get_by_role("region", name=f"{name.title()} space", exact=True)
        expect(space.locator(".found code")).to_have_text(" ".join(found[name]["programs"][0]["tokens"]))
        for at, iteration in enumerate(found[name]["iterations"], start=1):
            page.get_by_label("Iteration of the search").fill(str(at))
            expect(space).to_contain_text(f"{iteration['expanded']} expanded, {iteration['successors']} successors")
            expect(space.locator(".card.beam")).to_have_count(iteration["kept"])
            expect(space.locator(".card.correct")).to_have_count(iteration["correct"])
            expect(space.locator(".card.incorrect")).to_have_count(iteration["incorrect"])
            expect(space.locator(".card.pruned")).to_have_count(min(iteration["pruned"], 12))
            ways = sum(state["ways"] for state in found[name]["states"] if state["iteration"] == at)
            assert ways == iteration["successors"] or iteration["pruned"] > 12
    assert any(one["merged"] for one in found["execution"]["iterations"])
    assert not any(one["merged"] for one in found["program"]["iterations"])
    page.get_by_label("Iteration of the search").fill("2")
    expect(page.locator(".card.beam .critic").first).to_be_visible()
    page.get_by_role("button", name="Next iteration").click()
    expect(page.locator(".caption")).to_have_text("After 3 tokens")
    page.get_by_text("Execution space as a picture").click()
    expect(page.get_by_role("region", name="Execution space as a picture").locator("svg").first).to_be_visible()
    # Another target, changed by hand, is another search.
    follow = page.get_by_role("button", name="Use the model's outcome")
    expect(follow).to_be_disabled()
    page.get_by_role("button", name="Target: change position 1").click()
    page.get_by_role("button", name="take away").click()
    expect(page.get_by_label("Target as text")).not_to_have_value(target)
    expect(page.locator(".found").first).to_contain_text("No program found.")
    follow.click()
    expect(page.get_by_label("Target as text")).to_have_value(target)
    expect(page.locator(".found code").first).to_be_visible()


def test_a_running_search_hides_what_an_older_one_found(page, monkeypatch):
    go(page, address("search", SAID[0], beam="64"))
    result, busy = page.locator(".found").first, page.get_by_text("Searching.")
    page.get_by_label("Iteration of the search").fill("3")
    go_on = threading.Event()

    def answer_slowly(model, request):
        go_on.wait(60)
        return answer_search(model, request)

    monkeypatch.setattr("vbsix.playground.app.answer_search", answer_slowly)
    try:
        page.get_by_role("button", name="Target: change position 1").click()
        page.get_by_role("button", name="take away").click()
        expect(busy).to_be_visible()
        expect(result).to_be_hidden()
    finally:
        go_on.set()
    expect(result).to_contain_text("No program found.")
    expect(busy).to_be_hidden()
    expect(page.locator(".caption")).to_have_text("After 3 tokens")


def test_a_target_may_be_wrong_or_empty(page):
    target, follow = page.get_by_label("Target as text"), page.get_by_role("button", name="Use the model's outcome")
    go(page, address("search", "he leaves", model="scene", world=STAGE, target=STAGE, beam="4"))
    expect(page.locator(".found").first).to_be_visible()
    target.fill("xyz")
    target.press("Enter")
    expect(page.get_by_role("alert")).to_contain_text("Target: ")
    expect(page.locator(".found").first).to_be_hidden()
    expect(page.get_by_role("button", name="Target: change position 1", exact=True)).to_have_count(0)
    follow.click()
    expect(page.get_by_role("button", name="Target: change position 1", exact=True)).to_be_visible()
    go(page, address("search", SAID[0], target="", beam="64"))
    expect(target).to_have_value("")
    expect(page.locator("#search .world-view figure")).to_have_attribute("data-world", "")
    follow.click()
    expect(target).not_to_have_value("")


def test_a_bad_world_leaves_nothing_of_another_view(page):
    go(page, address("play", SAID[0]))
    expect(page.locator(".reading").first).to_be_visible()
    text = page.get_by_label("First world as text")
    text.fill("1:9")
    text.press("Enter")
    page.get_by_role("button", name="Compare models").click()
    expect(page.locator(".reading")).to_have_count(0)
    expect(page.get_by_role("alert")).to_contain_text("First world: ")


def test_models_are_compared(page, ask):
    go(page, address("compare", *SAID))
    for model in (MODEL, OTHER):
        commands = ask("/api/parse", model=model, world=ROW, utterances=SAID)["readings"][0]["commands"]
        article = page.locator("article").filter(has_text=model)
        for command in commands:
            expect(article).to_contain_text(command["words"])


def test_the_model_that_disagrees_is_marked(page):
    """With three answers made up: two come to one world, the third to another."""
    ends = {MODEL: "1:0", OTHER: "1:0", "third": "1:3"}

    def list_models(route) -> None:
        (first, *_) = route.fetch().json()["models"]
        shown = [{**first, "name": name} for name in ends]
        route.fulfill(json={"models": shown, "preparing": None, "feedback": False})

    def answer(route) -> None:
        asked = json.loads(route.request.post_data)
        found = route.fetch(post_data=json.dumps({**asked, "model": MODEL})).json()
        end = ends[asked["model"]]
        command = {"tokens": ["1"], "words": "so", "confidence": 0.5, "doubtful": False, "world": end}
        picture = found["pictures"][ROW]
        reading = {"commands": [command], "probability": 0.5, "confidence": 0.5}
        outcomes = [{"world": end, "confidence": 0.5, "readings": [0]}]
        made = {**found, "readings": [reading], "outcomes": outcomes, "reasons": [None]}
        route.fulfill(json={**made, "pictures": dict.fromkeys((ROW, *ends.values()), picture)})

    page.route("**/api/models", list_models)
    page.route("**/api/parse", answer)
    go(page, address("compare", SAID[0]))
    expect(page.locator("#panel")).to_contain_text("2 of 3 models come to the same world.")
    for name in ends:
        marks = page.locator("article").filter(has=page.get_by_role("heading", name=name)).locator("mark")
        expect(marks).to_have_text(["another world"] if name == "third" else [])


def test_a_comparison_shows_what_is_ready_first(page, ask):
    """The card of a model that is being prepared is filled once it is ready, while typing goes on."""
    ready = threading.Event()
    refused = []

    def list_models(route) -> None:
        found = route.fetch().json()
        for one in found["models"]:
            one["ready"] = one["name"] != OTHER or ready.is_set()
        route.fulfill(json={**found, "preparing": None if ready.is_set() else "compiling (1 s)"})

    def answer(route) -> None:
        asked = json.loads(route.request.post_data)
        if asked["model"] == OTHER and asked["instructions"] and not ready.is_set():
            refused.append(asked)
            route.fulfill(status=503, headers={"Retry-After": "1"}, json={"detail": "being prepared"})
        else:
            route.continue_()

    page.route("**/api/models", list_models)
    page.route("**/api/parse", answer)
    go(page, address("compare", SAID[0]))
    first, second = (page.locator("article").filter(has_text=name) for name in (MODEL, OTHER))
    expect(first.locator("li")).to_have_count(1)
    expect(second).to_contain_text("This model is being prepared.")
    expect(page.locator("#panel")).to_contain_text("1 of 2 models have answered.")
    page.get_by_label("Instruction 2", exact=True).fill(SAID[1])
    expect(first.locator("li")).to_have_count(2)
    assert not refused
    ready.set()
    expect(second.locator("li")).to_have_count(2)
    expect(page.locator("#panel")).to_contain_text("models come to the same world.")


@pytest.mark.parametrize("view", ["play", "search"])
def test_a_model_that_is_being_prepared_answers_when_it_is_ready(page, view):
    ready = threading.Event()

    def list_models(route) -> None:
        found = route.fetch().json()
        for one in found["models"]:
            one["ready"] = one["name"] != OTHER or ready.is_set()
        route.fulfill(json={**found, "preparing": None if ready.is_set() else "compiling (1 s)"})

    page.route("**/api/models", list_models)
    go(page, address(view, SAID[0], model=OTHER, beam="64"))
    expect(page.locator("#panel")).to_contain_text("This model is being prepared.")
    expect(world_on_stage(page)).to_have_attribute("data-world", ROW)
    expect(page.get_by_role("alert")).to_be_hidden()
    ready.set()
    expect(page.locator("#say li code").first).to_be_visible()
    expect(page.locator({"play": ".reading", "search": ".found"}[view]).first).to_be_visible()
    expect(page.locator("#panel")).not_to_contain_text("This model is being prepared.")


def test_a_comparison_needs_no_explanations(page):
    """These may be compiled still, or take too long; then what was read at first stays."""

    def answer(route) -> None:
        if json.loads(route.request.post_data)["explain"]:
            route.fulfill(status=503, json={"detail": "this took too long; ask for less."})
        else:
            route.continue_()

    page.route("**/api/parse", answer)
    go(page, address("compare", *SAID))
    with page.expect_response(lambda response: response.status == 503):
        pass
    page.wait_for_timeout(200)
    expect(page.locator("article li")).to_have_count(4)
    expect(page.get_by_role("alert")).to_be_hidden()


@pytest.mark.parametrize(
    ("view", "scheme", "width"),
    [("play", "light", 320), ("play", "dark", 360), ("search", "dark", 320), ("compare", "light", 320)],
)
def test_the_page_fits_a_phone_and_is_accessible(page, view, scheme, width):
    """320 pixels are also what a window of 1280 has at a zoom of 400%."""
    page.emulate_media(color_scheme=scheme)
    page.set_viewport_size({"width": width, "height": 740})
    go(page, address(view, *SAID, beam="64"))
    expect(page.locator({"play": ".reading", "search": ".card", "compare": ".model"}[view]).first).to_be_visible()
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    if view == "search":
        assert page.evaluate("document.documentElement.scrollHeight") < 4500
    found = Axe().run(page)
    assert not found.response["violations"], found.generate_report()


def test_at_a_zoom_of_200_percent_and_in_forced_colours_nothing_is_lost(page):
    page.set_viewport_size({"width": 640, "height": 450})
    page.emulate_media(forced_colors="active")
    go(page, address("play", *SAID))
    expect(page.locator(".reading").first).to_be_visible()
    assert page.evaluate("document.documentElement.scrollWidth") <= 640
    current = page.locator("nav [aria-current]")
    assert current.evaluate("one => getComputedStyle(one).borderTopWidth") == "3px"
    assert page.locator(".reading:has(:checked)").evaluate("one => getComputedStyle(one).borderTopWidth") == "3px"
    colours = page.locator("#say li").evaluate_all("all => all.map(one => getComputedStyle(one).borderLeftColor)")
    assert len(colours) == 3 and colours[0] == colours[2] != colours[1]  # the line that the stage shows


def test_cards_that_lead_to_the_target_say_so_without_colour(page):
    page.emulate_media(forced_colors="active")
    go(page, address("search", SAID[0], beam="64"))
    cards = page.locator(".card.on-the-way")
    expect(cards.first).to_contain_text("kept, leads to the target")
    assert page.get_by_text("leads to the target").count() == cards.count() > 0
    assert cards.first.evaluate("one => getComputedStyle(one).borderLeftWidth") == "5px"


def test_the_documentation_needs_nothing_from_elsewhere(page):
    page.goto("/docs")
    for path in ("models", "random", "parse", "search", "attention", "feedback"):
        expect(page.get_by_role("heading", name=f"/api/{path}")).to_be_visible()
    page.set_viewport_size({"width": 360, "height": 740})
    found = Axe().run(page)
    assert not found.response["violations"], found.generate_report()


def test_a_link_is_not_said_to_be_copied_where_it_cannot(page):
    page.add_init_script("Object.defineProperty(navigator, 'clipboard', { value: undefined })")
    go(page, address())
    page.get_by_role("button", name="Copy link").click()
    expect(page.locator("#share")).to_have_text("The link is in the address bar")


@pytest.mark.parametrize("view", ["play", "search", "compare"])
def test_a_slow_server_is_asked_one_question_at_a_time(page, ask, monkeypatch, view):
    """In all views, what one state asks is answered before the next one asks."""
    go(page, address(view, beam="64"))
    command = ask("/api/parse", model=MODEL, world=ROW, utterances=SAID[:1])["readings"][0]["commands"][0]
    for slow in (answer_parse, answer_search):

        def answer_slowly(model, request, answer=slow):
            time.sleep(0.2)
            return answer(model, request)

        monkeypatch.setattr(f"vbsix.playground.app.{slow.__name__}", answer_slowly)
    asked, waiting, wrong = [], {}, []

    def begin(request) -> None:
        if "explain" in request.url:
            return
        said = json.loads(request.post_data)["instructions"]
        wrong.extend(one for one in waiting.values() if one != said)
        asked.append(said)
        waiting[request] = said

    page.on("request", begin)
    page.on("requestfinished", lambda request: waiting.pop(request, None))
    page.on("requestfailed", lambda request: None if "explain" in request.url else wrong.append(request.url))
    line = page.get_by_label("Instruction 1", exact=True)
    line.press_sequentially(SAID[0][:12], delay=40)
    page.wait_for_timeout(450)  # long enough to begin a search
    line.press_sequentially(SAID[0][12:], delay=40)
    end = time.monotonic() + 20
    while (waiting or asked[-1] != SAID[:1]) and time.monotonic() < end:
        page.wait_for_timeout(50)
    expect(page.locator("#say code").first).to_have_text(" ".join(command["tokens"]))
    expect(world_on_stage(page)).to_have_attribute("data-world", command["world"])
    shown = {"play": ".reading", "search": ".found code", "compare": ".model:nth-child(2) li"}[view]
    expect(page.locator(shown).first).to_be_visible()
    assert asked[-1] == SAID[:1] and 2 < len(asked) < len(SAID[0])
    assert not wrong


def test_a_key_press_is_drawn_at_once(page):
    go(page, address("play", SAID[0]))
    waits = key_presses(page, "swap the first and the last")
    print(f"key press to drawn world: median {median(waits):.3f} s, slowest {max(waits):.3f} s of {len(waits)}")
    assert quantiles(waits, n=10)[8] < SLOWEST  # 9 of 10: others may use the machine
