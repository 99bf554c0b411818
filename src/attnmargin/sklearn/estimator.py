"""MaxMarginAttention: the attention SVM as a scikit-learn classifier of token positions."""

import warnings
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import accuracy_score
from sklearn.utils.validation import check_consistent_length, check_is_fitted, validate_data

from attnmargin.attention.softmax import logits, probabilities
from attnmargin.base.arrays import Array
from attnmargin.base.errors import InaccurateError, InfeasibleError, InputError
from attnmargin.data.attention_data import AttentionData
from attnmargin.margin.builders import token_problem
from attnmargin.margin.norms import Norm, as_norm
from attnmargin.margin.problem import MarginProblem
from attnmargin.margin.slack import check_price, with_slack
from attnmargin.margin.solution import Solution, support_tokens
from attnmargin.sklearn.inputs import attention_data, is_sequences, selection_of, unflatten
from attnmargin.solvers.entry import solve


class MaxMarginAttention(ClassifierMixin, BaseEstimator):
    """Learn which token attention selects, by the largest margin (paper A, (Att-SVM)).

        min ‖W‖   subject to   (x_iα − x_it)ᵀ W z_i ≥ 1   for every token t but the selected α

    The class of a sequence is the position of a token. A new sequence with query z gets the
    token of largest logit ``x_tᵀ W z``. With a finite C each sequence has a slack:

        min (1/p) ‖W‖_p^p + C Σ_i ξ_i^p   subject to   (x_iα − x_it)ᵀ W z_i ≥ 1 − ξ_i

    where p = 2 is the Frobenius norm, and C is that of LinearSVC with its squared hinge loss.

    Args:
        norm: "fro", "nuc", a number p > 1 or a norm object, as in :func:`attnmargin.solve`.
        C: price of slack. inf, the default, is the hard margin: ``fit`` raises InfeasibleError
            if no W selects the tokens. Finite prices need "fro" or a number p.
        query: token that asks if no z is given: "first", "last", or the "mean" of all tokens.
            Hidden tokens do not count.
        width: token width d of two-dimensional X. Rows of T · d columns hold T tokens, one after
            the other. Without it, two-dimensional X is refused.

    Attributes:
        W_: weights ``(d, d)``.
        margin_: ``1/‖W_‖``, the margin of the direction ``W_/‖W_‖``.
        support_tokens_: bool ``(n, T)``, the tokens whose row is tight: they determine ``W_``.
        support_: int ``(s,)``, the sequences that have such tokens.
        classes_: token positions ``0, …, T − 1``.
        status_: "optimal", or "inaccurate" after a ConvergenceWarning.
        solution_: the :class:`attnmargin.Solution`, with its certificate. If C is finite, its W
            has a further row per sequence, which holds the slack.
        n_features_in_: length of the last axis of X: T · d columns, or the width d of tokens.
        feature_names_in_: names of the columns, if X was a table that has them.

    Example:
        >>> import numpy as np
        >>> from attnmargin.sklearn import MaxMarginAttention
        >>> X = np.array([[[1.0, 0.0], [0.0, 1.0]], [[0.0, 1.0], [2.0, 0.0]]])
        >>> model = MaxMarginAttention().fit(X, [0, 1])  # selects tokens along the first axis
        >>> model.predict([[[0.5, 0.5], [0.0, 3.0], [3.0, 0.0]]])
        array([2])
        >>> model.status_, round(model.margin_, 3)
        ('optimal', 1.195)
    """

    def __init__(
        self,
        norm: str | float | Norm = "fro",
        *,
        C: float = np.inf,
        query: str = "first",
        width: int | np.integer[Any] | None = None,
    ) -> None:
        self.norm, self.C, self.query, self.width = norm, C, query, width

    def fit(self, X: Array, y: Array, z: Array | None = None, mask: Array | None = None) -> Self:
        """Solve the attention SVM of the selected tokens.

        Args:
            X: tokens ``(n, T, d)``, a list of n arrays ``(T_i, d)``, or a table ``(n, T · d)`` if
                the parameter width is set.
            y: the selection: int ``(n,)``, or sets of tokens that tie, bool ``(n, T)``.
            z: queries ``(n, d)``; by default those of the parameter query.
            mask: true where a token is visible, bool ``(n, T)``.

        Raises:
            InfeasibleError: no W selects these tokens; the message names a contradiction.
        """
        norm = as_norm(self.norm)
        price = check_price(self.C, norm)
        data = self._data(X, z, mask, reset=True)
        problem = _token_problem(data, y)
        soft = problem if price == np.inf else with_slack(problem, norm, price)
        self.solution_ = _solved(soft, norm)
        self.status_ = str(self.solution_.status)
        W = self.solution_.W[: data.d]
        self.W_, self.margin_ = W.numpy(), float(1.0 / norm.value(W))
        self.classes_ = np.arange(data.T)
        self.support_tokens_ = _support(self.solution_, data)
        self.support_ = np.flatnonzero(self.support_tokens_.any(-1))
        return self

    def decision_function(
        self, X: Array, z: Array | None = None, mask: Array | None = None
    ) -> NDArray[Any]:
        """Compute the logits ``x_itᵀ W z_i``, ``(n, T)``; −inf at hidden tokens."""
        return logits(self._new(X, z, mask), self.W_).numpy()

    def predict_proba(
        self, X: Array, z: Array | None = None, mask: Array | None = None
    ) -> NDArray[Any]:
        """Compute the attention ``softmax(X_i W z_i)``, ``(n, T)``; zero at hidden tokens."""
        return probabilities(self._new(X, z, mask), self.W_).numpy()

    def predict(
        self, X: Array, z: Array | None = None, mask: Array | None = None
    ) -> NDArray[np.int64]:
        """Find the token of largest logit, int ``(n,)``; the first of several."""
        return np.argmax(self.decision_function(X, z, mask), axis=-1)

    def score(
        self,
        X: Array,
        y: Array,
        sample_weight: Array | None = None,
        z: Array | None = None,
        mask: Array | None = None,
    ) -> float:
        """Compute the share of sequences whose predicted token is ``y_i``, or is in its set."""
        chosen, predicted = selection_of(y), self.predict(X, z, mask)
        if chosen.dtype == bool:
            check_consistent_length(chosen, predicted)
            hit = chosen[np.arange(len(chosen)), predicted]
            return float(accuracy_score(np.ones_like(hit), hit, sample_weight=sample_weight))
        return float(accuracy_score(chosen, predicted, sample_weight=sample_weight))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.three_d_array = True
        return tags

    def _new(self, X: Array, z: Array | None, mask: Array | None) -> AttentionData:
        """Check sequences to predict."""
        check_is_fitted(self)
        data = self._data(X, z, mask, reset=False)
        if data.d != len(self.W_):
            raise InputError("X", f"tokens of width {data.d}", f"{len(self.W_)}, as in fit")
        return data

    def _data(self, X: Array, z: Array | None, mask: Array | None, reset: bool) -> AttentionData:
        """Check X in any of its shapes; in ``fit``, remember its columns."""
        if not is_sequences(X):
            table = validate_data(self, X, reset=reset, dtype=np.float64)
            return attention_data(unflatten(table, self.width), z, mask, self.query)
        data = attention_data(X, z, mask, self.query)
        if reset:
            self.__dict__.pop("feature_names_in_", None)
            self.n_features_in_ = data.d
        return data


def _token_problem(data: AttentionData, y: Array) -> MarginProblem:
    """Build the rows of a selection, which scikit-learn calls y."""
    try:
        return token_problem(data.X, data.z, selection_of(y), data.mask)
    except InputError as error:
        argument = "y" if error.argument == "selection" else error.argument
        raise InputError(argument, error.got, error.needs) from None


def _solved(problem: MarginProblem, norm: Norm) -> Solution:
    """Solve, warn if the certificate misses its tolerance, and raise if no W exists."""
    solution = solve(problem, norm)
    try:
        return solution.raise_for_status()
    except InfeasibleError as error:
        hint = "a finite C, with norm 'fro' or p, permits exceptions"
        raise InfeasibleError(f"{error}; {hint}") from None
    except InaccurateError as error:
        warnings.warn(str(error), ConvergenceWarning, stacklevel=3)
        return solution


def _support(solution: Solution, data: AttentionData) -> NDArray[np.bool_]:
    """Find the support tokens, bool ``(n, T)``; none where sequences have a single token."""
    if data.T == 1:
        return np.zeros((data.n, 1), dtype=bool)
    return support_tokens(solution).numpy()
