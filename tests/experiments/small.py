"""A small problem and a few quick runs, shared by the tests and by the scripts they start."""

from __future__ import annotations

import sqlite3

import numpy as np

from appellate.experiments.layouts import plan
from appellate.experiments.methods import LOWEST, PARTNER_ALONE, RANDOM, RIDGE, alone, coupled
from appellate.experiments.problems import Dataset

METHODS = (alone("knn"), coupled("knn"), alone("sure"), coupled("sure"), RIDGE, PARTNER_ALONE)
COMPARED = "key, dataset, method, split, seed, data_hash, version, config, scores, details"


def make_problem(name="small", n=60, n_labels=4, seed=0, tolerances=()):
    rng = np.random.RandomState(seed)
    truth = rng.randint(n_labels, size=n)
    centres = rng.normal(size=(n_labels, 5))
    X = centres[truth] + rng.normal(size=(n, 5))
    candidates = rng.uniform(size=(n, n_labels)) < 0.4
    candidates[np.arange(n), truth] = True
    return Dataset(name, name, X, candidates, truth.astype(np.intp), tolerances)


def make_runs(n_splits, name="small", methods=(*METHODS, RANDOM, LOWEST)):
    return plan([name], methods, range(n_splits))


def read_rows(path):
    """All that must not depend on how often the run was killed."""
    connection = sqlite3.connect(path)
    try:
        return connection.execute(f"SELECT {COMPARED} FROM runs ORDER BY key").fetchall()
    finally:
        connection.close()
