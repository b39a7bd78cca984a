"""Parameters, stated in one way: what they may be, and docstrings that many classes share.

`allow` states the default of a parameter and what it may be; `stated_constraints` collects that
for a class. Parts of docstrings that many classifiers share are written once, here: a line
``<name>`` of a class's docstring means the part of that name.

<kernel>
    kernel : {"rbf", "laplacian", "linear"} or a kernel object, default="rbf"
        Gaussian or Laplacian, as wide as the mean distance of all pairs of training rows, or
        linear. A `GaussianKernel` or `LaplacianKernel` sets another width, or Nystroem features
        for many rows.

<radial>
    bandwidth : float, default=1.0
        Width as a multiple of the mean distance of all pairs of training rows.
    approximation : {"auto", "exact", "nystroem"}, default="auto"
        The kernel matrix itself, n x n, or Nystroem features of some landmarks, whose cost
        grows linearly with the rows. Auto decides from the number of rows and the memory budget
        (8 GB, or the environment variable APPELLATE_MEMORY, such as ``16GB``). The logger
        ``"appellate"`` reports the choice and the memory that it takes.
    n_landmarks : int or None, default=None
        Landmarks of the Nystroem features; None: 1024 or more, by the number of rows, or as
        many as fit into the memory budget.
    cache_dir : str, path or None, default=None
        Folder for the Nystroem features; None keeps them in memory.
    root : bool, default=False
        Compare ``sign(x) sqrt(|x|)`` instead of the features x. It suits histograms and counts.

<neighbors>
    neighbors : object or None, default=None
        How neighbours are searched: any object with ``fit(X)`` and ``kneighbors(X, k)``, or
        one of scikit-learn's neighbour transformers; None: exactly. The logger
        ``"appellate"`` tells its recall on a sample.

<cost>
    cost : None, str or (l, l) matrix, default=None
        What a wrong label costs (`appellate.evidence.cost_matrix`), such as ``"absolute"`` or
        ``"within:3"``: the label of the smallest expected cost is predicted, and given to a
        training row among its candidates. None: the most likely one.

<classes>
    classes_ : ndarray, shape (l,)
        Class names.
    cost_ : ndarray, shape (l, l), or None
        Cost of every predicted label (column) where another (row) is true.
    candidates_ : ndarray of bool, shape (n, l)
        Candidate sets of the training rows.
    n_ties_ : int
        Training rows whose label was not the only best candidate.

<regression>
    confidence_ : ndarray, shape (n, l)
        Final confidence, rows on the simplex over the candidates.
    training_output_ : ndarray, shape (n, l)
        Output of the final regression on the training rows.
    transduction_ : ndarray, shape (n,)
        Label of every training row: the largest training output among its candidates.
    n_iter_ : int
        Turns taken.
"""

from __future__ import annotations

import re
import textwrap
from dataclasses import Field, field
from typing import Any, TypeVar

from appellate._compat import StrOptions

Documented = TypeVar("Documented", bound=type)

_PARTS = dict(re.findall(r"^<(\w+)>\n((?:    .*\n)+)", __doc__ or "", flags=re.M))


def allow(default: Any, *values: Any) -> Any:
    """State a parameter of a dataclass once: its default, and what it may be.

    Parameters
    ----------
    default : object
        The default.
    *values
        What scikit-learn's parameter validation takes: types, intervals, ``"boolean"``, None. A
        set holds words.

    Examples
    --------
    >>> from dataclasses import dataclass
    >>> class Shape:
    ...     sides: int = allow(4, int)
    ...     colour: str = allow("red", {"red", "blue"})
    >>> sorted(stated_constraints(Shape))
    ['colour', 'sides']
    """
    allowed = [StrOptions(each) if isinstance(each, set) else each for each in values]
    return field(default=default, metadata={"values": allowed})


def stated_constraints(owner: type) -> dict[str, list[Any]]:
    """Collect what the parameters of a class and of its bases may be.

    A class states it by `allow`, or for a name of another class by ``_parameter_constraints``.
    It is called while the class is made, before `dataclass` replaces the fields.
    """
    found: dict[str, list[Any]] = {}
    for each in reversed(owner.__mro__):
        found |= vars(each).get("_parameter_constraints", {})
        found |= {
            name: value.metadata["values"]
            for name, value in vars(each).items()
            if isinstance(value, Field) and "values" in value.metadata
        }
    return found


def share_docs(documented: Documented) -> Documented:
    """Replace every line ``<name>`` of a class's docstring by the part of that name."""

    def part(match: re.Match[str]) -> str:
        text = textwrap.dedent(_PARTS[match[2]]).strip("\n")
        return textwrap.indent(text, match[1])

    if documented.__doc__:
        documented.__doc__ = re.sub(r"^( *)<(\w+)>$", part, documented.__doc__, flags=re.M)
    return documented
