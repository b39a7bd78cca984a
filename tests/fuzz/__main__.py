"""Try many hostile cases and say what came of them: ``python -m tests.fuzz 10000``."""

from __future__ import annotations

import argparse
import sys
import time

from tests.fuzz.guard import try_cases
from tests.fuzz.trials import KINDS


def main():
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("cases", type=int, help="how many, the same number of each kind")
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--kind", choices=KINDS, action="append", help="only these")
    given = parser.parse_args()
    kinds, started, told = given.kind or KINDS, time.monotonic(), 0
    numbers = [divmod(number, len(kinds)) for number in range(given.cases)]

    def tell(found):
        nonlocal told
        for kind, seed, said in found.wrong[told:]:
            print(f"-- {kind} {seed}", said, sep="\n", flush=True)
        told, tried = len(found.wrong), found.outcomes.total()
        if tried % 1000 == 0:
            print(f"{tried} cases, {told} wrong", file=sys.stderr, flush=True)

    found = try_cases(((kinds[i], given.first + seed) for seed, i in numbers), tell=tell)
    for (kind, outcome), count in sorted(found.outcomes.items()):
        print(f"{count:7} {kind} {outcome}")
    took, kind, seed = found.slowest
    print(f"the slowest, {kind} {seed}, took {took:.1f} processor seconds")
    seconds = time.monotonic() - started
    print(
        f"{given.cases} cases from seed {given.first}, {found.commands} commands, "
        f"{seconds:.0f} s: {len(found.wrong)} wrong"
    )
    return min(len(found.wrong), 1)


if __name__ == "__main__":
    sys.exit(main())
