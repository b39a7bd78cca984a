"""Notes reach Python as warnings of one class."""

from __future__ import annotations

import warnings

import pytest

import appellate
from appellate.notes import tell


def test_one_warning_per_note():
    with pytest.warns(appellate.NoteWarning) as caught:
        tell(["first", "second", "first"], stacklevel=1)
    assert [str(each.message) for each in caught] == ["first", "second"]


def test_the_warning_names_the_callers_line():
    def read():
        tell(["a note"], stacklevel=2)

    with pytest.warns(appellate.NoteWarning) as caught:
        read()
    assert caught[0].filename == __file__


def test_no_notes_no_warning():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        tell([], stacklevel=1)
