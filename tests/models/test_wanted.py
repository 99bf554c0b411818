"""Wanted selections: closed forms, contradictions, and the atom maps of rxnmapper."""

import math

import pytest

import attnmargin as am
from attnmargin.models import Head, place_pairs, read_heads, wanted_selection
from attnmargin.report.heads import wanted_record
from tests.models.instances import TEXTS, small_model
from tests.models.reactions import mapped_reactions, rxnmapper


def test_shares_of_pairs_and_rows_are_counted() -> None:
    head = Head([[1.0]], [[1.0]], [[[1.0], [2.0], [3.0]]])  # every query selects token 2
    own = wanted_selection([head], [(0, 0, 2), (0, 1, 1)])
    assert own.heads[0].pairs == 0.5
    assert own.heads[0].rows == 0.75
    expected = float(head.attention[0, 0, 2] + head.attention[0, 1, 1]) / 2
    assert own.heads[0].attention == pytest.approx(expected)
    assert own.heads[0].margin == pytest.approx(-2.0)  # query 2 wants 2 over 3: 2 · (2 − 3)
    assert own.layers[0].status == "infeasible"  # 2 wants the middle one, whatever the sign of W


def test_a_selection_and_its_reverse_contradict_each_other() -> None:
    X = [[[1.0, 0.0], [0.0, 1.0]]] * 2
    head = Head([[1.0, 0.0]], [[1.0, 0.0]], X, words=[["a", "b"], ["a", "b"]])
    own = wanted_selection([head], [(0, 0, 0), (1, 0, 1)])
    found = own.layers[0].contradiction
    assert found is not None
    assert found.same
    demands = [(d.text, d.query, d.chosen, d.other) for d in found.demands]
    assert demands == [(0, 0, 0, 1), (1, 0, 1, 0)]
    assert wanted_record(own, head.words)["layers"][0]["words"] == (
        "Layer 0: no W does, because in text 0 query “a” (0) wants “a” (0) over “b” (1); in text 1 "
        "query “a” (0) wants “b” (1) over “a” (0), with the same query vector."
    )


def test_words_name_places_of_pairs() -> None:
    heads = list(read_heads(small_model("gpt2"), TEXTS[:2]))
    assert place_pairs(heads, "previous")[:2] == [(0, 1, 0), (0, 2, 1)]
    assert place_pairs(heads, "next") == []  # causal
    assert (1, 0, 0) not in place_pairs(heads, "same")  # the first query has no rival
    with pytest.raises(am.InputError, match="place: got 'left'; needs one of previous, same, next"):
        place_pairs(heads, "left")


def test_heads_are_ranked_and_judged_by_all_pairs() -> None:
    heads = list(read_heads(small_model("bert"), TEXTS))
    pairs = place_pairs(heads, "previous")
    own, few = wanted_selection(heads, pairs), wanted_selection(heads, pairs, most=4)
    shares = [head.pairs for head in own.heads]
    assert shares == sorted(shares, reverse=True)
    assert [head.pairs for head in few.heads] == shares
    assert [layer.pairs for layer in few.layers] == [4, 4]
    assert own.layers[0].gap < 1e-12


def test_rotary_heads_are_ranked_without_a_margin() -> None:
    heads = list(read_heads(small_model("llama"), TEXTS))
    own = wanted_selection(heads, place_pairs(heads, "previous"))
    assert "one W per distance" in own.layers[0].status
    assert math.isnan(own.heads[0].margin)


@pytest.mark.parametrize(
    ("pairs", "words"),
    [
        ([], "pairs: got no pair; needs at least one"),
        ([(0, 1)], r"pairs: got \(0, 1\) at place 0; needs \(text, query, token\)"),
        ([(3, 1, 0)], "pairs: got text 3 in pair 0; needs texts from 0 to 2"),
        ([(1, 3, 0)], "query 3 in pair 0; needs positions from 0 to 2 in text 1"),
        ([(1, 1, 0), (1, 1, -1)], "token -1 in pair 1; needs positions from 0 to 2 in text 1"),
        ([(0, 1, 2)], "token 2 in pair 0, which query 1 does not see; needs tokens that"),
        ([(0, 0, 0)], "query 0 in pair 0, which sees one token; needs queries that see"),
    ],
)
def test_pairs_out_of_range_are_one_sentence(pairs: list[tuple[int, ...]], words: str) -> None:
    heads = list(read_heads(small_model("gpt2"), TEXTS))
    with pytest.raises(am.InputError, match=words):
        wanted_selection(heads, pairs)


@pytest.mark.slow
def test_head_5_of_layer_10_maps_atoms_of_products_to_those_of_reactants() -> None:
    reactions = mapped_reactions()
    model, vocabulary = rxnmapper()
    ids = [[vocabulary[word] for word in own] for own in reactions.words]
    assert len(ids) >= 10
    assert len(reactions.pairs) == 70
    heads = read_heads(model, ids, layers=[0, 10])
    assert heads.error <= 1e-6
    own = wanted_selection(list(heads), reactions.pairs)
    ranked = [head for head in own.heads if head.layer == 10]
    assert len(ranked) == 8
    assert ranked[0].index == 5
    assert ranked[0].pairs > 0.9
    assert ranked[1].pairs < 0.1
    deep = own.layers[1]
    assert (deep.layer, deep.status) == (10, "optimal")
    assert deep.gap < 1e-12


@pytest.mark.slow
def test_at_layer_0_equal_tokens_contradict_each_other() -> None:
    reactions = mapped_reactions()
    model, vocabulary = rxnmapper()
    ids = [[vocabulary[word] for word in own] for own in reactions.words]
    heads = read_heads(model, ids, layers=0)
    layer = wanted_selection(list(heads), reactions.pairs).layers[0]
    assert layer.status == "infeasible"
    found = layer.contradiction
    assert found is not None
    assert found.same
    balance: dict[tuple[str, int], float] = {}  # what is demanded of each token at each position
    for own in found.demands:
        for place, sign in ((own.chosen, 1.0), (own.other, -1.0)):
            key = (reactions.words[own.text][place], place)
            balance[key] = balance.get(key, 0.0) + sign * own.weight
        assert (own.text, own.query, own.chosen) in reactions.pairs
    assert all(abs(rest) < 1e-9 for rest in balance.values())
