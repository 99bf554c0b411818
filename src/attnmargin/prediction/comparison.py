"""Compare a training run with the SVM of the tokens that it selected."""

from dataclasses import dataclass
from typing import final

from torch import Tensor

from attnmargin.attention.score import optimal_tokens
from attnmargin.base.display import Summarised, range_words, share_words, tally_words
from attnmargin.data.attention_data import AttentionData
from attnmargin.margin.builders import token_problem
from attnmargin.margin.norms import Norm
from attnmargin.margin.solution import Solution
from attnmargin.solvers.entry import solve
from attnmargin.training import Trajectory
from attnmargin.training.measures import correlation, decided


@final
@dataclass(frozen=True, eq=False, repr=False)
class Comparison(Summarised):
    """The end of a run, compared with its SVM; tensors have the batch shape."""

    run: Trajectory
    selection: Tensor  # int (*B, n): the most likely tokens
    decided: Tensor  # bool (*B,): a token of every sequence is more likely than all others
    solution: Solution  # the SVM of these tokens
    correlation: Tensor  # (*B,): of the weights with its direction; 0 where it is infeasible
    optimal: Tensor | None  # int (*B,): sequences that selected their best token; None: no scores

    def summary(self) -> dict[str, str]:
        """Return how well the weights agree with the SVM, by name."""
        return {
            "decided": share_words(self.decided),
            "SVM": tally_words(self.solution.status),
            "correlation": range_words(self.correlation),
        }


def compare(data: AttentionData, run: Trajectory, norm: str | float | Norm) -> Comparison:
    """Solve the SVM of what a run selected, in the norm that its optimiser implies.

    Example:
        >>> import attnmargin as am
        >>> from attnmargin.prediction.comparison import compare
        >>> data = am.random_data(5, 5, 20, name="theory", min_gap=0.1)
        >>> found = compare(data, am.train(data, steps=4000, record=4000), "fro")
        >>> int(found.optimal), bool(found.correlation > 0.99)
        (5, True)
    """
    W, selection = run.W[-1], run.selection[-1]
    solution = solve(token_problem(data.X, data.z, selection, data.mask), norm)
    optimal = None
    if data.v is not None and run.heads is None:  # a trained head has scores of its own
        optimal = (selection == optimal_tokens(data)).flatten(len(data.batch_shape)).sum(-1)
    aligned = correlation(W, solution.W.nan_to_num())
    return Comparison(run, selection, decided(data, W), solution, aligned, optimal)
