"""Vectors of texts by a model of the user's, kept on disk by their content."""

from __future__ import annotations

import sqlite3
from importlib.util import find_spec

import numpy as np
import pytest

from appellate.tables import TableError
from appellate.tables.vectors import cache_home, embed, embed_texts


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("APPELLATE_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache"


class Letters:
    """A stand-in for a sentence encoder: how often some letters occur."""

    def __init__(self, cache_key=None):
        self.cache_key = cache_key
        self.seen = []

    def encode(self, texts):
        self.seen += texts
        return np.array([[text.count(letter) for letter in "abc"] for text in texts])


def test_equal_texts_are_encoded_once_and_blank_ones_never():
    model = Letters()
    vectors = embed_texts(["abba", "", "c", "abba", None, "  "], model)
    assert model.seen == ["abba", "c"]
    assert vectors[[0, 2, 3]].tolist() == [[2, 2, 0], [0, 0, 1], [2, 2, 0]]
    assert np.isnan(vectors[[1, 4, 5]]).all()


def test_vectors_are_kept_by_content_and_model(cache):
    embed_texts(["a", "b"], Letters("one"))
    again = Letters("one")
    assert embed_texts(["b", "ab"], again).tolist() == [[0, 1, 0], [1, 1, 0]]
    assert again.seen == ["ab"]
    other = Letters("two")
    embed_texts(["b"], other)
    assert other.seen == ["b"]
    assert len(list((cache / "vectors").iterdir())) == 2
    unnamed = Letters()
    embed_texts(["b"], unnamed)
    embed_texts(["b"], unnamed)
    assert unnamed.seen == ["b", "b"]


def test_a_damaged_or_unusable_cache_is_no_hindrance(cache, monkeypatch):
    embed_texts(["a"], Letters("one"))
    (file,) = (cache / "vectors").iterdir()
    file.write_bytes(b"no database" * 1000)
    assert embed_texts(["a"], Letters("one")).tolist() == [[1, 0, 0]]
    blocked = cache / "file"
    blocked.write_text("")
    monkeypatch.setenv("APPELLATE_CACHE_HOME", str(blocked))
    assert embed_texts(["a"], Letters("one")).tolist() == [[1, 0, 0]]


def test_what_was_computed_before_a_failure_is_kept(cache):
    def compute(rows):
        if 64 in rows:
            raise RuntimeError("stop")
        return [[float(i)] for i in rows]

    keys = [f"k{i}" for i in range(100)]
    with pytest.raises(RuntimeError, match="stop"):
        embed(keys, compute, model="m")
    (file,) = (cache / "vectors").iterdir()
    with sqlite3.connect(file) as opened:
        assert opened.execute("SELECT count(*) FROM vector").fetchone() == (64,)
    opened.close()


def test_progress_says_rate_and_end(monkeypatch):
    from appellate.tables import vectors

    monkeypatch.setattr(vectors, "_SECONDS", -1.0)
    said = []
    embed([f"{i}" for i in range(130)], lambda rows: np.zeros((len(rows), 2)), model=None,
          what="texts", step=said.append)  # fmt: skip
    assert len(said) == 3
    assert said[0].startswith("64/130 texts, ")
    assert said[0].endswith("s left")


@pytest.mark.parametrize(
    ("encode", "message"),
    [
        (lambda texts: [[1.0]], r"\(1, 1\) for 2 texts"),
        (lambda texts: [1.0, 2.0], r"\(2,\) for 2 texts"),
        (lambda texts: [["x"], ["y"]], "must give numbers"),
    ],
)
def test_a_model_that_is_none_is_said(encode, message):
    model = Letters()
    model.encode = encode
    with pytest.raises(TableError, match=message):
        embed_texts(["a", "b"], model)


def test_vectors_of_different_lengths():
    with pytest.raises(TableError, match="lengths: 1, 2"):
        embed([f"{i}" for i in range(65)], lambda rows: [[0.0] * min(len(rows), 2)] * len(rows),
              model=None)  # fmt: skip


def test_no_model():
    with pytest.raises(TableError, match="must be a folder, a name, or an object"):
        embed_texts(["a"], 3)


@pytest.mark.skipif(
    find_spec("sentence_transformers") is not None, reason="sentence-transformers is installed"
)
def test_without_the_library_the_extra_is_named():
    with pytest.raises(ImportError, match=r"sentence-transformers: pip install '.*\[text\]"):
        embed_texts(["a"], "all-MiniLM-L6-v2")


def test_weights_that_are_not_here_are_not_fetched(tmp_path):
    pytest.importorskip("sentence_transformers")
    with pytest.raises(TableError, match="'nobody/nothing': the model does not exist on this"):
        embed_texts(["a"], "nobody/nothing")


def test_names_of_models_go_to_the_library_unless_they_are_to_be_fetched(monkeypatch):
    from appellate.tables import vectors

    asked = []

    class Library:
        @staticmethod
        def SentenceTransformer(name, **options):
            asked.append((name, options["local_files_only"]))
            return Letters()

    monkeypatch.setattr(vectors, "import_extra", lambda *names: Library)
    assert embed_texts(["a"], "small").tolist() == [[1, 0, 0]]
    assert embed_texts(["b"], "download:small").tolist() == [[0, 1, 0]]
    assert embed_texts(["a", "b"], "small").tolist() == [[1, 0, 0], [0, 1, 0]]  # both are known
    assert asked == [("small", True), ("small", False)]


@pytest.mark.filterwarnings("ignore")  # its own
def test_a_model_of_sentence_transformers_from_its_folder(tmp_path, cache):
    library = pytest.importorskip("sentence_transformers")
    from sentence_transformers.models import StaticEmbedding
    from tokenizers import Tokenizer, models, pre_tokenizers

    tokenizer = Tokenizer(models.WordLevel({"[UNK]": 0, "red": 1, "bird": 2}, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    model = library.SentenceTransformer(modules=[StaticEmbedding(tokenizer, embedding_dim=4)])
    model.save(str(tmp_path / "model"))
    texts = ["red bird", "", "bird", "bird red"]
    found = embed_texts(texts, tmp_path / "model")
    assert found.shape == (4, 4)
    np.testing.assert_allclose(found[2], model.encode(["bird"])[0], rtol=1e-5)
    np.testing.assert_allclose(found[0], found[3], rtol=1e-5)
    assert np.isnan(found[1]).all()


def test_a_folder_is_known_by_what_is_in_it(tmp_path, monkeypatch):
    from appellate.tables import vectors

    made = []
    monkeypatch.setattr(vectors, "_text_encoder", lambda model: made.append(model) or Letters())
    folder = tmp_path / "model"
    folder.mkdir()
    (folder / "weights").write_text("1")
    embed_texts(["a"], folder)
    embed_texts(["a"], folder)
    assert len(made) == 1
    (folder / "weights").write_text("2")
    embed_texts(["a"], folder)
    assert len(made) == 2


def test_hostile_texts():
    texts = ["\0" * 10, "\u202eabc", "a" * 10_000_000, "\ud800"]
    model = Letters()
    vectors = embed_texts(texts, model)
    assert np.isfinite(vectors[1:3]).all()
    assert max(map(len, model.seen)) == 20_000


def test_where_the_cache_is(monkeypatch, tmp_path):
    assert cache_home() == tmp_path / "cache"
    monkeypatch.delenv("APPELLATE_CACHE_HOME")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert cache_home().name == "appellate"
