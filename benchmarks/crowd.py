"""Crowds and labelling functions: testimony compared with crowd-kit, cleanlab and Snorkel.

The other packages run in an environment of their own, which the script makes in a temporary
folder (or finds in --environment); --alone leaves them out, --keep stores their answers in a
folder and reads them from it the next time. Every method labels the training rows. Its labels
train the same kernel ridge for the test rows, except for testimony, which has a model.

Printed, over the rows that have an answer and a known true label: accuracy, log loss
(probabilities floored at .001), ECE, how many wrong labels the confidences expect divided by how
many are wrong, AUROC and average precision of "the label is wrong" by 1 - confidence, of "the
true label is not among the answers" by the mass outside the answers and of "the label that most
answers gave is wrong" by 1 - its probability (label_quality_), test accuracy, and seconds
without the kernel. Tied labels share one row: "majority" is the expected accuracy of a vote that
breaks ties at random. On single labels "cleanlab" is find_label_issues with an out-of-fold
logistic regression; its labels are the likeliest ones where it finds an issue, else those given.
Counts without names are given to the other packages as if the k-th vote came from annotator k.
Generated crowds are drawn several times: means over the draws, and how far testimony is above
each method in accuracy and test accuracy, draw by draw, with the standard error of the
difference.

Of annotators next to functions, testimony is tried with functions=True, False and "auto".

--panel tuning or --panel confirm runs the sets that constants were chosen on, or confirmed on.
"""

from __future__ import annotations

import argparse
import json
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np

PACKAGES = ["crowd-kit==1.4.*", "cleanlab==2.9.*", "scikit-learn", "pandas"]
RIVALS = ["MajorityVote", "DawidSkene", "OneCoinDawidSkene", "MACE", "GLAD", "CROWDLAB"]
FURTHER = ["Snorkel", "cleanlab"]  # Snorkel needs torch: install it in the environment first
SECONDS = 300  # after which a method is given up


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

    if name in ("labelme", "labelme-shuffled", "labelme-single"):
        data = datasets.load_labelme()
        X, answers = data.X, data.answers
        if name == "labelme-shuffled":
            X = np.random.default_rng(0).permutation(X)
        if name == "labelme-single":
            answers = one_answer(answers)
        return X, answers, data.y_true, data.X_test, data.y_test
    if name.startswith("cifar10n"):
        data = datasets.load_cifar10n()
        train, test = slice(3000), slice(10_000, 13_000)
        pictures = (describe_pictures(data.images[part]) for part in (train, test))
        X, X_test = pictures
        answers = data.answers[train]
        if name == "cifar10n-single":
            answers = one_answer(answers)
        return X, answers, data.y_true[train], X_test, data.y_true[test]
    if name == "cifar10h":
        data = datasets.load_cifar10h()
        X, X_test = (describe_pictures(data.images[p]) for p in (slice(1000), slice(7000, 10_000)))
        return X, data.answers[:1000], data.y_true[:1000], X_test, data.y_true[7000:]
    if name in STORED:
        return load_stored(name)
    if name in MIXED:
        return load_mixed(name)
    options = GENERATED[name]
    data = datasets.make_ambiguous_classification(
        2000, 20, 8, class_sep=2.0, strategy="uniform", random_state=draw
    )
    answers = datasets.make_crowd(data.y_true[:1000], random_state=draw + 1, **options).answers
    X, y = data.X, data.y_true
    return X[:1000], answers, y[:1000], X[1000:], y[1000:]


def one_answer(answers):
    """Ordinary noisy labels: one answer per row, drawn at random."""
    from appellate.candidates import as_answers

    rng, votes = np.random.default_rng(0), answers.votes()
    one = [rng.choice(len(row), p=row / row.sum()) for row in votes]
    return as_answers(np.array(one), layout="labels", classes=range(votes.shape[1]))


def load_stored(name):
    """A set of the data home's folder "crowds": answers, and perhaps features."""
    from appellate.candidates import as_answers
    from appellate.datasets import get_data_home

    with np.load(Path(get_data_home()) / "crowds" / f"{name}.npz") as data:
        part = dict(data)
    lines = [part[key].tolist() for key in ("rows", "labels", "people")]
    answers = as_answers(
        list(zip(*lines, strict=True)),
        layout="long",
        classes=range(int(part["l"])),
        items=range(int(part["n"])),
    )
    return part.get("X"), answers, part["truth"], part.get("X_test"), part.get("y_test")


def load_mixed(name):
    """Annotators next to labelling functions, one of the two kinds generated."""
    from appellate.datasets import make_crowd

    if name == "semeval-annotators":  # two answers of accuracy .6 per row, to 39 % functions
        X, answers, truth, X_test, y_test = load_stored("semeval")
        more = make_crowd(truth, accuracy=0.6, n_answers=2, n_people=20, random_state=100).answers
        return X, join(answers, more), truth, X_test, y_test
    X, answers, truth, X_test, y_test = load("labelme", 0)
    return X, join(answers, threshold_rules(X, truth)), truth, X_test, y_test


def join(answers, more):
    """Answers of two groups of sources to the same rows."""
    from appellate.candidates import as_answers

    parts = ((answers, "a"), (more, "b"))
    lines = [
        (row, label, f"{group}{person}")
        for part, group in parts
        for row, label, person in zip(part.rows, part.labels, part.people, strict=True)
    ]
    n, l = answers.shape
    return as_answers(lines, layout="long", classes=range(l), items=range(n))


def threshold_rules(X, truth, n_rules=8, seed=100):
    """Rules that say one label if one feature is large or small, about .5 to .95 precise."""
    from appellate.candidates import as_answers

    rng, n = np.random.default_rng(seed), len(truth)
    table = np.full((n, n_rules), -1)
    for j in range(n_rules):
        k, wanted, best = rng.integers(truth.max() + 1), rng.uniform(0.5, 0.95), np.inf
        for _ in range(60):
            feature = rng.choice([-1, 1]) * X[:, rng.integers(X.shape[1])]
            speaks = feature > np.quantile(feature, 1 - rng.uniform(0.02, 0.15))
            gap = abs(np.mean(truth[speaks] == k) - wanted) if speaks.any() else np.inf
            if gap < best:
                best = gap
                table[:, j] = np.where(speaks, k, -1)
    return as_answers(table, classes=range(truth.max() + 1))


MIXED = ["labelme-functions", "semeval-annotators"]
STORED = ["semeval", "web", "weather_amt", "youtube", "dog", "zencrowd_us"]
GENERATED = {
    "workers": {"accuracy": 0.6},
    "spammers": {"accuracy": 0.7, "spammers": 0.5, "experts": 0.1},
    "confusions": {"accuracy": 0.6, "confusion": 0.9},
    "shared-errors": {"accuracy": 0.8, "shared_errors": 0.3},
    "many-answers": {"accuracy": 0.4, "n_answers": 10},
}
SETS = [
    *("labelme", "labelme-shuffled", "labelme-single"),
    *("cifar10n", "cifar10n-single", "cifar10h"),
    *STORED,
    *MIXED,
    *GENERATED,
]
PANELS = {  # generated crowds of the tuning panel: --first 100
    "tuning": ["labelme", "semeval", "web", "weather_amt"],
    "confirm": ["youtube", "dog", "zencrowd_us", "cifar10n", "cifar10h"],
}


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


def ours(X, answers, X_test, mixed):
    from appellate import TestimonyClassifier

    if mixed:
        ways = {"functions": True, "as annotators": False, "auto": "auto"}
        models = {way: TestimonyClassifier(functions=f).fit(X, answers) for way, f in ways.items()}
        return {
            way: Labelling(m.confidence_, None, places(m, m.transduction_))
            for way, m in models.items()
        }

    start = time.perf_counter()
    model = TestimonyClassifier().fit(X, answers)
    seconds = time.perf_counter() - start
    found = {
        "testimony": Labelling(model.confidence_, seconds, places(model, model.transduction_))
    }
    if X is not None:
        found["testimony"].tested = places(model, model.predict(X_test))
        found["without features"] = Labelling(
            model.verdict_confidence_, None, places(model, model.verdict_)
        )
    return found


def places(model, labels):
    return np.searchsorted(model.classes_, labels)


@dataclass
class Labelling:
    """What a method says: probabilities, seconds, its labels, its labels of the test rows."""

    p: np.ndarray
    seconds: float | None = None
    labels: np.ndarray | None = None
    tested: np.ndarray | None = None


def measures(p, labels, votes, truth):
    """Scores of the rows that were answered and whose true label is known."""
    from sklearn.metrics import average_precision_score, roc_auc_score

    kept = (votes > 0).any(axis=1) & (truth >= 0)
    p, votes, truth = p[kept], votes[kept], truth[kept]
    answered, given = votes > 0, votes.argmax(axis=1)
    rows = np.arange(len(truth))
    top = p == p.max(axis=1, keepdims=True)
    right = top[rows, truth] / top.sum(axis=1)
    if labels is not None:
        right = (labels[kept] == truth).astype(float)
    sure = p.max(axis=1) if labels is None else p[rows, labels[kept]]
    bins = np.minimum((sure * 10).astype(int), 9)
    ece = sum(abs((sure - right)[bins == b].sum()) for b in range(10)) / len(truth)
    found = {
        "accuracy": right.mean(),
        "log loss": -np.log(np.maximum(p[rows, truth], 1e-3)).mean(),
        "ECE": ece,
        "expected/wrong": (1 - sure).sum() / max((1 - right).sum(), 1e-9),
    }
    outside = ~answered[rows, truth]
    beyond = 1 - (p * answered).sum(axis=1)
    for word, event, score in (
        ("wrong", right < 0.5, 1 - sure),
        ("outside", outside, beyond),
        ("given", given != truth, 1 - p[rows, given]),
    ):
        some = 0 < event.sum() < len(event)
        found[f"{word} AUROC"] = roc_auc_score(event, score) if some else np.nan
        found[f"{word} AP"] = average_precision_score(event, score) if some else np.nan
    return found


def compare(name, rivals, draw):
    from appellate.methods.testimony import majority_vote
    from appellate.methods.testimony.features import Regressions

    X, answers, truth, X_test, y_test = load(name, draw)
    results = ours(X, answers, X_test, name in MIXED)
    results["majority"] = Labelling(majority_vote(answers))
    results |= rivals(name, draw, X, answers)
    votes = answers.votes()
    regressions = None if X is None else Regressions(X, answers.shape[1])
    for method, said in results.items():
        found = measures(said.p, said.labels, votes, truth)
        if regressions is not None:
            if said.tested is None:
                labels = np.eye(said.p.shape[1])[said.p.argmax(axis=1)]
                said.tested = regressions.model(labels).decision(X_test).argmax(axis=1)
            found["test"] = np.mean(said.tested == y_test)
        yield method, found | {"seconds": np.nan if said.seconds is None else said.seconds}


# -- rivals, in an environment of their own ---------------------------------------------------


def make_environment(folder):
    python = Path(folder) / "bin" / "python"
    if not python.exists():
        subprocess.run([sys.executable, "-m", "venv", folder], check=True)
        subprocess.run([python, "-m", "pip", "install", "-qq", *PACKAGES], check=True)
    return python


def run_rivals(python, rivals, keep):
    def call(name, draw, X, answers):
        with tempfile.TemporaryDirectory() as folder:
            given = Path(folder) / "in.npz"
            place = folder if keep is None else keep
            found = Path(place) / f"{name}-{draw}.npz"
            if not found.exists():
                found.parent.mkdir(parents=True, exist_ok=True)
                parts = {} if X is None else {"X": X}
                l = len(answers.class_names)
                np.savez(given, votes=spread_out(answers), l=l, n=len(answers), **parts)
                command = [python, __file__, "--worker", given, found, "--rivals", *rivals]
                subprocess.run(list(map(str, command)), check=True)
            with np.load(found) as out:
                seconds = json.loads(str(out["seconds"]))
                return {
                    rival: Labelling(out[rival], took, out.get(f"{rival} labels"))
                    for rival, took in seconds.items()
                }

    return call


def worker(given, found, rivals):
    """Run all rivals on one set; here appellate is not there."""
    with np.load(given) as data:
        X = data.get("X")
        votes, n, l = data["votes"], int(data["n"]), int(data["l"])
    out, seconds = {}, {}
    for rival in rivals:
        if rival in ("CROWDLAB", "cleanlab") and X is None:
            continue
        signal.signal(signal.SIGALRM, give_up)
        signal.alarm(SECONDS)
        try:
            start = time.perf_counter()
            if rival == "CROWDLAB":
                out[rival] = crowdlab(X, votes, n, l)
            elif rival == "cleanlab":
                out[rival], out["cleanlab labels"] = label_issues(X, votes, n, l)
            else:
                out[rival] = (snorkel if rival == "Snorkel" else kit)(rival, votes, n, l)
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


def snorkel(_, votes, n, l):
    """Snorkel's LabelModel, 500 epochs."""
    from snorkel.labeling.model import LabelModel

    rows, people, labels = votes
    table = np.full((n, people.max() + 1), -1)
    table[rows, people] = labels
    model = LabelModel(cardinality=l, verbose=False)
    model.fit(table, n_epochs=500, seed=0, progress_bar=False)
    return model.predict_proba(table)


def label_issues(X, votes, n, l):
    """Out-of-fold logistic regression on one label per row, and the labels after the issues."""
    from cleanlab.filter import find_label_issues

    rows, _, given = votes
    if len(rows) != n or len(np.unique(rows)) != n:
        raise ValueError("only sets of one label per row")
    p = out_of_fold(X, given, l)
    issues = find_label_issues(given, p)
    return p, np.where(issues, p.argmax(axis=1), given)


def out_of_fold(X, labels, l):
    """Probabilities of a logistic regression on z-scores, five folds, (n, l)."""
    from sklearn.linear_model import LogisticRegression
    from sklearn.model_selection import cross_val_predict
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    model = make_pipeline(StandardScaler(), LogisticRegression(C=0.01, max_iter=1000))
    outside = np.full((len(X), l), 1e-6)
    outside[:, np.unique(labels)] = cross_val_predict(
        model, X, labels, cv=5, method="predict_proba"
    )
    return outside / outside.sum(axis=1, keepdims=True)


def crowdlab(X, votes, n, l):
    """Out-of-fold logistic regression on the majority vote, then CROWDLAB's posterior."""
    from cleanlab import multiannotator

    rows, people, labels = votes
    table = np.full((n, people.max() + 1), np.nan)
    table[rows, people] = labels
    table = table[:, ~np.isnan(table).all(axis=0)]
    given = ~np.isnan(table).all(axis=1)  # CROWDLAB refuses rows without answers
    X, table, whole = X[given], table[given], np.full((n, l), 1 / l)
    vote = multiannotator.get_majority_vote_label(table, verbose=False)
    outside = out_of_fold(X, vote, l)
    kept = {}
    original = multiannotator._get_post_pred_probs_and_weights

    def keep(*args, **options):
        kept["answer"] = original(*args, **options)
        return kept["answer"]

    multiannotator._get_post_pred_probs_and_weights = keep
    multiannotator.get_label_quality_multiannotator(table, outside, verbose=False)
    whole[given] = kept["answer"][0]
    return whole


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
            if title not in pairs[0][0]:
                continue
            gaps = [one[title] - other[title] for one, other in pairs]
            error = np.std(gaps, ddof=1) / np.sqrt(len(gaps))
            print(f"  {title} {np.mean(gaps):+.4f} (standard error {error:.4f})", end="")
        print(flush=True)


def main():
    form = argparse.RawDescriptionHelpFormatter  # not of _common, which the rivals cannot import
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=form)
    parser.add_argument("--sets", nargs="*", default=SETS, choices=SETS)
    parser.add_argument("--panel", choices=PANELS, help="in place of --sets")
    parser.add_argument("--rivals", nargs="*", default=RIVALS, choices=[*RIVALS, *FURTHER])
    parser.add_argument("--keep", help="folder that stores what the other packages answered")
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
            rivals = run_rivals(python, options.rivals, options.keep)
        for name in PANELS.get(options.panel, options.sets):
            draws = range(options.first, options.first + options.draws)
            draws = draws if name in GENERATED else draws[:1]
            show(name, [dict(compare(name, rivals, draw)) for draw in draws])
    return None


if __name__ == "__main__":
    sys.exit(main())
