"""The page of a docket: rendered from a dict, written as one file, and read back."""

from __future__ import annotations

import base64
import hashlib
import json
import os
from collections.abc import Mapping
from functools import cache
from html.parser import HTMLParser
from importlib.resources import files
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from appellate._files import write_file
from appellate._palette import DARK, LIGHT, as_css
from appellate._text import install
from appellate.review.data import CLOSE, FORMAT, OPTIONAL, SUSPECT, pack

__all__ = ["read_page", "render_page", "write_page"]

_SCRIPTS = ("rows.js", "decisions.js", "list.js", "detail.js", "files.js", "start.js")


def write_page(data: Mapping[str, Any], path: str | os.PathLike[str]) -> Path:
    """Write the page of a docket to a file, which appears whole or not at all.

    Parameters
    ----------
    data : dict
        What it shows, as `page_data` makes it.
    path : str or path
        The file.

    Returns
    -------
    Path
        The file.

    Examples
    --------
    >>> import tempfile
    >>> from appellate import PLCPClassifier, SUREClassifier
    >>> from appellate.review import page_data
    >>> from appellate.review.page import read_page
    >>> X = [[0.0], [0.1], [0.2], [5.0], [5.1], [5.2]]
    >>> y = ["cat|dog", "cat", "cat|cow", "dog", "dog|cow", "cat|dog"]
    >>> docket = PLCPClassifier(SUREClassifier()).fit(X, y).docket(output="docket")
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = write_page(page_data(docket, title="animals"), f"{folder}/docket.html")
    ...     read_page(path)["title"]
    'animals'
    """
    return write_file(path, render_page(data))


def render_page(data: Mapping[str, Any], server: Mapping[str, str] | None = None) -> str:
    """Render the page of a docket.

    Parameters
    ----------
    data : dict
        What it shows, as `page_data` or `read_page` return it.
    server : mapping, default=None
        Of a page that is served: ``endpoint`` of decisions, ``token``, and ``folder``, which
        names the folder in the browser's storage.

    Returns
    -------
    str
        The page.
    """
    if find_spec("jinja2") is None:
        raise ImportError(f"The docket page needs jinja2: {install('report')}")
    from markupsafe import Markup

    template, script, style = _parts()
    return str(
        template.render(
            data=dict.fromkeys(OPTIONAL) | dict(data),
            summary=data["summary"],
            policy=_policy(script, style, served=server is not None),
            script=Markup(script),
            style=Markup(style),
            json=Markup(as_json(pack({**data, "close": CLOSE, "suspect": SUSPECT}))),
            server=Markup(as_json(server)),
            served=server is not None,
        )
    )


@cache
def _parts() -> tuple[Any, str, str]:
    """Return the template, the script and the style of every page."""
    import jinja2

    home = files("appellate.review") / "page"

    def read(name: str) -> str:
        return (home / name).read_text(encoding="utf-8")

    script = '(() => {\n"use strict";\n' + "\n".join(map(read, _SCRIPTS)) + "\n})();"
    dark = f"@media screen and (prefers-color-scheme: dark) {{ :root {{ {as_css(DARK)} }} }}"
    style = f":root {{ {as_css(LIGHT)} }}\n{dark}\n{read('page.css')}"
    environment = jinja2.Environment(
        autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    return environment.from_string(read("page.html.jinja")), script, style


def read_page(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Return the data of a page that `write_page` wrote, arrays still packed.

    Raises
    ------
    PageError
        If the file is no such page, or one of another version.
    """
    finder = _Finder()
    finder.feed(Path(path).read_text(encoding="utf-8"))
    try:
        data = json.loads("".join(finder.found))
    except ValueError:
        data = None
    if not isinstance(data, dict) or data.get("format") != FORMAT:
        raise PageError(
            f"'{path}' is no docket page of this version of Appellate. Write it anew with rectify."
        )
    return data


class PageError(ValueError):
    """A file that is no docket page of this version."""


class _Finder(HTMLParser):
    """Collects the content of the element that holds the data."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []
        self._inside = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._inside = tag == "script" and ("id", "data") in attrs

    def handle_endtag(self, tag: str) -> None:
        self._inside = False

    def handle_data(self, data: str) -> None:
        if self._inside:
            self.found.append(data)


def as_json(value: Any) -> str:
    """Write JSON that cannot end the element it stands in, nor break a line of script."""
    text = json.dumps(
        value,
        ensure_ascii=False,
        separators=(",", ":"),
        allow_nan=False,
        default=lambda number: number.item(),  # of numpy
    )
    for character in "<>&\u2028\u2029":
        text = text.replace(character, f"\\u{ord(character):04x}")
    # A lone surrogate cannot be written as UTF-8.
    return text.encode("utf-8", "replace").decode("utf-8")


def _policy(script: str, style: str, *, served: bool) -> str:
    return "; ".join(
        (
            "default-src 'none'",
            f"script-src '{_hash(script)}'",
            f"style-src '{_hash(style)}'",
            f"img-src 'self' data:{'' if served else ' file:'}",
            "connect-src 'self'" if served else "connect-src 'none'",
            "base-uri 'none'",
            "form-action 'none'",
        )
    )


def _hash(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
