"""Files of texts as people have them: each is read, or refused in a sentence that helps."""

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

import attnmargin as am

TEXTS = ["a fine film", "dull, and long", 'he said "no" twice', "so; so good"]
LABELS = ["pos", "neg", "neg", "pos"]
ROWS = list(zip(TEXTS, LABELS, strict=True))


def quoted(text: str, mark: str = '"') -> str:
    return mark + text.replace(mark, 2 * mark) + mark


def table(delimiter: str = ",", header: str | None = "review,sentiment", mark: str = '"') -> str:
    first = [] if header is None else [header.replace(",", delimiter)]
    return "\n".join(first + [f"{quoted(t, mark)}{delimiter}{y}" for t, y in ROWS]) + "\n"


def lines(text: str = "body", label: str = "stars") -> str:
    return "\n".join(json.dumps({"id": i, text: t, label: y}) for i, (t, y) in enumerate(ROWS))


PLAIN = "\n".join(f"{y}\t{t}" for t, y in ROWS)
ESCAPED = "\n".join(["review,sentiment", *(
    f'"{t.replace(chr(34), chr(92) + chr(34))}",{y}' for t, y in ROWS
)])  # fmt: skip
NUMBERED = "\n".join([",review,sentiment", *(
    f"{i},{quoted(t)},{y}" for i, (t, y) in enumerate(ROWS)
)])  # fmt: skip
SPACED = "\n".join(["review, sentiment", *(f"{quoted(t)}, {y}" for t, y in ROWS)])
LATER = "\n".join(["sentiment, review", *(f"{y}, {quoted(t)}" for t, y in ROWS)])

READ: dict[str, tuple[str, bytes, dict[str, Any]]] = {
    "commas": ("a.csv", table().encode(), {}),
    "semicolons": ("a.csv", table(";").encode(), {}),
    "tabs": ("a.tsv", table("\t").encode(), {}),
    "tabs in a csv": ("a.csv", table("\t").encode(), {}),
    "bars": ("a.csv", table("|").encode(), {}),
    "a named delimiter": ("a.csv", table("^").encode(), {"delimiter": "^"}),
    "a delimiter in words": ("a.csv", table("\t").encode(), {"delimiter": "tab"}),
    "single quotes": ("a.csv", table(mark="'").encode(), {}),
    "escaped quotes": ("a.csv", ESCAPED.encode(), {}),
    "blanks before labels": ("a.csv", SPACED.encode(), {}),
    "blanks before quotes": ("a.csv", LATER.encode(), {}),
    "no quotes, no header, stray quotes": ("spam.txt", PLAIN.encode(), {}),
    "no ending": ("spam", PLAIN.encode(), {}),
    "no header": ("a.csv", table(header=None).encode(), {}),
    "no header, said so": ("a.csv", table(header=None).encode(), {"header": False}),
    "columns by number": ("a.csv", table(header=None).encode(), {"text": "1", "label": "2"}),
    "columns by name": ("a.csv", table().encode(), {"text": "review", "label": "sentiment"}),
    "columns in capitals": ("a.csv", table(header="Text,LABEL").encode(), {}),
    "a numbered column": ("a.csv", NUMBERED.encode(), {}),
    "Windows lines": ("a.csv", table().replace("\n", "\r\n").encode(), {}),
    "old Mac lines": ("a.csv", table().replace("\n", "\r").encode(), {}),
    "blank lines": ("a.csv", table().replace("\n", "\n\n").encode(), {}),
    "UTF-8 with a mark": ("a.csv", table().encode("utf-8-sig"), {}),
    "UTF-16": ("a.csv", table(";").encode("utf-16"), {}),
    "UTF-16, big end first": ("a.csv", b"\xfe\xff" + table().encode("utf-16-be"), {}),
    "UTF-16 without a mark": ("a.csv", table().encode("utf-16-le"), {"encoding": "utf-16-le"}),
    "UTF-32": ("a.csv", table().encode("utf-32"), {}),
    "gzip": ("a.csv.gz", gzip.compress(table().encode()), {}),
    "gzip without its ending": ("a.csv", gzip.compress(table("\t").encode("utf-16")), {}),
    "JSON lines of other keys": ("a.jsonl", lines().encode(), {}),
    "JSON lines, named": ("a.jsonl", lines("x", "y").encode(), {"text": "x", "label": "y"}),
    "JSON lines in UTF-16": ("a.ndjson", lines().encode("utf-16"), {}),
    "JSON lines, gzip": ("a.jsonl.gz", gzip.compress(lines().encode()), {}),
}


@pytest.mark.parametrize("name", READ)
def test_odd_files_are_read(name: str, tmp_path: Path) -> None:
    file, content, how = READ[name]
    (tmp_path / file).write_bytes(content)
    found = am.text.read_corpus(tmp_path / file, **how)
    assert found.texts == TEXTS
    assert [found.classes[k] for k in found.labels] == LABELS
    assert found.classes == ("neg", "pos")


LATIN = table(header=None).replace("fine", "für").encode("latin-1")
TWO = "a;b,c\nd;e,f\ng;h,i\n"
TITLES = "title,review,label\n" + "the one,a fine film,1\nthe two,a dull film,0\n" * 2
RATED = "review,stars,label2\n" + "".join(f"text number {i},{i % 3},{i % 2}\n" for i in range(9))

REFUSED: dict[str, tuple[str, bytes, dict[str, Any], str]] = {
    "Latin-1": ("a.csv", LATIN, {}, "encoding: got .*a.csv, line 1 with bytes that are not UTF-8"),
    "another encoding": ("a.csv", "é,1\nü,0\n".encode(), {"encoding": "ascii"}, "not ascii"),
    "no such encoding": ("a.csv", b"a,1\n", {"encoding": "klingon"}, "encoding: got 'klingon'"),
    "no text encoding": ("a.csv", b"a,1\n", {"encoding": "zip"}, "encoding: got 'zip'"),
    "zeros": ("a.csv", table().encode("utf-16-le"), {}, "encoding: .*utf-16-le"),
    "an extra cell": ("a.csv", b"text,label\nx,1\na,b,0\n", {},
                      "delimiter: got .*row 3 with 3 cells where the first has 2, split at ','"),
    "one column": ("a.csv", b"text\nx\ny\n", {}, "delimiter: .*one column at ','"),
    "two delimiters": ("a.csv", TWO.encode(), {}, "delimiter: .*both ',' and ';' split evenly"),
    "a word as delimiter": ("a.csv", b"a,1\n", {"delimiter": "and"}, "delimiter: got 'and'"),
    "an open quote": ("a.csv", b'text,label\n"x, or y",1\n"y,0\n', {}, "delimiter: "),
    "two texts": ("a.csv", TITLES.encode(), {}, "text: .*where title, review are likely"),
    "two labels": ("a.csv", RATED.encode(), {}, "label: .*where stars, label2 are likely"),
    "no such column": ("a.csv", table().encode(), {"text": "body"},
                       "text: got 'body' for .* with columns review, sentiment; needs one of them"),
    "one column twice": ("a.csv", table().encode(), {"text": "review", "label": "review"},
                         "label: got the column 'review' twice"),
    "no text at all": ("a.csv", b"a,b\n1,2\n1,3\n2,2\n2,3\n", {}, "label: .*where a, b are likely"),
    "one class": ("a.csv", b"text,label\nx,1\ny,1\n", {}, r"1 class \(1\); needs the column of"),
    "a missing label": ("a.csv", b"text,label\nx,1\ny,\n", {}, "drop: .*row 2 without a label"),
    "a missing text": ("a.csv", b"text,label\n ,1\ny,0\n", {}, "row 1 without text"),
    "a list as label": ("a.jsonl", b'{"text": "x", "label": [1]}', {}, "label: got a list"),
    "a number as text": ("a.jsonl", b'{"text": 1, "label": 1}\n{"text": 2, "label": 2}', {},
                         "row 1 without text"),
    "half of an object": ("a.jsonl", b"{", {}, "line 1 .*; needs one JSON object per line"),
    "no object": ("a.jsonl", b"[1]", {}, "line 1; needs one JSON object per line"),
    "nothing": ("a.csv", b"", {}, "which is empty; needs a table of texts"),
    "no rows": ("a.csv", b"text,label\n", {}, "without rows"),
    "no lines": ("a.jsonl", b"\n", {}, "without rows"),
    "a zip archive": ("a.csv", b"PK\x03\x04xx", {}, "a zip archive; needs what it holds, or gzip"),
    "half a gzip file": ("a.csv.gz", gzip.compress(b"x" * 999)[:-9], {}, "a broken gzip file"),
    "no gzip file": ("a.csv.gz", b"\x1f\x8bnonsense", {}, "a broken gzip file"),
    "no parquet": ("a.parquet", b"nonsense", {}, "needs a .parquet file"),
    "a document": ("a.docx", b"x", {}, "needs a folder, or a file of .csv, .tsv, .txt, .jsonl"),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_other_files_get_one_sentence(name: str, tmp_path: Path) -> None:
    file, content, how, words = REFUSED[name]
    (tmp_path / file).write_bytes(content)
    with pytest.raises(am.InputError, match=words) as caught:
        am.text.read_corpus(tmp_path / file, **how)
    assert "\n" not in str(caught.value)


def test_latin_1_is_read_when_it_is_named(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_bytes(LATIN)
    found = am.text.read_corpus(tmp_path / "a.csv", encoding="latin-1")
    assert found.texts[0] == "a für film"


def test_a_style_that_fails_late_gives_way_to_one_that_holds(tmp_path: Path) -> None:
    rows = [f"{y}\tmessage number {i}" for i, y in enumerate(["ham", "spam"] * 4000)]
    rows[7000] = 'ham\t"Hello, he wrote'
    path = tmp_path / "spam.tsv"
    path.write_text("\n".join(rows))
    assert am.text.read_corpus(path).texts[7000] == '"Hello, he wrote'
    rows[7500] = "ham\tone\ttwo"
    path.write_text("\n".join(rows))
    with pytest.raises(am.InputError, match=r"delimiter: got .*, row 7501 with 3 cells where"):
        am.text.read_corpus(path)


def test_a_sorted_file_has_its_labels_further_down(tmp_path: Path) -> None:
    rows = [f"en,text number {i},{'bad' if i < 2000 else 'good'}" for i in range(4000)]
    path = tmp_path / "sorted.csv"
    path.write_text("\n".join(["language,body,sentiment", *rows]))
    found = am.text.read_corpus(path)
    assert (found.columns, found.classes) == (("body", "sentiment"), ("bad", "good"))


def test_three_classes_are_read_in_order_and_dropped_by_name(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("text,label\nx,10\ny,9\nz,2\nw,\n")
    found = am.text.read_corpus(path, drop=[""])
    assert (found.classes, found.labels.tolist()) == (("2", "9", "10"), [2, 1, 0])
    assert am.text.read_corpus(path, drop=["", 9]).classes == ("2", "10")
    with pytest.raises(am.InputError, match=r"positive: got none for 3 classes"):
        am.text.token_importance(found)


def test_folders_of_any_class_names(tmp_path: Path) -> None:
    for name, word in (("sport", "goal"), ("politics", "vote"), ("art", "paint")):
        (tmp_path / name).mkdir()
        (tmp_path / name / "1.txt").write_text(word)
        (tmp_path / name / "2.txt.gz").write_bytes(gzip.compress(word.encode("utf-16")))
    found = am.text.read_corpus(tmp_path)
    assert found.classes == ("art", "politics", "sport")
    assert found.texts == ["paint"] * 2 + ["vote"] * 2 + ["goal"] * 2
    (tmp_path / "art" / "3.txt").write_text(" ")
    with pytest.raises(am.InputError, match=r"art/3.txt without text; needs text in every file"):
        am.text.read_corpus(tmp_path)


def test_a_compressed_file_may_not_grow_beyond_bounds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "bomb.csv.gz"
    monkeypatch.setattr("attnmargin.base.streams.most_bytes", lambda size: 100 * size)
    path.write_bytes(gzip.compress(b"text,label\n" + b"x,1\ny,0\n" * (1 << 17)))
    with pytest.raises(am.InputError, match="a small file of too much text"):
        am.text.read_corpus(path, encoding="latin-1")
