"""What the page of a prediction begins with: its sentences, or its tokens in the plane."""

from html import escape

from attnmargin.margin.certificate import Status
from attnmargin.plot.drawing import draw_panel
from attnmargin.plot.prediction import TOKEN_SIZE, token_panel
from attnmargin.plot.svg import embedded
from attnmargin.prediction.confirmation import Confirmation
from attnmargin.prediction.prediction import Prediction
from attnmargin.prediction.verdict import Verdict
from attnmargin.prediction.words import Words, listing
from attnmargin.report.marks import Mark, sequence_marks, weights_words
from attnmargin.report.numbers import signed
from attnmargin.report.pages.coloured import KINDS, marked_sentence
from attnmargin.report.pages.html import figure, folded, paragraph, section

_MOST_SEQUENCES, _MOST_PICTURES = 40, 6

_SCORE = (
    "The score of a token is label × (head · token): how well the sequence would be classified if "
    "all attention went to this token. Scores have no unit; higher is better. Training likes the "
    "best score, but may end with another token. The selected token is filled. Support tokens "
    "(dashed) are its nearest rivals: they lie exactly one margin below it, and they alone decide "
    "the direction. ×2 marks a token that occurs twice: its copies count as one."
)


def first_picture(prediction: Prediction, words: Words, result: Confirmation | None) -> str:
    """Build the section right below the verdict: the picture that carries the story."""
    sure = prediction.verdict != Verdict.UNDECIDED
    title = "What your run will select" if sure else "What your run leans to"
    marks, drawn = sequence_marks(prediction, words, result, _MOST_SEQUENCES), _drawable(prediction)
    more = prediction.data.n - len(marks)
    tail = paragraph(f"… and {more:,} more sequences.") if more > 0 else ""
    scores = (_token_lists(words, marks), tail, paragraph(_SCORE, "legend"))
    if words.spoken:
        legend = _sentence_legend(prediction, result)
        return section(
            title, _sentences(words, marks), tail, legend, folded("Scores of the words", *scores)
        )
    if drawn:
        return section(
            title,
            plane_pictures(prediction, words, result),
            folded("Scores of the tokens", *scores),
        )
    return section(title, *scores)


def plane_section(prediction: Prediction, words: Words, result: Confirmation | None) -> str:
    """Show the tokens in the plane, where the page does not begin with them."""
    if not words.spoken or not _drawable(prediction):
        return ""
    return section("How it looks", plane_pictures(prediction, words, result))


def _drawable(prediction: Prediction) -> bool:
    return prediction.solution.status == Status.OPTIMAL


def _sentences(words: Words, marks: list[list[Mark]]) -> str:
    """Write every sequence as a sentence, below what is asked about it."""
    rows = [
        f"<div><h3>{escape(title)}</h3>{marked_sentence(row)}</div>"
        for title, row in zip(words.titles, marks, strict=False)
        if row
    ]
    return f'<div class="texts">{"".join(rows)}</div>'


def _sentence_legend(prediction: Prediction, result: Confirmation | None) -> str:
    """Explain the marks of the sentences by themselves."""
    shade = weights_words(prediction, result)
    rest = f" The shade is the {shade}." if shade else ""
    return (
        '<p class="words legend"><b class="wins">Framed words</b> are selected; '
        '<i class="guards">dashed ones</i> are their nearest rivals, the support tokens; '
        f'the <i class="asks">underlined word</i> is the query.{rest} Rest on a word for its '
        "numbers.</p>"
    )


def _token_lists(words: Words, marks: list[list[Mark]]) -> str:
    """List all tokens with their scores, sequence by sequence; copies once."""
    rows = []
    for title, row in zip(words.titles, marks, strict=False):
        tokens = []
        for own in filter(lambda mark: mark["first"], row):
            score = "" if own["score"] is None else f"<small>{signed(own['score'])}</small>"
            name = escape(own["name"]) + (f" ×{own['times']}" if own["times"] > 1 else "")
            told = f'<span class="unseen"> ({own["role"]})</span>' if own["role"] else ""
            tokens.append(f'<li class="{KINDS[own["role"]]}">{name}{told}{score}</li>')
        rows.append(f'<h3>{escape(title)}</h3><ul class="tokens">{"".join(tokens)}</ul>')
    return "".join(rows)


def plane_pictures(prediction: Prediction, words: Words, result: Confirmation | None) -> str:
    """Draw the first sequences in their plane, with the legend below."""
    count = min(prediction.data.n, _MOST_PICTURES)
    drawn = []
    for i in range(count):
        if not bool(words.visible[i].any()):
            continue
        stars = [words.names[i][t] for t in prediction.chosen[i].nonzero().flatten().tolist()]
        caption = f"{words.titles[i]}: the star is {listing(stars)}."
        picture = draw_panel(token_panel(prediction, words, i, result), TOKEN_SIZE)
        drawn.append(figure(embedded(picture, caption), caption))
    more = prediction.data.n - count
    tail = f" The first {count} of {prediction.data.n} sequences are drawn." if more else ""
    legend = paragraph(_plane_legend(prediction, result) + tail, "legend")
    return f'<div class="pictures">{"".join(drawn)}</div>{legend}'


def _plane_legend(prediction: Prediction, result: Confirmation | None) -> str:
    """Explain the marks in the pictures of tokens."""
    d = prediction.data.d
    plane = (
        "The axes are the two coordinates of tokens."
        if d == 2
        else f"Tokens have {d} coordinates; the picture is their shadow on a plane in which "
        "W_mm z, the direction of growing attention, runs to the right."
    )
    path = " The green dotted curve is the way of W z in training, its length on a log scale."
    return (
        f"Each picture is one sequence, seen with its query z. {plane} The star is the selected "
        "token, dots are the others, rings mark support tokens. The orange arrow is W_mm z; "
        "attention is the same along the grey lines, and one margin lower on the dashed one."
        f"{'' if result is None else path}"
    )
