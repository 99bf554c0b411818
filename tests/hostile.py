"""Words that try to leave their place in a page, and what a page must still be."""

import json
from functools import cache
from html.parser import HTMLParser
from importlib.resources import files
from typing import final

from attnmargin.plot.explorer.bundle import bundled

# Without blanks, so that readers that split at blanks keep them whole.
WORDS = (
    "</script><script/evil>window.ran=1</script>",
    "<img/evil/src=x/onerror=window.ran=1>",
    "\"><svg/evil/onload=window.ran=1>",
    "'/evil/onmouseover='window.ran=1'/x='",
    "<td><img/evil/src=x/onerror=window.ran=1>",
    "<th><img/evil/src=x/onerror=window.ran=1>",
    "</title></style><evil>",
    "]]><evil>",
    "<!--<script>",
    "--><evil>",
    "&lt;evil&gt;&#60;evil&#62;",
    "javascript:window.ran=1",
    "${window.ran=1}`{{evil}}%s{0}",
    "a\u2028window.ran=1\u2029b",
    "\u202eevil\u2066\u200b",
    "$\\frac{$",
    "\\u003cevil\\u003e",
    "a\x00<evil>\x08\x1b[2J\x7f\ufffe",
    "=1+1",
    "x" * 5000,
)  # fmt: skip
# Names of files cannot hold a slash or a null.
FILE = WORDS[2].replace("/", " ") + " $\\frac{$ &lt; ' \u2028"


@cache
def _scripts() -> frozenset[str]:
    """The scripts that pages of ours may have."""
    pages = files("attnmargin.report.pages")
    own = [(pages / name).read_text("utf-8") for name in ("graphs.js", "heads.js")]
    return frozenset([*own, f"{bundled('page')}$page.startPage();"])


@final
class Seen(HTMLParser):
    """The elements, attributes, scripts and text of a page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str | None]] = []
        self.comments: list[str] = []
        self.scripts: list[tuple[str | None, str]] = []
        self.words: list[str] = []
        self._kind: str | None = None
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += attrs
        self._kind = tag
        if tag == "script":
            self.scripts.append((dict(attrs).get("type"), ""))

    def handle_endtag(self, tag: str) -> None:
        self._kind = None

    def handle_data(self, data: str) -> None:
        if self._kind == "script":
            kind, text = self.scripts[-1]
            self.scripts[-1] = (kind, text + data)
        elif self._kind != "style":
            self.words.append(data)

    def handle_comment(self, data: str) -> None:
        self.comments.append(data)


def check_page(text: str) -> Seen:
    """Check that a page has our scripts only, no handler, and no address but its own parts."""
    seen = Seen(text)
    assert text.endswith("</main></body></html>\n")
    assert seen.tags.count("main") == seen.tags.count("body") == 1
    assert "evil" not in seen.tags
    for name, value in seen.attributes:
        assert not name.startswith("on"), name
        assert name.replace("-", "").replace(":", "").isalnum(), name
        assert name != "evil"
        if name in ("href", "src", "xlink:href", "action"):
            assert str(value).startswith(("#", "data:")), value
    for kind, script in seen.scripts:
        if kind == "application/json":
            json.loads(script)
        else:
            assert script in _scripts()
    assert not [own for own in seen.comments if "evil" in own and "<" in own]
    return seen
