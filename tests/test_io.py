"""Models in files: what is written, what is read back, what is refused."""

from __future__ import annotations

import contextlib
import hashlib
import io
import json
import pickle
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from sklearn.base import BaseEstimator
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils import all_estimators

from appellate import GaussianKernel, PLCPClassifier, as_candidates
from appellate import io as models
from appellate.io import ModelFileError, load_model, read_meta, save_model
from appellate.methods import make_base, registry
from appellate.model_selection import (
    CandidateKFold,
    CandidateStratifiedKFold,
    get_scorer,
)
from tests.test_files import SPECIAL, make_special

pytest.importorskip("skops")


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 3))
    y = np.where(X[:, 0] > 0, "a|b", "b|c")
    y[:10] = np.where(X[:10, 0] > 0, "a", "c")
    return X, y


def fitted(rows, base="sure", **options):
    model = make_pipeline(StandardScaler(), PLCPClassifier(make_base(base), **options))
    return model.fit(*rows)


@pytest.mark.parametrize("base", [base.name for base in registry.BASES])
@pytest.mark.parametrize("kernel", ["rbf", "laplacian", "linear"])
def test_round_trip(rows, base, kernel, tmp_path):
    model = fitted(rows, base, kernel=kernel, random_state=0, keep_confidences=True)
    save_model(model, tmp_path / "deep" / "model", meta={"note": "<é>"})
    again = load_model(tmp_path / "deep" / "model")
    np.testing.assert_array_equal(again.predict_proba(rows[0]), model.predict_proba(rows[0]))
    np.testing.assert_array_equal(again[-1].transduction_, model[-1].transduction_)
    meta = read_meta(tmp_path / "deep" / "model")
    assert meta["classes"] == ["a", "b", "c"]
    assert meta["note"] == "<é>"
    assert [p.name for p in (tmp_path / "deep").iterdir()] == ["model"]
    assert {p.name for p in (tmp_path / "deep" / "model").iterdir()} == {
        "model.skops",
        "meta.json",
    }


@pytest.mark.parametrize("cv", [CandidateStratifiedKFold(2), CandidateKFold(2)])
@pytest.mark.parametrize("approximation", ["exact", "nystroem"])
def test_a_search_is_saved(rows, cv, approximation, tmp_path):
    kernel = GaussianKernel(approximation=approximation)
    search = GridSearchCV(
        PLCPClassifier(make_base("sure"), kernel=kernel),
        {"cost": [None, "ordinal:1", np.ones((3, 3)) - np.eye(3)]},
        scoring=get_scorer("evidence"),
        cv=cv,
    )
    names = {"a": 0, "b": 1, "c": 2}
    y = [[names[label] for label in cell.split("|")] for cell in rows[1]]
    search.fit(rows[0], as_candidates(y))
    again = load_model(save_model(search, tmp_path / "model"))
    np.testing.assert_array_equal(again.predict_proba(rows[0]), search.predict_proba(rows[0]))
    np.testing.assert_array_equal(
        again.cv_results_["mean_test_score"], search.cv_results_["mean_test_score"]
    )


def test_a_model_is_replaced_and_nothing_else(rows, tmp_path):
    model = fitted(rows)
    save_model(model, tmp_path / "m")
    save_model(fitted(rows, "knn"), tmp_path / "m")
    assert "PLKNN" in read_meta(tmp_path / "m")["model"]
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "thesis.tex").write_text("")
    with pytest.raises(FileExistsError, match="holds no model"):
        save_model(model, tmp_path / "other")
    assert (tmp_path / "other" / "thesis.tex").exists()


class Stranger(StandardScaler):
    """A type that no file of ours may name."""


def test_unknown_types_are_refused_both_ways(rows, tmp_path):
    skops = pytest.importorskip("skops.io")
    model = make_pipeline(Stranger(), PLCPClassifier(make_base("sure"))).fit(*rows)
    with pytest.raises(ModelFileError, match="Stranger, which load_model would refuse"):
        save_model(model, tmp_path / "m")
    assert not list(tmp_path.iterdir())
    save_model(fitted(rows), tmp_path / "m")
    forge(tmp_path / "m", skops.dumps(model))
    with pytest.raises(ModelFileError, match=r"Stranger.*not trusted"):
        load_model(tmp_path / "m")
    (name,) = [t for t in skops.get_untrusted_types(data=skops.dumps(model)) if "Stranger" in t]
    assert isinstance(load_model(tmp_path / "m", trusted=[name])[0], Stranger)


def forge(folder, content=None, **meta):
    document = json.loads((folder / "meta.json").read_text())
    if content is not None:
        (folder / "model.skops").write_bytes(content)
        document["sha256"] = hashlib.sha256(content).hexdigest()
    (folder / "meta.json").write_text(json.dumps(document | meta))


class Bomb:
    def __reduce__(self):
        return (pytest.fail, ("a pickle was read",))


@pytest.mark.parametrize("name", ["model.pkl", "model.joblib", "model.bin"])
def test_pickle_is_never_read(name, tmp_path):
    (tmp_path / name).write_bytes(pickle.dumps(Bomb()))
    with pytest.raises(ModelFileError, match="is a pickle"):
        load_model(tmp_path / name)


def test_pickle_in_disguise(rows, tmp_path):
    save_model(fitted(rows), tmp_path / "m")
    forge(tmp_path / "m", pickle.dumps(Bomb()))
    with pytest.raises(ModelFileError, match="cannot be read"):
        load_model(tmp_path / "m")


@pytest.mark.parametrize(
    ("meta", "message"),
    [
        ({"appellate": "9.1.0"}, r"written by appellate 9\.1\.0 .*Install appellate 9\.1\.0"),
        ({"format_version": 1}, "model format 1"),
        ({"file": "../model.skops"}, "../model.skops is missing"),
        ({"file": ["model.skops"]}, "holds no model"),
        ({"classes": 7}, "does not name the classes"),
        ({"format": "else"}, "does not describe"),
        ({"sha256": "0"}, "damaged or was replaced"),
    ],
)
def test_other_versions_and_damage_are_said(meta, message, rows, tmp_path):
    save_model(fitted(rows), tmp_path / "m")
    forge(tmp_path / "m", **meta)
    with pytest.raises(ModelFileError, match=message):
        load_model(tmp_path / "m")


def test_another_scikit_learn_is_a_warning(rows, tmp_path):
    save_model(fitted(rows), tmp_path / "m")
    forge(tmp_path / "m", **{"scikit-learn": "0.9"})
    with pytest.warns(UserWarning, match=r"scikit-learn 0\.9"):
        load_model(tmp_path / "m")


def test_what_is_no_model(tmp_path):
    with pytest.raises(FileNotFoundError, match="cannot find the model"):
        load_model(tmp_path / "nowhere")
    with pytest.raises(ModelFileError, match=r"meta\.json is missing"):
        load_model(tmp_path)
    (tmp_path / "text").write_text("hello")
    with pytest.raises(ModelFileError, match="a model is the folder"):
        load_model(tmp_path / "text")
    (tmp_path / "meta.json").write_text("{")
    (tmp_path / "model.skops").write_text("")
    with pytest.raises(ModelFileError, match="is damaged"):
        load_model(tmp_path)


def test_without_skops_the_extra_is_named(rows, tmp_path, monkeypatch):
    monkeypatch.setattr("appellate._text.find_spec", lambda name: None)
    with pytest.raises(ImportError, match=r"appellate\[io\]"):
        save_model(fitted(rows), tmp_path / "m")


@pytest.mark.parametrize("cost", ["within:1", 1 - np.eye(3)])
def test_costs_are_kept(cost, tmp_path):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(12, 2)), ["cat|dog", "cow", "dog|cow"] * 4
    model = PLCPClassifier(make_base("sure"), cost=cost).fit(X, y)
    loaded = load_model(save_model(model, tmp_path / "m"))
    np.testing.assert_array_equal(loaded.cost_, model.cost_)
    np.testing.assert_array_equal(loaded.predict(X), model.predict(X))
    np.testing.assert_array_equal(
        loaded.docket(output="dict")["margin"], model.docket(output="dict")["margin"]
    )


def test_folders_among_the_parameters_are_kept(tmp_path):
    kernel = GaussianKernel(cache_dir=tmp_path)
    model = PLCPClassifier(make_base("sure"), kernel=kernel).fit(
        [[0.0], [1.0], [5.0]], ["a|b", "a", "b"]
    )
    assert load_model(save_model(model, tmp_path / "m")).kernel.cache_dir == tmp_path


@pytest.mark.parametrize("scoring", ["covering_rate", "leave_one_out_likelihood"])
def test_a_scorer_among_the_parameters_is_kept(scoring, rows, tmp_path):
    search = GridSearchCV(
        make_base("sure"), {"max_iter": [1, 2]}, scoring=get_scorer(scoring), cv=CandidateKFold(2)
    ).fit(rows[0], as_candidates(rows[1]))
    again = load_model(save_model(search, tmp_path / "m"))
    assert again.scoring == get_scorer(scoring)


def test_a_type_of_ones_own_is_named_both_ways(rows, tmp_path):
    model = make_pipeline(Stranger(), PLCPClassifier(make_base("sure"))).fit(*rows)
    with pytest.raises(ModelFileError, match=r"trusted=\['.*Stranger'\]"):
        save_model(model, tmp_path / "m")
    save_model(model, tmp_path / "m", trusted=[Stranger])
    with pytest.raises(ModelFileError, match=r"load_model\(\.\.\., trusted="):
        load_model(tmp_path / "m")
    for trusted in ([Stranger], [f"{Stranger.__module__}.Stranger"]):
        assert isinstance(load_model(tmp_path / "m", trusted=trusted)[0], Stranger)


def test_what_cannot_be_written_is_said(tmp_path):
    model = make_base("sure")
    model.generator = (i for i in range(3))
    with pytest.raises(ModelFileError, match="cannot be written"):
        save_model(model, tmp_path / "m")
    assert not list(tmp_path.iterdir())


def test_a_path_of_another_system_is_read(tmp_path):
    model = make_base("sure")
    model.here = tmp_path
    save_model(model, tmp_path / "m")
    with zipfile.ZipFile(tmp_path / "m" / "model.skops") as archive:
        assert "PosixPath" not in archive.read("schema.json").decode()
    assert load_model(tmp_path / "m").here == tmp_path


# -- hostile files -----------------------------------------------------------------------------


def node(kind, loader, **content):
    module, _, name = kind.rpartition(".")
    return {"__module__": module, "__class__": name, "__loader__": loader, **content}


def text(value):
    return node("builtins.str", "JsonNode", content=json.dumps(value), is_json=True)


def array(file):
    return node("numpy.ndarray", "NdArrayNode", type="numpy", file=file)


def pack(schema, compression=zipfile.ZIP_STORED, **members):
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", compression) as archive:
        for name, content in members.items():
            archive.writestr(name.replace("_", "."), content)
        archive.writestr("schema.json", schema if isinstance(schema, str) else json.dumps(schema))
    return out.getvalue()


def npy(shape, content=b"", dtype="<f8"):
    header = str({"descr": dtype, "fortran_order": False, "shape": shape}).encode()
    header += b" " * (117 - len(header)) + b"\n"
    return b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header + content


def several(n, make):
    return node("builtins.list", "ListNode", content=[make(i) for i in range(n)])


def nested(depth):
    inside = text(0)
    for _ in range(depth):
        inside = node("builtins.list", "ListNode", content=[inside])
    return {**inside, "protocol": 2}


def npz(shape, content=b""):
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("data.npy", npy(shape, content))
    return out.getvalue()


def nested_npz(levels):
    """Zip files in zip files: each unpacks to a hundred times its size."""
    content = bytes(8 << 20)
    for _ in range(levels):
        out = io.BytesIO()
        with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
            for i in range(8):
                archive.writestr(f"{i}.npz", content)
        content = out.getvalue()
    return content


def bomb(text, n):
    """A schema that is small as a file, and large in memory."""
    schema = '{"protocol": 2, "a": [' + (text + ",") * n + text + "]}"
    return pack(schema, zipfile.ZIP_DEFLATED)


def command(marker):
    """Attack 1: methods bound to what they should not be, under a harmless name."""
    steps = [node("builtins.str", "JsonNode", content=json.dumps(f"id > {marker}"), is_json=True)]
    method = node("numpy.dtype", "MethodNode", content={"func": "format", "obj": steps[0]})
    transformer = node(
        "sklearn.preprocessing._function_transformer.FunctionTransformer",
        "ObjectNode",
        content=node("builtins.dict", "DictNode", content={"func": method}),
    )
    return pack({**transformer, "protocol": 1})


def overlapping():
    """Many members that are all the same bytes of the file."""
    content = pack({"protocol": 2}, a_npy=npy((1 << 14,), bytes(1 << 17)))
    out = io.BytesIO(content)
    with zipfile.ZipFile(out, "a") as archive:
        (first, *_) = archive.infolist()
        for i in range(50):
            twin = zipfile.ZipInfo(f"{i}.npy")
            twin.header_offset, twin.CRC = first.header_offset, first.CRC
            twin.compress_size = twin.file_size = first.file_size
            archive.filelist.append(twin)
            archive.NameToInfo[twin.filename] = twin
        archive._didModify = True
    return out.getvalue()


SPARSE = "scipy.sparse._csr.csr_array"
ATTACKS = {
    "empty": b"",
    "no zip": b"PK\x03\x04 and then nothing",
    "no schema": b"PK\x05\x06" + bytes(18),
    "no JSON": pack("{"),
    "schema is a list": pack([]),
    "no protocol": pack(text(1)),
    "newer protocol": pack({**text(1), "protocol": 99}),
    "protocol is text": pack({**text(1), "protocol": "2"}),
    "unknown loader": pack({**node("builtins.str", "EvalNode"), "protocol": 2}),
    "no class": pack({"__loader__": "ObjectNode", "protocol": 2}),
    "deep schema": pack('{"a":' * 100_000 + "1" + "}" * 100_000),
    "deep nodes": pack(nested(400)),
    "huge integer": pack('{"protocol": ' + "9" * 5000 + "}"),
    "compressed": pack(
        {**array("a.npy"), "protocol": 2},
        zipfile.ZIP_DEFLATED,
        a_npy=npy((1 << 20,), bytes(8 << 20)),
    ),
    "compressed within": pack(
        {**node(SPARSE, "SparseMatrixNode", type="scipy", file="a.npz"), "protocol": 2},
        a_npz=npz((1 << 20,), bytes(8 << 20)),
    ),
    "zip files within zip files": pack(
        {**node(SPARSE, "SparseMatrixNode", type="scipy", file="a.npz"), "protocol": 2},
        a_npz=nested_npz(2),
    ),
    "schema of lists": bomb("[]", 2_000_000),
    "overlapping": overlapping(),
    "read again and again": pack(
        {**several(100, lambda i: array("a.npy")), "protocol": 2},
        a_npy=npy((1 << 14,), bytes(1 << 17)),
    ),
    "huge shape": pack({**array("a.npy"), "protocol": 2}, a_npy=npy((10**12,))),
    "impossible shape": pack({**array("a.npy"), "protocol": 2}, a_npy=npy((10**30, 10**30))),
    "negative shape": pack({**array("a.npy"), "protocol": 2}, a_npy=npy((-5,))),
    "objects": pack({**array("a.npy"), "protocol": 2}, a_npy=npy((1,), pickle.dumps(1), "|O")),
    "array is text": pack({**array("a.npy"), "protocol": 2}, a_npy="hello"),
    "array is missing": pack({**array("a.npy"), "protocol": 2}),
    "file is a list": pack({**array(["a.npy"]), "protocol": 2}),
    "function": pack({**node("builtins.eval", "FunctionNode"), "protocol": 2}),
    "our function": pack({**node("appellate.cli.main", "FunctionNode"), "protocol": 2}),
    "our constructor": pack(
        {
            **node(
                "appellate.methods.plcp.PLCPClassifier",
                "ConstructorFromReduceNode",
                content=node("builtins.tuple", "TupleNode", content=[text("x")]),
            ),
            "protocol": 2,
        }
    ),
    "our command line": pack({**node("appellate.cli.app.Group", "ObjectNode"), "protocol": 2}),
    "our server": pack(
        {**node("appellate.review.server.DocketServer", "ObjectNode"), "protocol": 2}
    ),
    "no class of ours": pack({**node("appellate.methods.plcp.Any", "ObjectNode"), "protocol": 2}),
    "nowhere": pack({**node("appellate.nowhere.Thing", "ObjectNode"), "protocol": 2}),
}


@pytest.fixture(scope="module")
def whole(rows, tmp_path_factory):
    return save_model(fitted(rows), tmp_path_factory.mktemp("whole") / "m")


@pytest.fixture
def victim(whole, tmp_path):
    return Path(shutil.copytree(whole, tmp_path / "m"))


@pytest.mark.parametrize("content", ATTACKS.values(), ids=ATTACKS)
def test_hostile_files_are_refused(content, victim):
    forge(victim, content)
    with pytest.raises(ModelFileError):
        load_model(victim, max_bytes=4 << 20)


@pytest.mark.parametrize("text", ["[]", "{}", "1", '""', '{"a":[]}'])
def test_a_schema_that_is_a_bomb_is_refused_before_it_is_parsed(text, victim, monkeypatch):
    """A model of 184 kB once took 5 GB and minutes."""
    content = bomb(text, (60 << 20) // len(text))
    assert len(content) < 1 << 20
    forge(victim, content)

    def parse(given):
        raise AssertionError(f"{len(given)} bytes are parsed")

    monkeypatch.setattr("appellate.io.json", SimpleNamespace(loads=parse))
    with pytest.raises(ModelFileError, match="larger than that of any model of ours"):
        load_model(victim)
    monkeypatch.undo()
    with pytest.raises(ModelFileError, match="more than max_bytes=1000000"):
        load_model(victim, max_bytes=10**6)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (pack(array("a.npy") | {"protocol": 2}, a_npy=npy((10**9,))), "larger than it is"),
        (pack(array("a.npz") | {"protocol": 2}, a_npz=npz((10**9,))), "larger than it is"),
        (pack(array("a.npz") | {"protocol": 2}, a_npz=npz((9 << 20,), bytes(72 << 20))),
         "unpacks to 100 times"),
    ],
    ids=["array", "sparse matrix", "zeros"],
)  # fmt: skip
def test_an_array_that_is_a_bomb_is_refused_at_any_limit(content, message, victim):
    """A file of a few kilobytes asked for gigabytes below the limit of 16 GiB."""
    assert len(content) < 200_000
    forge(victim, content)
    with pytest.raises(ModelFileError, match=message):
        load_model(victim)


def test_the_schema_of_a_model_counts_as_a_part_of_it(victim):
    content = (victim / "model.skops").read_bytes()
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        size = archive.getinfo("schema.json").file_size
    assert len(content) < size
    with pytest.raises(ModelFileError, match="it unpacks to more than"):
        load_model(victim, max_bytes=size - 1)


@pytest.mark.parametrize("kind", SPECIAL)
@pytest.mark.parametrize("name", ["meta.json", "model.skops", ".appellate-commit"])
def test_a_member_that_is_not_a_file_is_named(name, kind, victim):
    if name == ".appellate-commit" and kind == "folder":
        pytest.skip("that is what a commit is")
    (victim / name).unlink(missing_ok=True)
    make_special(victim / name, kind)
    with pytest.raises(ModelFileError, match=rf"'.*{name}' is .* not opened"):
        load_model(victim)


@pytest.mark.parametrize("name", ["meta.json", ".appellate-commit"])
def test_nothing_is_written_through_a_link(name, victim, tmp_path):
    (victim / name).unlink(missing_ok=True)
    (victim / name).symlink_to(tmp_path / "elsewhere")
    with pytest.raises((FileExistsError, ValueError), match=rf"holds no model|{name}' is"):
        save_model(make_base("sure").fit([[0.0], [1.0]], ["a", "b"]), victim)
    assert not (tmp_path / "elsewhere").exists()


def test_opening_a_model_moves_no_files_of_others(whole, tmp_path):
    home = tmp_path / "home"
    victim = Path(shutil.copytree(whole, home / "zmodel"))
    (home / "a.txt").write_text("mine")
    (home / ".hidden").mkdir()
    (victim / ".appellate-commit").symlink_to("..")
    before = sorted(home.rglob("*"))
    for read in (load_model, read_meta):
        with pytest.raises(ModelFileError, match="is a symbolic link"):
            read(victim)
    assert sorted(home.rglob("*")) == before


def test_no_command_is_run(victim, tmp_path):
    forge(victim, command(tmp_path / "ran"))
    with pytest.raises(ModelFileError, match="holds a method"):
        load_model(victim)
    assert not (tmp_path / "ran").exists()


def test_a_limit_of_the_size_is_kept(victim):
    with pytest.raises(ModelFileError, match="larger than 1000 bytes"):
        load_model(victim, max_bytes=1000)


@pytest.mark.parametrize("seed", range(60))
def test_damaged_files_are_refused_or_read(seed, victim):
    rng = np.random.default_rng(seed)
    content = bytearray((victim / "model.skops").read_bytes())
    if seed % 3 == 0:
        del content[rng.integers(len(content)) :]
    else:
        where = rng.integers(len(content), size=8)
        schema = content.find(b"__class__")
        where = where if seed % 3 == 1 else rng.integers(schema, len(content), size=8)
        for i in where:
            content[i] = rng.integers(256)
    forge(victim, bytes(content))
    with contextlib.suppress(ModelFileError):  # any other error fails
        load_model(victim)


@pytest.mark.parametrize(
    "content", [b"[" * 200_000, b"\xff\xfe", b'{"format": ' + b"9" * 5000 + b"}", b"7", b""]
)
def test_hostile_descriptions_are_refused(content, victim):
    (victim / "meta.json").write_bytes(content)
    with pytest.raises(ModelFileError):
        load_model(victim)


# -- small and quick ---------------------------------------------------------------------------
# Killed at any step: tests/crash.


def test_encoders_of_tables_are_saved_in_little_room(tmp_path):
    pd, _ = pytest.importorskip("pandas"), pytest.importorskip("skrub")
    from sklearn.pipeline import make_pipeline

    from appellate.tables import make_encoder

    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "size": rng.normal(size=60),
            "zone": rng.choice([f"zone {i}" for i in range(50)], 60),
            "when": pd.Timestamp("2024-01-01")
            + pd.to_timedelta(rng.integers(10**7, size=60), "s"),
            "kind": rng.choice(["x", "y"], 60),
        }
    )
    model = make_pipeline(make_encoder(frame), make_base("sure"))
    model.fit(frame, rng.choice(["a|b", "a", "b"], 60))
    folder = save_model(model, tmp_path / "m")
    again = load_model(folder)
    np.testing.assert_array_equal(again.predict_proba(frame), model.predict_proba(frame))
    assert (folder / "model.skops").stat().st_size < 2**20


def spelled_out(folder):
    """Numbers of the objects whose attributes stand in a file, one for every time they do."""
    with zipfile.ZipFile(folder / "model.skops") as archive:
        left, found = [json.loads(archive.read("schema.json"))], []
        named = {each.removesuffix(".npy") for each in archive.namelist()} - {"schema.json"}
    while left:
        part = left.pop()
        if isinstance(part, dict):
            left.extend(part.values())
            if part.get("__loader__") == "ObjectNode" and part.get("content"):
                found.append(part["__id__"])
            named.discard(str(part.get("file")).removesuffix(".npy"))
        elif isinstance(part, list):
            left.extend(part)
    assert not named  # no array that nothing refers to
    return found


@pytest.mark.parametrize("model", [None, 3, "sure", type(make_base("sure"))])
def test_refuses_to_save_what_is_not_a_model(model, tmp_path):
    with pytest.raises(TypeError, match="must be a fitted classifier"):
        save_model(model, tmp_path / "m")
    assert not (tmp_path / "m").exists()


def test_equal_models_are_equal_files(tmp_path):
    model = make_base("sure").fit([[0.0], [1.0]], ["a", "b"])
    first, second = (
        save_model(each, tmp_path / name) for each, name in [(model, "1"), (model, "2")]
    )
    again = save_model(load_model(first), tmp_path / "3")
    contents = {(folder / "model.skops").read_bytes() for folder in (first, second, again)}
    assert len(contents) == 1


def test_every_object_is_written_once(tmp_path):
    """skrub's parts refer to each other; spelled out each time, 56 columns took 130 MB."""
    pd, _ = pytest.importorskip("pandas"), pytest.importorskip("skrub")
    from appellate.tables import make_encoder

    rng = np.random.default_rng(0)
    columns = {f"yes {i}": rng.random(60) < 0.5 for i in range(30)}
    start = pd.Timestamp("2024-01-01")
    for i in range(10):
        columns[f"day {i}"] = start + pd.to_timedelta(rng.integers(10**7, size=60), "s")
    frame = pd.DataFrame(columns)
    model = make_pipeline(make_encoder(frame), make_base("sure"))
    model.fit(frame, rng.choice(["a|b", "a", "b"], 60))
    folder = save_model(model, tmp_path / "m")
    found = spelled_out(folder)
    assert len(found) == len(set(found)) < 12 * len(columns)
    assert (folder / "model.skops").stat().st_size < 2**18
    again = load_model(folder)
    np.testing.assert_array_equal(again.predict_proba(frame), model.predict_proba(frame))
    vectorizer = again[0].named_transformers_["columns"]
    for name, fitted in vectorizer.transformers_.items():
        assert any(fitted is each for each in vectorizer.all_processing_steps_[name])


def test_numbers_and_categories_are_written_as_arrays(tmp_path):
    """However many columns there are, the file holds the same objects; they were 12 a column."""
    pd = pytest.importorskip("pandas")
    from appellate.tables import make_encoder

    sizes = []
    for width in (5, 50):
        rng = np.random.default_rng(0)
        columns = {f"number {i}": rng.normal(size=60) for i in range(width)}
        columns |= {f"kind {i}": rng.choice(["x", "y", None], 60) for i in range(width)}
        frame = pd.DataFrame(columns)
        model = make_pipeline(make_encoder(frame), make_base("sure"))
        model.fit(frame, rng.choice(["a|b", "a", "b"], 60))
        folder = save_model(model, tmp_path / f"m{width}")
        sizes.append(len(spelled_out(folder)))
        again = load_model(folder)
        np.testing.assert_array_equal(again.predict_proba(frame), model.predict_proba(frame))
    assert sizes[0] == sizes[1] < 20


_SAVE_AND_LOAD = """
import sys
import appellate
from appellate.io import load_model, save_model

columns = {"x": [0.0, 1.0, 2.0] * 10, "kind": ["u", "v", "u"] * 10, "y": ["a|b", "a", "b"] * 10}
run = appellate.rectify(columns, candidates="y", method="plcp", base="knn")
load_model(save_model(run.model, sys.argv[1]))
unused = {"torch", "dask", "skrub", "sklearn.datasets", "scipy.io", "pytest", "http.server"}
print(*sorted(unused & sys.modules.keys()))
"""


def test_saving_and_loading_imports_nothing_that_it_does_not_need(tmp_path):
    """skops would walk through all of scikit-learn; skrub is for dates and long texts."""
    pytest.importorskip("pandas")
    command = [sys.executable, "-W", "error", "-c", _SAVE_AND_LOAD, str(tmp_path / "m")]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout.split() == []


def test_skops_knows_every_estimator_without_torch_and_dask():
    """The parts of scikit-learn that are not imported define none."""
    models._import_skops()
    assert models._list_estimators() == [
        each for each in all_estimators() if each[1].__module__.startswith("sklearn.")
    ]
    from skops.io._trusted_types import SKLEARN_ESTIMATOR_TYPE_NAMES

    kinds = (kind for _, kind in all_estimators())
    expected = {f"{kind.__module__}.{kind.__name__}" for kind in kinds}
    # Another test may have enabled experimental estimators in this process since.
    expected = {name for name in expected if name.startswith("sklearn.") and "halving" not in name}
    assert {name for name in SKLEARN_ESTIMATOR_TYPE_NAMES if "halving" not in name} == expected


def test_what_is_shared_stays_shared(tmp_path):
    part = StandardScaler().fit([[0.0], [2.0]])
    model = make_base("sure")
    model.parts = {"a": [part, (part,)], "b": {"c": part}}
    again = load_model(save_model(model, tmp_path / "m")).parts
    assert again["a"][0] is again["a"][1][0] is again["b"]["c"]
    assert again["b"]["c"].mean_ == 1


class Prior(BaseEstimator):
    """A third party's base: the shares of the labels, whatever the row."""

    def fit(self, X, candidates, supervision=None):
        weights = np.asarray(candidates if supervision is None else supervision, dtype=float)
        self.shares_ = weights.sum(axis=0) / weights.sum()
        self.training_output_ = self.predict_proba(X)
        return self

    def predict_proba(self, X):
        return np.tile(self.shares_, (len(X), 1))


def test_a_registered_base_needs_no_further_trust(rows, tmp_path, monkeypatch):
    model = PLCPClassifier(Prior(), head="mean").fit(*rows)
    with pytest.raises(ModelFileError, match="Prior"):
        save_model(model, tmp_path / "stranger")
    prior = registry.Base("prior", f"{__name__}:Prior", "prior", "shares of the labels")
    monkeypatch.setattr(registry, "BASES", (*registry.BASES, prior))
    again = load_model(save_model(model, tmp_path / "known"))
    np.testing.assert_array_equal(again.predict_proba(rows[0]), model.predict_proba(rows[0]))
