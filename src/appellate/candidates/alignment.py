"""Compare y with the rows of X, and with the classes of a fitted classifier."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.exceptions import DataConversionWarning

from appellate.candidates.answers import Answers
from appellate.candidates.reading import as_candidates
from appellate.candidates.sets import CandidateSets


def warn_of_orders(X: Any, y: Any) -> None:
    """Warn if X and y are of pandas and name the same rows in another order."""
    one: Any = getattr(X, "index", None)
    two: Any = getattr(y, "index", None)
    if {type(each).__module__.partition(".")[0] for each in (one, two)} != {"pandas"}:
        return
    if len(one) != len(two) or one.equals(two) or set(one) != set(two):
        return
    warnings.warn(
        "X and y have the same index, but in another order. Rows go by position, as everywhere in "
        f"scikit-learn: row 0 of X, {one[0]!r}, is given row 0 of y, {two[0]!r}. If that is not "
        "meant, pass y.loc[X.index].",
        UserWarning,
        stacklevel=6,
    )


def ravel_column(y: Any, stacklevel: int = 6) -> Any:
    """Read an (n, 1) array or frame as a vector of labels, with scikit-learn's warning."""
    shape: tuple[int, ...] = getattr(y, "shape", ())
    read = isinstance(y, CandidateSets | Answers) or sp.issparse(y)
    if len(shape) != 2 or shape[1] != 1 or read:
        return y
    warnings.warn(
        "A column-vector y was passed when a 1d array was expected. It is read as one label "
        "per row; pass y.ravel() to say so.",
        DataConversionWarning,
        stacklevel=stacklevel,
    )
    return np.asarray(y).ravel()


def read_sets(y: Any, classes: NDArray[Any]) -> CandidateSets:
    """Read candidate sets in the columns of known classes; other classes are dropped.

    Examples
    --------
    >>> import numpy as np
    >>> read_sets(["cat|dog", "cow|dog"], np.array(["cat", "dog"])).sets()
    [('cat', 'dog'), ('dog',)]
    """
    try:
        return as_candidates(y, classes=classes)
    except ValueError:
        unnamed = getattr(y, "ndim", 0) == 2 and not hasattr(y, "columns")
        if unnamed and not np.array_equal(classes, np.arange(len(classes))):
            raise  # the number of a column is not the name of a class
        sets = as_candidates(y)
        place = {name: j for j, name in enumerate(sets.class_names.tolist())}
        matrix = np.zeros((len(sets), len(classes)), dtype=bool)
        for j, name in enumerate(classes.tolist()):
            if name in place:
                matrix[:, j] = sets.matrix[:, place[name]]
        return CandidateSets(matrix, classes, sets.ids)
