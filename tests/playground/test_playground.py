"""The playground as a person uses it, in a browser, and as a stranger does, through its API."""

from __future__ import annotations

import itertools
import json
import re
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from statistics import median, quantiles
from urllib.parse import urlencode

import httpx
import jax
import numpy as np
import pytest
import schemathesis
from axe_playwright_python.sync_playwright import Axe
from browser import go, key_presses, open_browser
from hypothesis import HealthCheck, given, settings
from playwright.sync_api import Browser, Page, expect

from vbsix import PythonDomain, VbsixError
from vbsix.loading import load_committee
from vbsix.models import Policy
from vbsix.playground.answers import answer_parse, answer_search, warm_up_rest
from vbsix.playground.models import Model, load_models
from vbsix.playground.searching import search
from vbsix.svg import world_html

MODEL, OTHER = "tiny, seed 6", "tiny, seed 1"
ROW = "1:0 2:3 3:4 4:1"
TARGET = "1:0 2:3 3:4"
STAGE = "1:r_ 2:__ 3:__ 4:by 5:__ 6:__ 7:go 8:__ 9:__ 10:__"
BEAKERS = "1:ggg 2:_ 3:yo 4:_ 5:rr 6:_ 7:p"
SAID = ["remove the second figure", "swap the first and the last shape"]
SLOWEST = 0.2
"""Seconds from a key press to the world drawn."""


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
    best, other = (reading["commands"][0]["world"] for reading in (readings[0], readings[2]))
    assert best != other
    page.locator(".reading input").nth(2).check()
    expect(world_on_stage(page)).to_have_attribute("data-world", other)
    expect(page.locator(".reading input").nth(2)).to_be_focused()
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
    other = ask("/api/parse", model=MODEL, world=ROW, utterances=SAID[:1])["readings"][-1]["commands"][0]
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
    page.get_by_role("button", name="Read anew").click()
    expect_commands(*best)
    expect(page.get_by_role("button", name="Read anew")).to_have_count(0)
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
    expect(alert).to_contain_text(f"There is no model ghost here; this is {MODEL}. world: ")
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
    page.get_by_role("button", name="star", exact=True).or_(page.get_by_role("button", name="circle")).first.press(
        "Enter"
    )
    expect(world_on_stage(page)).to_have_attribute("data-world", "1:0 2:3 3:4 4:1")
    page.get_by_role("button", name="Undo").press("Enter")
    expect(world_on_stage(page)).to_have_attribute("data-world", "1:0 2:4 3:1")


def test_random_worlds_and_examples(page):
    go(page, "/")
    page.get_by_role("button", name="Example").click()
    expect(page.locator("#say li")).to_have_count(4)
    expect(page.get_by_label("Instruction 3", exact=True)).not_to_have_value("")
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
        route.fulfill(json={"models": [{**first, "name": "own", "domain": "blocks", "examples": False}]})

    page.route("**/api/models", list_models)
    page.route(
        "**/api/parse",
        lambda route: route.fulfill(
            json={
                "readings": [],
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
    expect(page.get_by_role("button", name="Example")).to_be_disabled()


def test_bad_input_says_what_is_wrong(page):
    go(page, address())
    text = page.get_by_label("First world as text")
    text.fill("1:0 2:9")
    text.press("Enter")
    alert = page.get_by_role("alert")
    expect(alert).to_have_text("world: position 2 ('9'): expected a shape from 0 to 4")
    text.fill(ROW)
    text.press("Enter")
    expect(alert).to_be_hidden()
    page.get_by_label("Instruction 1", exact=True).fill("frobnicate the second figure")
    expect(page.locator(".note")).to_contain_text("frobnicate")
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
    follow = page.get_by_role("button", name="Take where the reading ends")
    expect(follow).to_be_disabled()
    page.get_by_role("button", name="Target: change position 1").click()
    page.get_by_role("button", name="take away").click()
    expect(page.get_by_label("Target as text")).not_to_have_value(target)
    expect(page.locator(".found").first).to_contain_text("No program found.")
    follow.click()
    expect(page.get_by_label("Target as text")).to_have_value(target)
    expect(page.locator(".found code").first).to_be_visible()


def test_a_target_may_be_wrong_or_empty(page):
    target, follow = page.get_by_label("Target as text"), page.get_by_role("button", name="Take where the reading ends")
    go(page, address("search", "he leaves", model="scene", world=STAGE, target=STAGE, beam="4"))
    expect(page.locator(".found").first).to_be_visible()
    target.fill("xyz")
    target.press("Enter")
    expect(page.get_by_role("alert")).to_contain_text("target: ")
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
    expect(page.get_by_role("alert")).to_contain_text("world: ")


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
        route.fulfill(json={"models": [{**first, "name": name} for name in ends]})

    def answer(route) -> None:
        asked = json.loads(route.request.post_data)
        found = route.fetch(post_data=json.dumps({**asked, "model": MODEL})).json()
        command = {"tokens": ["1"], "words": "so", "probability": 0.5, "world": ends[asked["model"]]}
        picture = found["pictures"][ROW]
        reading = {"commands": [command], "probability": 0.5, "confidence": 0.5, "share": 0.5}
        route.fulfill(json={**found, "readings": [reading], "pictures": dict.fromkeys((ROW, *ends.values()), picture)})

    page.route("**/api/models", list_models)
    page.route("**/api/parse", answer)
    go(page, address("compare", SAID[0]))
    expect(page.locator("#panel")).to_contain_text("2 of 3 models come to the same world.")
    for name in ends:
        marks = page.locator("article").filter(has=page.get_by_role("heading", name=name)).locator("mark")
        expect(marks).to_have_text(["another world"] if name == "third" else [])


@pytest.mark.parametrize(
    ("view", "scheme"), [("play", "light"), ("play", "dark"), ("search", "dark"), ("compare", "light")]
)
def test_the_page_fits_a_phone_and_is_accessible(page, view, scheme):
    page.emulate_media(color_scheme=scheme)
    page.set_viewport_size({"width": 360, "height": 740})
    go(page, address(view, *SAID, beam="64"))
    expect(page.locator({"play": ".reading", "search": ".card", "compare": ".model"}[view]).first).to_be_visible()
    assert page.evaluate("document.documentElement.scrollWidth") <= 360
    found = Axe().run(page)
    assert not found.response["violations"], found.generate_report()


def test_the_documentation_needs_nothing_from_elsewhere(page):
    page.goto("/docs")
    for path in ("GET /api/models", "GET /api/random", "POST /api/parse", "POST /api/search"):
        expect(page.get_by_role("heading", name=path)).to_be_visible()
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
        said = json.loads(request.post_data)["utterances"]
        wrong.extend(one for one in waiting.values() if one != said)
        asked.append(said)
        waiting[request] = said

    page.on("request", begin)
    page.on("requestfinished", lambda request: waiting.pop(request))
    page.on("requestfailed", lambda request: wrong.append(request.url))
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


# What the models are, and what searches tell of the critic.


def test_names_are_unique_and_each_seed_is_a_model(models, run_folder, tmp_path):
    exported = tmp_path / "tiny.safetensors"
    models[MODEL].parser.export(exported)
    loaded = load_models([run_folder, exported, exported])
    assert list(loaded) == [MODEL, OTHER, "tiny", "tiny (2)"]
    assert [model.critic is not None for model in loaded.values()] == [True, True, False, False]


@pytest.mark.parametrize("count", [1, 2])
def test_the_critic_has_its_say_at_the_last_two_instructions(models, count):
    """Its scores are probabilities, and with one or two instructions all unfinished states have one."""
    model = models[MODEL]
    listed, _ = search(model, ROW, TARGET, SAID[:count], space="execution", beam=64, critic=True)
    values = [state.value for state in listed.states if state.kind in ("beam", "pruned")]
    assert values and all(value is not None and 0 < value < 1 for value in values)
    assert len(np.unique(values)) > 2
    assert all(state.value is None for state in listed.states if state.kind in ("correct", "incorrect"))


def test_before_the_last_two_instructions_it_has_none(models):
    model = models[MODEL]
    listed, drawn = search(model, ROW, TARGET, [*SAID, SAID[0]], space="execution", beam=64, critic=True)
    for state in listed.states:
        late = state.kind in ("beam", "pruned") and state.instructions_done >= 1
        assert (state.value is not None) == late
    assert len(drawn.states) <= 28


def test_a_committee_searches_too(run_folder, tmp_path):
    exported = tmp_path / "together.safetensors"
    load_committee(run_folder).export(exported)
    (model,) = load_models([exported]).values()
    listed, _ = search(model, ROW, TARGET, SAID[:1], space="execution", beam=64, critic=False)
    assert listed.iterations[0].kept > 1


def test_errors_of_an_own_language_are_told(models):
    class Broken:
        tokens, max_tokens_per_instruction = ("go", "stop"), 2

        def start(self, context):
            return (context, 0)

        def step(self, state, token):
            raise RuntimeError("it is broken")

        def instructions_done(self, state):
            return state[1]

        def denotation(self, state):
            return state[0]

    domain, parser = PythonDomain(Broken), models[MODEL].parser
    policy = Policy(domain, parser.config.network, key=jax.random.key(0))
    own = replace(parser, domain=domain, policy=policy)
    with pytest.raises(VbsixError, match="it is broken"):
        search(Model("own", own), "3", "4", ["go on"], space="execution", beam=4, critic=False)


def test_all_searches_are_compiled_behind_the_scenes(models, monkeypatch):
    seen = []
    monkeypatch.setattr("vbsix.playground.answers.answer_search", lambda model, request: seen.append(request))
    warm_up_rest(models, seen.append)
    asked = {(one.model, one.beam, one.critic) for one in seen[:-1]}
    assert asked == set(itertools.product(models, (4, 16, 64), (True, False)))
    assert seen[-1] == "searches with any beam are ready"


# The API, as a stranger uses it.

GOOD = {"model": MODEL, "world": ROW, "utterances": SAID[:1]}


@pytest.mark.parametrize(
    ("body", "status", "words"),
    [
        ({**GOOD, "world": "1:0 2:7"}, 422, "world: position 2 ('7'): expected a shape"),
        ({**GOOD, "world": "x" * 4001}, 422, "world: String should have at most 4000 characters"),
        ({**GOOD, "utterances": ["go"] * 10_000}, 422, "utterances: List should have at most 10 items"),
        ({**GOOD, "utterances": ["x" * 301]}, 422, "utterances.0: String should have at most 300 characters"),
        ({**GOOD, "utterances": ["  "]}, 422, "utterance 1 is empty"),
        ({**GOOD, "utterances": ["\x00"]}, 200, ""),
        ({**GOOD, "begin": ["1 AJump"]}, 422, "unknown token 'AJump'"),
        ({**GOOD, "begin": ["1 " * 100]}, 422, "the commands to begin with have 100 tokens, more than"),
        ({**GOOD, "utterances": ["x" * 3_000_000]}, 413, "more than 65536 bytes"),
        ({**GOOD, "utterances": "go"}, 422, "utterances: Input should be a valid list"),
        ({**GOOD, "world": 3}, 422, "world: Input should be a valid string"),
        ({**GOOD, "wordl": ROW}, 422, "wordl: Extra inputs are not permitted"),
        ({**GOOD, "wordl" * 12_000: ROW}, 422, "wordlwordl"),
        ({**GOOD, "model": "nobody"}, 404, "unknown model 'nobody'"),
        ({**GOOD, "model": "../tiny"}, 404, "unknown model"),
        ({**GOOD, "model": "/etc/passwd"}, 404, "unknown model"),
        ({}, 422, "model: Field required"),
        ([], 422, "Input should be a valid dictionary"),
        (b"{", 400, "not JSON"),
        (b'{"model": "\\ud800"}', 422, "model"),
        (b"[" * 20_000, 400, "not JSON"),
        (b"\xff", 400, ""),
    ],
)
def test_bad_requests_are_told_what_is_wrong(server, body, status, words):
    content = body if isinstance(body, bytes) else json.dumps(body)
    answer = httpx.post(f"{server}/api/parse", content=content, headers={"Content-Type": "application/json"})
    assert answer.status_code == status, answer.text
    assert status == 200 or words in answer.json()["detail"]
    assert status == 200 or len(answer.text) < 500


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"beam": 5}, "beam: Input should be 4, 16 or 64"),
        ({"utterances": []}, "utterances: List should have at least 1 item"),
        ({"utterances": ["go"] * 6}, "utterances: List should have at most 5 items"),
        ({"utterances": ["go", "  "]}, "utterance 2 is empty"),
        ({"target": "1:0 1:1"}, "target: element 2 ('1:1'): expected position 2, in order"),
    ],
)
def test_bad_searches_are_told_what_is_wrong(server, change, words):
    answer = httpx.post(f"{server}/api/search", json={**GOOD, "target": ROW, **change})
    assert (answer.status_code, answer.json()["detail"][: len(words)]) == (422, words)


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", "/api/parse", 405),
        ("DELETE", "/api/models", 405),
        ("GET", "/api/nothing", 404),
        ("GET", "/static/../app.py", 404),
        ("GET", "/static/%2e%2e/app.py", 404),
        ("GET", "/static/..%2fapp.py", 404),
        ("GET", "/static//etc/passwd", 404),
        ("GET", "/api/random?model=..%2f..%2fetc%2fpasswd", 404),
        ("GET", "/api/random", 422),
    ],
)
def test_what_is_not_there_cannot_be_had(server, method, path, status):
    assert httpx.request(method, server + path).status_code == status


def test_only_this_machine_is_answered(server):
    """A page of another site that gets its own name to mean 127.0.0.1 is refused."""
    refused = httpx.get(f"{server}/api/models", headers={"Host": "evil.example"})
    assert (refused.status_code, refused.json()) == (400, {"detail": "this server does not answer to that name."})
    for name in ("localhost:8000", "[::1]:8000"):
        assert httpx.get(f"{server}/api/models", headers={"Host": name}).status_code == 200
    answer = httpx.get(f"{server}/")
    assert "default-src 'none'" in answer.headers["Content-Security-Policy"]
    assert not re.search(r"(src|href)=\"(https?:)?//", answer.text)


def test_models_say_where_they_come_from(server):
    first, second, *_ = httpx.get(f"{server}/api/models").json()["models"]
    assert (first["name"], second["name"]) == (MODEL, OTHER)
    assert (first["domain"], first["critic"]) == ("tangrams", True)
    assert first["provenance"]["steps"] == 7
    assert first["examples"]


def _fuzz(server: str, examples: int, real: tuple[str, ...]) -> None:
    """Sends what the API's description allows, to some paths with real models and worlds, and what it does not."""
    schema = schemathesis.openapi.from_url(f"{server}/openapi.json")
    seen: Counter[tuple[str, int]] = Counter()
    for operation in (one.ok() for one in schema.get_all_operations()):
        _send(operation.as_strategy(), examples, seen, operation.path in real)
        if operation.path != "/api/models":  # which takes nothing that could be wrong
            _send(operation.as_strategy(generation_mode=schemathesis.GenerationMode.NEGATIVE), examples, seen, False)
    print(dict(sorted(seen.items())))
    assert all(seen[path, 200] for path in real)
    assert any(status >= 400 for _, status in seen)


def _send(cases, examples: int, seen: Counter[tuple[str, int]], real: bool) -> None:
    @settings(max_examples=examples, database=None, deadline=None, suppress_health_check=list(HealthCheck))
    @given(cases)
    def send(case) -> None:
        if real:
            case.body.update({"model": MODEL, "world": ROW})
        answer = case.call(timeout=120)
        seen[case.operation.path, answer.status_code] += 1
        assert answer.status_code < 500, case.as_curl_command()

    send()


def test_a_few_random_requests_find_no_fault(server):
    _fuzz(server, 4, ("/api/parse",))


@pytest.mark.slow
@pytest.mark.timeout(1200)
def test_many_random_requests_find_no_fault(server):
    _fuzz(server, 1000, ("/api/parse", "/api/search"))
