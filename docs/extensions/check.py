"""Check the built site: every link and anchor leads somewhere, and no page asks the network.

Run it: ``python docs/extensions/check.py docs/_build/html``.
"""

import re
import shutil
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from html.parser import HTMLParser
from pathlib import Path
from typing import final
from urllib.parse import unquote, urlsplit

# Attributes that name a file, and the elements whose address is loaded with the page.
_ADDRESSES = ("href", "src", "data", "poster", "action")
_LOADED = ("script", "img", "iframe", "source", "video", "audio", "object", "embed", "link")
_OUTSIDE = re.compile(r"(?:https?:)?//", re.IGNORECASE)
_STYLE_LOADS = re.compile(r"""url\(\s*["']?([^"')]+)|@import\s+["']([^"']+)""")
_SCRIPT_LOADS = re.compile(
    r"""(?:fetch|importScripts|import|open)\(\s*["'`](https?:)?//|\.(?:src|href)\s*=\s*["'`](https?:)?//"""
)
_BROWSERS = ("chromium", "chromium-browser", "google-chrome")
_VISITED = ("index.html", "search.html", "gallery/index.html", "reference/solvers.html",
            "results/A/SUMMARY.html", "learn/index.html")  # fmt: skip


@final
@dataclass
class Page(HTMLParser):
    """What a page names: anchors, links, and what it loads."""

    path: Path
    anchors: set[str] = field(default_factory=set)
    links: list[str] = field(default_factory=list)
    loads: list[str] = field(default_factory=list)
    inside: str = ""  # "script" or "style" while their text is read

    def __post_init__(self) -> None:
        super().__init__()
        self.feed(self.path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        own = {name: value for name, value in attrs if value is not None}
        self.anchors |= {own[name] for name in ("id", "name") if name in own}
        found = [own[name] for name in _ADDRESSES if name in own]
        found += [part.split()[0] for part in own.get("srcset", "").split(",") if part.strip()]
        self.links += found
        alternate = tag == "link" and own.get("rel") in ("canonical", "alternate")
        self.loads += found if tag in _LOADED and not alternate else []
        self.loads += style_loads(own.get("style", ""))
        self.inside = tag if tag in ("script", "style") else self.inside

    def handle_endtag(self, tag: str) -> None:
        self.inside = "" if tag == self.inside else self.inside

    def handle_data(self, data: str) -> None:
        if self.inside == "style":
            self.loads += style_loads(data)
        elif self.inside == "script" and _SCRIPT_LOADS.search(data):
            self.loads.append("http://… in a script")


def style_loads(text: str) -> list[str]:
    """Return the addresses that a style sheet loads."""
    return [first or second for first, second in _STYLE_LOADS.findall(text)]


def broken_links(pages: dict[Path, Page]) -> Iterator[str]:
    """Yield a sentence for every link of a page that leads nowhere."""
    for page in pages.values():
        for link in dict.fromkeys(page.links):
            parts = urlsplit(link)
            if parts.scheme or link.startswith("//"):
                continue
            path = unquote(parts.path)
            target = (page.path.parent / path).resolve() if path else page.path
            if not target.exists():
                yield f"{page.path}: {link} does not exist"
                continue
            anchor = unquote(parts.fragment)
            if anchor and target in pages and anchor not in pages[target].anchors:
                yield f"{page.path}: {link} names an anchor that is not there"


def requests(pages: dict[Path, Page], root: Path) -> Iterator[str]:
    """Yield a sentence for everything that a page, style or script loads from elsewhere."""
    for page in pages.values():
        yield from (f"{page.path}: loads {x}" for x in page.loads if _OUTSIDE.match(x))
    for path in root.rglob("*.css"):
        outside = filter(_OUTSIDE.match, style_loads(path.read_text(encoding="utf-8")))
        yield from (f"{path}: loads {address}" for address in outside)
    for path in root.rglob("*.js"):
        if _SCRIPT_LOADS.search(path.read_text(encoding="utf-8")):
            yield f"{path}: loads something from elsewhere"


def seen_requests(root: Path) -> list[str] | None:
    """Open some pages in Chromium; return what they asked the network for. None without it."""
    program = next(filter(None, map(shutil.which, _BROWSERS)), None)
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        return None
    if program is None:
        return None
    asked: list[str] = []
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=program, args=["--no-sandbox"])
        for name in filter(lambda name: (root / name).is_file(), _VISITED):
            page = browser.new_page()
            page.on("request", lambda request: asked.append(request.url))
            page.on("console", lambda said: asked.append(f"{said.type}: {said.text}"))
            page.goto((root / name).as_uri())
            page.wait_for_load_state("networkidle")
        browser.close()
    return [url for url in asked if not url.startswith(("file:", "data:", "blob:"))]


def main(folder: str) -> int:
    """Check the site in a folder; print what is wrong."""
    root = Path(folder).resolve()
    pages = {path: Page(path) for path in sorted(root.rglob("*.html"))}
    wrong = [*broken_links(pages), *requests(pages, root)]
    visited = seen_requests(root)
    wrong += [f"in Chromium: {url}" for url in visited or ()]
    print("\n".join(wrong), file=sys.stderr)
    seen = "not opened in a browser" if visited is None else "some opened in Chromium"
    links = sum(len(page.links) for page in pages.values())
    print(f"{len(pages)} pages, {links:,} links, {seen}: {len(wrong)} faults")
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
