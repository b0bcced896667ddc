"""Renews the pictures of the playground and of the report in docs/images.

Usage: vbsix serve & python docs/scripts/pictures.py playground [--address URL]
       python docs/scripts/pictures.py report mistakes [--run RUN]

The playground must serve the built-in models. Without RUN, one is trained first, which takes minutes. The browser is
that of the tests: Chromium, driven by Playwright.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from playwright.sync_api import Browser, Locator, Page, TimeoutError, ViewportSize

from vbsix.playground.examples import EXAMPLES, MERGING

ROOT = Path(__file__).parents[2]
IMAGES = ROOT / "docs" / "images"
sys.path.insert(0, str(ROOT / "tests"))
from browser import open_browser  # noqa: E402

MOST_BYTES = 300_000
TRAINING = (
    "train tangrams --data synthetic --method execution-only --steps 200 --set run.evaluate_every=50 "
    "--set data.lengths=[1,2] --set data.evaluation=[1,2]"
)
"""Of the run in the pictures of the report: good enough for a curve that rises, and bad enough for mistakes."""
PATIENCE = 70_000
"""Milliseconds until the server has answered, or given up because what it compiles takes too long."""
TRIES = 5
REST = 2_500
"""Milliseconds after which a page that is left alone has drawn all that it asks for, explanations too."""


# The playground.


def playground(browser: Browser, address: str, images: Path) -> None:
    """Waits until all models are ready, so that nothing is being prepared in any picture."""
    with opened(browser, 1280, 900) as page:
        while page.request.get(f"{address}/api/models").json()["preparing"] is not None:
            page.wait_for_timeout(1000)
    first(browser, address, images / "playground.png")
    search(browser, address, images / "playground-search.png")
    comparison(browser, address, images / "playground-compare-dark.png")


def first(browser: Browser, address: str, path: Path) -> None:
    """An example in scene, and what its last token attends to."""
    with opened(browser, 1280, 970) as page:
        choose(page, address, "scene")
        take_example(page, "scene")
        page.locator("#say .tokens").last.locator(".token").last.hover()
        page.locator("#say .attention").last.wait_for()
        save(page, path)


def search(browser: Browser, address: str, path: Path) -> None:
    """The search that only merging wins, in the middle."""
    with opened(browser, 1280, 1150) as page:
        choose(page, address, "tangrams")
        page.get_by_role("button", name="How it was found").click()
        page.get_by_role("button", name=MERGING).click()
        wait_for(page.locator(".found code").first)
        page.wait_for_timeout(REST)
        slider = page.get_by_label("Iteration of the search")
        slider.fill(str(int(slider.get_attribute("max") or 0) // 2))
        save(page, path)


def comparison(browser: Browser, address: str, path: Path) -> None:
    """Two models of tangrams, in dark mode."""
    with opened(browser, 1280, 800, dark=True) as page:
        choose(page, address, "tangrams")
        take_example(page, "tangrams")
        page.get_by_role("button", name="Compare models").click()
        wait_for(page.locator(".model ol").nth(1))
        page.wait_for_timeout(REST)
        save(page, path)


def wait_for(answer: Locator) -> None:
    """Waits for what an answer shows. Where the server gave up, the page is loaded again, and asks again."""
    for _ in range(TRIES):
        with suppress(TimeoutError):
            return answer.wait_for()
        answer.page.reload()
    raise SystemExit("The server has no answer: try again when the machine has less to do.")


def choose(page: Page, address: str, domain: str) -> None:
    page.goto(address)
    page.wait_for_selector("body[data-ready]")
    page.get_by_role("radio", name=domain).click()


def take_example(page: Page, domain: str) -> None:
    """The first of a domain."""
    example = EXAMPLES[domain][0]
    page.get_by_role("button", name=example.title, exact=True).click()
    page.locator("#say .words").nth(len(example.utterances) - 1).wait_for()
    page.wait_for_timeout(REST)


# The report.


def report(browser: Browser, page_file: Path, images: Path) -> None:
    """The headline and the charts."""
    with opened_report(browser, page_file) as page:
        save(page, images / "report.png", last=page.locator(".charts"))


def mistakes(browser: Browser, page_file: Path, images: Path) -> None:
    """From the table of commands to the first of the mistakes."""
    with opened_report(browser, page_file) as page:
        heading = page.get_by_role("heading", name="Commands taken for others").first
        save(page, images / "report-mistakes.png", heading, page.locator("article").first)


@contextmanager
def opened_report(browser: Browser, page_file: Path) -> Iterator[Page]:
    with opened(browser, 1000, 800) as page:
        page.goto(page_file.as_uri())
        yield page


def write_report(run: Path | None, scratch: Path) -> Path:
    """The report of a run, or of one that is trained for it."""
    page_file, vbsix, here = scratch / "report.html", [sys.executable, "-m", "vbsix"], None
    if run is None:
        run, here = Path("runs/execution-only"), scratch  # not the whole path: the report shows it
        subprocess.run([*vbsix, *TRAINING.split(), "--out", str(run)], check=True, cwd=here)
    subprocess.run([*vbsix, "report", str(run), "--out", str(page_file)], check=True, cwd=here)
    return page_file


# Pictures.


@contextmanager
def opened(browser: Browser, width: int, height: int, *, dark: bool = False) -> Iterator[Page]:
    """A page of this size, without animations."""
    context = browser.new_context(
        viewport=ViewportSize(width=width, height=height),
        color_scheme="dark" if dark else "light",
        reduced_motion="reduce",
    )
    context.set_default_timeout(PATIENCE)
    yield context.new_page()
    context.close()


def save(page: Page, path: Path, first: Locator | None = None, last: Locator | None = None) -> None:
    """What is in view or, with elements, what is between the top of the first (the page) and the end of the last."""
    if last is None:
        page.screenshot(path=path)
    else:
        top, bottom = (box(first)[0] - 8 if first else 0), box(last)[1] + 8
        width = page.viewport_size["width"] if page.viewport_size else 0
        clip = {"x": 0, "y": top, "width": width, "height": bottom - top}
        page.screenshot(path=path, full_page=True, clip=clip)  # pyright: ignore[reportArgumentType]
    if (size := path.stat().st_size) > MOST_BYTES:
        raise SystemExit(f"{path} has {size} bytes, more than {MOST_BYTES}: show less.")
    print(f"{path}: {size} bytes")


def box(element: Locator) -> tuple[float, float]:
    """Where an element begins and ends on its page."""
    found = element.bounding_box()
    assert found is not None
    return found["y"], found["y"] + found["height"]


def main(names: Sequence[str], address: str, run: Path | None, images: Path = IMAGES) -> None:
    with open_browser() as browser, tempfile.TemporaryDirectory() as scratch:
        if "playground" in names:
            playground(browser, address, images)
        if wanted := [name for name in names if name in OF_REPORT]:
            page_file = write_report(run, Path(scratch))
            for name in wanted:
                OF_REPORT[name](browser, page_file, images)


OF_REPORT: dict[str, Callable[[Browser, Path, Path], None]] = {"report": report, "mistakes": mistakes}

if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="+", choices=["playground", *OF_REPORT], metavar="playground|report|mistakes")
    parser.add_argument("--address", default="http://127.0.0.1:8000", help="where vbsix serve is")
    parser.add_argument("--run", type=Path, help="a trained run for the report")
    given = parser.parse_args()
    main(given.names, given.address, given.run)
