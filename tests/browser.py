"""Pages in a real browser: the machine's own Chromium, driven by Playwright."""

import os
import shutil
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, final

import pytest

if TYPE_CHECKING:
    from playwright.sync_api import Browser, ConsoleMessage, Page, Request

# Where `make setup` puts what tests need from npm.
MODULES = Path(os.environ.get("NODE_PATH") or Path(sys.prefix) / "node" / "node_modules")
_NAMES = ("chromium", "chromium-browser", "google-chrome")
_FLAGS = [
    "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync",
    "--disable-background-networking", "--disable-component-update",
]  # fmt: skip


@final
@dataclass(frozen=True)
class Visit:
    """An open page, and what went wrong on it so far."""

    page: "Page"
    errors: list[str] = field(default_factory=list)  # in the console, or thrown
    requests: list[str] = field(default_factory=list)  # to anything but the page's own file


def _watch(own: Visit) -> None:
    """Collect errors and requests from now on."""

    def console(message: "ConsoleMessage") -> None:
        if message.type == "error":
            own.errors.append(message.text)

    def request(asked: "Request") -> None:
        whole = asked.is_navigation_request() and asked.url.startswith("file:")
        if not whole and not asked.url.startswith(("data:", "blob:")):
            own.requests.append(asked.url)

    own.page.on("console", console)
    own.page.on("pageerror", lambda error: own.errors.append(str(error)))
    own.page.on("request", request)


@pytest.fixture(scope="session")
def browser() -> Iterator["Browser"]:
    """Start Chromium without a window, once per worker; skip the test where there is none."""
    found = next(filter(None, map(shutil.which, _NAMES)), None)
    if found is None:
        pytest.skip("there is no Chromium on this machine")
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    with playwright.sync_playwright() as driver:
        try:
            started = driver.chromium.launch(executable_path=found, args=_FLAGS)
        except playwright.Error as error:
            pytest.skip(f"Chromium does not start: {str(error).splitlines()[0]}")
        yield started
        started.close()


@pytest.fixture
def visit(browser: "Browser") -> Iterator[Callable[..., Visit]]:
    """Open a file as a page: ``visit(path, width=390, color_scheme="dark")``.

    Further arguments are those of Playwright's ``new_context``, such as ``java_script_enabled``.
    """
    contexts = []

    def opened(path: Path, width: int = 1280, height: int = 800, **how: Any) -> Visit:
        context = browser.new_context(viewport={"width": width, "height": height}, **how)
        contexts.append(context)
        own = Visit(context.new_page())
        _watch(own)
        own.page.goto(path.resolve().as_uri())
        return own

    yield opened
    for context in contexts:
        context.close()
