"""Text that is safe to print or to put into a cell; names in messages, and what to install."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable
from difflib import get_close_matches
from importlib import import_module
from importlib.util import find_spec
from typing import Any

SHOWN = 5  # rows, labels or columns that a message names before it says "and N more"
_STARTS = "=+\\-@\t\r\n\uff1d\uff0b\uff0d\uff20"  # the last four are full-width = + - @
_FORMULA = re.compile(f"'*[{_STARTS}]")
# Behind a separator: =, or another start if what follows calls or reaches out.
_WITHIN = re.compile(
    r"""(?<=[,;\t\r\n])(?="*(?:[=\uff1d]|[+\-@\uff0b\uff0d\uff20][^,;\t\r\n]*(?:\w ?\(|!)))"""
)
_NUMBER = re.compile(r"'*[+-]?([0-9]+[.,]?[0-9]*|[.,][0-9]+)([eE][+-]?[0-9]+)?")


def printable(text: str) -> str:
    r"""Make control characters, escape sequences and marks of direction visible.

    Parameters
    ----------
    text : str
        Anything that came from a file.

    Returns
    -------
    str

    Examples
    --------
    >>> print(printable("cat\x1b]0;title\x07\u202e\n"))
    cat\x1b]0;title\x07\u202e\n
    """
    if text.isprintable():
        return text
    return "".join(
        letter
        if letter.isprintable() or unicodedata.category(letter) == "Zs"
        else letter.encode("unicode_escape").decode("ascii")
        for letter in text
    )


def listing(values: Iterable[Any], most: int = SHOWN) -> str:
    """Name the first few values, each once.

    Examples
    --------
    >>> listing([3, 17]), listing(range(17)), listing("abc", 2)
    ('3, 17', '0, 1, 2, 3, 4 and 12 more', 'a, b and 1 more')
    """
    distinct = list(dict.fromkeys(values))
    shown = ", ".join(str(value) for value in distinct[:most])
    return shown if len(distinct) <= most else f"{shown} and {len(distinct) - most} more"


def naming(word: str, values: Iterable[Any]) -> str:
    """Put a word, in the singular or plural, before its values: ``rows 3, 17``."""
    distinct = list(dict.fromkeys(values))
    return f"{word}{'' if len(distinct) == 1 else 's'} {listing(distinct)}"


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """Ask whether the nearest of the known words was meant; nothing if none is near.

    Examples
    --------
    >>> did_you_mean("Lots", ["lost", "fgnet"]), did_you_mean("birds", ["lost", "fgnet"])
    (" Did you mean 'lost'?", '')
    """
    spellings = {each.casefold(): each for each in known}
    near = get_close_matches(word.casefold(), spellings, n=1)
    return f" Did you mean {spellings[near[0]]!r}?" if near else ""


def install(*extras: str) -> str:
    """Say how to get the packages of an extra.

    Appellate is on no index yet: pip adds an extra to the one that is installed.

    Examples
    --------
    >>> install("plot")
    "pip install 'appellate[plot]' (in a clone: pip install '.[plot]')"
    """
    names = ",".join(extras)
    return f"pip install 'appellate[{names}]' (in a clone: pip install '.[{names}]')"


def import_extra(module: str, what: str, extra: str | None = None) -> Any:
    """Import a module that an extra brings, or the user, or say what to install."""
    package = module.partition(".")[0]
    if find_spec(package) is None:
        name = package.replace("_", "-")
        how = install(extra) if extra else f"pip install {name}"
        raise ImportError(f"{what} needs {name}: {how}")
    return import_module(module)


def neutralize(cell: str) -> str:
    r"""Put an apostrophe before a text that a spreadsheet would run as a formula.

    Texts that start with ``= + - @``, tab or a line break get one; numbers such as ``-1.5`` or
    ``-1,5`` do not. A text that already starts with apostrophes followed by one of these gets
    one more, so that `restore` undoes it without loss.

    Parameters
    ----------
    cell : str
        A cell of a table.

    Returns
    -------
    str

    Examples
    --------
    >>> [neutralize(cell) for cell in ["=cmd()", "-1.5", "-1,5", "cat", "'=x"]]
    ["'=cmd()", '-1.5', '-1,5', 'cat', "''=x"]
    """
    return f"'{cell}" if _is_formula(cell) else cell


def defuse(cell: str) -> str:
    """Put an apostrophe before every formula within a text, behind a comma, semicolon or break.

    A spreadsheet that separates cells by another character than the file does would take such a
    part for a cell of its own; quotation marks do not prevent it. Unlike `neutralize` this is not
    undone on reading. A sign or ``@`` counts as a formula only if it calls a function or reaches
    out of the sheet, so that lists of numbers and text stay as they are.

    Parameters
    ----------
    cell : str
        A cell of a table.

    Returns
    -------
    str

    Examples
    --------
    >>> [defuse(cell) for cell in ["x;=1+1;y", "[0.5,-0.3]", "a,-f(1)", "x;'=1", "hi,@me"]]
    ["x;'=1+1;y", '[0.5,-0.3]', "a,'-f(1)", "x;'=1", 'hi,@me']
    """
    return _WITHIN.sub("'", cell)


def restore(cell: str) -> str:
    """Undo `neutralize`.

    Examples
    --------
    >>> [restore(cell) for cell in ["'=cmd()", "-1.5", "'tis", "''=x", "'-1.5"]]
    ['=cmd()', '-1.5', "'tis", "'=x", "'-1.5"]
    """
    return cell[1:] if cell.startswith("'") and _is_formula(cell) else cell


def _is_formula(cell: str) -> bool:
    return bool(_FORMULA.match(cell)) and not _NUMBER.fullmatch(cell)
