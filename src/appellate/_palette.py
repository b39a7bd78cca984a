"""One colour for one word: on the page, in plots, in the documentation and in the terminal.

``verdict`` is what the base said, ``appeal`` what came out. An ``overturned`` label has the
appeal's colour, because it is the appeal's; an ``upheld`` one is grey. Verdict and appeal differ
in lightness too, so that they stay apart in grey print. Every text colour has a contrast of at
least 4.5 on paper, ground and mark, and ``edge`` one of at least 3. In `BOTH` the same words have
the same hues, of a middle lightness.
"""

from __future__ import annotations

#: On white paper, for pages, plots and pictures.
LIGHT = {
    "ground": "#f6f5f1",
    "paper": "#ffffff",
    "ink": "#1f2228",
    "soft": "#595d68",
    "line": "#dedcd4",
    "edge": "#83868f",
    "mark": "#e5eff8",
    "verdict": "#b04a00",
    "appeal": "#00518f",
    "overturned": "#00518f",
    "upheld": "#595d68",
    "truth": "#00644a",
    "good": "#0f6b3f",
    "bad": "#b3201a",
    "warn": "#fdf0d5",
}
#: The same on a dark screen.
DARK = {
    "ground": "#15171c",
    "paper": "#1d2027",
    "ink": "#eceae5",
    "soft": "#a9adb8",
    "line": "#333741",
    "edge": "#7d828e",
    "mark": "#233449",
    "verdict": "#ffb580",
    "appeal": "#62aef0",
    "overturned": "#62aef0",
    "upheld": "#a9adb8",
    "truth": "#5cc6a5",
    "good": "#62c793",
    "bad": "#ff9a90",
    "warn": "#3a2f17",
}
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


def contrast(first: str, second: str) -> float:
    """Return the contrast ratio of two colours, from 1 to 21 (WCAG 2.2).

    Examples
    --------
    >>> round(contrast("#000000", "#ffffff"), 1)
    21.0
    """
    high, low = sorted((_luminance(first), _luminance(second)), reverse=True)
    return (high + 0.05) / (low + 0.05)


def as_css(colours: dict[str, str]) -> str:
    """Write a palette as custom properties of a style sheet.

    Examples
    --------
    >>> as_css({"ink": "#000000"})
    '--ink: #000000;'
    """
    return " ".join(f"--{name}: {colour};" for name, colour in colours.items())


def _luminance(colour: str) -> float:
    parts = (int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5))
    linear = [p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
    return sum(weight * p for weight, p in zip((0.2126, 0.7152, 0.0722), linear, strict=True))
