"""scikit-learn's own checks of estimators, on tables whose columns are tokens of width one."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from sklearn.utils.estimator_checks import parametrize_with_checks

from attnmargin.sklearn import MaxMarginAttention

_POSITIONS = "labels are positions of tokens, and the check has more labels than columns"
_LOGITS = "decision_function has one column per token, also for two tokens"
# Listed in docs/sklearn.md. What they ask is tested on sequences in test_estimator.py.
NOT_FOR_TOKENS = {
    "check_classifier_data_not_an_array": _POSITIONS,
    "check_classifiers_classes": "labels are positions of tokens, not names",
    "check_classifiers_one_label": "the weights may select a position that no label names",
    "check_classifiers_train": _LOGITS,
    "check_decision_proba_consistency": _LOGITS,
    "check_estimators_fit_returns_self": _POSITIONS,
    "check_estimators_overwrite_params": _POSITIONS,
    "check_fit2d_1feature": _POSITIONS,
    "check_readonly_memmap_input": _POSITIONS,
}


@parametrize_with_checks(
    [MaxMarginAttention(C=1.0, width=1)],
    expected_failed_checks=lambda _: NOT_FOR_TOKENS,
    xfail_strict=True,
)
def test_scikit_learn_checks(estimator: MaxMarginAttention, check: Callable[[Any], None]) -> None:
    check(estimator)


def test_the_page_lists_what_does_not_apply() -> None:
    page = (Path(__file__).parents[2] / "docs" / "sklearn.md").read_text()
    assert {name for name in page.split("`") if name.startswith("check_") and "(" not in name} == {
        *NOT_FOR_TOKENS
    }
