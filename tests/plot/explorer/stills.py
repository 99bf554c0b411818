"""Draw the stills of the tour anew, in a browser: python -m tests.plot.explorer.stills

Pages show them where no script runs. They use the style sheet of the page.
"""

import re
import shutil
import tempfile
from functools import partial
from pathlib import Path
from typing import BinaryIO

from playwright.sync_api import Page, sync_playwright

import attnmargin.plot.explorer
from attnmargin.base.files import write_whole
from attnmargin.plot.explorer.bundle import tour_steps
from attnmargin.report.pages.explorer import write_explorer

FOLDER = Path(attnmargin.plot.explorer.__file__).parent / "stills"
_STEP = 60
# What only a person who drags needs.
_NEEDLESS = re.compile(
    r' (?:tabindex|role|aria-label|data-[\w-]+|xmlns)="[^"]*"|<circle class="(?:reach|grip)"[^>]*>'
    r"</circle>"
)
# Far ends of lines, and digits that nobody sees.
_DIGITS = re.compile(r"(\d)\.\d+")
_PLACES = re.compile(r' (?:transform|[xy][12]?|r|points|width|height)="[^"]*"')
_EMPTY = re.compile(r"></(?:line|circle|path|polygon|polyline|rect|image)>")


def still(page: Page, number: int) -> str:
    """Return the picture of a step of the tour, after some training."""
    page.locator(".tour .chip").nth(number - 1).click()
    state = tour_steps()[number - 1]["state"]
    if state.get("scene") == "graph":
        shown = page.locator(".explorer svg:visible").first.evaluate("own => own.outerHTML")
    else:
        for _ in range(_STEP):
            page.get_by_role("button", name="one step on").click()
        page.wait_for_timeout(4000 if "map" in tour_steps()[number - 1] else 100)
        shown = page.locator("svg.plane").evaluate("own => own.outerHTML")
    plain = _EMPTY.sub("/>", _NEEDLESS.sub("", shown))
    plain = re.sub(r'(?<=points=")[^"]*', lambda own: _thinned(own[0]), plain)
    plain = _PLACES.sub(lambda own: _DIGITS.sub(r"\1", own[0]), plain)
    return plain.replace("<svg ", '<svg aria-hidden="true" ', 1)


def _thinned(points: str) -> str:
    """Keep every fourth of many points, and the last one, in whole pixels."""
    listed = _DIGITS.sub(r"\1", points).split(" ")
    return points if len(listed) < 8 else " ".join([*listed[:-1:4], listed[-1]])


def _write(text: bytes, stream: BinaryIO) -> None:
    stream.write(text)


def main() -> None:
    with sync_playwright() as driver, tempfile.TemporaryDirectory() as folder:
        found = shutil.which("chromium")
        browser = driver.chromium.launch(executable_path=found, args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": 1280, "height": 1000})
        page.goto(write_explorer(Path(folder) / "page.html").as_uri())
        for number in range(1, len(tour_steps()) + 1):
            own = still(page, number).encode()
            write_whole(FOLDER / f"{number}.svg", partial(_write, own))
        browser.close()


if __name__ == "__main__":
    main()
