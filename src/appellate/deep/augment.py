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
from collections.abc import Callable, Sequence
from typing import TypeAlias

import torch
from torch import Tensor
from torch.nn import functional

Augmentation: TypeAlias = Callable[[Tensor], Tensor]
Operation: TypeAlias = Callable[[Tensor, Tensor], Tensor]
"""From images (m, c, h, w) and amounts (m, 1, 1, 1) to images."""

PADDING = 4  # black pixels around an image that is shifted
_SMALLEST_PART, _MOST_OBLONG = 0.2, 4 / 3
_SLACK = 1e-3  # of rounding
_LUMA, _CUTOUT_COLOUR = (0.299, 0.587, 0.114), (0.49, 0.48, 0.45)


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
        channels, to a batch of the same shape, type and device. The batch given is not changed.

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
        raise ValueError(f"Unknown augmentation {name!r}. Names are {', '.join(_AUGMENTATIONS)}.")
    view = _AUGMENTATIONS[name]

    def augment(images: Tensor) -> Tensor:
        if images.ndim != 4 or images.shape[1] not in (1, 3):
            raise ValueError(
                "Augmentation takes images of shape (m, channels, height, width) with one or "
                f"three channels, got {tuple(images.shape)}. For other data use 'none'."
            )
        lowest, highest = images.min().item(), images.max().item()
        if name != "crop_flip" and not -_SLACK <= lowest <= highest <= 1 + _SLACK:
            raise ValueError(
                f"Augmentation {name!r} takes images in [0, 1], or bytes; these go from "
                f"{lowest:g} to {highest:g}. Give X.astype(np.uint8), divide by the largest "
                "value, or use 'crop_flip'."
            )
        return view(images)

    return view if name == "none" else augment


def _crop_flip(images: Tensor) -> Tensor:
    m = len(images)
    top, left = _draw(2, m).mul(2 * PADDING + 1).long() - PADDING
    return shift_flip(images, top, left, flip=_draw(m) < 0.5)


def _simple(images: Tensor) -> Tensor:
    return _random_grey(_jitter(resample(images, *_draw_part(images))))


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
    "none": lambda batch: batch,
    "crop_flip": _crop_flip,
    "simple": _simple,
    "strong": _strong,
}


def _draw(*shape: int) -> Tensor:
    """Uniform numbers of [0, 1) from the global CPU generator, in double precision."""
    return torch.rand(*shape, dtype=torch.float64, device="cpu")


def _draw_part(images: Tensor) -> tuple[Tensor, Tensor]:
    """Size and middle of a random part, half of them mirrored; see `resample`.

    Area and logarithm of the aspect are uniform. The first of ten draws that fits into the image
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


# ------------------------------------------- operations whose amounts are given: nothing is random


def shift_flip(images: Tensor, top: Tensor, left: Tensor, flip: Tensor) -> Tensor:
    """Window of every image that starts at ``top``, ``left``, black outside, then mirrored.

    Parameters
    ----------
    images : Tensor, shape (m, c, h, w)
        Images.
    top, left : Tensor of int, shape (m,)
        Where the window starts, between minus four and four.
    flip : Tensor of bool, shape (m,)
        Which images are mirrored left to right.

    Returns
    -------
    Tensor, shape (m, c, h, w)
        The windows.
    """
    m, c, h, w = images.shape
    columns = torch.arange(w).repeat(m, 1)  # (m, w)
    columns = torch.where(flip[:, None], w - 1 - columns, columns) + left[:, None] + PADDING
    rows = torch.arange(h) + top[:, None] + PADDING  # (m, h)
    padded = functional.pad(images, (PADDING,) * 4)
    where = rows[:, :, None] * (w + 2 * PADDING) + columns[:, None, :]  # (m, h, w)
    where = where.reshape(m, 1, h * w).expand(m, c, h * w).to(images.device)
    return padded.flatten(2).gather(2, where).reshape(m, c, h, w)


def resample(
    images: Tensor, scale: Tensor, centre: Tensor, motion: Tensor | None = None
) -> Tensor:
    """Enlarge a part of every image to the whole, then move it, in one bilinear resampling.

    Coordinates are x, y from -1 to 1 between the outer edges of the image.

    Parameters
    ----------
    images : Tensor, shape (m, c, h, w)
        Images.
    scale, centre : Tensor, shape (m, 2)
        Size of the part relative to the image, and its middle. A negative size mirrors.
    motion : Tensor, shape (m, 2, 3), optional
        Affine map from the place of a pixel to the place in the enlarged part whose colour it
        gets. Places outside the part are black.

    Returns
    -------
    Tensor, shape (m, c, h, w)
        The resampled images.
    """
    maps = torch.eye(2, 3)[None] if motion is None else motion  # (1 or m, 2, 3)
    size = [len(maps), *images.shape[1:]]
    grid = functional.affine_grid(maps.to(images), size, align_corners=False)
    scale, centre = scale.to(images), centre.to(images)
    places = torch.addcmul(centre[:, None, None], grid, scale[:, None, None])  # (m, h, w, 2)
    view = functional.grid_sample(images, places, padding_mode="border", align_corners=False)
    if motion is None:
        return view
    inside = grid.abs().amax(dim=-1) <= 1 + 1e-6  # (m, h, w)
    return view * inside[:, None]


def affine(aspect: float, *amounts: Tensor) -> Tensor:
    """Affine maps for `resample`. Each does one thing: the other amounts are zero.

    Parameters
    ----------
    aspect : float
        Height over width of the images.
    *amounts : Tensor, shape (m,)
        Rotation about the middle, in degrees, against the clock; shear along x and y, pixels by
        which a row (column) moves for each row (column) from the upper left corner; translation
        along x and y, relative to width and height.

    Returns
    -------
    Tensor, shape (m, 3, 3)
        In homogeneous coordinates.
    """
    angle, shear_x, shear_y, shift_x, shift_y = amounts
    cosine, sine = torch.deg2rad(angle).cos(), torch.deg2rad(angle).sin()
    across, down = shear_x * aspect, shear_y / aspect
    zero = torch.zeros_like(angle)
    entries = [
        [cosine, across - sine * aspect, across + 2 * shift_x],
        [down + sine / aspect, cosine, down + 2 * shift_y],
        [zero, zero, zero + 1],
    ]
    return torch.stack([torch.stack(row, dim=1) for row in entries], dim=1)


def brightness(images: Tensor, factor: Tensor) -> Tensor:
    """Blend with black: factor 0 is black, 1 the image."""
    return (images * factor).clamp_(0, 1)


def contrast(images: Tensor, factor: Tensor) -> Tensor:
    """Blend with the mean grey of each image: factor 0 is that grey, 1 the image."""
    return _blend(images, grey(images).mean(dim=(2, 3), keepdim=True), factor)


def saturation(images: Tensor, factor: Tensor) -> Tensor:
    """Blend with the grey image: factor 0 is grey, 1 the image."""
    return _blend(images, grey(images), factor) if images.shape[1] == 3 else images


def sharpness(images: Tensor, factor: Tensor) -> Tensor:
    """Blend with the image smoothed inside its outermost pixels: factor 0 is smooth."""
    m, c, h, w = images.shape
    if min(h, w) < 3:
        return images
    kernel = images.new_ones(1, 1, 3, 3)
    kernel[0, 0, 1, 1] = 5
    smooth = images.clone()
    inner = functional.conv2d(images.reshape(m * c, 1, h, w), kernel / 13)
    smooth[:, :, 1:-1, 1:-1] = inner.reshape(m, c, h - 2, w - 2)
    return _blend(images, smooth, factor)


def hue(images: Tensor, turn: Tensor) -> Tensor:
    """Turn the hue of the HSV colour model; 1 is a full turn."""
    if images.shape[1] == 1:
        return images
    red, green, blue = images.unbind(dim=1)  # (m, h, w)
    value = images.amax(dim=1)
    chroma = value - images.amin(dim=1)
    unit = chroma.clamp_min(1e-12)
    from_green = torch.where(value == green, 2 + (blue - red) / unit, 4 + (red - green) / unit)
    sixths = torch.where(value == red, (green - blue) / unit, from_green) + 6 * turn[:, 0]
    k = sixths[:, None] + sixths.new_tensor([5, 3, 1]).view(1, 3, 1, 1)
    k -= 6 * (k / 6).floor_()  # quicker than remainder
    return value[:, None] - chroma[:, None] * torch.minimum(k, 4 - k).clamp_(0, 1)


def autocontrast(images: Tensor, _: Tensor) -> Tensor:
    """Stretch every channel to all of [0, 1]; a channel of one colour stays."""
    low, high = images.amin(dim=(2, 3), keepdim=True), images.amax(dim=(2, 3), keepdim=True)
    return torch.where(high > low, (images - low) / (high - low).clamp_min(1e-12), images)


def equalize(images: Tensor, _: Tensor) -> Tensor:
    """Make the 256 levels of every channel about equally frequent."""
    m, c, h, w = images.shape
    levels = (images * 255).round_().long().reshape(m * c, h * w)
    counts = torch.zeros(m * c, 256, dtype=torch.long, device=images.device)
    counts.scatter_add_(1, levels, torch.ones_like(levels))
    below = counts.cumsum(dim=1) - counts
    step = (h * w - counts.gather(1, levels.amax(dim=1, keepdim=True))) // 255
    table = ((below + step // 2) // step.clamp_min(1)).clamp_max(255)
    equal = table.gather(1, levels).reshape(m, c, h, w).to(images) / 255
    return torch.where((step > 0).reshape(m, c, 1, 1), equal, images)


def posterize(images: Tensor, bits: Tensor) -> Tensor:
    """Keep the leading bits, rounded down, of the 8 of every value."""
    width = torch.exp2(8 - bits.floor())
    return (images * 255).round_().div_(width).floor_().mul_(width).div_(255)


def solarize(images: Tensor, threshold: Tensor) -> Tensor:
    """Invert the values that reach the threshold."""
    return torch.where(images < threshold, images, 1 - images)


def cut_out(images: Tensor, y: Tensor, x: Tensor, side: Tensor) -> Tensor:
    """Paint a grey square, cut off at the borders, over every image.

    Parameters
    ----------
    images : Tensor, shape (m, c, h, w)
        Images.
    y, x : Tensor, shape (m,)
        Middle of the square, in pixels.
    side : Tensor, shape (m,)
        Side of the square, in pixels.

    Returns
    -------
    Tensor, shape (m, c, h, w)
        New images.
    """
    _, c, h, w = images.shape
    y, x, side = (part.to(images)[:, None] for part in (y, x, side))
    rows = (torch.arange(h, device=images.device) + 0.5 - y).abs() < side / 2  # (m, h)
    columns = (torch.arange(w, device=images.device) + 0.5 - x).abs() < side / 2
    colour = images.new_tensor(_CUTOUT_COLOUR).view(1, 3, 1, 1)
    inside = rows[:, None, :, None] & columns[:, None, None, :]
    return torch.where(inside, colour if c == 3 else grey(colour), images)


def apply_by_operation(
    images: Tensor, chosen: Tensor, amounts: Tensor, operations: Sequence[Operation | None]
) -> Tensor:
    """Apply to every image its own operation, one call for all images of an operation.

    Parameters
    ----------
    images : Tensor, shape (m, c, h, w)
        Images.
    chosen : Tensor of int, shape (m,)
        Which operation each image gets, on the CPU; a negative number is none.
    amounts : Tensor, shape (m,)
        Amount of each image's operation.
    operations : sequence of callable or None
        ``operation(images, amounts)``; None does nothing.

    Returns
    -------
    Tensor, shape (m, c, h, w)
        New images.
    """
    result = images.clone()
    amounts = amounts.to(images)[:, None, None, None]
    for place, operation in enumerate(operations):
        rows = (chosen == place).nonzero()[:, 0].to(images.device)
        if operation is not None and len(rows):
            result[rows] = operation(images[rows], amounts[rows])
    return result


def grey(images: Tensor) -> Tensor:
    """Luma, (m, 1, h, w)."""
    if images.shape[1] == 1:
        return images
    weights = images.new_tensor(_LUMA).view(1, 3, 1, 1)
    return (images * weights).sum(dim=1, keepdim=True)


def _blend(images: Tensor, other: Tensor, factor: Tensor) -> Tensor:
    return (factor * images + (1 - factor) * other).clamp_(0, 1)


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
