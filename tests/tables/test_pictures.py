"""Pictures as vectors: by models of the user's, by histograms, and what nobody can read."""

from __future__ import annotations

import base64
import io
import struct
import sys
import warnings
import zlib

import numpy as np
import pytest

from appellate.tables import TableError
from appellate.tables.vectors import embed_pictures, histograms, name_problems, open_picture

Image = pytest.importorskip("PIL.Image")


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("APPELLATE_CACHE_HOME", str(tmp_path / "cache"))


def encode(picture, kind="PNG"):
    stream = io.BytesIO()
    picture.save(stream, kind)
    return stream.getvalue()


def claiming(width, height):
    """A PNG whose header claims a size, with next to nothing behind it."""

    def chunk(name, body):
        return (
            struct.pack(">I", len(body)) + name + body + struct.pack(">I", zlib.crc32(name + body))
        )

    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    body = zlib.compress(b"\0" * 100)
    return (
        b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", body) + chunk(b"IEND", b"")
    )


def stripes(angle, size=64):
    """Waves across a picture."""
    down, across = np.mgrid[:size, :size]
    wave = np.sin((across * np.cos(angle) + down * np.sin(angle)) / 3)
    return Image.fromarray(((wave + 1) * 127).astype(np.uint8)).convert("RGB")


def mean_colour(pictures):
    return [np.asarray(picture).mean(axis=(0, 1)) for picture in pictures]


HOSTILE = {
    "empty.png": b"",
    "nulls.jpg": b"\0" * 1000,
    "large.png": b"\x89PNG\r\n\x1a\n" + bytes(10_000_000),
    "text.gif": b"GIF? No, a text.",
    "broken.jpg": None,  # made below
    "claims.png": claiming(30_000, 30_000),
    "claims_less.png": claiming(9_000, 9_000),
    "short.png": claiming(100, 100),
    "program.eps": b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 9 9\n",
}
HOSTILE["broken.jpg"] = encode(stripes(0.3), "JPEG")[:300]


def test_hostile_pictures_are_named_not_fatal(tmp_path):
    for name, content in HOSTILE.items():
        (tmp_path / name).write_bytes(content)
    Image.new("RGB", (30, 20), "red").save(tmp_path / "good.png")
    cells = ["good.png", *HOSTILE, "gone.png", "https://example.org/a.png", None, ".", "a\0b"]
    cells += ["data:image/png;base64,!!!"]
    vectors, problems = embed_pictures(cells, home=tmp_path)
    assert np.isfinite(vectors[0]).all()
    assert np.isnan(vectors[1:]).all()
    assert problems.keys() == {*range(1, len(cells))} - {cells.index(None)}  # none is no problem
    said = {cells[i]: reason for i, reason in problems.items()}
    assert said["claims.png"] == "claims more than 64 million pixels"
    assert said["claims_less.png"].startswith("claims 9000 x 9000 pixels")
    assert said["gone.png"] == "no such file"
    assert "not opened" in said["https://example.org/a.png"]
    assert said["text.gif"].startswith("not an image in a known format")
    lines = list(name_problems(problems, cells))
    assert 0 < len(lines) <= 5
    assert "of 16 images are not used as features, e.g. 'empty.png'" in lines[0]


def test_a_file_that_is_too_large_is_not_read(tmp_path, monkeypatch):
    from appellate.tables import vectors

    monkeypatch.setattr(vectors, "_LARGEST_FILE", 1 << 20)
    (tmp_path / "a.png").write_bytes(bytes((1 << 20) + 1))
    assert embed_pictures(["a.png"], home=tmp_path)[1] == {0: "larger than 1 MB"}
    long = "data:image/png;base64," + "A" * (2 << 20)
    assert embed_pictures([long])[1] == {0: "larger than 1 MB"}


def test_the_filters_of_warnings_are_left_as_they_were():
    """They belong to the process: two threads that set them could leave all warnings off."""
    cells = [
        "data:image/png;base64,"
        + base64.b64encode(encode(Image.new("RGB", (8, 8), (i % 256, i // 256, 0)))).decode()
        for i in range(600)
    ]
    before, interval = list(warnings.filters), sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        embed_pictures(cells, mean_colour)
        assert warnings.filters == before
    finally:
        sys.setswitchinterval(interval)


def test_all_unreadable():
    vectors, problems = embed_pictures(["gone.png", ""])
    assert vectors.shape == (2, 0)
    assert problems == {0: "no such file"}


@pytest.mark.parametrize("kind", ["PNG", "JPEG", "GIF", "WEBP", "BMP", "TIFF"])
def test_pictures_of_all_kinds(kind):
    content = encode(Image.new("RGB", (700, 300), (200, 10, 10)), kind)
    opened = open_picture(content)
    assert opened.size == (512, 219)
    assert opened.mode == "RGB"
    cell = "data:image/x;base64," + base64.b64encode(content).decode()
    vectors, problems = embed_pictures([cell], mean_colour)
    assert not problems
    np.testing.assert_allclose(vectors[0], (200, 10, 10), atol=8)


def test_histograms_of_colours():
    red, half = Image.new("RGB", (40, 40), "red"), Image.new("RGB", (40, 40), "red")
    half.paste((0, 0, 255), (0, 0, 20, 40))
    plain, mixed = histograms([red, half])[:, :64]
    assert plain[48] == 1  # all red, no green, no blue
    assert np.flatnonzero(mixed).tolist()[0] == 3
    np.testing.assert_allclose((mixed**2).sum(), 1, rtol=1e-5)
    np.testing.assert_allclose(mixed[[3, 48]] ** 2, 0.5, atol=0.03)


def test_histograms_of_edges_tell_directions():
    edges = histograms([stripes(0.0), stripes(np.pi / 2)])[:, 64:].reshape(2, 16, 8) ** 2
    np.testing.assert_allclose(edges.sum(axis=(1, 2)), 1, rtol=1e-5)
    across, down = edges.sum(axis=1)
    assert across.argmax() in (0, 7)
    assert down.argmax() == 4 or down.argmax() == 3
    assert across @ down < 0.1 * (across @ across)


def test_vectors_are_kept_by_content_and_a_renamed_file_is_known(tmp_path):
    calls = []

    def model(pictures):
        calls.append(len(pictures))
        return mean_colour(pictures)

    model.cache_key = "mean colour"
    for name, colour in {"a.png": "red", "b.png": "blue", "c.png": "red"}.items():
        Image.new("RGB", (5, 5), colour).save(tmp_path / name)
    first, _ = embed_pictures(["a.png", "b.png", "c.png"], model, home=tmp_path)
    assert calls == [2]
    (tmp_path / "b.png").rename(tmp_path / "d.png")
    again, _ = embed_pictures(["d.png"], model, home=tmp_path)
    assert calls == [2]
    np.testing.assert_array_equal(again[0], first[1])
    Image.new("RGB", (5, 5), "green").save(tmp_path / "d.png")
    embed_pictures(["d.png"], model, home=tmp_path)
    assert calls == [2, 1]


def test_many_pictures_come_in_batches(tmp_path):
    calls = []

    def model(pictures):
        calls.append(len(pictures))
        return mean_colour(pictures)

    for i in range(70):
        Image.new("RGB", (2, 2), (i, 0, 0)).save(tmp_path / f"{i}.png")
    vectors, _ = embed_pictures([f"{i}.png" for i in range(70)], model, home=tmp_path)
    assert calls == [64, 6]
    assert vectors[:, 0].tolist() == list(range(70))


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (lambda pictures: [1.0], "one row of numbers each"),
        (lambda pictures: [["x"]] * len(pictures), "must give numbers"),
        ("nowhere.onnx", "image_model='nowhere.onnx': the file does not exist"),
        ("model.pt", "'model.pt' is not an ONNX file. Give a file that ends with .onnx"),
        ("timm/resnet18", "'timm/resnet18' is not an ONNX file"),
    ],
)
def test_rejects_what_is_not_a_model(tmp_path, model, message):
    Image.new("RGB", (5, 5)).save(tmp_path / "a.png")
    with pytest.raises(TableError, match=message):
        embed_pictures(["a.png"], model, home=tmp_path)


def test_onnx(tmp_path):
    pytest.importorskip("onnxruntime")
    onnx = pytest.importorskip("onnx")
    helper = onnx.helper
    number = onnx.TensorProto.FLOAT
    graph = helper.make_graph(
        [helper.make_node("GlobalAveragePool", ["x"], ["y"])],
        "means",
        [helper.make_tensor_value_info("x", number, ["n", 3, 16, 32])],
        [helper.make_tensor_value_info("y", number, ["n", 3, 1, 1])],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)
    onnx.save(model, str(tmp_path / "model.onnx"))
    Image.new("RGB", (50, 20), (0, 255, 0)).save(tmp_path / "a.png")
    vectors, _ = embed_pictures(["a.png"], tmp_path / "model.onnx", home=tmp_path)
    expected = (np.array([0, 1, 0]) - (0.485, 0.456, 0.406)) / (0.229, 0.224, 0.225)
    np.testing.assert_allclose(vectors[0], expected, rtol=1e-4)
    (tmp_path / "wrong.onnx").write_bytes(b"nothing")
    with pytest.raises(TableError, match="cannot be opened as ONNX"):
        embed_pictures(["a.png"], tmp_path / "wrong.onnx", home=tmp_path)
