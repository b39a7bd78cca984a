"""The jury's network: targets that stay, against plain torch; its arrays against its modules."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

from appellate import JuryClassifier
from appellate.evidence.likelihood import Evidence
from appellate.io import save_model

torch = pytest.importorskip("torch")

from torch import nn  # noqa: E402

from appellate.deep import (  # noqa: E402
    Ambiguity,
    Network,
    Optimizer,
    PRODENClassifier,
    RivalClassifier,
    fit_network,
)
from appellate.deep.juror import affine_layers  # noqa: E402
from appellate.deep.layers import Layers  # noqa: E402
from appellate.deep.streams import Streams  # noqa: E402
from tests.deep.small import make_table, pico, proden, state_of  # noqa: E402
from tests.deep.test_without_torch import ABSENT  # noqa: E402

GIVEN = Ambiguity("label-first", targets="given")
OWN = {"norm": "after", "start": "torch"}


def make_targets(candidates, seed=0):
    weights = candidates * np.random.RandomState(seed).uniform(0.1, 1, size=candidates.shape)
    return weights / weights.sum(axis=1, keepdims=True)


def plain_mlp(state, n_features, hidden, n_labels):
    """A network of torch alone, with the weights of one of ours."""
    parts = [
        *(nn.Linear(n_features, hidden), nn.ReLU(), nn.BatchNorm1d(hidden)),
        *(nn.Linear(hidden, hidden), nn.ReLU(), nn.BatchNorm1d(hidden)),
    ]
    net = nn.Sequential(*parts, nn.Linear(hidden, n_labels))
    net.load_state_dict(dict(zip(net.state_dict(), state.values(), strict=True)))
    return net


def test_given_targets_against_plain_torch():
    X, candidates, _ = make_table(50)
    Q = make_targets(candidates)
    optimizer = Optimizer(
        "adam",
        learning_rate=0.01,
        weight_decay=0.0,
        schedule="cosine",
        batch_size=16,
        drop_last=True,
        fused=True,
    )
    network, n_epochs = Network("mlp", hidden=(9, 9), **OWN), 6
    model = PRODENClassifier(
        network, ambiguity=GIVEN, optimizer=optimizer, n_epochs=n_epochs, random_state=5
    ).fit(X, candidates, supervision=Q)
    assert model.targets_ == "given"
    np.testing.assert_array_equal(state_of(model)["confidence"], Q.astype(np.float32))

    streams = Streams(np.random.RandomState(5).randint(np.iinfo(np.int32).max))
    with streams.drawing("base"):
        net = plain_mlp(network.make((6,), 4).state_dict(), 6, 9, 4)
    x = torch.tensor((X - X.mean(axis=0)) / X.std(axis=0))
    adam = torch.optim.Adam(net.parameters(), 0.01)
    for epoch in range(n_epochs):
        least = 1e-5
        rate = least + (0.01 - least) * (1 + np.cos(np.pi * epoch / n_epochs)) / 2
        adam.param_groups[0]["lr"] = rate
        order = streams.permutation(50, "batches", epoch)
        for rows in order[:48].reshape(3, 16):
            adam.zero_grad()
            nn.functional.cross_entropy(net(x[rows]), torch.tensor(Q[rows]).float()).backward()
            adam.step()
    expected = torch.softmax(net.eval()(x), dim=1).detach().numpy()
    np.testing.assert_allclose(model.training_output_, expected, atol=1e-4)


def test_targets_are_given_to_several_networks_and_to_pico():
    X, candidates, _ = make_table()
    Q = make_targets(candidates)
    for make in (proden, pico):
        model = make(targets="given", n_networks=2).fit(X, candidates, supervision=Q)
        kept = [v for name, v in state_of(model).items() if name.endswith("confidence")]
        assert len(kept) == 2
        for each in kept:
            np.testing.assert_array_equal(each, Q.astype(np.float32))


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (PRODENClassifier(ambiguity=Ambiguity("auto", targets="given")), "targets='given'"),
        (PRODENClassifier(ambiguity=Ambiguity(0.5, targets="given")), "targets='given'"),
        (RivalClassifier(loss="cc", ambiguity=GIVEN), "has no targets"),
    ],
)
def test_refused(model, message):
    X, candidates, _ = make_table()
    with pytest.raises(ValueError, match=message):
        model.fit(X, candidates)


@pytest.mark.parametrize("start", ["xavier", "torch"])
@pytest.mark.parametrize("norm", ["before", "after"])
def test_arrays_are_what_the_modules_are(norm, start):
    rng = np.random.RandomState(0)
    X = rng.normal(size=(30, 4))
    torch.manual_seed(0)
    net = Network("mlp", hidden=(7, 6), norm=norm, start=start).make((4,), 3).double()
    net(torch.tensor(5 * X + 1))  # moves the running means
    expected = net.eval()(torch.tensor((X - 1) / 2)).detach().numpy()
    layers = affine_layers(net)
    assert [matrix.shape for matrix, _ in layers] == [(4, 7), (7, 6), (6, 3)]
    np.testing.assert_allclose(Layers(np.ones(4), 2.0, layers).predict(X), expected, rtol=1e-9)


def test_first_weights_of_torch():
    net = Network("mlp", hidden=(7,), start="torch")
    torch.manual_seed(3)
    ours = net.make((4,), 2).state_dict()
    torch.manual_seed(3)
    first, last = nn.Linear(4, 7), nn.Linear(7, 2)
    for name, layer in (("encoder.1", first), ("classifier", last)):
        assert torch.equal(ours[f"{name}.weight"], layer.weight)
        assert torch.equal(ours[f"{name}.bias"], layer.bias)


def test_learns_and_leaves_no_trace():
    X, candidates, truth = make_table(90)
    before, threads = torch.random.get_rng_state(), torch.get_num_threads()
    evidence = Evidence.of_sets(candidates)
    torch.set_num_threads(2)
    one, two = (fit_network(X, evidence, np.eye(4)[truth], 0) for _ in range(2))
    assert torch.get_num_threads() == 2
    torch.set_num_threads(threads)
    np.testing.assert_array_equal(one.predict(X), two.predict(X))
    assert torch.equal(before, torch.random.get_rng_state())
    assert np.mean(one.predict(X).argmax(axis=1) == truth) > 0.9
    assert [matrix.shape for matrix, _ in one.layers] == [(6, 200), (200, 200), (200, 4)]


WITHOUT = f"""{ABSENT}
import numpy as np
from appellate.io import load_model
data = np.load(sys.argv[1])
model = load_model(sys.argv[2])
assert any(name == "network" and weight > 0.05 for name, weight, _ in model.weights_)
np.testing.assert_array_equal(model.predict_proba(data["X"]), data["P"])
"""


def test_saved_jury_predicts_without_torch(tmp_path):
    rng = np.random.RandomState(1)
    bits, candidates = rng.randint(2, size=(200, 3)), rng.uniform(size=(200, 4)) < 0.2
    candidates[np.arange(200), 2 * (bits[:, 0] ^ bits[:, 1]) + bits[:, 2]] = True
    X = np.hstack([2 * bits + 0.3 * rng.normal(size=(200, 3)), rng.normal(size=(200, 10))])
    jury = JuryClassifier(["network"], n_folds=3, max_rounds=2, random_state=0).fit(X, candidates)
    np.savez(tmp_path / "data.npz", X=X, P=jury.predict_proba(X))
    model = save_model(jury, tmp_path / "model")
    command = [sys.executable, "-c", WITHOUT, str(tmp_path / "data.npz"), str(model)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
