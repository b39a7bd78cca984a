"""Training: a coupled base is paired with the base alone, selection, and odd data."""

from __future__ import annotations

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from appellate.deep.augment import make_augmentation  # noqa: E402
from appellate.deep.data import cut  # noqa: E402
from appellate.deep.methods import Proden  # noqa: E402
from appellate.deep.networks import make_network  # noqa: E402
from appellate.deep.streams import Streams, isolated  # noqa: E402
from appellate.deep.trainer import Trainer  # noqa: E402
from appellate.metrics import (  # noqa: E402
    approximated_accuracy,
    candidate_likelihood,
    covering_rate,
)
from tests.deep.small import (  # noqa: E402
    MAKERS,
    assert_same_run,
    assert_same_state,
    even,
    make_images,
    make_table,
    make_trainer,
    pico,
    proden,
    state_of,
    timeless,
)

KINDS = list(MAKERS)
PARTNERS = [None, "non-candidate", "candidate", "independent"]


def changed(one, other):
    return any(not torch.equal(value, other[name]) for name, value in one.items())


# -- pairing ----------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
def test_partner_without_collaboration_leaves_the_base(kind):
    X, candidates, _ = make_table()
    alone = MAKERS[kind]().fit(X, candidates)
    for partner, weight in (("non-candidate", 0), ("candidate", 0), ("independent", 0.5)):
        model = MAKERS[kind](partner=partner, collaboration=weight).fit(X, candidates)
        assert_same_state(state_of(model, "base."), state_of(alone))
        np.testing.assert_array_equal(model.predict_heads(X)["base"], alone.predict_proba(X))
        for ours, theirs in zip(model.history_, alone.history_, strict=True):
            assert ours["loss_base"] == theirs["loss_base"]
            assert ours["changed"] == theirs["changed"]
    coupled = MAKERS[kind](partner="non-candidate", collaboration=0.5).fit(X, candidates)
    assert changed(state_of(coupled, "base."), state_of(alone))


def test_also_with_dropout_and_augmentation():
    X, candidates = make_images(6, side=28)
    for make, augmentation in (
        (proden, {"augmentation": "crop_flip"}),
        (pico, {"augmentation": ("simple", "strong")}),
    ):
        options = {"network": "convnet", "width": 0.02, "n_epochs": 2}
        options |= {"batch_size": 3, **augmentation}
        alone = make(**options).fit(X, candidates)
        for partner, weight in (("non-candidate", 0), ("independent", 0.5)):
            model = make(**options, partner=partner, collaboration=weight).fit(X, candidates)
            assert_same_state(state_of(model, "base."), state_of(alone))
        other = make(**options | {"random_state": 1}).fit(X, candidates)
        assert changed(state_of(other), state_of(alone))


@pytest.mark.parametrize("reading", ["complement", "softmax_rescaled"])
@pytest.mark.parametrize("kind", KINDS)
def test_supervised_base_is_not_touched_by_the_coupling(kind, reading):
    """Where every set has one label, L_col has no gradient: bit for bit the base alone."""
    X, _, truth = make_table()
    alone = MAKERS[kind]().fit(X, truth)
    coupled = MAKERS[kind](partner="non-candidate", partner_output=reading).fit(X, truth)
    assert_same_state(state_of(coupled, "base."), state_of(alone))
    assert all(record["loss_collaborative"] == 0 for record in coupled.history_)


@pytest.mark.parametrize("direction", ["to_base", "to_partner"])
def test_only_the_named_side_is_taught(direction):
    X, candidates, _ = make_table()
    apart = proden(partner="non-candidate", collaboration=0).fit(X, candidates)
    model = proden(partner="non-candidate", collaboration=5, direction=direction)
    model.fit(X, candidates)
    taught, left = ("base.", "partner.") if direction == "to_base" else ("partner.", "base.")
    assert changed(state_of(model, taught), state_of(apart, taught))
    weights = {k: v for k, v in state_of(model, left).items() if "confidence" not in k}
    if direction == "to_base":  # the partner does not hear of the base at all
        assert not changed(weights, state_of(apart, left))
    else:
        assert not changed(state_of(model, left), state_of(apart, left))


@pytest.mark.parametrize("partner", ["candidate", "independent"])
@pytest.mark.parametrize("kind", KINDS)
def test_options_that_a_partner_does_not_read(kind, partner):
    """As the docstrings say; those that it does read change the run."""
    X, candidates, _ = make_table()
    usual = MAKERS[kind](partner=partner).fit(X, candidates)
    unread = {"partner_output": "sigmoid", "reduction": "mean"}
    shared = {"collaboration": 5.0, "blur": None, "direction": "to_base"}
    if partner == "independent":
        unread |= shared
    assert_same_run(MAKERS[kind](partner=partner, **unread).fit(X, candidates), usual, X)
    if partner == "candidate":
        for name, value in shared.items():
            other = MAKERS[kind](partner=partner, **{name: value}).fit(X, candidates)
            assert changed(state_of(other), state_of(usual)), name


def test_ensemble_members_differ():
    X, candidates, _ = make_table()
    model = proden(partner="independent").fit(X, candidates)
    assert changed(state_of(model, "base."), state_of(model, "partner."))


@pytest.mark.parametrize("kind", KINDS)
def test_global_random_state_is_left_alone(kind):
    X, candidates, _ = make_table()
    torch.manual_seed(5)
    before = torch.get_rng_state()
    numpy_before = np.random.get_state()[1].copy()  # noqa: NPY002
    first = MAKERS[kind]().fit(X, candidates)
    assert torch.equal(torch.get_rng_state(), before)
    np.testing.assert_array_equal(np.random.get_state()[1], numpy_before)  # noqa: NPY002
    torch.rand(7)
    assert_same_run(first, MAKERS[kind]().fit(X, candidates), X)


@pytest.mark.parametrize("accelerator", [False, True])
def test_a_stream_draws_what_its_seed_draws(monkeypatch, accelerator):
    monkeypatch.setattr(torch.accelerator, "is_available", lambda: accelerator)
    streams = Streams(3)
    with isolated(torch.device("cpu")):
        with streams.drawing("views", 2, 7):
            found = torch.rand(5)
        torch.manual_seed(streams.seed("views", 2, 7))
        assert torch.equal(found, torch.rand(5))


# -- epochs and batches -----------------------------------------------------------------


@pytest.mark.parametrize(("n", "size", "expected"), [(9, 4, [4, 5]), (8, 4, [4, 4]), (2, 4, [2])])
def test_no_batch_of_one_row(n, size, expected):
    batches = cut(np.arange(n), size)
    assert [len(rows) for rows in batches] == expected
    np.testing.assert_array_equal(np.concatenate(batches), np.arange(n))


@pytest.mark.parametrize(
    ("n", "expected"),
    [(8, [4, 4]), (9, [4, 4]), (11, [4, 4]), (4, [4]), (3, [3]), (2, [2])],
)
def test_batches_that_are_not_full_are_dropped(n, expected):
    batches = cut(np.arange(n), 4, drop_last=True)
    assert [len(rows) for rows in batches] == expected
    np.testing.assert_array_equal(np.concatenate(batches), np.arange(sum(expected)))


@pytest.fixture
def steps(monkeypatch):
    """Rows of every step: a list for each epoch."""
    step, epochs = Trainer._step, {}

    def watched(self, rows, x):
        epochs.setdefault(self.epoch, []).append(rows)
        step(self, rows, x)

    monkeypatch.setattr(Trainer, "_step", watched)
    return epochs


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("batch_size", "drop_last", "sizes"),
    [
        (16, False, [16, 16, 8]),
        (16, True, [16, 16]),
        (20, True, [20, 20]),
        (64, True, [40]),  # less than a batch is still trained on
    ],
)
def test_steps_of_an_epoch(kind, batch_size, drop_last, sizes, steps):
    X, candidates, _ = make_table()
    options = {"batch_size": batch_size, "drop_last": drop_last, "n_epochs": 3}
    model = MAKERS[kind](**options).fit(X, candidates)
    assert [[len(rows) for rows in epoch] for epoch in steps.values()] == [sizes] * 3
    assert model.history_[0]["loss"] != model.history_[-1]["loss"]


def test_other_rows_are_dropped_in_every_epoch(steps):
    X, candidates, _ = make_table()
    proden(drop_last=True, batch_size=39, n_epochs=3).fit(X, candidates)
    dropped = [set(range(40)) - set(np.concatenate(epoch)) for epoch in steps.values()]
    assert [len(rows) for rows in dropped] == [1, 1, 1]
    assert len(set.union(*dropped)) > 1


def test_one_row_is_taken_twice():
    assert [rows.tolist() for rows in cut(np.array([7]), 4)] == [[7, 7]]


def test_history_weighs_rows_not_batches():
    """The mean loss of an epoch of unequal batches, with a network that does not move."""
    X, candidates, _ = make_table(n=11)
    torch.manual_seed(0)
    method = Proden(make_network("linear", (6,), 4), even(candidates))
    logs = torch.log_softmax(method.network(torch.from_numpy(X)), dim=1)
    expected = -(even(candidates) * logs).sum(dim=1).mean().item()
    trainer = make_trainer(method, X, candidates, n_epochs=1, batch_size=4, learning_rate=1e-12)
    record = trainer.train()[0]
    assert record["loss"] == pytest.approx(expected, rel=1e-5)
    assert record["loss_base"] == record["loss"]
    label = method.confidence.argmax(dim=1)
    assert record["changed"] == pytest.approx(
        (label != even(candidates).argmax(1)).double().mean()
    )
    confidence = method.confidence.amax(dim=1).mean().item()
    assert record["mean_confidence"] == pytest.approx(confidence)
    assert record["rows_per_second"] > 0


def test_views_differ_between_epochs_and_rows_keep_their_numbers():
    X, candidates = make_images(8, side=8)
    seen = []
    method = Proden(make_network("linear", (3, 8, 8), 3), even(candidates))
    augment = make_augmentation("crop_flip")

    def view(x):
        seen.append(augment(x))
        return seen[-1]

    make_trainer(method, X, candidates, [view], batch_size=8).train()
    assert len(seen) == 2
    in_rows = []
    for x in seen:
        assert x.shape == (8, 3, 8, 8)
        in_rows.append(x.sum())
    assert in_rows[0] != in_rows[1]


def test_loss_that_is_not_finite_is_an_error():
    X, candidates, _ = make_table()
    with pytest.raises(FloatingPointError, match=r"epoch \d+.*learning_rate \(1e\+30\)"):
        proden(network="linear", learning_rate=1e30).fit(X, candidates)


def test_learns(capsys):
    X, candidates, truth = make_table(120)
    for make in (proden, pico):
        model = make(n_epochs=15, partner="non-candidate", verbose=True).fit(X, candidates)
        first, last = model.history_[0], model.history_[-1]
        assert last["loss_partner"] < first["loss_partner"]
        assert last["loss_base"] < first["loss_base"]
        for name, probabilities in model.predict_heads(X).items():
            assert np.mean(probabilities.argmax(axis=1) == truth) > 0.7, name
        assert capsys.readouterr().err.count("rows/s") == 15


# -- selection --------------------------------------------------------------------------


@pytest.mark.parametrize(
    "selection", ["covering_rate", "approximated_accuracy", "candidate_likelihood"]
)
def test_best_epoch_is_kept(selection):
    """Learning far too fast, so that the last epoch is not the best."""
    X, candidates, _ = make_table(60)
    options = {"learning_rate": 3.0, "n_epochs": 8, "validation_fraction": 0.25}
    model = proden(selection=selection, **options).fit(X, candidates)
    scores = [record[selection] for record in model.history_]
    assert model.best_epoch_ == 1 + int(np.argmax(scores))
    assert model.best_epoch_ < 8
    last = proden(**options).fit(X, candidates)
    assert timeless(last.history_) == timeless(model.history_)
    assert last.best_epoch_ == 8
    assert changed(state_of(last), state_of(model))
    until = proden(**options)  # stop at that epoch: the same weights
    until.set_params(n_epochs=model.best_epoch_).fit(X, candidates)
    assert_same_state(state_of(until), state_of(model))


def test_held_out_rows_are_not_trained_on_and_scored_as_said(monkeypatch):
    X, candidates, _ = make_table(40)
    from appellate.deep import panel

    kept = []

    class Watched(panel.HeldOut):
        def __init__(self, *args):
            super().__init__(*args)
            kept.append(self)

    monkeypatch.setattr(panel, "HeldOut", Watched)
    model = proden(validation_fraction=0.25, partner="non-candidate", head="partner")
    model.fit(X, candidates)
    rows = kept[0].rows
    assert len(rows) == 10
    untouched = np.flatnonzero(
        (state_of(model)["base.confidence"] == even(candidates)).all(dim=1).numpy()
    )
    assert set(rows) <= set(untouched)
    many = candidates.sum(axis=1) > 1
    assert set(untouched[many[untouched]]) == set(rows[many[rows]])

    probabilities = model.predict_heads(X[rows])["partner"]
    sets, labels = candidates[rows], np.arange(4)
    expected = {
        "covering_rate": covering_rate(sets, probabilities.argmax(axis=1), classes=labels),
        "approximated_accuracy": approximated_accuracy(sets, probabilities, classes=labels),
        "candidate_likelihood": candidate_likelihood(sets, np.log(probabilities), classes=labels),
    }
    for name, value in expected.items():
        assert model.history_[-1][name] == pytest.approx(value, rel=1e-5), name


# -- odd data, halves -------------------------------------------------------------------


def assert_finite(model, X):
    for name, value in model._model.method.state_dict().items():
        assert torch.isfinite(value.double()).all(), name
    for record in model.history_:
        assert all(np.isfinite(value) for value in record.values()), record
    assert np.isfinite(model.predict_proba(X)).all()
    np.testing.assert_allclose(model.predict_proba(X).sum(axis=1), 1, rtol=1e-5)
    np.testing.assert_allclose(model.confidence_.sum(axis=1), 1, rtol=1e-5)


ODD = {
    "full sets": lambda X, y: (X, np.ones_like(y)),
    "one class": lambda X, y: (X, np.full(len(X), "only")),
    "one row in the last batch": lambda X, y: (X[:17], y[:17]),
    "one row": lambda X, y: (X[:1], y[:1]),
    "constant rows": lambda X, y: (np.ones_like(X), y),
    "huge": lambda X, y: (X * 1e20, y),
}


@pytest.mark.parametrize("precision", ["float32", "bfloat16", "float16"])
@pytest.mark.parametrize("odd", ODD)
@pytest.mark.parametrize("kind", KINDS)
def test_no_nan(kind, odd, precision):
    X, candidates = ODD[odd](*make_table()[:2])
    for partner in PARTNERS if precision == "float32" else PARTNERS[:2]:
        model = MAKERS[kind](partner=partner, precision=precision, n_epochs=2)
        assert_finite(model.fit(X, candidates), X)


@pytest.mark.parametrize("reading", ["complement", "softmax", "softmax_rescaled", "sigmoid"])
@pytest.mark.parametrize("blur", [-1.0, None])
def test_no_nan_in_any_reading(reading, blur):
    X, candidates, _ = make_table()
    candidates[:5] = True
    for precision in ("float32", "float16"):
        options = {"partner_output": reading, "blur": blur, "precision": precision}
        model = proden(partner="non-candidate", learning_rate=1.0, n_epochs=10, **options)
        assert_finite(model.fit(X, candidates), X)


@pytest.mark.parametrize("precision", ["bfloat16", "float16"])
@pytest.mark.parametrize("kind", KINDS)
def test_halves_are_near_singles(kind, precision):
    X, candidates, _ = make_table()
    single, half = (
        MAKERS[kind](precision=p, partner="non-candidate", learning_rate=0.01).fit(X, candidates)
        for p in ("float32", precision)
    )
    difference = np.abs(single.predict_proba(X) - half.predict_proba(X)).max()
    assert 0 < difference < 0.05
    for value in half._model.method.state_dict().values():
        assert value.dtype in (torch.float32, torch.int64)
