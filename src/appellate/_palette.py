"""One colour for one word: on the page, in plots, in the documentation and in the terminal.

``verdict`` is what the base said, ``appeal`` what came out. An ``overturned`` (changed) label has
the colour of the final label; an ``upheld`` (unchanged) label is grey. First label and final
label differ in lightness too, so that they stay apart in grey print. Every text colour has
a contrast of at least 4.5 on paper, ground and mark, and ``edge`` one of at least 3. In `BOTH`
the same words have the same hues, of a middle lightness.
"""

from __future__ import annotations

_COLOURS = {
    "ground": ("#f6f5f1", "#15171c"),
    "paper": ("#ffffff", "#1d2027"),
    "ink": ("#1f2228", "#eceae5"),
    "soft": ("#595d68", "#a9adb8"),
    "line": ("#dedcd4", "#333741"),
    "edge": ("#83868f", "#7d828e"),
    "mark": ("#e5eff8", "#233449"),
    "verdict": ("#b04a00", "#ffb580"),
    "appeal": ("#00518f", "#62aef0"),
    "overturned": ("#00518f", "#62aef0"),
    "upheld": ("#595d68", "#a9adb8"),
    "truth": ("#00644a", "#5cc6a5"),
    "good": ("#0f6b3f", "#62c793"),
    "bad": ("#b3201a", "#ff9a90"),
    "warn": ("#fdf0d5", "#3a2f17"),
}
#: On white paper, for pages, plots and pictures.
LIGHT = {word: light for word, (light, _) in _COLOURS.items()}
#: The same on a dark screen.
DARK = {word: dark for word, (_, dark) in _COLOURS.items()}
#: For plots that may stand on white or on black: Okabe and Ito's colours, told apart with any
#: colour vision.
BOTH = {
    "verdict": "#D55E00",
    "appeal": "#0072B2",
    "overturned": "#0072B2",
    "upheld": "#7F7F7F",
    "truth": "#009E73",
    "rival": "#7F7F7F",
}


def as_css(colours: dict[str, str]) -> str:
    """Write a palette as custom properties of a style sheet.

    Examples
    --------
    >>> as_css({"ink": "#000000"})
    '--ink: #000000;'
    """
    return " ".join(f"--{name}: {colour};" for name, colour in colours.items())
