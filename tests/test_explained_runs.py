"""Explanations of a run: by item, in a table, and on the page."""

from __future__ import annotations

import json

import numpy as np
import pytest
from scipy.special import softmax

import appellate
from appellate.rectification import explanation
from appellate.rectification.explanation import find_item
from tests.test_rectification import NAMES, exclude, make_crowd, make_table

pytest.importorskip("skops")
pytest.importorskip("jinja2")
pytestmark = pytest.mark.filterwarnings("ignore::appellate.NoteWarning")


@pytest.fixture(scope="module")
def sets():
    return appellate.rectify(make_table()[0], candidates="maybe")


@pytest.fixture(scope="module")
def crowd():
    table, truth = make_crowd()
    table["truth"] = NAMES[truth]
    table["photo"] = [f"photo-{i}" for i in range(len(table))]
    return appellate.rectify(table, annotators="w*", id="photo")


def page_of(run, folder):
    from appellate.review.page import read_page

    return read_page(run.save(folder) / "docket.html")


def test_an_item_is_explained_by_its_name_and_by_its_number(crowd):
    why = crowd.explain("photo-7")
    assert (why.row, why.name) == (7, "photo-7")
    assert repr(crowd.explain(7)) == repr(why)
    row = crowd.docket.iloc[7]
    assert why.label == row["label"]
    sure = softmax(why.scores)[why.classes.tolist().index(why.label)]
    assert abs(sure - row["confidence"]) < 1e-6
    text = repr(why)
    assert text.startswith("Row photo-7: ")
    assert "annotators err together" in text
    assert "features" in text


def test_similar_items_have_their_names(sets):
    why = sets.explain("i3")
    assert [each.name for each in why.neighbors] == [f"i{each.row}" for each in why.neighbors]
    labels = dict(zip(sets.docket["id"], sets.docket["label"], strict=True))
    assert all(labels[each.name] == each.label for each in why.neighbors)


def test_reviewed_and_excluded_items(sets):
    run = sets.decide({"i1": "dog"}).decide(exclude("i0", "i5"))
    assert run.explain("i1").label == "dog"
    with pytest.raises(ValueError, match="excluded item 'i5'"):
        run.explain("i5")
    later = run.explain("i9")  # behind the items that were left out
    assert later.name == "i9"
    row = run.docket.iloc[9]
    assert later.label == row["label"]
    sure = softmax(later.scores)[later.classes.tolist().index(later.label)]
    assert abs(sure - row["confidence"]) < 1e-6
    assert not {"i0", "i5"} & {each.name for each in later.neighbors}


def test_items_with_a_new_label_are_not_explained(sets, tmp_path):
    run = sets.decide({"i2": "owl", "i4": "dog"})
    with pytest.raises(ValueError, match="'i2' a label that the table does not have"):
        run.explain("i2")
    later = run.explain("i9")
    assert (later.name, later.label) == ("i9", run.docket["label"][9])
    assert run.explain("i4").label == "dog"
    why = page_of(run, tmp_path / "run")["why"]
    assert why
    assert not {"2", "4"} & set(why)


def test_a_loaded_run_explains_the_same(crowd, sets, tmp_path):
    for name, run in (("crowd", crowd), ("sets", sets)):
        again = appellate.load(run.save(tmp_path / name))
        assert repr(again.explain(4)) == repr(run.explain(4))


def test_says_why_there_is_nothing_to_explain(sets, crowd, tmp_path):
    with pytest.raises(ValueError, match=r"Cannot find the item 'i800'\. Did you mean 'i80'"):
        appellate.rectify(make_table(81)[0], candidates="maybe").explain("i800")
    with pytest.raises(ValueError, match="Cannot find the item '999'"):
        sets.explain(999)
    plcp = appellate.rectify(make_table()[0], candidates="maybe", base="knn")
    with pytest.raises(ValueError, match="PLCP do not come from a sum"):
        plcp.explain(0)
    assert "why" not in page_of(plcp, tmp_path / "plcp")
    table = make_crowd(40)[0][["w0", "w1", "w2", "w3"]]
    alone = appellate.rectify(table, annotators="w*")
    assert "how frequent the labels are" in repr(alone.explain(0))
    with pytest.raises(ValueError, match="its table was not a file"):
        appellate.load(alone.save(tmp_path / "alone")).explain(0)


def test_a_loaded_run_without_a_model_reads_its_table_again(tmp_path):
    table = make_crowd(60)[0][["w0", "w1", "w2", "w3"]]
    table.insert(0, "photo", [f"photo-{i}" for i in range(60)])
    table.to_csv(tmp_path / "t.csv", index=False)
    run = appellate.rectify(tmp_path / "t.csv", annotators="w*", id="photo")
    again = appellate.load(run.save(tmp_path / "run"))
    assert again.model is None
    assert repr(again.explain("photo-7")) == repr(run.explain("photo-7"))
    decided = run.decide({"photo-1": "dog", "photo-2": "cat"}).decide(exclude("photo-5"))
    again = appellate.load(decided.save(tmp_path / "decided"))
    for name in ("photo-1", "photo-7"):
        assert repr(again.explain(name)) == repr(decided.explain(name))
    with pytest.raises(ValueError, match="excluded item 'photo-5'"):
        again.explain("photo-5")


def test_names_that_occur_twice_need_a_number():
    with pytest.raises(ValueError, match=r"2 items are called 'a': items 0, 2\. Give a number"):
        find_item("a", ["a", "b", "a"])
    assert find_item(2, ["a", "b", "a"]) == 2


@pytest.mark.parametrize("kind", ["sets", "crowd"])
def test_the_page_has_the_sums_of_the_least_certain_items(kind, request, tmp_path):
    run = request.getfixturevalue(kind)
    data = page_of(run, tmp_path / "run")
    why, n = data["why"], len(run.docket)
    assert set(map(int, why)) <= set(range(n))
    assert {str(i) for i in data["suggested"]} - set(why) <= {
        str(i) for i in np.flatnonzero(run.docket["n_candidates"] < 2)
    }
    names = data["classes"]
    for item, shown in why.items():
        row = run.docket.iloc[int(item)]
        assert 2 <= len(shown["labels"]) <= 6
        assert len(shown["neighbours"]) <= 6
        assert all(len(part["values"]) == len(shown["labels"]) for part in shown["parts"])
        total = np.sum([part["values"] for part in shown["parts"]], axis=0)
        shares = softmax(total)
        assert names[shown["labels"][0]] == row["label"]
        assert shares[0] > row["confidence"] - 1e-6  # rare labels are left out
        explained = run.explain(int(item))
        of_model = {part.name: part.values for part in explained.parts}
        places = [explained.classes.tolist().index(names[j]) for j in shown["labels"]]
        for part in shown["parts"]:
            expected = of_model[part["name"]][places]
            np.testing.assert_allclose(
                np.subtract(part["values"], part["values"][0]), expected - expected[0], atol=1e-6
            )
        expected = explained.scores[places]
        np.testing.assert_allclose(total - total[0], expected - expected[0], atol=1e-6)
        heard = [each.probabilities[places] for each in explained.heard()]
        assert len(heard) == len(data.get("members", ()))
        if kind == "sets":
            np.testing.assert_allclose(shown["members"], heard, atol=1e-6)
        weights = [each.weight for each in explained.neighbors]
        found = [weight for _, weight in shown["neighbours"]]
        np.testing.assert_allclose(found, weights[: len(found)], atol=1e-6)
        assert all(0 <= i < n and i != int(item) for i, _ in shown["neighbours"])
    if kind == "sets":
        told = [(each["name"], each["weight"]) for each in data["members"]]
        assert told == [(each.name, each.weight) for each in explained.heard()]
        assert 0.98 < sum(weight for _, weight in told) <= 1 + 1e-9


def test_the_page_stays_small(crowd, tmp_path, monkeypatch):
    monkeypatch.setattr(explanation, "BYTES", 3000)
    why = page_of(crowd, tmp_path / "bytes")["why"]
    assert 1 < len(why) < 15
    assert len(json.dumps(why, separators=(",", ":"))) < 3100
    everything = page_of(crowd, tmp_path / "whole")["why"]
    monkeypatch.undo()
    assert len(page_of(crowd, tmp_path / "all")["why"]) == len(crowd.docket) > len(everything)


def test_blocks_of_items_are_explained_as_all_at_once(sets, tmp_path, monkeypatch):
    expected = page_of(sets, tmp_path / "one")["why"]
    monkeypatch.setattr(explanation, "_BLOCK", 7)
    assert page_of(sets, tmp_path / "many")["why"] == expected


def test_the_page_names_similar_items_behind_excluded_ones(sets, tmp_path):
    run = sets.decide(exclude("i0", "i5"))
    why = page_of(run, tmp_path / "run")["why"]
    assert not {"0", "5"} & set(why)
    for item, shown in why.items():
        expected = [int(each.name[1:]) for each in run.explain(f"i{item}").neighbors]
        assert [i for i, _ in shown["neighbours"]] == expected
