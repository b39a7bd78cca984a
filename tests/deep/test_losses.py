"""Values and gradients of the losses against formulas typed in numpy, in float64."""

from __future__ import annotations

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from appellate.deep import losses  # noqa: E402
from appellate.evidence import confidence  # noqa: E402
from tests.problems import random_candidates, random_confidence  # noqa: E402

READINGS = ["complement", "softmax", "softmax_rescaled", "sigmoid"]
M, L = 6, 5


@pytest.fixture
def rng():
    return np.random.RandomState(0)


@pytest.fixture
def candidates(rng):
    """Also a full set and a single label."""
    matrix = random_candidates(rng, M, L)
    matrix[0], matrix[1] = True, np.arange(L) == 2
    return matrix


def softmax(z):
    e = np.exp(z - z.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True)


def read(z, reading):
    """Non-candidate confidence, by the words of the specification."""
    if reading == "sigmoid":
        return 1 / (1 + np.exp(-z))
    s = softmax(z)
    rescaled = np.minimum(1, (z.shape[1] - 1) * s)
    return {"complement": 1 - s, "softmax": s, "softmax_rescaled": rescaled}[reading]


def blurred(values, y, k):
    weights = (values if k is None else np.exp(np.exp(k) * values)) * y
    return weights / weights.sum(axis=1, keepdims=True)


def unit(rng, n, d=3):
    x = rng.normal(size=(n, d))
    return x / np.linalg.norm(x, axis=1, keepdims=True)


def central_differences(f, x, step=1e-6):
    gradient = np.zeros_like(x)
    for place in np.ndindex(*x.shape):
        ahead, behind = x.copy(), x.copy()
        ahead[place] += step
        behind[place] -= step
        gradient[place] = (f(ahead) - f(behind)) / (2 * step)
    return gradient


def assert_same(ours, reference, x):
    """Value and gradient in x of a loss on tensors and of its formula on arrays."""
    tensor = torch.tensor(x, dtype=torch.float32, requires_grad=True)
    loss = ours(tensor)
    loss.backward()
    assert loss.dtype == torch.float32
    assert loss.shape == ()
    np.testing.assert_allclose(loss.item(), reference(x), rtol=2e-5, atol=1e-6)
    expected = central_differences(reference, x)
    np.testing.assert_allclose(tensor.grad.numpy(), expected, rtol=1e-3, atol=2e-6)


def test_soft_cross_entropy(rng, candidates):
    weights = random_confidence(rng, candidates)
    given = torch.tensor(weights, dtype=torch.float32)
    assert_same(
        lambda z: losses.soft_cross_entropy(z, given),
        lambda z: -np.mean(np.sum(weights * np.log(softmax(z)), axis=1)),
        rng.normal(scale=2, size=(M, L)),
    )


def test_targets_get_no_gradient(rng, candidates):
    weights = torch.tensor(random_confidence(rng, candidates))
    loss = losses.soft_cross_entropy(torch.randn(M, L, requires_grad=True), weights)
    loss.backward()
    assert weights.grad is None


@pytest.mark.parametrize("reading", READINGS)
def test_noncandidate_confidence(rng, reading):
    z = rng.normal(scale=3, size=(M, L))
    ours = losses.noncandidate_confidence(torch.tensor(z), reading)
    np.testing.assert_allclose(ours.numpy(), read(z, reading), atol=1e-6)


def test_complement_sums_to_all_labels_but_one(rng):
    z = torch.tensor(rng.normal(scale=20, size=(50, 10)))
    ours = losses.noncandidate_confidence(z)
    np.testing.assert_allclose(ours.sum(dim=1).numpy(), 9, rtol=1e-6)
    assert ours.min() >= 0
    assert ours.max() <= 1


@pytest.mark.parametrize("reduction", ["sum", "mean"])
@pytest.mark.parametrize("reading", READINGS)
def test_noncandidate_loss(rng, candidates, reading, reduction):
    given = torch.tensor(candidates)

    def formula(z):
        terms = -np.where(candidates, 0, np.log(read(z, reading))).sum(axis=1)
        if reduction == "mean":
            terms = terms / np.maximum((~candidates).sum(axis=1), 1)
        return np.mean(terms)

    assert_same(
        lambda z: losses.noncandidate_loss(z, given, reading, reduction),
        formula,
        rng.normal(scale=2, size=(M, L)),
    )


@pytest.mark.parametrize("reading", READINGS)
def test_automatic_reduction(rng, candidates, reading):
    z, y = torch.tensor(rng.normal(size=(M, L))), torch.tensor(candidates)
    usual = "mean" if reading.startswith("softmax") else "sum"
    found, by_name = (losses.noncandidate_loss(z, y, reading, r) for r in ("auto", usual))
    other = losses.noncandidate_loss(z, y, reading, {"mean": "sum", "sum": "mean"}[usual])
    assert found == by_name != other


@pytest.mark.parametrize("reading", READINGS)
def test_full_candidate_set_has_no_noncandidate_loss(reading):
    z = torch.randn(3, L, requires_grad=True)
    loss = losses.noncandidate_loss(z, torch.ones(3, L, dtype=torch.bool), reading)
    loss.backward()
    assert loss.item() == 0
    assert (z.grad == 0).all()


@pytest.mark.parametrize("reading", READINGS)
@pytest.mark.parametrize("size", [1e2, 1e4])
def test_extreme_logits_stay_finite(candidates, reading, size):
    z = size * torch.eye(M, L)
    z.requires_grad_()
    y = torch.tensor(candidates)
    u = losses.blur_tensor(1 - losses.noncandidate_confidence(z, reading), y, None)
    v = losses.blur_tensor(torch.softmax(-z, dim=1), y, None)
    loss = losses.noncandidate_loss(z, y, reading) + losses.collaborative_loss(v, u)
    loss.backward()
    assert torch.isfinite(loss)
    assert torch.isfinite(z.grad).all()


@pytest.mark.parametrize("k", [2.9, 3.1, 5.0, 9.0, 710.0])
def test_sharp_blur_does_not_overflow(k):
    """Float32, where exp(148) is infinite; gaps of a hundredth and more."""
    g = np.array([[0.6, 0.3, 0.1], [0.2, 0.38, 0.42], [1.0, 0.0, 0.0]], dtype=np.float32)
    y = np.array([[True, True, False], [True, True, True], [False, True, True]])
    z = torch.tensor(g, requires_grad=True)
    ours = losses.blur_tensor(z, torch.tensor(y), k)
    np.testing.assert_allclose(ours.detach().numpy(), confidence.blur(g, y, k), atol=1e-5)
    ours[:, 0].sum().backward()
    assert torch.isfinite(z.grad).all()


@pytest.mark.parametrize("k", [-1.0, 2.0, None])
def test_blur_is_that_of_the_library(rng, candidates, k):
    g = softmax(rng.normal(size=(M, L)))
    ours = losses.blur_tensor(torch.tensor(g), torch.tensor(candidates), k).numpy()
    np.testing.assert_allclose(ours, blurred(g, candidates, k), rtol=1e-12)
    np.testing.assert_allclose(ours.sum(axis=1), 1)
    if k is not None:
        np.testing.assert_allclose(ours, confidence.blur(g, candidates, k), rtol=1e-12)


@pytest.mark.parametrize(("size", "sure"), [(2, 0.591), (3, 0.419), (5, 0.265), (10, 0.138)])
def test_blur_of_a_sure_base(size, sure):
    g = torch.eye(1, size)
    v = losses.blur_tensor(g, torch.ones(1, size, dtype=torch.bool))
    assert abs(v[0, 0].item() - sure) < 5e-4


@pytest.mark.parametrize("k", [-1.0, None])
def test_blur_does_not_hear_of_noncandidates(rng, candidates, k):
    g, y = torch.tensor(softmax(rng.normal(size=(M, L)))), torch.tensor(candidates)
    changed = torch.where(y, g, torch.rand(M, L, dtype=g.dtype))
    assert not torch.equal(g, changed)
    assert torch.equal(losses.blur_tensor(g, y, k), losses.blur_tensor(changed, y, k))
    assert (losses.blur_tensor(g, y, k)[~y] == 0).all()


def test_nothing_to_normalize_is_shared_evenly():
    weights = torch.tensor([[0.0, 0.0, 0.7], [0.2, 0.6, 0.2]], requires_grad=True)
    y = torch.tensor([[True, True, False]] * 2)
    shares = losses.normalize_over(weights, y)
    torch.testing.assert_close(shares, torch.tensor([[0.5, 0.5, 0.0], [0.25, 0.75, 0.0]]))
    (shares**2).sum().backward()
    assert torch.isfinite(weights.grad).all()


def test_collaborative_loss_is_one_minus_the_inner_product(rng, candidates):
    v, u = (blurred(softmax(rng.normal(size=(M, L))), candidates, -1) for _ in range(2))
    ours = losses.collaborative_loss(torch.tensor(v), torch.tensor(u)).item()
    assert abs(ours - np.mean(1 - np.sum(v * u, axis=1))) < 1e-12
    assert abs(ours - np.mean(np.sum(v * (1 - u), axis=1))) < 1e-12  # the paper's words


@pytest.mark.parametrize("k", [-1.0, 2.0, None])
@pytest.mark.parametrize("reading", READINGS)
@pytest.mark.parametrize("side", ["base", "partner"])
def test_collaborative_loss_of_logits(rng, candidates, reading, k, side):
    vanishing = k is None and reading == "softmax_rescaled"  # p^ = 1 at every candidate
    scale = 0.5 if vanishing else 1.0
    z, y = rng.normal(scale=scale, size=(2, M, L)), torch.tensor(candidates)
    place = ["base", "partner"].index(side)

    def put(pair, x):
        return [x, pair[1]] if place == 0 else [pair[0], x]

    def ours(x):
        base, partner = put(torch.tensor(z, dtype=torch.float32), x)
        v = losses.blur_tensor(torch.softmax(base, dim=1), y, k)
        u = losses.blur_tensor(1 - losses.noncandidate_confidence(partner, reading), y, k)
        return losses.collaborative_loss(v, u)

    def formula(x):
        base, partner = put(z, x)
        v = blurred(softmax(base), candidates, k)
        u = blurred(1 - read(partner, reading), candidates, k)
        return np.mean(1 - np.sum(v * u, axis=1))

    assert_same(ours, formula, z[place])


@pytest.mark.parametrize("k", [-1.0, None])
@pytest.mark.parametrize("reading", READINGS)
def test_single_candidates_get_no_gradient(rng, reading, k):
    """Exactly none at the base, so that supervised training is not touched at all."""
    y = torch.eye(L, dtype=torch.bool)[rng.randint(L, size=M)]
    base, partner = torch.tensor(rng.normal(size=(2, M, L)), dtype=torch.float32)
    base.requires_grad_()
    partner.requires_grad_()
    v = losses.blur_tensor(torch.softmax(base, dim=1), y, k)
    u = losses.blur_tensor(1 - losses.noncandidate_confidence(partner, reading), y, k)
    loss = losses.collaborative_loss(v, u)
    loss.backward()
    assert loss.item() == 0
    assert (base.grad == 0).all()
    assert partner.grad.abs().max() < 1e-7


def looped_contrast(anchors, contrast, labels, temperature):
    """Anchor by anchor; an anchor without any positive adds nothing."""
    total = 0.0
    for i, anchor in enumerate(anchors):
        others = [j for j in range(len(contrast)) if j != i]
        scores = {j: anchor @ contrast[j] / temperature for j in others}
        norm = np.log(np.sum(np.exp(list(scores.values()))))
        own = [scores[j] - norm for j in others if labels[j] == labels[i]]
        total -= np.mean(own) if own else 0.0
    return total / len(anchors)


@pytest.mark.parametrize("temperature", [0.07, 0.5])
def test_contrastive_loss(rng, temperature):
    """The gradient flows through the anchors also where others are compared with them."""
    m = 4
    anchors, constants = unit(rng, m), unit(rng, m + 5)
    labels = np.array([0, 1, 0, 3, 0, 1, 0, 2, 2, 1, -1, -1, 0])
    positives = torch.tensor(labels[:m, None] == labels)
    assert positives[3].sum() == 1  # itself alone

    def ours(x):
        contrast = torch.cat([x, torch.tensor(constants, dtype=torch.float32)])
        return losses.contrastive_loss(x, contrast, positives, temperature)

    assert_same(
        ours,
        lambda x: looped_contrast(x, np.vstack([x, constants]), labels, temperature),
        anchors,
    )


@pytest.mark.parametrize("temperature", [0.07, 0.5])
def test_instance_loss(rng, temperature):
    anchors, keys, queue = unit(rng, 4), unit(rng, 4), unit(rng, 7)
    k, q = (torch.tensor(x, dtype=torch.float32) for x in (keys, queue))

    def formula(x):
        terms = []
        for anchor, key in zip(x, keys, strict=True):
            scores = np.array([anchor @ key, *(queue @ anchor)]) / temperature
            terms.append(np.log(np.sum(np.exp(scores))) - scores[0])
        return np.mean(terms)

    assert_same(lambda x: losses.instance_loss(x, k, q, temperature), formula, anchors)


@pytest.mark.parametrize("half", [torch.float16, torch.bfloat16])
def test_half_precision_outputs_get_float32_losses(rng, candidates, half):
    """As under autocast: the logits are halves, and nothing after them is."""
    z = torch.tensor(rng.normal(size=(M, L))).to(half)
    y = torch.tensor(candidates)
    w = torch.tensor(random_confidence(rng, candidates), dtype=torch.float32)
    e, k, q = (torch.tensor(unit(rng, n), dtype=torch.float32) for n in (M, M, 9))
    calls = {
        "cross entropy": lambda z: losses.soft_cross_entropy(z, w),
        "contrast": lambda _: losses.contrastive_loss(
            e, torch.cat([e, k, q]), torch.ones(M, 2 * M + 9, dtype=torch.bool)
        ),
        "instance": lambda _: losses.instance_loss(e, k, q),
    }
    for reading in READINGS:
        calls[reading] = lambda z, reading=reading: losses.noncandidate_loss(z, y, reading)
    for name, call in calls.items():
        with torch.autocast("cpu", dtype=half):
            found = call(z)
        assert found.dtype == torch.float32, name
        assert found == call(z.float()), name
