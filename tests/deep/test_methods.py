"""Steps of PRODEN and PiCO, alone and coupled, done again in numpy with loops and float64."""

from __future__ import annotations

import copy
import math

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from appellate.deep.methods import (  # noqa: E402
    Batch,
    ContrastNetwork,
    Coupled,
    CoupledTwin,
    Ensemble,
    Pico,
    Proden,
)
from appellate.deep.networks import make_network  # noqa: E402
from appellate.deep.settings import Contrast, Coupling, Optimizer  # noqa: E402
from appellate.deep.streams import Streams  # noqa: E402
from tests.deep.small import even, make_table, make_trainer  # noqa: E402

N, L, D = 12, 4, 3
RATE, MOMENTUM, DECAY = 0.1, 0.9, 0.01


@pytest.fixture
def data():
    X, candidates, _ = make_table(N, L)
    candidates[0] = True
    return X, candidates


@pytest.fixture
def make(data):
    """Make a fresh linear network, always with the same weights for the same seed."""

    def linear(seed):
        torch.manual_seed(seed)
        return make_network("linear", data[0].shape[1:], L)

    return linear


def orders(epochs, size=4):
    """Batches of every epoch, as lists of rows."""
    for epoch in range(epochs):
        order = Streams(0).permutation(N, "batches", epoch)
        yield epoch, [order[start : start + size] for start in range(0, N, size)]


def array(tensor):
    return tensor.detach().numpy().astype(np.float64)


def softmax(z):
    e = np.exp(z - z.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True)


def through_softmax(gradient, s):
    """From the gradient in the probabilities to that in the logits."""
    return s * (gradient - (gradient * s).sum(axis=1, keepdims=True))


def normalized(weights, y):
    return weights * y / (weights * y).sum(axis=1, keepdims=True)


class Descent:
    """SGD with momentum and weight decay, on named arrays."""

    def __init__(self, weights):
        self.weights, self.speed = weights, {}

    def step(self, gradients, rate=RATE):
        for name, gradient in gradients.items():
            gradient = gradient + DECAY * self.weights[name]
            before = self.speed.get(name)
            speed = gradient if before is None else MOMENTUM * before + gradient
            self.speed[name] = speed
            self.weights[name] = self.weights[name] - rate * speed


class Adam(Descent):
    """Adam with its usual constants, the weight decay as part of the gradient."""

    def step(self, gradients, rate=RATE):
        for name, gradient in gradients.items():
            gradient = gradient + DECAY * self.weights[name]
            t, first, second = self.speed.get(name, (0, 0, 0))
            t, first = t + 1, 0.9 * first + 0.1 * gradient
            second = 0.999 * second + 0.001 * gradient**2
            self.speed[name] = t, first, second
            size = np.sqrt(second / (1 - 0.999**t)) + 1e-8
            self.weights[name] = self.weights[name] - rate * first / (1 - 0.9**t) / size


def affine(network):
    classifier = network.classifier
    return {"weight": array(classifier.weight), "bias": array(classifier.bias)}


def close(ours, expected, atol=2e-5):
    np.testing.assert_allclose(array(ours), expected, atol=atol, rtol=1e-4)


@pytest.mark.parametrize("optimizer", ["sgd", "adam"])
def test_proden_steps(data, make, optimizer):
    X, candidates = data
    method = Proden(make(0), even(candidates))
    descent = {"sgd": Descent, "adam": Adam}[optimizer](affine(method.network))
    halving = {"schedule": "step", "decay": 0.5, "decay_every": 1}
    make_trainer(method, X, candidates, name=optimizer, **halving).train()

    W = candidates / candidates.sum(axis=1, keepdims=True)
    for epoch, batches in orders(2):
        for rows in batches:
            x, y = X[rows].astype(float), candidates[rows]
            g = softmax(x @ descent.weights["weight"].T + descent.weights["bias"])
            slope = (g - W[rows]) / len(rows)
            gradients = {"weight": slope.T @ x, "bias": slope.sum(axis=0)}
            descent.step(gradients, RATE * 0.5**epoch)
            W[rows] = normalized(g, y)  # of the pass before the step
    close(method.network.classifier.weight, descent.weights["weight"])
    close(method.network.classifier.bias, descent.weights["bias"])
    close(method.confidence, W)


def test_proden_keeps_the_pass_before_the_step(data, make):
    """The confidence is that of the forward pass, and of the rows of the batch alone."""
    X, candidates = data
    method = Proden(make(0), even(candidates))
    x, y = torch.from_numpy(X[:4]), torch.from_numpy(candidates[:4])
    g = softmax(array(method.network(x)))
    method(Batch(torch.arange(4), (x,), y), 0, 1)
    close(method.confidence[:4], normalized(g, candidates[:4]))
    assert torch.equal(method.confidence[4:], even(candidates)[4:])


@pytest.mark.parametrize("direction", ["both", "to_base", "to_partner"])
@pytest.mark.parametrize("k", [-1.0, None])
def test_coupled_proden_steps(data, make, direction, k):
    X, candidates = data
    mu, settings = 0.7, Coupling(collaboration=0.7, blur=k, direction=direction)
    method = Coupled(Proden(make(0), even(candidates)), make(1), settings)
    base, partner = Descent(affine(method.base.network)), Descent(affine(method.partner))
    make_trainer(method, X, candidates).train()

    def blurred(p, y):
        """Blurred confidence, and how it answers to a gradient."""
        c = math.exp(-1.0 if k is None else k)
        v = normalized(p if k is None else np.exp(c * p), y)

        def back(gradient):
            centred = v * (gradient - (gradient * v).sum(axis=1, keepdims=True))
            return centred * c if k is not None else centred / np.where(y, p, 1)

        return v, back

    W = candidates / candidates.sum(axis=1, keepdims=True)
    for _, batches in orders(2):
        for rows in batches:
            x, y, m = X[rows].astype(float), candidates[rows], len(rows)
            g = softmax(x @ base.weights["weight"].T + base.weights["bias"])
            s = softmax(x @ partner.weights["weight"].T + partner.weights["bias"])
            (v, v_back), (u, u_back) = blurred(g, y), blurred(s, y)
            at_base = (g - W[rows]) / m
            at_partner = through_softmax(np.where(y, 0, 1 / (1 - s)) / m, s)
            if direction != "to_partner":
                at_base = at_base + mu * through_softmax(v_back(-u / m), g)
            if direction != "to_base":
                at_partner = at_partner + mu * through_softmax(u_back(-v / m), s)
            for descent, slope in ((base, at_base), (partner, at_partner)):
                descent.step({"weight": slope.T @ x, "bias": slope.sum(axis=0)})
            W[rows] = normalized(g, y)
    close(method.base.network.classifier.weight, base.weights["weight"])
    close(method.partner.classifier.weight, partner.weights["weight"])
    close(method.partner.classifier.bias, partner.weights["bias"])
    close(method.confidence, W)


class WrittenPico:
    """PiCO on flat inputs: a linear classifier and a projection with one hidden layer."""

    def __init__(self, method, candidates, settings):
        query = method.query
        self.s, self.y = settings, candidates
        self.descent = Descent(self._read(query))
        self.key = self._read(query)
        self.queue = array(method.queue)
        self.queue_labels = [-1] * settings.queue_size
        self.position = 0
        self.C = np.zeros((candidates.shape[1], settings.projection_size))
        self.W = candidates / candidates.sum(axis=1, keepdims=True)

    @staticmethod
    def _read(network):
        return {name: array(value) for name, value in network.named_parameters()}

    @staticmethod
    def embed(w, x):
        hidden = x @ w["projection.0.weight"].T + w["projection.0.bias"]
        relu = np.maximum(hidden, 0)
        long = relu @ w["projection.2.weight"].T + w["projection.2.bias"]
        length = np.linalg.norm(long, axis=1, keepdims=True)
        return long / length, (hidden, relu, length)

    def step(self, rows, x, strong, epoch, n_epochs, rate):
        s, w, m, y = self.s, self.descent.weights, len(rows), self.y[rows]
        g = softmax(x @ w["classifier.weight"].T + w["classifier.bias"])
        q, (hidden, relu, length) = self.embed(w, x)
        guess = np.where(y, g, -np.inf).argmax(axis=1)
        nearest = np.where(y, q @ self.C.T, -np.inf).argmax(axis=1)
        for row, label in zip(q, guess, strict=True):
            self.C[label] = s.prototype_momentum * self.C[label] + (
                (1 - s.prototype_momentum) * row
            )
        for label, prototype in enumerate(self.C):
            if prototype.any():
                self.C[label] = prototype / np.linalg.norm(prototype)
        for name in self.key:
            self.key[name] = s.key_momentum * self.key[name] + (1 - s.key_momentum) * w[name]
        keys, _ = self.embed(self.key, strong)
        if epoch >= s.prototype_start:
            phi = 0.99 if epoch == 0 else 0.95 + (0.8 - 0.95) * (epoch - 1) / n_epochs
            self.W[rows] = phi * self.W[rows] + (1 - phi) * np.eye(len(self.C))[nearest]
            at_q = self._supervised(q, keys, guess)
        else:
            at_q = self._instances(q, keys)
        for key, label in zip(keys, guess, strict=True):
            self.queue[self.position], self.queue_labels[self.position] = key, label
            self.position = (self.position + 1) % s.queue_size

        at_z = (g - self.W[rows]) / m
        at_q = s.contrast_weight * at_q
        at_long = (at_q - q * (q * at_q).sum(axis=1, keepdims=True)) / length
        at_hidden = (at_long @ w["projection.2.weight"]) * (hidden > 0)
        self.descent.step(
            {
                "classifier.weight": at_z.T @ x,
                "classifier.bias": at_z.sum(axis=0),
                "projection.2.weight": at_long.T @ relu,
                "projection.2.bias": at_long.sum(axis=0),
                "projection.0.weight": at_hidden.T @ x,
                "projection.0.bias": at_hidden.sum(axis=0),
            },
            rate,
        )

    def _supervised(self, q, keys, guess):
        """Gradient of the supervised contrastive loss in q, anchor by anchor."""
        others = np.vstack([q, keys, self.queue])
        labels = [*guess, *guess, *self.queue_labels]
        gradient, m = np.zeros_like(q), len(q)
        for i in range(m):
            rest = [j for j in range(len(others)) if j != i]
            scores = np.array([q[i] @ others[j] for j in rest]) / self.s.temperature
            share = np.exp(scores - scores.max())
            share /= share.sum()
            same = np.array([labels[j] == guess[i] for j in rest])
            slope = (share - same / same.sum()) / self.s.temperature / m
            for j, d in zip(rest, slope, strict=True):
                gradient[i] += d * others[j]
                if j < m:
                    gradient[j] += d * q[i]
        return gradient

    def _instances(self, q, keys):
        """Gradient of the instance loss in q: the own key against the queue."""
        gradient, m = np.zeros_like(q), len(q)
        for i in range(m):
            others = np.vstack([keys[i], self.queue])
            scores = others @ q[i] / self.s.temperature
            share = np.exp(scores - scores.max())
            share /= share.sum()
            share[0] -= 1
            gradient[i] = share @ others / self.s.temperature / m
        return gradient


@pytest.mark.parametrize("start", [0, 1, 5])
def test_pico_steps(data, start):
    """Three epochs of three batches of four rows, through a queue of ten."""
    X, candidates = data
    settings = Contrast(projection_size=D, queue_size=10, key_momentum=0.8, prototype_start=start)
    torch.manual_seed(0)
    network = ContrastNetwork(make_network("linear", (6,), None), 6, L, D)
    method = Pico(network, even(candidates), settings)
    written = WrittenPico(method, candidates, settings)
    views = [lambda x: x, lambda x: 1.3 * x + 0.2]
    trainer = make_trainer(method, X, candidates, views, n_epochs=3, schedule="cosine")
    trainer.train()
    for epoch, batches in orders(3):
        rate = 1e-4 + (RATE - 1e-4) * (1 + math.cos(math.pi * epoch / 3)) / 2
        for rows in batches:
            x = X[rows].astype(float)
            written.step(rows, x, 1.3 * x + 0.2, epoch, 3, rate)

    assert method.position.item() == written.position == 36 % 10
    assert method.queue_labels.tolist() == written.queue_labels
    assert min(written.queue_labels) >= 0  # all of it was written over
    close(method.queue, written.queue, 1e-4)
    close(method.prototypes, written.C, 1e-4)
    close(method.confidence, written.W)
    for name, value in method.query.named_parameters():
        close(value, written.descent.weights[name], 1e-4)
    for name, value in method.key.named_parameters():
        close(value, written.key[name], 1e-4)
    changed = not np.allclose(written.W, array(even(candidates)))
    assert changed == (start < 3)


def test_more_rows_than_the_queue_holds(data):
    """Those remain that would if they were written one by one."""
    _, candidates = data
    settings = Contrast(projection_size=D, queue_size=5)
    network = ContrastNetwork(make_network("linear", (6,), None), 6, L, D)
    method = Pico(network, even(candidates), settings)
    written, position = [-1] * 5, 0
    for n in (3, 8, 5):
        labels = torch.arange(100 * n, 100 * n + n)
        method._enqueue(labels[:, None].float().expand(n, D), labels)
        for label in labels.tolist():
            written[position] = label
            position = (position + 1) % 5
        assert sorted(method.queue_labels.tolist()) == sorted(written)
        filled = method.queue_labels >= 0
        assert torch.equal(method.queue[filled, 0].long(), method.queue_labels[filled])


def test_prototypes_one_by_one(data):
    _, candidates = data
    settings = Contrast(projection_size=D, queue_size=5, prototype_momentum=0.7)
    network = ContrastNetwork(make_network("linear", (6,), None), 6, L, D)
    method = Pico(network, even(candidates), settings)
    rng = np.random.RandomState(0)
    C = np.zeros((L, D))
    for _ in range(3):
        q, labels = rng.normal(size=(9, D)), rng.randint(L - 1, size=9)
        method._update_prototypes(torch.tensor(q, dtype=torch.float32), torch.tensor(labels))
        for row, label in zip(q, labels, strict=True):
            C[label] = 0.7 * C[label] + 0.3 * row
        lengths = np.linalg.norm(C, axis=1, keepdims=True)
        C = C / np.where(lengths > 0, lengths, 1)
    close(method.prototypes, C)
    assert (method.prototypes[L - 1] == 0).all()  # no row was ever of it


def test_share_of_the_old_confidence():
    settings = Contrast()
    assert settings.keep(0, 100) == 0.99
    assert settings.keep(1, 100) == 0.95
    assert settings.keep(51, 100) == pytest.approx(0.875)
    assert settings.keep(99, 100) == pytest.approx(0.95 - 0.15 * 0.98)


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({}, [0.4, 0.4, 0.4, 0.4]),
        ({"schedule": "step", "decay": 0.5, "decay_every": 2}, [0.4, 0.4, 0.2, 0.2]),
        ({"schedule": "cosine"}, [0.4, 0.3415, 0.2002, 0.0589]),
    ],
)
def test_learning_rates(settings, expected):
    made = Optimizer("sgd", learning_rate=0.4, **settings)
    np.testing.assert_allclose([made.rate(e, 4) for e in range(4)], expected, atol=1e-4)


def test_heads_of_every_reading(data, make):
    X, candidates = data
    x = torch.from_numpy(X)
    base, partner = make(0), make(1)
    g, z = softmax(array(base(x))), array(partner(x))
    s = softmax(z)
    beliefs = {
        "complement": s,
        "softmax": 1 - s,
        "softmax_rescaled": 1 - np.minimum(1, (L - 1) * s),
        "sigmoid": 1 - 1 / (1 + np.exp(-z)),
    }
    for reading, belief in beliefs.items():
        method = Coupled(Proden(base, even(candidates)), partner, Coupling(partner_output=reading))
        heads = method.heads(x)
        c = belief / belief.sum(axis=1, keepdims=True)
        close(heads["base"], g)
        close(heads["partner"], c)
        close(heads["mean"], (g + c) / 2)


def test_twin_is_proden_with_a_coupling(data, make):
    """Without collaboration both halves are what they would be alone."""
    X, candidates = data
    start = even(candidates)
    settings = Coupling(collaboration=0.0)
    twin = CoupledTwin(Proden(make(0), start), Proden(make(1), start), settings)
    both = Ensemble(Proden(make(0), start), Proden(make(1), start), Coupling("independent"))
    alone = [Proden(make(seed), start) for seed in (0, 1)]
    for method in (twin, both, *alone):
        make_trainer(method, X, candidates).train()
    for halves in ((twin.base, twin.partner), (both.base, both.partner)):
        for half, whole in zip(halves, alone, strict=True):
            assert torch.equal(half.network.classifier.weight, whole.network.classifier.weight)
            assert torch.equal(half.confidence, whole.confidence)


def test_twin_is_drawn_to_the_base(data, make):
    """With collaboration: a finite difference of the whole loss in one weight of each."""
    X, candidates = data
    batch = Batch(torch.arange(N), (torch.from_numpy(X),), torch.from_numpy(candidates))
    settings = Coupling(collaboration=3.0)
    method = CoupledTwin(
        Proden(make(0), even(candidates)), Proden(make(1), even(candidates)), settings
    )
    y = candidates
    W = y / y.sum(axis=1, keepdims=True)
    arrays = [affine(method.base.network), affine(method.partner.network)]

    def loss(pair):
        g, o = (softmax(X.astype(float) @ w["weight"].T + w["bias"]) for w in pair)
        v, u = (normalized(np.exp(math.exp(-1) * p), y) for p in (g, o))
        terms = -(W * np.log(g)).sum(1) - (W * np.log(o)).sum(1) + 3 * (1 - (v * u).sum(1))
        return terms.mean()

    step = method(batch, 0, 1)
    step.loss.backward()
    assert step.loss.item() == pytest.approx(loss(arrays), rel=1e-5)
    for place, network in enumerate((method.base.network, method.partner.network)):
        ahead, behind = copy.deepcopy(arrays), copy.deepcopy(arrays)
        ahead[place]["weight"][1, 2] += 1e-5
        behind[place]["weight"][1, 2] -= 1e-5
        expected = (loss(ahead) - loss(behind)) / 2e-5
        assert network.classifier.weight.grad[1, 2].item() == pytest.approx(expected, rel=1e-3)
