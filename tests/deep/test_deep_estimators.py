"""The deep classifiers as scikit-learn estimators, as bases of PLCP, and on images."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from sklearn.base import clone  # noqa: E402
from sklearn.exceptions import NotFittedError  # noqa: E402
from sklearn.model_selection import cross_val_score  # noqa: E402
from sklearn.utils.estimator_checks import parametrize_with_checks  # noqa: E402
from torch import nn  # noqa: E402
from torch.utils.data import Dataset  # noqa: E402

from appellate import PLCPClassifier  # noqa: E402
from appellate.deep import PiCOClassifier, PRODENClassifier, data  # noqa: E402
from appellate.testing import make_clusters, parametrize_with_pll_checks  # noqa: E402
from tests.deep.small import (  # noqa: E402
    MAKERS,
    assert_same_run,
    assert_same_state,
    make_images,
    make_table,
    pico,
    proden,
    state_of,
)

KINDS = list(MAKERS)
QUICK = {"network_options": {"hidden": (16,)}, "n_epochs": 12, "batch_size": 64}
QUICK |= {"learning_rate": 0.2}
ESTIMATORS = [
    proden(**QUICK, partner="non-candidate"),
    pico(**QUICK),
]
#: The first weights belong to a place among the labels, so that another order is another draw.
NOT_ASKED = {"check_permuted_classes"}


@parametrize_with_checks(ESTIMATORS)
def test_sklearn_checks(estimator, check):
    check(estimator)


@parametrize_with_pll_checks(ESTIMATORS)
def test_pll_checks(estimator, check):
    if check.__name__ in NOT_ASKED:
        pytest.skip("a new order of the labels is a new draw of the weights")
    check(estimator)


# -- manners ----------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
def test_clone_and_pickle(kind):
    X, candidates, _ = make_table()
    model = MAKERS[kind](partner="non-candidate").fit(X, candidates)
    copied = clone(model)
    assert copied.get_params() == model.get_params()
    assert not hasattr(copied, "classes_")
    assert_same_run(copied.fit(X, candidates), model, X)
    restored = pickle.loads(pickle.dumps(model))
    assert_same_run(restored, model, X)
    np.testing.assert_array_equal(restored.predict(X), model.predict(X))


@pytest.mark.parametrize("kind", [PRODENClassifier, PiCOClassifier])
def test_params_are_kept_as_given(kind):
    model = kind("linear", n_epochs=3, network_options=None, blur=None)
    params = model.get_params()
    assert params["network"] == "linear"
    assert params["blur"] is None
    assert model.set_params(n_epochs=7, head="base").get_params() == params | {
        "n_epochs": 7,
        "head": "base",
    }


def test_cross_validation():
    X, _, truth = make_clusters()
    model = proden(**QUICK)
    assert cross_val_score(model, X, truth, cv=3).mean() > 0.9


@pytest.mark.parametrize("kind", KINDS)
def test_head_is_read_at_prediction(kind):
    X, candidates, _ = make_table()
    model = MAKERS[kind](partner="non-candidate").fit(X, candidates)
    heads = model.predict_heads(X)
    assert list(heads) == ["base", "partner", "mean"]
    assert not np.array_equal(heads["base"], heads["partner"])
    np.testing.assert_allclose(heads["mean"], (heads["base"] + heads["partner"]) / 2, atol=1e-7)
    for name, probabilities in heads.items():
        model.set_params(head=name)
        np.testing.assert_array_equal(model.predict_proba(X), probabilities)
        expected = model.classes_[probabilities.argmax(axis=1)]
        np.testing.assert_array_equal(model.predict(X), expected)


def test_alone_every_head_is_the_base():
    X, candidates, _ = make_table()
    model = proden(head="partner").fit(X, candidates)
    assert list(model.predict_heads(X)) == ["base"]
    np.testing.assert_array_equal(model.predict_proba(X), model.predict_heads(X)["base"])
    assert not model.overturned_.any()


def test_not_fitted():
    with pytest.raises(NotFittedError):
        proden().predict_heads(np.zeros((2, 6)))
    with pytest.raises(NotFittedError):
        proden().docket()


def test_training_attributes_are_those_of_prediction():
    X, candidates, _ = make_table()
    model = proden(partner="non-candidate").fit(X, candidates)
    np.testing.assert_array_equal(model.training_output_, model.predict_proba(X))
    inside = np.where(candidates, model.training_output_, 0)
    expected = inside / inside.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(model.confidence_, expected, rtol=1e-5)
    base = np.where(candidates, model.predict_heads(X)["base"], -1).argmax(axis=1)
    np.testing.assert_array_equal(model.verdict_, model.classes_[base])
    np.testing.assert_array_equal(model.transduction_, model.classes_[inside.argmax(axis=1)])
    np.testing.assert_array_equal(model.overturned_, model.verdict_ != model.transduction_)


def test_docket_with_truth():
    pandas = pytest.importorskip("pandas")
    X, candidates, truth = make_table()
    model = proden(partner="non-candidate", collaboration=5.0, n_epochs=8)
    sets = pandas.DataFrame(candidates, columns=list("abcd"), index=[f"r{i}" for i in range(40)])
    model.fit(X, sets)
    table = model.docket(truth=np.array(list("abcd"))[truth])
    assert isinstance(table, pandas.DataFrame)
    assert len(table) == 40
    docket = model.docket(truth=np.array(list("abcd"))[truth], output="docket")
    assert docket.to_frame("pandas").equals(table)
    columns = model.docket(output="dict")
    assert next(iter(columns.values()))[3] == "r3"
    values = [np.asarray(column).tolist() for column in columns.values()]
    assert model.verdict_.tolist() in values
    assert model.transduction_.tolist() in values
    assert model.overturned_.any()  # else base and head are one, and nothing is shown


def test_user_network():
    def factory(shape, n_outputs):
        layers = [nn.Flatten(), nn.Linear(int(np.prod(shape)), 5), nn.Tanh()]
        return nn.Sequential(*layers, *([] if n_outputs is None else [nn.Linear(5, n_outputs)]))

    X, candidates, _ = make_table()
    for make in (proden, pico):
        options = {"network": factory, "network_options": None, "partner": "non-candidate"}
        model = make(**options).fit(X, candidates)
        assert any(isinstance(m, nn.Tanh) for m in model._method.modules())
        assert model.predict_proba(X).shape == (40, 4)


def test_tied_weights_survive_a_checkpoint(tmp_path):
    class Tied(nn.Module):
        def __init__(self, shape, n_outputs):
            super().__init__()
            self.first = nn.Linear(6, 6)
            self.again = nn.Linear(6, 6)
            self.again.weight = self.first.weight
            self.last = nn.Linear(6, n_outputs)

        def forward(self, x):
            return self.last(torch.tanh(self.again(torch.tanh(self.first(x)))))

    X, candidates, _ = make_table()
    options = {"network": Tied, "network_options": None, "run_dir": tmp_path}
    model = proden(**options).fit(X, candidates)
    assert_same_run(proden(**options, resume=True).fit(X, candidates), model, X)


# -- as a base of the stand-alone PLCP --------------------------------------------------


def test_supervision_is_the_first_target():
    """One batch, hardly a step: the loss is that against the supervision."""
    X, candidates, truth = make_table()
    model = proden(network="linear", network_options=None, n_epochs=1, batch_size=40)
    model.set_params(learning_rate=1e-12)
    sure = np.eye(4)[truth]
    logs = np.log(model.fit(X, candidates, supervision=sure).predict_proba(X))
    expected = -(sure * logs).sum(axis=1).mean()
    assert model.history_[0]["loss"] == pytest.approx(expected, rel=1e-4)
    even = model.fit(X, candidates).history_[0]["loss"]
    assert abs(even - expected) > 1e-3


@pytest.mark.parametrize("kind", KINDS)
def test_warm_start_goes_on(kind):
    """Hardly learning at all, so that the weights of before are still to be seen."""
    X, candidates, _ = make_table()
    model = MAKERS[kind](warm_start=True, partner="non-candidate").fit(X, candidates)
    before = state_of(model)
    kept = {k: v.clone() for k, v in before.items() if k.endswith(("weight", "bias"))}
    model.set_params(learning_rate=1e-12, n_epochs=1, random_state=7).fit(X, candidates)
    for name, value in kept.items():
        if ".key." not in name:
            torch.testing.assert_close(state_of(model)[name], value, atol=1e-6, rtol=0)
    model.set_params(warm_start=False).fit(X, candidates)
    assert any((state_of(model)[k] - v).abs().max() > 0.1 for k, v in kept.items())


def test_warm_start_begins_with_fresh_confidence():
    X, candidates, _ = make_table()
    model = proden(warm_start=True, n_epochs=30).fit(X, candidates)
    sharp = model.history_[-1]["loss"]
    first = model.set_params(n_epochs=1, learning_rate=1e-12).fit(X, candidates).history_[0]
    assert first["loss"] > sharp  # even targets again


@pytest.mark.parametrize("warm", [False, True])
def test_base_of_plcp(warm, monkeypatch):
    X, candidates, truth = make_clusters()
    starts = []
    train = PRODENClassifier._make_method

    def watched(self, shape, start, streams):
        starts.append((start.clone(), getattr(self, "_method", None)))
        return train(self, shape, start, streams)

    monkeypatch.setattr(PRODENClassifier, "_make_method", watched)
    base = proden(**QUICK, warm_start=warm)
    model = PLCPClassifier(base, max_rounds=3, random_state=0).fit(X, candidates)
    assert len(starts) == 3
    y = torch.from_numpy(candidates).float()
    assert torch.equal(starts[0][0], y / y.sum(dim=1, keepdim=True))
    assert not torch.equal(starts[1][0], starts[0][0])  # what the partner said
    torch.testing.assert_close(starts[2][0].sum(dim=1), torch.ones(60))
    assert starts[0][1] is None
    assert starts[1][1] is not None
    assert np.mean(model.predict(X) == truth) > 0.95
    assert model.estimator_.training_output_.shape == (60, 3)
    for head in ("base", "partner", "mean"):
        assert np.mean(model.set_params(head=head).predict(X) == truth) > 0.9
    losses = model.estimator_.history_[0]["loss"], model.estimator_.history_[-1]["loss"]
    assert np.isfinite(losses).all()


# -- images, mapped arrays, datasets ----------------------------------------------------


class Images(Dataset):
    """Floats between 0 and 1, with a label that is not to be looked at."""

    def __init__(self, X, with_label=True):
        self.X, self.with_label = X, with_label

    def __len__(self):
        return len(self.X)

    def __getitem__(self, row):
        image = torch.from_numpy(self.X[row]).float() / 255
        return (image, "label") if self.with_label else image


@pytest.mark.parametrize("network", ["linear", "resnet18"])
def test_layouts_of_images(network):
    X, candidates = make_images(10)
    options = {"network": network, "network_options": None, "n_epochs": 2, "batch_size": 4}
    if network == "resnet18":
        options["network_options"] = {"width": 0.05}
    first = proden(**options).fit(X, candidates)
    assert first.input_shape_ == (3, 8, 8)
    last = np.ascontiguousarray(np.moveaxis(X, 1, -1))
    other = proden(**options).fit(last, candidates)
    assert other.input_shape_ == (3, 8, 8)
    assert_same_state(state_of(other), state_of(first))
    expected = first.predict_proba(X)
    np.testing.assert_array_equal(first.predict_proba(last), expected)
    floats = proden(**options).fit(X.astype(np.float32) / 255, candidates)
    np.testing.assert_allclose(floats.predict_proba(X / 255.0), expected, atol=1e-5)


def test_grey_images():
    X, candidates = make_images(10, channels=1)
    options = {"network": "resnet32", "network_options": {"width": 0.2}, "n_epochs": 2}
    with_axis = proden(**options).fit(X, candidates)
    without = proden(**options).fit(X[:, 0], candidates)
    assert with_axis.input_shape_ == without.input_shape_ == (1, 8, 8)
    np.testing.assert_array_equal(with_axis.predict_proba(X), without.predict_proba(X[:, 0]))


@pytest.mark.parametrize("dtype", [np.uint8, np.float32, np.float64])
def test_mapped_array_is_read_by_batches(tmp_path, monkeypatch, dtype):
    X, candidates = make_images(12)
    X = X.astype(dtype)
    path = tmp_path / "images.npy"
    np.save(path, X)
    mapped = np.load(path, mmap_mode="r")
    options = {"network": "linear", "network_options": None, "batch_size": 4}
    options |= {"validation_fraction": 0.25}
    model = proden(**options).fit(X, candidates)
    wholes = []
    whole = data.ArrayInputs._whole

    def watched(self, device):
        wholes.append(whole(self, device))
        return wholes[-1]

    monkeypatch.setattr(data.ArrayInputs, "_whole", watched)
    from_file = proden(**options).fit(mapped, candidates)
    assert_same_run(from_file, model, mapped)
    np.testing.assert_array_equal(from_file.predict_proba(mapped), model.predict_proba(X))
    assert len(wholes) > 4
    assert wholes[0] is None
    assert all(each is None for each in wholes[:5])


@pytest.mark.parametrize("n_workers", [0, 1])
def test_dataset_equals_the_array(n_workers):
    X, candidates = make_images(10)
    options = {"network": "linear", "network_options": None, "n_epochs": 1}
    array = proden(**options, standardize=False).fit(X, candidates)
    model = proden(**options, n_workers=n_workers).fit(Images(X), candidates)
    assert_same_state(state_of(model), state_of(array))
    np.testing.assert_array_equal(model.predict(Images(X)), array.predict(X))
    np.testing.assert_array_equal(model.predict_proba(Images(X)), array.predict_proba(X))
    np.testing.assert_array_equal(model.transduction_, array.transduction_)


def test_dataset_of_inputs_alone_with_augmentation(tmp_path):
    X, candidates = make_images(10)
    options = {"network": "linear", "network_options": None, "partner": "non-candidate"}
    options |= {"weak_augmentation": "crop_flip", "strong_augmentation": "strong"}
    options |= {"run_dir": tmp_path, "n_epochs": 2}
    model = pico(**options).fit(Images(X, with_label=False), candidates)
    again = pico(**options, resume=True).fit(Images(X), candidates)
    np.testing.assert_array_equal(again.predict_proba(X / 255.0), model.predict_proba(X / 255.0))


def test_standardized_by_channel():
    X, candidates = make_images(10)
    X[:, 1] //= 4
    model = proden(network="linear", network_options=None).fit(X, candidates)
    mean, deviation = (X / 255.0).mean(axis=(0, 2, 3)), (X / 255.0).std(axis=(0, 2, 3))
    np.testing.assert_allclose(model._scaling.mean.numpy().ravel(), mean, rtol=1e-5)
    np.testing.assert_allclose(model._scaling.deviation.numpy().ravel(), deviation, rtol=1e-5)


# -- what is refused --------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"selection": "covering_rate"}, "validation_fraction"),
        ({"resume": True}, "resume=True needs the run_dir"),
        ({"network": "vgg"}, "no network named 'vgg'"),
        ({"augmentation": "mixup"}, "no augmentation named 'mixup'"),
        ({"augmentation": "crop_flip"}, "images of shape"),
        ({"partner": "both"}, "'partner' parameter"),
        ({"batch_size": 1}, "'batch_size' parameter"),
        ({"precision": "int8"}, "'precision' parameter"),
        ({"network": "convnet", "network_options": None}, "takes images"),
    ],
)
def test_wrong_parameters(options, message):
    X, candidates, _ = make_table()
    with pytest.raises(ValueError, match=message):
        proden(**options).fit(X, candidates)


@pytest.mark.parametrize("device", ["abacus", "cuda"])
def test_unknown_device_is_named(device):
    if device == "cuda" and torch.cuda.is_available():
        pytest.skip("there is one")
    X, candidates, _ = make_table()
    with pytest.raises(ValueError, match=f"no device '{device}'"):
        proden(device=device).fit(X, candidates)


def test_other_shape_at_prediction():
    X, candidates = make_images(8)
    model = proden(network="linear", network_options=None, n_epochs=1).fit(X, candidates)
    for other in (X[:, :1], X[:, :, :4], Images(X[:, :, :4])):
        with pytest.raises(ValueError, match=r"rows of shape .* fitted on rows of shape \(3, 8"):
            model.predict(other)
    with pytest.raises(ValueError, match="192 features"):
        model.predict(X.reshape(8, -1))
    with pytest.raises(ValueError, match="shape"):
        model.fit(X[..., None, None], candidates)


def test_lengths_must_agree():
    X, candidates = make_images(8)
    with pytest.raises(ValueError, match="8"):
        proden().fit(Images(X), candidates[:5])


def test_resume_asks_for_the_seed(tmp_path):
    model = PRODENClassifier("linear", run_dir=tmp_path, resume=True)
    with pytest.raises(ValueError, match="random_state"):
        model.fit([[0.0], [1.0]], ["a", "b"])


def test_cost_decides_predictions_and_training_labels():
    rng = np.random.default_rng(0)
    X, candidates = rng.normal(size=(40, 3)), rng.random((40, 5)) < 0.6
    candidates[:, 2] = True
    model = PRODENClassifier("linear", n_epochs=3, partner="non-candidate", random_state=0)
    plain = clone(model).fit(X, candidates)
    ordered = model.set_params(cost="absolute").fit(X, candidates)
    np.testing.assert_array_equal(ordered.predict_proba(X), plain.predict_proba(X))
    costs = ordered.predict_proba(X) @ ordered.cost_
    np.testing.assert_array_equal(ordered.predict(X), costs.argmin(axis=1))
    inside = np.where(candidates, ordered.confidence_ @ ordered.cost_, np.inf)
    np.testing.assert_array_equal(ordered.transduction_, inside.argmin(axis=1))
    assert (ordered.transduction_ != plain.transduction_).any()
    inside = np.where(candidates, ordered.verdict_confidence_ @ ordered.cost_, np.inf)
    np.testing.assert_array_equal(ordered.verdict_, inside.argmin(axis=1))
