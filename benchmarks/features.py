"""Features of every kind: what many rows cost, and what text, numbers and pictures are worth.

scale     100,000 rows of numbers, categories and text: time against doing it by hand, and memory
text      right labels of rows and of new rows, against a majority vote and TF-IDF
numbers   right labels by numbers, by text and by both
pictures  right labels of Fashion-MNIST by histograms alone

Text is real: sentences of scipy's own documentation, whose label is the part of scipy that they
are from. Pictures are those of Fashion-MNIST in the data home (APPELLATE_DATA_HOME). What people
say of them is generated: three people, right in 55 of 100 cases, or sets with one in three of the
other labels. Seeds are 100 and up.
"""

from __future__ import annotations

import importlib
import inspect
import re
import tempfile
import time
from pathlib import Path

import numpy as np
import pandas as pd
from _common import peak_bytes, run_parts
from sklearn.compose import ColumnTransformer
from sklearn.decomposition import TruncatedSVD
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

import appellate

MODULES = ("stats", "signal", "optimize", "linalg", "sparse", "special", "ndimage", "fft")
RULE = r">>>|----|Parameters|\.\. |:math:|Returns"


def read_sentences():
    found = {}
    for part in MODULES:
        module = importlib.import_module(f"scipy.{part}")
        for name in sorted(name for name in dir(module) if not name.startswith("_")):
            document = inspect.getdoc(getattr(module, name)) or ""
            for paragraph in document.split("\n\n")[:6]:
                text = " ".join(paragraph.split())
                if len(text.split()) >= 6 and not re.search(RULE, text):
                    found.setdefault(text.split(". ")[0][:200], part)
    return np.array(list(found)), np.array(list(found.values()))


def ask_people(random, truth, names, right=0.55, people=3):
    wrong = random.choice(names, (people, len(truth)))
    return np.where(random.random((people, len(truth))) < right, truth, wrong)


def draw_sets(random, truth, names, share=1 / 3):
    drawn = random.random((len(truth), len(names))) < share
    return drawn | (truth[:, None] == names)


def majority(votes, names, random):
    return names[(votes + random.random(votes.shape) / 10).argmax(axis=1)]


def compare_texts(n=1500):
    print("sentences of scipy's documentation: right labels of the rows, and of new rows")
    texts, truth = read_sentences()
    names = np.unique(truth)
    for kind in ("answers", "sets"):
        for seed in (100, 101, 102):
            random = np.random.default_rng(seed)
            order = random.permutation(len(texts))
            old, new = order[:n], order[n:]
            frame = pd.DataFrame({"text": texts[old]})
            if kind == "answers":
                said = ask_people(random, truth[old], names)
                votes = (said[:, :, None] == names).sum(axis=0)
                for j, column in enumerate(said):
                    frame[f"annotator {j}"] = column
                where = {"annotators": "annotator*"}
            else:
                votes = draw_sets(random, truth[old], names)
                frame["maybe"] = ["|".join(names[row]) for row in votes]
                where = {"candidates": "maybe"}
            simple = majority(votes, names, random)
            rival = make_pipeline(TfidfVectorizer(), LogisticRegression(max_iter=1000))
            rival.fit(texts[old], simple)
            run = appellate.rectify(frame, text="text", truth=False, id=False, **where)
            labels = run.labels["label"].to_numpy()
            foretold = run.predict(pd.DataFrame({"text": texts[new]}))["label"].to_numpy()
            print(
                f"{kind:8} seed {seed}: majority {np.mean(simple == truth[old]):.3f}, TF-IDF and "
                f"logistic regression {np.mean(rival.predict(texts[old]) == truth[old]):.3f} "
                f"(new {np.mean(rival.predict(texts[new]) == truth[new]):.3f}), ours "
                f"{np.mean(labels == truth[old]):.3f} (new {np.mean(foretold == truth[new]):.3f})",
                flush=True,
            )


def compare_numbers(n=800):
    print("numbers beside text: right labels, sets")
    texts, truth = read_sentences()
    names = np.unique(truth)
    for seed in (100, 101, 102):
        random = np.random.default_rng(seed)
        some = random.permutation(len(texts))[:n]
        own = truth[some]
        frame = pd.DataFrame({"text": texts[some]})
        for j in range(4):  # each tells two halves of the parts apart, with noise
            side = np.isin(own, random.permutation(names)[: len(names) // 2])
            frame[f"number {j}"] = 1.5 * side + random.normal(size=n)
        frame["maybe"] = ["|".join(names[row]) for row in draw_sets(random, own, names, 0.5)]
        given = {"candidates": "maybe", "truth": False, "id": False}
        found = {
            "numbers": appellate.rectify(frame.drop(columns="text"), **given),
            "text": appellate.rectify(frame[["text", "maybe"]], text="text", **given),
            "both": appellate.rectify(frame, text="text", **given),
        }
        right = {name: np.mean(run.labels["label"] == own) for name, run in found.items()}
        print(f"seed {seed}: " + ", ".join(f"{k} {v:.3f}" for k, v in right.items()), flush=True)


def compare_pictures(n=600):
    print("Fashion-MNIST by histograms alone: right labels, sets")
    from PIL import Image

    from appellate.datasets.images import load_fashion_mnist

    pixels, codes = load_fashion_mnist(download_if_missing=False, return_X_y=True)
    for seed in (100, 101):
        random = np.random.default_rng(seed)
        some = random.permutation(len(codes))[:n]
        names = np.array([f"kind {j}" for j in range(10)])
        own = names[codes[some]]
        with tempfile.TemporaryDirectory() as folder:
            for i, place in enumerate(some):
                Image.fromarray(pixels[place].reshape(28, 28)).save(f"{folder}/{i}.png")
            frame = pd.DataFrame({"photo": [f"{folder}/{i}.png" for i in range(n)]})
            frame["maybe"] = ["|".join(names[row]) for row in draw_sets(random, own, names)]
            run = appellate.rectify(frame, candidates="maybe", image="photo", truth=False)
        print(f"seed {seed}: {np.mean(run.labels['label'] == own):.3f}", flush=True)


def measure_scale(n=100_000):
    print(f"{n} rows of 10 numbers, 3 categories and 1 text")
    from appellate.tables import features, find_roles, make_encoder, read_table
    from appellate.tables.encoding import encode

    random = np.random.default_rng(100)
    texts, _ = read_sentences()
    words = np.array(sorted({word for text in texts for word in text.split()}))
    frame = {f"number {j}": random.normal(size=n) for j in range(10)}
    frame |= {
        f"kind {j}": random.choice([f"k{i}" for i in range(9 + 40 * j)], n) for j in range(3)
    }
    frame["text"] = [" ".join(row) for row in random.choice(words, (n, 20))]
    frame["maybe"] = random.choice(["a|b", "b|c", "a", "c"], n)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "table.parquet")
        pd.DataFrame(frame).to_parquet(path)
        del frame
        worked = time.process_time()
        by_hand(pd.read_parquet(path))
        peer, worked = time.process_time() - worked, time.process_time()
        table = read_table(path)
        roles = find_roles(table, candidates="maybe", text="text")
        X = features(table, roles)
        rows = encode(make_encoder(X, text=roles.text), X, lambda text: None)
        ours = time.process_time() - worked
    peak = peak_bytes() / 2**30
    print(
        f"{rows.shape[1]} features in {ours:.1f} CPU seconds, {peak:.2f} GiB at most; by hand "
        f"{peer:.1f} CPU seconds: ratio {ours / peer:.1f}"
    )


def by_hand(frame):
    """What one would do instead: scaling, one number a category, 100 of TF-IDF by SVD."""
    numbers = [name for name in frame if name.startswith("number")]
    kinds = [name for name in frame if name.startswith("kind")]
    words = make_pipeline(TfidfVectorizer(), TruncatedSVD(100, random_state=0))
    steps = [("numbers", StandardScaler(), numbers), ("kinds", OneHotEncoder(), kinds)]
    return ColumnTransformer([*steps, ("words", words, "text")]).fit_transform(frame)


PARTS = {
    "scale": measure_scale,
    "text": compare_texts,
    "numbers": compare_numbers,
    "pictures": compare_pictures,
}

if __name__ == "__main__":
    run_parts(__doc__, PARTS, ["scale"])
