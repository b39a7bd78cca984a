"""The docket as a page: one file without a network, to look at and to review (extra ``report``).

The page is a plain dict first (`appellate.report.data`), rendered by an autoescaping template
second. Its script and style are named in a content security policy by their hashes, so that
nothing else runs, and nothing is loaded from anywhere.
"""

from __future__ import annotations

import base64
import hashlib
import json
import os
import tempfile
from collections.abc import Mapping, Sequence
from importlib.resources import files
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from appellate.docket import Docket
from appellate.report.data import decided_rows, encode_rows, summarize

__all__ = ["render_page", "write_page"]

#: What the policy of a written page says of connections; ``appellate serve`` relaxes it.
NO_CONNECTION = "connect-src 'none'"


def write_page(docket: Docket, path: str | os.PathLike[str], **options: Any) -> Path:
    """Write the page of a docket to a file, which appears whole or not at all.

    Parameters
    ----------
    docket : Docket
        Of a fitted model: ``model.docket(output="docket")``.
    path : str or path
        The file.
    **options
        As `render_page` takes them.

    Returns
    -------
    Path
        The file.

    Examples
    --------
    >>> import tempfile
    >>> from appellate import PLCPClassifier, SUREClassifier
    >>> X = [[0.0], [0.1], [0.2], [5.0], [5.1], [5.2]]
    >>> y = ["cat|dog", "cat", "cat|cow", "dog", "dog|cow", "cat|dog"]
    >>> docket = PLCPClassifier(SUREClassifier()).fit(X, y).docket(output="docket")
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_page(docket, f"{folder}/docket.html", title="animals").name
    'docket.html'
    """
    target = Path(path)
    text = render_page(docket, **options)
    handle, name = tempfile.mkstemp(prefix=".appellate-", suffix=".html", dir=target.parent)
    try:
        with os.fdopen(handle, "w", encoding="utf-8", newline="\n") as file:
            file.write(text)
        Path(name).chmod(0o644)
        os.replace(name, target)
    finally:
        Path(name).unlink(missing_ok=True)
    return target


def render_page(
    docket: Docket,
    *,
    title: str = "",
    neighbors: Any = None,
    texts: Sequence[str] | None = None,
    images: Sequence[str] | None = None,
    suggested: Sequence[int] = (),
    decisions: Mapping[int, tuple[str, int]] | None = None,
    key: str | None = None,
) -> str:
    """Render the page of a docket.

    Parameters
    ----------
    docket : Docket
        The table and its confidences.
    title : str, default=""
        What the data are called.
    neighbors : ndarray of int, shape (n, k), default=None
        Nearest other samples of every sample.
    texts, images : sequence of str, default=None
        A text and the path of a picture for every sample; paths are relative to the page.
    suggested : sequence of int, default=()
        Rows to review first, in this order.
    decisions : mapping of int to (str, int), default=None
        Earlier decisions by row: the kind and the class index, -1 for none.
    key : str, default=None
        Names the reviews of this data in the browser's storage; by default a hash of the rows.

    Returns
    -------
    str
        The page.

    Examples
    --------
    >>> from appellate import PLCPClassifier, SUREClassifier
    >>> X = [[0.0], [0.1], [0.2], [5.0], [5.1], [5.2]]
    >>> y = ["cat|dog", "cat", "cat|cow", "dog", "dog|cow", "cat|dog"]
    >>> docket = PLCPClassifier(SUREClassifier()).fit(X, y).docket(output="docket")
    >>> render_page(docket)[:15]
    '<!doctype html>'
    """
    if find_spec("jinja2") is None:
        raise ImportError("The docket page needs jinja2: pip install 'appellate[report]'")
    import jinja2
    from markupsafe import Markup

    rows = encode_rows(
        docket,
        neighbors=neighbors,
        texts=texts,
        images=images,
        suggested=suggested,
        decisions=decisions or {},
    )
    data = _as_json(rows)
    rows_key = key or hashlib.sha256(data.encode()).hexdigest()[:16]
    home = files("appellate.report")
    script = (home / "page.js").read_text(encoding="utf-8")
    style = (home / "page.css").read_text(encoding="utf-8")
    environment = jinja2.Environment(
        autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    template = environment.from_string((home / "page.html.jinja").read_text(encoding="utf-8"))
    return template.render(
        title=title,
        key=rows_key,
        summary=summarize(docket, *decided_rows(rows["decisions"])),
        policy=_policy(script, style),
        script=Markup(script),
        style=Markup(style),
        data=Markup(data),
    )


def _as_json(rows: dict[str, Any]) -> str:
    """Write JSON that cannot end the element it stands in, nor break a line of script."""
    text = json.dumps(rows, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    for character in "<>&\u2028\u2029":
        text = text.replace(character, f"\\u{ord(character):04x}")
    # A lone surrogate cannot be written as UTF-8.
    return text.encode("utf-8", "replace").decode("utf-8")


def _policy(script: str, style: str) -> str:
    return "; ".join(
        (
            "default-src 'none'",
            f"script-src '{_hash(script)}'",
            f"style-src '{_hash(style)}'",
            "img-src 'self' file: data:",
            NO_CONNECTION,
            "base-uri 'none'",
            "form-action 'none'",
        )
    )


def _hash(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
