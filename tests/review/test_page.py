"""The page as a file: its summary, its encoding, what it does not hold."""

from __future__ import annotations

import base64
import hashlib
import html
import json
import re

import numpy as np
import pytest

from appellate import PLCPClassifier, SUREClassifier
from appellate._palette import DARK, LIGHT
from appellate.review import page_data, write_page
from appellate.review.page import _parts, pack, read_page, render_page, summarize, unpack_page
from tests.cli.tables import HOSTILE
from tests.review.dockets import make_docket

pytest.importorskip("jinja2")


@pytest.fixture(scope="module")
def docket():
    return make_docket(200, 6, truth=["class 0"] * 200)


def test_summary_counts(docket):
    summary = summarize(docket)
    json.dumps(summary)
    assert summary["upheld"] + summary["overturned"] == summary["contested"]
    assert summary["n"] == 200
    assert sum(count for _, count in summary["sizes"]) == 200
    assert sum(summary["histogram"]["after"]) == summary["contested"]
    changed = summary["overturned"]
    assert sum(row["lost"] for row in summary["classes"]["shown"]) == changed
    assert sum(row["gained"] for row in summary["classes"]["shown"]) == changed
    counts = [change["count"] for change in summary["changes"]["shown"]]
    assert sum(counts) + summary["changes"]["left"] == changed
    assert counts == sorted(counts, reverse=True)
    assert summary["contested"] + summary["single"] == 200
    assert summary["close"] == int((docket.margin[docket.candidates.sum(axis=1) > 1] < 0.1).sum())
    assert sum(count for *_, count in summary["reliability"]) == summary["contested"]
    assert summary["truth"]["verdict"] == pytest.approx(
        100 * np.mean(docket.verdict == 0), abs=0.1
    )


def test_excluded_rows_are_counted_apart(docket):
    out = [0, 3, int(docket.overturned.argmax())]
    whole, summary = summarize(docket), summarize(docket, dict.fromkeys(out, ""))
    assert (whole["excluded"], summary["excluded"]) == (0, 3)
    gone = int(docket.overturned[out].sum())
    single = int((~docket.contested)[out].sum())
    assert summary["overturned"] == whole["overturned"] - gone
    assert sum(row["lost"] for row in summary["classes"]["shown"]) == summary["overturned"]
    assert summary["upheld"] == whole["upheld"] - 3 + gone + single
    assert summary["truth"]["n"] == whole["truth"]["n"] - 3


def test_reviewed_rows_are_counted_apart(docket):
    over = int(docket.overturned.argmax())
    label = str(docket.class_names[docket.appeal[over]])
    whole, summary = summarize(docket), summarize(docket, {over: label})
    assert (whole["reviewed"], summary["reviewed"]) == (0, 1)
    assert summary["overturned"] == whole["overturned"] - 1
    assert summary["upheld"] == whole["upheld"]
    assert summary["truth"] == whole["truth"], "they were heard"


def test_reviewed_labels_are_compared_with_the_truth(docket):
    wrong = int(np.flatnonzero(docket.appeal != 0)[0])
    whole, summary = summarize(docket)["truth"], summarize(docket, {wrong: "class 0"})["truth"]
    assert summary["appeal"] == pytest.approx(whole["appeal"] + 0.5, abs=0.06)
    assert summary["verdict"] == whole["verdict"]


def test_summary_of_many_classes_leaves_some_out():
    summary = summarize(make_docket(2000, 40))
    assert len(summary["changes"]["shown"]) == 12
    assert summary["changes"]["left"] > 0
    assert summary["classes"]["hidden"] > 0


def test_rows_hold_candidate_entries_only(docket):
    data = page_data(docket, neighbors=np.zeros((200, 3), int), decisions={4: ("none", "")})
    packed = json.loads(json.dumps(pack(data)))
    labels, after = (unpack_page(packed[name]) for name in ("labels", "after"))
    assert len(labels) == len(after) == docket.candidates.sum()
    assert labels.dtype == "u1", "as small as the numbers allow"
    kept = docket.appeal_confidence[docket.candidates]
    np.testing.assert_allclose(after / 10_000, kept, atol=1e-4)
    np.testing.assert_array_equal(unpack_page(packed["history"])[-1], docket.appeal)
    assert packed["decisions"] == {"4": ["none", ""]}


@pytest.mark.parametrize("values", [[0, 255], [256], [70_000], [-1, 3], []])
def test_packing_loses_nothing(values):
    np.testing.assert_array_equal(unpack_page(pack(np.array(values, dtype=int))), values)


def test_a_page_is_read_back_as_it_was_written(docket, tmp_path):
    data = page_data(docket, title="</script>", texts=["<b>&amp;"] * 200)
    found = read_page(write_page(data, tmp_path / "d.html"))
    assert (found["title"], found["texts"][3]) == ("</script>", "<b>&amp;")
    assert found["summary"] == data["summary"]
    again = render_page(found)
    assert again == (tmp_path / "d.html").read_text(encoding="utf-8")
    (tmp_path / "old.html").write_text('<script id="data">{"n": 3}</script>')
    with pytest.raises(ValueError, match="not a review page of this version"):
        read_page(tmp_path / "old.html")


def test_answers_are_sorted_by_row(docket):
    answers = {"people": ["ann", "ben"], "row": [3, 0, 3], "person": [0, 1, 1], "label": [2, 4, 5]}
    found = page_data(docket, answers=answers)["answers"]
    assert found["starts"][:6].tolist() == [0, 1, 1, 1, 3, 3]
    assert (found["person"].tolist(), found["label"].tolist()) == ([1, 0, 1], [4, 2, 5])


def test_names_that_occur_twice_can_be_told_apart():
    data = page_data(make_docket(4, 2, ids=["a", "b", "a", 7]))
    assert data["ids"] == ["a #0", "b", "a #2", "7"]


def test_lists_and_numpy_numbers_do(docket):
    page = page_data(
        docket,
        neighbors=[[1, 2]] * 200,
        suspicion=[0.5] * 200,
        features=[{"name": "x", "importance": np.float64(0.5)}],
        annotators=[{"name": "ann", "answers": np.int64(3)}],
    )
    assert "0.50" in render_page(page)


def sentences(page):
    lead = re.search(r'<div class="lead">.*?<div id="curve">', page, re.S)[0]
    return " ".join(html.unescape(re.sub("<[^>]*>", " ", lead)).split())


def test_the_first_screen_says_what_changed_and_whether_to_trust_it(docket):
    plain = make_docket(200, 6)
    contested = int((plain.candidates.sum(axis=1) > 1).sum())
    changed = int(plain.overturned.sum())
    said = sentences(render_page(page_data(plain, expected_wrong=51.6, first="base alone")))
    assert f"{changed} of {contested} contested labels changed, compared with the first" in said
    assert f"{200 - contested} of 200 rows have one candidate" in said
    assert "correct" not in said, "no true label is known"
    baselines = [{"name": "majority vote", "accuracy": 0.912}, {"name": "any", "accuracy": 0.01}]
    page = page_data(docket, scores=baselines, warnings=["little signal"])
    said = sentences(render_page(page))
    assert "Compared with the true labels of 200 rows" in said
    assert "Majority vote is better: 91.2 %." in said
    assert "Any is better" not in said
    assert said.endswith("Note: little signal"), "advice comes last"


def test_the_parts_of_a_sum_are_kept_as_they_are(docket, tmp_path):
    one = {"labels": [0, 2], "parts": [{"name": "the features", "values": [0.125, -3.0000001]}],
           "neighbours": [[3, 0.25]]}  # fmt: skip
    page = page_data(docket, why=[one] + [None] * 199, command="appellate rectify t.csv")
    found = read_page(write_page(page, tmp_path / "d.html"))
    assert found["why"] == [one] + [None] * 199
    assert found["command"] == "appellate rectify t.csv"
    assert "why" not in page_data(docket)


def contrast(first, second):
    """The contrast ratio of two colours, from 1 to 21 (WCAG 2.2)."""
    high, low = sorted(map(luminance, (first, second)), reverse=True)
    return (high + 0.05) / (low + 0.05)


def luminance(colour):
    parts = (int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5))
    linear = [p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
    return sum(weight * p for weight, p in zip((0.2126, 0.7152, 0.0722), linear, strict=True))


def test_colours_can_be_told_apart():
    for palette in (LIGHT, DARK):
        for text in ("ink", "soft", "verdict", "appeal", "upheld", "truth", "good", "bad"):
            for back in ("paper", "ground", "mark", "warn"):
                assert contrast(palette[text], palette[back]) >= 4.5, (text, back)
        for back in ("paper", "ground", "mark"):
            assert contrast(palette["edge"], palette[back]) >= 3
        for filled in ("appeal", "overturned", "bad"):
            assert contrast(palette["paper"], palette[filled]) >= 4.5
        assert contrast(palette["verdict"], palette["appeal"]) >= 1.35
        assert palette["overturned"] == palette["appeal"]


def test_policy_names_script_and_style_by_hash(docket, tmp_path):
    page = docket.to_html(tmp_path / "d.html", title="t").read_text(encoding="utf-8")
    policy = html.unescape(re.search(r'Security-Policy" content="([^"]*)"', page)[1])
    for tag in ("script", "style"):
        body = re.search(rf"<{tag}>(.*?)</{tag}>", page, re.S)[1]
        digest = base64.b64encode(hashlib.sha256(body.encode()).digest()).decode()
        assert f"{tag}-src 'sha256-{digest}'" in policy
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    assert not re.search(r"\s(on\w+|style)=", page.split("<script")[0])
    assert "http" not in page.replace("http-equiv", "").replace("http://www.w3.org/2000/svg", "")
    assert [p.name for p in tmp_path.iterdir()] == ["d.html"]


def test_hostile_names_are_text():
    names = np.array([*HOSTILE[:11], "\ud800"], dtype=object)
    docket = make_docket(
        60, 12, class_names=names, ids=[f"{HOSTILE[i % 12]}{i}" for i in range(60)]
    )
    page = render_page(page_data(docket, title=HOSTILE[1], texts=[HOSTILE[8]] * 60))
    assert page.count("<script") == page.count("</script>") == 3
    assert "<img" not in page
    page.encode("utf-8")
    data = json.loads(re.search(r'id="data">(.*?)</script>', page, re.S)[1])
    assert data["classes"][:11] == list(HOSTILE[:11])


@pytest.mark.parametrize("options", [{"rounds": None, "ids": None}, {"truth": [None] * 60}])
def test_without_what_is_optional(options):
    assert 'id="data"' in render_page(page_data(make_docket(60, 3, **options)))


def test_nothing_changed_and_one_candidate():
    ones = np.eye(2)[[0, 1, 0]]
    docket = make_docket(
        3, 2, candidates=ones > 0, verdict_confidence=ones, appeal_confidence=ones,
        label_history=np.array([[0, 1, 0]] * 3), rounds=None, ids=None,
    )  # fmt: skip
    page = render_page(page_data(docket))
    assert "No label is contested." in sentences(page)


def test_from_python(tmp_path):
    X = [[0.0], [0.1], [0.2], [5.0], [5.1], [5.2]]
    y = ["cat|dog", "cat", "cat|<b>", "dog", "dog|<b>", "cat|dog"]
    model = PLCPClassifier(SUREClassifier(), keep_confidences=True).fit(X, y)
    docket = model.docket(output="docket")
    assert len(docket.rounds) == model.n_iter_
    assert list(docket.to_frame("dict")) == list(model.docket(output="dict"))
    assert docket.to_html(tmp_path / "d.html").stat().st_size > 10_000
    shown = docket._repr_html_()
    assert "Docket of 6 samples" in shown
    assert "<b>" not in shown
    assert PLCPClassifier(SUREClassifier()).fit(X, y).docket(output="docket").rounds is None


def test_without_jinja_the_extra_is_named(docket, tmp_path, monkeypatch):
    _parts.cache_clear()
    monkeypatch.setattr("appellate._text.find_spec", lambda name: None)
    with pytest.raises(ImportError, match=r"appellate\[report\]"):
        docket.to_html(tmp_path / "d.html")
    assert not list(tmp_path.iterdir())
