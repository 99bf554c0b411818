"""Words, sentences and the graph of next tokens of the explorer, in node."""

import json
import subprocess
from typing import Any

import numpy as np
import pytest
import torch

import attnmargin as am
from attnmargin.data.demo_reviews import EMBEDDINGS, REVIEWS, review_data
from attnmargin.plot.explorer.bundle import bundled
from tests.plot.explorer.pieces import NODE, ask, ask_one, needs_node

pytestmark = needs_node


def test_the_lexicon_holds_the_words_of_the_demo_unchanged() -> None:
    found = ask_one("lexicon")
    assert {word: tuple(found[word]) for word in EMBEDDINGS} == EMBEDDINGS


def test_words_have_distinct_vectors_of_two_decimals() -> None:
    found = ask_one("lexicon")
    assert 300 <= len(found) <= 600
    E = np.array(list(found.values()))
    assert E.shape == (len(found), 8)
    np.testing.assert_array_equal(E, np.round(E, 2))
    assert len(np.unique(E, axis=0)) == len(E)
    assert np.abs(E[:, 0]).max() <= 1.0


def test_sentiments_and_topics() -> None:
    found = {word: np.array(row) for word, row in ask_one("lexicon").items()}
    good, bad = ("superb", "delicious", "friendly", "gem"), ("awful", "rude", "waste", "faulty")
    assert min(found[word][0] for word in good) > 0.5 > -0.5 > max(found[word][0] for word in bad)

    def alike(one: str, two: str) -> float:
        return float(np.corrcoef(found[one][1:], found[two][1:])[0, 1])

    assert alike("pizza", "soup") > 0.5 > alike("pizza", "laptop")
    assert alike("laptop", "phone") > 0.5 > alike("laptop", "soup")


def test_words_are_read_as_people_write_them() -> None:
    words = ["Music,", "“music”", "music", "movies", "Zürich", "zürich!", "xyzzy"]
    found = ask_one("vectors", words=words)
    assert found[0] == found[1] == found[2] == {"known": True, "vector": [*EMBEDDINGS["music"]]}
    assert found[3]["known"]
    assert found[4] == found[5]
    assert not found[4]["known"]
    assert found[4]["vector"][0] == found[6]["vector"][0] == 0
    assert found[4]["vector"] != found[6]["vector"]
    assert np.abs(found[6]["vector"]).max() <= 0.4


def test_the_default_sentences_are_the_demo() -> None:
    sentences = ask_one("defaults")
    wanted = [
        {"text": own.text, "query": own.words.index(own.aspect), "label": own.label}
        for own in REVIEWS
    ]
    assert sentences == wanted
    found, demo = ask_one("sentences", sentences=sentences), review_data()
    data = am.AttentionData(*(found["data"][name] for name in ("X", "z", "y", "v")))
    assert found["words"] == [own.words for own in REVIEWS]
    for name in ("X", "z", "y", "v", "mask"):
        assert torch.equal(getattr(data, name), getattr(demo, name))


@pytest.mark.parametrize(
    ("text", "query", "wanted"),
    [
        ("the soup was hot", 3, {"text": "the soup was hot", "query": 3}),
        ("now the soup was cold", 3, {"text": "now the soup was cold", "query": 4}),
        ("  cold  soup ", 1, {"text": "cold soup", "query": 1}),
        ("soup", 3, {"text": "soup", "query": 0}),
        ("   ", 3, {"text": "the soup was cold", "query": 3}),
        (" ".join("abcdefghijklmnop"), 2, {"text": "a b c d e f g h i j k l", "query": 2}),
    ],
)
def test_the_query_stays_on_its_word(text: str, query: int, wanted: dict[str, Any]) -> None:
    sentence = {"text": "the soup was cold", "query": query, "label": -1}
    assert ask_one("edited", sentence=sentence, text=text) == wanted | {"label": -1}


def drawn_text(rng: np.random.Generator, lines: int, tokens: int) -> list[tuple[list[str], str]]:
    """Draw contexts over few tokens, some of them twice, and the choice in each."""
    names = [f"t{k}" for k in range(tokens)]
    found = []
    for _ in range(lines):
        context = [str(x) for x in rng.choice(names, size=int(rng.integers(1, 5)))]
        found.append((context, str(rng.choice(context))))
    return found


def written(samples: list[tuple[list[str], str]]) -> str:
    """Write samples as a person does."""
    return "\n".join(f"{' '.join(context)} -> {label}" for context, label in samples)


def test_graphs_and_answers_are_those_of_the_library() -> None:
    rng = np.random.default_rng(5)
    questions, cases = [], []
    for k in range(60):
        samples = drawn_text(rng, 2 + k % 9, 3 + k % 5)
        seen = sorted({token for context, _ in samples for token in context})
        contexts = [
            [str(x) for x in rng.choice(seen, size=int(rng.integers(1, 6)))] for _ in range(12)
        ]
        cases.append((samples, contexts))
        questions.append(("graph", {"text": written(samples), "contexts": contexts}))
    rules = set()
    for found, (samples, contexts) in zip(ask(*questions), cases, strict=True):
        graphs = am.token_graphs([s[0] for s in samples], [s[1] for s in samples])
        assert found["problems"] == []
        _same_graphs(found["graphs"], graphs)
        automaton = am.graphs.Automaton(graphs)
        for answer, context in zip(found["next"], contexts, strict=True):
            rules.add(_same_answer(answer, automaton.next(context)))
    assert rules == {"retrieval", "composition", "margin", "tie", "unseen"}


def _same_graphs(found: list[dict[str, Any]], graphs: am.graphs.TokenGraphs) -> None:
    assert [own["last"] for own in found] == [graph.name for graph in graphs]
    for own, graph in zip(found, graphs, strict=True):
        assert own["tokens"] == [graphs.vocabulary.name(int(k)) for k in graph.tokens]
        assert own["edges"] == graph.edges.tolist()
        assert own["component"] == graph.component.tolist()
        assert own["layer"] == graph.layer.tolist()
        assert own["reach"] == graph.reach.tolist()
        assert sorted(own["covers"]) == graph.covers.tolist()


def _same_answer(found: dict[str, Any], wanted: am.graphs.Next) -> str:
    rule = str(wanted.rule)
    assert found["rule"] == rule
    assert sorted(found["strange"]) == sorted(wanted.strange)
    if rule != "unseen":
        assert sorted(found["beaten"]) == sorted(wanted.beaten)
        assert {name for name, _ in found["tokens"]} == {name for name, _ in wanted.tokens}
    if wanted.decided:
        shares = dict(wanted.tokens)
        for name, share in found["tokens"]:
            assert share == pytest.approx(shares[name], abs=1e-6)
    return rule


CHAIN = "a b c d -> a\nb c d -> b\nc d -> c"


@pytest.mark.parametrize(
    ("text", "context", "sentence"),
    [
        (CHAIN, "a d", "“a”: it has priority over all the others, so attention retrieves it."),
        (CHAIN, "d", "“d”: there is no other token."),
        (CHAIN, "b a", "No line has “a” before its arrow: nothing was learnt about it."),
        (
            "a b c -> a\na b c -> b\na b c -> a",
            "b a c",
            "“a” 67 %, “b” 33 %: one component, whose tokens share the attention; "
            "it has priority over all the others.",
        ),
        (
            "a c d -> a\nb d -> b",
            "a b d",
            "“a”, “b”: neither the graph nor the max-margin direction tells them apart, and the "
            "theory makes no prediction.",
        ),
        (
            "a c d -> a\nb d -> b\na e d -> e\nx y -> x",
            "x a d",
            "“a”: the graph leaves the order open, and the max-margin direction decides. "
            "Never seen with “d”: “x”.",
        ),
    ],
)
def test_answers_in_words(text: str, context: str, sentence: str) -> None:
    assert ask_one("graph", text=text, contexts=[context.split()])["words"] == [sentence]


def test_bad_lines_are_left_out_with_a_sentence() -> None:
    text = "a b -> a\n\na b\n-> a\na b ->\na b -> a b\na -> b -> a\na b -> c\nb a → a\n" + "x " * 25
    found = ask_one("graph", text=f"{text}-> x", contexts=[])
    assert found["samples"] == [
        {"tokens": ["a", "b"], "next": "a"},
        {"tokens": ["b", "a"], "next": "a"},
    ]
    arrow = "needs one arrow, as in “a b c -> b”."
    assert found["problems"] == [
        f"Line 3 {arrow}",
        "Line 4 has no token before the arrow.",
        "Line 5 needs one token behind the arrow.",
        "Line 6 needs one token behind the arrow.",
        f"Line 7 {arrow}",
        "Line 8 chooses “c”, which is not among its tokens.",
        "Line 10 has more than 24 tokens.",
    ]


def test_an_empty_text_and_a_long_one() -> None:
    empty, long = ask(
        ("graph", {"text": " \n", "contexts": []}),
        ("graph", {"text": "a b -> a\n" * 102, "contexts": []}),
    )
    assert (empty["samples"], empty["graphs"], empty["problems"]) == ([], [], [])
    assert len(long["samples"]) == 100
    assert long["problems"][0] == "Line 101 is beyond the first 100."


def test_the_bundle_of_the_page_says_the_same() -> None:
    bundle = "".join(map(bundled, ("lexicon", "nextgraph"))).replace("const $", "var $")
    script = f"{bundle}console.log(JSON.stringify([$lexicon.lexWords().map($lexicon.lexVector),"
    script += " $nextgraph.GRAPH_DEFAULT]))"
    done = subprocess.run([str(NODE), "-e", script], capture_output=True, text=True, check=True)
    vectors, text = json.loads(done.stdout)
    assert vectors == [*ask_one("lexicon").values()]
    assert text.splitlines()[0] == "tea coffee milk please -> tea"
