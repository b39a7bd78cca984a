"""A fitted classifier in one file."""

from __future__ import annotations

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from safetensors.torch import save_file  # noqa: E402
from torch import nn  # noqa: E402

from appellate.deep import PRODENClassifier, checkpoint, load_model, save_model  # noqa: E402
from appellate.deep.checkpoint import CheckpointError, save_tree  # noqa: E402
from tests.deep.small import (  # noqa: E402
    MAKERS,
    assert_same_state,
    make_images,
    make_table,
    proden,
    state_of,
)

ATTRIBUTES = [
    "best_epoch_",
    "candidates_",
    "classes_",
    "confidence_",
    "history_",
    "input_shape_",
    "label_history_",
    "n_features_in_",
    "n_iter_",
    "n_ties_",
    "overturned_",
    "training_output_",
    "transduction_",
    "verdict_",
    "verdict_confidence_",
]


def factory(shape, n_outputs):
    return nn.Sequential(nn.Flatten(), nn.Linear(int(np.prod(shape)), n_outputs or 5))


@pytest.fixture(scope="module")
def fitted():
    X, candidates, _ = make_table()
    return proden(n_epochs=1).fit(X, candidates)


def assert_same_model(one, other, X):
    assert type(one) is type(other)
    weights = [
        {k: v for k, v in state_of(m).items() if not k.endswith("confidence")}
        for m in (one, other)
    ]
    assert_same_state(*weights)
    for name in ATTRIBUTES:
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name), name)
    for name, probabilities in one.predict_heads(X).items():
        np.testing.assert_array_equal(other.predict_heads(X)[name], probabilities)
    np.testing.assert_array_equal(one.predict(X), other.predict(X))


@pytest.mark.parametrize("partner", [None, "non-candidate", "candidate", "independent"])
@pytest.mark.parametrize("kind", MAKERS)
def test_comes_back(kind, partner, tmp_path):
    X, candidates, _ = make_table()
    names = np.array(["anna", "bob", "eve", "zoë"])
    sets = ["|".join(names[row]) for row in candidates]
    model = MAKERS[kind](partner=partner, head="partner", n_epochs=2).fit(X, sets)
    path = save_model(model, tmp_path / "new" / "model.safetensors")
    assert [p.name for p in path.parent.iterdir()] == ["model.safetensors"]
    restored = load_model(path)
    assert_same_model(model, restored, X)
    left_out = {"random_state", "device", "run_dir", "resume"}
    given, found = model.get_params(), restored.get_params()
    assert {k: v for k, v in given.items() if k not in left_out} == {
        k: v for k, v in found.items() if k not in left_out
    }
    ours, theirs = model.docket(output="dict"), restored.docket(output="dict")
    for name, column in ours.items():
        np.testing.assert_array_equal(column, theirs[name])
    restored.set_params(random_state=0, device="cpu").fit(X, sets)  # it can be fitted again
    np.testing.assert_array_equal(restored.training_output_, model.training_output_)


def test_saved_twice_is_the_same(tmp_path, fitted):
    one = save_model(fitted, tmp_path / "one").read_bytes()
    two = save_model(load_model(tmp_path / "one"), tmp_path / "two")
    assert load_model(two).get_params() == load_model(tmp_path / "one").get_params()
    assert len(two.read_bytes()) == len(one)


@pytest.mark.parametrize("kind", MAKERS)
def test_user_network_is_named_at_loading(kind, tmp_path):
    X, candidates, _ = make_table()
    options = {"network": factory, "network_options": None, "partner": "non-candidate"}
    model = MAKERS[kind](**options, n_epochs=1).fit(X, candidates)
    path = save_model(model, tmp_path / "model")
    with pytest.raises(CheckpointError, match=r"network function.*load_model\(..., network="):
        load_model(path)
    assert_same_model(model, load_model(path, network=factory), X)


def test_images_and_integer_classes(tmp_path):
    X, candidates = make_images(8)
    options = {"network": "resnet18", "network_options": {"width": 0.03}, "n_epochs": 1}
    model = proden(**options, validation_fraction=0.25).fit(X, candidates)
    restored = load_model(save_model(model, tmp_path / "model"))
    assert_same_model(model, restored, X)
    assert restored.classes_.dtype == model.classes_.dtype
    with pytest.raises(ValueError, match="shape"):
        restored.predict(X[:, :, :4])


def test_names_of_features_come_back(tmp_path):
    pandas = pytest.importorskip("pandas")
    X, candidates, _ = make_table()
    frame = pandas.DataFrame(X, columns=list("uvwxyz"), index=np.arange(100, 140))
    model = proden(n_epochs=1).fit(frame, candidates)
    restored = load_model(save_model(model, tmp_path / "model"))
    np.testing.assert_array_equal(restored.predict(frame), model.predict(frame))
    np.testing.assert_array_equal(restored.feature_names_in_, list("uvwxyz"))
    np.testing.assert_array_equal(restored.ids_, model.ids_)
    with pytest.raises(ValueError, match="feature names"):
        restored.predict(frame[list("zyxwvu")])


def test_only_fitted_classifiers(tmp_path, fitted):
    for wrong in (proden(), "model", None):
        with pytest.raises(TypeError, match="fitted"):
            save_model(wrong, tmp_path / "model")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("damage", ["cut", "half", "empty", "text"])
def test_damaged_file(tmp_path, fitted, damage):
    path = save_model(fitted, tmp_path / "model")
    whole = path.read_bytes()
    cuts = {"cut": whole[:-1], "half": whole[: len(whole) // 2], "empty": b"", "text": b"x" * 99}
    path.write_bytes(cuts[damage])
    with pytest.raises(CheckpointError, match="model' is damaged"):
        load_model(path)


def test_foreign_file(tmp_path):
    path = tmp_path / "foreign"
    save_file({"weight": torch.ones(2)}, path)
    with pytest.raises(CheckpointError, match="not written by appellate"):
        load_model(path)
    save_tree({"weight": torch.ones(2)}, path)
    with pytest.raises(CheckpointError, match="holds no deep model"):
        load_model(path)
    save_tree({"format": "appellate-deep-model", "class": "os.system"}, path)
    with pytest.raises(CheckpointError, match="holds no deep model"):
        load_model(path)
    with pytest.raises(FileNotFoundError, match="nowhere"):
        load_model(tmp_path / "nowhere")


def test_checkpoint_is_no_model(tmp_path):
    X, candidates, _ = make_table()
    proden(n_epochs=1, run_dir=tmp_path).fit(X, candidates)
    with pytest.raises(CheckpointError, match="holds no deep model"):
        load_model(tmp_path / "checkpoint.safetensors")


def test_newer_format(tmp_path, fitted):
    path = save_model(fitted, tmp_path / "model")
    tree = checkpoint.load_tree(path)
    save_tree(tree | {"format_version": 99}, path)
    with pytest.raises(CheckpointError, match="newer"):
        load_model(path)


def test_nothing_half_written(tmp_path, fitted, monkeypatch):
    path = save_model(fitted, tmp_path / "model")
    before = path.read_bytes()

    def full(*args):
        raise OSError("no space left")

    monkeypatch.setattr(checkpoint.os, "replace", full)
    with pytest.raises(OSError, match="no space"):
        save_model(fitted, path)
    assert path.read_bytes() == before


def test_global_random_state_is_left_alone(tmp_path, fitted):
    path = save_model(fitted, tmp_path / "model")
    state = torch.get_rng_state()
    load_model(path)
    assert torch.equal(torch.get_rng_state(), state)


@pytest.mark.parametrize("cost", ["within:1", [[0.0, 1, 2], [1, 0, 1], [2, 1, 0]]])
def test_costs_are_kept(cost, tmp_path):
    X, y = [[0.0], [1.0], [2.0], [3.0]], ["0|1", "1|2", "0|2", "0|1|2"]
    model = PRODENClassifier("linear", n_epochs=2, partner="non-candidate", cost=cost)
    model.fit(X, y)
    loaded = load_model(save_model(model, tmp_path / "m.safetensors"))
    np.testing.assert_array_equal(loaded.cost_, model.cost_)
    np.testing.assert_array_equal(loaded.predict(X), model.predict(X))
    assert loaded.docket(output="docket").cost_name == model.docket(output="docket").cost_name
