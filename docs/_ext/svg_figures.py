"""The gallery's figures as SVG, sharp at any size."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from sphinx_gallery.scrapers import matplotlib_scraper


def save_figures(*args: Any, **options: Any) -> Any:
    """Save the open figures of a block."""
    return matplotlib_scraper(*args, format="svg", **options)


def _get_sg_image_scraper() -> Callable[..., Any]:
    return save_figures
