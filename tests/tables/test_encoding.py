"""Features: a frame of them, and the numbers that they become."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline

from appellate.tables import (
    TableError,
    TextEncoder,
    encoding,
    feature_kinds,
    features,
    find_roles,
    make_encoder,
    read_labels,
    read_table,
    vectors,
)
from appellate.tables.encoding import column_places, encode, find_column_readings
from tests.tables import crowds


def mixed(n=200):
    r = crowds.rng()
    columns = {
        "number": np.where(r.random(n) < 0.1, np.nan, r.normal(5, 3, n)),
        "yes": r.random(n) < 0.5,
        "site": r.choice(["north", "south", ""], n),
        "zone": [f"Zone {r.integers(88)}" for _ in range(n)],
        "day": [f"{i % 28 + 1:02d}.03.2024 {i % 24:02d}:15" if i % 9 else "" for i in range(n)],
        "prose": crowds.make_tweets(n),
        "c": r.choice(["a|b", "b", "a"], n),
    }
    table = read_table(columns)
    return table, find_roles(table)


def test_a_frame_of_numbers_dates_and_strings():
    table, roles = mixed()
    frame = features(table, roles)
    assert feature_kinds(frame, roles.text) == {
        "number": "number",
        "yes": "number",
        "site": "category",
        "zone": "category",
        "day": "date",
        "prose": "text",
    }
    assert frame["number"].isna().sum() > 5
    assert frame["site"].isna().sum() > 5
    assert frame["day"][1] == pd.Timestamp("2024-03-02 01:15")
    rows = np.array([3, 1])
    assert features(table, roles, rows=rows).equals(frame.iloc[[3, 1]].reset_index(drop=True))


def test_the_encoder_gives_finite_numbers_and_works_in_a_pipeline():
    table, roles = mixed()
    frame = features(table, roles)
    encoder = clone(make_encoder(frame, text=roles.text))
    X = encoder.fit_transform(frame)
    assert X.dtype == np.float64
    assert np.isfinite(X).all()
    assert np.allclose(encoder.transform(frame), X, atol=1e-5)
    assert len(encoder.get_feature_names_out()) == X.shape[1]
    names = [str(name) for name in encoder.get_feature_names_out()]
    for part in ("year", "month", "hour", "weekday", "total_seconds"):
        assert any(part in name for name in names)
    strange = frame.iloc[:3].assign(
        number=np.nan, site="west", zone=None, day=pd.NaT, prose=["", "\0", "ש" * 50]
    )
    assert np.isfinite(encoder.transform(strange)).all()
    y = np.arange(len(frame)) % 2
    model = make_pipeline(make_encoder(frame, text=roles.text), LogisticRegression(max_iter=500))
    assert model.fit(frame, y).predict(frame).shape == y.shape


def test_blocks_of_numbers_and_prose_weigh_the_same():
    table, roles = mixed()
    frame = features(table, roles)
    X = make_encoder(frame, text=roles.text).fit_transform(frame)
    prose = X[:, -100:].var(axis=0).sum()
    assert prose == pytest.approx(5)


def test_progress_says_rate_and_end_and_changes_nothing(monkeypatch):
    monkeypatch.setattr(vectors, "_SECONDS", -1.0)
    monkeypatch.setattr(encoding, "_BLOCK", 60)
    table, roles = mixed()
    frame, said = features(table, roles), []
    numbers = encode(make_encoder(frame, text=roles.text), frame, said.append)
    monkeypatch.undo()
    np.testing.assert_array_equal(
        numbers, make_encoder(frame, text=roles.text).fit_transform(frame)
    )
    done = [int(line.split("/200 rows, ")[0]) for line in said]
    assert len(done) == 6  # blocks, learning the reduction, reducing
    assert done == sorted(done)
    assert done[-1] == 200
    assert said[-1].endswith(" a second, 0 s left")
    blank = pd.DataFrame({"prose": [""] * 3})
    assert encode(make_encoder(blank, text=["prose"]), blank).shape == (3, 1)


def test_what_was_a_number_stays_one():
    table, roles = mixed()
    readings = find_column_readings(table, roles)
    kinds = feature_kinds(features(table, roles), roles.text)
    few = table.data.slice(0, 2).to_pydict()
    new = read_table({**few, "number": ["", "2"], "site": ["1", "2"], "zone": ["7", "8"]})
    frame = features(new, roles, readings=readings)
    assert feature_kinds(frame, roles.text) == kinds
    assert frame["site"].tolist() == ["1", "2"]
    empty = features(read_table({**few, "number": ["", ""]}), roles, readings=readings)
    assert empty["number"].isna().all()
    without = read_table({k: v for k, v in few.items() if k != "zone"})
    with pytest.raises(TableError, match=r"no column 'zone' \(features\)"):
        features(without, roles, readings=readings)


def test_a_cell_that_cannot_be_read_as_in_training_is_empty_and_noted():
    table, roles = mixed()
    readings, notes = find_column_readings(table, roles), []
    few = table.data.slice(0, 2).to_pydict()
    new = read_table({**few, "number": ["1", "x"], "day": ["2024-02-30", "2024-02-01"]})
    frame = features(new, roles, readings=readings, notes=notes)
    assert frame["number"].isna().tolist() == [False, True]
    assert frame["day"].isna().tolist() == [True, False]
    assert any("'number': 1 of 2 rows hold no number" in note for note in notes)
    assert any("'day': 1 of 2 rows hold no date such as" in note for note in notes)
    assert all("e.g. '2024-02-30' in row 0" in n or "e.g. 'x' in row 1" in n for n in notes)


def test_decimal_commas_and_marks_of_missing_numbers(tmp_path):
    file = tmp_path / "a.csv"
    file.write_text("w;v;c\n1,5;?;a|b\n2;1;b\n3,25;2;a\n")
    table = read_table(file)
    roles = find_roles(table, missing="?")
    frame = features(table, roles)
    assert frame["w"].tolist() == [1.5, 2, 3.25]
    assert np.isnan(frame["v"][0])


def test_a_number_that_means_no_label_is_a_number_all_the_same():
    table = read_table({"x": [-1.0, 1, 2], "ann": [1, -1, 2], "ben": [1, 2, 2]})
    frame = features(table, find_roles(table, annotators=["ann", "ben"], missing=[-1]))
    assert frame["x"].tolist() == [-1, 1, 2]


def test_lists_of_numbers_are_spread():
    table = read_table({"e": [[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]], "c": ["a|b", "b", "a"]})
    frame = features(table, find_roles(table))
    assert frame["e_1"].tolist() == [2, 4, 6]
    ragged = read_table({"e": [[1.0, 2.0], [3.0], [5.0, 6.0]], "c": ["a|b", "b", "a"]})
    with pytest.raises(TableError, match="not a list of numbers of one length"):
        features(ragged, find_roles(ragged))


def test_infinite_numbers_and_nothing_to_learn_from():
    table = read_table({"x": [1.0, np.inf, 2.0], "c": ["a|b", "b", "a"]})
    with pytest.raises(TableError, match=r"column 'x', row 1: an infinite number"):
        features(table, find_roles(table))
    table = read_table({"x": ["k"] * 3, "c": ["a|b", "b", "a"]})
    with pytest.raises(TableError, match=r"no column to learn from \('x': constant\)"):
        features(table, find_roles(table))


def test_long_tables_have_the_features_of_their_items():
    columns = crowds.kern_long()
    columns["length"] = columns["tweet.id"] % 7 + 0.5
    table = read_table(columns)
    roles = find_roles(table, long=["tweet.id", "hate.speech", "id"])
    labels = read_labels(table, roles)
    frame = features(table, roles, rows=labels.first)
    assert len(frame) == labels.n_rows == 30
    assert frame["length"].tolist() == [(10**14 + i) % 7 + 0.5 for i in range(30)]


@pytest.mark.parametrize(
    "texts", [[""] * 3, ["\0", "", "?!"], ["a", "a", "a"], ["x" * 10**6, "", "b"]]
)
def test_hostile_texts_give_numbers(texts):
    encoder = TextEncoder()
    X = encoder.fit_transform(texts)
    assert np.isfinite(X).all()
    assert np.isfinite(encoder.transform(["new", None])).all()


def test_prose_says_what_it_says():
    r = crowds.rng()
    words = {"bird": "sings flies nest wing feather", "fish": "swims fins water scale gill"}
    y = r.choice(["bird", "fish"], 120)
    texts = [" ".join(["the animal we saw", *r.choice(words[label].split(), 2)]) for label in y]
    model = make_pipeline(TextEncoder(), LogisticRegression())
    assert cross_val_score(model, texts, y).mean() > 0.95


def test_no_kind_of_column_drowns_the_others():
    r = crowds.rng()
    n = 300
    frame = pd.DataFrame(
        {
            "a": r.normal(0, 1000, n),
            "b": r.normal(size=n),
            "prose": crowds.make_tweets(n),
            **{f"v{j}": r.normal(0, j + 1, n) for j in range(64)},
        }
    )
    vectors = {"pictures": [f"v{j}" for j in range(64)]}
    encoder = make_encoder(frame, text=["prose"], vectors=vectors).fit(frame)
    rows = encoder.transform(frame)
    weights = {
        name: rows[:, places].var(axis=0).sum() for name, places in column_places(encoder).items()
    }
    np.testing.assert_allclose([weights["a"], weights["b"]], 1, rtol=1e-6)
    np.testing.assert_allclose([weights["prose"], weights["pictures"]], 2, rtol=1e-6)


def test_vectors_alone_keep_their_scale():
    frame = pd.DataFrame(crowds.rng().normal(size=(50, 8)), columns=[f"v{j}" for j in range(8)])
    encoder = make_encoder(frame, vectors={"v": list(frame.columns)})
    np.testing.assert_allclose(encoder.fit_transform(frame).var(axis=0), 1, rtol=1e-6)


@pytest.mark.parametrize("empty", [[np.nan] * 3, [None] * 3, [pd.NaT] * 3])
def test_a_column_without_a_filled_cell_becomes_no_number(empty):
    frame = pd.DataFrame({"a,b": empty, "w": [1.5, 0.5, 2.0]})
    encoder = make_encoder(frame)
    assert encoder.fit_transform(frame).shape == (3, 1)
    places = column_places(encoder)
    assert {name: place.tolist() for name, place in places.items()} == {"a,b": [], "w": [0]}


def test_numbers_and_categories_become_what_skrub_makes_of_them():
    """Both are encoded by scikit-learn alone. skrub computes in single precision."""
    skrub = pytest.importorskip("skrub")
    r = crowds.rng()
    n = 120
    frame = pd.DataFrame(
        {
            "kind": r.choice(["x", "y", None], n),
            "weight": np.where(r.random(n) < 0.2, np.nan, r.normal(5, 3, n)),
            "empty": np.full(n, np.nan),
            "count": r.integers(9, size=n),
            "only": ["same"] * n,
        }
    )
    encoder = make_encoder(frame)
    found = encoder.fit_transform(frame)
    assert [name for name, _, _ in encoder.transformers] == ["numbers", "categories"]
    theirs = skrub.TableVectorizer(
        low_cardinality=encoding._categories(), numeric=encoding._numbers()
    ).fit(frame)
    places = column_places(encoder)
    assert list(places) == list(frame.columns)
    assert places["empty"].size == 0
    for new in (frame, frame[::-1], frame.assign(kind="new", empty=3.0)):
        found, expected = encoder.transform(new), theirs.transform(new)
        for name, own in places.items():
            outputs = theirs.input_to_outputs_[name] if name != "empty" else []
            np.testing.assert_allclose(found[:, own], expected[outputs], atol=1e-5)


def test_only_dates_and_texts_of_many_values_need_skrub():
    table, roles = mixed()
    encoder = make_encoder(features(table, roles), text=roles.text)
    parts = {name: columns for name, _, columns in encoder.transformers}
    assert parts["numbers"] == ["number", "yes"]
    assert parts["categories"] == ["site"]
    assert parts["columns"] == ["zone", "day"]
