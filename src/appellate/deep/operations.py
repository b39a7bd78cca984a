"""Operations on batches of images whose amounts are given: geometry, colour, cut-outs.

Images are floats in [0, 1] of shape (m, c, h, w), with one or three channels. Nothing is random
here: `appellate.deep.augment` draws the amounts.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

import torch
from torch import Tensor
from torch.nn import functional

Operation: TypeAlias = Callable[[Tensor, Tensor], Tensor]
"""From images (m, c, h, w) and amounts (m, 1, 1, 1) to images."""

PADDING = 4  # black pixels around an image that is shifted
_LUMA = (0.299, 0.587, 0.114)
_CUTOUT_COLOUR = (0.49, 0.48, 0.45)


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


def affine(
    aspect: float,
    angle: Tensor,
    shear_x: Tensor,
    shear_y: Tensor,
    shift_x: Tensor,
    shift_y: Tensor,
) -> Tensor:
    """Affine maps for `resample`, of which each does one thing: the other amounts are zero.

    Parameters
    ----------
    aspect : float
        Height over width of the images.
    angle : Tensor, shape (m,)
        Rotation about the middle, in degrees, against the clock.
    shear_x, shear_y : Tensor, shape (m,)
        Pixels by which a row (column) moves for each row (column) from the upper left corner.
    shift_x, shift_y : Tensor, shape (m,)
        Translation relative to width and height.

    Returns
    -------
    Tensor, shape (m, 3, 3)
        In homogeneous coordinates.
    """
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
    levels = _levels(images).reshape(m * c, h * w)
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


def _levels(images: Tensor) -> Tensor:
    return (images * 255).round_().long()


def _blend(images: Tensor, other: Tensor, factor: Tensor) -> Tensor:
    return (factor * images + (1 - factor) * other).clamp_(0, 1)
