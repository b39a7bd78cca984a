"""LabelMe, CIFAR-10N and CIFAR-10H."""

from __future__ import annotations

import numpy as np
import pytest

from appellate import as_candidates
from appellate.datasets import (
    load_cifar10h,
    load_cifar10n,
    load_labelme,
)
from tests.datasets.layouts import garble, swap, truncate, write_cifar10, write_labelme


def test_labelme_in_three_parts(tmp_path):
    answers = write_labelme(tmp_path)
    data = load_labelme(data_home=tmp_path)
    assert np.array_equal(data.answers, answers)
    assert data.X.shape == (10, 512)
    assert data.X.dtype == np.float32
    assert (data.X_valid.shape, data.y_valid.shape) == ((5, 512), (5,))
    assert (data.X_test.shape, data.y_test.shape) == ((7, 512), (7,))
    assert np.array_equal(data.votes.sum(axis=1), (answers >= 0).sum(axis=1))
    assert np.array_equal(data.candidates, data.votes > 0)
    assert data.class_names[4] == "forest"
    X, candidates, y_true = load_labelme(
        rule="share:0.5", data_home=tmp_path, return_X_candidates_y=True
    )
    assert np.array_equal(X, data.X)
    assert np.array_equal(y_true, data.y_true)
    assert (candidates <= data.candidates).all()
    assert (
        candidates.sum()
        == as_candidates(data.votes, layout="counts", rule="share:0.5").matrix.sum()
        < data.candidates.sum()
    )


def test_labelme_files_that_are_wrong(tmp_path):
    write_labelme(tmp_path)
    folder = tmp_path / "labelme"
    train, test = folder / "LabelMe_VGG_avg_train.npy", folder / "LabelMe_VGG_avg_test.npy"
    swap(train, test)
    with pytest.raises(ValueError, match=r"train.npy' has 7 rows, but .* 10 labels.*swapped"):
        load_labelme(data_home=tmp_path)
    swap(train, test)
    answers = folder / "answers.txt"
    lines = answers.read_text().splitlines()
    for text, message in (
        ("\n".join(lines[:-1]), "answers.txt' has 9 rows, but there are 10"),
        ("\n".join([*lines[:-1], "9 " * 6]), "numbers outside -1 .. 7 in row 9"),
        ("\n".join([*lines[:-1], "1 2"]), "no table of class numbers"),
        ("cat dog", "no table of class numbers"),
    ):
        answers.write_text(text)
        with pytest.raises(ValueError, match=message):
            load_labelme(data_home=tmp_path)
    answers.write_text("\n".join(lines))
    truncate(train)
    with pytest.raises(ValueError, match=r"train.npy' is truncated or damaged"):
        load_labelme(data_home=tmp_path)
    (folder / "answers.txt").unlink()
    with pytest.raises(FileNotFoundError, match=r"labelme/answers.txt'.*VGG"):
        load_labelme(data_home=tmp_path)


def write_cifar10n(home, truth, **changes):
    rng = np.random.default_rng(0)
    arrays = {
        f"random_label{i}": np.where(rng.random(len(truth)) < 0.7, truth, (truth + i) % 10)
        for i in (1, 2, 3)
    } | {"clean_label": truth}
    (home / "cifar-10n").mkdir(exist_ok=True)
    path = home / "cifar-10n" / "CIFAR-10N_train_labels.npz"
    np.savez(path, **{k: v for k, v in (arrays | changes).items() if v is not None})
    return path, arrays


def test_cifar10n_has_the_labels_of_three_people(tmp_path):
    truth, _ = write_cifar10(tmp_path)
    path, arrays = write_cifar10n(tmp_path, truth)
    data = load_cifar10n(data_home=tmp_path)
    assert data.answers.tolist() == [
        list(row) for row in zip(*[*arrays.values()][:3], strict=True)
    ]
    assert (data.votes.sum(axis=1) == 3).all()
    assert np.array_equal(data.candidates, data.votes > 0)
    assert data.images.shape == (20, 3, 32, 32)
    assert data.filename == str(path)
    assert "CC BY-NC 4.0" in data.description
    assert "Krizhevsky" in data.description
    X, candidates, y_true = load_cifar10n(
        rule="share:0.5", data_home=tmp_path, return_X_candidates_y=True
    )
    assert X.shape == (20, 3072)
    assert candidates.sum() < data.candidates.sum()
    assert np.array_equal(y_true, truth)


def test_cifar10n_files_that_are_wrong(tmp_path):
    truth, _ = write_cifar10(tmp_path)
    for changes, message in (
        ({"clean_label": truth[::-1]}, "are not those of the images.*official order"),
        ({"random_label2": truth + 1}, "labels outside 0 .. 9"),
        ({"random_label2": truth[:5]}, "different lengths"),
        ({"random_label2": None}, "has no random_label2, but random_label1"),
        ({"random_label2": np.array([{}] * len(truth))}, "cannot be read"),
    ):
        path, _ = write_cifar10n(tmp_path, truth, **changes)
        with pytest.raises(ValueError, match=message):
            load_cifar10n(data_home=tmp_path)
    for spoil in (truncate, garble):
        path, _ = write_cifar10n(tmp_path, truth)
        spoil(path)
        with pytest.raises(ValueError, match=r"cannot be read.*Get it again"):
            load_cifar10n(data_home=tmp_path)
    path.unlink()
    with pytest.raises(FileNotFoundError, match=r"CIFAR-10N_train_labels.npz'.*pickle"):
        load_cifar10n(data_home=tmp_path)


def test_cifar10h_has_the_votes_of_many(tmp_path):
    _, truth = write_cifar10(tmp_path)
    votes = np.random.default_rng(0).multinomial(51, np.full(10, 0.1), size=len(truth))
    (tmp_path / "cifar-10h").mkdir()
    path = tmp_path / "cifar-10h" / "cifar10h-counts.npy"
    np.save(path, votes)
    data = load_cifar10h(data_home=tmp_path)
    assert np.array_equal(data.votes, votes)
    assert np.array_equal(data.candidates, votes > 0)
    assert np.array_equal(data.y_true, truth)
    few = load_cifar10h(rule="votes:6", data_home=tmp_path, return_X_candidates_y=True)[1]
    assert np.array_equal(few, votes >= 6)
    np.save(path, votes[:3])
    with pytest.raises(ValueError, match=r"has shape \(3, 10\), not \(4, 10\)"):
        load_cifar10h(data_home=tmp_path)
    np.save(path, np.array([{}]))
    with pytest.raises(ValueError, match="truncated or damaged"):
        load_cifar10h(data_home=tmp_path)
