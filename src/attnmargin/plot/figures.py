"""Results → matplotlib figures, for notebooks and papers; figures are returned, never shown."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from attnmargin.base.checks import check_kind
from attnmargin.base.errors import InputError
from attnmargin.graphs.collection import TokenGraphs
from attnmargin.margin.certificate import Status
from attnmargin.margin.solution import Solution
from attnmargin.models.study import HeadStudy
from attnmargin.models.watch import Watch
from attnmargin.plot.bands import BAND_WORDS
from attnmargin.plot.drawing import draw_panel, draw_picture
from attnmargin.plot.graphs import graph_panel
from attnmargin.plot.importance import cloud_panels
from attnmargin.plot.panels import Panel, Picture
from attnmargin.plot.prediction import (
    CURVE_SIZE,
    alignment_panel,
    attention_panel,
    token_panel,
)
from attnmargin.plot.ratios import margins_picture
from attnmargin.plot.solution import margin_picture
from attnmargin.plot.studies import heads_picture, watch_picture
from attnmargin.plot.training import trajectory_picture
from attnmargin.prediction.confirmation import Confirmation
from attnmargin.prediction.prediction import Prediction
from attnmargin.prediction.words import Words, name_tokens
from attnmargin.solvers.comparison import Margins
from attnmargin.text.tokens.importance import TokenImportance
from attnmargin.training.trajectory import Trajectory

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# Named tokens per class in a scatter plot.
_NAMED = 6
_TOKENS = (
    "The star is the selected token, rings mark support tokens. Attention grows along the arrow; "
    "it is the same along a grey line, and one margin lower on the dashed one."
)
_PATH = " The dotted curve is the way of W z in training."
_ALIGNMENT = "The lower the curve, the closer the weights are to the predicted direction."
_ATTENTION = "A curve that ends at 1: training selects the predicted tokens."
_CLOUD = "Every point is a token of the corpus; those that decide most have their names."


def tokens(
    prediction: Prediction,
    sequence: int = 0,
    words: Words | Sequence[Sequence[str]] | None = None,
    confirmation: Confirmation | None = None,
) -> "Figure":
    """Draw the tokens of one sequence, the selected one as a star, and the margin below it.

    Tokens with more than two coordinates are projected to a plane in which ``W_mm z``, the
    direction of growing attention, points to the right.

    Args:
        prediction: for one instance; take ``prediction[index]`` of a batch.
        sequence: index of the sequence, from 0.
        words: names of all tokens, n rows of T.
        confirmation: adds the path of ``W(k) z`` in training.

    Example:
        >>> import attnmargin as am
        >>> data = am.random_data(3, 4, 2, name="picture")
        >>> prediction = am.predict(data)
        >>> figure = am.plot.tokens(prediction, 1, confirmation=am.confirm(prediction, steps=50))
        >>> figure.axes[0].get_title()
        'sequence 1'
    """
    check_kind("prediction", prediction, Prediction)
    data = prediction.data
    _refuse_batch("prediction", tuple(data.batch_shape))
    if confirmation is not None:
        check_kind("confirmation", confirmation, Confirmation)
    if prediction.solution.status == Status.INFEASIBLE:
        raise InputError("prediction", "a selection that no W can make", "a feasible selection")
    if not isinstance(sequence, int) or not 0 <= sequence < data.n:
        raise InputError("sequence", f"{sequence!r}", f"a sequence from 0 to {data.n - 1}")
    if not isinstance(words, Words):
        words = name_tokens(data, None if words is None else [list(row) for row in words])
    if not bool(words.visible[sequence].any()):
        raise InputError("sequence", f"{sequence}, which the mask hides", "one with visible tokens")
    panel = token_panel(prediction, words, sequence, confirmation)
    return _one(panel, _TOKENS + (_PATH if confirmation is not None else ""), (4.6, 4.1))


def alignment(confirmation: Confirmation) -> "Figure":
    """Draw how the weights turn towards the predicted direction ``W_mm`` in training.

    Args:
        confirmation: of one instance; or of a batch, drawn as mean and band.

    Example:
        >>> import attnmargin as am
        >>> prediction = am.predict(am.random_data(3, 4, 8, name="picture"))
        >>> figure = am.plot.alignment(am.confirm(prediction, steps=50))
        >>> figure.axes[0].get_ylabel()
        'distance from W_mm (1 − correlation)'
    """
    check_kind("confirmation", confirmation, Confirmation)
    if bool(confirmation.prediction.direction.isnan().any()):
        raise InputError("confirmation", "a selection that no W can make", "a feasible selection")
    return _one(alignment_panel(confirmation), _ALIGNMENT + _band_words(confirmation))


def attention(confirmation: Confirmation) -> "Figure":
    """Draw the share of attention on the predicted tokens in training.

    Args:
        confirmation: of one instance; or of a batch, drawn as mean and band.

    Example:
        >>> import attnmargin as am
        >>> prediction = am.predict(am.random_data(3, 4, 8, name="picture"))
        >>> figure = am.plot.attention(am.confirm(prediction, steps=50))
        >>> [line.get_label() for line in figure.axes[0].lines]
        ['mean over sequences', 'worst sequence']
    """
    check_kind("confirmation", confirmation, Confirmation)
    return _one(attention_panel(confirmation), _ATTENTION + _band_words(confirmation))


def trajectory(run: Trajectory, solution: Solution | None = None) -> "Figure":
    """Draw loss, largest softmax entry and ``‖W‖`` of a run; for a batch, the mean with a band.

    Args:
        run: a run that kept its weights, as :func:`attnmargin.train` returns.
        solution: adds 1 − correlation of W with ``solution.W``; of the same batch, or unbatched.

    Example:
        >>> import attnmargin as am
        >>> data = am.random_data(3, 4, 8, name="picture")
        >>> figure = am.plot.trajectory(am.train(data, steps=50), am.predict(data).solution)
        >>> len(figure.axes)
        4
    """
    check_kind("run", run, Trajectory)
    if run.weights is None:
        raise InputError("run", "one with keep_weights=False", "a run that keeps its weights")
    if solution is not None:
        check_kind("solution", solution, Solution)
    return draw_picture(trajectory_picture(run, solution))


def margins(solution: Solution) -> "Figure":
    """Draw one bar per row: by how much the selected token wins; support rows touch the margin.

    A problem with many rows gets one bar per sequence, for its closest rival.

    Args:
        solution: for one problem; take ``solution[index]`` of a batch.

    Example:
        >>> import attnmargin as am
        >>> data = am.random_data(3, 4, 8, name="picture")
        >>> figure = am.plot.margins(am.predict(data).solution)
        >>> figure.axes[0].get_xlabel()
        'row (sequence: winner > loser)'
    """
    check_kind("solution", solution, Solution)
    _refuse_batch("solution", tuple(solution.problem.batch_shape))
    return draw_picture(margin_picture(solution))


def norms(margins: Margins) -> "Figure":
    """Draw how much of the largest margin in each norm the solutions in the others reach.

    Args:
        margins: of one problem, from :func:`attnmargin.margins`; of a batch, ``margins[index]``.

    Example:
        >>> import attnmargin as am
        >>> problem = am.margin_problem([[3.0, 4.0], [1.0, -1.0]], [[1.0, 0.5]])
        >>> am.plot.norms(am.margins(problem)).axes[0].get_title()
        'share of the largest margin'
    """
    check_kind("margins", margins, Margins)
    _refuse_batch("margins", tuple(margins.best.shape[:-1]))
    return draw_picture(margins_picture(margins))


def graph(graphs: TokenGraphs, last: Any) -> "Figure":
    """Draw the token-priority graph of a last token: boxes, arrows, rings around components.

    Args:
        graphs: see :func:`attnmargin.token_graphs`.
        last: the last token, by id or by name.

    Example:
        >>> import attnmargin as am
        >>> graphs = am.token_graphs([["a", "b"], ["b", "c", "b"]], ["a", "c"])
        >>> am.plot.graph(graphs, "b").axes[0].get_title()
        'after “b”: which tokens win over which'
    """
    check_kind("graphs", graphs, TokenGraphs)
    panel, size = graph_panel(graphs[last])
    return draw_panel(panel, size)


def scatter(importance: TokenImportance) -> "Figure":
    """Draw the tokens of a corpus: ⟨E, p⟩ and ⟨E, v⟩ against the posterior difference.

    Without a trained model, draw the frequency of tokens instead.

    Args:
        importance: see :func:`attnmargin.text.token_importance`.

    Example:
        >>> import attnmargin as am, numpy as np
        >>> texts = ["a superb film", "superb acting", "a dull film", "dull acting"]
        >>> corpus = am.text.Corpus(texts, np.array([1, 1, 0, 0]), ("neg", "pos"))
        >>> found = am.text.token_importance(corpus, am.text.Cleaning(least=1))
        >>> am.plot.scatter(found).axes[0].get_ylabel()
        'occurrences'
    """
    given: object = importance
    if not isinstance(given, TokenImportance):
        needs = "what am.text.token_importance returns"
        raise InputError("importance", f"a {type(given).__name__}", needs)
    panels = cloud_panels(importance, _NAMED)
    return draw_picture(Picture(name="scatter", caption=_CLOUD, panels=panels, columns=2))


def picture(picture: Picture) -> "Figure":
    """Draw a picture from its plot data, for example a figure of the papers.

    Args:
        picture: a :class:`Picture` with at least one :class:`Panel`.

    Example:
        >>> import attnmargin as am, numpy as np
        >>> line = am.plot.Series(kind="line", name="", x=np.arange(3), y=np.arange(3.0))
        >>> panel = am.plot.Panel(title="it grows", axes=("step", "length"), series=[line])
        >>> data = am.plot.Picture(name="growth", caption="One curve.", panels=[panel])
        >>> am.plot.picture(data).axes[0].get_title()
        'it grows'
    """
    panels = picture.get("panels") if isinstance(picture, Mapping) else None
    if not panels:
        got = "no panels" if panels is not None else f"a {type(picture).__name__}"
        raise InputError("picture", got, "an am.plot.Picture with at least one panel")
    return draw_picture(picture)


def _one(panel: Panel, caption: str, size: tuple[float, float] = CURVE_SIZE) -> "Figure":
    """Draw one panel with its caption."""
    return draw_picture(Picture(name="", caption=caption, panels=[panel], size=size))


def _band_words(confirmation: Confirmation) -> str:
    return f" {BAND_WORDS}" if confirmation.prediction.data.batch_shape else ""


def _refuse_batch(argument: str, batch: tuple[int, ...]) -> None:
    if batch:
        raise InputError(argument, f"a batch of shape {batch}", f"one of them: {argument}[index]")


def heads(studies: Sequence[HeadStudy]) -> "Figure":
    """Draw margins and directions of heads beside those of random ones.

    Args:
        studies: from :func:`attnmargin.models.study_heads`.

    Example:
        >>> import attnmargin as am, torch
        >>> draw = torch.Generator().manual_seed(0)
        >>> W, X = torch.randn(2, 3, 6, generator=draw), torch.randn(3, 5, 6, generator=draw)
        >>> figure = am.plot.heads(am.models.study_heads([am.models.Head(*W, X)]))
        >>> figure.axes[0].get_xlabel(), figure.axes[0].get_ylabel()
        ('random heads', 'trained head')
    """
    for study in studies:
        check_kind("studies", study, HeadStudy)
    return draw_picture(heads_picture(studies))


def watch(watch: Watch) -> "Figure":
    """Draw how heads select, and how near they are to max-margin, along training.

    Args:
        watch: an :class:`attnmargin.models.Watch` with records.

    Example:
        >>> import attnmargin as am, torch
        >>> draw = torch.Generator().manual_seed(0)
        >>> W, X = torch.randn(2, 3, 6, generator=draw), torch.randn(3, 5, 6, generator=draw)
        >>> watch = am.models.Watch(lambda: [am.models.Head(*W, X)])
        >>> watch(0)
        >>> am.plot.watch(watch).axes[0].get_xlabel()
        'training step'
    """
    check_kind("watch", watch, Watch)
    return draw_picture(watch_picture(watch))
