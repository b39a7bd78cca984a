"""Write the figures of docs/figures.toml into README.md and the pages that quote them.

Usage: python tools/figures.py
"""

from __future__ import annotations

import re
import sys
import tomllib
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
PAGES = (ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")))
TABLE = re.compile(r"(<!-- figures: (\w+) -->\n).*?(<!-- end of figures -->)", re.DOTALL)
INLINE = re.compile(r"[\w.%*]+(<!-- =(\w+)\.(\w+)\.(\w+) -->)")


def read_figures() -> dict[str, Any]:
    """Read all tables of figures."""
    return tomllib.loads((ROOT / "docs" / "figures.toml").read_text(encoding="utf-8"))


def make_table(table: dict[str, Any]) -> str:
    """Write a table of figures as Markdown."""
    columns = table["columns"]
    lines = [["", *columns.values()], ["---"] * (len(columns) + 1)]
    lines += [[row["title"], *(row[key] for key in columns)] for row in table["rows"].values()]
    text = "\n".join("| " + " | ".join(line) + " |" for line in lines)
    return f"{text}\n".replace("|  |", "| |")


def fill(text: str, figures: dict[str, Any]) -> str:
    """Replace the tables and the single figures of a page."""
    text = TABLE.sub(lambda m: f"{m[1]}\n{make_table(figures[m[2]])}\n{m[3]}", text)
    return INLINE.sub(lambda m: figures[m[2]]["rows"][m[3]][m[4]].strip("*") + m[1], text)


def main() -> None:
    """Rewrite the pages that differ."""
    figures = read_figures()
    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        if (filled := fill(text, figures)) != text:
            page.write_text(filled, encoding="utf-8")
            sys.stdout.write(f"{page.relative_to(ROOT)}\n")


if __name__ == "__main__":
    main()
