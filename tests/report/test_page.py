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
from appellate.report.data import encode_rows, summarize
from tests.cli.tables import HOSTILE
from tests.report.dockets import make_docket

pytest.importorskip("jinja2")


@pytest.fixture(scope="module")
def docket():
    return make_docket(200, 6, truth=["class 0"] * 200)


def test_summary_counts(docket):
    summary = summarize(docket)
    json.dumps(summary)
    assert summary["upheld"] + summary["overturned"] == summary["n"] == 200
    assert sum(count for _, count in summary["sizes"]) == 200
    assert sum(summary["histogram"]["after"]) == summary["contested"]
    changed = summary["overturned"]
    assert sum(row["lost"] for row in summary["classes"]["shown"]) == changed
    assert sum(row["gained"] for row in summary["classes"]["shown"]) == changed
    assert np.sum(summary["confusion"]["table"]) + summary["confusion"]["left_out"] == changed
    assert summary["truth"]["verdict"] == pytest.approx(
        100 * np.mean(docket.verdict == 0), abs=0.1
    )


def test_excluded_rows_are_counted_apart(docket):
    out = [0, 3, int(docket.overturned.argmax())]
    whole, summary = summarize(docket), summarize(docket, out)
    assert (whole["excluded"], summary["excluded"]) == (0, 3)
    gone = int(docket.overturned[out].sum())
    assert summary["overturned"] == whole["overturned"] - gone
    assert sum(row["lost"] for row in summary["classes"]["shown"]) == summary["overturned"]
    assert summary["upheld"] == whole["upheld"] - 3 + gone
    assert summary["truth"]["n"] == whole["truth"]["n"] - 3


def test_reviewed_rows_are_counted_apart(docket):
    over = int(docket.overturned.argmax())
    whole, summary = summarize(docket), summarize(docket, [], [over])
    assert (whole["reviewed"], summary["reviewed"]) == (0, 1)
    assert summary["overturned"] == whole["overturned"] - 1
    assert summary["upheld"] == whole["upheld"]
    assert summary["truth"] == whole["truth"], "they were heard"


def test_summary_of_many_classes_leaves_some_out():
    summary = summarize(make_docket(2000, 40))
    assert len(summary["confusion"]["names"]) == 12
    assert summary["confusion"]["left_out"] > 0
    assert summary["classes"]["hidden"] > 0


def test_rows_hold_candidate_entries_only(docket):
    rows = encode_rows(docket, neighbors=np.zeros((200, 3), int), decisions={4: ("none", -1)})
    labels = np.frombuffer(base64.b64decode(rows["labels"]), "<u4")
    after = np.frombuffer(base64.b64decode(rows["after"]), "<u2")
    assert len(labels) == len(after) == docket.candidates.sum()
    kept = docket.appeal_confidence[docket.candidates]
    np.testing.assert_allclose(after / 10_000, kept, atol=1e-4)
    history = np.frombuffer(base64.b64decode(rows["history"]), "<u4")
    np.testing.assert_array_equal(history.reshape(docket.label_history.shape)[-1], docket.appeal)
    assert rows["decisions"] == {"4": ["none", -1]}


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
    from appellate.report import render_page

    page = render_page(docket, title=HOSTILE[1], texts=[HOSTILE[8]] * 60)
    assert page.count("<script") == page.count("</script>") == 2
    assert "<img" not in page
    page.encode("utf-8")
    data = json.loads(re.search(r'id="data">(.*?)</script>', page, re.S)[1])
    assert data["classes"][:11] == list(HOSTILE[:11])


@pytest.mark.parametrize("options", [{"rounds": None, "ids": None}, {"truth": [None] * 60}])
def test_without_what_is_optional(options):
    from appellate.report import render_page

    assert 'id="data"' in render_page(make_docket(60, 3, **options))


def test_nothing_overturned_and_one_candidate():
    from appellate.report import render_page

    ones = np.eye(2)[[0, 1, 0]]
    docket = make_docket(
        3, 2, candidates=ones > 0, verdict_confidence=ones, appeal_confidence=ones,
        label_history=np.array([[0, 1, 0]] * 3), rounds=None, ids=None,
    )  # fmt: skip
    page = render_page(docket)
    assert "No verdict was overturned." in page


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
    monkeypatch.setattr("appellate.report.find_spec", lambda name: None)
    with pytest.raises(ImportError, match=r"appellate\[report\]"):
        docket.to_html(tmp_path / "d.html")
    assert not list(tmp_path.iterdir())
