"""Every data set of the data home, compared with what is known of it."""

from __future__ import annotations

import numpy as np
import pytest

import appellate.datasets as datasets
from appellate.datasets.catalogue import known_datasets
from appellate.datasets.home import get_data_home, sha256

pytestmark = pytest.mark.realdata

# Samples, features, classes; mean, smallest and largest size; truth coverage; classes that are
# never the truth.
PARTIAL = {
    "lost": ((1122, 108, 16), (2.23, 1, 3), 1, 2),
    "msrcv2": ((1758, 48, 23), (3.16, 1, 7), 1, 0),
    "fgnet": ((1002, 262, 78), (7.48, 2, 11), 1, 15),
    "mirflickr": ((2780, 1536, 14), (2.76, 1, 14), 1, None),
    "soccer_player": ((17472, 279, 171), (2.09, 1, 171), 1, None),
    "yahoo_news": ((22991, 163, 219), (1.91, 1, 219), 1, None),
    "birdsong": ((4998, 38, 13), (2.18, 1, 13), 1, None),
}


def load(name, **options):
    """Load what is in the data home; never from the network."""
    home = get_data_home()
    for needed in (name, *known_datasets()[name].needs):
        lacking = [
            path for path, place in known_datasets()[needed].find(home).items() if not place
        ]
        if lacking:
            pytest.skip(f"{lacking[0]} is not in the data home '{home}'")
    return getattr(datasets, f"load_{name}")(download_if_missing=False, **options)


def check_sizes(data, mean, smallest, largest, coverage):
    summary = datasets.summarize_candidates(data.candidates, data.y_true)
    assert summary.mean_size == pytest.approx(mean, abs=0.0051)
    assert smallest <= summary.min_size
    assert summary.max_size <= largest
    assert summary.truth_coverage == pytest.approx(coverage, abs=0.0005)
    return summary


@pytest.mark.parametrize("name", PARTIAL)
def test_partial_label_sets(name):
    data = load(name)  # warns, which is an error, if the checksum differs
    (n, q, l), (mean, smallest, largest), coverage, unused = PARTIAL[name]
    assert data.X.shape == (n, q)
    assert data.candidates.shape == (n, l)
    summary = check_sizes(data, mean, smallest, largest, coverage)
    if unused is not None:
        assert (summary.min_size, summary.max_size) == (smallest, largest)
        assert l - len(np.unique(data.y_true)) == unused
    assert known_datasets()[name].shape == (n, q, l)


def test_msrcv2_repeats_five_rows():
    data = load("msrcv2")
    assert len(data.X) - len(np.unique(data.X, axis=0)) == 5


def test_fgnet_is_standardized():
    data = load("fgnet")
    assert np.allclose(data.X.mean(axis=0), 0, atol=1e-8)
    assert np.allclose(data.X.std(axis=0, ddof=1), 1, atol=1e-8)


@pytest.mark.parametrize(("subset", "each"), [("train", 5000), ("test", 1000)])
def test_cifar10(subset, each):
    data = load("cifar10", subset=subset)
    assert data.X.shape == (10 * each, 3072)
    assert data.X.dtype == np.uint8
    assert np.bincount(data.y_true).tolist() == [each] * 10
    assert 100 < data.X.mean() < 140


@pytest.mark.parametrize(("subset", "each"), [("train", 500), ("test", 100)])
def test_cifar100(subset, each):
    data = load("cifar100", subset=subset)
    assert np.bincount(data.y_true).tolist() == [each] * 100
    assert np.unique(data.groups, return_counts=True)[1].tolist() == [5] * 20


@pytest.mark.parametrize(("subset", "each"), [("train", 6000), ("test", 1000)])
def test_fashion_mnist(subset, each):
    data = load("fashion_mnist", subset=subset)
    assert data.images.shape == (10 * each, 28, 28)
    assert np.bincount(data.y_true).tolist() == [each] * 10


def test_cifar10n():
    data = load("cifar10n")
    check_sizes(data, 1.46, 1, 3, 0.979)
    assert data.votes.sum() == 150000


def test_cifar10h():
    data = load("cifar10h")
    check_sizes(data, 1.94, 1, 10, 0.9996)
    assert data.votes.sum(axis=1).mean() == pytest.approx(51, abs=0.5)


def test_labelme():
    data = load("labelme")
    assert (data.X.shape, data.X_valid.shape, data.X_test.shape) == (
        (1000, 512),
        (500, 512),
        (1188, 512),
    )
    assert data.answers.table().shape == (1000, 59)
    check_sizes(data, 1.37, 1, 3, 0.889)


def test_labelme_numbers_mean_the_named_scenes():
    """People's answers are mostly right, for every class."""
    data = load("labelme")
    share = data.votes / data.votes.sum(axis=1, keepdims=True)
    for j in range(8):
        assert share[data.y_true == j].mean(axis=0).argmax() == j


@pytest.mark.parametrize("name", known_datasets())
def test_files_have_the_known_checksums(name):
    entry, home = known_datasets()[name], get_data_home()
    places = entry.find(home)
    if not any(places.values()):
        pytest.skip(f"no file of {entry.title} is in the data home '{home}'")
    for file in entry.files:
        if places[file.path] is not None and file.sha256:
            assert sha256(places[file.path]) in file.sha256
