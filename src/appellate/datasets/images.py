"""Images with one true label each, as bytes and without torch: CIFAR and Fashion-MNIST."""

from __future__ import annotations

import gzip
import os
import zlib
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import Bunch

from appellate.datasets.catalogue import KnownDataset, find_dataset
from appellate.datasets.download import require_files
from appellate.datasets.home import get_data_home

PathLike = str | os.PathLike[str]
Bytes = NDArray[np.uint8]
Subset = Literal["train", "test"]

CIFAR10_CLASSES = [
    *("airplane", "automobile", "bird", "cat", "deer"),
    *("dog", "frog", "horse", "ship", "truck"),
]
FASHION_CLASSES = [
    *("T-shirt/top", "Trouser", "Pullover", "Dress", "Coat"),
    *("Sandal", "Shirt", "Sneaker", "Bag", "Ankle boot"),
]
_PIXELS = 3 * 32 * 32


def load_cifar10(
    *,
    subset: Subset = "train",
    data_home: PathLike | None = None,
    download_if_missing: bool = True,
    return_X_y: bool = False,
) -> Any:
    """Load CIFAR-10 from its binary release: objects in 32 x 32 colour images.

    Every image has one true label and no candidate set: make some with `make_partial_labels`,
    or take those of people, `load_cifar10n` and `load_cifar10h`.

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
    names = [f"cifar-10-batches-bin/{batch}.bin" for batch in batches]
    entry, files = _require("cifar10", subset, names, data_home, download_if_missing)
    X, labels = _read_cifar(files, n_labels=1)
    y_true = _check_range(labels[:, 0], 10, files)
    if return_X_y:
        return X, y_true
    return _bunch(entry, X, (3, 32, 32), y_true, CIFAR10_CLASSES, files)


def load_cifar100(
    *,
    subset: Subset = "train",
    data_home: PathLike | None = None,
    download_if_missing: bool = True,
    return_X_y: bool = False,
) -> Any:
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
    names = [f"cifar-100-binary/{member}" for member in members]
    entry, files = _require("cifar100", subset, names, data_home, download_if_missing)
    X, labels = _read_cifar(files[:1], n_labels=2)
    y_true = _check_range(labels[:, 1], 100, files[:1])
    fine, coarse = (path.read_text(encoding="utf-8").split() for path in files[1:])
    if (len(fine), len(coarse)) != (100, 20):
        raise ValueError(
            f"'{files[1]}' and '{files[2]}' hold {len(fine)} and {len(coarse)} names, "
            "not 100 and 20."
        )
    if return_X_y:
        return X, y_true
    data = _bunch(entry, X, (3, 32, 32), y_true, fine, files[:1])
    data.groups = _super_classes(labels, np.array(coarse), files[0])
    return data


def load_fashion_mnist(
    *,
    subset: Subset = "train",
    data_home: PathLike | None = None,
    download_if_missing: bool = True,
    return_X_y: bool = False,
) -> Any:
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
    names = [f"fashion-mnist/{start}-{kind}-ubyte.gz" for kind in ("images-idx3", "labels-idx1")]
    entry, files = _require("fashion_mnist", subset, names, data_home, download_if_missing)
    images, labels = read_idx(files[0], 3), read_idx(files[1], 1)
    if len(images) != len(labels):
        raise ValueError(
            f"'{files[0]}' has {len(images)} images, but '{files[1]}' {len(labels)} labels. "
            "Have files been swapped?"
        )
    y_true = _check_range(labels, 10, files[1:])
    X = images.reshape(len(images), -1)
    if return_X_y:
        return X, y_true
    return _bunch(entry, X, images.shape[1:], y_true, FASHION_CLASSES, files[:1])


def read_idx(path: Path, n_dimensions: int) -> Bytes:
    """Read an array of bytes in the idx format, compressed or not.

    Raises
    ------
    ValueError
        If the file is truncated, damaged, or has another number of dimensions.
    """
    opener: Any = gzip.open if path.suffix == ".gz" else open
    try:
        with opener(path, "rb") as file:
            content = file.read()
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise ValueError(f"'{path}' is truncated or damaged ({error}); get it again.") from error
    header = 4 + 4 * n_dimensions
    if len(content) < header or content[:4] != bytes([0, 0, 8, n_dimensions]):
        raise ValueError(
            f"'{path}' is no idx file of bytes in {n_dimensions} dimensions. Have files of "
            "images and labels been swapped?"
        )
    shape = np.frombuffer(content[4:header], dtype=">u4").astype(int)
    if len(content) - header != shape.prod():
        raise ValueError(
            f"'{path}' promises {shape.prod()} bytes of shape {tuple(shape.tolist())}, but has "
            f"{len(content) - header}. It is truncated or damaged; get it again."
        )
    return np.frombuffer(content, dtype=np.uint8, offset=header).reshape(shape).copy()


def _require(
    name: str,
    subset: str,
    paths: list[str],
    data_home: PathLike | None,
    download_if_missing: bool,
) -> tuple[KnownDataset, list[Path]]:
    if subset not in ("train", "test"):
        raise ValueError(f"unknown subset {subset!r}. Use 'train' or 'test'.")
    entry = find_dataset(name)
    found = require_files(
        entry, get_data_home(data_home), download_if_missing=download_if_missing, paths=paths
    )
    return entry, [found[path] for path in paths]


def _read_cifar(paths: list[Path], n_labels: int) -> tuple[Bytes, Bytes]:
    """Read records of labels and pixels, (n, 3072) and (n, n_labels), one batch at a time."""
    length = n_labels + _PIXELS
    counts = []
    for path in paths:
        count, rest = divmod(path.stat().st_size, length)
        if rest or not count:
            raise ValueError(
                f"'{path}' has {path.stat().st_size} bytes, not a whole number of records of "
                f"{length}. It is truncated, or not of the binary release; get it again."
            )
        counts.append(count)
    X = np.empty((sum(counts), _PIXELS), dtype=np.uint8)
    labels = np.empty((sum(counts), n_labels), dtype=np.uint8)
    stops = np.cumsum(counts)
    for path, start, stop in zip(paths, stops - counts, stops, strict=True):
        batch = np.memmap(path, dtype=np.uint8, mode="r").reshape(-1, length)
        X[start:stop], labels[start:stop] = batch[:, n_labels:], batch[:, :n_labels]
    return X, labels


def _check_range(labels: Bytes, n_classes: int, paths: list[Path]) -> NDArray[np.intp]:
    if labels.max(initial=0) >= n_classes:
        raise ValueError(
            f"'{paths[0]}' has a label {labels.max()}, but there are only {n_classes} classes. "
            "It is damaged or the file of another data set."
        )
    return labels.astype(np.intp)


def _super_classes(labels: Bytes, coarse: NDArray[Any], path: Path) -> NDArray[Any]:
    """Return the super-class of every class, (100,), which must be the same in all records."""
    pairs = np.unique(labels, axis=0)
    if pairs[:, 0].max() >= len(coarse) or len(np.unique(pairs[:, 1])) != len(pairs):
        raise ValueError(f"'{path}' has a class in several super-classes; it is damaged.")
    groups = np.full(100, "", dtype=coarse.dtype)
    groups[pairs[:, 1]] = coarse[pairs[:, 0]]
    return groups


def _bunch(
    entry: KnownDataset,
    X: Bytes,
    shape: tuple[int, ...],
    y_true: NDArray[np.intp],
    class_names: list[str],
    files: list[Path],
) -> Bunch:
    return Bunch(
        X=X,
        images=X.reshape(len(X), *shape),
        y_true=y_true,
        class_names=np.array(class_names),
        description=entry.description,
        filename=str(files[0]),
    )
