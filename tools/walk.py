"""Walk through one fit: which functions of the library it visits, in which files.

python tools/walk.py sure       # SUREClassifier().fit on a small problem
python tools/walk.py fit        # PLCPClassifier(AGGDClassifier()).fit on a small problem
python tools/walk.py jury       # JuryClassifier("kernel").fit on the same problem
python tools/walk.py full-jury  # JuryClassifier().fit, with a forest and a network
python tools/walk.py testimony  # TestimonyClassifier().fit on three annotators' answers
python tools/walk.py rectify    # the command on a small table, without methods and numerics
"""

from __future__ import annotations

import sys
import tempfile
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

import appellate

HOME = Path(appellate.__file__).parent


def fit() -> Callable[[], Any]:
    from appellate import AGGDClassifier, PLCPClassifier

    return fit_twice(lambda: PLCPClassifier(AGGDClassifier()))


def sure() -> Callable[[], Any]:
    from appellate import SUREClassifier

    return fit_twice(SUREClassifier)


def jury() -> Callable[[], Any]:
    from appellate import JuryClassifier

    return fit_twice(lambda: JuryClassifier("kernel", random_state=0))


def full_jury() -> Callable[[], Any]:
    from appellate import JuryClassifier

    return fit_twice(lambda: JuryClassifier(random_state=0))


def testimony() -> Callable[[], Any]:
    import numpy as np

    from appellate import TestimonyClassifier
    from appellate.candidates import as_answers
    from appellate.testing import make_clusters

    X, _, truth = make_clusters()
    rng = np.random.default_rng(0)
    guesses = rng.integers(0, truth.max() + 1, (len(truth), 3))
    answers = as_answers(
        np.where(rng.random(guesses.shape) < 0.7, truth[:, None], guesses).tolist()
    )
    TestimonyClassifier().fit(X, answers)  # compiles and imports
    return lambda: TestimonyClassifier().fit(X, answers)


def fit_twice(make: Callable[[], Any]) -> Callable[[], Any]:
    from appellate.testing import make_clusters

    X, candidates, _ = make_clusters()
    make().fit(X, candidates)  # compiles and imports
    return lambda: make().fit(X, candidates)


def rectify() -> Callable[[], Any]:
    from appellate.cli.app import run

    folder = Path(tempfile.mkdtemp())
    rows = [f"{i % 7 + 5 * (i % 2)},{'cat|dog' if i % 3 else 'cow'}" for i in range(40)]
    (folder / "birds.csv").write_text("size,names\n" + "\n".join(rows) + "\n")
    words = ["rectify", str(folder / "birds.csv"), "--candidates", "names", "--out"]
    run([*words, str(folder / "first")])  # imports
    return lambda: run([*words, str(folder / "second")])


WALKS = {
    "sure": sure,
    "fit": fit,
    "jury": jury,
    "full-jury": full_jury,
    "testimony": testimony,
    "rectify": rectify,
}
# What stands between a user and a method.
ROOMS = {"rectify": ("cli", "rectification", "tables", "review", "io", "docket", "_files")}


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
    rooms = ROOMS.get(name)
    found = {f: v for f, v in found.items() if rooms is None or f.startswith(rooms)}
    for file, functions in found.items():
        print(f"{file}: {', '.join(functions)}")
    print(f"{sum(map(len, found.values()))} functions in {len(found)} files")


if __name__ == "__main__":
    main(*(sys.argv[1:] or ["fit"]))
