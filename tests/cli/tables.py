"""Small tables for the tests of the command line."""

from __future__ import annotations

import csv

import numpy as np

NAMES = ("cat", "dog", "cow")
HOSTILE = (
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "=cmd()",
    "@SUM(A1)",
    "\u202eevil\u202c",
    "🦉",
    'a\nb,"c"',
    "'=x",
    "</script><script>alert(2)</script>",
    "long" * 2500,
    "{{ 7 * 7 }}",
    "\u2028line",
)


def make_rows(n=60, seed=0, names=NAMES):
    """Features, candidates and truth of three groups that overlap a little."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(len(names), size=n)
    X = rng.normal(size=(n, 3)) + 2.5 * np.eye(max(3, len(names)))[truth][:, :3]
    candidates = rng.random((n, len(names))) < 0.4
    candidates[np.arange(n), truth] = True
    return X, candidates, truth


def write_table(path, n=60, *, names=NAMES, ids=None, extra=None, separator="|", **options):
    """Write a table as CSV and return its rows as dicts."""
    X, candidates, truth = make_rows(n, names=names)
    rows = []
    for i in range(n):
        chosen = [name for name, c in zip(names, candidates[i], strict=True) if c]
        row = {"item": f"i{i}" if ids is None else ids[i], "labels": separator.join(chosen)}
        row |= {f"x{j}": f"{X[i, j]:.4f}" for j in range(3)}
        row |= {"site": ("north", "south")[i % 2], "truth": names[truth[i]]}
        rows.append(row | (extra(i) if extra else {}))
    write_rows(path, rows, **options)
    return rows


def write_rows(path, rows, **options):
    with path.open("w", newline="", encoding=options.pop("encoding", "utf-8")) as file:
        writer = csv.DictWriter(file, list(rows[0]), **{"lineterminator": "\n", **options})
        writer.writeheader()
        writer.writerows(rows)


def read_rows(path, **options):
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file, **options))
