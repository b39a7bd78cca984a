"""The review page of ``appellate demo`` as a page of the site, with its images inside.

The build runs the demo, which takes 20 seconds on one core and downloads nothing. The page is
made again only if the package has changed since.
"""

from __future__ import annotations

import tempfile
from base64 import b64encode
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path
from typing import Any

import appellate

PAGE = "demo.html"  # next to index.html


def write_demo(path: Path) -> Path:
    """Run the demo, and write its review page as one file."""
    from appellate.cli.app import run

    with tempfile.TemporaryDirectory() as folder:
        with redirect_stdout(StringIO()):
            code = run(["demo", "--out", folder, "--json"])
        if code:
            raise RuntimeError("appellate demo failed, so that the site has no review page.")
        return inline_images(Path(folder), path)


def inline_images(folder: Path, path: Path) -> Path:
    """Write the review page of a folder as one file, its images inside.

    Parameters
    ----------
    folder : Path
        What the demo wrote.
    path : Path
        The file to write.

    Returns
    -------
    Path
        The file.
    """
    from appellate.review.page import read_page, write_page

    data = read_page(folder / "docket.html")
    data["images"] = [
        "data:image/png;base64," + b64encode((folder / image).read_bytes()).decode("ascii")
        for image in data["images"]
    ]
    return write_page(data, path)


def is_current(path: Path) -> bool:
    """Tell whether a page is younger than every file of the package."""
    home = Path(appellate.__file__).parent
    sources = (each for each in home.rglob("*") if each.suffix in {".py", ".js", ".css", ".jinja"})
    return path.exists() and path.stat().st_mtime > max(each.stat().st_mtime for each in sources)


def add_demo(app: Any, error: Exception | None) -> None:
    """Put the page next to the others, at the end of a build of HTML that went well."""
    path = Path(app.outdir) / PAGE
    if error is None and app.builder.format == "html" and not is_current(path):
        write_demo(path)


def setup(app: Any) -> dict[str, Any]:
    """Write the page when a build ends."""
    app.connect("build-finished", add_demo)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
