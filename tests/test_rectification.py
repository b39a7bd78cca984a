"""The practitioner's journey in Python: from a table to labels, people, a review and a model."""

from __future__ import annotations

import inspect
import json

import numpy as np
import pytest

import appellate
from appellate import NoteWarning
from appellate._added import ADDED
from appellate.rectification.fitting import tell_rounds
from appellate.rectification.preparation import prepare_table
from appellate.rectification.run import label_items
from appellate.tables import find_roles, read_table, write_table
from tests.cli.tables import make_rows

pd = pytest.importorskip("pandas")
pytest.importorskip("skops")
pytest.importorskip("jinja2")
NAMES = np.array(["cat", "cow", "dog"])
quiet = pytest.mark.filterwarnings("ignore::appellate.NoteWarning")  # the notes do not matter


def exclude(*ids):
    """Decisions that no label of these items is true."""
    return pd.DataFrame({"id": ids, "decision": "none", "label": ""})


def make_table(n=80, seed=0):
    X, candidates, truth = make_rows(n, seed, tuple(NAMES))
    sets = ["|".join(NAMES[row]) for row in candidates]
    columns = {f"x{j}": X[:, j] for j in range(3)}
    return pd.DataFrame({"name": [f"i{i}" for i in range(n)], **columns, "maybe": sets}), truth


def make_crowd(n=150, seed=0, people=(0.9, 0.75, 0.6, 0.45)):
    rng = np.random.default_rng(seed)
    truth = rng.integers(3, size=n)
    X = rng.normal(size=(n, 2)) + 3 * np.eye(3)[truth][:, :2]
    table = pd.DataFrame({"x": X[:, 0], "y": X[:, 1]})
    for k, share in enumerate(people):
        said = NAMES[np.where(rng.random(n) < share, truth, rng.integers(3, size=n))]
        table[f"w{k}"] = np.where(rng.random(n) < 0.8, said, None)
    return table, truth


@pytest.fixture(scope="module")
def plain():
    table, truth = make_table()
    return appellate.rectify(table, candidates="maybe"), table, truth


@pytest.fixture(scope="module")
def crowd():
    table, truth = make_crowd()
    table["truth"] = NAMES[truth]
    return appellate.rectify(table, annotators="w*"), table


@pytest.mark.parametrize("n", [39, 40])
def test_categories_are_kept_where_each_is_a_number(n):
    """From 40 on they are compared by their letters, so that a new one says something too."""
    table, _ = make_table()
    table["town"] = [f"town {i % n}" for i in range(len(table))]
    run = appellate.rectify(table, candidates="maybe", features="town,x*")
    (town,) = (each for each in run.settings["features"] if each["name"] == "town")
    wide = run.model[0].transform(table).shape[1] == n + 3
    assert ("categories" in town) == wide == (n < 40)


def test_labels_are_the_table_with_more(plain):
    run, table, truth = plain
    assert run.settings["method"] == "jury"
    assert run.settings["roles"]["id"] == "name"
    pd.testing.assert_frame_equal(run.labels[list(table)], table)
    assert np.mean(run.labels["label"] == NAMES[truth]) > 0.85
    for label, maybe in zip(run.labels["label"], table["maybe"], strict=True):
        assert label in maybe.split("|")
    sure = run.labels["confidence"]
    assert ((sure > 0.3) & (sure <= 1 + 1e-9)).all()
    other = run.labels["runner_up_confidence"].fillna(0)
    assert (sure + other <= 1 + 1e-6).all()
    assert "truth" not in run.docket
    assert run.scores["accuracy"] is None
    expected = float((1 - sure).sum())
    assert run.scores["expected_wrong"] == pytest.approx(expected, abs=0.06)
    json.dumps(run.settings, allow_nan=False)
    json.dumps(run.scores, allow_nan=False)


@pytest.mark.parametrize("kind", ["polars", "arrow", "dict", "csv", "parquet"])
def test_every_kind_of_table_means_the_same(kind, plain, tmp_path):
    run, table, _ = plain
    columns = table.to_dict("list")
    if kind == "polars":
        source = pytest.importorskip("polars").DataFrame(columns)
    elif kind == "arrow":
        source = pytest.importorskip("pyarrow").table(columns)
    else:
        source = columns if kind == "dict" else write_table(columns, tmp_path / f"t.{kind}")
    other = appellate.rectify(source, candidates="maybe")
    labels = other.labels["label"]
    found = labels.to_pylist() if kind == "arrow" else list(labels)
    assert found == run.labels["label"].tolist()
    if kind == "polars":
        assert type(other.labels) is type(other.docket) is type(source)


@quiet
def test_a_run_that_is_saved_is_the_run(plain, tmp_path):
    table, _ = make_table()
    table.to_csv(tmp_path / "t.csv", index=False)
    run = appellate.rectify(tmp_path / "t.csv", candidates="maybe")
    same = appellate.load(run.save(tmp_path / "o"))
    pd.testing.assert_frame_equal(same.labels, run.labels, rtol=1e-5, check_dtype=False)
    pd.testing.assert_frame_equal(same.docket, run.docket, check_dtype=False)
    assert same.settings == run.settings
    assert same.scores == run.scores
    assert same.suggest(7)["id"].tolist() == run.suggest(7)["id"].tolist()
    again, first = (each.predict(table, proba=True) for each in (same, run))
    pd.testing.assert_frame_equal(again, first)
    decided, expected = (each.decide(exclude("i3")) for each in (same, run))
    assert decided.labels["label"].tolist() == expected.labels["label"].tolist()
    with pytest.raises(ValueError, match="holds no run"):
        appellate.load(tmp_path)
    (tmp_path / "t.csv").write_text((tmp_path / "t.csv").read_text().replace("i3,", "j3,"))
    with pytest.raises(ValueError, match="has changed since the run was made"):
        same.decide(exclude("i4"))


def test_decisions_are_certain_and_add_up(plain):
    run, table, truth = plain
    named = {f"i{i}": NAMES[truth[i]] for i in range(5)}
    decided = run.decide(named)
    assert decided.labels["label"].tolist()[:5] == list(named.values())
    assert decided.labels["confidence"].tolist()[:5] == [1.0] * 5
    assert set(decided.labels["outcome"][:5]) == {"reviewed"}
    with pytest.warns(NoteWarning, match="no label 'owl'"):
        more = decided.decide({"i6": "owl"}).decide(exclude("i5"))
    assert more.scores["outcomes"]["reviewed"] == 6
    assert more.scores["outcomes"]["excluded"] == 1
    assert more.labels["label"].isna().tolist()[:8] == [False] * 5 + [True, False, False]
    assert more.labels["label"][6] == "owl"
    assert not {f"i{i}" for i in range(7)} & {*more.suggest(80)["id"]}
    assert run.labels["outcome"].isin(["unchanged", "changed"]).all(), "the first run is as it was"
    with pytest.raises(ValueError, match="none of its 1 ids is in the table"):
        run.decide({"nobody": "cat"})
    with pytest.warns(NoteWarning, match="1 decisions are ignored: their ids are not in"):
        (note,) = run.decide({"i3": NAMES[truth[3]], "nobody": "cat"}).scores["notes"]
    assert note.startswith("1 decisions are ignored")
    with pytest.raises(ValueError, match="nothing can be learned"):
        run.decide(exclude(*table["name"]))


def test_decisions_on_a_table_that_has_changed_are_refused(tmp_path):
    table, _ = make_table()
    table = table.drop(columns="name")
    run = appellate.rectify(table, candidates="maybe")
    run.decide(exclude(3, 7)).save(tmp_path / "o")
    decisions = tmp_path / "o" / "decisions.csv"
    same = appellate.rectify(table, candidates="maybe", decisions=decisions)
    assert same.labels["outcome"].tolist().count("excluded") == 2
    with pytest.raises(ValueError, match="another version of the table"):
        appellate.rectify(table[1:], candidates="maybe", decisions=decisions)


def test_a_review_goes_on_over_runs(tmp_path):
    table, truth = make_table(120)
    run = appellate.rectify(table, candidates="maybe")
    drawn = run.suggest(100).query("why == 'audit'")["id"].tolist()
    assert {*drawn} <= {*run.settings["audit"]} < {*run.suggest(100)["id"]}
    assert len(drawn) >= 20
    drawn = drawn[:20]
    names = dict(zip(table["name"], NAMES[truth], strict=True))
    first = run.decide({name: names[name] for name in drawn[:12]})
    assert first.scores["audit"] is None, "too few"
    first.save(tmp_path / "one")
    with (tmp_path / "one" / "decisions.csv").open("a") as file:
        file.writelines(f"{name},accept,{names[name]},,,,,\n" for name in drawn[12:])
    again = appellate.rectify(
        table, candidates="maybe", decisions=tmp_path / "one" / "decisions.csv"
    )
    audit = again.scores["audit"]
    labels = dict(zip(table["name"], run.labels["label"], strict=True))
    right = sum(labels[name] == names[name] for name in drawn)
    assert audit["rows"] == 20
    assert audit["accuracy"] == pytest.approx(right / 20)
    assert audit["low"] < audit["accuracy"] <= audit["high"] <= 1


def test_people_are_weighed(crowd, tmp_path):
    run, table = crowd
    assert run.settings["method"] == "testimony"
    scores = run.scores["accuracy"]
    assert list(scores)[1:] == ["random candidate", "majority vote", "Dawid-Skene", "rectified"]
    assert scores["rectified"] >= scores["majority vote"]
    order = run.annotators.sort_values("accuracy", ascending=False)["person"].tolist()
    assert order == ["w0", "w1", "w2", "w3"]
    votes = run.labels["votes"][0]
    counted = table.loc[0, ["w0", "w1", "w2", "w3"]].value_counts()
    assert dict(v.split(":") for v in votes.split("|")) == {k: str(v) for k, v in counted.items()}
    run.save(tmp_path / "o")
    assert (tmp_path / "o" / "annotators.csv").is_file()


def test_majority_is_scored_with_ties_at_random(crowd):
    run, table = crowd
    shares = []
    for _, row in table.iterrows():
        counts = row[["w0", "w1", "w2", "w3"]].value_counts()
        top = [*counts[counts == counts.max()].index] or list(NAMES)
        shares.append((row["truth"] in top) / len(top))
    assert run.scores["accuracy"]["majority vote"] == pytest.approx(np.mean(shares), abs=1e-4)


def test_layouts_of_answers_agree(crowd, tmp_path):
    run, table = crowd
    wide = table.assign(item=[f"i{i}" for i in range(len(table))])
    long = wide.melt(["item", "x", "y"], [f"w{k}" for k in range(4)], "who", "answer").dropna()
    other = appellate.rectify(long, long=["item", "answer", "who"])
    by_item = dict(zip(other.labels["item"], other.labels["label"], strict=True))
    same = [
        by_item[item] == label
        for item, label in zip(wide["item"], run.labels["label"], strict=True)
        if item in by_item
    ]
    assert np.mean(same) > 0.98
    counts = pd.DataFrame(
        {f"n_{c}": (table[[f"w{k}" for k in range(4)]] == c).sum(axis=1) for c in NAMES}
    )
    counted = appellate.rectify(counts.assign(x=table["x"], y=table["y"]), counts="n_*")
    assert counted.settings["labels"] == [f"n_{c}" for c in NAMES]
    assert counted.annotators["person"].tolist() == ["everyone"]


def test_answers_alone_leave_labels_and_no_model(crowd, tmp_path):
    _, table = crowd
    with pytest.warns(NoteWarning, match="only the answers decide, and no model is made"):
        run = appellate.rectify(table.drop(columns=["x", "y"]), annotators="w*")
    assert run.model is None
    assert run.scores["first"] is None, "there are none but the first labels"
    assert "unchanged" not in repr(run)
    assert f"{run.scores['differing']['majority vote']} differ from majority vote" in repr(run)
    assert run.scores["signal"] is None
    assert run.scores["accuracy"]["rectified"] == run.scores["accuracy"]["Dawid-Skene"]
    saved = appellate.load(run.save(tmp_path / "o"))
    for each in (run, saved):
        with pytest.raises(ValueError, match="no model for new rows"):
            each.predict(table)
    with pytest.raises(ValueError, match="no column to learn from"):
        appellate.rectify({"maybe": ["a|b", "b", "a|c"]}, candidates="maybe")


@pytest.mark.parametrize("layout", ["sets", "answers"])
def test_worthless_features_are_said(layout):
    rng = np.random.default_rng(1)
    table, _ = make_table(150) if layout == "sets" else make_crowd()
    for name in [c for c in table if c in ("x", "y", "x0", "x1", "x2")]:
        table[name] = rng.normal(size=len(table))
    where = {"candidates": "maybe"} if layout == "sets" else {"annotators": "w*"}
    with pytest.warns(NoteWarning, match="^the features"):
        run = appellate.rectify(table, **where)
    assert run.scores["signal"] is False
    assert run.scores["notes"][0].startswith("the features")
    assert run.scores["notes"][0] in repr(run)


@quiet
def test_a_rival_that_is_better_is_named():
    table, truth = make_table(60)
    table["truth"] = NAMES[truth]
    run = appellate.rectify(table, candidates="maybe", method="plcp", base="aggd")
    scores = run.scores["accuracy"]
    better = [n for n in ("random candidate", "base alone") if scores[n] > scores["rectified"]]
    said = [note for note in run.scores["notes"] if "is more accurate here" in note]
    assert [note.split(" is more accurate")[0] for note in said] == better
    worse = appellate.rectify(table, candidates="maybe", features="x0", method="plcp", base="svm")
    scores = worse.scores["accuracy"]
    assert ("base alone is more accurate" in repr(worse)) == (
        scores["base alone"] > scores["rectified"]
    )


@quiet
def test_methods_bases_and_settings(plain, monkeypatch):
    monkeypatch.setattr("appellate.rectification.selection._BANDWIDTHS", (1.0,))
    monkeypatch.setattr("appellate.rectification.selection._REGULARIZATIONS", (0.05,))
    _, table, truth = plain
    table = table.assign(truth=NAMES[truth])
    run = appellate.rectify(
        table, candidates="maybe", base="knn", settings={"max_rounds": 2, "bandwidth": 2.0}
    )
    assert run.settings["method"] == "plcp"
    classifier = run.model[-1]
    assert classifier.max_rounds == 2
    assert classifier.kernel.bandwidth == 2.0
    assert "expected_wrong" not in run.scores, "its confidence is not calibrated"
    with pytest.warns(NoteWarning, match="was chosen as base without true labels"):
        chosen = appellate.rectify(table, candidates="maybe", base="auto")
    assert "was chosen as base without true labels" in " ".join(chosen.settings["notes"])
    light = appellate.rectify(table, candidates="maybe", method="jury", settings={"max_rounds": 1})
    assert light.model[-1].max_rounds == 1
    for wrong, message in (
        ({"method": "magic"}, "none of auto, jury"),
        ({"base": "nope"}, "Unknown base classifier 'nope'"),
        ({"method": "jury", "base": "knn"}, "is for method 'plcp'"),
        ({"settings": {"colour": 3}}, "JuryClassifier has no setting 'colour'"),
        ({"order": "cat,dog", "method": "plcp"}, "uses order= only with a cost"),
        ({"cost": "absolute"}, "needs an order"),
        ({"cost": "absolute", "order": "cat,dog"}, "lacks labels of the table: 'cow'"),
    ):
        with pytest.raises(ValueError, match=message):
            appellate.rectify(table, candidates="maybe", **wrong)


@quiet
def test_embeddings_stand_alone_or_beside_columns(plain, tmp_path):
    _, table, truth = plain
    X = table[["x0", "x1", "x2"]].to_numpy()
    np.save(tmp_path / "x.npy", X)
    alone = appellate.rectify(
        table.assign(x0=0.0, x1=1.0), candidates="maybe", embeddings=tmp_path / "x.npy"
    )
    assert alone.settings["n_embeddings"] == 3
    assert alone.settings["features"] == []
    assert np.mean(alone.labels["label"] == NAMES[truth]) > 0.85
    both = appellate.rectify(table, candidates="maybe", features="x0", embeddings=X[:, 1:])
    assert [each["name"] for each in both.settings["features"]] == ["x0"]
    assert both.predict(table, embeddings=X[:, 1:])["label"].isin(NAMES).all()
    with pytest.raises(ValueError, match="learned from embeddings"):
        both.predict(table)
    with pytest.raises(ValueError, match="3 columns, but the model learned from 2"):
        both.predict(table, embeddings=X)


def test_the_page_holds_what_the_run_knows(crowd, tmp_path):
    from appellate.review.page import read_page

    run, table = crowd
    shown = table.assign(note=[f"a text of many words, number {i}" for i in range(len(table))])
    run = appellate.rectify(shown, annotators="w*", text="note")
    page = read_page(run.decide(exclude(3)).save(tmp_path / "o") / "docket.html")
    assert page["answers"]["people"] == ["w0", "w1", "w2", "w3"]
    assert [each["name"] for each in page["annotators"]] == ["w0", "w1", "w2", "w3"]
    assert page["texts"][3] == "a text of many words, number 3"
    assert page["table"] == f"sha256:{run.settings['sha256'][:32]}"
    assert page["decisions"] == {"3": ["none", ""]}
    assert {each["name"] for each in page["scores"]} == {*list(run.scores["accuracy"])[1:-1]}


def test_a_notebook_shows_it(plain):
    run, table, _ = plain
    shown = run._repr_html_()
    assert shown.count("<tr") == 11
    assert "<th>first_label</th>" in shown
    hostile = table.assign(name=["<script>alert(1)</script>" + str(i) for i in range(len(table))])
    assert "<script>" not in appellate.rectify(hostile, candidates="maybe")._repr_html_()


def test_polluted_folders_are_left_alone(plain, tmp_path):
    run, _, _ = plain
    (tmp_path / "docket.csv").write_text("mine")
    with pytest.raises(ValueError, match=r"has docket\.csv, not"):
        run.save(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["docket.csv"]


@quiet
def test_mistakes_in_decisions_are_said_before_any_work(tmp_path, monkeypatch):
    monkeypatch.setattr("appellate.rectification.run.fit_labels", None)
    table = {"size": [1.0, 1.1, 5.0, 5.1] * 5, "names": ["cat|dog", "cat", "dog", "dog"] * 5}
    with pytest.raises(ValueError, match="cannot find the file"):
        appellate.rectify(table, candidates="names", decisions=tmp_path / "gone.csv")


@quiet
def test_a_loaded_run_says_what_its_folder_does_not_hold(plain, tmp_path):
    _, table, _ = plain
    table.to_csv(tmp_path / "t.csv", index=False)
    vectors = np.random.default_rng(0).normal(size=(len(table), 40))
    run = appellate.rectify(tmp_path / "t.csv", candidates="maybe", embeddings=vectors)
    loaded = appellate.load(run.save(tmp_path / "o"))
    with pytest.raises(ValueError, match=r"embeddings was a ndarray\. Call rectify"):
        loaded.decide(exclude("i0"))


def test_saving_tells_what_is_written(plain, tmp_path):
    told = []
    plain[0].save(tmp_path / "run", step=lambda text, **more: told.append((text, more)))
    assert [text for text, _ in told] == [
        "finding out what each column contributes",
        "storing the model",
        "the review page",
    ]
    assert all(more == {"within": True} for _, more in told)


@pytest.mark.parametrize(("options", "total"), [({}, 12), ({"base": "knn"}, 5)])
def test_step_is_told_every_round_of_a_fit(options, total, plain):
    told, within = [], []
    case = prepare_table(plain[1], candidates="maybe", **options)
    label_items(case, step=lambda text, **more: (within if more else told).append(text))
    assert told == ["turning columns into numbers", "fitting"]
    expected = [f"round {number} of at most {total}" for number in range(1, total + 1)]
    assert 1 < len(within) <= total
    assert within == expected[: len(within)]


def test_the_time_left_is_told_from_the_third_round_on(monkeypatch):
    clock = iter([100.0, 130.0, 170.0, 200.0, 300.0])
    monkeypatch.setattr("appellate.rectification.fitting.time.monotonic", lambda: next(clock))
    told = []
    tell_round = tell_rounds(lambda text, **more: told.append((text, more)))
    for number in range(1, 6):
        tell_round(number, 5)
    assert [text for text, _ in told] == [f"round {n} of at most 5" for n in range(1, 6)]
    assert all(more["within"] for _, more in told)
    left = [more.get("seconds") for _, more in told]
    assert left == [None, None, 70.0, pytest.approx(100 / 3), None]  # two rounds of 35 seconds


def test_all_rows_may_be_reviewed(plain, tmp_path):
    run, table, _ = plain
    first = [maybe.split("|")[0] for maybe in table["maybe"]]
    run.decide(dict(zip(table["name"], first, strict=True))).save(tmp_path / "o")
    assert appellate.load(tmp_path / "o").suggest().empty


def test_a_decision_of_a_frame_is_taken_back(plain):
    run, table, _ = plain
    name, label = table["name"][0], table["maybe"][0].split("|")[0]
    decided = run.decide({name: label})
    back = {"id": [name, table["name"][1]], "decision": ["clear", "none"], "label": ["", ""]}
    assert decided.decide(pd.DataFrame(back)).scores["outcomes"].keys() == {
        *run.scores["outcomes"],
        "excluded",
    }


@quiet
def test_numbers_of_a_text_file_are_numbers_in_the_labels(tmp_path):
    sets = ["a|b" if i % 2 else "b" if i % 3 else "a" for i in range(40)]
    lines = {
        "commas.csv": ["x;z;y", *(f"{i % 7},5;{i % 3};{s}" for i, s in enumerate(sets))],
        "words.csv": ["x,z,y", *(f"{i % 7 or 'unknown'},{i % 3},{s}" for i, s in enumerate(sets))],
    }
    for name, content in lines.items():
        (tmp_path / name).write_text("\n".join(content))
        run = appellate.rectify(tmp_path / name, candidates="y", missing="unknown")
        assert run.labels["x"].dtype == float
        assert run.labels["x"].dropna().iloc[0] == (0.5 if name == "commas.csv" else 1.0)
        pd.testing.assert_frame_equal(appellate.load(run.save(tmp_path / "o")).labels, run.labels)


@quiet
def test_a_feature_that_only_the_first_answer_of_an_item_has(tmp_path):
    lines = [f"q{i},{'ab'[(i + k) % 3 > 0]},w{k},{'?' if k else i % 5}"
             for i in range(30) for k in range(3)]  # fmt: skip
    (tmp_path / "t.csv").write_text("\n".join(["task,said,who,x", *lines]))
    run = appellate.rectify(tmp_path / "t.csv", long="task,said,who", features="x")
    assert run.settings["features"] == [{"name": "x", "kind": "number"}]
    assert run.labels["x"].tolist()[:2] == ["0", "?"], "as it was"
    assert appellate.load(run.save(tmp_path / "o")).labels["x"].tolist()[:2] == ["0", "?"]


@quiet
def test_items_of_groups_can_be_decided():
    rng = np.random.default_rng(0)
    pages = np.repeat(np.arange(20), 4)
    sets = np.array(["cat|dog", "cat|cow|dog"])[pages % 2]
    table = pd.DataFrame({"x": rng.normal(size=80), "page": pages, "maybe": sets})
    run = appellate.rectify(table, candidates="maybe", groups="page", method="jury")
    decided = run.decide({0: "cat", 9: "owl"}).decide(exclude(5))
    assert decided.labels["label"][[0, 9]].tolist() == ["cat", "owl"]
    assert decided.scores["outcomes"]["reviewed"] == 2
    table["page"] = table["page"].where(table.index < 70)  # ten of no page, of different sets
    assert len(appellate.rectify(table, candidates="maybe", groups="page").labels) == 80


def test_a_label_that_nobody_named_differs_from_every_rival(crowd):
    run, table = crowd
    votes = table[["w0", "w1", "w2", "w3"]].mode(axis=1)
    dogs = [i for i in range(len(table)) if votes.loc[i].dropna().tolist() == ["dog"]]
    same = [i for i in dogs if run.labels["label"][i] == "dog"][:3]
    with pytest.warns(NoteWarning, match="no label 'owl'"):
        decided = run.decide(dict.fromkeys(same, "owl"))
    labels = decided.labels["label"]
    differing = sum(labels[i] not in votes.loc[i].tolist() for i in range(len(table)))
    assert decided.scores["differing"]["majority vote"] == differing


# -- what Python hears ------------------------------------------------------------------------


def told(caught):
    return [str(each.message) for each in caught]


def test_python_hears_the_notes_once_and_repr_shows_the_columns():
    table, _ = make_table(15)
    with pytest.warns(NoteWarning) as caught:
        run = appellate.rectify(table[["x0", "maybe"]], candidates="maybe", method="plcp")
    assert told(caught) == [*run.settings["notes"], *run.scores["notes"]]
    assert "only 15 items to learn from: check every label." in told(caught)
    assert {each.filename for each in caught} == {__file__}, "the line of the caller"
    shown = repr(run)
    assert (
        "How the columns are used\n  maybe  candidates  specified\n  x0     feature     numbers\n"
        in shown
    )


def test_a_loaded_run_shows_the_columns(plain, tmp_path):
    run, _, _ = plain
    assert repr(appellate.load(run.save(tmp_path / "o"))) == repr(run)


def test_predictions_tell_their_notes(plain):
    run, table, _ = plain
    new = table.drop(columns="maybe").astype({"x0": object})
    new.loc[3, "x0"] = "tall"
    with pytest.warns(NoteWarning, match="x0") as caught:
        run.predict(new)
    assert caught[0].filename == __file__


# -- how labels of decisions are read ----------------------------------------------------------


@pytest.fixture(scope="module")
def numbered():
    """Labels are 1 and 2, items have no names."""
    table, _ = make_table()
    table["maybe"] = table["maybe"].replace({"cat": "1", "cow": "2", "dog": "3"}, regex=True)
    return appellate.rectify(table.drop(columns="name"), candidates="maybe")


@pytest.mark.parametrize("label", [2, 2.0, " 2 ", "2", "2.0", np.float64(2)])
def test_a_decision_on_a_number_is_read_as_in_the_table(label, numbered):
    row = numbered.docket["candidates"].tolist().index("2|3")
    if label == "2.0":
        with pytest.warns(NoteWarning, match="the label '2.0' is read as '2'"):
            decided = numbered.decide({row: label})
    else:
        decided = numbered.decide({float(row): label})
    assert decided.labels["label"][row] == "2"
    assert decided.labels["outcome"][row] == "reviewed"
    assert decided.docket["review"][row] == "other"


@pytest.mark.parametrize("missing", [None, float("nan"), "", " ", pd.NA])
def test_missing_labels_of_a_mapping_are_skipped(missing, plain):
    run, _, truth = plain
    with pytest.warns(NoteWarning, match="decisions without a label are skipped: 'i3'"):
        decided = run.decide({"i1": NAMES[truth[1]], "i3": missing})
    assert decided.labels["outcome"].tolist().count("reviewed") == 1
    assert decided.labels["label"][3] in NAMES
    with pytest.raises(ValueError, match="no decision has a label: 'i3'"):
        run.decide({"i3": missing})


def write_decision(folder, kind, label):
    path = folder / "d.csv"
    path.write_text(f"id,decision,label\ni0,{kind},{label}\n")
    return path


@pytest.mark.parametrize("form", ["mapping", "frame", "file"])
def test_a_label_in_other_letters_is_matched_and_noted(form, plain, tmp_path):
    run, table, _ = plain
    inside = table["maybe"][0].split("|")[0]
    written = inside.title()
    decisions = {
        "mapping": {"i0": written},
        "frame": pd.DataFrame({"id": ["i0"], "decision": "none", "label": written}),
        "file": write_decision(tmp_path, "none", written),
    }[form]
    with pytest.warns(NoteWarning, match=f"the label '{written}' is read as '{inside}'"):
        decided = run.decide(decisions)
    assert decided.labels["label"][0] == inside
    assert decided.docket["review"][0] == "other"


@pytest.mark.parametrize("form", ["mapping", "file"])
def test_an_unknown_label_is_reported_with_the_nearest(form, plain, tmp_path):
    run, _, _ = plain
    decisions = {"i0": "doge"} if form == "mapping" else write_decision(tmp_path, "none", "doge")
    with pytest.warns(NoteWarning, match="no label 'doge'. Did you mean 'dog'") as caught:
        decided = run.decide(decisions)
    assert told(caught) == [n for n in decided.scores["notes"] if n not in run.scores["notes"]]
    assert decided.labels["label"][0] == "doge"
    with pytest.raises(ValueError, match="none of its 1 ids is in the table"):
        run.decide({"nobody": "cat"})


def test_marks_of_missing_labels_are_no_decision(crowd):
    _, table = crowd
    run = appellate.rectify(table.drop(columns="truth"), annotators="w*", missing="?")
    with pytest.warns(NoteWarning, match="skipped: '2'"):
        decided = run.decide({1: "cat", 2: "?"})
    assert decided.scores["outcomes"]["reviewed"] == 1


def test_a_table_of_decisions_that_lacks_a_column_is_refused(plain):
    with pytest.raises(ValueError, match="lack the column 'decision'"):
        plain[0].decide(pd.DataFrame({"id": ["i0"], "label": ["cat"]}))


# -- the same rows for all ---------------------------------------------------------------------


def test_baselines_are_scored_on_answered_rows_only(crowd):
    _, table = crowd
    table = table.copy()
    people = [f"w{k}" for k in range(4)]
    table.loc[:19, people] = None
    run = appellate.rectify(table, annotators="w*")
    rest = appellate.rectify(table[table[people].notna().any(axis=1)], annotators="w*")
    bare = int(table[people].isna().all(axis=1).sum())
    assert run.scores["accuracy"]["items with truth"] == len(table) - bare
    for name in ("random candidate", "majority vote", "Dawid-Skene"):
        same = rest.scores["accuracy"][name]
        assert run.scores["accuracy"][name] == pytest.approx(same, abs=2e-4)
    assert rest.scores["unanswered"] is None
    labels, outcome = run.labels["label"], run.labels["outcome"]
    right = (labels == table["truth"])[outcome == "unanswered"]
    assert run.scores["unanswered"] == {
        "items": bare,
        "items with truth": bare,
        "accuracy": pytest.approx(right.mean(), abs=1e-4),
    }
    assert f"unanswered  {bare} items have no answer; accuracy {right.mean():.3f}" in repr(run)
    heard = (labels == table["truth"])[outcome != "unanswered"]
    assert run.scores["accuracy"]["rectified"] == pytest.approx(heard.mean(), abs=1e-4)


# -- merging with the user's table -------------------------------------------------------------


@pytest.mark.parametrize("kind", ["frame", "csv"])
def test_labels_and_docket_merge_with_the_table_by_whole_numbers(kind, crowd, tmp_path):
    _, table = crowd
    wide = table.drop(columns="truth").assign(task=range(100, 100 + len(table)))
    long = wide.melt(["task", "x", "y"], [f"w{k}" for k in range(4)], "who", "answer").dropna()
    long.to_csv(tmp_path / "t.csv", index=False)
    source = long if kind == "frame" else tmp_path / "t.csv"
    run = appellate.rectify(source, long=["task", "answer", "who"])
    assert len(run.labels) == len(long), "one row per answer"
    assert len(run.docket) == long["task"].nunique(), "one row per item"
    loaded = appellate.load(run.save(tmp_path / "o"))
    for each in (run, loaded):
        merged = long.merge(each.labels[["task", "who", "label"]], on=["task", "who"])
        assert len(merged) == len(long)
        items = long.merge(each.docket, left_on="task", right_on="id")
        assert len(items) == len(long)
        assert each.suggest(3)["id"].isin(long["task"]).all()


def test_numbers_that_are_texts_stay_texts(tmp_path):
    table, truth = make_table()
    table["name"] = [f"{i:04}" for i in range(len(table))]
    table["truth"] = truth + 1
    table["maybe"] = table["maybe"].replace({"cat": "1", "cow": "2", "dog": "3"}, regex=True)
    table.to_csv(tmp_path / "t.csv", index=False)
    run = appellate.rectify(tmp_path / "t.csv", candidates="maybe", truth="truth", id="name")
    assert run.labels["name"].tolist() == table["name"].tolist()
    assert run.docket["id"].tolist() == table["name"].tolist()
    share = (run.labels["label"] == run.labels["truth"]).mean()
    assert share == pytest.approx(run.scores["accuracy"]["rectified"], abs=1e-4)


@quiet
def test_an_order_of_words_reaches_the_jury_and_is_reported():
    rng = np.random.RandomState(0)
    steps = ["dawn", "morning", "noon", "tea", "evening", "night", "late", "small hours"]
    hour = rng.randint(8, size=160)
    low, high = rng.randint(2, size=(2, 160))
    table = {
        "light": hour + 1.2 * rng.normal(size=160),
        "noise": rng.normal(size=160),
        "when": [
            "|".join(steps[max(t - a, 0) : t + b + 1])
            for t, a, b in zip(hour, low, high, strict=True)
        ],
    }
    plain = appellate.rectify(table, candidates="when", method="jury")
    told = appellate.rectify(table, candidates="when", method="jury", order=steps)
    assert plain.model[-1].order_width_ == 0
    assert told.model[-1].order_width_ > 0
    assert any("Neighbouring labels look alike" in line for line in told.scores["found"])
    assert "Neighbouring labels look alike" in told.summary()
    errors = [
        np.mean(np.abs(np.array([steps.index(v) for v in run.predict(table)["label"]]) - hour))
        for run in (told, plain)
    ]
    assert errors[0] < errors[1]


@quiet
@pytest.mark.parametrize(("similar", "verb"), [(True, "look"), (False, "do not look")])
def test_a_run_and_its_page_say_whether_false_candidates_look_like_their_row(
    similar, verb, tmp_path
):
    from appellate.review.page import read_page

    rng = np.random.RandomState(0)
    truth = rng.randint(4, size=240)
    others = (truth + rng.randint(1, 4, size=240)) % 4
    X = 3.0 * np.eye(4)[truth] + 2.0 * similar * np.eye(4)[others] + rng.normal(size=(240, 4))
    names = np.array(["ash", "elm", "fir", "oak"])
    table = {f"x{i}": X[:, i] for i in range(4)}
    table["tree"] = [f"{names[a]}|{names[b]}" for a, b in zip(truth, others, strict=True)]
    run = appellate.rectify(table, candidates="tree", method="jury", random_state=0)
    number = f"{run.model[-1].resemblance_:.2f}".removeprefix("0")
    sentence = f"False candidates {verb} like their row (resemblance {number})."
    assert sentence in run.scores["found"]
    assert sentence in run.summary()
    page = run.save(tmp_path / "o") / "docket.html"
    assert read_page(page)["found"] == run.scores["found"]
    assert f"<li>{sentence}</li>" in page.read_text(encoding="utf-8")


# -- names of columns -----------------------------------------------------------------------


def test_docstrings_name_every_column_that_a_run_adds():
    text = inspect.getdoc(appellate.Rectification)
    for name in ADDED:
        assert f"``{name}``" in text, name


def test_a_run_does_not_learn_from_columns_that_a_run_added(plain):
    _, table, _ = plain
    run = appellate.rectify(table, candidates="maybe")
    roles = find_roles(read_table(run.labels), candidates="maybe")
    added = [name for name in run.labels if name not in table]
    assert added == [name for name in ADDED if name != "votes"]
    assert {*added} <= {*roles.ignore}
    assert {roles.ignore[name] for name in added} == {"the result of an earlier run"}


def test_a_folder_of_an_earlier_version_is_refused_with_a_message(plain, tmp_path):
    _, table, _ = plain
    folder = appellate.rectify(table, candidates="maybe").save(tmp_path / "run")
    former = {"first_label": "verdict", "label": "appeal", "confidence": "appeal_confidence"}
    docket = pd.read_parquet(folder / "docket.parquet").rename(columns=former)
    docket.to_parquet(folder / "docket.parquet")
    with pytest.raises(ValueError, match=r"was written by an earlier version.* Run rectify again"):
        appellate.load(folder)
