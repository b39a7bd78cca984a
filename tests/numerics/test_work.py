"""The work that is expected of a fit, against the work that is counted while it fits."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.linalg as la

from appellate import (
    AGGDClassifier,
    GaussianKernel,
    JuryClassifier,
    PLCPClassifier,
    SUREClassifier,
    TestimonyClassifier,
)
from appellate.candidates import as_answers
from appellate.evidence import scales
from appellate.methods.jury import nystroem as landmarks
from appellate.methods.testimony import features
from appellate.numerics import blocks, graph, kernels, memory, passes, smoothers, work

Q, LABELS = 5, 6
SPEED = work.Work(3e10, 6e8)  # of some machine


class Counted(np.ndarray):
    """A matrix whose products are counted."""

    done: list[float]

    def __matmul__(self, other):
        return self._count(self, other)

    def __rmatmul__(self, other):
        return self._count(other, self)

    def _count(self, left, right):
        out = np.asarray(left) @ np.asarray(right)
        single = min(left.dtype.itemsize, right.dtype.itemsize) == 4
        self.done.append((1 if single else 2) * left.shape[-1] * out.size)
        return out


@pytest.fixture
def counted(monkeypatch):
    """Lists of the operations and the entries of all that is heavy in a fit."""
    operations: list[float] = []
    entries: list[float] = []
    matrix = type("Here", (Counted,), {"done": operations})

    def watch(owner, name, count, into=operations, made=lambda out: out, plain=True):
        function = getattr(owner, name)

        def counting(*args, **options):
            if plain:  # for Numba
                args = [np.asarray(a) if isinstance(a, Counted) else a for a in args]
            out = function(*args, **options)
            into.append(count(args, out))
            return made(out)

        monkeypatch.setattr(owner, name, counting)

    def view(out):
        return out.view(matrix)

    def count_steps(args, out):
        return 2 * args[0]._pattern.nnz * (out.n_iter + 1)

    watch(la, "get_lapack_funcs", lambda a, out: len(a[1][0]) ** 3)  # factor and inverse
    watch(la, "cholesky", lambda a, out: len(out) ** 3 / 3)
    watch(la, "cho_factor", lambda a, out: len(a[0]) ** 3 / 3)
    watch(la, "cho_solve", lambda a, out: 2 * len(out) * out.size)
    watch(la, "solve_triangular", lambda a, out: len(a[0]) * out.size, made=view)
    watch(la, "eigh", lambda a, out: 9 * len(a[0]) ** 3)
    watch(la.blas, "dsyrk", lambda a, out: a[1].shape[1] * len(out) ** 2)
    watch(la.blas, "dtrsm", lambda a, out: len(a[1]) * out.size)
    for name in ("squared_distances", "absolute_distances"):
        watch(kernels, name, lambda a, out: 2 * a[0].shape[1] * out.size)
    watch(smoothers, "_apply_blocks", lambda a, out: a[0].size, entries)
    for name in ("_gather", "_evaluate"):
        watch(passes, name, lambda a, out: a[0].shape[1] * len(a[1][0]) / 4, entries)
    watch(scales, "soften", lambda a, out: 4 * out.size, entries)
    watch(landmarks, "_softened", lambda a, out: 4 * len(a[0]) * a[7].size, entries, plain=False)
    watch(graph, "reconstruction_weights", lambda a, out: out.shape[1] * a[0].size, entries)
    watch(graph.NeighborGraph, "propagate", count_steps, entries)
    watch(features, "answer_likelihood", lambda a, out: 4 * a[3].evidence.size, entries)
    watch(features, "scale_of", lambda a, out: 4 * 12 * a[0].size, entries)
    read, start = blocks.StoredBlocks.read, smoothers.KernelSmoother.__init__

    def begin(self, *args):
        start(self, *args)
        entries.append(4 * self.matrix.size)
        self.matrix = self.matrix.view(matrix)

    monkeypatch.setattr(smoothers.KernelSmoother, "__init__", begin)
    monkeypatch.setattr(blocks.StoredBlocks, "read", lambda self, rows: view(read(self, rows)))
    return operations, entries


def problem(n):
    """Rows with noise about one centre a label, and candidates of which 2 of 6 are false."""
    rng = np.random.default_rng(0)
    truth = rng.integers(LABELS, size=n)
    X = rng.normal(size=(LABELS, Q))[truth] * 2 + rng.normal(size=(n, Q))
    candidates = rng.random((n, LABELS)) < 0.3
    candidates[np.arange(n), truth] = True
    return X, candidates, truth


def kernel(landmarks):
    if not landmarks:
        return GaussianKernel()
    return GaussianKernel(approximation="nystroem", n_landmarks=landmarks)


def fit_jury(n, landmarks=0):
    X, candidates, _ = problem(n)
    JuryClassifier("kernel", kernel=kernel(landmarks), random_state=0).fit(X, candidates)
    return work.count_jury((n, LABELS), Q, landmarks=landmarks)


def fit_plcp(n, base, landmarks=0):
    X, candidates, _ = problem(n)
    PLCPClassifier(base.set_params(kernel=kernel(landmarks))).fit(X, candidates)
    settings = {"landmarks": landmarks, "neighbors": getattr(base, "n_neighbors", 0)}
    return work.count_plcp((n, LABELS), Q, sizes=candidates.sum(axis=0), **settings)


def fit_testimony(n, tried=4_000, landmarks=0):
    X, _, truth = problem(n)
    rng = np.random.default_rng(1)
    said = np.where(rng.random((n, 3)) < 0.7, truth[:, None], rng.integers(LABELS, size=(n, 3)))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(features, "_TRIED_ROWS", tried)
        if landmarks:
            patch.setattr(memory, "SMALL_ROWS", tried)
            patch.setattr(memory, "EXACT_ROWS", tried)
            patch.setattr(memory, "default_landmarks", lambda n: landmarks)
        TestimonyClassifier().fit(X, as_answers(said))
    settings = {"answers": 3 * n, "tried": tried, "landmarks": landmarks}
    return work.count_testimony((n, LABELS), Q, **settings)


FITS = {
    "jury": (fit_jury, (240, 480, 960)),
    "jury on landmarks": (lambda n: fit_jury(n, 64), (400, 800, 1600)),
    "SURE-PLCP": (lambda n: fit_plcp(n, SUREClassifier()), (200, 400, 800)),
    "SURE-PLCP on landmarks": (lambda n: fit_plcp(n, SUREClassifier(), 64), (400, 800, 1600)),
    "AGGD-PLCP": (lambda n: fit_plcp(n, AGGDClassifier()), (200, 400, 800)),
    "testimony": (fit_testimony, (150, 300, 600)),
    "testimony on many rows": (lambda n: fit_testimony(n, 100), (200, 400, 800)),
    "testimony on landmarks": (lambda n: fit_testimony(n, 100, 64), (400, 800, 1600)),
}


@pytest.mark.parametrize("name", FITS)
def test_the_expected_work_is_that_which_is_done(name, counted):
    fit, sizes = FITS[name]
    shares = []
    for n in sizes:
        for each in counted:
            each.clear()
        expected, done = fit(n), work.Work(*map(sum, counted))
        assert 1 / 3 < expected.operations / done.operations < 3
        assert 1 / 3 < expected.entries / done.entries < 3
        shares.append(expected.seconds(SPEED) / done.seconds(SPEED))
    growth = np.divide(shares[1:], shares[:-1])  # from n to 2n, as if it were 1
    assert growth == pytest.approx(1, abs=0.3)


def test_the_speed_is_measured_once():
    found = work.speed()
    assert min(found) > 1e6
    assert work.speed() is found
