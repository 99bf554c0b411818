"""Heads of transformers as records and sentences."""

import statistics
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from attnmargin.base.words import counted
from attnmargin.margin.certificate import Status
from attnmargin.models.collection import Heads
from attnmargin.models.contradiction import Contradiction
from attnmargin.models.detail import HeadDetail
from attnmargin.models.measure import Measure
from attnmargin.models.settings import Settings
from attnmargin.models.study import HeadStudy
from attnmargin.models.wanted import LayerAnswer, Wanted
from attnmargin.report.numbers import number, short

_MEASURES = ("saturation", "entropy", "efficiency", "cosine", "free", "kept")
# Demands of a contradiction that are written out, heads of a ranking, and heads that contradict
# themselves.
_MOST_DEMANDS, _MOST_HEADS, _MOST_FAILED = 6, 10, 3
Words = list[list[str]]


def heads_record(
    name: str,
    heads: Heads,
    studies: Sequence[HeadStudy],
    settings: Settings,
    wanted: Wanted | None = None,
) -> dict[str, Any]:
    """Describe heads and what was found out about them, ready for JSON."""
    record: dict[str, Any] = {
        "model": name,
        "which": settings.which,
        "price": number(settings.cost),
        "saturated": settings.saturated,
        "texts": len(heads.words),
        "tokens": sum(map(len, heads.words)),
        "reconstruction error": heads.error,
        "heads": [_head(own, heads.words) for own in studies],
    }
    if wanted is not None:
        record["wanted"] = wanted_record(wanted, heads.words)
    record["sentences"] = heads_sentences(record)
    return record


def _head(own: HeadStudy, words: Words) -> dict[str, Any]:
    norms, found = asdict(own.spectrum), own.contradiction
    return {
        "layer": own.layer,
        "head": own.index,
        "queries": own.queries,
        **{name: _measure(getattr(own, name)) for name in _MEASURES},
        "margin": number(own.margin),
        "best margin": number(own.best),
        "feasible": own.feasible,
        "draws": own.draws,
        "asked": own.asked,
        "rows held": number(own.held),
        "contradiction": None if found is None else asdict(found),
        "words": ""
        if found is None
        else f"No W does, because {contradiction_words(found, words)}.",
        "gap": number(own.gap),
        "norms": norms | {"singular": [round(s, 6) for s in norms["singular"]]},
        "reason": own.reason,
    }


def _why(found: Contradiction | None, words: Words) -> str:
    return "" if found is None else f"No W does, because {contradiction_words(found, words)}."


def _measure(own: Measure) -> dict[str, float | None]:
    return {
        "value": number(own.value), "low": number(own.low), "high": number(own.high),
        "null": number(own.null), "z": number(own.z),
    }  # fmt: skip


def heads_sentences(record: dict[str, Any]) -> list[str]:
    """Say what was read, and how trained heads compare with random ones."""
    heads = record["heads"]
    error = record["reconstruction error"]
    sentences = [
        f"{counted(len(heads), 'head')} on {counted(record['texts'], 'text')} of "
        f"{counted(record['tokens'], 'token')}; recomputed from its weights, the attention of each "
        f"equals the model's {f'up to {error:.1g}' if error else 'exactly'}."
    ]
    for name, words in (("efficiency", "margin"), ("cosine", "direction")):  # of W
        pairs = [
            (own[name]["value"], own[name]["null"])
            for own in heads
            if own[name]["value"] is not None and own[name]["null"] is not None
        ]
        if pairs:
            above = sum(value > null for value, null in pairs)
            mine, theirs = (statistics.median(column) for column in zip(*pairs, strict=True))
            sentences.append(
                f"Nearer to max-margin than random heads with the same spectrum, by {words}: "
                f"{above} of {counted(len(pairs), 'head')} (median {name} {mine:.3f} against "
                f"{theirs:.3f})."
            )
    sentences += asked_sentences(record)
    if "wanted" in record:
        sentences += record["wanted"]["sentences"]
    return sentences


def asked_sentences(record: dict[str, Any]) -> list[str]:
    """Say which queries were asked, and for how many heads some W selects the same tokens."""
    known = [own for own in record["heads"] if own["draws"]]
    share = f"{100 * record['saturated']:.4g}%"
    asked = {
        "widest": "the queries with the widest gaps",
        "saturated": f"all queries of which one token has more than {share}",
        "all": "all queries",
    }[record["which"]]
    sentences = []
    if known and record["which"] != "widest":
        counts = sorted(own["asked"] for own in known)
        hard = sum(own["feasible"] == own["draws"] for own in known)
        if record["price"] is None:
            ending = (
                f". Some W selects the same tokens for {hard} of {counted(len(known), 'head')}."
            )
        else:
            ending = f", with slack at the price {record['price']:g}."
        sentences.append(
            f"Asked were {asked}: {counts[0]:,} to {counts[-1]:,} per head (median "
            f"{statistics.median(counts):,.0f}){ending}"
        )
    if known and record["price"] is not None:
        free, kept = (_medians(known, name) for name in ("free", "kept"))
        sentences.append(
            f"In the soft-margin solution {kept[0]:.1%} of the queries keep their token (slack "
            f"below 1) and {free[0]:.1%} have no slack, in the median head; of random heads "
            f"{kept[1]:.1%} and {free[1]:.1%}."
        )
    refused = sorted({own["reason"] for own in record["heads"] if own["reason"]})
    for reason in refused:
        count = sum(own["reason"] == reason for own in record["heads"])
        sentences.append(f"No attention SVM for {counted(count, 'head')}: {reason}.")
    failed = [own for own in record["heads"] if own["contradiction"]]
    sentences += [
        f"Layer {own['layer']}, head {own['head']}: {own['words']}" for own in failed[:_MOST_FAILED]
    ]
    if len(failed) > _MOST_FAILED:
        sentences.append(f"Contradictions of {counted(len(failed) - _MOST_FAILED, 'head')} more.")
    return sentences


def _medians(heads: list[dict[str, Any]], name: str) -> tuple[float, float]:
    """Find the medians of a number and of that of random heads."""
    values = ([own[name][kind] for own in heads] for kind in ("value", "null"))
    mine, theirs = (statistics.median(x for x in column if x is not None) for column in values)
    return mine, theirs


def wanted_record(wanted: Wanted, words: Words) -> dict[str, Any]:
    """Describe which heads realise a wanted selection, and at which layers any W could."""
    layers = [
        {
            "layer": own.layer,
            "status": own.status,
            "best margin": number(own.margin),
            "gap": number(own.gap),
            "pairs": own.pairs,
            "contradiction": None if own.contradiction is None else asdict(own.contradiction),
            "words": layer_sentence(own, words),
        }
        for own in wanted.layers
    ]
    heads = [asdict(own) | {"margin": number(own.margin)} for own in wanted.heads]
    for own in heads:
        own["head"] = own.pop("index")
    best = wanted.heads[0]
    first = (
        f"Layer {best.layer}, head {best.index} attends as wanted most often: in {best.pairs:.1%} "
        f"of {counted(wanted.pairs, 'pair')} the wanted token has the most attention, and it gets "
        f"{best.attention:.0%} of it on average."
    )
    refused = [own["words"] for own, answer in zip(layers, wanted.layers, strict=True)
               if answer.status != Status.OPTIMAL]  # fmt: skip
    possible = sum(own.status == Status.OPTIMAL for own in wanted.layers)
    second = f"Some W realises it at {possible} of {counted(len(layers), 'layer')}."
    return {
        "pairs": wanted.pairs, "heads": heads, "layers": layers,
        "sentences": [first, second, *refused],
    }  # fmt: skip


def layer_sentence(own: LayerAnswer, words: Words) -> str:
    """Say whether some W of a layer realises the wanted selection, and if not, why."""
    if own.contradiction is not None:
        why = contradiction_words(own.contradiction, words)
        return f"Layer {own.layer}: no W does, because {why}."
    if own.status == Status.OPTIMAL:
        return f"Layer {own.layer}: some W does, with margin {own.margin:.3g}."
    return f"Layer {own.layer}: not decided ({own.status})."


def contradiction_words(found: Contradiction, words: Words) -> str:
    """Name the texts and tokens that contradict each other."""
    listed, demands = [], found.demands
    if len(demands) > _MOST_DEMANDS:
        demands = sorted(demands, key=lambda own: -own.weight)
    for own in demands[:_MOST_DEMANDS]:
        query, chosen, other = (
            f"“{words[own.text][place]}” ({place})" for place in (own.query, own.chosen, own.other)
        )
        listed.append(f"in text {own.text} query {query} wants {chosen} over {other}")
    if len(found.demands) > _MOST_DEMANDS:
        listed.append(f"{counted(len(found.demands) - _MOST_DEMANDS, 'demand')} more")
    if len(demands) == 1:
        return f"{listed[0]}, but these tokens are equal, or the query is zero"
    tail = "with the same query vector" if found.same else "which cancel when added with weights"
    return f"{'; '.join(listed)}, {tail}"


def detail_sentences(own: HeadDetail, words: Words) -> list[str]:
    """Say how guards hold a selection in place, and what the norms say."""
    if own.reason:
        return [f"No attention SVM: {own.reason}."]
    if own.contradiction is not None:
        return [f"No W selects these tokens: {contradiction_words(own.contradiction, words)}."]
    grown = ", ".join(f"{m:.4g} without the strongest {k}" for k, m in own.without.items())
    sentences = [
        f"{counted(own.guards, 'rival')} hold the selection in place; the best margin is "
        f"{own.best:.4g}{f', {grown}' if grown else ''}."
    ]
    if number(own.nuclear) is not None:
        sentences.append(
            f"Of the best margin the head has {own.frobenius:.1%} in the Frobenius norm and "
            f"{own.nuclear:.1%} in the nuclear one, on fewer queries."
        )
    return sentences


def detail_record(own: HeadDetail, words: Words) -> dict[str, Any]:
    """Describe one head in detail, ready for JSON."""
    record = asdict(own) | {
        name: number(getattr(own, name)) for name in ("best", "nuclear", "frobenius")
    }
    record["without"] = [{"guards": k, "best margin": number(m)} for k, m in own.without.items()]
    return record | {"sentences": detail_sentences(own, words)}


def head_cells(
    heads: list[dict[str, Any]], intervals: bool = False
) -> tuple[list[str], list[list[str]]]:
    """Return header and cells of the table of heads, on request with intervals."""
    head = ["layer", "head", "saturated", "efficiency", "random", "z", "cosine", "random", "z"]
    soft = any(own["free"]["value"] is not None for own in heads)
    if soft:
        head += ["no slack", "random", "token kept", "random"]
    if intervals:
        head = [*head[:4], "95 % interval", *head[4:], "queries", "feasible"]
    rows = []
    for own in heads:
        eff, cos = own["efficiency"], own["cosine"]
        low = "–" if eff["low"] is None else f"{eff['low']:.3f} to {eff['high']:.3f}"
        cells = [
            *(str(own[name]) for name in ("layer", "head")),
            short(own["saturation"]["value"], ".1%"),
            *_beside_cells(eff, interval=not intervals),
            *_beside_cells(cos, interval=not intervals),
        ]
        if soft:
            cells += [short(own[name][kind], ".1%") for name in ("free", "kept")
                      for kind in ("value", "null")]  # fmt: skip
        if intervals:
            feasible = f"{own['feasible']} of {own['draws']}" if own["draws"] else "–"
            cells = [*cells[:4], low, *cells[4:], f"{own['asked']:,}", feasible]
        rows.append(cells)
    return head, rows


def _beside_cells(own: dict[str, Any], interval: bool) -> list[str]:
    """Write value, random value and z; on request with half the width of the interval."""
    value = short(own["value"], ".3f")
    if interval and own["high"] is not None:
        value += f" ± {own['high'] - own['value']:.3f}"
    return [value, short(own["null"], ".3f"), short(own["z"], "+.1f")]


def wanted_cells(record: dict[str, Any]) -> tuple[list[str], list[list[str]]]:
    """Return header and cells of the heads that attend as wanted most often."""
    head = ["layer", "head", "pairs", "rows", "attention", "margin"]
    rows = [
        [str(own["layer"]), str(own["head"]), f"{own['pairs']:.1%}", f"{own['rows']:.1%}",
         f"{own['attention']:.1%}", short(own["margin"], ".3g")]
        for own in record["heads"][:_MOST_HEADS]
    ]  # fmt: skip
    return head, rows
