"""The command graph."""

import gzip
import json
import re
from pathlib import Path

import networkx as nx
import pytest

import attnmargin as am
from tests.commands import command, write


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("{", "line 1 .*; needs lines such as"),
        ('{"tokens": ["a"]}', "line 1 without tokens and next"),
        ("[1]", "line 1 without tokens and next"),
        ('{"tokens": [], "next": "a"}', "at least one token"),
        ('{"tokens": ["a", 1.5], "next": "a"}', "all of them words or whole numbers"),
        ('{"tokens": ["a"], "next": null}', "all of them words or whole numbers"),
        ('{"tokens": "ab", "next": "a"}', "at least one token"),
        ('{"tokens": ["\\ud800", "b"], "next": "b"}', "half of a character"),
        ('{"tokens": [' + "9" * 5000 + '], "next": 1}', "line 1 .*; needs lines such as"),
    ],
)
def test_bad_lines_are_named(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, line: str, words: str
) -> None:
    code, out, err = command(capsys, "graph", write(tmp_path / "bad.jsonl", [line]))
    assert (code, out) == (2, "")
    assert re.search(words, err)
    assert err.count("\n") == 1


def test_bad_files_get_one_sentence(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    code, _, err = command(capsys, "graph", tmp_path / "none.jsonl")
    assert (code, "which does not exist; needs an existing file" in err) == (2, True)
    code, _, err = command(capsys, "graph", tmp_path)
    assert (code, "which is a folder" in err) == (2, True)
    code, _, err = command(capsys, "graph", "x" * 5000)
    assert (code, "File name too long" in err) == (2, True)
    (tmp_path / "latin.txt").write_bytes(b"caf\xe9 au lait\n")
    code, _, err = command(capsys, "graph", tmp_path / "latin.txt")
    assert (code, "needs text in UTF-8" in err) == (2, True)
    code, _, err = command(capsys, "graph", write(tmp_path / "one.txt", ["word"]))
    assert (code, "line 1 with one word" in err) == (2, True)
    code, _, err = command(capsys, "graph", write(tmp_path / "no.txt", ["a b c"]))
    assert (code, "1 sequence, none with its label in it" in err) == (2, True)


def test_graph_prints_tables_layers_and_what_comes_next(
    capsys: pytest.CaptureFixture[str], seven_file: Path
) -> None:
    code, out, err = command(capsys, "graph", seven_file)
    assert (code, err) == (0, "")
    assert "7 sequences over 4 different tokens: 2 graphs" in out
    assert "{e2, e3, e1}" in out
    code, out, _ = command(capsys, "graph", seven_file, "--last", "e1")
    assert out.splitlines()[1:] == [f"  layer {k + 1}: {{e{t}}}" for k, t in enumerate("2341")]
    code, out, _ = command(capsys, "graph", seven_file, "--next", "e3 e4 e1")
    assert code == 0
    assert out.startswith("1.0000  e3\nrule: retrieval")
    code, out, _ = command(capsys, "graph", seven_file, "--next", "e1 e4")
    assert (code, "rule: unseen" in out) == (1, True)
    assert "never seen with this last token: e1, e4" in out
    code, _, err = command(capsys, "graph", seven_file, "--next", "e9")
    assert (code, "--next: got the token 'e9'" in err) == (2, True)


def test_graph_prints_one_json_object(capsys: pytest.CaptureFixture[str], seven_file: Path) -> None:
    code, out, err = command(capsys, "graph", seven_file, "--next", "e1 e3 e4 e2", "--json")
    record = json.loads(out)
    assert (code, err) == (0, "")
    assert (record["samples"], record["vocabulary"], record["acyclic"]) == (7, 4, False)
    assert record["next"]["rule"] == "composition"
    assert sum(t["probability"] for t in record["next"]["tokens"]) == pytest.approx(1.0)
    assert record["details"][0]["components"][0] == {"layer": 0, "tokens": ["e2", "e3", "e1"]}


def test_files_may_be_marked_or_shouted(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    (tmp_path / "bom.txt").write_bytes("\ufeffthe cat the\r\n".encode())
    assert am.graphs.read_graphs(tmp_path / "bom.txt").vocabulary.names == ["the", "cat"]
    upper = write(tmp_path / "LINES.JSONL", ['{"tokens": ["a b", "c"], "next": "a b"}'])
    code, out, _ = command(capsys, "graph", upper, "--next", '["c", "a b", "c"]')
    assert (code, out.splitlines()[0]) == (0, "1.0000  “a b”")


def test_odd_names_reach_other_programs(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    line = json.dumps({"tokens": ["a\u0007", "[bold]b", "\u001b[31m"], "next": "[bold]b"})
    file, target = write(tmp_path / "odd.jsonl", [line]), tmp_path / "odd.graphml"
    code, out, _ = command(capsys, "graph", file, "--graphml", target)
    assert (code, "[bold]b" in out, "\u001b" in out) == (0, True, False)
    names = {words["token"] for _, words in nx.read_graphml(target).nodes(data=True)}
    assert names == {"a\ufffd", "[bold]b", "\ufffd[31m"}
    code, _, err = command(capsys, "graph", file, "--graphml", target, "--html", target)
    assert (code, "which is --html too; needs a file of its own" in err) == (2, True)


def test_unrealisable_labels_are_not_predicted(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    file = write(tmp_path / "words.txt", ["a b c"])
    code, _, err = command(capsys, "graph", file, "--unrealisable", "keep", "--next", "a b")
    assert (code, "labels outside of 1 sequence" in err) == (2, True)


def test_labels_outside_of_their_sequence_are_counted(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    file = write(tmp_path / "words.txt", ["a b a", "a b c"])
    _, out, _ = command(capsys, "graph", file)
    assert "Left out: 1 more sequence, whose" in out
    _, out, _ = command(capsys, "graph", file, "--unrealisable", "keep")
    assert "In 1 sequence the next token is not among the tokens" in out


@pytest.fixture
def choices_file(tmp_path: Path) -> Path:
    """Choices of which a tenth are random."""
    data = am.graphs.planted_choices(1500, 0.1, seed=3)
    lines = (json.dumps({"tokens": own, "next": label}) for own, label in data.names)
    return write(tmp_path / "choices.jsonl", list(lines))


def test_noise_is_told_apart_and_shown(
    capsys: pytest.CaptureFixture[str], choices_file: Path, tmp_path: Path
) -> None:
    page = tmp_path / "page.html"
    code, out, err = command(capsys, "graph", choices_file, "--test", "0.2", "--html", page)
    assert (code, err) == (0, "")
    assert "1,500 sequences over 13 different tokens: 8 graphs" in out.replace("\n", " ")
    assert re.search(r"Noise: \d+ choices against the order of the others, as if (9|1\d)", out)
    assert "On 300 unseen sequences the automaton beats every simpler rule in log-loss." in out
    text = page.read_text()
    assert text.count("<h2>Noise</h2>") == text.count("<h2>Unseen sequences</h2>") == 1
    code, out, _ = command(capsys, "graph", choices_file, "--strict", "--json")
    record = json.loads(out)
    assert (code, record["noise"], record["largest_component"]) == (0, None, 6)
    code, out, _ = command(capsys, "graph", choices_file, "--min-share", "0.2", "--json")
    assert json.loads(out)["noise"]["contradictions"] > 50
    code, out, _ = command(capsys, "graph", choices_file, "--test", choices_file, "--json")
    rules = json.loads(out)["test"]["rules"]
    assert [own["rule"] for own in rules] == ["automaton", "bigram", "most frequent", "uniform"]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--strict", "--min-count", "2"], "--strict: got --min-count as well; needs one of them"),
        (["--test", "2"], "--test: got 2; needs a share above 0 and below 1, or a file"),
        (["--test", "none.txt"], "--test: got none.txt, which does not exist"),
        (["--min-count", "0"], "--min-count: got 0; needs a whole number of at least 1"),
        (["--min-share", "2"], "--min-share: got 2.0; needs a share from 0 to 1"),
    ],
)
def test_options_of_noise_are_checked(
    options: list[str], words: str, capsys: pytest.CaptureFixture[str], seven_file: Path
) -> None:
    code, out, err = command(capsys, "graph", seven_file, *options)
    assert (code, out) == (2, "")
    assert words in err


def test_packed_files_in_other_encodings(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    line = '{"tokens": ["ä", "b"], "next": "ä"}'
    packed = tmp_path / "packed.jsonl.gz"
    packed.write_bytes(gzip.compress(line.encode("utf-16")))
    code, out, _ = command(capsys, "graph", packed, "--next", "ä b")
    assert (code, out.splitlines()[0]) == (0, "1.0000  ä")
    (tmp_path / "latin.txt").write_bytes("ä b ä\n".encode("latin-1"))
    code, _, err = command(capsys, "graph", tmp_path / "latin.txt")
    assert (code, "--encoding: got" in err) == (2, True)
    code, _, _ = command(capsys, "graph", tmp_path / "latin.txt", "--encoding", "latin-1")
    assert code == 0
