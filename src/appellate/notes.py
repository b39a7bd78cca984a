"""Notes on how data were read, as Python warnings."""

from __future__ import annotations

import warnings
from collections.abc import Iterable


class NoteWarning(UserWarning):
    """A note on how data were read or understood: the result is usable, but check it.

    Examples
    --------
    >>> import warnings
    >>> from appellate import NoteWarning
    >>> warnings.simplefilter("ignore", NoteWarning)  # when you know the notes of your table
    """


def tell(notes: Iterable[str], stacklevel: int) -> None:
    """Warn once per note.

    Parameters
    ----------
    notes : iterable of str
        What the user should know; a repeated note is reported once.
    stacklevel : int
        Which caller the warning names, as in `warnings.warn`: 1 is the caller of `tell`.

    Examples
    --------
    >>> import warnings
    >>> with warnings.catch_warnings(record=True) as caught:
    ...     warnings.simplefilter("always")
    ...     tell(["column 'x' is empty.", "column 'x' is empty."], stacklevel=1)
    >>> [str(each.message) for each in caught]
    ["column 'x' is empty."]
    """
    for note in dict.fromkeys(notes):
        warnings.warn(note, NoteWarning, stacklevel=stacklevel + 1)
