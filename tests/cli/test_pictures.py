"""Pictures in the terminal."""

from __future__ import annotations

import io

import numpy as np
import pytest
from rich.console import Console

from appellate.cli.pictures import can_shade, draw_picture

WEDGE = np.linspace(0, 1, 64).reshape(8, 8)


def test_characters_grow_with_the_ink():
    lines = draw_picture(WEDGE, shaded=False).plain.split("\n")
    assert [len(line) for line in lines] == [16] * 8
    assert lines[0].startswith("  ")
    assert lines[-1].endswith("@@")
    assert "".join(lines).isascii()


def test_half_blocks_have_the_same_size_and_all_greys():
    text = draw_picture(WEDGE, shaded=True)
    lines = text.plain.split("\n")
    assert [len(line) for line in lines] == [16] * 8
    assert set("".join(lines)) == {"\N{UPPER HALF BLOCK}"}
    styles = {str(span.style) for span in text.spans}
    assert any(style.startswith("rgb(0,0,0)") for style in styles)
    assert any(style.endswith("rgb(255,255,255)") for style in styles)


@pytest.mark.parametrize(
    ("options", "shaded"),
    [
        ({"color_system": "truecolor"}, True),
        ({"color_system": "256"}, True),
        ({"color_system": "standard"}, False),
        ({"color_system": "truecolor", "no_color": True}, False),
        ({"color_system": "truecolor", "force_terminal": False}, False),
        ({"color_system": "truecolor", "file": io.TextIOWrapper(io.BytesIO(), "ascii")}, False),
    ],
)
def test_who_gets_half_blocks(options, shaded):
    settings = {"force_terminal": True, "file": io.StringIO()} | options
    if settings["file"].encoding is None:
        settings["file"] = io.TextIOWrapper(io.BytesIO(), "utf-8")
    assert can_shade(Console(**settings)) is shaded
