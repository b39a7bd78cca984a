"""The same work by other packages: accuracy and CPU time, and the ratio within one run.

crowd       answers without features: testimony / Dawid-Skene of crowd-kit, 100,000 rows of three
            answers; testimony / GLAD of crowd-kit, 5,000 rows
features    answers and features: testimony / CROWDLAB (cleanlab) with a logistic regression, 5,000
            rows of three answers
candidates  candidate sets: light jury / logistic regression and gradient boosting of scikit-learn
            on expanded rows, one per candidate with the weight 1 / candidates, 3,000 rows

The other packages run in an environment of their own, which the script makes in a temporary
folder or finds in --environment. CPU time is that of the call alone, without imports and after a
call on few rows. robust-pll is not a package that can be installed, and is not compared.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

PARTS = ("crowd", "features", "candidates")
GOALS = {"DawidSkene": 2.0}  # times their CPU seconds


# -- data -----------------------------------------------------------------------------------


def make_answers(n, labels=10, workers=300):
    """Three answers per row by workers who differ in skill."""
    rng = np.random.default_rng(0)
    truth = rng.integers(labels, size=n)
    people = np.argpartition(rng.random((n, workers)), 3, axis=1)[:, :3]
    skill = rng.uniform(0.4, 0.95, workers)
    other = rng.integers(labels, size=(n, 3))
    said = np.where(rng.random((n, 3)) < skill[people], truth[:, np.newaxis], other)
    return np.stack([np.repeat(np.arange(n), 3), people.ravel(), said.ravel()]), truth


def make_rows(truth, labels=10, q=20):
    """Rows around one centre per label; the classes overlap."""
    rng = np.random.default_rng(1)
    return 0.8 * rng.normal(size=(labels, q))[truth] + rng.normal(size=(len(truth), q))


def make_sets(truth, labels=10):
    rng = np.random.default_rng(2)
    candidates = rng.random((len(truth), labels)) < 0.2
    candidates[np.arange(len(truth)), truth] = True
    return candidates


def make(part):
    """What the methods get, by its name, and the true labels."""
    if part == "crowd":
        return [(["DawidSkene"], *make_answers(100_000)), (["GLAD"], *make_answers(5_000))]
    votes, truth = make_answers(5_000)
    return [(["CROWDLAB"], votes, truth)]


# -- ours -----------------------------------------------------------------------------------


def took(call):
    start = time.process_time()
    out = call()
    return time.process_time() - start, out


def hear(votes, X):
    from appellate import TestimonyClassifier
    from appellate.candidates.answers import Answers

    rows, people, said = votes.astype(np.int32)
    n, workers = rows.max() + 1, people.max() + 1
    names = np.array([str(j) for j in range(10)])
    answers = Answers(rows, people, said, n, names, np.arange(workers).astype(str), None)
    TestimonyClassifier().fit(None if X is None else X[:300], answers[:300])
    seconds, model = took(lambda: TestimonyClassifier().fit(X, answers))
    return seconds, model.transduction_.astype(int)


def light_jury(X, candidates):
    from appellate import JuryClassifier

    JuryClassifier("kernel", random_state=0).fit(X[:300], candidates[:300])
    seconds, model = took(lambda: JuryClassifier("kernel", random_state=0).fit(X, candidates))
    return seconds, model.transduction_


# -- the others, in their environment -------------------------------------------------------


def worker(given, found):
    """Run one method; here appellate is not there."""
    from crowd import crowdlab, kit

    with np.load(given) as data:
        method, X, n = str(data["method"]), data.get("X"), int(data["n"])
        votes, candidates = data.get("votes"), data.get("candidates")
    few = 300

    def call(size):
        if candidates is not None:
            return expanded(method, X[:size], candidates[:size])
        some = votes[:, votes[0] < size]
        if method == "CROWDLAB":
            return crowdlab(X[:size], some, size, 10).argmax(axis=1)
        return kit(method, some, size, 10).argmax(axis=1)

    call(few)
    seconds, labels = took(lambda: call(n))
    np.savez(found, seconds=seconds, labels=labels)


def expanded(method, X, candidates):
    """Labels of the rows by a classifier of one row per candidate."""
    from sklearn.ensemble import HistGradientBoostingClassifier
    from sklearn.linear_model import LogisticRegression

    rows, labels = np.nonzero(candidates)
    weights = (1 / candidates.sum(axis=1))[rows]
    kinds = {
        "LogisticRegression": LogisticRegression(max_iter=1000),
        "HistGradientBoosting": HistGradientBoostingClassifier(random_state=0),
    }
    model = kinds[method].fit(X[rows], labels, sample_weight=weights)
    return np.where(candidates, model.predict_proba(X), -1).argmax(axis=1)


def ask(python, method, n, **arrays):
    """Run another package's method in its environment."""
    with tempfile.TemporaryDirectory() as folder:
        given, found = Path(folder) / "in.npz", Path(folder) / "out.npz"
        np.savez(given, method=method, n=n, **arrays)
        subprocess.run([python, __file__, "--worker", given, found], check=True)
        with np.load(found) as out:
            return float(out["seconds"]), out["labels"]


# -- what is printed ------------------------------------------------------------------------


def tell(ours, theirs, name, truth, n):
    own, other = (np.mean(each[1] == truth) for each in (ours, theirs))
    ratio = ours[0] / theirs[0]
    goal = ""
    if name in GOALS:
        goal = f"  goal {GOALS[name]:g} {'met' if ratio <= GOALS[name] else 'MISSED'}"
    print(
        f"  {name:<22} {n:>7} rows: accuracy {own:.3f} / {other:.3f}, "
        f"CPU {ours[0]:.2f} / {theirs[0]:.2f} s = {ratio:.2f}{goal}",
        flush=True,
    )


def compare(part, python):
    print(f"{part}: ours / theirs")
    if part == "candidates":
        truth = np.random.default_rng(0).integers(10, size=3_000)
        X, candidates = make_rows(truth), make_sets(truth)
        ours = light_jury(X, candidates)
        for name in ("LogisticRegression", "HistGradientBoosting"):
            theirs = ask(python, name, len(truth), X=X, candidates=candidates)
            tell(ours, theirs, name, truth, len(truth))
        return
    for methods, votes, truth in make(part):
        X = make_rows(truth) if part == "features" else None
        ours = hear(votes, X)
        more = {} if X is None else {"X": X}
        for name in methods:
            theirs = ask(python, name, len(truth), votes=votes, **more)
            tell(ours, theirs, name, truth, len(truth))


def main():
    form = argparse.RawDescriptionHelpFormatter  # not of _common, which the others cannot import
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=form)
    parser.add_argument("parts", nargs="*", metavar="part", help="of those above; all by default")
    parser.add_argument("--environment", help="folder of the other packages' environment")
    parser.add_argument("--worker", nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.worker:
        return worker(*options.worker)
    chosen = options.parts or PARTS
    if unknown := [name for name in chosen if name not in PARTS]:
        parser.error(f"no part {', '.join(unknown)}; there are {', '.join(PARTS)}")
    from crowd import make_environment

    with tempfile.TemporaryDirectory() as folder:
        python = make_environment(options.environment or folder)
        for part in chosen:
            compare(part, python)
    return None


if __name__ == "__main__":
    sys.exit(main())
