"""Walk through one fit: which functions of the library it visits, in which files.

python tools/walk.py fit        # PLCPClassifier(AGGDClassifier()).fit on a small problem
"""

from __future__ import annotations

import sys
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

import appellate

HOME = Path(appellate.__file__).parent


def fit() -> Callable[[], Any]:
    from appellate import AGGDClassifier, PLCPClassifier
    from appellate.testing import make_clusters

    X, candidates, _ = make_clusters()
    PLCPClassifier(AGGDClassifier()).fit(X, candidates)  # compiles and imports
    return lambda: PLCPClassifier(AGGDClassifier()).fit(X, candidates)


WALKS = {"fit": fit}


def visit(walk: Callable[[], Any]) -> dict[str, list[str]]:
    """Names of the functions visited, file by file, in the order of the first visit."""
    seen: dict[str, dict[str, None]] = defaultdict(dict)

    def note(frame: FrameType, event: str, _: Any) -> None:
        code = frame.f_code
        named = not code.co_name.startswith("<")  # no comprehensions, lambdas or modules
        if event == "call" and named and code.co_filename.startswith(str(HOME)):
            file = str(Path(code.co_filename).relative_to(HOME))
            seen[file].setdefault(code.co_qualname)

    sys.setprofile(note)
    try:
        walk()
    finally:
        sys.setprofile(None)
    return {file: list(names) for file, names in seen.items()}


def main(name: str) -> None:
    found = visit(WALKS[name]())
    for file, functions in found.items():
        print(f"{file}: {', '.join(functions)}")
    print(f"{sum(map(len, found.values()))} functions in {len(found)} files")


if __name__ == "__main__":
    main(*(sys.argv[1:] or ["fit"]))
