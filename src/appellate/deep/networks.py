"""Networks by name, or by a user's factory, for samples of any shape.

A network is an encoder, which turns a batch into features of shape (m, n_features), followed by
one linear classifier. :func:`make_network` gives both, or the encoder alone for the methods
that put something else on it (PiCO: a classifier and a projection head).

============ ====================================================== ================ ==========
name         encoder                                                samples          features
============ ====================================================== ================ ==========
``linear``   the flattened sample                                   any              all values
``mlp``      fully connected, PRODEN's 300-301-302-303 [1]_         any              303
``convnet``  nine convolutions, PRODEN's ConvNet [1]_               image, >= 28x28  128
``resnet18`` ResNet-18 without its first pooling, PiCO's [2]_ [3]_  image            512
``resnet32`` ResNet of 6n + 2 layers, 16-32-64 channels [1]_ [3]_   image            64
============ ====================================================== ================ ==========

First weights are those of the methods' authors: for ``linear`` and ``mlp`` Xavier's, with a bias
of zero in the last layer alone; torch's own for ``convnet``; He's for the ResNets, whose shortcuts
are 1x1 convolutions where the side changes.

References
----------
.. [1] Lv, Xu, Feng, Niu, Geng, Sugiyama: Progressive identification of true labels for
       partial-label learning. ICML 2020.
.. [2] Wang, Xiao, Li, Feng, Niu, Chen, Zhao: PiCO: contrastive label disambiguation for partial
       label learning. ICLR 2022.
.. [3] He, Zhang, Ren, Sun: Deep residual learning for image recognition. CVPR 2016.
"""

from __future__ import annotations

import inspect
import math
from collections import OrderedDict
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from itertools import chain, pairwise
from numbers import Integral
from typing import TypeAlias

import torch
from torch import Tensor, nn
from torch.nn import functional

from appellate.deep.streams import isolated

Shape: TypeAlias = tuple[int, ...]
NetworkFactory: TypeAlias = Callable[[Shape, int | None], nn.Module]
Encoder: TypeAlias = tuple[nn.Module, int]
"""An encoder and the number of its features."""


def make_network(
    network: str | NetworkFactory,
    input_shape: Sequence[int],
    n_outputs: int | None,
    **options: object,
) -> nn.Module:
    """Build a network with fresh weights, drawn from torch's global generator.

    Parameters
    ----------
    network : {'linear', 'mlp', 'convnet', 'resnet18', 'resnet32'} or callable
        A name, or ``factory(input_shape, n_outputs)`` that returns a :class:`torch.nn.Module`.
        A factory's module is tried on two samples of zeros, in evaluation mode.
    input_shape : sequence of int
        Shape of one sample, such as ``(48,)`` or ``(3, 32, 32)``: channels, height, width.
    n_outputs : int or None
        Number of classes. None asks for the encoder alone, which returns features of shape
        (m, n_features); for the same seed its weights are those of the whole network.
    **options : dict
        Options of the named network:

        - ``mlp``: ``hidden``, the sizes of the hidden layers, ``(300, 301, 302, 303)``,
          ``norm``, whether each is normalised ``"before"`` or ``"after"`` its activation, and
          ``start``, first weights of ``"xavier"`` or ``"torch"``, the latter with a bias in
          every layer;
        - ``convnet``, ``resnet18``, ``resnet32``: ``width``, a factor on the number of
          channels of every layer, ``1.0``.

    Returns
    -------
    torch.nn.Module
        From a batch of samples, the batch axis first, to logits of shape (m, n_outputs), or to
        features if ``n_outputs`` is None.

    Examples
    --------
    >>> import torch
    >>> from appellate.deep.networks import make_network
    >>> network = make_network("mlp", (48,), 5, hidden=(300, 300, 300))
    >>> network(torch.zeros(8, 48)).shape
    torch.Size([8, 5])
    >>> encoder = make_network("resnet18", (3, 32, 32), None, width=0.25)
    >>> encoder(torch.zeros(2, 3, 32, 32)).shape
    torch.Size([2, 128])
    """
    shape = tuple(input_shape)
    if not isinstance(network, str):
        if options:
            raise TypeError(
                f"Options ({', '.join(options)}) are for a network given by name; bind those of "
                "a factory with functools.partial."
            )
        given = not callable(network) or isinstance(network, nn.Module)
        module = network if given else network(shape, n_outputs)
        if given or not isinstance(module, nn.Module):
            raise TypeError(
                "network must be a name or a factory(input_shape, n_outputs) that returns a new "
                f"torch module, got {type(module).__name__}. A method needs fresh weights, so a "
                "module cannot be given itself."
            )
        found = count_features(module, shape)
        if n_outputs is not None and found != n_outputs:
            raise ValueError(
                f"The network factory was asked for {n_outputs} outputs and its network has "
                f"{found} for samples of shape {shape}. Its last layer must have n_outputs units."
            )
        return module
    if network not in _ENCODERS:
        raise ValueError(
            f"Unknown network {network!r}. Names are {', '.join(_ENCODERS)}; or give "
            "a factory(input_shape, n_outputs) that returns a torch module."
        )
    known = list(inspect.signature(_ENCODERS[network]).parameters)[1:]
    wrong = [name for name in options if name not in known]
    if wrong:
        raise TypeError(
            f"The network {network!r} has no option {', '.join(map(repr, wrong))}. Its options "
            f"are: {', '.join(known) or 'none'}."
        )
    encoder, n_features = _ENCODERS[network](shape, **options)
    if n_outputs is None:
        return encoder
    classifier = nn.Linear(n_features, n_outputs)
    if network in ("linear", "mlp") and options.get("start") != "torch":
        nn.init.xavier_uniform_(classifier.weight)
        nn.init.zeros_(classifier.bias)
    return nn.Sequential(OrderedDict(encoder=encoder, classifier=classifier))


def count_features(encoder: nn.Module, input_shape: Sequence[int]) -> int:
    """Number of features, or of outputs, that a network has for samples of a given shape.

    Two samples of zeros are passed through it in evaluation mode and without gradient; it is in
    training mode afterwards. BatchNorm statistics and torch's generators stay as they were.

    Parameters
    ----------
    encoder : torch.nn.Module
        The network.
    input_shape : sequence of int
        Shape of one sample.

    Returns
    -------
    int
        The size of the second axis of what the network returns.

    Examples
    --------
    >>> from appellate.deep.networks import count_features, make_network
    >>> count_features(make_network("resnet32", (1, 28, 28), None), (1, 28, 28))
    64
    """
    shape = tuple(input_shape)
    tensors = (t for t in chain(encoder.parameters(), encoder.buffers()) if t.is_floating_point())
    first = next(tensors, torch.empty(0))
    batch = torch.zeros(2, *shape, dtype=first.dtype, device=first.device)
    with torch.no_grad(), isolated(first.device):
        try:
            output = encoder.eval()(batch)
        except Exception as error:
            raise ValueError(
                f"The network failed on a batch of two samples of shape {shape}: {error}. "
                "Check that it was made for samples of this shape."
            ) from error
        finally:
            encoder.train()
    found = tuple(output.shape) if isinstance(output, Tensor) else type(output).__name__
    if isinstance(found, str) or len(found) != 2 or found[0] != 2:
        raise ValueError(
            f"The network returned {found} for two samples of shape {shape}; it must return a "
            "tensor with one row of numbers for each, (2, number). Flatten or average what it "
            "returns."
        )
    return found[1]


def _mlp(
    shape: Shape,
    hidden: Sequence[int] = (300, 301, 302, 303),
    norm: str = "before",
    start: str = "xavier",
) -> Encoder:
    """Linear, then BatchNorm before or after ReLU, for each hidden size."""
    sizes = tuple(hidden) if isinstance(hidden, Iterable) else ()
    if not sizes or not all(isinstance(size, Integral) and size >= 1 for size in sizes):
        raise ValueError(
            f"hidden must be a sequence of positive sizes such as (300, 300), got {hidden!r}. "
            "The network without hidden layer is 'linear'."
        )
    layers: list[nn.Module] = [nn.Flatten()]
    for n_in, n_out in pairwise((math.prod(shape), *map(int, sizes))):
        dense = nn.Linear(n_in, n_out, bias=start == "torch")
        if start == "xavier":
            nn.init.xavier_uniform_(dense.weight)
        rest = [nn.BatchNorm1d(n_out), nn.ReLU()]
        layers += [dense, *(rest if norm == "before" else reversed(rest))]
    return nn.Sequential(*layers), int(sizes[-1])


def _convnet(shape: Shape, width: float = 1.0) -> Encoder:
    """Three convolutions at full, three at half, three unpadded ones at a quarter of the side.

    The convolutions have no bias: the BatchNorm behind each would take it out again.
    """
    _check_image("convnet", shape, smallest=28)
    channels = _scaled(width, 128, 128, 128, 256, 256, 256, 512, 256, 128)
    layers: list[nn.Module] = []
    for place, (n_in, n_out) in enumerate(pairwise((shape[0], *channels))):
        convolution = nn.Conv2d(n_in, n_out, 3, padding=int(place < 6), bias=False)
        layers += [convolution, nn.BatchNorm2d(n_out), nn.LeakyReLU(0.01, inplace=True)]
        if place in (2, 5):
            layers += [nn.MaxPool2d(2), nn.Dropout2d(0.25)]
    return nn.Sequential(*layers, _GlobalAverage()), channels[-1]


def _resnet(
    name: str, channels: Shape, n_blocks: int, shape: Shape, width: float = 1.0
) -> Encoder:
    """A 3x3 convolution of stride 1, then stages of blocks; every later stage halves the side."""
    _check_image(name, shape)
    stages = _scaled(width, *channels)
    layers: list[nn.Module] = [
        nn.Conv2d(shape[0], stages[0], 3, padding=1, bias=False),
        nn.BatchNorm2d(stages[0]),
        nn.ReLU(inplace=True),
    ]
    n_before = stages[0]
    for stage, n_channels in enumerate(stages):
        for block in range(n_blocks):
            stride = 2 if stage > 0 and block == 0 else 1
            layers.append(_ResidualBlock(n_before, n_channels, stride))
            n_before = n_channels
    encoder = nn.Sequential(*layers, _GlobalAverage())
    for module in encoder.modules():
        if isinstance(module, nn.Conv2d):
            nn.init.kaiming_normal_(module.weight, mode="fan_out", nonlinearity="relu")
    return encoder, stages[-1]


class _ResidualBlock(nn.Module):
    """Two 3x3 convolutions and a shortcut, a 1x1 convolution where side and channels change."""

    def __init__(self, n_in: int, n_out: int, stride: int) -> None:
        super().__init__()
        self.convolution1 = nn.Conv2d(n_in, n_out, 3, stride, padding=1, bias=False)
        self.norm1 = nn.BatchNorm2d(n_out)
        self.convolution2 = nn.Conv2d(n_out, n_out, 3, padding=1, bias=False)
        self.norm2 = nn.BatchNorm2d(n_out)
        self.projection: nn.Module = nn.Identity()
        if stride > 1:
            shortcut = nn.Conv2d(n_in, n_out, 1, stride, bias=False)
            self.projection = nn.Sequential(shortcut, nn.BatchNorm2d(n_out))

    def forward(self, x: Tensor) -> Tensor:
        inner = functional.relu(self.norm1(self.convolution1(x)))
        inner = self.norm2(self.convolution2(inner))
        return functional.relu(inner + self.projection(x))


class _GlobalAverage(nn.Module):
    """Mean over the pixels; torch's adaptive pooling is not deterministic on a GPU."""

    def forward(self, x: Tensor) -> Tensor:
        return x.mean(dim=(2, 3))  # (m, channels)


_ENCODERS: dict[str, Callable[..., Encoder]] = {
    "linear": lambda shape: (nn.Flatten(), math.prod(shape)),
    "mlp": _mlp,
    "convnet": _convnet,
    "resnet18": partial(_resnet, "resnet18", (64, 128, 256, 512), 2),
    "resnet32": partial(_resnet, "resnet32", (16, 32, 64), 5),
}


def _scaled(width: float, *channels: int) -> Shape:
    """The channels of every layer times the width, at least one."""
    return tuple(max(1, round(width * n)) for n in channels)


def _check_image(network: str, shape: Shape, smallest: int = 1) -> None:
    takes = f"The network {network!r} takes images of"
    if len(shape) != 3:
        hint = "Reshape the samples to images, or use 'mlp' or 'linear'."
        hint = f"Add the channel axis: {(1, *shape)}." if len(shape) == 2 else hint
        raise ValueError(f"{takes} shape (channels, height, width), got {shape}. {hint}")
    if min(shape[1:]) < smallest:
        raise ValueError(
            f"{takes} at least {smallest}x{smallest} pixels, because its last convolutions are "
            f"not padded, got {shape}. Enlarge the images, or use 'resnet18' or 'resnet32'."
        )
