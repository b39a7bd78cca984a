"""Random views of a batch of images, computed on the batch's device.

=============  =============================================================================
name           view
=============  =============================================================================
``none``       the batch itself
``crop_flip``  four black pixels around, a random crop of the old size, a random flip
``simple``     PiCO's query view [1]_: a random part of the image (0.2 to 1 of its area)
               enlarged to the old size, flip, jitter of brightness, contrast, saturation and
               hue in random order (with probability 0.8), grey (0.2)
``strong``     PiCO's key view: a random part and flip as above, three of RandAugment's
               operations [2]_ with random amounts, and a square cut out, its side up to half
               that of the image
=============  =============================================================================

Every image has its own draws. They come from torch's global CPU generator, whatever the
device of the batch, so that one seed gives one view on every device. Images are floats in
[0, 1] of shape (m, c, h, w) and stay so; on a grey image (c = 1) the operations that concern
colour alone do nothing.

The code is ours and not kornia's for two reasons. kornia 0.9's ``RandAugment`` draws its three
operations once for the whole batch, where every image should have its own. And it is slower and
heavier: with one CPU thread and batches of 256 x 3 x 32 x 32 (medians of 101, taken in turn)
kornia makes 21,000 / 5,300 / 6,500 images a second of ``crop_flip`` / ``simple`` / ``strong``,
this module 33,000 / 14,400 / 11,400, in 0.5 to 0.6 of the memory; kornia adds 0.4 s and 24 MB
to an import and 31 MB to an installation.

Where this departs from a pipeline of Pillow images: all affine operations, the crop and the flip
are one bilinear resampling, made before the operations on colour; parts and amounts are not
rounded to whole pixels; nothing is rounded to 8 bits but by ``posterize`` and ``equalize``.

References
----------
.. [1] Wang, Xiao, Li, Feng, Niu, Chen, Zhao: PiCO: contrastive label disambiguation for partial
       label learning. ICLR 2022.
.. [2] Cubuk, Zoph, Shlens, Le: RandAugment: practical automated data augmentation with a reduced
       search space. NeurIPS 2020.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import wraps
from typing import TypeAlias

import torch
from torch import Tensor

from appellate.deep.operations import (
    PADDING,
    Operation,
    affine,
    apply_by_operation,
    autocontrast,
    brightness,
    contrast,
    cut_out,
    equalize,
    grey,
    hue,
    posterize,
    resample,
    saturation,
    sharpness,
    shift_flip,
    solarize,
)

Augmentation: TypeAlias = Callable[[Tensor], Tensor]

_SMALLEST_PART = 0.2
_MOST_OBLONG = 4 / 3


def make_augmentation(name: str) -> Augmentation:
    """Give the augmentation of a name.

    Parameters
    ----------
    name : {'none', 'crop_flip', 'simple', 'strong'}
        See the module's table.

    Returns
    -------
    callable
        From a batch of floating point images in [0, 1], shape (m, c, h, w) with one or three
        channels, to a batch of the same shape, type and device. The batch given is not changed
        and no gradient is recorded.

    Examples
    --------
    >>> import torch
    >>> from appellate.deep.augment import make_augmentation
    >>> images = torch.rand(4, 3, 32, 32)
    >>> augment = make_augmentation("simple")
    >>> _ = torch.manual_seed(0)
    >>> view = augment(images)
    >>> _ = torch.manual_seed(0)
    >>> torch.equal(augment(images), view)
    True
    """
    if name not in _AUGMENTATIONS:
        raise ValueError(
            f"There is no augmentation named {name!r}. Names are {', '.join(_AUGMENTATIONS)}."
        )
    return _AUGMENTATIONS[name]


def _on_images(view: Augmentation) -> Augmentation:
    """Check the batch, and compute without gradient in single or double precision."""

    @wraps(view)
    def checked(images: Tensor) -> Tensor:
        if images.ndim != 4 or images.shape[1] not in (1, 3):
            raise ValueError(
                "Augmentation takes images of shape (m, channels, height, width) with one or "
                f"three channels, got {tuple(images.shape)}. For other data use 'none'."
            )
        if not images.is_floating_point():
            raise TypeError(
                f"Augmentation takes floating point images in [0, 1], got {images.dtype}. "
                "Convert whole numbers with images.float() / 255."
            )
        if images.numel() == 0:
            return images
        wide = images.dtype if images.dtype == torch.float64 else torch.float32
        with torch.no_grad():
            return view(images.to(wide)).to(images.dtype)

    return checked


def _none(images: Tensor) -> Tensor:
    return images


@_on_images
def _crop_flip(images: Tensor) -> Tensor:
    m = len(images)
    top, left = _draw(2, m).mul(2 * PADDING + 1).long() - PADDING
    return shift_flip(images, top, left, flip=_draw(m) < 0.5)


@_on_images
def _simple(images: Tensor) -> Tensor:
    return _random_grey(_jitter(resample(images, *_draw_part(images))))


@_on_images
def _strong(images: Tensor) -> Tensor:
    m, _, h, w = images.shape
    part = _draw_part(images)
    choice, amount = draw_operations(m)
    images = resample(images, *part, motion=_motion(choice, amount, h / w))
    for chosen, amounts in zip(choice, amount, strict=True):
        images = apply_by_operation(images, chosen, amounts, _PIXEL_OPERATIONS)
    side = 0.5 * w * _draw(m)
    return cut_out(images, _draw(m) * h, _draw(m) * w, side)


_AUGMENTATIONS: dict[str, Augmentation] = {
    "none": _none,
    "crop_flip": _crop_flip,
    "simple": _simple,
    "strong": _strong,
}


def _draw(*shape: int) -> Tensor:
    """Uniform numbers of [0, 1) from the global CPU generator, in double precision."""
    return torch.rand(*shape, dtype=torch.float64, device="cpu")


def _draw_part(images: Tensor) -> tuple[Tensor, Tensor]:
    """Size and middle of a random part, half of them mirrored; see `resample`.

    Area and logarithm of the aspect are uniform. Of ten draws the first that fits into the image
    counts; if none does, the part is the image.
    """
    m, _, h, w = images.shape
    area = _SMALLEST_PART + (1 - _SMALLEST_PART) * _draw(m, 10)
    oblong = torch.exp((2 * _draw(m, 10) - 1) * math.log(_MOST_OBLONG) / 2)
    size = area.sqrt()[:, :, None] * torch.stack(  # (m, 10, 2), relative to the image
        [oblong * math.sqrt(h / w), math.sqrt(w / h) / oblong], dim=2
    )
    fits = (size <= 1).all(dim=2)
    first = size[torch.arange(m), fits.int().argmax(dim=1)]
    scale = torch.where(fits.any(dim=1)[:, None], first, 1.0)  # (m, 2)
    centre = (1 - scale) * (2 * _draw(m, 2) - 1)
    scale[:, 0] *= torch.where(_draw(m) < 0.5, -1.0, 1.0)
    return scale, centre


def _motion(choice: Tensor, amount: Tensor, aspect: float) -> Tensor:
    """The affine operations among the chosen ones, one after the other, as one map."""
    motion = torch.eye(3, dtype=torch.float64).expand(choice.shape[1], 3, 3)
    for chosen, amounts in zip(choice, amount, strict=True):
        amounts_of = [torch.where(chosen == place, amounts, 0.0) for place in _AFFINE_PLACES]
        motion = motion @ affine(aspect, *amounts_of)
    return motion[:, :2]


def _jitter(images: Tensor) -> Tensor:
    """Brightness, contrast, saturation and hue in random order, on 80 % of the images."""
    m = len(images)
    spread = torch.tensor([0.4, 0.4, 0.4, 0.1], dtype=torch.float64)
    amount = torch.tensor([1.0, 1.0, 1.0, 0.0]) + spread * (2 * _draw(m, 4) - 1)
    order = _draw(m, 4).argsort(dim=1)
    order[_draw(m) >= 0.8] = -1
    for chosen in order.T:
        amounts = amount.gather(1, chosen.clamp_min(0)[:, None])[:, 0]
        images = apply_by_operation(images, chosen, amounts, _JITTER_OPERATIONS)
    return images


def _random_grey(images: Tensor) -> Tensor:
    chosen = (_draw(len(images)) < 0.2).to(images.device)
    return torch.where(chosen[:, None, None, None], grey(images), images)


# --------------------------------------------------------------- one operation for each image

_JITTER_OPERATIONS: tuple[Operation | None, ...] = (brightness, contrast, saturation, hue)

# RandAugment: the operation on pixels (None: nothing, or an affine map), smallest and largest
# amount. A place in this table stands for the operation.
_RAND_AUGMENT: dict[str, tuple[Operation | None, float, float]] = {
    "rotate": (None, -30, 30),
    "shear_x": (None, -0.3, 0.3),
    "shear_y": (None, -0.3, 0.3),
    "translate_x": (None, -0.3, 0.3),
    "translate_y": (None, -0.3, 0.3),
    "identity": (None, 0, 1),
    "autocontrast": (autocontrast, 0, 1),
    "equalize": (equalize, 0, 1),
    "brightness": (brightness, 0.05, 0.95),
    "color": (saturation, 0.05, 0.95),
    "contrast": (contrast, 0.05, 0.95),
    "sharpness": (sharpness, 0.05, 0.95),
    "posterize": (posterize, 4, 8),
    "solarize": (solarize, 0, 1),
}
_AFFINE_PLACES = range(5)
_PIXEL_OPERATIONS = tuple(operation for operation, _, _ in _RAND_AUGMENT.values())
_N_OPERATIONS = 3


def draw_operations(m: int) -> tuple[Tensor, Tensor]:
    """Draw RandAugment's operations, with repetition, and their amounts.

    Parameters
    ----------
    m : int
        Number of images.

    Returns
    -------
    choice : Tensor of int, shape (3, m)
        Places in the table of operations.
    amount : Tensor, shape (3, m)
        Uniform between the smallest and the largest amount of the operation.
    """
    choice = _draw(_N_OPERATIONS, m).mul(len(_RAND_AUGMENT)).long()
    bounds = [(low, high) for _, low, high in _RAND_AUGMENT.values()]
    low, high = torch.tensor(bounds, dtype=torch.float64)[choice].unbind(dim=-1)
    return choice, low + (high - low) * _draw(_N_OPERATIONS, m)
