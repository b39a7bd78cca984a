"""Print coverage by line and branch, and the functions that the tests cover least.

Usage: coverage json -o coverage.json && python tools/least_covered.py coverage.json [10]

A function of one or two statements is left out; so are compiled loops (``@njit``), which run
outside the interpreter, so that no line of them is ever counted.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path


def is_compiled(path: str, start: int) -> bool:
    """Whether one of the three lines before a function's first statement compiles it."""
    lines = Path(path).read_text(encoding="utf-8").splitlines()
    header = next((i for i in range(start - 1, -1, -1) if lines[i].lstrip().startswith("def ")), 0)
    return any("njit" in line for line in lines[max(0, header - 3) : header])


def main(report: str, n: int = 10) -> None:
    """Print totals and the least covered functions."""
    document = json.loads(Path(report).read_text(encoding="utf-8"))
    totals = document["totals"]
    lines = 100 * totals["covered_lines"] / totals["num_statements"]
    branches = 100 * totals["covered_branches"] / max(1, totals["num_branches"])
    found = []
    for path, file in document["files"].items():
        for name, function in file.get("functions", {}).items():
            summary = function["summary"]
            seen = [*function["executed_lines"], *function["missing_lines"]]
            if name and summary["num_statements"] > 2 and not is_compiled(path, min(seen)):
                found.append((summary["percent_covered"], path, name, summary["missing_lines"]))
    rows = [
        f"{share:5.1f} %  {path}: {name} ({k} lines)" for share, path, name, k in sorted(found)
    ]
    head = f"lines {lines:.1f} %, branches {branches:.1f} %, {len(found)} functions"
    sys.stdout.write("\n".join([head, *rows[:n]]) + "\n")


if __name__ == "__main__":
    main(sys.argv[1], *map(int, sys.argv[2:]))
