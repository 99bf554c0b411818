"""The browser of the tests notices what a page must not do."""

from collections.abc import Callable
from pathlib import Path

from tests.browser import Visit
from tests.commands import write


def test_a_quiet_page_has_no_error_and_no_request(
    visit: Callable[..., Visit], tmp_path: Path
) -> None:
    own = visit(write(tmp_path / "quiet.html", ["<title>Quiet</title>"]), width=390)
    assert own.page.title() == "Quiet"
    assert own.page.evaluate("innerWidth") == 390
    assert (own.errors, own.requests) == ([], [])


def test_errors_and_requests_are_noticed(visit: Callable[..., Visit], tmp_path: Path) -> None:
    write(tmp_path / "other.js", ["console.error('first')"])
    page = write(
        tmp_path / "loud.html", ["<script src=other.js></script><script>nothing()</script>"]
    )
    own = visit(page)
    assert own.errors[0] == "first"
    assert "nothing is not defined" in own.errors[1]
    assert own.requests == [(tmp_path / "other.js").as_uri()]
    assert visit(page, java_script_enabled=False).errors == []
