"""Text that is safe to print, for whatever writes to a terminal; it needs no package."""

from __future__ import annotations

import unicodedata


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
