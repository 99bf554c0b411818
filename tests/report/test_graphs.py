"""The page of graphs."""

import json
from pathlib import Path

import numpy as np
import pytest

import attnmargin as am
from tests.commands import command, write


def test_the_page_is_whole_and_escapes_names(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    rows = [json.dumps({"tokens": ["<b>", "</script>", "<!--<script>", "a&b"], "next": "<b>"})]
    page = tmp_path / "page.html"
    file = write(tmp_path / "odd.jsonl", rows)
    code, out, _ = command(capsys, "graph", file, "--next", "</script> <b> a&b", "--html", page)
    text = page.read_text()
    assert (code, f"page: {page}" in out) == (0, True)
    assert text.count("</script>") == 2  # the data, and the code
    assert "<!--" not in text
    assert "<b>" not in text.split('<script type="application/json"')[0]
    assert "http" not in text  # nothing is fetched
    assert "&lt;b&gt;" in text


def test_the_page_carries_graphs_and_shares(
    capsys: pytest.CaptureFixture[str], seven_file: Path, tmp_path: Path
) -> None:
    page = tmp_path / "page.html"
    command(capsys, "graph", seven_file, "--html", page)
    text = page.read_text()
    data = json.loads(text.split('id="graphs">')[1].split("</script>")[0])
    assert data["names"] == ["e2", "e3", "e1", "e4"]
    assert [len(graph["tokens"]) for graph in data["graphs"]] == [4, 4]
    soft = np.exp(data["graphs"][0]["soft"][:3])
    wanted = (
        am.graphs.Automaton(am.graphs.read_graphs(seven_file))
        .next("e1 e3 e4 e2")
        .distribution[:3]
        .numpy()
    )
    np.testing.assert_allclose(soft / soft.sum(), wanted, atol=1e-6)
    assert text.count("<svg") == 2
    assert "the other " not in text
    hard = am.graphs.Automaton(am.graphs.read_graphs(seven_file)).next("e3 e4 e1")
    values = dict(zip(data["graphs"][1]["tokens"], data["graphs"][1]["hard"], strict=True))
    assert values[1] - max(values[2], values[3]) == pytest.approx(hard.margin, abs=1e-5)


def test_large_graphs_are_left_out_of_the_page(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from attnmargin.report.pages import graphs as graph_page

    monkeypatch.setattr(graph_page, "_MOST_NUMBERS", 40)
    tokens = [f"t{k}" for k in range(60)]
    rows = [json.dumps({"tokens": [*tokens, "big"], "next": "t0"})]
    rows += [json.dumps({"tokens": ["t1", "small"], "next": "t1"})]
    page = tmp_path / "page.html"
    command(capsys, "graph", write(tmp_path / "large.jsonl", rows), "--html", page)
    data = json.loads(page.read_text().split('id="graphs">')[1].split("</script>")[0])
    assert [data["names"][g["last"]] for g in data["graphs"]] == ["small"]
    assert [data["names"][k] for k in data["rest"]] == ["big"]
    assert "the other 1 graph can be looked through below" in page.read_text()
    assert page.read_text().count("<svg") == 1
