"""The deep classifiers as scikit-learn estimators, as bases of PLCP, and on images."""

from __future__ import annotations

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from sklearn.base import clone  # noqa: E402
from sklearn.exceptions import NotFittedError  # noqa: E402
from sklearn.model_selection import GridSearchCV, cross_val_score  # noqa: E402
from sklearn.utils.estimator_checks import parametrize_with_checks  # noqa: E402
from torch import nn  # noqa: E402
from torch.utils.data import Dataset  # noqa: E402

from appellate import PLCPClassifier  # noqa: E402
from appellate.deep import (  # noqa: E402
    Contrast,
    Coupling,
    Network,
    Optimizer,
    PiCOClassifier,
    PRODENClassifier,
    Run,
    data,
)
from appellate.deep.methods import DeepMethod, MethodPlan  # noqa: E402
from appellate.deep.trainer import Trainer  # noqa: E402
from appellate.model_selection import CandidateKFold  # noqa: E402
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
QUICK = {"hidden": (16,), "n_epochs": 12, "batch_size": 64}
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
def test_clone(kind):
    X, candidates, _ = make_table()
    model = MAKERS[kind](partner="non-candidate").fit(X, candidates)
    copied = clone(model)
    assert copied.get_params() == model.get_params()
    assert not hasattr(copied, "classes_")
    assert_same_run(copied.fit(X, candidates), model, X)


@pytest.mark.parametrize("kind", [PRODENClassifier, PiCOClassifier])
def test_params_are_kept_as_given(kind):
    model = kind("linear", n_epochs=3, partner=Coupling(blur=None), optimizer=Optimizer("sgd"))
    params = model.get_params()
    assert len(model.get_params(deep=False)) <= 15
    assert params["network"] == "linear"
    assert params["partner__blur"] is None
    changed = {"n_epochs": 7, "head": "base", "optimizer__learning_rate": 0.3}
    assert model.set_params(**changed).get_params() == params | changed


def test_settings_in_words_and_in_objects_are_the_same():
    X, candidates, _ = make_table()
    words = PRODENClassifier("mlp", partner="candidate", optimizer="sgd", n_epochs=2)
    objects = PRODENClassifier(
        Network("mlp"), partner=Coupling("candidate"), optimizer=Optimizer("sgd"), n_epochs=2
    )
    models = [each.set_params(random_state=0).fit(X, candidates) for each in (words, objects)]
    assert_same_run(*models, X)


def test_objects_are_not_changed_by_fit_nor_fit_by_them():
    X, candidates, _ = make_table()
    coupling, optimizer = Coupling(partner_output="sigmoid"), Optimizer()
    model = proden(n_epochs=1).set_params(partner=coupling, optimizer=optimizer)
    model.fit(X, candidates)
    assert coupling == Coupling(partner_output="sigmoid")
    assert optimizer == Optimizer()
    before = model.predict_proba(X)
    coupling.partner_output = "softmax"
    np.testing.assert_array_equal(model.predict_proba(X), before)


def test_nested_parameters_can_be_searched():
    X, _, truth = make_clusters()
    model = PRODENClassifier("linear", optimizer=Optimizer(), n_epochs=8, random_state=0)
    grid = {"optimizer__learning_rate": [1e-9, 0.1]}
    found = GridSearchCV(model, grid, cv=CandidateKFold(2)).fit(X, truth)
    assert found.best_params_ == {"optimizer__learning_rate": 0.1}


@pytest.mark.parametrize(("rows", "usual"), [((20, 6), "adam"), ((20, 3, 8, 8), "sgd")])
def test_tables_and_images_have_settings_of_their_own(rows, usual, monkeypatch):
    rng = np.random.RandomState(0)
    seen, init = [], Trainer.__init__

    def watched(self, *args, **more):
        seen.append(args[3])
        init(self, *args, **more)

    monkeypatch.setattr(Trainer, "__init__", watched)
    PRODENClassifier("linear", n_epochs=1).fit(rng.normal(size=rows), rng.randint(3, size=20))
    assert seen[0].name == usual
    assert None not in seen[0].get_params().values()


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
        options = {"network": factory, "partner": "non-candidate"}
        model = make(**options).fit(X, candidates)
        assert any(isinstance(m, nn.Tanh) for m in model._model.method.modules())
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
    options = {"network": Tied, "folder": tmp_path}
    model = proden(**options).fit(X, candidates)
    assert_same_run(proden(**options, resume=True).fit(X, candidates), model, X)


# -- as a base of the stand-alone PLCP --------------------------------------------------


def test_supervision_is_the_first_target():
    """One batch, hardly a step: the loss is that against the supervision."""
    X, candidates, truth = make_table()
    model = proden(network="linear", n_epochs=1, batch_size=40)
    model.set_params(optimizer__learning_rate=1e-12)
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
    model.set_params(optimizer__learning_rate=1e-12, n_epochs=1, random_state=7).fit(X, candidates)
    for name, value in kept.items():
        if ".key." not in name:
            torch.testing.assert_close(state_of(model)[name], value, atol=1e-6, rtol=0)
    model.set_params(warm_start=False).fit(X, candidates)
    assert any((state_of(model)[k] - v).abs().max() > 0.1 for k, v in kept.items())


def test_warm_start_begins_with_fresh_confidence():
    X, candidates, _ = make_table()
    model = proden(warm_start=True, n_epochs=30).fit(X, candidates)
    sharp = model.history_[-1]["loss"]
    model.set_params(n_epochs=1, optimizer__learning_rate=1e-12)
    first = model.fit(X, candidates).history_[0]
    assert first["loss"] > sharp  # even targets again


@pytest.mark.parametrize("warm", [False, True])
def test_base_of_plcp(warm, monkeypatch):
    X, candidates, truth = make_clusters()
    starts = []
    make, take_over = MethodPlan.make, DeepMethod.take_over

    def made(self, start, streams):
        starts.append([start.clone(), None])
        return make(self, start, streams)

    def taken_over(method, before):
        starts[-1][1] = before
        return take_over(method, before)

    monkeypatch.setattr(MethodPlan, "make", made)
    monkeypatch.setattr(DeepMethod, "take_over", taken_over)
    base = proden(**QUICK, warm_start=warm)
    model = PLCPClassifier(base, max_rounds=3, random_state=0).fit(X, candidates)
    assert len(starts) == 3
    y = torch.from_numpy(candidates).float()
    assert torch.equal(starts[0][0], y / y.sum(dim=1, keepdim=True))
    assert not torch.equal(starts[1][0], starts[0][0])  # what the partner said
    torch.testing.assert_close(starts[2][0].sum(dim=1), torch.ones(60))
    assert starts[0][1] is None
    assert (starts[1][1] is not None) == warm
    assert np.mean(model.predict(X) == truth) > 0.95
    assert model.estimator_.training_output_.shape == (60, 3)
    assert len(model.estimator_.docket(output="dict")["outcome"]) == 60
    for head in ("base", "partner", "mean"):
        assert np.mean(model.set_params(head=head).predict(X) == truth) > 0.9
    losses = model.estimator_.history_[0]["loss"], model.estimator_.history_[-1]["loss"]
    assert np.isfinite(losses).all()


def test_base_of_plcp_with_a_folder(tmp_path):
    """Each round has a folder of its own; a second fit takes all of them up."""
    X, candidates, _ = make_clusters()
    whole = PLCPClassifier(proden(), max_rounds=3).fit(X, candidates)
    for resume in (False, True):
        base = proden(folder=tmp_path, resume=resume)
        model = PLCPClassifier(base, max_rounds=3).fit(X, candidates)
        assert_same_run(model.estimator_, whole.estimator_, X)
    folders = sorted(p.parent.name for p in tmp_path.rglob("log.jsonl"))
    assert folders == sorted([tmp_path.name, "round-2", "round-3"])
    with pytest.raises(FileExistsError):  # fitted again by itself, it is the first round
        model.estimator_.set_params(run__resume=False).fit(X, candidates)


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
    options = {"network": network, "n_epochs": 2, "batch_size": 4}
    if network == "resnet18":
        options["width"] = 0.05
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
    options = {"network": "resnet32", "width": 0.2, "n_epochs": 2}
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
    options = {"network": "linear", "batch_size": 4}
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
    options = {"network": "linear", "n_epochs": 1}
    array = proden(**options, standardize=False).fit(X, candidates)
    model = proden(**options, n_workers=n_workers).fit(Images(X), candidates)
    assert_same_state(state_of(model), state_of(array))
    np.testing.assert_array_equal(model.predict(Images(X)), array.predict(X))
    np.testing.assert_array_equal(model.predict_proba(Images(X)), array.predict_proba(X))
    np.testing.assert_array_equal(model.transduction_, array.transduction_)


def test_dataset_of_inputs_alone_with_augmentation(tmp_path):
    X, candidates = make_images(10)
    options = {"network": "linear", "partner": "non-candidate"}
    options |= {"augmentation": ("crop_flip", "strong")}
    options |= {"folder": tmp_path, "n_epochs": 2}
    model = pico(**options).fit(Images(X, with_label=False), candidates)
    again = pico(**options, resume=True).fit(Images(X), candidates)
    np.testing.assert_array_equal(again.predict_proba(X / 255.0), model.predict_proba(X / 255.0))


def test_standardized_by_channel():
    X, candidates = make_images(10)
    X[:, 1] //= 4
    model = proden(network="linear").fit(X, candidates)
    mean, deviation = (X / 255.0).mean(axis=(0, 2, 3)), (X / 255.0).std(axis=(0, 2, 3))
    np.testing.assert_allclose(model._model.scaling.mean.numpy().ravel(), mean, rtol=1e-5)
    np.testing.assert_allclose(
        model._model.scaling.deviation.numpy().ravel(), deviation, rtol=1e-5
    )


# -- what is refused --------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"selection": "covering_rate", "validation_fraction": 0}, "validation_fraction"),
        ({"validation_fraction": 0.001}, "validation_fraction=0.001 of 40 rows"),
        ({"validation_fraction": 0.999}, "validation_fraction=0.999 of 40 rows"),
        ({"resume": True}, "resume=True needs the folder"),
        ({"folder": 3}, "'folder' parameter"),
        ({"n_epochs": 2.5}, "'n_epochs' parameter"),
        ({"network": "vgg"}, "Unknown network 'vgg'"),
        ({"augmentation": "mixup"}, "Unknown augmentation 'mixup'"),
        ({"augmentation": "crop_flip"}, "images of shape"),
        ({"partner": "both"}, "'partner' parameter"),
        ({"batch_size": 1}, "'batch_size' parameter"),
        ({"precision": "int8"}, "'precision' parameter"),
        ({"network": "convnet"}, "takes images"),
    ],
)
def test_wrong_parameters(options, message):
    X, candidates, _ = make_table()
    with pytest.raises(ValueError, match=message):
        proden(**options).fit(X, candidates)


@pytest.mark.parametrize("shares", [(5, -3), (0.5,), 0.9, ("a", 0.5), (np.nan, 0.5)])
def test_shares_of_the_old_target(shares):
    X, candidates, _ = make_table()
    model = PiCOClassifier("mlp", contrast=Contrast(target_momentum=shares), n_epochs=1)
    with pytest.raises(ValueError, match="target_momentum"):
        model.fit(X, candidates)


def test_a_view_for_each_network():
    X, candidates, _ = make_table()
    with pytest.raises(ValueError, match=r"\('none',\).*2 views"):
        PiCOClassifier("mlp", augmentation=("none",), n_epochs=1).fit(X, candidates)
    with pytest.raises(ValueError, match="1 views"):
        PRODENClassifier("mlp", augmentation=("none", "none")).fit(X, candidates)


def test_run_is_a_path_or_settings(tmp_path):
    with pytest.raises(ValueError, match="'run' parameter"):
        PRODENClassifier(run=3).fit([[0.0], [1.0]], ["a", "b"])
    PRODENClassifier("linear", n_epochs=1, run=tmp_path).fit([[0.0], [1.0]], ["a", "b"])
    assert (tmp_path / "log.jsonl").exists()


@pytest.mark.parametrize("kind", KINDS)
def test_rows_far_from_zero_are_centred_before_they_are_rounded(kind):
    """Such as seconds since 1970, where float32 cannot tell a minute from the next."""
    X, candidates, _ = make_table()
    far = X.astype(np.float64) + 1.7e9
    near = MAKERS[kind]().fit(X.astype(np.float64), candidates)
    model = MAKERS[kind]().fit(far, candidates)
    np.testing.assert_allclose(model.predict_proba(far), near.predict_proba(X), atol=1e-3)


@pytest.mark.parametrize("blur", [5.0, 710.0])
@pytest.mark.parametrize("kind", KINDS)
def test_a_blur_that_hardly_blurs(kind, blur):
    X, candidates, _ = make_table()
    model = MAKERS[kind](partner="non-candidate", blur=blur).fit(X, candidates)
    assert np.isfinite(model.predict_proba(X)).all()


def test_a_label_that_is_nowhere_a_candidate():
    X, candidates, _ = make_table()
    wider = np.hstack([candidates, np.zeros((40, 1), dtype=bool)])
    model = proden(partner="non-candidate", validation_fraction=0.2).fit(X, wider)
    assert model.predict_proba(X).shape == (40, 5)
    assert not (model.transduction_ == 4).any()


@pytest.mark.parametrize("device", ["abacus", "cuda"])
def test_unknown_device_is_named(device):
    if device == "cuda" and torch.cuda.is_available():
        pytest.skip("there is one")
    X, candidates, _ = make_table()
    with pytest.raises(ValueError, match=f"cannot use the device '{device}'"):
        proden(device=device).fit(X, candidates)


def test_other_shape_at_prediction():
    X, candidates = make_images(8)
    model = proden(network="linear", n_epochs=1).fit(X, candidates)
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
    model = PRODENClassifier("linear", run=Run(tmp_path, resume=True))
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
