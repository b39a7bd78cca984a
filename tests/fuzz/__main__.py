"""Try many hostile cases and say what came of them: ``python -m tests.fuzz 10000``."""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
import traceback
from collections import Counter

from tests.fuzz.trials import KINDS, Trials


def main():
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("cases", type=int, help="how many, equally many of each kind")
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--kind", choices=KINDS, action="append", help="only these")
    given = parser.parse_args()
    kinds, wrong, started = given.kind or KINDS, Counter(), time.monotonic()
    with tempfile.TemporaryDirectory() as folder, Trials(folder) as trials:
        for number in range(given.cases):
            kind, seed = kinds[number % len(kinds)], given.first + number // len(kinds)
            try:
                trials.try_case(kind, seed)
            except Exception:
                wrong[kind] += 1
                print(f"-- {kind} {seed}", traceback.format_exc()[-3000:], sep="\n", flush=True)
            if number % 1000 == 999:
                print(f"{number + 1} cases, {wrong.total()} wrong", file=sys.stderr, flush=True)
        for (kind, outcome), count in sorted(trials.outcomes.items()):
            print(f"{count:7} {kind} {outcome}")
        seconds = time.monotonic() - started
    print(
        f"{given.cases} cases from seed {given.first}, {trials.commands} commands, "
        f"{seconds:.0f} s: {wrong.total()} wrong"
    )
    return min(wrong.total(), 1)


if __name__ == "__main__":
    sys.exit(main())
