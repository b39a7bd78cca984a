"""Images with one true label each, as bytes and without torch: CIFAR and Fashion-MNIST."""

from __future__ import annotations

import gzip
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import Bunch

from appellate.datasets.catalogue import find_dataset
from appellate.datasets.download import described_by, require_files
from appellate.datasets.matfiles import reading

Bytes = NDArray[np.uint8]
Subset = Literal["train", "test"]
Find = Callable[[list[str]], list[Path]]  # places of files

CIFAR10_CLASSES = [
    *("airplane", "automobile", "bird", "cat", "deer"),
    *("dog", "frog", "horse", "ship", "truck"),
]
FASHION_CLASSES = [
    *("T-shirt/top", "Trouser", "Pullover", "Dress", "Coat"),
    *("Sandal", "Shirt", "Sneaker", "Bag", "Ankle boot"),
]
_PIXELS = 3 * 32 * 32


def _pictured(read: Callable[[Subset, Find], Bunch]) -> Callable[..., Any]:
    """Make a loader of a function that reads one of the two parts of its data set."""

    @described_by(read)
    def load(
        *,
        subset: Subset = "train",
        data_home: str | os.PathLike[str] | None = None,
        download_if_missing: bool = True,
        return_X_y: bool = False,
    ) -> Any:
        if subset not in ("train", "test"):
            raise ValueError(f"unknown subset {subset!r}. Use 'train' or 'test'.")
        entry = find_dataset(read.__name__.removeprefix("load_"))

        def find(paths: list[str]) -> list[Path]:
            found = require_files(entry, data_home, download_if_missing, paths)
            return [found[path] for path in paths]

        data = read(subset, find)
        X = data.images.reshape(len(data.images), -1)
        if return_X_y:
            return X, data.y_true
        return Bunch(X=X, **data, description=entry.description)

    return load


@_pictured
def load_cifar10(subset: Subset, find: Find) -> Bunch:
    """Load CIFAR-10 from its binary release: objects in 32 x 32 colour images.

    Every image has one true label and no candidate set: make some with `make_partial_labels`,
    or use those of annotators, `load_cifar10n` and `load_cifar10h`.

    Parameters
    ----------
    subset : {"train", "test"}, default="train"
        50000 images to train on or 10000 to test, in the official order.
    data_home : path-like, default=None
        Folder to find the files in, see `get_data_home`.
    download_if_missing : bool, default=True
        Fetch the files if they are missing, after showing their terms of use.
    return_X_y : bool, default=False
        Return ``(X, y_true)`` alone.

    Returns
    -------
    Bunch
        With `X` (uint8, (n, 3072)), `images` (the same memory as (n, 3, 32, 32): red, green
        and blue planes), `y_true` (class numbers), `class_names`, `description` and
        `filename`.

    Raises
    ------
    FileNotFoundError, ConnectionError
        If a file is not there and cannot be fetched.
    ValueError
        If a file is truncated, damaged, or something else.

    Examples
    --------
    >>> from appellate.datasets import load_cifar10
    >>> data = load_cifar10()  # doctest: +SKIP
    >>> data.images.shape  # doctest: +SKIP
    (50000, 3, 32, 32)
    """
    batches = [f"data_batch_{i}" for i in range(1, 6)] if subset == "train" else ["test_batch"]
    files = find([f"cifar-10-batches-bin/{batch}.bin" for batch in batches])
    images, labels = _read_cifar(files, n_labels=1)
    return _bunch(images, labels[:, 0], CIFAR10_CLASSES, files[0])


@_pictured
def load_cifar100(subset: Subset, find: Find) -> Bunch:
    """Load CIFAR-100 from its binary release: 100 classes in 20 super-classes.

    Parameters
    ----------
    subset, data_home, download_if_missing, return_X_y
        As of `load_cifar10`.

    Returns
    -------
    Bunch
        As that of `load_cifar10`, and `groups` (100,): the name of the super-class of every
        class, which ``make_partial_labels(y, strategy="hierarchical", groups=...)`` takes.

    Examples
    --------
    >>> from appellate.datasets import load_cifar100
    >>> data = load_cifar100()  # doctest: +SKIP
    >>> data.X.shape, len(data.class_names)  # doctest: +SKIP
    ((50000, 3072), 100)
    """
    members = (f"{subset}.bin", "fine_label_names.txt", "coarse_label_names.txt")
    files = find([f"cifar-100-binary/{member}" for member in members])
    images, labels = _read_cifar(files[:1], n_labels=2)
    fine, coarse = (path.read_text(encoding="utf-8").split() for path in files[1:])
    if (len(fine), len(coarse)) != (100, 20):
        raise ValueError(
            f"'{files[1]}' and '{files[2]}' hold {len(fine)} and {len(coarse)} names, "
            "not 100 and 20."
        )
    data = _bunch(images, labels[:, 1], fine, files[0])
    pairs = np.unique(labels, axis=0)  # one super-class a class, in all records
    if pairs[:, 0].max() >= len(coarse) or len(np.unique(pairs[:, 1])) != len(pairs):
        raise ValueError(f"'{files[0]}' has a class in several super-classes; it is damaged.")
    data.groups = np.full(100, "", dtype=np.array(coarse).dtype)
    data.groups[pairs[:, 1]] = np.array(coarse)[pairs[:, 0]]
    return data


@_pictured
def load_fashion_mnist(subset: Subset, find: Find) -> Bunch:
    """Load Fashion-MNIST: pieces of clothing in 28 x 28 grey images.

    The idx files may be compressed or not. There are 60000 images to train on and 10000 to test.

    Parameters
    ----------
    subset, data_home, download_if_missing, return_X_y
        As of `load_cifar10`.

    Returns
    -------
    Bunch
        With `X` (uint8, (n, 784)), `images` (the same memory as (n, 28, 28)), `y_true` (class
        numbers), `class_names`, `description` and `filename`.

    Examples
    --------
    >>> from appellate.datasets import load_fashion_mnist
    >>> data = load_fashion_mnist()  # doctest: +SKIP
    >>> data.images.shape  # doctest: +SKIP
    (60000, 28, 28)
    """
    start = "train" if subset == "train" else "t10k"
    kinds = "images-idx3", "labels-idx1"
    files = find([f"fashion-mnist/{start}-{kind}-ubyte.gz" for kind in kinds])
    images, labels = read_idx(files[0], 3), read_idx(files[1], 1)
    if len(images) != len(labels):
        raise ValueError(
            f"'{files[0]}' has {len(images)} images, but '{files[1]}' {len(labels)} labels. "
            "Have files been swapped?"
        )
    return _bunch(images, labels, FASHION_CLASSES, files[0], files[1])


def read_idx(path: Path, n_dimensions: int) -> Bytes:
    """Read an array of bytes in the idx format, compressed or not.

    Raises
    ------
    ValueError
        If the file is truncated, damaged, or has another number of dimensions.
    """
    opener: Any = gzip.open if path.suffix == ".gz" else open
    with reading(path, "bytes"), opener(path, "rb") as file:
        content = file.read()
    header = 4 + 4 * n_dimensions
    if len(content) < header or content[:4] != bytes([0, 0, 8, n_dimensions]):
        raise ValueError(
            f"'{path}' is not an idx file of bytes in {n_dimensions} dimensions. Have files of "
            "images and labels been swapped?"
        )
    shape = np.frombuffer(content[4:header], dtype=">u4").astype(int)
    if len(content) - header != shape.prod():
        raise ValueError(
            f"'{path}' promises {shape.prod()} bytes of shape {tuple(shape.tolist())}, but has "
            f"{len(content) - header}. It is truncated or damaged; get it again."
        )
    return np.frombuffer(content, dtype=np.uint8, offset=header).reshape(shape).copy()


def _read_cifar(paths: list[Path], n_labels: int) -> tuple[Bytes, Bytes]:
    """Read pixels, (n, 3, 32, 32), and labels, (n, n_labels), of batches on disk."""
    length = n_labels + _PIXELS
    for path in paths:
        size = path.stat().st_size
        if not size or size % length:
            raise ValueError(
                f"'{path}' has {size} bytes, not a whole number of records of {length}. It is "
                "truncated, or not of the binary release; get it again."
            )
    batches = [np.memmap(path, dtype=np.uint8, mode="r").reshape(-1, length) for path in paths]
    images = np.concatenate([batch[:, n_labels:] for batch in batches])
    labels = np.concatenate([batch[:, :n_labels] for batch in batches])
    return images.reshape(-1, 3, 32, 32), labels


def _bunch(
    images: Bytes, labels: Bytes, names: list[str], file: Path, labelled: Path | None = None
) -> Bunch:
    if labels.max(initial=0) >= len(names):
        raise ValueError(
            f"'{labelled or file}' has a label {labels.max()}, but there are only {len(names)} "
            "classes. It is damaged or the file of another data set."
        )
    y_true, names_ = labels.astype(np.intp), np.array(names)
    return Bunch(images=images, y_true=y_true, class_names=names_, filename=str(file))
