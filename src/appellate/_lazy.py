"""Names of a package that are loaded on first use, so that importing it is quick."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any


def load_on_use(package: str, homes: Mapping[str, str]) -> Callable[[str], Any]:
    """Make the function `__getattr__` of a package.

    Parameters
    ----------
    package : str
        Name of the package.
    homes : mapping of str to str
        Public name to the module of the package that defines it.

    Returns
    -------
    callable
        Takes a name, imports its module and returns the object.

    Examples
    --------
    >>> find = load_on_use("appellate", {"NoteWarning": "notes"})
    >>> find("NoteWarning").__name__
    'NoteWarning'
    >>> find("Verdict")
    Traceback (most recent call last):
    ...
    AttributeError: module 'appellate' has no attribute 'Verdict'
    """

    def find(name: str) -> Any:
        if name in homes:
            return getattr(import_module(f"{package}.{homes[name]}"), name)
        raise AttributeError(f"module {package!r} has no attribute {name!r}")

    return find
