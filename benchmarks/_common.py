"""What benchmarks and studies share: the command line, data, measuring, stores, tables."""

from __future__ import annotations

import argparse
import json
import resource
import time
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import numpy as np

ROOT = Path(__file__).parents[1]


def make_parser(document):
    """Make a parser that shows what a script says of itself."""
    form = argparse.RawDescriptionHelpFormatter
    return argparse.ArgumentParser(description=document, formatter_class=form)


def run_parts(document, parts, usual):
    """Run the parts that the command line names, or those of ``make bench``."""
    parser = make_parser(document)
    told = f"of those above  [default: {' '.join(usual)}]"
    parser.add_argument("parts", nargs="*", metavar="part", help=told)
    chosen = parser.parse_args().parts or usual
    if unknown := [name for name in chosen if name not in parts]:
        parser.error(f"no part {', '.join(unknown)}; there are {', '.join(parts)}")
    for name in chosen:
        parts[name]()


# -- data -----------------------------------------------------------------------------------


def make_candidates(rng, n, n_labels, average):
    counts = np.clip(1 + rng.poisson(average - 1, size=n), 1, n_labels)
    candidates = np.zeros((n, n_labels), dtype=bool)
    for row, count in zip(candidates, counts, strict=True):
        row[rng.choice(n_labels, size=count, replace=False)] = True
    return candidates


def make_data(n, n_labels, n_features=163):
    rng = np.random.RandomState(0)
    truth = rng.randint(n_labels, size=n)
    X = rng.normal(size=(n_labels, n_features))[truth] + rng.normal(size=(n, n_features)) * 2
    candidates = make_candidates(rng, n, n_labels, 2.0)
    candidates[np.arange(n), truth] = True
    return X, candidates


# -- measuring ------------------------------------------------------------------------------


def best_time(call, repeats=5):
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    return min(times)


def peak_bytes() -> int:
    """Largest resident memory of this process; the peak of its parent does not count."""
    try:
        status = Path("/proc/self/status").read_text()
    except OSError:
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    (line,) = (line for line in status.splitlines() if line.startswith("VmHWM:"))
    return int(line.split()[1]) * 1024


def apart(function, *arguments):
    """Call a function of a script in a process of its own, so that the peak memory is its own."""
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        return pool.submit(function, *arguments).result()


# -- results of studies ---------------------------------------------------------------------


def read_lines(store):
    """Read a store: one finished run a line, as JSON."""
    if not store.exists():
        return []
    return [json.loads(line) for line in store.read_text(encoding="utf-8").splitlines()]


def add_line(store, record):
    """Add a finished run to a store, so that a study that was stopped goes on from there."""
    store.parent.mkdir(parents=True, exist_ok=True)
    with store.open("a", encoding="utf-8") as file:
        file.write(json.dumps(record) + "\n")


def table(head, rows):
    """Markdown."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(cells) + " |" for cells in lines)


def replace_measured(page, begin, end, text):
    """Replace what stands between two marks in a page of the documentation."""
    before, found, rest = page.read_text(encoding="utf-8").partition(begin)
    if not found or end not in rest:
        raise SystemExit(f"{page} has no '{begin}' ... '{end}' to write between")
    after = rest.split(end, 1)[1]
    page.write_text(f"{before}{begin}\n\n{text}\n\n{end}{after}", encoding="utf-8")
    print(f"wrote {page}")
