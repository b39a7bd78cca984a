"""Views: the operations against Pillow, colorsys and slicing, and the draws of each image."""

from __future__ import annotations

import colorsys
from itertools import permutations

import numpy as np
import pytest
from PIL import Image, ImageEnhance, ImageOps

torch = pytest.importorskip("torch")

from appellate.deep import augment  # noqa: E402
from appellate.deep.augment import make_augmentation  # noqa: E402

NAMES = ["none", "crop_flip", "simple", "strong"]
RANDOM_NAMES = NAMES[1:]
LEVEL = 1 / 255


def pictures(m=6, c=3, h=32, w=32, seed=0):
    """Smooth pictures of whole levels, of different ranges."""
    rng = np.random.default_rng(seed)
    y, x = np.mgrid[0:h, 0:w] / max(h, w)
    wave = rng.uniform(1, 9, (m, c, 3, 1, 1))
    values = np.sin(wave[:, :, 0] * x + wave[:, :, 1] * y + wave[:, :, 2])
    values = 0.5 + 0.5 * values * rng.uniform(0.3, 1, (m, c, 1, 1))
    return torch.from_numpy(np.round(values * 255) / 255).float()


def to_pil(image):
    levels = np.round(image.numpy() * 255).astype(np.uint8)
    return Image.fromarray(levels[0] if len(levels) == 1 else levels.transpose(1, 2, 0))


def from_pil(image):
    values = np.asarray(image, dtype=np.float32) / 255
    return torch.from_numpy(values[None] if values.ndim == 2 else values.transpose(2, 0, 1))


def amounts(*values):
    return torch.tensor(values)[:, None, None, None]


# ------------------------------------------------------------------------------ every view


@pytest.mark.parametrize("shape", [(5, 3, 32, 32), (5, 1, 28, 28), (1, 3, 20, 31), (2, 1, 2, 1)])
@pytest.mark.parametrize("name", NAMES)
def test_shape_type_and_range_stay(name, shape):
    images = torch.rand(shape)
    for dtype in (torch.float32, torch.float64):
        view = make_augmentation(name)(images.to(dtype))
        assert view.shape == shape
        assert view.dtype == dtype
        assert view.isfinite().all()
        assert view.min() >= 0
        assert view.max() <= 1


@pytest.mark.parametrize("value", [0.0, 1.0])
@pytest.mark.parametrize("name", NAMES)
def test_black_and_white_images_stay_in_range(name, value):
    torch.manual_seed(0)
    view = make_augmentation(name)(torch.full((200, 3, 8, 8), value))
    assert view.isfinite().all()
    assert 0 <= view.min() <= view.max() <= 1


@pytest.mark.parametrize("name", RANDOM_NAMES)
def test_the_same_seed_gives_the_same_pixels(name):
    images, view = pictures(20), make_augmentation(name)
    original = images.clone()
    torch.manual_seed(3)
    first = view(images)
    second = view(images)
    torch.manual_seed(3)
    assert torch.equal(view(images), first)
    assert not torch.equal(first, second)
    assert torch.equal(images, original)


@pytest.mark.parametrize("name", RANDOM_NAMES)
def test_every_image_has_its_own_draws(name):
    torch.manual_seed(0)
    view = make_augmentation(name)(pictures(1).expand(64, 3, 32, 32))
    n_different = len({image.numpy().tobytes() for image in view})
    assert n_different >= (40 if name == "crop_flip" else 64)  # 162 crops with flip


@pytest.mark.parametrize("name", RANDOM_NAMES)
def test_a_view_of_an_image_does_not_depend_on_its_neighbours(name):
    images, others = pictures(20), pictures(20, seed=1)
    others[7] = images[7]
    views = []
    for batch in (images, others):
        torch.manual_seed(5)
        views.append(make_augmentation(name)(batch)[7])
    torch.testing.assert_close(*views)


@pytest.mark.parametrize("name", ["simple", "strong"])
def test_three_equal_channels_give_the_view_of_the_grey_image(name):
    """Cutout's colour is not grey, so the square is left out of the comparison."""
    grey = pictures(40, c=1)
    torch.manual_seed(1)
    from_grey = make_augmentation(name)(grey)
    torch.manual_seed(1)
    from_three = make_augmentation(name)(grey.expand(-1, 3, -1, -1))
    same = (from_three.amax(1) - from_three.amin(1)) < 1e-5
    assert same.float().mean() > 0.8
    difference = (from_three.mean(1) - from_grey[:, 0]).abs()[same]
    assert (difference < 1e-4).float().mean() > 0.999  # a level may be rounded the other way


def test_none_returns_the_batch():
    vectors = torch.rand(4, 48)
    assert make_augmentation("none")(vectors) is vectors


def test_wrong_requests():
    with pytest.raises(ValueError, match=r"'weak'.* none, crop_flip, simple, strong"):
        make_augmentation("weak")
    with pytest.raises(ValueError, match=r"one or three channels, got \(4, 48\).*'none'"):
        make_augmentation("simple")(torch.rand(4, 48))
    with pytest.raises(ValueError, match=r"got \(4, 2, 8, 8\)"):
        make_augmentation("crop_flip")(torch.rand(4, 2, 8, 8))


# -------------------------------------------------------------------------------- geometry


def test_shift_flip_against_slicing():
    images = pictures(81, h=9, w=12)
    shifts = torch.cartesian_prod(torch.arange(-4, 5), torch.arange(-4, 5))
    flip = torch.arange(81) % 2 == 0
    result = augment.shift_flip(images, *shifts.T, flip)
    padded = np.pad(images.numpy(), ((0, 0), (0, 0), (4, 4), (4, 4)))
    for i, (top, left) in enumerate(shifts.tolist()):
        window = padded[i, :, top + 4 : top + 13, left + 4 : left + 16]
        expected = window[:, :, ::-1] if flip[i] else window
        assert np.array_equal(result[i].numpy(), expected)


def test_crop_flip_draws_every_shift_and_flip_alike():
    torch.manual_seed(0)
    image = torch.arange(1, 145).reshape(1, 1, 12, 12) / 145
    view = make_augmentation("crop_flip")(image.expand(8000, 1, 12, 12))
    centre = torch.round(view[:, 0, 6, 6] * 145).long() - 1  # always from the image itself
    flipped = view[:, 0, 6, 5] > view[:, 0, 6, 6]
    top, left = centre // 12 - 6, centre % 12 - torch.where(flipped, 5, 6)
    for shift in (top, left):
        counts = torch.bincount(shift + 4, minlength=9)
        assert len(counts) == 9
        assert (counts / 8000 - 1 / 9).abs().max() < 0.02
    assert abs(flipped.float().mean() - 0.5) < 0.02


def whole(m):
    return torch.ones(m, 2), torch.zeros(m, 2)


@pytest.mark.parametrize("shape", [(3, 32, 32), (1, 28, 28), (3, 20, 31)])
def test_the_whole_image_resampled_is_the_image(shape):
    images = pictures(4, *shape)
    torch.testing.assert_close(augment.resample(images, *whole(4)), images, atol=1e-5, rtol=0)
    still = torch.eye(2, 3).expand(4, 2, 3)
    view = augment.resample(images, *whole(4), motion=still)
    torch.testing.assert_close(view, images, atol=1e-5, rtol=0)
    mirror = torch.tensor([[-1.0, 1.0]]).expand(4, 2)
    view = augment.resample(images, mirror, torch.zeros(4, 2))
    torch.testing.assert_close(view, images.flip(3), atol=1e-5, rtol=0)


def test_an_enlarged_part_against_pillow():
    images = pictures(5, h=24, w=32)
    boxes = [
        (0, 0, 32, 24),
        (3, 5, 19, 20),
        (16, 12, 32, 24),
        (0.5, 1.25, 28, 23.5),
        (8, 0, 24, 8),
    ]
    x0, y0, x1, y1 = torch.tensor(boxes).T
    scale = torch.stack([(x1 - x0) / 32, (y1 - y0) / 24], dim=1)
    centre = torch.stack([(x0 + x1) / 32 - 1, (y0 + y1) / 24 - 1], dim=1)
    view = augment.resample(images, scale, centre)
    for i, box in enumerate(boxes):
        resized = to_pil(images[i]).resize((32, 24), Image.Resampling.BILINEAR, box=box)
        inner = (slice(None), slice(2, -2), slice(2, -2))  # Pillow stops at the part's edge
        assert (view[i] - from_pil(resized))[inner].abs().max() < 1.5 * LEVEL


def test_parts_have_the_area_aspect_and_place_asked_for():
    torch.manual_seed(0)
    scale, centre = augment._draw_part(torch.empty(20000, 3, 32, 32))
    size = scale.abs()
    area, aspect = size.prod(1), size[:, 0] / size[:, 1]
    assert 0.2 <= area.min() < 0.21
    assert 0.98 < area.max() <= 1
    assert 3 / 4 - 1e-9 <= aspect.min() < 0.76
    assert 1.32 < aspect.max() <= 4 / 3 + 1e-9
    assert (centre.abs() + size <= 1 + 1e-9).all()
    assert abs(centre.mean()) < 0.01
    assert abs((scale[:, 0] < 0).double().mean() - 0.5) < 0.02
    assert (scale[:, 1] > 0).all()
    assert abs(aspect.log().mean()) < 0.01


def test_parts_of_a_long_image_fit_and_keep_the_aspect_in_pixels():
    torch.manual_seed(0)
    scale, _ = augment._draw_part(torch.empty(2000, 1, 10, 30))
    size = scale.abs()
    whole_image = (size == 1).all(1)
    aspect = 3 * size[~whole_image, 0] / size[~whole_image, 1]
    assert aspect.min() >= 3 / 4 - 1e-9
    assert aspect.max() <= 4 / 3 + 1e-9
    assert size.max() <= 1


def moved(images, **amount):
    m = len(images)
    zero = torch.zeros(m)
    names = ("angle", "shear_x", "shear_y", "shift_x", "shift_y")
    aspect = images.shape[2] / images.shape[3]
    matrices = augment.affine(aspect, *(zero + amount.get(name, 0) for name in names))
    return augment.resample(images, *whole(m), motion=matrices[:, :2])


PILLOW_AFFINE = {
    "shear_x": lambda v, w, h: (1, v, 0, 0, 1, 0),
    "shear_y": lambda v, w, h: (1, 0, 0, v, 1, 0),
    "shift_x": lambda v, w, h: (1, 0, v * w, 0, 1, 0),
    "shift_y": lambda v, w, h: (1, 0, 0, 0, 1, v * h),
}


@pytest.mark.parametrize("shape", [(3, 32, 32), (1, 28, 28), (3, 20, 31)])
@pytest.mark.parametrize("value", [-0.3, -0.07, 0.21])
@pytest.mark.parametrize("name", PILLOW_AFFINE)
def test_shear_and_translation_against_pillow(name, value, shape):
    images = pictures(3, *shape)
    _, h, w = shape
    view = moved(images, **{name: value})
    for image, result in zip(images, view, strict=True):
        data = PILLOW_AFFINE[name](value, w, h)
        expected = to_pil(image).transform(
            (w, h), Image.Transform.AFFINE, data, Image.Resampling.BILINEAR
        )
        assert_close_but_for_the_edge(result, from_pil(expected))


@pytest.mark.parametrize("shape", [(3, 32, 32), (1, 28, 28), (3, 20, 31)])
@pytest.mark.parametrize("angle", [-30, -3.5, 17])
def test_rotation_against_pillow(angle, shape):
    images = pictures(3, *shape)
    for image, result in zip(images, moved(images, angle=angle), strict=True):
        expected = to_pil(image).rotate(angle, Image.Resampling.BILINEAR)
        assert_close_but_for_the_edge(result, from_pil(expected))


def assert_close_but_for_the_edge(result, expected):
    """Pixels whose place falls on the image's very edge may be filled by one and not by other."""
    far = (result - expected).abs() > 1.5 * LEVEL
    assert far.any(0).float().mean() < 0.01


def test_two_motions_follow_each_other():
    """Shifts by whole pixels first, then a rotation by resampling the shifted image."""
    images = pictures(8)
    names = list(augment._RAND_AUGMENT)
    choice = torch.tensor([names.index("translate_x"), names.index("identity")])
    choice = torch.cat([choice, torch.tensor([names.index("rotate")])])[:, None].expand(3, 8)
    amount = torch.tensor([0.125, 0.5, 20.0])[:, None].expand(3, 8)
    motion = augment._motion(choice, amount.double(), 1.0)
    view = augment.resample(images, *whole(8), motion=motion)
    expected = moved(moved(images, shift_x=0.125), angle=20.0)
    inner = (slice(None), slice(None), slice(8, 24), slice(8, 20))
    torch.testing.assert_close(view[inner], expected[inner], atol=1e-4, rtol=0)


# ---------------------------------------------------------------------------------- colour


@pytest.mark.parametrize("c", [1, 3])
@pytest.mark.parametrize(
    ("operation", "enhancer"),
    [
        ("brightness", ImageEnhance.Brightness),
        ("contrast", ImageEnhance.Contrast),
        ("saturation", ImageEnhance.Color),
        ("sharpness", ImageEnhance.Sharpness),
    ],
)
def test_enhancements_against_pillow(operation, enhancer, c):
    images = pictures(6, c)
    factors = (0.0, 0.05, 0.5, 0.95, 1.0, 1.4)
    result = getattr(augment, operation)(images, amounts(*factors))
    for i, factor in enumerate(factors):
        expected = from_pil(enhancer(to_pil(images[i])).enhance(factor))
        assert (result[i] - expected).abs().max() < 2.1 * LEVEL


@pytest.mark.parametrize("c", [1, 3])
def test_operations_on_levels_against_pillow(c):
    noise = torch.randint(0, 256, (3, c, 32, 32), generator=torch.Generator().manual_seed(0))
    images = torch.cat([pictures(9, c), noise / 255, torch.full((1, c, 32, 32), 77 / 255)])
    none = torch.zeros(len(images), 1, 1, 1)
    cases = [
        (augment.autocontrast(images, none), ImageOps.autocontrast, 1.01 * LEVEL),
        (augment.equalize(images, none), ImageOps.equalize, 1e-6),
    ]
    for bits in (1, 4, 5, 7, 8):
        result = augment.posterize(images, none + bits + 0.7 * (bits < 8))
        cases.append((result, lambda image, b=bits: ImageOps.posterize(image, b), 1e-6))
    for threshold in (0, 1, 100, 255, 256):
        result = augment.solarize(images, none + (threshold - 0.5) / 255)
        cases.append((result, lambda image, t=threshold: ImageOps.solarize(image, t), 1e-6))
    for result, reference, tolerance in cases:
        for image, mine in zip(images, result, strict=True):
            assert (mine - from_pil(reference(to_pil(image)))).abs().max() <= tolerance


def test_hue_against_colorsys():
    rng = np.random.default_rng(0)
    images = rng.random((4, 3, 6, 7)).astype(np.float32)
    images[0, :, 0] = 0.4  # grey
    images[0, :, 1] = 0  # black
    images[0, 1:, 2] = images[0, 0, 2]
    images[0, 1, 3] = images[0, 0, 3]  # two largest
    turns = [-0.1, 0.0, 0.07, 0.5]
    result = augment.hue(torch.from_numpy(images), amounts(*turns)).numpy()
    for i, turn in enumerate(turns):
        for y, x in np.ndindex(6, 7):
            h, s, v = colorsys.rgb_to_hsv(*images[i, :, y, x].tolist())
            expected = colorsys.hsv_to_rgb((h + turn) % 1, s, v)
            np.testing.assert_allclose(result[i, :, y, x], expected, atol=2e-6)


def test_colour_operations_leave_grey_images():
    images = pictures(3, 1)
    for operation in (augment.hue, augment.saturation):
        assert torch.equal(operation(images, amounts(0.1, 0.2, 0.3)), images)


def test_jitter_and_grey_have_their_probabilities():
    torch.manual_seed(0)
    images = pictures(1, h=8, w=8).expand(4000, 3, 8, 8)
    changed = (augment._jitter(images) != images).flatten(1).any(1)
    assert abs(changed.float().mean() - 0.8) < 0.025
    view = augment._random_grey(images)
    grey = (view == view[:, :1]).flatten(1).all(1)
    assert abs(grey.float().mean() - 0.2) < 0.025
    luma = np.asarray([0.299, 0.587, 0.114]) @ images[0].numpy().reshape(3, 64)
    np.testing.assert_allclose(view[grey][0, 0].numpy().ravel(), luma, atol=1e-6)


def test_jitter_applies_each_operation_once_in_every_order(monkeypatch):
    """Operations that append a digit to a number in base four, instead of those on colour."""
    digits = [lambda images, _, digit=digit: 4 * images + digit for digit in range(4)]
    monkeypatch.setattr(augment, "_JITTER_OPERATIONS", digits)
    torch.manual_seed(0)
    numbers = augment._jitter(torch.zeros(3000, 1, 1, 1)).flatten().int()
    orders = {tuple(int(n) // 4**k % 4 for k in range(4)) for n in numbers if n > 0}
    assert orders == set(permutations(range(4)))


# ------------------------------------------------------------------- operations image by image


def test_rand_augment_draws_every_operation_alike_and_within_its_range():
    torch.manual_seed(0)
    choice, amount = augment.draw_operations(14000)
    assert choice.shape == amount.shape == (3, 14000)
    for place, (_, low, high) in enumerate(augment._RAND_AUGMENT.values()):
        for row in choice:
            assert abs((row == place).double().mean() - 1 / 14) < 0.01
        drawn = amount[choice == place]
        assert low <= drawn.min()
        assert drawn.max() <= high
        assert drawn.max() - drawn.min() > 0.98 * (high - low)


def test_the_affine_places_are_the_affine_operations():
    names = [list(augment._RAND_AUGMENT)[place] for place in augment._AFFINE_PLACES]
    assert names == ["rotate", "shear_x", "shear_y", "translate_x", "translate_y"]


def test_every_image_gets_its_own_operation():
    images = pictures(5)
    chosen = torch.tensor([1, -1, 0, 1, 2])
    factor = torch.tensor([0.5, 0.5, 0.3, 0.9, 0.1])
    operations = (augment.brightness, augment.contrast, None)
    result = augment.apply_by_operation(images, chosen, factor, operations)
    expected = images.clone()
    expected[2] = augment.brightness(images[2:3], amounts(0.3))[0]
    expected[[0, 3]] = augment.contrast(images[[0, 3]], amounts(0.5, 0.9))
    torch.testing.assert_close(result, expected)


@pytest.mark.parametrize("c", [1, 3])
def test_cutout_paints_a_square(c):
    images = torch.zeros(4, c, 16, 20)
    y, x = torch.tensor([8.0, 0.0, 15.9, 3.0]), torch.tensor([10.0, 0.0, 19.9, 3.0])
    side = torch.tensor([8.0, 8.0, 4.0, 0.0])
    result = augment.cut_out(images, y, x, side)
    painted = [(4, 12, 6, 14), (0, 4, 0, 4), (14, 16, 18, 20), (0, 0, 0, 0)]
    for view, (top, bottom, left, right) in zip(result, painted, strict=True):
        expected = torch.zeros(16, 20, dtype=torch.bool)
        expected[top:bottom, left:right] = True
        assert torch.equal((view > 0.4).all(0), expected)
        assert torch.equal((view > 0).any(0), expected)


def test_cutout_sides_reach_half_the_image():
    torch.manual_seed(0)
    view = make_augmentation("strong")(torch.zeros(2000, 1, 32, 32))
    share = (view > 0.4).flatten(1).float().mean(1)
    share = share[share < 0.9]  # solarize with threshold 0 makes black white
    assert 15**2 / 32**2 < share.max() <= 17**2 / 32**2


@pytest.mark.parametrize("name", ["simple", "strong"])
def test_colours_beyond_their_range_are_refused(name):
    images = torch.full((2, 3, 8, 8), 200.0)
    with pytest.raises(ValueError, match=r"takes images in \[0, 1\], or bytes; these go from 200"):
        make_augmentation(name)(images)
    assert make_augmentation("crop_flip")(images).max() == 200
