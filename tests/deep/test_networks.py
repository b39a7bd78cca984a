"""Networks: their sizes against formulas, their shapes, and the errors of a wrong request."""

from __future__ import annotations

import copy
import math
from functools import partial
from itertools import pairwise

import pytest

torch = pytest.importorskip("torch")

from torch import nn  # noqa: E402

from appellate.deep.networks import count_features, make_network  # noqa: E402
from appellate.deep.settings import Network  # noqa: E402

NAMES = ["linear", "mlp", "convnet", "resnet18", "resnet32"]
IMAGE_NETWORKS = ["convnet", "resnet18", "resnet32"]
GREY, COLOUR = (1, 28, 28), (3, 32, 32)


def n_parameters(module):
    return sum(parameter.numel() for parameter in module.parameters())


def small(name):
    return {"width": 0.125} if name in IMAGE_NETWORKS else {}


def resnet_parameters(stages, n_blocks, n_in=3):
    """3x3 convolutions without bias, two numbers a channel for each BatchNorm."""
    total = 9 * n_in * stages[0] + 2 * stages[0]
    before = stages[0]
    for channels in stages:
        for _ in range(n_blocks):
            total += 9 * before * channels + 9 * channels**2 + 4 * channels
            if before != channels:
                total += before * channels + 2 * channels
            before = channels
    return total


def test_linear_is_an_affine_map_of_the_flattened_sample():
    network = make_network("linear", GREY, 10)
    assert n_parameters(network) == 784 * 10 + 10
    batch = torch.rand(3, *GREY)
    weight, bias = network.classifier.weight, network.classifier.bias
    torch.testing.assert_close(network(batch), batch.reshape(3, 784) @ weight.T + bias)


@pytest.mark.parametrize("hidden", [None, (300, 300, 300), (7,), [20, 10]])
def test_mlp_parameters(hidden):
    options = {} if hidden is None else {"hidden": hidden}
    sizes = [784, *(hidden or (300, 301, 302, 303))]
    network = make_network("mlp", GREY, 10, **options)
    weights = sum(a * b for a, b in pairwise(sizes))
    assert n_parameters(network) == weights + 2 * sum(sizes[1:]) + sizes[-1] * 10 + 10
    dense = [module for module in network.modules() if isinstance(module, nn.Linear)]
    assert [layer.bias is None for layer in dense] == [True] * (len(sizes) - 1) + [False]
    for layer in dense:
        bound = math.sqrt(6 / (layer.in_features + layer.out_features))
        assert 0.9 * bound < layer.weight.abs().max() <= bound


@pytest.mark.parametrize("shape", [GREY, COLOUR])
def test_convnet_parameters(shape):
    channels = [shape[0], 128, 128, 128, 256, 256, 256, 512, 256, 128]
    weights = 9 * sum(a * b for a, b in pairwise(channels))
    network = make_network("convnet", shape, 10)
    assert n_parameters(network) == weights + 2 * sum(channels[1:]) + 128 * 10 + 10
    convolutions = [module for module in network.modules() if isinstance(module, nn.Conv2d)]
    assert [layer.padding[0] for layer in convolutions] == [1] * 6 + [0] * 3
    assert sum(isinstance(module, nn.MaxPool2d) for module in network.modules()) == 2
    assert [m.p for m in network.modules() if isinstance(m, nn.Dropout2d)] == [0.25, 0.25]


def test_resnet18_parameters():
    expected = resnet_parameters([64, 128, 256, 512], 2) + 512 * 10 + 10
    assert n_parameters(make_network("resnet18", COLOUR, 10)) == expected == 11_173_962


def test_resnet32_parameters():
    """A 1x1 convolution and BatchNorm on two shortcuts, as PRODEN's authors have it."""
    expected = resnet_parameters([16, 32, 64], 5) + 64 * 10 + 10
    assert n_parameters(make_network("resnet32", COLOUR, 10)) == expected == 466_906


def test_convnet_starts_from_torchs_own_weights():
    """As its authors': uniform within the inverse root of the number of inputs."""
    torch.manual_seed(0)
    network = make_network("convnet", COLOUR, 10)
    for layer in network.modules():
        if isinstance(layer, nn.Conv2d):
            bound = (9 * layer.in_channels) ** -0.5
            assert layer.weight.std().item() == pytest.approx(bound / math.sqrt(3), rel=0.05)
            assert layer.weight.abs().max() <= bound


@pytest.mark.parametrize("name", ["linear", "mlp"])
def test_dense_networks_start_with_xaviers_weights_and_no_bias(name):
    classifier = make_network(name, GREY, 10).classifier
    bound = math.sqrt(6 / (classifier.in_features + 10))
    assert 0.9 * bound < classifier.weight.abs().max() <= bound
    assert not classifier.bias.any()


@pytest.mark.parametrize(("name", "n_layers"), [("resnet18", 18), ("resnet32", 32)])
def test_resnet_has_as_many_layers_as_its_name_says(name, n_layers):
    modules = list(make_network(name, COLOUR, 10).modules())
    convolutions = [m for m in modules if isinstance(m, nn.Conv2d) and m.kernel_size == (3, 3)]
    assert len(convolutions) + sum(isinstance(m, nn.Linear) for m in modules) == n_layers


def test_resnet18_keeps_the_full_side_before_its_second_stage():
    encoder = make_network("resnet18", COLOUR, None, width=0.125)
    sides = []
    for block in encoder:
        block.register_forward_hook(lambda module, args, out: sides.append(out.shape[-1]))
    encoder(torch.rand(2, *COLOUR))
    assert sides[:-1] == [32] * 5 + [16] * 2 + [8] * 2 + [4] * 2


@pytest.mark.parametrize("shape", [GREY, COLOUR, (1, 32, 32), (3, 28, 28), (3, 33, 40)])
@pytest.mark.parametrize("name", NAMES)
def test_shapes_of_logits_and_features(name, shape):
    batch = torch.rand(2, *shape)
    assert make_network(name, shape, 7, **small(name))(batch).shape == (2, 7)
    features = {"linear": math.prod(shape), "mlp": 303, "convnet": 16, "resnet18": 64}
    encoder = make_network(name, shape, None, **small(name))
    assert encoder(batch).shape == (2, features.get(name, 8))
    assert count_features(encoder, shape) == features.get(name, 8)


@pytest.mark.parametrize(
    ("name", "n_features"), [("convnet", 128), ("resnet18", 512), ("resnet32", 64)]
)
def test_features_at_full_width(name, n_features):
    encoder = make_network(name, COLOUR, None)
    assert count_features(encoder, COLOUR) == n_features
    assert not any(isinstance(module, nn.Linear) for module in encoder.modules())


@pytest.mark.parametrize("name", ["resnet18", "resnet32"])
def test_resnets_take_tiny_images_and_every_width(name):
    network = make_network(name, (2, 3, 5), 4, width=0.001)
    assert network(torch.rand(2, 2, 3, 5)).shape == (2, 4)


@pytest.mark.parametrize("name", ["linear", "mlp"])
def test_vectors(name):
    assert make_network(name, (48,), 5)(torch.rand(4, 48)).shape == (4, 5)


@pytest.mark.parametrize("name", NAMES)
def test_the_same_seed_gives_the_same_weights_with_and_without_classifier(name):
    def build(n_outputs, seed):
        torch.manual_seed(seed)
        return make_network(name, GREY, n_outputs, **small(name)).state_dict()

    first, second, other = build(10, 0), build(10, 0), build(10, 1)
    assert all(torch.equal(first[key], second[key]) for key in first)
    assert not torch.equal(first["classifier.weight"], other["classifier.weight"])
    encoder = build(None, 0)
    assert all(torch.equal(first[f"encoder.{key}"], encoder[key]) for key in encoder)


def test_dropout_is_on_in_training_and_off_in_evaluation():
    network = make_network("convnet", GREY, 10, width=0.125)
    batch = torch.rand(4, *GREY)
    assert not torch.equal(network(batch), network(batch))
    network.eval()
    assert torch.equal(network(batch), network(batch))


@pytest.mark.parametrize("name", NAMES)
def test_gradients_reach_every_parameter_and_a_copy_is_independent(name):
    network = make_network(name, GREY, 3, **small(name))
    twin = copy.deepcopy(network)
    network(torch.rand(4, *GREY)).square().sum().backward()
    assert all(p.grad is not None and p.grad.isfinite().all() for p in network.parameters())
    assert all(p.grad is None for p in twin.parameters())


@pytest.mark.parametrize("name", ["convnet", "resnet18", "resnet32"])
def test_signals_neither_vanish_nor_explode_at_the_start(name):
    torch.manual_seed(0)
    encoder = make_network(name, COLOUR, None, width=0.25)
    assert 0.05 < encoder(torch.randn(16, *COLOUR)).std() < 20


class NoisyEncoder(nn.Module):
    """Draws in evaluation mode too, and has parts in different modes."""

    def __init__(self):
        super().__init__()
        self.norm = nn.BatchNorm1d(6)
        self.frozen = nn.BatchNorm1d(6).eval()

    def forward(self, x):
        noise = torch.randn(x.shape, device=x.device)
        return self.frozen(self.norm(x + noise))[:, :5]


def test_counting_features_leaves_no_trace():
    encoder = NoisyEncoder()
    before = copy.deepcopy(encoder.state_dict())
    state = torch.get_rng_state()
    assert count_features(encoder, (6,)) == 5
    assert torch.equal(torch.get_rng_state(), state)
    assert all(part.training for part in encoder.modules())
    assert all(torch.equal(before[key], value) for key, value in encoder.state_dict().items())
    assert all(p.grad is None for p in encoder.parameters())


def test_counting_features_leaves_training_mode_after_a_failure():
    encoder = make_network("mlp", (6,), None)
    with pytest.raises(ValueError, match=r"samples of shape \(7,\)"):
        count_features(encoder, (7,))
    assert all(part.training for part in encoder.modules())


def test_counting_features_uses_the_type_of_the_network():
    assert count_features(make_network("mlp", (6,), None, hidden=(4,)).double(), (6,)) == 4
    assert count_features(nn.Flatten(), (2, 3)) == 6


def flat_factory(shape, n_outputs, n_hidden=4):
    encoder = nn.Sequential(nn.Flatten(), nn.Linear(math.prod(shape), n_hidden), nn.ReLU())
    return encoder if n_outputs is None else encoder.append(nn.Linear(n_hidden, n_outputs))


def test_a_factory():
    network = make_network(flat_factory, [2, 3], 5)
    assert network(torch.rand(4, 2, 3)).shape == (4, 5)
    encoder = make_network(partial(flat_factory, n_hidden=9), (2, 3), None)
    assert count_features(encoder, (2, 3)) == 9


@pytest.mark.parametrize(
    ("factory", "error", "message"),
    [
        (lambda shape, n: nn.Linear(6, n + 1), ValueError, "asked for 5 outputs .* has 6"),
        (lambda shape, n: nn.Linear(4, n), ValueError, r"failed on .* shape \(6,\)"),
        (lambda shape, n: nn.Unflatten(1, (2, 3)), ValueError, r"returned \(2, 2, 3\)"),
        (lambda shape, n: nn.LSTM(6, n), ValueError, "returned tuple"),
        (lambda shape, n: "mlp", TypeError, "returns a new torch module, got str"),
        (nn.Linear(6, 5), TypeError, r"factory\(input_shape, n_outputs\)"),
        (None, TypeError, "must be a name or a factory"),
    ],
)
def test_wrong_factories(factory, error, message):
    with pytest.raises(error, match=message):
        make_network(factory, (6,), 5)


def test_options_are_not_for_factories():
    with pytest.raises(TypeError, match=r"functools\.partial"):
        make_network(flat_factory, (6,), 5, n_hidden=3)


@pytest.mark.parametrize(
    ("name", "shape", "n_outputs", "options", "error", "message"),
    [
        ("vgg", GREY, 10, {}, ValueError, "'vgg'.* linear, mlp, convnet, resnet18, resnet32"),
        ("mlp", GREY, 10, {"width": 2}, TypeError, "no option 'width'.*: hidden"),
        ("linear", GREY, 10, {"hidden": (3,)}, TypeError, "options are: none"),
        ("resnet18", GREY, 10, {"depth": 3}, TypeError, "no option 'depth'.*: width"),
        ("mlp", GREY, 10, {"hidden": ()}, ValueError, "'linear'"),
        ("mlp", GREY, 10, {"hidden": 300}, ValueError, "sequence of positive sizes"),
        ("mlp", GREY, 10, {"hidden": (3, 0)}, ValueError, "sequence of positive sizes"),
        ("convnet", (3, 27, 32), 10, {}, ValueError, r"at least 28x28 .* \(3, 27, 32\)"),
        ("convnet", (28, 28), 10, {}, ValueError, r"channel axis: \(1, 28, 28\)"),
        ("resnet18", (48,), 10, {}, ValueError, r"\(48,\).*'mlp' or 'linear'"),
        ("resnet32", (1, 3, 8, 8), 10, {}, ValueError, r"\(1, 3, 8, 8\)"),
    ],
)
def test_wrong_requests(name, shape, n_outputs, options, error, message):
    with pytest.raises(error, match=message):
        make_network(name, shape, n_outputs, **options)


@pytest.mark.parametrize(
    "wrong", [{"width": 0}, {"width": "big"}, {"norm": "never"}, {"start": "zero"}]
)
def test_wrong_options(wrong):
    with pytest.raises(ValueError, match=f"'{next(iter(wrong))}' parameter of Network must be"):
        Network.of(Network("convnet", **wrong))
