"""Table 1 of paper B and what stands on it, with a folder of few reviews."""

from pathlib import Path

import pytest

import attnmargin as am
from attnmargin.papers.b.attention import EXPERIMENTS as FIGURES
from attnmargin.papers.b.pivotal import REVIEWS
from attnmargin.papers.b.table import EXPERIMENTS, SEEDS, review_pieces, table_point, table_text
from attnmargin.papers.engine.experiment import Arrays, Task
from attnmargin.papers.engine.review_data import find_reviews, find_vocabulary

TABLE = EXPERIMENTS[0]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Ten reviews to train on and ten to test, one of them in both."""
    path = tmp_path_factory.mktemp("data")
    rows = [f"{'good' if k % 2 else 'bad'} film {k},{k % 2},train" for k in range(10)]
    rows += [f"{'good' if k % 2 else 'bad'} plot {k},{k % 2},test" for k in range(9)]
    (path / "imdb.csv").write_text("\n".join(["text,label,split", *rows, "good film 1,1,test"]))
    words = am.text.word_list(
        [*(review.text for review in REVIEWS), "good bad film plot", *"0123456789"]
    )
    (path / "some-vocab.txt").write_text("\n".join(words))
    return path


def point(folder: Path, settings: dict[str, object]) -> Arrays:
    return TABLE.run(Task(settings, 1, 0, lambda done, total: None, folder))


@pytest.fixture(scope="module")
def results(folder: Path) -> dict[str, Arrays]:
    """One short run in the place of all."""
    run = point(folder, {**table_point(3, 1.1, 0).settings, "epochs": 1})
    return {p.key: run if p.settings else point(folder, {}) for p in TABLE.points}


def test_reviews_and_vocabulary_are_found(folder: Path, tmp_path: Path) -> None:
    assert len(find_reviews(folder)) == 20
    assert find_vocabulary(folder).name == "some-vocab.txt"
    with pytest.raises(am.InputError, match="without a vocabulary; needs a folder with imdb"):
        find_vocabulary(tmp_path)


def test_pieces_that_are_ready_are_read(folder: Path, tmp_path: Path) -> None:
    made = review_pieces(folder)
    for name, pieces in made._asdict().items():
        pieces.save(tmp_path / f"{name}.npz")
    found = review_pieces(tmp_path)
    assert [pieces.digest() for pieces in found] == [pieces.digest() for pieces in made]


def test_a_point_holds_all_that_is_drawn(results: dict[str, Arrays]) -> None:
    run = results[table_point(3, 1.1, 0).key]
    assert run["test"].shape == run["train"].shape == (1,)
    assert run["lengths"].sum() == len(run["shares"]) == len(run["words"])
    assert int(results["data"]["overlap"]) == 1
    assert run["counts"].shape == (3, 60)


def test_claims_pictures_and_the_table(results: dict[str, Arrays], tmp_path: Path) -> None:
    claims = TABLE.claims(results)
    assert len(claims) == 1 + 2 * len(SEEDS)
    assert claims[1].measured.value == 0.0
    assert claims[1].verdict == "fails"  # equal runs are no point apart
    text = table_text(results)
    assert text.count("\n| ") == 1 + 9
    assert "| 4 | 3 | 6e-06 | 2 of 2 |" in text
    assert "10 reviews to train, 10 to test, 1 of these also in training" in text
    assert [p["name"] for p in TABLE.pictures(results)] == ["table1"]
    for figure in FIGURES:
        assert figure.claims(results)
        assert figure.pictures(results)
    assert FIGURES[1].files is not None
    (page,) = FIGURES[1].files(results, tmp_path)
    assert page.read_text().count('<p class="words">') == 3 * len(REVIEWS)


def test_runs_that_are_not_trained_leave_claims_undecided(results: dict[str, Arrays]) -> None:
    """One seed of size 3 is missing, and all of size 6."""
    part = {key: run for key, run in results.items() if key != "size3-l3-seed2"}
    part = {key: run for key, run in part.items() if not key.startswith("size6")}
    verdicts: dict[str, list[str]] = {}
    for claim in TABLE.claims(part):
        verdicts.setdefault(claim.claim[:6], []).append(str(claim.verdict))
    assert verdicts["size 3"][1:] == ["undecided", "undecided"]
    assert verdicts["size 4"] == ["fails", "fails"]
    assert verdicts["size 6"] == ["undecided", "undecided"]
    text = table_text(part)
    assert "| 3 | 3 | 4e-06 | 2 of 3 |" in text
    assert "| 6 | 2 | 0.001 | 0 of 2 | – |" in text
    (picture,) = TABLE.pictures(part)
    assert [panel["title"] for panel in picture["panels"]][1:] == ["size 3", "size 4"]
    for figure in FIGURES:
        assert figure.claims(part)
