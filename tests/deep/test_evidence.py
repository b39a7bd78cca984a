"""Networks that take candidate sets label-first or set-first, against plain computations."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from appellate.datasets import make_partial_labels  # noqa: E402
from appellate.deep import Ambiguity, PRODENClassifier  # noqa: E402
from appellate.deep.methods import Batch, ClassPrior, Coupled, MethodPlan  # noqa: E402
from appellate.deep.panel import Reading  # noqa: E402
from appellate.deep.settings import Contrast, Coupling, Network  # noqa: E402
from appellate.deep.streams import Streams  # noqa: E402
from appellate.evidence.ambiguity import read_ambiguity  # noqa: E402
from appellate.evidence.likelihood import Evidence  # noqa: E402
from appellate.experiments.networks.configuration import read_configuration  # noqa: E402
from appellate.experiments.networks.runs import RunError, choose_flip  # noqa: E402
from appellate.experiments.networks.sources import RunData  # noqa: E402
from appellate.io import load_model, save_model  # noqa: E402
from tests.deep.small import (  # noqa: E402
    MAKERS,
    assert_same_run,
    assert_same_state,
    even,
    make_table,
    pico,
    proden,
    state_of,
)
from tests.literal_jury import resemblance as literal_resemblance  # noqa: E402

ROOT = Path(__file__).parents[2]
L, N = 4, 12


def softmax(scores):
    exp = np.exp(scores - scores.max(axis=1, keepdims=True))
    return exp / exp.sum(axis=1, keepdims=True)


def rownorm(weights):
    return weights / weights.sum(axis=1, keepdims=True)


def make_plan(method="PRODEN", partner=None, **more):
    options = Contrast(projection_size=3, queue_size=8) if method == "PiCO" else None
    return MethodPlan(method, Network("linear"), Coupling(partner), options, (6,), **more)


# -- targets --------------------------------------------------------------------------------


@pytest.mark.parametrize("tau", [0.5, 1.0])
def test_moving_prior_is_divided_out(tau):
    """Three passes over two batches, against numpy; nothing is learnt by gradient."""
    X, candidates, _ = make_table(N, L)
    method = make_plan(tau=tau).make(even(candidates), Streams(0))
    W = even(candidates).numpy().astype(float)
    prior = W.mean(axis=0)
    layer = method.network.classifier
    p = softmax(X @ layer.weight.detach().numpy().T + layer.bias.detach().numpy())
    for _ in range(3):
        for rows in (np.arange(5), np.arange(5, N)):
            batch = Batch(
                torch.from_numpy(rows),
                (torch.from_numpy(X[rows]),),
                torch.from_numpy(candidates[rows]),
            )
            loss = method(batch, 0, 1).loss.item()
            assert loss == pytest.approx(-(W[rows] * np.log(p[rows])).sum(axis=1).mean(), rel=1e-5)
            W[rows] = rownorm(candidates[rows] * p[rows] * (prior + 0.01 / L) ** -tau)
            prior = 0.95 * prior + 0.05 * W[rows].mean(axis=0)
            np.testing.assert_allclose(method.confidence.numpy(), W, rtol=1e-4, atol=1e-6)
            np.testing.assert_allclose(method.prior.shares.numpy(), prior, rtol=1e-5)


def test_prior_moves_the_nearest_prototype_of_pico():
    """A rare label wins where prototypes are about equally near."""
    X, candidates, _ = make_table(N, L)
    candidates[:] = True
    plan = make_plan("PiCO", tau=1.0)
    method = plan.make(even(candidates), Streams(0))
    near_each_other = 1 + 0.05 * torch.randn(L, 3, generator=torch.Generator().manual_seed(0))
    method.prototypes.copy_(torch.nn.functional.normalize(near_each_other, dim=1))
    method.prior.shares.copy_(torch.tensor([0.7, 0.2, 0.09, 0.01]))
    x = torch.from_numpy(X)
    near = (method.query(x)[1] @ method.prototypes.T).detach().numpy().astype(float)
    odds = near / 0.07 - np.log(np.array([0.7, 0.2, 0.09, 0.01]) + 0.01 / L)
    method(Batch(torch.arange(N), (x, x), torch.from_numpy(candidates)), 1, 10)
    keep = plan.options.keep(1, 10)
    expected = keep / L + (1 - keep) * np.eye(L)[odds.argmax(axis=1)]
    np.testing.assert_allclose(method.confidence.numpy(), expected, rtol=1e-5)
    assert (odds.argmax(axis=1) != near.argmax(axis=1)).any()


@pytest.mark.parametrize("method", ["PRODEN", "PiCO"])
@pytest.mark.parametrize("partner", [None, "non-candidate", "candidate", "independent"])
def test_fixed_targets_stay(method, partner):
    X, candidates, _ = make_table(N, L)
    model = make_plan(method, partner, fixed=True).make(even(candidates), Streams(0))
    x = torch.from_numpy(X)
    model(Batch(torch.arange(N), (x, x), torch.from_numpy(candidates)), 3, 10)
    kept = [value for name, value in model.state_dict().items() if name.endswith("confidence")]
    assert kept
    assert all(torch.equal(each, even(candidates)) for each in kept)


def test_partner_is_beside_a_base_with_a_prior():
    _, candidates, _ = make_table(N, L)
    method = make_plan(partner="non-candidate", tau=0.5).make(even(candidates), Streams(0))
    assert isinstance(method, Coupled)
    assert isinstance(method.base.prior, ClassPrior)
    twin = make_plan(partner="candidate", tau=0.5).make(even(candidates), Streams(0))
    assert isinstance(twin.partner.prior, ClassPrior)


# -- reading the sets -----------------------------------------------------------------------


def brute_rows(p, Y, tau):
    pi = p.mean(axis=0) + 1e-4
    pi /= pi.sum()
    odds = (Y * p * pi**-tau).sum(axis=1) / (Y * pi ** (1 - tau)).sum(axis=1)
    e = 0.05
    for _ in range(30):
        e = np.clip(np.mean(e / ((1 - e) * odds + e)), 0.001, 0.5)
    return np.log((1 - e) * odds + e)


def brute_reading(scores, Y):
    """Tau, criteria and resemblance of label-first networks, by trying many temperatures."""
    rows, probabilities = {}, {}
    for tau in (0.0, 0.5, 1.0):
        softened = [softmax(scores / heat) for heat in np.geomspace(0.5, 4, 60)]
        best = max(softened, key=lambda p: brute_rows(p, Y, tau).mean())
        rows[tau], probabilities[tau] = brute_rows(best, Y, tau), best
    B = {tau: each.mean() for tau, each in rows.items()}
    top, looks_alike = max(B.values()), literal_resemblance(probabilities[0.0], Y)
    tau = next(tau for tau, value in B.items() if value >= top - 1e-3)
    if top <= 0 or min(B.values()) >= 0.98 * top:
        tau = 0.0
    if looks_alike is not None and looks_alike > 0.65:
        tau = 0.0
    if rows[tau].mean() <= 2 * rows[tau].std() / np.sqrt(len(Y)):
        tau = 0.0
    return tau, B, looks_alike


def make_sets(strategy, n=1500, seed=0, signal=2.0, fall=0.5, **options):
    """Labels, each `fall` times as frequent as the one before, their sets, and scores of rows.

    Look-alikes are false labels that the scores find nearly as likely as the likeliest one.
    """
    rng = np.random.RandomState(seed)
    share = fall ** np.arange(6)
    y = rng.choice(6, size=n, p=share / share.sum())
    scores = np.eye(6)[y] * signal + rng.normal(size=(n, 6)) + np.log(share)
    if strategy == "look-alikes":
        false = np.where(np.eye(6, dtype=bool)[y], 0, softmax(scores))
        likely = false > 0.4 * false.max(axis=1, keepdims=True)
        Y = np.eye(6, dtype=bool)[y] | (likely & (rng.uniform(size=(n, 6)) < 0.8))
    else:
        Y = make_partial_labels(
            y, strategy=strategy, classes=range(6), random_state=seed, **options
        )
    return y, Y, np.log(softmax(scores))


BAGS = {"strategy": "set_first", "bag_size": 5}
FLIPS = {"strategy": "uniform", "flip_probability": 0.5}
SIMILAR = {"strategy": "look-alikes", "fall": 0.7}


@pytest.mark.parametrize(
    ("how", "opens"),
    [
        (BAGS, True),
        (BAGS | {"signal": 0.7}, True),
        (BAGS | {"fall": 1.0}, False),
        (FLIPS, False),
        (FLIPS | {"signal": 0.7}, False),
        (FLIPS | {"fall": 1.0}, False),
        (SIMILAR, False),
        (SIMILAR | {"fall": 1.0}, False),
    ],
    ids=str,
)
@pytest.mark.parametrize("seed", range(3))
def test_reading_equals_the_rule_tried_over_many_temperatures(how, opens, seed):
    _, Y, scores = make_sets(**how, seed=seed)
    found = Reading.of(scores, Evidence.of_sets(Y))
    tau, B, looks_alike = brute_reading(scores, Y)
    assert found.tau == tau
    assert (found.tau > 0) == opens
    assert found.criterion == pytest.approx(B[tau], abs=1e-3)
    assert found.resemblance == pytest.approx(looks_alike, abs=0.01)
    own = brute_rows(softmax(scores / found.temperature), Y, tau).mean()
    assert found.criterion == pytest.approx(own, abs=1e-9)


@pytest.mark.parametrize("seed", range(5))
def test_label_first_if_networks_know_nothing(seed):
    _, Y, scores = make_sets(**BAGS, seed=seed)
    noise = np.log(softmax(np.random.RandomState(seed).normal(size=scores.shape)))
    assert Reading.of(noise, Evidence.of_sets(Y)).tau == 0


@pytest.mark.parametrize("seed", range(3))
def test_resemblance_alone_keeps_look_alikes_label_first(seed):
    """The criterion prefers tau > 0 on look-alikes as clearly as on bags."""
    _, Y, scores = make_sets(**SIMILAR, seed=seed)
    tau, B, looks_alike = brute_reading(scores, Y)
    assert max(B.values()) > B[0.0] + 0.04
    assert looks_alike > 0.65
    assert tau == Reading.of(scores, Evidence.of_sets(Y)).tau == 0


def test_a_tau_that_is_given_is_kept():
    _, Y, scores = make_sets(**FLIPS)
    noise = np.log(softmax(np.random.RandomState(0).normal(size=scores.shape)))
    for said in (scores, noise):
        found = Reading.of(said, Evidence.of_sets(Y), 0.75)
        assert (found.tau, found.resemblance) == (0.75, None)


def test_posterior_against_plain_steps():
    y, Y, scores = make_sets("set_first", bag_size=5)
    evidence = Evidence.of_sets(Y)
    found = Reading(1.0, 1.5, 0.0)
    p = softmax(scores / 1.5)
    Q = rownorm(Y * p)
    pi = Q.mean(axis=0) + 0.01 / 6
    for _ in range(30):
        Q = rownorm(Y * p * pi**-1.0)
        pi = np.sqrt(pi * (Q.mean(axis=0) + 0.01 / 6))
    posterior = found.posterior(scores, evidence)
    np.testing.assert_allclose(posterior, Q, atol=1e-8)
    plain = Reading(0.0, 1.5, 0.0).posterior(scores, evidence)
    assert np.mean(posterior.argmax(1) == y) > np.mean(plain.argmax(1) == y)


# -- fits -----------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", MAKERS)
@pytest.mark.parametrize("partner", ["none", "non-candidate", "candidate"])
@pytest.mark.parametrize(
    "options", [{"ambiguity": 0.0}, {"n_networks": 1, "targets": "in-sample"}]
)
def test_no_ambiguity_is_the_method_as_published(kind, partner, options):
    X, candidates, _ = make_table()
    make = MAKERS[kind]
    plain = make(partner=partner).fit(X, candidates)
    other = make(partner=partner, **{"ambiguity": "label-first"} | options).fit(X, candidates)
    assert_same_run(plain, other, X)
    assert (other.ambiguity_, other.targets_, other.criterion_) == (0.0, "label-first", {})
    assert other.resemblance_ is None


@pytest.mark.parametrize("kind", MAKERS)
def test_several_networks(kind):
    X, candidates, _ = make_table()
    alone = MAKERS[kind]().fit(X, candidates)
    three = MAKERS[kind](n_networks=3).fit(X, candidates)
    heads = three.predict_heads(X)
    assert list(heads) == ["base", "network 1", "network 2", "network 3", "mean"]
    np.testing.assert_array_equal(heads["base"], alone.predict_proba(X))
    np.testing.assert_array_equal(heads["network 1"], heads["base"])
    each = [heads[f"network {k}"] for k in (1, 2, 3)]
    assert not np.array_equal(each[1], each[2])
    np.testing.assert_allclose(heads["mean"], np.mean(each, axis=0), atol=1e-6)
    np.testing.assert_array_equal(three.predict_proba(X), heads["mean"])
    np.testing.assert_allclose(three.training_output_, heads["mean"], atol=1e-6)
    np.testing.assert_array_equal(three.verdict_, alone.transduction_)
    assert three.set_params(head="base").predict_proba(X).tolist() == heads["base"].tolist()


def test_label_first_data_leave_the_networks_alone():
    """With the gate closed `auto` is that many networks, to the bit."""
    X, candidates, _ = make_table()
    auto = proden(ambiguity="auto", n_networks=3).fit(X, candidates)
    plain = proden(n_networks=3).fit(X, candidates)
    assert auto.targets_ == "label-first"
    assert list(auto.criterion_) == ["honest-0"]
    assert_same_run(plain, auto, X)


def make_bags(n=240, seed=0):
    """Rows of set-first bags with a long tail, in clusters that overlap."""
    rng = np.random.RandomState(seed)
    y = rng.choice(4, size=n, p=[0.6, 0.25, 0.1, 0.05])
    X = (2.0 * np.eye(4)[y] + rng.normal(scale=0.8, size=(n, 4))).astype(np.float32)
    Y = make_partial_labels(
        y, strategy="set_first", bag_size=4, classes=range(4), random_state=seed
    )
    return X, Y, y


QUICK = {"n_epochs": 12, "optimizer": "adam", "learning_rate": 0.01, "n_networks": 3}


@pytest.mark.parametrize(
    "targets",
    ["auto", *(pytest.param(each, marks=pytest.mark.slow) for each in ("honest", "in-sample"))],
)
def test_set_first_data(targets):
    X, Y, y = make_bags(800)
    options = QUICK | {"n_epochs": 24, "batch_size": 32}
    model = proden(**options, ambiguity="auto", targets=targets, n_rounds=3).fit(X, Y)
    assert model.targets_ in (("honest", "in-sample") if targets == "auto" else (targets,))
    assert model.ambiguity_ == {"honest": 1.0, "in-sample": 0.5}[model.targets_]
    assert model.resemblance_ < 0.65
    assert "honest-0" in model.criterion_
    alone = proden(**options | {"n_networks": 1}).fit(X, Y)
    np.testing.assert_array_equal(model.verdict_, alone.transduction_)
    heads = model.predict_heads(X)
    np.testing.assert_array_equal(heads["base"], alone.predict_proba(X))
    each = [heads[f"network {k}"] for k in (1, 2, 3)]
    np.testing.assert_allclose(heads["mean"], np.mean(each, axis=0), atol=1e-6)
    assert np.mean(model.transduction_ == y) > np.mean(model.verdict_ == y)
    np.testing.assert_allclose(model.confidence_.sum(axis=1), 1, atol=1e-6)
    assert (model.confidence_[~Y] == 0).all()
    assert len(model.docket(output="dict")["outcome"]) == len(X)


def test_the_rows_of_a_fold_are_not_seen(monkeypatch):
    """Networks of a round train on all but their fold, the last round on all rows."""
    from appellate.deep.panel import Panel

    X, Y, _ = make_bags()
    train, seen = Panel.train, []

    def noted(self, *args, **options):
        seen.append((options.get("place", ""), options.get("rows"), options.get("fixed", False)))
        return train(self, *args, **options)

    monkeypatch.setattr(Panel, "train", noted)
    proden(**QUICK, ambiguity=1.0, targets="honest", n_rounds=3).fit(X, Y)
    places = [place for place, _, _ in seen]
    rounds = [f"honest-{r}/network-{k}" for r in range(3) for k in (1, 2, 3)]
    assert places == [*rounds[:3], "", *rounds[3:]]
    for number, (place, rows, fixed) in enumerate(seen):
        assert fixed == (number > 3)
        assert (rows is None) == (place == "" or place.startswith("honest-2"))
    for start in (0, 4):
        left_out = [
            np.setdiff1d(np.arange(len(X)), rows) for _, rows, _ in seen[start : start + 3]
        ]
        assert sorted(np.concatenate(left_out)) == list(range(len(X)))


@pytest.mark.parametrize("kind", MAKERS)
@pytest.mark.parametrize("partner", ["none", "non-candidate"])
def test_a_class_that_is_never_a_candidate_and_one_of_a_single_fold(kind, partner):
    X, candidates, _ = make_table()
    candidates[:, 3] = False
    candidates[:, 2] = False
    candidates[0] = [False, False, True, False]  # in all folds but one nobody has it
    candidates[~candidates.any(axis=1), 0] = True
    options = {"partner": partner, "n_networks": 3, "n_rounds": 3}
    for ambiguity in (0.5, 1.0):
        for targets in ("honest", "in-sample"):
            model = MAKERS[kind](ambiguity=ambiguity, targets=targets, **options)
            model.fit(X, candidates)
            assert np.isfinite(model.predict_proba(X)).all()
            assert np.isfinite(model.confidence_).all()
            assert model.transduction_[0] == 2


def test_partner_with_ambiguity_shows_all_heads():
    X, Y, _ = make_bags()
    model = proden(**QUICK, partner="non-candidate", ambiguity=0.5).fit(X, Y)
    heads = model.predict_heads(X)
    assert list(heads) == ["base", "partner", "network 1", "network 2", "network 3", "mean"]
    np.testing.assert_array_equal(
        model.set_params(head="partner").predict_proba(X), heads["partner"]
    )


@pytest.mark.parametrize("options", [{}, {"ambiguity": "auto", "n_rounds": 2}, {"ambiguity": 0.5}])
def test_saved_and_read(tmp_path, options):
    X, Y, _ = make_bags()
    model = proden(**QUICK, **options).fit(X, Y)
    save_model(model, tmp_path / "model")
    read = load_model(tmp_path / "model")
    assert (read.ambiguity_, read.resemblance_) == (model.ambiguity_, model.resemblance_)
    for name, p in model.predict_heads(X).items():
        np.testing.assert_array_equal(p, read.predict_heads(X)[name])


def test_side_by_side_changes_no_number():
    X, Y, _ = make_bags()
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        options = {**QUICK, "ambiguity": 1.0, "targets": "honest", "n_rounds": 2}
        one = proden(**options).fit(X, Y)
        two = proden(**options)
        two.run.n_jobs = 2
        told = []
        two.run.verbose = told.append
        two.fit(X, Y)
    finally:
        torch.set_num_threads(threads)
    assert_same_state(state_of(one), state_of(two))
    np.testing.assert_array_equal(one.confidence_, two.confidence_)
    assert len(told) == 3 + 12 + 3  # of networks side by side the last epoch


def test_side_by_side_in_a_folder(tmp_path):
    """The first network is trained here, which leaves a fingerprint that cannot be sent."""
    X, Y, _ = make_bags()
    options = {**QUICK, "n_epochs": 2, "ambiguity": 0.0, "folder": tmp_path / "two"}
    two = proden(**options)
    two.run.n_jobs = 2
    two.fit(X, Y)
    one = proden(**options, resume=True).fit(X, Y)  # by the same fingerprints
    assert_same_state(state_of(one), state_of(two))
    logs = [path.parent.name for path in sorted((tmp_path / "two").rglob("log.jsonl"))]
    assert logs == ["two", "network-2", "network-3"]


def test_a_fold_whose_rows_are_all_kept_aside():
    X, Y, _ = make_bags()
    options = {"ambiguity": "auto", "n_networks": 2, "validation_fraction": 0.5}
    model = proden(**QUICK | options, random_state=2)
    with pytest.raises(ValueError, match="leaves a fold without rows to train on"):
        model.fit(X[:4], Y[:4])


def test_progress_names_the_part(capsys):
    X, Y, _ = make_bags()
    proden(**QUICK, ambiguity=1.0, targets="honest", n_rounds=2, verbose=True).fit(X, Y)
    said = capsys.readouterr().err
    assert "honest-0/network-1: epoch 1" in said
    assert "honest-1/network-3: epoch 6" in said


DRIVER = """
import os, signal, sys
import torch
torch.set_num_threads(1)
from appellate.deep import panel
from tests.deep.test_evidence import KILLED, make_bags
from tests.deep.small import proden

close_epoch = panel.RunFolder.close_epoch

def killed(self, record, trainer):
    close_epoch(self, record, trainer)
    if str(self.folder).endswith(sys.argv[2]) and record["epoch"] == 2:
        os.kill(os.getpid(), signal.SIGKILL)

panel.RunFolder.close_epoch = killed
X, Y, _ = make_bags()
proden(**KILLED, folder=sys.argv[1]).fit(X, Y)
"""
KILLED = {**QUICK, "ambiguity": 1.0, "targets": "honest", "n_rounds": 3}


@pytest.mark.parametrize(
    "place", [pytest.param("honest-1/network-2", marks=pytest.mark.slow), "honest-2/network-1"]
)
def test_killed_within_a_round_and_resumed(tmp_path, place):
    done = subprocess.run(
        [sys.executable, "-c", DRIVER, str(tmp_path), place],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )
    assert done.returncode == -signal.SIGKILL, done.stderr
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        X, Y, _ = make_bags()
        resumed = proden(**KILLED, folder=tmp_path, resume=True).fit(X, Y)
        whole = proden(**KILLED).fit(X, Y)
    finally:
        torch.set_num_threads(threads)
    assert_same_run(resumed, whole, X)


# -- what is refused ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"ambiguity": "auto", "n_networks": 1}, "no network that was not trained on a row"),
        ({"ambiguity": "both"}, "ambiguity"),
        ({"ambiguity": 1.5}, "ambiguity"),
        ({"ambiguity": "auto", "warm_start": True}, "warm_start"),
        ({"n_networks": 2, "warm_start": True}, "warm_start"),
        ({"n_networks": 0}, "n_networks"),
    ],
)
def test_refused(options, message):
    X, candidates, _ = make_table()
    with pytest.raises(ValueError, match=message):
        PRODENClassifier(n_epochs=1, **options).fit(X, candidates)


@pytest.mark.parametrize("value", ["auto", "label-first", "set-first", 0, 0.25, 1.0])
def test_networks_read_the_words_of_the_jury(value):
    taus = read_ambiguity(value)
    assert Ambiguity(value).tau == (None if value == "auto" else taus[0])


def test_pico_with_auto():
    X, Y, y = make_bags(120)
    model = pico(n_epochs=6, ambiguity="auto", n_networks=2, n_rounds=2).fit(X, Y)
    assert model.targets_ in ("label-first", "honest", "in-sample")
    assert len(model.predict_heads(X)) == 4
    assert np.mean(model.transduction_ == y) > 0.3


# -- runs of the terminal -------------------------------------------------------------------


def test_bags_of_images():
    """All rows of a bag share the union of their labels; the same seed gives the same sets."""
    rng = np.random.RandomState(0)
    y = rng.choice(5, size=60)
    images = rng.randint(256, size=(60, 3, 8, 8)).astype(np.uint8)
    data = RunData(images, None, np.arange(5), y)
    bagged = data.with_sets(7, None, bag_size=3)
    sets = bagged.candidates
    assert sets[np.arange(60), y].all()
    assert (sets.sum(axis=1) <= 3).all()
    np.testing.assert_array_equal(sets, data.with_sets(7, None, bag_size=3).candidates)
    unions = [set(np.flatnonzero(row)) for row in sets]
    for own in unions:  # every label of a set belongs to some row that has this set
        assert own == {y[i] for i, other in enumerate(unions) if other == own}
    model = proden(network="linear", n_epochs=1, ambiguity=0.5)
    assert model.fit(bagged.X, sets).predict(images).shape == (60,)


def test_bags_or_flips():
    configuration = read_configuration("proden-cifar10")
    assert choose_flip(configuration, "cifar10", None, 4) is None
    assert choose_flip(configuration, "cifar10", None) == 0.1
    with pytest.raises(RunError, match="not both"):
        choose_flip(configuration, "cifar10", 0.3, 4)
    with pytest.raises(RunError, match="already has candidate sets: leave bag-size out"):
        choose_flip(configuration, "mine.npz", None, 4)
