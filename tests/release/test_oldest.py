"""The list of oldest versions is the one of pyproject.toml."""

from packaging.version import Version

from tests.release.oldest import PLACE, as_text, oldest


def test_the_list_is_that_of_pyproject() -> None:
    assert PLACE.read_text() == as_text()


def test_everybody_needs_a_torch_with_the_oldest_version_listed() -> None:
    assert oldest()["torch"] == Version("2.6")
    assert f"torch=={oldest()['torch']}" in PLACE.read_text().splitlines()


def test_no_oldest_version_is_newer_than_the_pinned_one() -> None:
    pinned = dict(
        line.split("==")
        for line in PLACE.with_name("constraints.txt").read_text().splitlines()
        if "==" in line
    )
    assert all(oldest()[name] <= Version(pinned[name]) for name in oldest() if name in pinned)
    assert set(oldest()) <= set(pinned)
