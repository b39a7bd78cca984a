"""Networks that take candidate sets label-first or set-first, at about equal compute.

run    cells, seeds and methods that the store lacks, then the table: hours. It may be stopped at
       any moment and begun again. Settings were found on seeds 100 to 104.
table  means in per cent, test / training, and paired p against K label-first networks
"""

from __future__ import annotations

import json
import time
from itertools import product
from typing import Any

import numpy as np
import torch
from _common import ROOT, add_line, make_parser, read_lines
from scipy import stats

from appellate import datasets
from appellate.datasets import make_partial_labels
from appellate.deep import (
    Ambiguity,
    Contrast,
    Network,
    Optimizer,
    PiCOClassifier,
    PRODENClassifier,
)
from appellate.experiments.protocol import split_rows

STORE = ROOT / "build" / "deep-evidence.jsonl"
TABLES = ("lost", "msrcv2")
IMAGES = (
    *("fashion-bags", "fashion-uniform", "fashion-tail", "fashion-instance"),
    *("cifar-bags", "cifar-tail"),
)
PEOPLE = ("cifar10n", "cifar10h")
PICO = ("pico-fashion-bags", "pico-cifar-bags")
ROWS, TEST_ROWS = 4000, 4000

#: Of every method: parameters beside the cell's. K networks each have all epochs.
METHODS: dict[str, dict[str, Any]] = {
    "five": {"n_networks": 5},
    "plcp": {"partner": "non-candidate"},
    "in-sample": {"ambiguity": 0.5, "n_networks": 5},
    "honest": {"ambiguity": Ambiguity("auto", targets="honest"), "n_networks": 5},
    "auto": {"ambiguity": "auto", "n_networks": 5},
}


def load(cell: str, seed: int) -> tuple[Any, ...]:
    """Training rows, candidates and truth; test rows and truth."""
    if cell in TABLES:
        X, candidates, y = getattr(datasets, f"load_{cell}")(return_X_candidates_y=True)
        train, test = split_rows(len(X), seed)
        return X[train], candidates[train], y[train], X[test], y[test]
    rng = np.random.RandomState(seed)
    if cell in PEOPLE:
        data = getattr(datasets, f"load_{cell}")()
        order = rng.permutation(len(data.images))
        rows, seen = order[: ROWS // 2], order[ROWS // 2 :][:TEST_ROWS]
        test = datasets.load_cifar10(subset="test")
        X, Y, y = data.images[rows], data.candidates[rows], data.y_true[rows]
        if cell == "cifar10h":  # its pictures are the test set: other ones of it are tested
            return X, Y, y, data.images[seen], data.y_true[seen]
        return X, Y, y, test.images[:TEST_ROWS], test.y_true[:TEST_ROWS]
    loader = datasets.load_cifar10 if "cifar" in cell else datasets.load_fashion_mnist
    data, test = loader(), loader(subset="test")
    n = ROWS // 2 if "cifar" in cell else ROWS
    tail = cell.endswith(("bags", "tail"))
    chosen = _draw(data.y_true, n, tail, rng)
    seen = _draw(test.y_true, TEST_ROWS, tail, rng)
    y, X = data.y_true[chosen], data.images[chosen]
    options: dict[str, Any] = {"flip_probability": 0.7 if cell.endswith("uniform") else 0.4}
    strategy = "uniform"
    if cell.endswith("bags"):
        bags = np.repeat(np.arange(n), rng.randint(4, 7, size=n))[:n]
        strategy, options = "set_first", {"bags": bags}
    elif cell.endswith("instance"):
        strategy = "instance_dependent"
        options["X"] = X.reshape(n, -1) / 255
    Y = make_partial_labels(y, strategy=strategy, classes=range(10), random_state=seed, **options)
    return X, Y, y, test.images[seen], test.y_true[seen]


def _draw(y: Any, n: int, tail: bool, rng: np.random.RandomState) -> Any:
    """Rows at random; with a tail the last class is twenty times rarer than the first."""
    weights = (20.0 ** (-np.arange(10) / 9) if tail else np.ones(10))[y]
    return rng.choice(len(y), n, replace=False, p=weights / weights.sum())


def make(cell: str, method: str, seed: int) -> Any:
    """Make the classifier of a cell."""
    more = METHODS[method] | {"random_state": seed}
    adam = {"learning_rate": 2e-3, "weight_decay": 1e-4, "schedule": "cosine"}
    if cell.startswith("pico"):
        network = Network("mlp", hidden=(256, 128))
        if "cifar" in cell:
            network = Network(small_cnn)
        more |= {"n_networks": 3} if "n_networks" in more else {}
        return PiCOClassifier(
            network,
            n_epochs=20,
            optimizer=Optimizer("adam", batch_size=128, **adam),
            contrast=Contrast(queue_size=1024, projection_size=64),
            **more,
        )
    if cell in TABLES:
        network, epochs, batch = Network("mlp", hidden=(200, 200)), 120, 64
    elif "fashion" in cell:
        network, epochs, batch = Network("mlp", hidden=(256, 128)), 20, 128
    else:
        network, epochs, batch = Network(small_cnn), 20, 128
        more |= {"n_networks": 3} if "n_networks" in more else {}
    optimizer = Optimizer("adam", batch_size=batch, **adam)
    return PRODENClassifier(network, n_epochs=epochs, optimizer=optimizer, **more)


def small_cnn(shape: tuple[int, ...], n_outputs: int | None) -> torch.nn.Module:
    """Three convolutions of 16 to 64 channels."""
    nn, layers = torch.nn, []
    for n_in, n_out in ((shape[0], 16), (16, 32), (32, 64)):
        layers += [nn.Conv2d(n_in, n_out, 3, padding=1), nn.BatchNorm2d(n_out), nn.ReLU()]
        layers += [nn.MaxPool2d(2)]
    layers += [nn.AdaptiveAvgPool2d(2), nn.Flatten()]
    return nn.Sequential(*layers, *([] if n_outputs is None else [nn.Linear(256, n_outputs)]))


def score(cell: str, method: str, seed: int) -> list[dict[str, Any]]:
    """Fit and score; the first of five networks is the one alone, to the bit."""
    X, Y, y, X_test, y_test = load(cell.removeprefix("pico-"), seed)
    began = time.process_time()
    model = make(cell, method, seed).fit(X, Y)
    found = {
        **{"cell": cell, "method": method, "seed": seed},
        "test": float(np.mean(model.predict(X_test) == y_test)),
        "training": float(np.mean(model.transduction_ == y)),
        "targets": model.targets_,
        "ambiguity": model.ambiguity_,
        "resemblance": model.resemblance_,
        "criterion": {k: round(v, 4) for k, v in model.criterion_.items()},
        "seconds": round(time.process_time() - began, 1),
    }
    if method != "five":
        return [found]
    test = float(np.mean(model.predict_heads(X_test)["base"].argmax(axis=1) == y_test))
    first = {"method": "one", "test": test, "training": float(np.mean(model.verdict_ == y))}
    return [found, found | first | {"seconds": round(found["seconds"] / 5, 1)}]


def run(cells: list[str], seeds: list[int], methods: list[str]) -> None:
    """Do what is not in the store."""
    torch.set_num_threads(1)
    done = {(r["cell"], r["method"], r["seed"]) for r in read_lines(STORE)}
    for seed, cell, method in product(seeds, cells, methods):
        if (cell, method, seed) in done:
            continue
        for found in score(cell, method, seed):
            add_line(STORE, found)
            print(json.dumps(found), flush=True)


def table() -> None:
    """Print means in per cent, test / training, and paired p against K label-first networks."""
    records = [r for r in read_lines(STORE) if r["seed"] < 100]
    by = {(r["cell"], r["method"], r["seed"]): r for r in records}
    for cell in dict.fromkeys(r["cell"] for r in records):
        print(f"\n{cell}")
        five = {s: r["test"] for (c, m, s), r in by.items() if (c, m) == (cell, "five")}
        for method in ("one", *METHODS):
            own = {s: r for (c, m, s), r in by.items() if (c, m) == (cell, method)}
            if not own:
                continue
            means = [100 * np.mean([r[k] for r in own.values()]) for k in ("test", "training")]
            line = f"  {method:10} {means[0]:5.1f} / {means[1]:5.1f}  ({len(own)} seeds)"
            both = sorted(own.keys() & five.keys())
            gaps = [own[s]["test"] - five[s] for s in both]
            if method != "five" and len(both) > 1 and np.ptp(gaps) > 0:
                p = stats.ttest_1samp(gaps, 0).pvalue
                line += f"  against five {100 * np.mean(gaps):+.1f} (p {p:.3f})"
            chosen = [r["targets"] for r in own.values()]
            line += f"  {', '.join(f'{c} {chosen.count(c)}' for c in sorted(set(chosen)))}"
            print(line + f"  {np.mean([r['seconds'] for r in own.values()]):.0f} s")


def main() -> None:
    """Run or show."""
    parser = make_parser(__doc__)
    parser.add_argument("what", choices=["run", "table"])
    parser.add_argument("--cells", default=",".join((*TABLES, *IMAGES, *PEOPLE, *PICO)))
    parser.add_argument("--seeds", default="0,1,2,3,4")
    parser.add_argument("--methods", default="five,auto,plcp,in-sample,honest")
    given = parser.parse_args()
    if given.what == "run":
        seeds = [int(seed) for seed in given.seeds.split(",")]
        run(given.cells.split(","), seeds, given.methods.split(","))
    table()


if __name__ == "__main__":
    main()
