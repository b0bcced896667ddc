"""Chromium, driven by Playwright, and what is measured in it."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, sync_playwright

FLAGS = (
    "--headless --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking "
    "--disable-component-update --disable-sync"
)
_WATCH = """() => {
  window.waits = [];
  let pressed = null;
  addEventListener("input", (event) => (pressed ??= event.timeStamp), true);
  new MutationObserver(() => {
    if (pressed === null) return;
    const began = pressed;
    pressed = null;
    requestAnimationFrame(() => waits.push((performance.now() - began) / 1000));
  }).observe(document.querySelectorAll("#say .outcome")[1], { childList: true });
}"""


@contextmanager
def open_browser() -> Iterator[Browser]:
    """The system's Chromium, else Playwright's. CI must have one: a test that skips there would prove nothing."""
    with sync_playwright() as playwright:
        chromium = shutil.which("chromium") or playwright.chromium.executable_path
        if not Path(chromium).exists():
            reason = "there is no Chromium on this machine: playwright install --with-deps chromium"
            (pytest.fail if os.environ.get("CI") else pytest.skip)(reason)
        browser = playwright.chromium.launch(executable_path=chromium, args=FLAGS.split())
        yield browser
        browser.close()


def go(page: Page, where: str) -> None:
    """Opens an address of the playground afresh, and waits until it is drawn."""
    page.goto("about:blank")
    page.goto(where)
    page.wait_for_selector("body[data-ready]", timeout=120_000)  # a first search is compiled


def key_presses(page: Page, text: str) -> list[float]:
    """Types a second instruction; the seconds from each key press to the world drawn."""
    page.evaluate(_WATCH)
    page.get_by_label("Instruction 2", exact=True).click()
    for number, letter in enumerate(text, start=1):
        page.keyboard.type(letter)
        page.wait_for_function("count => waits.length >= count", arg=number)
    return page.evaluate("waits")
