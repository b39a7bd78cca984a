"""Losses of other authors: value, slope and targets done again in numpy, label by label."""

from __future__ import annotations

import inspect

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from sklearn.datasets import load_digits  # noqa: E402

from appellate.deep import Network, Optimizer, PRODENClassifier, RivalClassifier  # noqa: E402
from appellate.deep.methods import Batch  # noqa: E402
from appellate.deep.registry import NETWORKS  # noqa: E402
from appellate.deep.rivals import RIVALS, transport  # noqa: E402
from tests.deep.small import make_images, make_table  # noqa: E402
from tests.problems import random_candidates, random_confidence  # noqa: E402

M, L = 7, 5


def softmax(f):
    e = np.exp(f - f.max())
    return e / e.sum()


def sigmoid(u):
    return 1 / (1 + np.exp(-u))


def within(p, some):
    return {j: p[j] / sum(p[i] for i in some) for j in some}


def entropy_loss(f, S, w, fixed):
    return -sum(w[j] * np.log(softmax(f)[j]) for j in S)


def cc(f, S, w, fixed):
    return -np.log(sum(softmax(f)[j] for j in S))


def lws(f, S, w, fixed):
    rest = [j for j in range(L) if j not in S]
    side = within(softmax(fixed), rest) if rest else {}
    own = sum(w[j] * sigmoid(-f[j]) for j in S)
    return own + 2 * sum(side[j] * sigmoid(f[j]) for j in rest)


def mse(f, S, w, fixed):
    """The estimator: candidates' losses minus (l - 1 - c) / c times those of the c others."""
    p, rest = softmax(f), [j for j in range(L) if j not in S]
    if not rest:
        return 0.0
    each = [np.sum((p - np.eye(L)[j]) ** 2) for j in range(L)]
    c = len(rest)
    return sum(each[j] for j in S) - (L - 1 - c) / c * sum(each[j] for j in rest)


def exp(f, S, w, fixed):
    c = L - len(S)
    return (L - 1) / c * np.exp(-sum(softmax(f)[j] for j in S)) if c else 0.0


def abs_mae(f, S, w, fixed):
    return np.mean([np.abs(softmax(f) - np.eye(L)[j]).sum() for j in S])


def abs_gce(f, S, w, fixed):
    return np.mean([(1 - softmax(f)[j] ** 0.7) / 0.7 for j in S])


def cr(f, S, w, fixed):
    p = softmax(f)
    outside = -sum(np.log(1 - p[j]) for j in range(L) if j not in S)
    return outside + sum(w[j] * np.log(w[j] / p[j]) for j in S)


LITERAL = {
    **{"rc": entropy_loss, "cc": cc, "lws": lws, "cavl": entropy_loss, "mse": mse, "exp": exp},
    **{"abs-mae": abs_mae, "abs-gce": abs_gce, "pop": entropy_loss, "cr-dpll": cr},
    **{"solar": entropy_loss, "records": entropy_loss},
}


@pytest.fixture
def case():
    """Logits, candidates (one row has all, one has one) and targets of a batch."""
    rng = np.random.RandomState(0)
    candidates = random_candidates(rng, M, L)
    candidates[0], candidates[1] = True, np.eye(L)[2] > 0
    return 2 * rng.normal(size=(M, L)), candidates, random_confidence(rng, candidates)


def make(loss, candidates, confidence):
    method = RIVALS[loss](torch.nn.Identity(), torch.tensor(confidence, dtype=torch.float32))
    rows = torch.arange(len(candidates))
    return method, Batch(rows, (), torch.tensor(candidates))


def tensor(values):
    return torch.tensor(values, dtype=torch.float32)


def test_every_rival_is_tested():
    assert LITERAL.keys() == RIVALS.keys() == NETWORKS.keys() - {"proden", "pico"}
    for name in RIVALS:
        assert f"\n``{name}``" in inspect.getdoc(RivalClassifier)


@pytest.mark.parametrize("loss", LITERAL)
def test_value_and_slope(case, loss):
    logits, candidates, confidence = case
    method, batch = make(loss, candidates, confidence)
    method.progress = 1.0
    ours = tensor(logits).requires_grad_()
    value = method.loss(ours, batch)
    value.backward()

    def literal(f):
        rows = zip(f, candidates, confidence, logits, strict=True)
        return np.mean([LITERAL[loss](g, np.flatnonzero(y), w, old) for g, y, w, old in rows])

    assert value.item() == pytest.approx(literal(logits), rel=1e-5, abs=1e-6)
    step, slope = 1e-5, np.zeros_like(logits)
    for at in np.ndindex(logits.shape):
        moved = np.zeros_like(logits)
        moved[at] = step
        slope[at] = (literal(logits + moved) - literal(logits - moved)) / (2 * step)
    np.testing.assert_allclose(ours.grad.numpy(), slope, atol=1e-5, rtol=1e-4)


@pytest.mark.parametrize("loss", ["rc", "lws", "cc"])
def test_targets_are_probabilities_within_the_candidates(case, loss):
    logits, candidates, confidence = case
    method, batch = make(loss, candidates, confidence)
    batch = batch._replace(views=(tensor(logits),))
    method(batch, 0, 5)
    for i, y in enumerate(candidates):
        for j, share in within(softmax(logits[i]), np.flatnonzero(y)).items():
            assert method.confidence[i, j].item() == pytest.approx(share, rel=1e-5)
    assert (method.confidence.numpy()[~candidates] == 0).all()


def test_cavl_chooses_a_candidate_even_where_all_are_negative():
    """The product with the candidate matrix of public code would choose label 2 here."""
    candidates = np.array([[True, True, False]])
    method, batch = make("cavl", candidates, np.array([[0.5, 0.5, 0]]))
    logits = np.array([[-2.0, -0.5, 3.0]])
    values = np.abs(logits - 1) * logits
    assert values[0].tolist() == [-6.0, -0.75, 6.0]
    np.testing.assert_array_equal(method.targets(tensor(logits), batch).numpy(), [[0, 1, 0]])


def test_pop_drops_for_good():
    candidates = np.array([[True, True, True, False]])
    method, batch = make("pop", candidates, candidates / 3)
    logits = np.log([[0.7, 0.2, 0.05, 0.05]])
    method.progress = 0.0  # nothing is far enough behind
    shares = np.array([0.7, 0.2, 0.05]) / 0.95
    np.testing.assert_allclose(method.targets(tensor(logits), batch)[0, :3], shares, atol=1e-6)
    method.progress = 0.75  # threshold 0.625: the third is behind by 0.68, the second by 0.53
    found = method.targets(tensor(logits), batch)
    np.testing.assert_allclose(found, [[7 / 9, 2 / 9, 0, 0]], atol=1e-6)
    method.confidence.copy_(found)
    method.progress = 0.0
    again = method.targets(tensor(np.log([[0.1, 0.1, 0.7, 0.1]])), batch)
    np.testing.assert_allclose(again, [[0.5, 0.5, 0, 0]], atol=1e-6)


def test_views_agree_on_their_geometric_mean(case):
    logits, candidates, confidence = case
    method, batch = make("cr-dpll", candidates, confidence)
    other = logits[::-1].copy()
    loss = method(batch._replace(views=(tensor(logits), tensor(other))), 5, 11).loss
    total = 0.0
    for i, y in enumerate(candidates):
        S = np.flatnonzero(y)
        z = within(np.sqrt(softmax(logits[i]) * softmax(other[i])), S)
        total += cr(logits[i], S, z, None) + cr(other[i], S, z, None)
        np.testing.assert_allclose(method.confidence[i, S], list(z.values()), rtol=1e-4)
    assert loss.item() == pytest.approx(total / M, rel=1e-5)


def test_transport_reaches_both_sums():
    rng = np.random.RandomState(0)
    frequency = np.array([0.5, 0.3, 0.2])
    found = transport(tensor(rng.uniform(0.1, 1, size=(40, 3))), tensor(frequency), 200).numpy()
    np.testing.assert_allclose(found.sum(axis=1), 1, rtol=1e-5)
    np.testing.assert_allclose(found.mean(axis=0), frequency, rtol=1e-4)


def test_solar_remembers_earlier_batches(case):
    """Targets of a batch are the first rows of the transport of it and all before."""
    logits, candidates, confidence = case
    method, batch = make("solar", candidates, confidence)

    def sharp(f, y):
        share = np.array([softmax(row) for row in f]) * y
        return (share / share.sum(axis=1, keepdims=True)) ** 3

    first, second = logits, logits[:, ::-1].copy()
    method.targets(tensor(first), batch)
    frequency = method.frequency.numpy().copy()
    both = np.vstack([sharp(second, candidates), sharp(first, candidates)])
    expected = transport(tensor(both), tensor(frequency), method.n_turns)[:M]
    found = method.targets(tensor(second), batch)
    np.testing.assert_allclose(found, expected, atol=1e-5)
    best = np.eye(L)[sharp(second, candidates).argmax(axis=1)].mean(axis=0)
    np.testing.assert_allclose(method.frequency.numpy(), 0.99 * frequency + 0.01 * best, atol=1e-6)


def test_solar_counts_what_the_network_prefers():
    """Both rows prefer label 0; the transport's own choice would confirm the first guess."""
    candidates = np.ones((2, 2), dtype=bool)
    method, batch = make("solar", candidates, candidates / 2)
    found = method.targets(tensor([[2.0, 1.9], [2.0, 0.0]]), batch)
    np.testing.assert_array_equal(found.argmax(dim=1), [1, 0])
    np.testing.assert_allclose(method.frequency, [0.505, 0.495], atol=1e-6)


def test_solar_begins_with_an_epoch_of_even_targets(case):
    logits, candidates, _ = case
    even = candidates / candidates.sum(axis=1, keepdims=True)
    method, batch = make("solar", candidates, even)
    batch = batch._replace(views=(tensor(logits),))
    method(batch, 0, 5)
    np.testing.assert_allclose(method.confidence, even, atol=1e-6)
    method(batch, 1, 5)
    assert not np.allclose(method.confidence, even, atol=0.1)


def test_records_subtracts_a_moving_average(case):
    logits, candidates, confidence = case
    method, batch = make("records", candidates, confidence)
    found = method.targets(tensor(logits), batch)
    frequency = softmax(0.1 * logits.mean(axis=0))
    for i, y in enumerate(candidates):
        S = np.flatnonzero(y)
        expected = within(softmax(logits[i]) / frequency, S)
        np.testing.assert_allclose(found[i, S], list(expected.values()), rtol=1e-4)


def test_rc_is_proden():
    X, candidates, _ = make_table()
    options = {"n_epochs": 3, "random_state": 0}
    one = RivalClassifier("linear", loss="rc", **options).fit(X, candidates)
    two = PRODENClassifier("linear", **options).fit(X, candidates)
    np.testing.assert_array_equal(one.predict_proba(X), two.predict_proba(X))


@pytest.mark.parametrize(
    ("loss", "partner"),
    [*((loss, None) for loss in LITERAL), ("cc", "non-candidate"), ("solar", "non-candidate")],
)
def test_digits_are_learnt(loss, partner):
    X, truth = load_digits(return_X_y=True)
    rng = np.random.RandomState(0)
    rows = rng.permutation(len(X))
    train, test = rows[:600], rows[600:]
    candidates = rng.uniform(size=(len(X), 10)) < 0.3
    candidates[np.arange(len(X)), truth] = True
    network = Network("mlp", hidden=(64,))
    model = RivalClassifier(network, loss=loss, partner=partner, n_epochs=15, random_state=0)
    model.fit(X[train], candidates[train])
    assert model.score(X[test], truth[test]) > 0.88
    assert np.mean(model.transduction_ == truth[train]) > 0.92
    assert candidates[train][np.arange(600), model.transduction_].all()


@pytest.mark.parametrize("loss", LITERAL)
def test_pictures_and_a_last_batch_of_one(loss):
    X, candidates = make_images(n=9)
    network, optimizer = Network("resnet32", width=0.25), Optimizer(batch_size=8)
    model = RivalClassifier(network, loss=loss, optimizer=optimizer, n_epochs=1, random_state=0)
    chances = model.fit(X, candidates).predict_proba(X)
    np.testing.assert_allclose(chances.sum(axis=1), 1, rtol=1e-5)


def test_ambiguity_needs_targets():
    X, candidates, _ = make_table()
    with pytest.raises(ValueError, match=r"loss='cc' has no targets .* rc, lws, pop"):
        RivalClassifier("linear", loss="cc", ambiguity=0.5).fit(X, candidates)
    options = {"loss": "lws", "n_epochs": 3, "random_state": 0}
    plain, divided = (
        RivalClassifier("linear", ambiguity=tau, **options).fit(X, candidates)
        for tau in (0.0, 0.9)
    )
    assert not np.allclose(plain.predict_proba(X), divided.predict_proba(X))
