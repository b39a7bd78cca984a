"""What a fitted classifier is outside of its process: plain values and arrays."""

from __future__ import annotations

import copy
import pickle

import joblib
import numpy as np
import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("skops.io")

from torch import nn  # noqa: E402

from appellate import PLCPClassifier  # noqa: E402
from appellate.deep import PRODENClassifier, Run  # noqa: E402
from appellate.io import load_model, save_model  # noqa: E402
from tests.deep.small import (  # noqa: E402
    MAKERS,
    assert_same_state,
    make_images,
    make_table,
    proden,
    state_of,
    timeless,
)


def factory(shape, n_outputs):
    return nn.Sequential(nn.Flatten(), nn.Linear(int(np.prod(shape)), n_outputs or 5))


def through_joblib(model, folder):
    joblib.dump(model, folder / "model")
    return joblib.load(folder / "model")


def through_files(model, folder):
    """Nothing but our own types, those of numpy, plain values and the function of a user."""
    own = ["tests.deep.test_state.factory"]
    return load_model(save_model(model, folder / "model", trusted=own), trusted=own)


WAYS = {
    "pickle": lambda model, folder: pickle.loads(pickle.dumps(model)),
    "copy": lambda model, folder: copy.deepcopy(model),
    "joblib": through_joblib,
    "files": through_files,
}


def assert_same_model(one, other, X):
    assert type(one) is type(other)
    weights = [
        {k: v for k, v in state_of(m).items() if not k.endswith("confidence")}
        for m in (one, other)
    ]
    assert_same_state(*weights)
    assert timeless(one.history_) == timeless(other.history_)
    fitted = {k for k in vars(one) if k.endswith("_")} - {"history_"}
    assert fitted == {k for k in vars(other) if k.endswith("_")} - {"history_"}
    for name in fitted:
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name), name)
    for name, probabilities in one.predict_heads(X).items():
        np.testing.assert_array_equal(other.predict_heads(X)[name], probabilities)
    np.testing.assert_array_equal(one.predict(X), other.predict(X))
    ours, theirs = one.docket(output="dict"), other.docket(output="dict")
    for name, column in ours.items():
        np.testing.assert_array_equal(column, theirs[name])


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("partner", [None, "non-candidate", "candidate", "independent"])
@pytest.mark.parametrize("kind", MAKERS)
def test_comes_back(kind, partner, way, tmp_path):
    X, candidates, _ = make_table()
    names = np.array(["anna", "bob", "eve", "zoë"])
    sets = ["|".join(names[row]) for row in candidates]
    model = MAKERS[kind](partner=partner, head="partner", n_epochs=2).fit(X, sets)
    restored = WAYS[way](model, tmp_path)
    assert_same_model(model, restored, X)
    assert model.get_params() == restored.get_params()
    restored.fit(X, sets)  # it can be fitted again
    np.testing.assert_array_equal(restored.training_output_, model.training_output_)


@pytest.mark.parametrize("way", WAYS)
def test_under_plcp(way, tmp_path):
    X, candidates, _ = make_table()
    model = PLCPClassifier(proden(n_epochs=1), max_rounds=2, head="base").fit(X, candidates)
    restored = WAYS[way](model, tmp_path)
    np.testing.assert_array_equal(restored.predict_proba(X), model.predict_proba(X))
    assert_same_state(*(_weights(each.estimator_) for each in (restored, model)))


def _weights(model):
    return {k: v for k, v in state_of(model).items() if not k.endswith("confidence")}


@pytest.mark.parametrize("kind", MAKERS)
@pytest.mark.parametrize("way", WAYS)
def test_networks_of_the_user(kind, way, tmp_path):
    X, candidates, _ = make_table()
    options = {"network": factory, "partner": "non-candidate"}
    model = MAKERS[kind](**options, n_epochs=1).fit(X, candidates)
    assert_same_model(model, WAYS[way](model, tmp_path), X)


@pytest.mark.parametrize("way", WAYS)
def test_images_names_of_features_and_odd_parameters(way, tmp_path):
    pandas = pytest.importorskip("pandas")
    X, candidates = make_images(8)
    options = {"network": "resnet18", "width": 0.03, "n_epochs": 1}
    model = proden(**options, validation_fraction=0.25).fit(X, candidates)
    restored = WAYS[way](model, tmp_path)
    assert_same_model(model, restored, X)
    with pytest.raises(ValueError, match="shape"):
        restored.predict(X[:, :, :4])

    X, candidates, _ = make_table()
    days = pandas.date_range("2024-02-29", periods=40)
    frame = pandas.DataFrame(X, columns=list("uvwxyz"), index=days)
    run = Run(tmp_path / "run", device=torch.device("cpu"))
    model = PRODENClassifier("linear", n_epochs=np.int64(2), run=run, random_state=np.int64(3))
    model.fit(frame, candidates)
    restored = WAYS[way](model, tmp_path)
    assert_same_model(model, restored, frame)
    assert restored.n_epochs == 2
    assert restored.ids_.dtype == model.ids_.dtype
    with pytest.raises(ValueError, match="feature names"):
        restored.predict(frame[list("zyxwvu")])


@pytest.mark.parametrize("way", WAYS)
def test_class_names_of_any_type(way, tmp_path):
    X = [[0.0], [1.0], [2.0], [3.0]]
    y = [{1, "1"}, {("a", 1)}, {"1", ("a", 1)}, {1}]
    model = PRODENClassifier("linear", n_epochs=1).fit(X, y)
    restored = WAYS[way](model, tmp_path)
    names = [(type(name), name) for name in model.classes_]
    assert {type(name) for name in model.classes_} == {int, str, tuple}
    assert [(type(name), name) for name in restored.classes_] == names


@pytest.mark.parametrize("cost", ["within:1", [[0.0, 1, 2], [1, 0, 1], [2, 1, 0]]])
@pytest.mark.parametrize("way", WAYS)
def test_costs_are_kept(cost, way, tmp_path):
    X, y = [[0.0], [1.0], [2.0], [3.0]], ["0|1", "1|2", "0|2", "0|1|2"]
    model = PRODENClassifier("linear", n_epochs=2, partner="non-candidate", cost=cost)
    model.fit(X, y)
    restored = WAYS[way](model, tmp_path)
    np.testing.assert_array_equal(restored.cost_, model.cost_)
    np.testing.assert_array_equal(restored.predict(X), model.predict(X))
    name = model.docket(output="docket").cost_name
    assert restored.docket(output="docket").cost_name == name


def test_no_torch_in_the_state():
    X, candidates, _ = make_table()
    model = proden(partner="non-candidate").fit(X, candidates)
    state = model._model.__getstate__()
    assert all(type(value) is np.ndarray for value in state["weights"].values())
    assert not any(name.endswith("confidence") for name in state["weights"])
    assert "_networks" not in model.__getstate__()


def test_light_models_forget_the_training_rows():
    X, candidates, _ = make_table()
    model = proden(partner="non-candidate").fit(X, candidates)
    light = model._model.light()
    assert light.training_output is None
    assert len(light.method.confidence) == 1
    assert model._model.training_output is not None
    for name, probabilities in model.predict_heads(X).items():
        np.testing.assert_array_equal(light.heads(X)[name], probabilities)


def test_global_random_state_is_left_alone():
    X, candidates, _ = make_table()
    content = pickle.dumps(proden(n_epochs=1).fit(X, candidates))
    state = torch.get_rng_state()
    pickle.loads(content)
    assert torch.equal(torch.get_rng_state(), state)


def test_warm_start_goes_on_from_a_file():
    X, candidates, _ = make_table()
    model = proden(warm_start=True).fit(X, candidates)
    restored = pickle.loads(pickle.dumps(model))
    for each in (model, restored):
        each.fit(X, candidates)
    assert_same_model(model, restored, X)
