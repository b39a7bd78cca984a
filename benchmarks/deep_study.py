"""Deep PLCP on images and tables: base, coupled, controls and ablations, on paired seeds.

run    runs that the store lacks, then the tables: half an hour. It may be stopped at any moment
       and begun again.
table  the tables alone

Tables are printed, and with --write they replace those of a page (docs/results_networks.md). It
reads Fashion-MNIST, CIFAR-10, CIFAR-10N, Lost, MSRCv2 and FG-NET from the data home.
"""

from __future__ import annotations

import json
import os
import time
from concurrent.futures import ProcessPoolExecutor, as_completed
from functools import lru_cache
from itertools import product
from pathlib import Path

import numpy as np
from _common import ROOT, add_line, make_parser, read_lines, replace_measured, table

from appellate.metrics import candidate_likelihood, covering_rate, paired_comparison

STORE = ROOT / "build" / "deep-study.jsonl"
MARKS = "<!-- study: written by benchmarks/deep_study.py -->", "<!-- end of study -->"
SEEDS = range(5)
FLIPS = (0.1, 0.3, 0.5)
HEADS = ("base", "partner", "mean")

# The base of "independent" and of "uncoupled" is the base alone, bit for bit (tests/deep).
VARIANTS = {
    "independent": {"partner": "independent"},
    "plcp": {"partner": "non-candidate"},
    "uncoupled": {"partner": "non-candidate", "collaboration": 0.0},
    "no blur": {"partner": "non-candidate", "blur": None},
    "partner O": {"partner": "candidate"},
}


def small_convnet(shape, n_outputs):
    """Three convolutions of stride two, 16-32-64 channels: 5000 images a second on one core."""
    from torch import nn

    layers, n_in = [], shape[0]
    for n_out in (16, 32, 64):
        convolution = nn.Conv2d(n_in, n_out, 3, stride=2, padding=1, bias=False)
        layers += [convolution, nn.BatchNorm2d(n_out), nn.ReLU()]
        n_in = n_out
    layers.append(nn.Flatten())
    side = -(-shape[1] // 8)
    if n_outputs is not None:
        layers.append(nn.Linear(64 * side**2, n_outputs))
    return nn.Sequential(*layers)


PROBLEMS = {
    "fashion": {
        "rows": 3000,
        "method": "PRODEN",
        "settings": {
            "network": "mlp",
            "hidden": (256, 128),
            "n_epochs": 20,
            "optimizer": "sgd",
            "batch_size": 128,
            "learning_rate": 0.02,
        },
    },
    "cifar10": {
        "rows": 2000,
        "method": "PRODEN",
        "settings": {
            "network": small_convnet,
            "n_epochs": 8,
            "optimizer": "sgd",
            "batch_size": 128,
            "learning_rate": 0.02,
            "augmentation": "crop_flip",
        },
    },
    "fashion-pico": {
        "rows": 1500,
        "method": "PiCO",
        "settings": {
            "network": small_convnet,
            "n_epochs": 12,
            "optimizer": "sgd",
            "batch_size": 128,
            "learning_rate": 0.05,
            "queue_size": 1024,
            "key_momentum": 0.99,
            "prototype_start": 4,
        },
    },
}
PROBLEMS["cifar10n"] = PROBLEMS["cifar10"]
TABLES = ("lost", "msrcv2", "fgnet")
TABLE_SETTINGS = {
    "network": "mlp",
    "hidden": (300, 300, 300),
    "norm": "after",
    "n_epochs": 200,
    "batch_size": 256,
    "optimizer": "adam",
    "learning_rate": 1e-3,
    "weight_decay": 0.0,
    "schedule": "constant",
    "standardize": False,
}
TABLE_VARIANTS = ("independent", "plcp", "kernel")


def plan():
    jobs = [
        {"problem": name, "flip": flip, "seed": seed, "variant": variant}
        for name in ("fashion", "cifar10")
        for variant, seed, flip in product(VARIANTS, SEEDS, FLIPS)
    ]
    jobs += [
        {"problem": "fashion-pico", "flip": flip, "seed": seed, "variant": variant}
        for variant, seed, flip in product(("independent", "plcp", "uncoupled"), SEEDS, FLIPS)
    ]
    jobs += [
        {"problem": "cifar10n", "flip": None, "seed": seed, "variant": variant}
        for variant, seed in product(VARIANTS, SEEDS)
    ]
    jobs += [
        {"problem": name, "flip": 0.0, "seed": seed, "variant": variant}
        for name in ("fashion", "cifar10")
        for variant, seed in product(("independent", "plcp"), SEEDS)
    ]
    jobs += [
        {"problem": name, "split": split, "variant": variant, "inner": False}
        for name, variant, split in product(TABLES, TABLE_VARIANTS, range(10))
    ]
    jobs += [
        {"problem": name, "split": split, "variant": variant, "inner": True}
        for name, variant, split in product(TABLES, TABLE_VARIANTS, range(2))
    ]
    return jobs


# -- one run ------------------------------------------------------------------------------


def run(job):
    import torch

    torch.set_num_threads(1)
    start = time.perf_counter()
    result = run_table(job) if "split" in job else run_images(job)
    return {**job, **result, "seconds": round(time.perf_counter() - start, 1)}


@lru_cache(maxsize=2)
def load_images(name):
    from appellate import datasets

    load = getattr(datasets, {"fashion": "load_fashion_mnist"}.get(name, f"load_{name}"))
    train = load(download_if_missing=False)
    plain = datasets.load_fashion_mnist if name == "fashion" else datasets.load_cifar10
    test = plain(subset="test", download_if_missing=False)
    return train, test


def run_images(job):
    from appellate.datasets import make_partial_labels
    from appellate.experiments.networks.configuration import make_classifier

    problem, seed = PROBLEMS[job["problem"]], job["seed"]
    train, test = load_images(job["problem"].removesuffix("-pico"))
    rows = np.random.default_rng([1, seed]).permutation(len(train.y_true))[: problem["rows"]]
    truth = train.y_true[rows]
    if job["flip"] is None:
        candidates = train.candidates[rows]
    else:
        candidates = make_partial_labels(
            truth,
            flip_probability=job["flip"],
            classes=np.arange(10),
            random_state=np.random.default_rng([2, seed]),
        )
    settings = {**problem["settings"], **VARIANTS[job["variant"]]}
    model = make_classifier(problem["method"], settings, random_state=seed)
    model.fit(train.images[rows], candidates)
    return judge(
        model.predict_heads(test.images),
        test.y_true,
        {
            n: np.where(candidates, p, -1)
            for n, p in model.predict_heads(train.images[rows]).items()
        },
        truth,
    )


def run_table(job):
    from appellate import PLCPClassifier
    from appellate.experiments.networks.configuration import make_classifier
    from appellate.experiments.problems import load_problem
    from appellate.experiments.protocol import split_rows

    problem, split = load_problem(job["problem"]), job["split"]
    train, test = split_rows(len(problem.X), split)
    if job["inner"]:  # to choose a method by: a fifth of the training rows
        order = np.random.default_rng([3, split]).permutation(len(train))
        train, test = train[order[len(order) // 5 :]], train[order[: len(order) // 5]]
    X, candidates = problem.X[train], problem.candidates[train]
    if job["variant"] == "kernel":
        base = make_classifier("PRODEN", TABLE_SETTINGS, random_state=split, warm_start=True)
        model = PLCPClassifier(base, max_rounds=2)
    else:
        settings = TABLE_SETTINGS | VARIANTS[job["variant"]]
        model = make_classifier("PRODEN", settings, random_state=split)
    model.fit(X, candidates)
    scores = {}
    for head in HEADS:
        model.set_params(head=head)
        probabilities = model.predict_proba(problem.X[test])
        predicted = probabilities.argmax(axis=1)
        sets, names = problem.candidates[test], np.arange(candidates.shape[1])
        scores[f"covering {head}"] = covering_rate(sets, predicted, classes=names)
        scores[f"likelihood {head}"] = candidate_likelihood(
            sets, np.log(np.maximum(probabilities, 1e-12)), classes=names
        )
        if not job["inner"]:
            scores[f"test {head}"] = float(np.mean(predicted == problem.truth[test]))
    if not job["inner"]:
        scores["transductive"] = float(np.mean(model.transduction_ == problem.truth[train]))
        scores["transductive base"] = float(np.mean(model.verdict_ == problem.truth[train]))
    return scores


def judge(tested, truth, trained, own_truth):
    scores = {}
    for head in HEADS:
        scores[f"test {head}"] = float(np.mean(tested[head].argmax(axis=1) == truth))
        labels = trained[head].argmax(axis=1)
        scores[f"transductive {head}"] = float(np.mean(labels == own_truth))
    return scores


# -- the tables ---------------------------------------------------------------------------


class Results:
    def __init__(self, records):
        self._records = records

    def series(self, score, **wanted):
        found = [r for r in self._records if all(r.get(k) == v for k, v in wanted.items())]
        found.sort(key=lambda r: r.get("seed", r.get("split")))
        return np.array([100 * r[score] for r in found])

    def hours(self):
        return sum(r["seconds"] for r in self._records) / 3600


def cell(ours, base=None):
    text = f"{ours.mean():.2f} ± {ours.std(ddof=1):.2f}"
    if base is None:
        return text
    compared = paired_comparison(ours, base)
    star = " *" if compared.t_pvalue < 0.05 else ""
    return f"{text} ({compared.difference:+.2f}{star})"


ROWS = (
    ("base alone", "independent", "base"),
    ("**PLCP, mean of both**", "plcp", "mean"),
    ("PLCP, base head", "plcp", "base"),
    ("PLCP, partner head", "plcp", "partner"),
    ("two bases, mean (control)", "independent", "mean"),
    ("partner without coupling, mean", "uncoupled", "mean"),
    ("ablation: no blur, mean", "no blur", "mean"),
    ("ablation: partner O, mean", "partner O", "mean"),
)


def image_table(results, problem, flips, score):
    rows = []
    for title, variant, head in ROWS:
        cells = [title]
        for flip in flips:
            wanted = {"problem": problem, "flip": flip}
            ours = results.series(f"{score} {head}", variant=variant, **wanted)
            base = results.series(f"{score} base", variant="independent", **wanted)
            alone = title == "base alone"
            cells.append(cell(ours, None if alone else base) if len(ours) else "")
        if any(cells[1:]):
            rows.append(cells)
    return table(["", *("CIFAR-10N" if q is None else f"q = {q:g}" for q in flips)], rows)


def pooled(results, problem, flips, first, second, score="test"):
    """First minus second over all seeds and q, with the paired t-test."""
    pair = []
    for variant, head in (first, second):
        parts = [
            results.series(f"{score} {head}", variant=variant, problem=problem, flip=flip)
            for flip in flips
        ]
        pair.append(np.concatenate(parts))
    if not len(pair[0]):
        return ""
    compared = paired_comparison(*pair)
    return f"{compared.difference:+.2f} (p = {compared.t_pvalue:.3f}, n = {compared.n_splits})"


COMPARISONS = (
    ("PLCP base head minus base alone", ("plcp", "base"), ("independent", "base")),
    ("no blur, base head minus base alone", ("no blur", "base"), ("independent", "base")),
    ("PLCP mean minus base alone", ("plcp", "mean"), ("independent", "base")),
    ("two bases, mean minus base alone", ("independent", "mean"), ("independent", "base")),
    ("PLCP mean minus two bases, mean", ("plcp", "mean"), ("independent", "mean")),
    ("PLCP mean minus partner without coupling, mean", ("plcp", "mean"), ("uncoupled", "mean")),
)


def comparison_table(results):
    problems = {
        "fashion": FLIPS,
        "cifar10": FLIPS,
        "cifar10n": (None,),
        "fashion-pico": FLIPS,
    }
    rows = [
        [title, *(pooled(results, p, flips, first, second) for p, flips in problems.items())]
        for title, first, second in COMPARISONS
    ]
    return table(["points, pooled over q", *problems], rows)


TABLE_ROWS = (
    ("PRODEN alone", "independent", "base"),
    ("PRODEN-PLCP (deep partner), mean", "plcp", "mean"),
    ("PRODEN-PLCP, base head", "plcp", "base"),
    ("two PRODENs, mean (control)", "independent", "mean"),
    ("PRODEN under the kernel partner, partner head", "kernel", "partner"),
    ("PRODEN under the kernel partner, mean", "kernel", "mean"),
)


def real_world_table(results):
    rows = []
    for title, variant, head in TABLE_ROWS:
        cells = [title]
        for problem in TABLES:
            wanted = {"problem": problem, "inner": False}
            ours = results.series(f"test {head}", variant=variant, **wanted)
            base = results.series("test base", variant="independent", **wanted)
            cells.append(cell(ours, None if title == "PRODEN alone" else base))
        rows.append(cells)
    chosen = ["**chosen without true labels**"]
    for problem in TABLES:
        wanted = {"problem": problem, "inner": True}
        scores = [
            results.series(f"likelihood {head}", variant=variant, **wanted).mean()
            for _, variant, head in TABLE_ROWS
        ]
        title, variant, head = TABLE_ROWS[int(np.argmax(scores))]
        ours = results.series(f"test {head}", variant=variant, problem=problem, inner=False)
        chosen.append(f"**{cell(ours)}** ({title})")
    return table(["", *TABLES], [*rows, chosen])


def report(results):
    parts = []
    for problem, flips, title in (
        ("fashion", (*FLIPS, 0.0), "PRODEN on Fashion-MNIST"),
        ("cifar10", (*FLIPS, 0.0), "PRODEN on CIFAR-10"),
        ("cifar10n", (None,), "PRODEN on CIFAR-10N"),
        ("fashion-pico", FLIPS, "PiCO on Fashion-MNIST"),
    ):
        for score, name in (("test", "test accuracy"), ("transductive", "transductive accuracy")):
            columns = [q for q in flips if q != 0.0] if score == "transductive" else flips
            parts.append(
                f"### {title}: {name} in %\n\n{image_table(results, problem, columns, score)}"
            )
            if 0.0 in columns:
                parts[-1] += "\n\n" + supervised_line(results, problem)
    parts.insert(0, f"### All comparisons at once\n\n{comparison_table(results)}")
    parts.append(
        f"### PRODEN with an MLP on tables: test accuracy in %\n\n{real_world_table(results)}"
    )
    parts.append(f"The runs add up to {results.hours():.1f} hours on one busy core each.")
    return "\n\n".join(parts)


def supervised_line(results, problem):
    wanted = {"problem": problem, "flip": 0.0}
    alone = results.series("test base", variant="independent", **wanted)
    coupled = results.series("test base", variant="plcp", **wanted)
    same = "bit for bit the same" if np.array_equal(alone, coupled) else "not the same"
    return f"Fully supervised (q = 0): the base head of PLCP is {same} as the base alone."


def main():
    parser = make_parser(__doc__)
    parser.add_argument("what", choices=["run", "table"])
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="runs at a time")
    parser.add_argument("--write", type=Path, metavar="PAGE", help="replace its tables")
    options = parser.parse_args()
    records = read_lines(STORE)
    done = {key(record) for record in records}
    left = [job for job in plan() if options.what == "run" and key(job) not in done]
    with ProcessPoolExecutor(options.jobs) as pool:
        for number, future in enumerate(as_completed([pool.submit(run, j) for j in left]), 1):
            records.append(future.result())
            add_line(STORE, records[-1])
            print(f"[{number}/{len(left)}]", json.dumps(records[-1]), flush=True)
    if not records:
        parser.error(f"there is no run in {STORE}; begin with 'run'")
    text = report(Results(records))
    print(text)
    if options.write:
        replace_measured(options.write, *MARKS, text)


def key(job):
    names = ("problem", "flip", "seed", "split", "variant", "inner")
    return tuple(job.get(name) for name in names)


if __name__ == "__main__":
    main()
