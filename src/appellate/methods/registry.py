"""Short names of base classifiers: ours, and those of installed third parties.

A distribution adds its own by an entry point in its ``pyproject.toml``::

    [project.entry-points."appellate.base_classifiers"]
    prior = "my_package.prior:PriorClassifier"

Nothing is imported before `make_base` asks for it by name.
"""

from __future__ import annotations

from importlib import metadata
from typing import Any

from appellate._text import did_you_mean

ENTRY_POINT_GROUP = "appellate.base_classifiers"

_OURS = {
    "knn": "appellate.methods.knn:PLKNNClassifier",
    "svm": "appellate.methods.svm:PLSVMClassifier",
    "sure": "appellate.methods.sure:SUREClassifier",
    "lalo": "appellate.methods.lalo:LALOClassifier",
    "aggd": "appellate.methods.aggd:AGGDClassifier",
    "plcl": "appellate.methods.plcl:PLCLClassifier",
    "ipal": "appellate.methods.ipal:IPALClassifier",
    "clpl": "appellate.methods.clpl:CLPLClassifier",
    "ecoc": "appellate.methods.ecoc:PLECOCClassifier",
}


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
        One of `available_bases`: ``knn``, ``svm``, ``sure``, ``lalo``, ``aggd``, ``plcl``,
        ``ipal``, ``clpl``, ``ecoc``, or the name of a third party's.
    **params
        Parameters of the classifier.

    Returns
    -------
    object
        The unfitted classifier; it meets `appellate.core.BaseClassifier`.

    Raises
    ------
    ValueError
        If the name is unknown, or is given twice.
    ImportError
        If the class cannot be loaded; it names the distribution that promised it.
    TypeError
        If what was loaded is no base classifier.

    Examples
    --------
    >>> make_base("knn", n_neighbors=5)
    PLKNNClassifier(n_neighbors=5)
    """
    from appellate.core.foreign import check_base

    registered = _registered()
    if name not in registered:
        raise ValueError(
            f"There is no base classifier {name!r}.{did_you_mean(str(name), registered)} "
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


def _registered() -> dict[str, list[metadata.EntryPoint]]:
    """Everything that claims a name: ours first, then the others sorted by name."""
    ours = (metadata.EntryPoint(*each, ENTRY_POINT_GROUP) for each in _OURS.items())
    theirs = metadata.entry_points(group=ENTRY_POINT_GROUP)
    entries: dict[str, list[metadata.EntryPoint]] = {}
    for entry in (*ours, *sorted(theirs, key=lambda entry: (entry.name, _giver(entry)))):
        entries.setdefault(entry.name, []).append(entry)
    return entries


def _only(name: str, claims: list[metadata.EntryPoint]) -> metadata.EntryPoint:
    """Return the one claim to a name; two are an error."""
    if len(claims) > 1:
        givers = " and ".join(f"{_giver(entry)} ({entry.value})" for entry in claims)
        raise ValueError(
            f"The base classifier name {name!r} is given by {givers}; uninstall one of them, "
            "or import its class and use that instead of the name."
        )
    return claims[0]


def _giver(entry: metadata.EntryPoint) -> str:
    """Name of the distribution that an entry point belongs to; our own have none."""
    return "appellate" if entry.dist is None else entry.dist.name
