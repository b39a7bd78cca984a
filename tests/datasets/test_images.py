"""CIFAR and Fashion-MNIST, on small files of their layouts."""

from __future__ import annotations

import numpy as np
import pytest

from appellate.datasets import (
    load_cifar10,
    load_cifar100,
    load_fashion_mnist,
    make_partial_labels,
)
from appellate.datasets.images import read_idx
from tests.datasets.layouts import (
    garble,
    swap,
    truncate,
    write_cifar,
    write_cifar10,
    write_cifar100,
    write_fashion,
    write_idx,
)


def test_cifar10_in_the_order_of_the_batches(tmp_path):
    train, test = write_cifar10(tmp_path)
    data = load_cifar10(data_home=tmp_path)
    assert data.X.shape == (20, 3072)
    assert data.X.dtype == np.uint8
    assert np.array_equal(data.y_true, train)
    assert data.class_names[:2].tolist() == ["airplane", "automobile"]
    assert data.images.shape == (20, 3, 32, 32)
    assert np.shares_memory(data.images, data.X)
    pixels = write_cifar(tmp_path / "again.bin", train[4:8, None], 1)
    assert np.array_equal(data.X[4:8], pixels)
    X, y = load_cifar10(subset="test", data_home=tmp_path, return_X_y=True)
    assert X.shape == (4, 3072)
    assert np.array_equal(y, test)


def test_only_the_files_of_the_subset_are_needed(tmp_path):
    write_cifar10(tmp_path)
    (tmp_path / "cifar-10-batches-bin" / "data_batch_3.bin").unlink()
    assert len(load_cifar10(subset="test", data_home=tmp_path).X) == 4
    with pytest.raises(FileNotFoundError, match=r"data_batch_3.bin'"):
        load_cifar10(data_home=tmp_path, download_if_missing=False)


def test_the_data_home_may_be_the_folder_itself(tmp_path):
    write_cifar10(tmp_path)
    assert len(load_cifar10(data_home=tmp_path / "cifar-10-batches-bin").X) == 20


def test_cifar100_with_its_super_classes(tmp_path):
    fine = write_cifar100(tmp_path)
    data = load_cifar100(data_home=tmp_path)
    assert np.array_equal(data.y_true, fine)
    assert data.class_names[7] == "fine_7"
    assert data.groups[[0, 20, 99]].tolist() == ["coarse_0", "coarse_0", "coarse_19"]
    candidates = make_partial_labels(
        data.y_true, strategy="hierarchical", groups=data.groups, random_state=0
    )
    groups = np.array(data.groups)
    assert (groups[data.y_true][:, None] == groups)[candidates].all()
    X, y = load_cifar100(subset="test", data_home=tmp_path, return_X_y=True)
    assert X.shape == (200, 3072)
    assert np.array_equal(y, fine)


@pytest.mark.parametrize("suffix", [".gz", ""])
def test_fashion_mnist_compressed_or_not(tmp_path, suffix):
    images, labels = write_fashion(tmp_path, suffix=suffix, folder="Fashion_MNIST")
    data = load_fashion_mnist(data_home=tmp_path)
    assert np.array_equal(data.images, images)
    assert data.X.shape == (6, 784)
    assert np.array_equal(data.y_true, labels)
    assert data.class_names[9] == "Ankle boot"
    X, y = load_fashion_mnist(subset="test", data_home=tmp_path, return_X_y=True)
    assert X.dtype == np.uint8
    assert X.flags.writeable
    assert np.array_equal(y, labels)


@pytest.mark.parametrize("load", [load_cifar10, load_cifar100, load_fashion_mnist])
def test_the_subset_is_train_or_test(tmp_path, load):
    with pytest.raises(ValueError, match="unknown subset 'valid'"):
        load(subset="valid", data_home=tmp_path)


def test_truncated_and_swapped_cifar(tmp_path):
    write_cifar10(tmp_path)
    write_cifar100(tmp_path)
    ten = tmp_path / "cifar-10-batches-bin" / "data_batch_2.bin"
    hundred = tmp_path / "cifar-100-binary" / "train.bin"
    swap(ten, hundred)
    with pytest.raises(ValueError, match=r"data_batch_2.bin' has .* bytes, not a whole number"):
        load_cifar10(data_home=tmp_path)
    with pytest.raises(ValueError, match=r"train.bin' has .* bytes, not a whole number"):
        load_cifar100(data_home=tmp_path)
    swap(ten, hundred)
    truncate(ten)
    with pytest.raises(ValueError, match="truncated, or not of the binary release"):
        load_cifar10(data_home=tmp_path)
    ten.write_bytes(b"")
    with pytest.raises(ValueError, match="has 0 bytes"):
        load_cifar10(data_home=tmp_path)


def test_labels_out_of_range(tmp_path):
    write_cifar10(tmp_path)
    write_cifar(tmp_path / "cifar-10-batches-bin" / "test_batch.bin", [[3], [77]])
    with pytest.raises(ValueError, match=r"test_batch.bin' has a label 77, but .* 10 classes"):
        load_cifar10(subset="test", data_home=tmp_path)
    write_cifar100(tmp_path)
    folder = tmp_path / "cifar-100-binary"
    write_cifar(folder / "train.bin", [[0, 5], [1, 5]])
    with pytest.raises(ValueError, match="a class in several super-classes"):
        load_cifar100(data_home=tmp_path)
    (folder / "fine_label_names.txt").write_text("cat dog")
    with pytest.raises(ValueError, match="hold 2 and 20 names, not 100 and 20"):
        load_cifar100(data_home=tmp_path)


def test_damaged_and_swapped_fashion(tmp_path):
    write_fashion(tmp_path, n=30)
    images = tmp_path / "fashion-mnist" / "train-images-idx3-ubyte.gz"
    labels = tmp_path / "fashion-mnist" / "train-labels-idx1-ubyte.gz"
    swap(images, labels)
    with pytest.raises(ValueError, match=r"not an idx file of bytes in 3 dimensions.*swapped"):
        load_fashion_mnist(data_home=tmp_path)
    swap(images, labels)
    write_idx(labels, np.arange(20) % 10)
    with pytest.raises(ValueError, match=r"has 30 images, but .* 20 labels"):
        load_fashion_mnist(data_home=tmp_path)
    write_idx(labels, np.arange(30))
    with pytest.raises(ValueError, match="has a label 29"):
        load_fashion_mnist(data_home=tmp_path)
    for spoil in (truncate, garble):
        write_fashion(tmp_path, n=30)
        spoil(images)
        with pytest.raises(ValueError, match="truncated or damaged"):
            load_fashion_mnist(data_home=tmp_path)


def test_idx_files_with_too_few_bytes(tmp_path):
    path = tmp_path / "labels"
    write_idx(path, np.arange(9))
    truncate(path, 0.9)
    with pytest.raises(ValueError, match=r"promises 9 bytes of shape \(9,\), but has 7"):
        read_idx(path, 1)
    truncate(path, 0.3)
    with pytest.raises(ValueError, match="not an idx file"):
        read_idx(path, 1)
