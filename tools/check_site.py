"""Check every internal link of the built site: the file is there, and so is the anchor.

Usage: python tools/check_site.py docs/_build/html
"""

from __future__ import annotations

import sys
from functools import cache
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

EXTERNAL = {"http", "https", "mailto", "javascript", "data"}


class Page(HTMLParser):
    """Links and anchors of one page."""

    def __init__(self) -> None:
        super().__init__()
        self.links: set[str] = set()
        self.anchors: set[str] = set()

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        """Note what the element points to and what it is called."""
        for name, value in attributes:
            if value and name in ("href", "src"):
                self.links.add(value)
            elif value and name in ("id", "name"):
                # The review page opens the element `view-labels` at the address `#labels`.
                self.anchors |= {value, value.removeprefix("view-")}


@cache
def read(path: Path) -> Page:
    """Read a page."""
    page = Page()
    page.feed(path.read_text(encoding="utf-8"))
    return page


def dead_links(path: Path) -> list[str]:
    """Return the internal links of a page that lead nowhere."""
    dead = []
    for link in sorted(read(path).links):
        parts = urlsplit(link)
        if parts.scheme in EXTERNAL or parts.netloc:
            continue
        target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
        if target.is_dir():
            target /= "index.html"
        anchor = unquote(parts.fragment)
        if not target.exists() or (
            anchor and target.suffix == ".html" and anchor not in read(target).anchors
        ):
            dead.append(link)
    return dead


def loaded_from_elsewhere(path: Path) -> list[str]:
    """Return what a page would load from the network."""
    text = path.read_text(encoding="utf-8")
    return [
        address
        for mark in ('<script src="', '<link rel="stylesheet" href="')
        for address in (piece.split('"')[0] for piece in text.split(mark)[1:])
        if urlsplit(address).netloc
    ]


def main(folder: str) -> int:
    """Print what is wrong with the site and return how much it is."""
    site = Path(folder).resolve()
    pages = sorted(p for p in site.rglob("*.html") if "_static" not in p.parts)
    problems = [
        f"{page.relative_to(site)}: dead link {x}" for page in pages for x in dead_links(page)
    ]
    problems += [
        f"{page.relative_to(site)}: loads {x}"
        for page in pages
        for x in loaded_from_elsewhere(page)
    ]
    sys.stdout.write("\n".join([*problems, f"{len(pages)} pages, {len(problems)} problems\n"]))
    return min(len(problems), 1)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
