"""Short names of base classifiers: ours, and those of installed third parties.

A distribution adds its own by an entry point in its ``pyproject.toml``::

    [project.entry-points."appellate.base_classifiers"]
    prior = "my_package.prior:PriorClassifier"

Nothing is imported before `make_base` asks for it by name.
"""

from __future__ import annotations

import sys
import textwrap
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

from appellate._text import did_you_mean

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

    from appellate.methods.typed import *  # noqa: F403  # the classes, for `appellate`

ENTRY_POINT_GROUP = "appellate.base_classifiers"


class Base(NamedTuple):
    """One base classifier of this library.

    Attributes
    ----------
    name : str
        Short name, for `make_base` and the command line.
    home : str
        Module and class, ``"module:class"``.
    title : str
        Name in tables of results.
    help : str
        What it does, in a few words.
    """

    name: str
    home: str
    title: str
    help: str

    @property
    def module(self) -> str:
        """Module of the class."""
        return self.home.partition(":")[0]

    @property
    def class_name(self) -> str:
        """Name of the class, which `appellate` hands on."""
        return self.home.partition(":")[2]


#: The base classifiers of this library. Names, titles and help everywhere else follow from here.
BASES = (
    Base("knn", "appellate.methods.knn:PLKNNClassifier", "PL-KNN", "vote of the neighbours"),
    Base("svm", "appellate.methods.svm:PLSVMClassifier", "PL-SVM", "maximum margin"),
    Base("sure", "appellate.methods.sure:SUREClassifier", "SURE", "self-guided retraining"),
    Base(
        "lalo",
        "appellate.methods.lalo:LALOClassifier",
        "LALO",
        "labels smooth over neighbours",
    ),
    Base("aggd", "appellate.methods.aggd:AGGDClassifier", "PL-AGGD", "adaptive neighbour graph"),
    Base("plcl", "appellate.methods.plcl:PLCLClassifier", "PL-CL", "labels and their complements"),
    Base("ipal", "appellate.methods.ipal:IPALClassifier", "IPAL", "labels spread over a graph"),
    Base("clpl", "appellate.methods.clpl:CLPLClassifier", "CLPL", "convex loss on the candidates"),
    Base("ecoc", "appellate.methods.ecoc:PLECOCClassifier", "PL-ECOC", "output codes"),
)
#: Title of every base classifier, by its short name.
TITLES = {base.name: base.title for base in BASES}


def available_bases() -> dict[str, str]:
    """List the base classifiers that `make_base` knows, without loading any.

    Returns
    -------
    dict of str to str
        Name and home, ``"module:class"``, of every base classifier: ours first, then those
        of other distributions by name.

    Raises
    ------
    ValueError
        If a name is given twice; it says by whom.

    Examples
    --------
    >>> available_bases()["sure"]
    'appellate.methods.sure:SUREClassifier'
    """
    registered = _registered()
    return {name: _only(name, registered[name]).value for name in registered}


def make_base(name: str, **params: Any) -> Any:
    """Make a base classifier from its short name.

    Parameters
    ----------
    name : str
        One of `available_bases`, which also lists those of third parties. Ours are
        <bases>.
    **params
        Parameters of the classifier.

    Returns
    -------
    object
        The unfitted classifier; it meets `appellate.core.BaseClassifier`.

    Raises
    ------
    ValueError
        If the name is unknown, or if two distributions give it.
    ImportError
        If the class cannot be loaded; it names the distribution that promised it.
    TypeError
        If what was loaded is not a base classifier.

    Examples
    --------
    >>> make_base("knn", n_neighbors=5)
    PLKNNClassifier(n_neighbors=5)
    """
    from appellate.core.base import check_base

    registered = _registered()
    if name not in registered:
        raise ValueError(
            f"Unknown base classifier {name!r}.{did_you_mean(str(name), registered)} "
            f"Known: {', '.join(registered)}."
        )
    entry = _only(name, registered[name])
    try:
        factory = entry.load()
    except Exception as error:  # whatever a third party's module raises
        raise ImportError(
            f"The base classifier {name!r} of the distribution {_giver(entry)} could not be "
            f"loaded from {entry.value!r}: {type(error).__name__}: {error}"
        ) from error
    base = factory(**params)
    try:
        check_base(base)
    except TypeError as error:
        raise TypeError(
            f"{entry.value!r}, registered as {name!r} by the distribution {_giver(entry)}: {error}"
        ) from error
    return base


def _registered() -> dict[str, list[EntryPoint]]:
    """Everything that claims a name: ours first, then the others sorted by name."""
    from importlib.metadata import EntryPoint

    ours = (EntryPoint(base.name, base.home, ENTRY_POINT_GROUP) for base in BASES)
    entries: dict[str, list[EntryPoint]] = {}
    for entry in (*ours, *_find_others(tuple(sys.path))):
        entries.setdefault(entry.name, []).append(entry)
    return entries


@cache
def _find_others(path: tuple[str, ...]) -> list[EntryPoint]:
    """Read the claims of the distributions on a path: once, because that opens many files."""
    from importlib.metadata import entry_points

    theirs = entry_points(group=ENTRY_POINT_GROUP)
    return sorted(theirs, key=lambda entry: (entry.name, _giver(entry)))


def _only(name: str, claims: list[EntryPoint]) -> EntryPoint:
    """Return the one claim to a name; two are an error."""
    if len(claims) > 1:
        givers = " and ".join(f"{_giver(entry)} ({entry.value})" for entry in claims)
        raise ValueError(
            f"The base classifier name {name!r} is given by {givers}; uninstall one of them, "
            "or import its class and use that instead of the name."
        )
    return claims[0]


def _giver(entry: EntryPoint) -> str:
    """Name of the distribution that an entry point belongs to; our own have none."""
    return "appellate" if entry.dist is None else entry.dist.name


_LIST = textwrap.fill(
    "; ".join(f"``{base.name}``: {base.help}" for base in BASES), 98, subsequent_indent=" " * 8
)
if make_base.__doc__:  # which python -OO drops
    make_base.__doc__ = make_base.__doc__.replace("<bases>", _LIST)
