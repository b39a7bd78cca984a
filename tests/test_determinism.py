"""The same call gives the same result and file: whatever the hash seed, n_jobs and threads."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from inspect import isclass
from pathlib import Path

import numpy as np
import pytest
from sklearn.base import ClassifierMixin

import appellate
from tests.determinism_script import estimators

ROOT = Path(__file__).parents[1]


def run(n_jobs=1, threads=1, hash_seed=0):
    names = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS", "MKL_NUM_THREADS")
    env = os.environ | dict.fromkeys(names, str(threads)) | {"PYTHONHASHSEED": str(hash_seed)}
    command = [sys.executable, "-W", "ignore", "-m", "tests.determinism_script", str(n_jobs)]
    done = subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.fixture(scope="module")
def usual():
    return run()


def test_every_public_estimator_is_tried():
    public = (getattr(appellate, name) for name in appellate.__all__)
    classes = {each for each in public if isclass(each) and issubclass(each, ClassifierMixin)}
    assert classes == {type(each) for each in estimators(1).values()}


def test_another_hash_seed_and_n_jobs_change_no_bit(usual):
    """Both at once: every fit is made in a process of its own, which takes seconds."""
    assert run(hash_seed=1, n_jobs=2) == usual


def test_another_number_of_threads_changes_no_bit_of_a_small_fit(usual):
    """Fits of at most 1,000 rows have one BLAS thread; predictions have as many as there are."""
    other = run(threads=2)
    assert other.keys() == usual.keys()
    assert other.pop("rectify") == usual["rectify"]
    for name, told in other.items():
        expected = usual[name]
        for key in ("labels", "confidence", "file"):
            assert told[key] == expected[key], (name, key)
        close = np.allclose(told["probabilities"], expected["probabilities"], rtol=0, atol=1e-12)
        assert close, name
