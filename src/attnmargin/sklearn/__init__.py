"""Estimators for scikit-learn: import them from here, ``from attnmargin.sklearn import …``.

``import attnmargin`` does not load this room, which needs the extra ``attnmargin[sklearn]``.
"""

from importlib.util import find_spec

from attnmargin.base.errors import MissingPackageError

if find_spec("sklearn") is None:
    raise MissingPackageError("attnmargin.sklearn", "attnmargin[sklearn]")

from attnmargin.sklearn.estimator import MaxMarginAttention

__all__ = ["MaxMarginAttention"]
