"""Rows in batches, from arrays, mapped files and datasets, and the named random streams."""

from __future__ import annotations

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from torch.utils.data import TensorDataset  # noqa: E402

from appellate.deep.data import (  # noqa: E402
    ArrayInputs,
    DatasetInputs,
    InputScaling,
    cut_batches,
    open_inputs,
)
from appellate.deep.streams import Streams, isolated  # noqa: E402

CPU = torch.device("cpu")


def fetch(inputs, rows):
    (batch,) = inputs.batches([np.array(rows)], CPU)
    return batch


@pytest.mark.parametrize(
    ("shape", "seen"),
    [
        ((5, 7), (7,)),
        ((5, 9, 8), (1, 9, 8)),
        ((5, 3, 9, 8), (3, 9, 8)),
        ((5, 1, 9, 8), (1, 9, 8)),
        ((5, 9, 8, 3), (3, 9, 8)),
        ((5, 9, 8, 1), (1, 9, 8)),
        ((5, 3, 9, 3), (3, 9, 3)),
    ],
)
def test_shape_of_a_row(shape, seen):
    X = np.random.RandomState(0).randint(256, size=shape).astype(np.uint8)
    inputs = ArrayInputs(X)
    assert inputs.row_shape == seen
    assert len(inputs) == 5
    batch = fetch(inputs, [3, 0])
    assert batch.dtype == torch.float32
    assert batch.shape == (2, *seen)
    rows = X[[3, 0]] / 255
    if len(shape) == 4 and seen != shape[1:]:
        rows = np.moveaxis(rows, -1, 1)
    np.testing.assert_allclose(batch.numpy(), rows.reshape(2, *seen), rtol=1e-6)


def test_floats_are_not_divided():
    X = np.array([[0.0, 200.0], [3.0, 4.0]])
    assert fetch(ArrayInputs(X), [0, 1]).tolist() == X.tolist()


def views_of_mapped(mapped):
    return {
        "itself": mapped,
        "plain view": np.asarray(mapped),
        "slice": np.asarray(mapped)[2:],
        "reshaped": mapped.reshape(len(mapped), -1),
    }


@pytest.mark.parametrize("view", ["itself", "plain view", "slice", "reshaped"])
def test_mapped_file_is_never_whole(tmp_path, view):
    np.save(tmp_path / "x.npy", np.arange(60, dtype=np.float32).reshape(6, 2, 5))
    X = views_of_mapped(np.load(tmp_path / "x.npy", mmap_mode="r"))[view]
    inputs = ArrayInputs(X)
    batch = fetch(inputs, [2, 1])
    np.testing.assert_array_equal(batch.numpy().ravel(), np.asarray(X)[[2, 1]].ravel())
    assert inputs._whole(CPU) is None
    assert inputs._kept is None


def test_array_in_memory_is_moved_once():
    inputs = ArrayInputs(np.zeros((3, 2)))
    assert inputs._whole(CPU) is inputs._whole(CPU)


def test_given_batches_are_not_views_of_the_data():
    X = np.ones((4, 2), dtype=np.float32)
    fetch(ArrayInputs(X), [0, 1]).zero_()
    assert (X == 1).all()


@pytest.mark.parametrize("X", [np.arange(12.0).reshape(4, 3)], ids=["table"])
def test_dataset(X):
    inputs = open_inputs(TensorDataset(torch.tensor(X), torch.arange(4)))
    assert isinstance(inputs, DatasetInputs)
    assert (len(inputs), inputs.row_shape) == (4, (3,))
    first, second = inputs.batches([np.array([2, 0]), np.array([1])], CPU)
    assert first.dtype == torch.float32
    assert first.tolist() == X[[2, 0]].tolist()
    assert second.tolist() == X[[1]].tolist()
    assert open_inputs(inputs) is inputs


def test_reading_a_dataset_draws_nothing():
    inputs = DatasetInputs(TensorDataset(torch.zeros(4, 3)))
    before = torch.get_rng_state()
    list(inputs.batches([np.arange(4)], CPU))
    assert torch.equal(torch.get_rng_state(), before)


@pytest.mark.parametrize("block", [2, 100])
def test_scaling(block):
    rng = np.random.RandomState(0)
    X = rng.normal(loc=[0, 5, 1e4], scale=[1, 0.1, 3], size=(31, 3))
    X = np.hstack([X, np.full((31, 1), 0.3)])
    scaling = InputScaling.of(ArrayInputs(X), block)
    scaled = scaling(torch.tensor(X, dtype=torch.float32)).numpy()
    np.testing.assert_allclose(scaled.mean(axis=0), 0, atol=1e-3)
    np.testing.assert_allclose(scaled[:, :3].std(axis=0), 1, rtol=1e-3)
    assert np.abs(scaled[:, 3]).max() < 1e-6  # constant: centred, not blown up
    images = rng.uniform(size=(9, 3, 4, 5))
    scaling = InputScaling.of(ArrayInputs(images), block)
    assert scaling.mean.shape == (1, 3, 1, 1)
    expected = images.std(axis=(0, 2, 3))
    np.testing.assert_allclose(scaling.deviation.numpy().ravel(), expected, rtol=1e-5)
    x = torch.rand(2, 3)
    assert torch.equal(InputScaling()(x), x)


def test_batches_in_order():
    assert [rows.tolist() for rows in cut_batches(np.arange(5), 2)] == [[0, 1], [2, 3], [4]]
    assert cut_batches(np.arange(0), 2) == []


def test_streams_depend_on_name_and_place_alone():
    streams = Streams(3)
    keys = [("views", 0, 1), ("views", 1, 0), ("networks", 0, 1), ("views",), ("views", 0)]
    seeds = [streams.seed(*key) for key in keys]
    assert len({*seeds, Streams(4).seed("views", 0, 1)}) == 6
    assert all(0 <= seed < 2**63 for seed in seeds)
    assert [Streams(3).seed(*key) for key in reversed(keys)] == seeds[::-1]
    with isolated(CPU):
        with streams.drawing("views", 0):
            first = torch.rand(3)
        torch.rand(10)
        with streams.drawing("views", 0):
            assert torch.equal(torch.rand(3), first)
    order = streams.permutation(6, "batches", 2)
    assert sorted(order) == list(range(6))
    assert order.tolist() != streams.permutation(6, "batches", 3).tolist()


def test_isolated_gives_the_state_back_after_an_error():
    before = torch.get_rng_state()

    def fail():
        with isolated(CPU):
            torch.manual_seed(1)
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert torch.equal(torch.get_rng_state(), before)
