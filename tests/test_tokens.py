"""Token importance of corpora: cleaning, statistics, trained models, the command and its page."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from torch.nn import functional as F

import attnmargin as am
from attnmargin.papers.d.layers import logistic_regression
from attnmargin.plot.cloud import cloud_svg
from attnmargin.plot.panels import Panel, Series
from attnmargin.text.corpus import balanced
from attnmargin.text.tokens.cleaning import STOP_WORDS
from attnmargin.text.tokens.models import TokenModel
from tests.test_cli import run as command


def corpus(n: int = 60) -> am.text.Corpus:
    """Texts with one word that decides among words that do not."""
    rng = np.random.default_rng(0)
    words = ["film", "plot", "scene", "actor", "story"]
    labels = np.arange(n) % 2
    texts = []
    for y in labels:
        chosen = list(rng.choice(words, 5))
        chosen.insert(2, str(rng.choice(["superb", "lovely"] if y else ["dull", "awful"])))
        texts.append("The <br /> " + " ".join(chosen) + "!")
    return am.text.Corpus(texts, labels.astype(np.int64), ("neg", "pos"))


def pieces_of(*texts: str, **steps: object) -> list[list[str]]:
    own = am.text.Corpus(list(texts), np.zeros(len(texts), np.int64), ("neg", "pos"))
    found, _ = am.text.clean_tokens(own, am.text.Cleaning(**{"least": 1, **steps}))  # type: ignore[arg-type]
    return [found.words(i) for i in range(len(found))]


def test_words_are_found_as_a_person_would() -> None:
    plain = {"stop_words": False, "stem": False}
    assert pieces_of("It's GOOD, isn’t it?", **plain) == [["it's", "good", "isn't", "it"]]
    assert pieces_of("a_b c-d 10/10", **plain) == [["a", "b", "c", "d", "10", "10"]]
    assert pieces_of("one<br />two", **plain) == [["one", "two"]]
    assert pieces_of("one<br />two", **plain, markup=False) == [["one", "br", "two"]]
    assert pieces_of("", "...", **plain) == [[], []]


def test_stop_words_and_stems() -> None:
    assert pieces_of("It isn’t the film; isn't it?", stem=False) == [["film"]]
    assert pieces_of("loved loving loves lovely") == [["love", "love", "love", "love"]]
    assert "not" in STOP_WORDS


def test_word_pieces_come_after_stems(tmp_path: Path) -> None:
    path = tmp_path / "vocab.txt"
    path.write_text("\n".join(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "bor", "##e", "film"]))
    assert pieces_of("boring films zzz", vocabulary=path) == [["bor", "##e", "film", "[UNK]"]]


def test_markup_entities_and_hearts() -> None:
    plain = {"stop_words": False, "stem": False}
    assert pieces_of("I <3 it. 9 > 5 &amp; don&#39;t", **plain) == [
        ["i", "3", "it", "9", "5", "don't"]
    ]
    assert pieces_of("film’s", stem=False) == pieces_of("film's", stem=False)


@pytest.mark.parametrize("text", ["फिल्म बहुत अच्छी है", "un cafe\u0301 noir", "ที่ น้ำ", "İyi film"])
def test_marks_stay_with_their_letters(text: str) -> None:
    words = text.lower().split()
    assert pieces_of(text, stop_words=False, stem=False) == [words]
    assert am.text.word_list([text])[4:] == words


def test_unbalanced_corpora_are_ordered_by_chance() -> None:
    rng = np.random.default_rng(0)
    texts = [" ".join(rng.choice(["film", "plot", "scene"], 4)) for _ in range(100)]
    texts = [f"{text} {'superb' if k < 80 else 'dull'}" for k, text in enumerate(texts)]
    own = am.text.Corpus(texts, (np.arange(100) < 80).astype(np.int64), ("neg", "pos"))
    found = am.text.token_importance(own, am.text.Cleaning(least=1))
    assert found.row(int(found.ranked("positive", 1)[0]))["token"] == "superb"
    assert found.row(int(found.ranked("negative", 1)[0]))["token"] == "dull"
    listed = {found.row(int(s))["token"] for s in found.ranked("negative", 9)}
    assert "superb" not in listed


def test_rare_tokens_go_and_steps_are_recorded() -> None:
    own = am.text.Corpus(["good good the bad", "good rare"], np.array([1, 0]), ("neg", "pos"))
    found, steps = am.text.clean_tokens(own, am.text.Cleaning(least=2))
    assert (found.words(0), found.words(1)) == (["good", "good"], ["good"])
    assert [(s.step, s.tokens, s.vocabulary) for s in steps] == [
        ("words", 6, 4), ("stop words removed", 5, 3), ("stems", 5, 3),
        ("seen at least 2 times", 3, 1),
    ]  # fmt: skip
    with pytest.raises(am.InputError, match="least: got 0"):
        am.text.Cleaning(least=0)


def written_out(model: TokenModel, ids: list[int]) -> torch.Tensor:
    """f of one sequence, by the formulas of the paper."""
    x = model.E[ids]
    if model.layers == 2:
        x = F.layer_norm(torch.softmax(x @ x.T, -1) @ x + x, x.shape[-1:])
    return torch.softmax(x @ model.p, 0) @ (x @ model.v)


@pytest.mark.parametrize("layers", [1, 2])
def test_models_are_those_of_the_paper(layers: int) -> None:
    torch.manual_seed(0)
    model = TokenModel(6, 8, layers).double()
    rows = [[0, 1, 5], [2], [3, 3]]
    padded = torch.tensor([[0, 1, 5], [2, 6, 6], [3, 3, 6]])
    wanted = torch.stack([written_out(model, row) for row in rows])
    torch.testing.assert_close(model(padded), wanted)
    with pytest.raises(am.InputError, match="layers: got 3; needs 1 or 2"):
        TokenModel(6, 8, 3)


@pytest.mark.parametrize("layers", [1, 2])
def test_a_token_that_occurs_often_is_one_with_a_count(layers: int) -> None:
    torch.manual_seed(2)
    model = TokenModel(6, 8, layers).double()
    rows = [[0, 1, 5, 1, 1], [2, 2], [4]]
    ids, counts = torch.tensor([[0, 1, 5], [2, 6, 6], [4, 6, 6]]), [[1, 3, 1], [2, 0, 0], [1, 0, 0]]
    wanted = torch.stack([written_out(model, row) for row in rows])
    torch.testing.assert_close(model(ids, torch.tensor(counts)), wanted)


def test_products_of_both_models_start_small() -> None:
    torch.manual_seed(3)
    d = 256
    sizes = []
    for layers in (1, 2):
        model = TokenModel(50, d, layers)
        x = model.E if layers == 1 else F.layer_norm(model.E, (d,))
        sizes += [float((x @ y).detach().std()) * d**0.5 for y in (model.p, model.v)]
    assert all(0.7 < size < 1.4 for size in sizes), sizes


def test_the_first_epoch_has_the_loss_of_the_sequences_as_they_are() -> None:
    """One step of one batch: training sees repeated tokens as the model does."""
    own = am.text.token_importance(corpus(20), am.text.Cleaning(least=1)).pieces
    recipe = am.text.TokenRecipe(layers=2, d=8, epochs=1, batch=20, parts=3, lr=1e-9, decay=0.0)
    run = am.text.train_tokens(own, recipe)
    f = torch.stack([written_out(run.model, own.row(i).tolist()) for i in range(len(own))]).detach()
    loss = F.softplus(-(2 * torch.from_numpy(own.labels) - 1) * f).mean()
    assert run.history[0]["loss"] == pytest.approx(float(loss), abs=1e-6)


def test_decay_shrinks_the_weights_as_adamw_does_it() -> None:
    own = am.text.token_importance(corpus(), am.text.Cleaning(least=1)).pieces
    recipes = [
        am.text.TokenRecipe(d=4, epochs=1, batch=60, lr=0.1, decay=decay) for decay in (0.0, 2.0)
    ]
    plain, shrunk = (am.text.train_tokens(own, recipe).model for recipe in recipes)
    start = am.text.train_tokens(own, am.text.TokenRecipe(d=4, epochs=1, batch=60, lr=1e-30)).model
    torch.testing.assert_close(shrunk.E - plain.E, -0.1 * 2.0 * start.E)


def test_counts_and_ids_that_do_not_fit_are_refused() -> None:
    model = TokenModel(5, 4)
    with pytest.raises(am.InputError, match=r"counts: got shape \(1,\); needs that of the ids"):
        model(torch.tensor([[0, 1]]), torch.ones(1))
    padded = model(torch.tensor([[0, 5]]), torch.ones(1, 2))
    torch.testing.assert_close(padded, model(torch.tensor([[0]])))
    outside = am.text.Pieces(np.array([0, 1]), np.array([0, 1, 2]), np.array([0, 1]), ["a"])
    with pytest.raises(am.InputError, match="pieces: got ids outside of the vocabulary"):
        am.text.train_tokens(outside)


def test_a_look_after_every_epoch() -> None:
    own = am.text.token_importance(corpus(), am.text.Cleaning(least=1)).pieces
    seen: list[float] = []
    run = am.text.train_tokens(
        own, am.text.TokenRecipe(d=4, epochs=3),
        look=lambda run: seen.append(run.history[-1]["loss"]),
    )  # fmt: skip
    assert seen == [row["loss"] for row in run.history]


def test_logistic_regression_is_the_model_without_attention() -> None:
    """Its optimum by autograd, with E and v for w and p = 0; and the pieces stay as they are."""
    own = am.text.token_importance(corpus(), am.text.Cleaning(least=1)).pieces
    before, ridge = own.ids.copy(), 1e-3
    w, loss = logistic_regression(own, ridge, np.zeros(len(own.vocabulary)))
    assert np.array_equal(own.ids, before)
    model = TokenModel(len(w), 1).double()
    model.E.data, model.p.data = torch.from_numpy(w)[:, None], torch.zeros(1).double()
    model.v.data = torch.ones(1).double()
    f = torch.stack([model(torch.from_numpy(own.row(i))[None])[0] for i in range(len(own))])
    mean = F.softplus(-(2.0 * torch.from_numpy(own.labels) - 1.0) * f).mean()
    mean.backward()
    assert model.E.grad is not None
    assert loss == pytest.approx(mean.item())
    np.testing.assert_allclose(model.E.grad[:, 0].numpy(), -ridge * w, atol=1e-6)


def test_the_one_layer_model_is_that_of_the_theory() -> None:
    torch.manual_seed(1)
    model = TokenModel(5, 4).double()
    ids = torch.tensor([[0, 1, 2], [3, 4, 4]])
    y = torch.tensor([1.0, -1.0], dtype=torch.float64)
    F.softplus(-y * model(ids)).mean().backward()
    E, p, v = (x.detach() for x in (model.E, model.p, model.v))
    of_E, of_p = am.embeddings.EmbeddingModel(E, p, v, ids, y).gradients()
    torch.testing.assert_close(model.E.grad, of_E)
    torch.testing.assert_close(model.p.grad, of_p)


@pytest.mark.parametrize("layers", [1, 2])
def test_training_agrees_with_statistics(layers: int) -> None:
    found = am.text.token_importance(corpus(), am.text.Cleaning(least=1, stem=False))
    recipe = am.text.TokenRecipe(layers=layers, d=64, lr=2e-2, epochs=30, batch=20, parts=2)
    found = replace(found, run=am.text.train_tokens(found.pieces, recipe))
    record = found.agreement(least=5)
    assert record["sign agreement"] == 1.0
    assert found.agreement()["seen at least"] == 20  # a small corpus
    assert record["accuracy"] == 1.0
    tokens = {found.row(int(s))["token"] for s in found.ranked("attended", 4)}
    assert tokens == {"superb", "lovely", "dull", "awful"}


def test_a_stopped_run_goes_on_to_the_same_numbers(tmp_path: Path) -> None:
    own = am.text.token_importance(corpus(), am.text.Cleaning(least=1)).pieces
    whole = am.text.train_tokens(own, am.text.TokenRecipe(d=8, epochs=6, drops=(3,), batch=16))
    am.text.train_tokens(
        own, am.text.TokenRecipe(d=8, epochs=2, drops=(3,), batch=16), out=tmp_path
    )
    later = am.text.train_tokens(
        own, am.text.TokenRecipe(d=8, epochs=6, drops=(3,), batch=16), out=tmp_path
    )  # fmt: skip
    assert [h["loss"] for h in whole.history] == [h["loss"] for h in later.history]
    assert torch.equal(whole.model.E, later.model.E)
    with pytest.raises(am.InputError, match="a run with another lr; needs an empty folder"):
        am.text.train_tokens(
            own, am.text.TokenRecipe(d=8, lr=1.0, drops=(3,), batch=16), out=tmp_path
        )
    other = own.part(np.arange(10, 50))
    with pytest.raises(am.InputError, match="a run with another corpus"):
        am.text.train_tokens(other, am.text.TokenRecipe(d=8, drops=(3,), batch=16), out=tmp_path)


def test_balanced_corpora_have_as_many_texts_of_either_class() -> None:
    own = am.text.Corpus(list("abcdef"), np.array([1, 0, 1, 1, 0, 1]), ("neg", "pos"))
    found = balanced(own)
    assert np.bincount(found.labels).tolist() == [2, 2]
    assert found.texts == sorted(found.texts)
    assert {"b", "e"} < set(found.texts)
    assert balanced(own).texts == found.texts


def test_errors_of_training() -> None:
    empty = am.text.Pieces(np.array([0]), np.array([0, 1, 1]), np.array([0, 1]), ["a"])
    with pytest.raises(am.InputError, match="pieces: got a sequence without tokens"):
        am.text.train_tokens(empty)
    with pytest.raises(am.InputError, match="epochs: got 0"):
        am.text.TokenRecipe(epochs=0)
    with pytest.raises(am.InputError, match="drops: got 0; needs a whole number"):
        am.text.TokenRecipe(drops=(10, 0))
    with pytest.raises(am.InputError, match="drops: got 5; needs a tuple"):
        am.text.TokenRecipe(drops=5)  # type: ignore[arg-type]
    with pytest.raises(am.InputError, match=r"decay: got -1\.0; needs zero or a positive number"):
        am.text.TokenRecipe(decay=-1.0)
    found = am.text.token_importance(corpus(), am.text.Cleaning(least=1))
    with pytest.raises(am.InputError, match="'attended' without a trained model"):
        found.ranked("attended", 3)
    with pytest.raises(am.InputError, match="run: got none"):
        found.agreement()
    with pytest.raises(am.InputError, match="texts without any token left"):
        am.text.token_importance(corpus(), am.text.Cleaning(least=10**6))


def table(path: Path, n: int = 60) -> Path:
    own = corpus(n)
    rows = [f"{text},{own.classes[y]}" for text, y in zip(own.texts, own.labels, strict=True)]
    path.write_text("\n".join(["text,label", *rows]))
    return path


def test_tokens_on_the_command_line(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    file, page = table(tmp_path / "data.csv"), tmp_path / "page.html"
    words = ("tokens", file, "--least", "1", "--no-stem", "--top", "2")
    code, out, err = command(capsys, *words, "--statistics-only")
    assert (code, err) == (0, "")
    assert "tokens that speak for 'pos'" in out
    assert "stop words removed: 360 tokens, 9 different" in out
    code, out, _ = command(
        capsys, *words, "--epochs", "30", "--lr", "0.02", "--batch", "20", "--html", page, "--json"
    )
    record = json.loads(out)
    assert code == 0
    assert {row["token"] for row in record["positive"]} == {"superb", "lovely"}
    assert {row["kind"] for row in record["negative"]} == {"completely negative"}
    assert record["agreement"]["accuracy"] == 1.0
    text = page.read_text()
    assert text.count("<svg") == 2
    assert "<title>superb: +1.00" in text
    code, _, err = command(capsys, *words, "--lr", "1e30", "--epochs", "3")
    assert code == 2
    assert "lr: got 1e+30, with which the loss becomes" in err
    code, _, err = command(capsys, *words, "--html", tmp_path / "none" / "x.html")
    assert (code, "--html: got" in err) == (2, True)
    code, out, _ = command(capsys, *words, "--epochs", "1", "--frequent", "99")
    assert "no token that was seen at least 99 times" in out
    code, _, err = command(capsys, *words, "--frequent", "0")
    assert (code, "--frequent: got 0" in err) == (2, True)
    code, _, err = command(capsys, *words, "--width", "0")
    assert (code, "--width: got 0" in err) == (2, True)
    code, _, err = command(capsys, *words, "--top", "0")
    assert (code, "--top: got 0" in err) == (2, True)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"text,label\nfine,\n", "row 1 without a label"),
        (b"text,label\na,0\nb,1\nc,2\n", "with 3 classes"),
        (b"text,label\n,1\nb,0\n", "row 1 without text"),
        (b"words,label\na,1\n", "needs a column 'text'"),
        (b"text,label\n\xff\xfe,1\n", "needs text in UTF-8"),
    ],
)
def test_bad_files_get_one_sentence(
    content: bytes, words: str, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    file = tmp_path / "bad.csv"
    file.write_bytes(content)
    code, out, err = command(capsys, "tokens", file)
    assert (code, out) == (2, "")
    assert words in err
    assert len(err.strip().splitlines()) == 1


def test_a_cloud_names_its_points() -> None:
    points = Series(kind="points", name="", x=np.array([-1.0, 0.0]), y=np.array([2.0, 2.0]),
                    labels=["<a>", "b"])  # fmt: skip
    text = cloud_svg(Panel(title="", axes=("x", "y"), series=[points]))
    assert text.count("<circle") == 2
    assert "<title>&lt;a&gt;: -1.00, +2.00</title>" in text
