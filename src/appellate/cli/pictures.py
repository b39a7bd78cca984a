"""Small grey pictures in the terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from rich.console import Console
    from rich.text import Text

_SHADES = " .:-=+*#%@"


def can_shade(console: Console) -> bool:
    """Whether the terminal shows grey levels and half blocks."""
    return (
        console.is_terminal
        and console.color_system in ("256", "truecolor")
        and not console.no_color
        and not console.options.ascii_only
    )


def draw_picture(image: NDArray[Any], *, shaded: bool) -> Text:
    """Draw an (h, w) picture with values in [0, 1] as h lines of 2 w characters.

    Parameters
    ----------
    image : ndarray, shape (h, w)
        0 is paper, 1 is ink.
    shaded : bool
        Half blocks in grey levels, at twice the resolution, or else ASCII characters that
        grow darker with the ink.
    """
    from rich.text import Text

    lines = _half_blocks(image) if shaded else [Text(line) for line in _characters(image)]
    return Text("\n").join(lines)


def _half_blocks(image: NDArray[Any]) -> list[Text]:
    """Two rows of pixels a line: the upper one is the character, the lower its background."""
    import numpy as np
    from rich.text import Text
    from scipy.ndimage import zoom

    fine = zoom(image, 2, order=1, mode="nearest", grid_mode=True)  # (2 h, 2 w)
    grey = np.clip(np.rint(fine * 255), 0, 255).astype(int).tolist()
    return [
        Text.assemble(
            *(
                ("\N{UPPER HALF BLOCK}", f"rgb({a},{a},{a}) on rgb({b},{b},{b})")
                for a, b in zip(upper, lower, strict=True)
            )
        )
        for upper, lower in zip(grey[::2], grey[1::2], strict=True)
    ]


def _characters(image: NDArray[Any]) -> list[str]:
    import numpy as np

    levels = np.clip(np.rint(image * (len(_SHADES) - 1)), 0, len(_SHADES) - 1).astype(int)
    return ["".join(2 * _SHADES[level] for level in row) for row in levels.tolist()]
