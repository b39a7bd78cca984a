"""Small files in the layouts of the known data sets, for the tests to write and read."""

from __future__ import annotations

import gzip
import shutil
from pathlib import Path

import h5py
import numpy as np
import scipy.io
import scipy.sparse as sp


def small_problem(n=12, q=5, l=4, seed=0):
    """Features, candidates and truth."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(l, size=n)
    candidates = rng.random((n, l)) < 0.4
    candidates[np.arange(n), truth] = True
    return rng.normal(size=(n, q)), candidates, truth


def one_hot(truth, l):
    return np.eye(l, dtype=np.uint8)[truth]


def write_mat(path, X, candidates, truth, *, version=5, sparse=False, transposed=False, **extra):
    """Write a .mat file; `transposed` stores labels as (n, l) instead of (l, n)."""
    partial, target = candidates.astype(np.uint8), one_hot(truth, candidates.shape[1])
    if not transposed:
        partial, target = partial.T, target.T
    content = {"data": X, "partial_target": partial, "target": target} | extra
    if version == 5:
        if sparse:
            for key in ("partial_target", "target"):
                content[key] = sp.csc_array(content[key].astype(float))
        scipy.io.savemat(path, content, do_compression=True)
        return path
    with h5py.File(path, "w", userblock_size=512) as file:
        for name, value in content.items():
            if sparse and name != "data":
                columns = sp.csc_array(value.astype(float))
                group = file.create_group(name)
                group.attrs["MATLAB_sparse"] = np.uint64(columns.shape[0])
                for key, part in (
                    ("data", columns.data),
                    ("ir", columns.indices.astype(np.uint64)),
                    ("jc", columns.indptr.astype(np.uint64)),
                ):
                    group[key] = part
            else:
                file[name] = np.asarray(value).T  # MATLAB stores columns first
    with path.open("r+b") as file:
        file.write(b"MATLAB 7.3 MAT-file, written by a test".ljust(124) + b"\x00\x02IM")
    return path


def write_cifar(path, labels, seed=0):
    """Write records of labels, (n, k), and random pixels; return the pixels."""
    pixels = np.random.default_rng(seed).integers(256, size=(len(labels), 3072), dtype=np.uint8)
    path.parent.mkdir(parents=True, exist_ok=True)
    np.hstack([np.asarray(labels, dtype=np.uint8), pixels]).tofile(path)
    return pixels


def write_cifar10(home, n=4):
    """Five training batches and a test batch of n records each; return labels by subset."""
    labels = np.arange(6 * n) * 7 % 10
    folder = home / "cifar-10-batches-bin"
    for i in range(5):
        write_cifar(folder / f"data_batch_{i + 1}.bin", labels[i * n : (i + 1) * n, None], i)
    write_cifar(folder / "test_batch.bin", labels[5 * n :, None], 5)
    return labels[: 5 * n], labels[5 * n :]


def write_cifar100(home, n=200):
    """Training and test records; class j belongs to super-class j % 20."""
    folder = home / "cifar-100-binary"
    fine = np.arange(n) % 100
    for name in ("train", "test"):
        write_cifar(folder / f"{name}.bin", np.column_stack([fine % 20, fine]))
    (folder / "fine_label_names.txt").write_text("".join(f"fine_{i}\n" for i in range(100)))
    (folder / "coarse_label_names.txt").write_text("".join(f"coarse_{i}\n" for i in range(20)))
    return fine


def idx_bytes(array):
    shape = np.array(array.shape, dtype=">u4").tobytes()
    return bytes([0, 0, 8, array.ndim]) + shape + array.astype(np.uint8).tobytes()


def write_idx(path, array):
    path.parent.mkdir(parents=True, exist_ok=True)
    opener = gzip.open if path.suffix == ".gz" else open
    with opener(path, "wb") as file:
        file.write(idx_bytes(array))


def write_fashion(home, n=6, suffix=".gz", folder="fashion-mnist"):
    rng = np.random.default_rng(0)
    images, labels = rng.integers(256, size=(n, 28, 28)), np.arange(n) % 10
    for start in ("train", "t10k"):
        write_idx(home / folder / f"{start}-images-idx3-ubyte{suffix}", images)
        write_idx(home / folder / f"{start}-labels-idx1-ubyte{suffix}", labels)
    return images, labels


def write_labelme(home, n=10):
    folder = home / "labelme"
    folder.mkdir(parents=True)
    rng = np.random.default_rng(0)
    answers = np.where(rng.random((n, 6)) < 0.5, rng.integers(8, size=(n, 6)), -1)
    answers[:, 0] = rng.integers(8, size=n)
    np.savetxt(folder / "answers.txt", answers, fmt="%d")
    for part, size in (("train", n), ("valid", 5), ("test", 7)):
        features = rng.random((size, 512), dtype=np.float32)
        np.save(folder / f"LabelMe_VGG_avg_{part}.npy", features)
        np.savetxt(folder / f"LabelMe_Z_{part}.txt", rng.integers(8, size=size), fmt="%d")
    return answers


def truncate(path, share=0.6):
    content = path.read_bytes()
    path.write_bytes(content[: int(len(content) * share)])


def swap(first, second):
    spare = first.with_name("spare")
    shutil.move(first, spare)
    shutil.move(second, first)
    shutil.move(spare, second)


def garble(path, at=0.5, length=64):
    content = bytearray(Path(path).read_bytes())
    start = int(len(content) * at)
    content[start : start + length] = bytes(b ^ 0x5A for b in content[start : start + length])
    Path(path).write_bytes(content)
