"""Models in files: what is written, what is read back, what is refused."""

from __future__ import annotations

import json
import pickle

import numpy as np
import pytest
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from appellate import PLCPClassifier
from appellate.bases import available_bases, make_base
from appellate.io import ModelFileError, load_model, read_meta, save_model
from appellate.model_selection import (
    CandidateKFold,
    CandidateStratifiedKFold,
    PLCPClassifierCV,
)

pytest.importorskip("skops")

BASES = ["knn", "svm", "sure", "lalo", "aggd", "plcl"]


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


@pytest.mark.parametrize("base", BASES)
@pytest.mark.parametrize("kernel", ["rbf", "linear"])
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


@pytest.mark.parametrize("cv", [None, 2, CandidateStratifiedKFold(2), CandidateKFold(2)])
@pytest.mark.parametrize("approximation", ["exact", "nystroem"])
def test_a_search_is_saved(rows, cv, approximation, tmp_path):
    search = PLCPClassifierCV(
        make_base("sure"),
        bandwidths=[1.0],
        costs=[None, "absolute", np.ones((3, 3)) - np.eye(3)],
        cv=cv,
        kernel_approximation=approximation,
        n_landmarks=20,
    )
    names = {"a": 0, "b": 1, "c": 2}
    y = [[names[label] for label in cell.split("|")] for cell in rows[1]]
    search.fit(rows[0], y)
    again = load_model(save_model(search, tmp_path / "model"))
    np.testing.assert_array_equal(again.predict_proba(rows[0]), search.predict_proba(rows[0]))
    np.testing.assert_array_equal(
        again.cv_results_["mean_test_score"], search.cv_results_["mean_test_score"]
    )


def test_every_base_of_ours_is_tried():
    assert set(BASES) == {k for k, v in available_bases().items() if v.startswith("appellate.")}


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
    import hashlib

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
        ({"format_version": 2}, "model format 2"),
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
    with pytest.raises(FileNotFoundError, match="no model"):
        load_model(tmp_path / "nowhere")
    with pytest.raises(ModelFileError, match=r"no meta\.json and no model\.skops"):
        load_model(tmp_path)
    (tmp_path / "text").write_text("hello")
    with pytest.raises(ModelFileError, match="a model is the folder"):
        load_model(tmp_path / "text")
    (tmp_path / "meta.json").write_text("{")
    (tmp_path / "model.skops").write_text("")
    with pytest.raises(ModelFileError, match="cannot be read"):
        load_model(tmp_path)


def test_without_skops_the_extra_is_named(rows, tmp_path, monkeypatch):
    monkeypatch.setattr("appellate.io.find_spec", lambda name: None)
    with pytest.raises(ImportError, match=r"appellate\[io\]"):
        save_model(fitted(rows), tmp_path / "m")


@pytest.mark.parametrize(
    "cost", ["within:1", 1 - np.eye(3), {"cat": "pet/cat", "cow": "farm/cow", "dog": "pet/dog"}]
)
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


def test_deep_models_are_told_where_to_go(tmp_path):
    pytest.importorskip("torch")
    from appellate.deep import PRODENClassifier

    model = PRODENClassifier("linear", n_epochs=1).fit([[0.0], [1.0]], ["a", "b"])
    with pytest.raises(ModelFileError, match=r"appellate\.deep\.save_model"):
        save_model(model, tmp_path / "model")


def test_folders_among_the_parameters_are_kept(tmp_path):
    model = PLCPClassifier(make_base("sure"), cache_dir=tmp_path).fit(
        [[0.0], [1.0], [5.0]], ["a|b", "a", "b"]
    )
    assert load_model(save_model(model, tmp_path / "m")).cache_dir == tmp_path
