"""Crowds: testimony beside crowd-kit and cleanlab, on real and generated answers.

The rivals run in an environment of their own, which the script makes in a temporary folder
(or finds in --environment); --alone leaves them out. Every method labels the training rows.
Its labels train the same kernel ridge for the test rows, but for testimony, which has a model.
What is printed: accuracy, log loss (probabilities floored at .001) and ECE of the training
labels, test accuracy, AUROC and average precision of "the label is wrong" by 1 - confidence and
of "the truth is among nobody's answers" by the mass outside the answers, seconds without the
kernel. Counts without names are given to the rivals as if the k-th vote were person k.
Generated crowds are drawn several times: means over the draws, and how far testimony is above
each rival in accuracy and test accuracy, draw by draw, with the standard error of that.
"""

from __future__ import annotations

import argparse
import json
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

PACKAGES = ["crowd-kit==1.4.*", "cleanlab==2.9.*", "scikit-learn", "pandas"]
RIVALS = ["MajorityVote", "DawidSkene", "OneCoinDawidSkene", "MACE", "GLAD", "CROWDLAB"]
SECONDS = 300  # after which a rival is given up


def describe_pictures(images):
    """HOG and colours of (n, 3, 32, 32) images: 49 blocks, mean and deviation of 16 cells."""
    pixels = images.astype(np.float32) / 255
    n, grey = len(pixels), pixels.mean(axis=1)
    down, right = np.gradient(grey, axis=(1, 2))
    strength = np.hypot(right, down)
    angle = np.arctan2(down, right) % np.pi / np.pi * 9
    low, part = np.floor(angle).astype(int) % 9, angle - np.floor(angle)
    cells = np.empty((n, 8, 8, 9), dtype=np.float32)
    for k in range(9):
        share = (low == k) * (1 - part) + ((low + 1) % 9 == k) * part
        cells[..., k] = (strength * share).reshape(n, 8, 4, 8, 4).sum(axis=(2, 4))
    blocks = np.concatenate(
        [cells[:, i : 7 + i, j : 7 + j] for i in (0, 1) for j in (0, 1)], axis=-1
    )
    blocks /= np.linalg.norm(blocks, axis=-1, keepdims=True) + 1e-2
    colours = pixels.reshape(n, 3, 4, 8, 4, 8)
    parts = blocks, colours.mean(axis=(3, 5)), colours.std(axis=(3, 5))
    return np.hstack([part.reshape(n, -1) for part in parts])


# -- data -------------------------------------------------------------------------------------


def load(name, draw):
    """Features, answers, truth, and features and truth to test on."""
    from appellate import datasets
    from appellate.candidates import as_answers

    if name.startswith("labelme"):
        data = datasets.load_labelme()
        X, answers = data.X, data.answers
        if name == "labelme-shuffled":
            X = np.random.default_rng(0).permutation(X)
        if name == "labelme-single":  # ordinary noisy labels: one answer a row
            rng = np.random.default_rng(0)
            one = [rng.choice(row[row >= 0]) for row in answers.table()]
            answers = as_answers(np.array(one), layout="labels", classes=range(8))
        return X, answers, data.y_true, data.X_test, data.y_test
    if name == "cifar10n":
        data = datasets.load_cifar10n()
        train, test = slice(3000), slice(10_000, 13_000)
        pictures = (describe_pictures(data.images[part]) for part in (train, test))
        X, X_test = pictures
        return X, data.answers[train], data.y_true[train], X_test, data.y_true[test]
    if name == "cifar10h":
        data = datasets.load_cifar10h()
        X, X_test = (describe_pictures(data.images[p]) for p in (slice(1000), slice(7000, 10_000)))
        return X, data.answers[:1000], data.y_true[:1000], X_test, data.y_true[7000:]
    options = GENERATED[name]
    data = datasets.make_ambiguous_classification(
        2000, 20, 8, class_sep=2.0, strategy="uniform", random_state=draw
    )
    answers = datasets.make_crowd(data.y_true[:1000], random_state=draw + 1, **options).answers
    X, y = data.X, data.y_true
    return X[:1000], answers, y[:1000], X[1000:], y[1000:]


GENERATED = {
    "workers": {"accuracy": 0.6},
    "spammers": {"accuracy": 0.7, "spammers": 0.5, "experts": 0.1},
    "confusions": {"accuracy": 0.6, "confusion": 0.9},
    "shared-errors": {"accuracy": 0.8, "shared_errors": 0.3},
    "many-answers": {"accuracy": 0.4, "n_answers": 10},
}
SETS = ["labelme", "labelme-shuffled", "labelme-single", "cifar10n", "cifar10h", *GENERATED]


def spread_out(answers):
    """Row, person and label of every vote; the k-th vote of a row is person k if unnamed."""
    times = np.ones(len(answers.rows), int)
    if answers.weights is not None:
        times = answers.weights.astype(int)
    rows, people, labels = (
        np.repeat(part, times) for part in (answers.rows, answers.people, answers.labels)
    )
    if answers.person_names is None:
        starts = np.searchsorted(rows, np.arange(len(answers)))
        people = np.arange(len(rows)) - starts[rows]
    return np.stack([rows, people, labels])


# -- ours -------------------------------------------------------------------------------------


def ours(X, answers, X_test):
    from appellate import TestimonyClassifier

    start = time.perf_counter()
    model = TestimonyClassifier().fit(X, answers)
    seconds = time.perf_counter() - start
    crowd = model.verdict_confidence_
    tested = model.predict_proba(X_test).argmax(axis=1)
    return {"testimony": (model.confidence_, seconds, tested), "crowd alone": (crowd, None, None)}


def measures(p, answered, truth, tested, y_test):
    from sklearn.metrics import average_precision_score, roc_auc_score

    rows, label = np.arange(len(truth)), p.argmax(axis=1)
    right, sure = label == truth, p.max(axis=1)
    bins = np.minimum((sure * 10).astype(int), 9)
    ece = sum(abs((sure - right)[bins == b].sum()) for b in range(10)) / len(truth)
    found = {
        "accuracy": right.mean(),
        "log loss": -np.log(np.maximum(p[rows, truth], 1e-3)).mean(),
        "ECE": ece,
        "test": np.mean(tested == y_test),
    }
    outside = ~answered[rows, truth]
    beyond = 1 - (p * answered).sum(axis=1)
    for word, event, score in (("wrong", ~right, 1 - sure), ("outside", outside, beyond)):
        some = 0 < event.sum() < len(event)
        found[f"{word} AUROC"] = roc_auc_score(event, score) if some else np.nan
        found[f"{word} AP"] = average_precision_score(event, score) if some else np.nan
    return found


def compare(name, rivals, draw):
    from appellate.testimony.features import Regressions

    X, answers, truth, X_test, y_test = load(name, draw)
    results = ours(X, answers, X_test) | rivals(name, X, answers)
    regressions, answered = Regressions(X, answers.shape[1]), answers.votes() > 0
    for method, (p, seconds, tested) in results.items():
        if tested is None:
            labels = np.eye(p.shape[1])[p.argmax(axis=1)]
            tested = regressions.model(labels).decision(X_test).argmax(axis=1)
        took = np.nan if seconds is None else seconds
        yield method, measures(p, answered, truth, tested, y_test) | {"seconds": took}


# -- rivals, in an environment of their own ---------------------------------------------------


def make_environment(folder):
    python = Path(folder) / "bin" / "python"
    if not python.exists():
        subprocess.run([sys.executable, "-m", "venv", folder], check=True)
        subprocess.run([python, "-m", "pip", "install", "-qq", *PACKAGES], check=True)
    return python


def run_rivals(python, rivals):
    def call(name, X, answers):
        with tempfile.TemporaryDirectory() as folder:
            given, found = Path(folder) / "in.npz", Path(folder) / "out.npz"
            l = len(answers.class_names)
            np.savez(given, X=X, votes=spread_out(answers), l=l, n=len(answers))
            command = [python, __file__, "--worker", str(given), str(found), "--rivals", *rivals]
            subprocess.run(command, check=True)
            with np.load(found) as out:
                seconds = json.loads(str(out["seconds"]))
                return {rival: (out[rival], took, None) for rival, took in seconds.items()}

    return call


def worker(given, found, rivals):
    """Run all rivals on one set; here appellate is not there."""
    with np.load(given) as data:
        X, votes, n, l = data["X"], data["votes"], int(data["n"]), int(data["l"])
    out, seconds = {}, {}
    for rival in rivals:
        signal.signal(signal.SIGALRM, give_up)
        signal.alarm(SECONDS)
        try:
            start = time.perf_counter()
            out[rival] = (
                crowdlab(X, votes, n, l) if rival == "CROWDLAB" else kit(rival, votes, n, l)
            )
            seconds[rival] = time.perf_counter() - start
        except Exception as error:
            print(f"    {rival}: {type(error).__name__} {error}", flush=True)
        finally:
            signal.alarm(0)
    np.savez(found, seconds=json.dumps(seconds), **out)


def give_up(*_):
    raise TimeoutError(f"given up after {SECONDS} s")


def kit(rival, votes, n, l):
    import pandas as pd
    from crowdkit import aggregation

    frame = pd.DataFrame(votes.T, columns=["task", "worker", "label"])
    options = {"random_state": 0} if rival == "MACE" else {}
    found = getattr(aggregation, rival)(**options).fit_predict_proba(frame)
    return found.reindex(index=range(n), columns=range(l)).fillna(0).to_numpy(dtype=float)


def crowdlab(X, votes, n, l):
    """Out-of-fold logistic regression on the majority vote, then CROWDLAB's posterior."""
    from cleanlab import multiannotator
    from sklearn.linear_model import LogisticRegression
    from sklearn.model_selection import cross_val_predict
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    rows, people, labels = votes
    table = np.full((n, people.max() + 1), np.nan)
    table[rows, people] = labels
    table = table[:, ~np.isnan(table).all(axis=0)]
    vote = multiannotator.get_majority_vote_label(table, verbose=False)
    model = make_pipeline(StandardScaler(), LogisticRegression(C=0.01, max_iter=1000))
    part = cross_val_predict(model, X, vote, cv=5, method="predict_proba")
    outside = np.full((n, l), 1e-6)
    outside[:, np.unique(vote)] = part
    kept = {}
    original = multiannotator._get_post_pred_probs_and_weights

    def keep(*args, **options):
        kept["answer"] = original(*args, **options)
        return kept["answer"]

    multiannotator._get_post_pred_probs_and_weights = keep
    multiannotator.get_label_quality_multiannotator(
        table, outside / outside.sum(axis=1, keepdims=True), verbose=False
    )
    return kept["answer"][0]


# -- what is printed --------------------------------------------------------------------------


def show(name, draws):
    """Print means over draws, and how far the first method is above the others in each."""
    first, *others = draws[0]
    print(f"\n{name}" + (f", mean of {len(draws)} draws" if len(draws) > 1 else ""))
    print(f"{'':18}" + "".join(f"{title:>15}" for title in draws[0][first]))
    for method in draws[0]:
        found = [list(draw[method].values()) for draw in draws if method in draw]
        figures = "".join(f"{x:15.3f}" if x == x else f"{'':15}" for x in np.mean(found, axis=0))
        print(f"{method:18}{figures}", flush=True)
    for method in others if len(draws) > 1 else ():
        pairs = [(draw[first], draw[method]) for draw in draws if method in draw]
        print(f"{first} - {method}".ljust(32), end="")
        for title in ("accuracy", "test"):
            gaps = [one[title] - other[title] for one, other in pairs]
            error = np.std(gaps, ddof=1) / np.sqrt(len(gaps))
            print(f"  {title} {np.mean(gaps):+.4f} (standard error {error:.4f})", end="")
        print(flush=True)


def main():
    form = argparse.RawDescriptionHelpFormatter  # not of _common, which the rivals cannot import
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=form)
    parser.add_argument("--sets", nargs="*", default=SETS, choices=SETS)
    parser.add_argument("--rivals", nargs="*", default=RIVALS, choices=RIVALS)
    parser.add_argument("--alone", action="store_true", help="without the rivals")
    parser.add_argument("--environment", help="folder of the rivals' environment")
    parser.add_argument("--draws", type=int, default=5, help="of every generated crowd")
    parser.add_argument("--first", type=int, default=0, help="seed of the first draw")
    parser.add_argument("--worker", nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.worker:
        return worker(*options.worker, options.rivals)
    with tempfile.TemporaryDirectory() as folder:
        rivals = lambda *_: {}  # noqa: E731
        if not options.alone:
            python = make_environment(options.environment or folder)
            rivals = run_rivals(python, options.rivals)
        for name in options.sets:
            draws = range(options.first, options.first + options.draws)
            draws = draws if name in GENERATED else draws[:1]
            show(name, [dict(compare(name, rivals, draw)) for draw in draws])
    return None


if __name__ == "__main__":
    sys.exit(main())
