"""Views of the review page in a browser: figures, filters, addresses, windows, the end."""

from __future__ import annotations

import re
import threading

import numpy as np
import pytest
from scipy.stats import beta

from appellate.review import page_data, write_page
from appellate.review.server import DocketServer
from tests.review.conftest import SIZES
from tests.review.dockets import make_docket
from tests.review.test_browser import (
    as_url,
    explain,
    export,
    go,
    listed,
    make_rich,
    read_rows,
    reviewed,
    rich,
    shown_row,
)

playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
pytest.importorskip("jinja2")
pytestmark = pytest.mark.xdist_group("browser")
assert rich  # a fixture


def confidences(docket):
    """Confidence of the final labels, as the page keeps it."""
    sure = docket.appeal_confidence[np.arange(len(docket.candidates)), docket.appeal]
    return np.rint(sure * 10_000) / 10_000


def write_sets(path, n=300, l=5, suggested=20, **more):
    """Write a page of candidate sets with calibrated confidences."""
    docket = make_docket(n, l, share=0.6, kept=0.8, rounds=None)
    sure = confidences(docket)
    order = np.argsort(sure, kind="stable")
    options = {"suggested": order[:suggested].tolist(), "audit": order[: suggested // 4].tolist()}
    options |= {"expected_wrong": len(sure) - sure.sum(), "first": "base alone", "title": "sets"}
    write_page(page_data(docket, **(options | more)), path)
    return docket, sure, options["suggested"]


# -- overview -------------------------------------------------------------------------------


def test_the_headline_counts_correct_labels_and_what_review_adds(visit, tmp_path):
    _, sure, suggested = write_sets(tmp_path / "d.html")
    page = visit(as_url(tmp_path / "d.html"))
    gain = (1 - sure[suggested]).sum()
    assert page.locator("#headline h1").inner_text().split("\n") == [
        f"About {round(sure.sum())} of your 300 labels are correct.",
        f"Check 20 rows and it is about {round(sure.sum() + gain)}.",
    ]
    curve = page.locator(".curve").get_attribute("aria-label")
    left = 300 - sure.sum()
    assert f"now: {round(left)}" in curve
    assert f"20 rows: {round(left - gain)} left" in curve


def test_decisions_move_the_headline_and_the_curve(visit, tmp_path):
    _, sure, suggested = write_sets(tmp_path / "d.html")
    page = visit(as_url(tmp_path / "d.html", "review"))
    for _ in range(7):
        page.keyboard.press("a")
    go(page, "overview")
    now = sure.sum() + (1 - sure[suggested[:7]]).sum()
    title = page.locator("#headline h1").inner_text()
    assert f"About {round(now)} of your 300 labels are correct." in title
    assert "Check 13 rows" in title
    assert page.locator("#begin").inner_text().startswith("Continue review")
    page.keyboard.press("u")
    assert "Check 14 rows" in page.locator("#headline h1").inner_text()


def test_confidences_that_are_not_calibrated_promise_nothing(visit, tmp_path):
    docket = make_docket(80, 4)
    docket.to_html(tmp_path / "d.html")
    page = visit(as_url(tmp_path / "d.html"))
    contested = int(docket.contested.sum())
    title = page.locator("#headline").inner_text()
    assert f"{int(docket.overturned.sum())} of {contested} labels changed." in title
    assert "not calibrated" in title
    assert not page.locator("#curve").is_visible()
    assert page.locator("#accept-button").count() == 0


def test_too_high_confidences_are_told_where_true_labels_are_known(visit, tmp_path):
    n = 200
    sure = np.full((n, 2), [0.95, 0.05])
    shares = {"verdict_confidence": sure, "appeal_confidence": sure}
    docket = make_docket(
        n, 2, candidates=np.ones((n, 2), bool), label_history=np.zeros((2, n), int), rounds=None,
        truth=["class 0"] * 150 + ["class 1"] * 50, **shares,
    )  # fmt: skip
    write_page(page_data(docket, expected_wrong=10.0), tmp_path / "d.html")
    page = visit(as_url(tmp_path / "d.html"))
    assert page.locator("#too-sure").inner_text() == (
        "The confidences are too high: they expect 95.0 % of these rows to be correct, and "
        "75.0 % are."
    )


def test_a_bar_of_the_histogram_lists_its_rows(visit, tmp_path):
    _, sure, _ = write_sets(tmp_path / "d.html")
    page = visit(as_url(tmp_path / "d.html"), "desktop")
    columns = page.locator(".column")
    bins = columns.count()
    words = columns.evaluate_all("nodes => nodes.map((node) => node.ariaLabel)")
    rows = np.bincount(np.minimum(np.rint(sure * 10_000).astype(int) * bins // 10_000, bins - 1))
    told = [int(word.split(": ")[1].split()[0]) for word in words]
    assert told == rows.tolist() + [0] * (bins - len(rows))
    columns.nth(bins - 2).click()
    assert listed(page) == f"{told[-2]} of 300 rows"
    page.go_back()
    first, last = (columns.nth(k).bounding_box() for k in (bins - 4, bins - 2))
    page.mouse.move(first["x"] + 4, first["y"] + 100)
    page.mouse.down()
    page.mouse.move(last["x"] + 4, last["y"] + 100)
    page.mouse.up()
    assert listed(page) == f"{sum(told[-4:-1])} of 300 rows", "a drag lists a range"
    page.go_back()
    columns.first.focus()
    for _ in range(bins - 1):
        page.keyboard.press("ArrowRight")
    page.keyboard.press("Enter")
    assert listed(page) == f"{told[-1]} of 300 rows", "and so do the arrow keys"


def test_a_cell_of_the_matrix_lists_its_rows(visit, tmp_path):
    docket, *_ = write_sets(tmp_path / "d.html")
    page = visit(as_url(tmp_path / "d.html"))
    counts = np.zeros((5, 5), int)
    np.add.at(counts, (docket.appeal, docket.verdict), 1)
    cells = page.locator(".matrix tbody .cell").all_inner_texts()
    assert [int(cell or 0) for cell in cells] == counts.ravel().tolist()
    final, first = np.unravel_index((counts - np.diag(np.diag(counts))).argmax(), (5, 5))
    name = f"final label class {final}, first label class {first}: {counts[final, first]} row"
    page.get_by_role("button", name=name).click()
    assert listed(page) == f"{counts[final, first]} of 300 rows"
    assert page.locator("#filter-name").inner_text() == (
        f"First label class {first}, final label class {final}"
    )


OVERLAPS = """() => {
  const boxes = [...document.querySelectorAll(".column .number")].filter((n) => n.textContent)
    .map((n) => { const range = document.createRange(); range.selectNodeContents(n);
      return range.getBoundingClientRect(); });
  const card = document.getElementById("histogram").getBoundingClientRect();
  return boxes.flatMap((a, k) => [
    ...(a.left < card.left || a.right > card.right ? [["outside", k]] : []),
    ...boxes.slice(k + 1).filter((b) => a.left < b.right && b.left < a.right && a.top < b.bottom &&
      b.top < a.bottom).map((b) => [k, a.right - b.left])]); }"""


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("n", [300, 4000])
def test_counts_of_the_histogram_do_not_touch(visit, tmp_path, n, size):
    rng = np.random.default_rng(0)
    final = np.clip(rng.beta(5, 0.7, n), 0.21, 0.9999)
    sure = np.stack([final, 1 - final], axis=1)
    docket = make_docket(
        n, 2, candidates=np.ones((n, 2), bool), label_history=np.zeros((2, n), int), rounds=None,
        verdict_confidence=sure, appeal_confidence=sure,
    )  # fmt: skip
    write_page(page_data(docket, expected_wrong=10.0), tmp_path / "d.html")
    page = visit(as_url(tmp_path / "d.html"), size)
    numbers = page.locator(".column .number").all_inner_texts()
    assert sum(map(bool, numbers)) > 4
    assert page.evaluate(OVERLAPS) == []
    stands = page.locator(".column").last.evaluate(
        """node => node.querySelector(".fill").getBoundingClientRect().top
          - node.querySelector(".number").getBoundingClientRect().bottom"""
    )
    assert 0 <= stands < 6, "a number stands on its bar"


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("l", [10, 14])
def test_no_part_of_the_matrix_is_cut(visit, tmp_path, l, size):
    write_sets(tmp_path / "d.html", n=4000, l=l)
    page = visit(as_url(tmp_path / "d.html"), size)
    box = page.locator("#matrix .matrix-box")
    assert box.evaluate("node => node.scrollWidth - node.clientWidth") <= 0
    wide = page.locator("#matrix button.cell").evaluate_all(
        """nodes => nodes.map((node) => { const range = document.createRange();
          range.selectNodeContents(node);
          return range.getBoundingClientRect().width - node.getBoundingClientRect().width; })"""
    )
    assert max(wide) <= 0, "a number fits into its cell"
    shown = page.locator("#matrix thead th").count()
    assert 8 <= shown <= 12
    told = page.locator("#matrix > .note").last.inner_text()
    assert (f"The {shown} of {l} labels that are mixed up most." in told) == (shown < l)


def test_one_label_that_differs_is_one_label(visit, tmp_path):
    write_sets(tmp_path / "d.html", differing=1)
    page = visit(as_url(tmp_path / "d.html"))
    assert "1 label differs from the majority vote." in page.locator("#facts").inner_text()


def test_the_matrix_of_answers_counts_answers(rich, visit):
    page = visit(as_url(rich))
    data = make_rich()
    final = data["history"][-1]
    counts = np.zeros((6, 6), int)
    rows = np.repeat(np.arange(60), 3)
    np.add.at(counts, (final[rows], data["answers"]["label"]), 1)
    cells = page.locator("#matrix tbody .cell").all_inner_texts()
    assert [int(cell or 0) for cell in cells] == counts.ravel().tolist()
    page.locator("#matrix button.cell.other").first.click()
    r, c = np.argwhere((counts > 0) & ~np.eye(6, dtype=bool))[0]
    with_both = (final == r) & (data["answers"]["label"].reshape(60, 3) == c).any(axis=1)
    assert listed(page) == f"{int(with_both.sum())} of 60 rows"


def test_six_ways_in_with_their_counts(rich, visit, tmp_path):
    write_sets(tmp_path / "d.html")
    for path in (rich, tmp_path / "d.html"):
        page = visit(as_url(path))
        ways = page.locator(".way")
        assert ways.count() == 6
        for k in range(6):
            rows = int(ways.nth(k).locator("b").inner_text().replace(",", ""))
            if not rows:
                continue
            ways.nth(k).click()
            assert page.evaluate("document.documentElement.dataset.view") == "review"
            assert page.locator("#place").inner_text().endswith(f" of {rows}")
            page.go_back()


def test_batch_accept_tells_its_errors_and_is_undone_at_once(visit, tmp_path):
    _, sure, _ = write_sets(tmp_path / "d.html", suggested=0)
    page = visit(as_url(tmp_path / "d.html"))
    high = sure >= 0.9
    wrong = round((1 - sure[high]).sum())
    assert page.locator("#accept-button").inner_text() == (
        f"Accept {high.sum()} rows from 0.90 up about {wrong} wrong"
    )
    before = page.locator("#headline h1").inner_text().split("\n")[0]
    page.locator("#accept-button").click()
    page.fill("#accept-bar", "0.95")
    some = sure >= 0.95
    assert page.locator("#accept-tells").inner_text() == (
        f"{some.sum()} rows have a confidence of 0.95 or more. About "
        f"{round((1 - sure[some]).sum())} of these labels are wrong."
    )
    page.locator("#accept-go").click()
    assert reviewed(page) == some.sum()
    after = page.locator("#headline h1").inner_text().split("\n")[0]
    assert after == before, "nobody looked at them: as many are wrong as before"
    export(page, "decisions.csv", tmp_path / "d.csv")
    records = read_rows(tmp_path / "d.csv")
    assert {r["decision"] for r in records} == {"accept"}
    assert {r["key"][0] for r in records} == {"b"}
    page.reload()
    page.wait_for_selector("html[data-ready]")
    assert reviewed(page) == some.sum()
    assert page.locator("#headline h1").inner_text().split("\n")[0] == before
    page.locator("#accept-button").click()
    page.fill("#accept-bar", "0.5")
    page.locator("#accept-go").click()
    assert reviewed(page) == (sure >= 0.5).sum()
    page.locator("#undo").click()
    assert reviewed(page) == some.sum()


def test_rows_drawn_at_random_are_not_accepted_unseen(visit, tmp_path):
    docket = make_docket(100, 4, share=0.6, rounds=None)
    sure = confidences(docket)
    audit = np.flatnonzero(sure >= 0.9)[:3].tolist()
    data = page_data(docket, suggested=audit, audit=audit, expected_wrong=100 - sure.sum())
    write_page(data, tmp_path / "d.html")
    page = visit(as_url(tmp_path / "d.html"))
    page.locator("#accept-button").click()
    page.locator("#accept-go").click()
    assert reviewed(page) == (sure >= 0.9).sum() - 3
    go(page, "review")
    assert page.locator("#progress").inner_text() == "0 of 3"


# -- review ---------------------------------------------------------------------------------


def test_why_is_a_sum_that_is_shown(rich, visit):
    page = visit(as_url(rich, "review"))
    data = make_rich()
    found = data["why"][4]
    final = int(data["history"][-1][4])
    other = page.locator(".why option:checked").inner_text()
    mine, rest = (found["labels"].index(j) for j in (final, int(other.split()[1])))
    wanted = [part["values"][mine] - part["values"][rest] for part in found["parts"]]
    lines = page.locator(".why tr").evaluate_all(
        "rows => rows.map((row) => [row.cells[0].textContent, Number(row.dataset.value)])"
    )
    assert [name for name, _ in lines] == [*(p["name"] for p in found["parts"]), "together"]
    np.testing.assert_allclose([value for _, value in lines], [*wanted, sum(wanted)], atol=1e-12)
    after = {
        page.locator(".cands .name").nth(k).inner_text(): page.locator(".cands .share").nth(k)
        for k in range(2)
    }
    shares = [float(node.inner_text().split()[0]) for node in after.values()]
    assert sum(wanted) == pytest.approx(np.log(shares[0] / shares[1]), abs=0.1), "log odds"
    page.locator(".why select").select_option(index=1)
    assert page.locator(".why option:checked").inner_text() != other


@pytest.mark.parametrize("size", ["desktop", "laptop", "tablet", "upright"])
def test_why_is_in_view_with_many_candidates(visit, tmp_path, size):
    n, l = 40, 10
    docket = make_docket(n, l, share=1.0, rounds=None)
    rng = np.random.default_rng(0)
    why = [explain(docket, i, rng) for i in range(n)]
    data = page_data(docket, suggested=[3, 5], why=why, first="base alone", expected_wrong=9.0)
    write_page(data, tmp_path / "d.html")
    page = visit(as_url(tmp_path / "d.html", "review"), size)
    assert page.locator(".cands button").count() == l
    line = page.locator(".why tr").first.bounding_box()
    assert line["y"] + line["height"] <= page.locator(".actions").bounding_box()["y"] + 1
    page.keyboard.press("9")
    page.keyboard.press("k")
    assert page.locator('.cands [aria-pressed="true"] kbd').inner_text() == "9"


@pytest.mark.parametrize("size", SIZES)
def test_weights_of_similar_rows_are_whole(visit, tmp_path, size):
    docket = make_docket(40, 4, rounds=None)
    rng = np.random.default_rng(0)
    why = [explain(docket, i, rng) for i in range(40)]
    for each in why:
        each["neighbours"] = [[row, 0.21 - 0.01 * row] for row in range(6)]
    square = "data:image/gif;base64,R0lGODlhAQABAIAAAAAA/wAAACwAAAAAAQABAAACAkQBADs="
    data = page_data(docket, suggested=[30], why=why, images=[square] * 40)
    write_page(data, tmp_path / "d.html")
    page = visit(as_url(tmp_path / "d.html", "review"), size)
    assert "weights" in page.locator("#near-title").inner_text()
    tags = page.locator(".near .tag")
    assert tags.all_inner_texts() == ["0.21", "0.20", "0.19", "0.18", "0.17", "0.16"]
    assert max(tags.evaluate_all("nodes => nodes.map((n) => n.scrollWidth - n.clientWidth)")) <= 0


def test_a_line_of_an_annotator_opens_the_annotator(rich, visit):
    page = visit(as_url(rich, "review"))
    row = shown_row(page)
    page.get_by_role("link", name="ann's answer").click()
    assert page.evaluate("location.hash") == "#people&person=ann"
    assert page.locator("#person h2").inner_text() == "Answers of ann"
    assert page.locator("#people-rows .chosen .who").inner_text() == "ann"
    page.go_back()
    assert shown_row(page) == row


def test_the_annotator_of_an_address_is_in_view(visit, tmp_path):
    people = [f"w{k}" for k in range(80)]
    answers = {"people": people, "row": np.arange(80), "person": np.arange(80),
               "label": np.zeros(80, int)}  # fmt: skip
    known = [{"name": name, "answers": 1, "agreement": 1.0, "reliability": 0.2 + k / 100}
             for k, name in enumerate(people)]  # fmt: skip
    write_sets(tmp_path / "d.html", answers=answers, annotators=known)
    page = visit(as_url(tmp_path / "d.html", "people&person=w70"))
    list_, row = (page.locator(s).bounding_box() for s in ("#people-list", ".chosen"))
    assert list_["y"] < row["y"] < list_["y"] + list_["height"] - row["height"]


def test_no_why_without_the_numbers(visit, tmp_path):
    write_sets(tmp_path / "d.html")
    page = visit(as_url(tmp_path / "d.html", "review"))
    assert page.locator(".cands button").count() > 1
    assert page.locator(".why").count() == 0


def test_buttons_stay_where_they_are(rich, visit):
    for size in ("desktop", "tablet", "phone"):
        page = visit(as_url(rich, "review&show=all"), size)
        places = set()
        for _ in range(12):
            boxes = [page.locator(f"#act-{key}").bounding_box() for key in "onsm"]
            first = page.locator(".cands button").first.bounding_box()
            places.add((*((box["x"], box["y"]) for box in boxes), first["y"]))
            page.keyboard.press("a")
        assert len(places) == 1, size


def test_focus_returns_to_where_it_was(rich, visit):
    page = visit(as_url(rich, "review&show=all"))
    page.locator('.cands [data-key="1"]').focus()
    before = shown_row(page)
    page.keyboard.press("Enter")
    assert shown_row(page) != before
    assert page.evaluate("document.activeElement.dataset.key") == "1"
    page.locator("#act-n").focus()
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.id") == "act-n"
    page.locator("#act-m").click()
    page.keyboard.press("Escape")
    assert page.evaluate("document.activeElement.id") == "act-m"
    page.locator("#act-o").click()
    page.keyboard.type("other")
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.id") == "act-o"


def test_skipped_rows_come_back_and_then_the_end(visit, tmp_path):
    _, _, suggested = write_sets(tmp_path / "d.html", suggested=8)
    page = visit(as_url(tmp_path / "d.html", "review"))
    page.keyboard.press("s")
    page.keyboard.press("n")
    page.keyboard.press("2")
    for _ in range(5):
        page.keyboard.press("a")
    assert "1 row left, which you skipped." in page.locator("#end").inner_text()
    page.get_by_role("button", name="Look at the 1 skipped").click()
    assert shown_row(page) == f"item {suggested[0]}"
    page.keyboard.press("a")
    end = page.locator("#end").inner_text()
    assert "8 rows reviewed: 1 label changed." in end
    assert "1 row not usable." in end
    # Two rows were drawn at random; the second one is not usable, which is a wrong label.
    low, high = (beta.ppf(q, 1.5, 1.5) for q in (0.025, 0.975))
    assert (
        f"Of 2 rows drawn at random, 1 was correct: between {round(100 * low)} and "
        f"{round(100 * high)} % of all labels are (95 % interval)."
    ) in end
    assert page.locator("#command").inner_text() == 'run = run.decide("decisions.csv")'
    page.keyboard.press("u")
    assert shown_row(page) == f"item {suggested[0]}", "Undo leads back into the queue"


@pytest.mark.parametrize(("hits", "rows"), [(19, 20), (20, 20), (0, 7), (450, 500), (3, 4)])
def test_the_interval_of_the_audit_is_that_of_the_run(visit, tmp_path, hits, rows):
    n = rows + 3
    docket = make_docket(n, 3, candidates=np.ones((n, 3), bool), rounds=None)
    decided = {
        i: ("accept", str(docket.class_names[docket.appeal[i]])) if i < hits else ("none", "")
        for i in range(rows)
    }
    options = {"audit": range(rows), "suggested": range(rows), "decisions": decided}
    write_page(page_data(docket, expected_wrong=1.0, **options), tmp_path / "d.html")
    page = visit(as_url(tmp_path / "d.html"))
    low, high = (beta.ppf(q, hits + 0.5, rows - hits + 0.5) for q in (0.025, 0.975))
    text = page.locator("#overview-audit").inner_text()
    assert f"between {round(100 * low)} and {round(100 * high)} % of all labels" in text


def test_the_end_lists_what_changed(visit, tmp_path):
    write_sets(tmp_path / "d.html", suggested=12)
    page = visit(as_url(tmp_path / "d.html", "review"))
    changed = []
    for key in "22n" + "a" * 9:
        name, was = shown_row(page), page.locator(".cands .final .name").inner_text()
        now = page.locator(".cands .name").nth(1).inner_text() if key == "2" else was
        page.keyboard.press(key)
        if now != was:
            changed.append((name, was, now))
    assert page.locator("#pace").inner_text().startswith("2 labels changed")
    assert page.locator("#end h1").inner_text() == "12 rows reviewed: 2 labels changed."
    lines = page.locator("#end .moved li").all_inner_texts()
    for (name, was, now), line in zip(changed, lines, strict=True):
        assert line.split() == [*name.split(), "was", *was.split(), *now.split()]
    page.locator("#end .moved button").nth(1).click()
    assert shown_row(page) == changed[1][0]


def test_the_end_copies_the_command_that_runs_again(rich, visit):
    page = visit(as_url(rich, "review"), permissions=["clipboard-read", "clipboard-write"])
    for _ in range(4):
        page.keyboard.press("a")
    page.locator("#copy").click()
    copied = page.evaluate("navigator.clipboard.readText()")
    assert copied == "appellate rectify t.csv --out o --decisions o/decisions.csv"
    assert page.evaluate("document.activeElement.id") == "copy"


def test_minutes_left_follow_the_pace(visit, tmp_path):
    write_sets(tmp_path / "d.html", suggested=100)
    page = visit(as_url(tmp_path / "d.html", "review"))
    assert "min" not in page.locator("#pace").inner_text(), "not known yet"
    page.evaluate(
        "() => { const now = Date.now; window.shift = 0; Date.now = () => now() + shift; }"
    )
    for _ in range(6):
        page.evaluate("() => { window.shift += 12000; }")
        page.keyboard.press("a")
    assert "about 19 min left at your pace" in page.locator("#pace").inner_text()


def test_undo_can_be_reached_on_a_phone(rich, visit):
    page = visit(as_url(rich, "review"), "phone", has_touch=True)
    first = shown_row(page)
    page.locator(".cands button").first.tap()
    assert (reviewed(page), shown_row(page) == first) == (1, False)
    undo = page.locator("#undo").bounding_box()
    assert undo["y"] + undo["height"] <= 844
    page.locator("#undo").tap()
    assert (reviewed(page), shown_row(page)) == (0, first)
    cands = page.locator(".cands button").nth(1).bounding_box()
    assert cands["y"] + cands["height"] < 844, "candidates are on the first screen"


def test_matches_of_a_search_are_marked_in_the_text(rich, visit):
    page = visit(as_url(rich, "review&q=text%20of%201"))
    assert page.locator(".text mark").inner_text() == "text of 1"
    assert page.locator(".q mark").count() > 3
    assert page.locator("#queue-name").inner_text() == "“text of 1”"


def test_a_decision_touches_one_item_of_the_storage(visit, tmp_path):
    write_sets(tmp_path / "d.html", suggested=0)
    page = visit(as_url(tmp_path / "d.html", "review"))
    for _ in range(30):
        page.keyboard.press("a")
    page.evaluate("""() => { window.calls = [];
      for (const name of ["getItem", "setItem", "removeItem", "key"]) {
        const real = Storage.prototype[name];
        Storage.prototype[name] = function (...given) {
          calls.push(name);
          return real.apply(this, given);
        };
      } }""")
    page.keyboard.press("a")
    page.keyboard.press("u")
    page.keyboard.press("2")
    assert page.evaluate("calls") == ["setItem"] * 3
    assert page.evaluate("localStorage.length") == 31, "one item per row"
    assert page.locator("#progress").inner_text() == "31 of 300"


# -- annotators -----------------------------------------------------------------------------


def count_mistakes(data, k):
    final, rows = data["history"][-1], np.repeat(np.arange(60), 3)
    mine = data["answers"]["person"] == k
    counts = np.zeros((6, 6), int)
    np.add.at(counts, (final[rows[mine]], data["answers"]["label"][mine]), 1)
    return counts


def test_the_least_reliable_annotator_comes_first(rich, visit):
    page = visit(as_url(rich, "people"))
    data = make_rich()
    assert page.locator(".who").all_inner_texts() == ["cleo", "ben", "ann"]
    row = page.locator("#people-rows tr").first.inner_text()
    assert "50 %" in row
    assert "20 to 75 %" in row
    assert page.locator("#people-title").inner_text() == (
        "1 of 3 annotators is clearly below 80 %; none gave fewer than ten answers."
    )
    counts = count_mistakes(data, 2)
    wrong = counts - np.diag(np.diag(counts))
    found = page.locator(".mistake").first.inner_text().replace("\u00a0", " ")
    said, true, times, of = map(
        int, re.fullmatch(r"said class (\d) for class (\d), (\d+) of (\d+)", found).groups()
    )
    assert (times, of) == (wrong.max(), counts[true].sum())
    assert wrong[true, said] == times


def test_an_annotator_has_a_matrix_and_rows(rich, visit):
    page = visit(as_url(rich, "people"))
    data = make_rich()
    page.get_by_role("button", name="ben").click()
    assert page.evaluate("location.hash") == "#people&person=ben"
    assert page.evaluate("document.activeElement.textContent") == "ben"
    cells = page.locator("#person tbody .cell").all_inner_texts()
    counts = count_mistakes(data, 1)
    assert [int(cell or 0) for cell in cells] == counts.ravel().tolist()
    r, c = np.argwhere(counts > 0)[0]
    page.locator("#person button.cell").first.click()
    assert listed(page) == f"{counts[r, c]} of 60 rows"
    page.go_back()
    page.get_by_role("link", name="List the 60 rows").click()
    assert listed(page) == "60 of 60 rows"
    page.go_back()
    assert "Answers of ben" in page.locator("#person").inner_text()


def test_without_annotators_there_is_no_such_view(visit, tmp_path):
    write_sets(tmp_path / "d.html")
    page = visit(as_url(tmp_path / "d.html", "people"))
    assert not page.locator("nav [data-view=people]").is_visible()
    assert page.locator("#view-overview").is_visible()


# -- labels ---------------------------------------------------------------------------------


def test_labels_are_counted(visit, tmp_path):
    docket, sure, _ = write_sets(tmp_path / "d.html")
    page = visit(as_url(tmp_path / "d.html", "labels"), "desktop")
    for row in page.locator("#facets tr").all():
        name, rows, moves, wrong = (cell.inner_text() for cell in row.locator("th, td").all())
        j = int(name.split()[1])
        mine, was = docket.appeal == j, docket.verdict == j
        assert int(rows) == mine.sum()
        assert moves == f"+{(mine & ~was).sum()} \N{MINUS SIGN}{(was & ~mine).sum()}"
        assert float(wrong) == pytest.approx((1 - sure[mine]).sum(), abs=0.51)


# -- addresses ------------------------------------------------------------------------------


def test_back_returns_to_the_row_of_a_step_made_just_before(rich, visit):
    page = visit(as_url(rich, "review"))
    page.evaluate("""() => {
        for (const key of ["a", "a", "j"])
            document.body.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true }));
        window.left = document.getElementById("panel").textContent;
        document.querySelector("nav [data-view=overview]").click();
    }""")
    assert page.locator("#view-overview").is_visible()
    page.go_back()
    assert page.locator("#view-review").is_visible()
    assert page.evaluate("document.getElementById('panel').textContent === left")


def test_views_filters_and_rows_are_in_the_address(rich, visit):
    page = visit(as_url(rich))
    go(page, "labels")
    page.locator("#facets .facet").first.click()
    label = page.evaluate("decodeURIComponent(location.hash)")
    assert re.fullmatch(r"#labels&label=class \d", label)
    rows = listed(page)
    page.locator(".r").nth(2).click()
    assert re.search(r"#review&label=class%20\d&row=item%20\d+$", page.url)
    row, address = shown_row(page), page.url
    page.go_back()
    assert (listed(page), page.locator("#view-labels").is_visible()) == (rows, True)
    page.go_back()
    assert listed(page) == "60 rows"
    page.go_back()
    assert page.locator("#view-overview").is_visible()
    other = visit(address)
    assert shown_row(other) == row, "an address can be sent"
    other.keyboard.press("j")
    other.keyboard.press("j")
    last = shown_row(other).replace(" ", "%20")
    other.wait_for_url(re.compile(f"row={last}$"))
    other.go_back()
    assert other.url == "about:blank", "steps from row to row are not kept"


@pytest.mark.parametrize(
    "hash_",
    ["nowhere", "review&row=none", "labels&show=x&label=y&order=z", "labels&low=a&high=-1",
     "review&show=pair", "people&person=nobody", "labels&q=%E0%A4%A", "&&==", "review&said=q"],
)  # fmt: skip
def test_addresses_that_mean_nothing_show_a_view(rich, visit, hash_):
    page = visit(as_url(rich, hash_))
    assert page.locator(".view:visible").count() == 1


# -- two windows ----------------------------------------------------------------------------


def test_two_windows_of_a_file_see_each_other(rich, browser):
    context = browser.new_context()
    one, other = context.new_page(), context.new_page()
    for page in (one, other):
        page.goto(as_url(rich, "review"))
        page.wait_for_selector("html[data-ready]")
    one.keyboard.press("a")
    playwright.expect(other.locator("#progress")).to_have_text("1 of 4")
    assert other.locator(".q.decided").count() == 1
    other.keyboard.press("u")
    playwright.expect(one.locator("#progress")).to_have_text("0 of 4")
    context.close()


def test_two_windows_of_a_server_see_each_other(browser, tmp_path):
    write_sets(tmp_path / "docket.html")
    with DocketServer(tmp_path) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        contexts = [browser.new_context() for _ in range(2)]
        try:
            pages = []
            for context in contexts:
                pages.append(context.new_page())
                pages[-1].goto(server.address())
                pages[-1].wait_for_selector("html[data-ready]")
                go(pages[-1], "review")
            one, other = pages
            for key in "aan":
                one.keyboard.press(key)
            playwright.expect(other.locator("#progress")).to_have_text("3 of 20", timeout=10_000)
            assert other.locator(".q.decided").count() == 3
            one.keyboard.press("u")
            playwright.expect(other.locator("#progress")).to_have_text("2 of 20", timeout=10_000)
        finally:
            for context in contexts:
                context.close()
            server.shutdown()
            thread.join()


def test_many_rows_accepted_together_reach_the_server(visit, tmp_path):
    _, sure, _ = write_sets(tmp_path / "docket.html", n=1500, suggested=0)
    with DocketServer(tmp_path) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        try:
            page = visit(server.address(), allowed=("net::ERR",))
            page.locator("#accept-button").click()
            page.locator("#accept-go").click()
            page.get_by_text("All saved in decisions.csv.").wait_for()
            found = server.decisions.records()
            assert len(found) == (sure >= 0.9).sum() > 200
            page.locator("#undo").click()
            page.get_by_text("All saved in decisions.csv.").wait_for()
            playwright.expect(page.locator("#progress")).to_have_text("0 of 1,500 reviewed")
        finally:
            server.shutdown()
            thread.join()


def test_reliability_does_not_lie_over_its_number_on_a_phone(rich, visit):
    page = visit(as_url(rich, "people"), "phone")
    gaps = page.locator("#people-rows tr").evaluate_all(
        """rows => rows.map((row) => row.querySelector(".wide + .num").getBoundingClientRect().left
          - row.querySelector(".range-box").getBoundingClientRect().right)"""
    )
    assert len(gaps) == 3
    assert min(gaps) >= 4


@pytest.mark.parametrize("size", ["upright", "phone"])
def test_options_are_never_broken_after_a_hyphen(visit, tmp_path, size):
    """At every indent an option is on one line; the text around it is broken."""
    hint = "name the columns with --model-probabilities or <b>--image-model</b>"
    notes = ["x" * k + " " + hint for k in range(1, 60, 4)]
    command = (
        "appellate rectify birds.csv " + "--model-probabilities 'p_*' --image-model m.onnx " * 3
    )
    write_sets(tmp_path / "d.html", n=2, suggested=0, warnings=notes, command=command.strip())
    page = visit(as_url(tmp_path / "d.html"), size)
    assert page.locator(".advice").first.inner_text() == f"Note: {notes[0]}"
    lines = "each => [each.textContent, each.getClientRects().length]"
    found = page.locator(".advice .option").evaluate_all(f"all => all.map({lines})")
    assert found == [["--model-probabilities", 1], ["--image-model", 1]] * len(notes)
    heights = page.locator(".advice").evaluate_all("all => all.map(each => each.clientHeight)")
    assert max(heights) > min(heights)
    go(page, "review")
    page.keyboard.press("a")
    page.keyboard.press("a")
    code = page.locator("#command")
    assert code.inner_text() == command.strip()
    found = code.locator(".option").evaluate_all(f"all => all.map({lines})")
    assert found == [["--model-probabilities", 1], ["--image-model", 1]] * 3


@pytest.mark.parametrize("size", ["tablet", "upright"])
def test_names_of_annotators_and_choices_are_not_cut_on_a_tablet(visit, tmp_path, size):
    people = [f"worker{k}" for k in range(40)]
    answers = {"people": people, "row": np.arange(40), "person": np.arange(40),
               "label": np.zeros(40, dtype=int)}  # fmt: skip
    known = [{"name": name, "answers": 1, "reliability": 0.5, "low": 0.2, "high": 0.9}
             for name in people]  # fmt: skip
    write_sets(tmp_path / "d.html", n=40, answers=answers, annotators=known)
    page = visit(as_url(tmp_path / "d.html", "people"), size)
    lines = page.locator(".who span").evaluate_all(
        "all => all.map(e => e.getClientRects().length)"
    )
    assert lines == [1] * 40
    go(page, "labels")
    cut = """all => all.filter(e => e.offsetParent).map(e => {
      const test = document.createElement("canvas").getContext("2d"), style = getComputedStyle(e);
      test.font = style.font;
      return e.clientWidth - test.measureText(e.selectedOptions[0].text).width;
    })"""
    spare = page.locator(".controls select").evaluate_all(cut)
    assert len(spare) >= 3
    assert min(spare) > 40, "the text, the arrow and the space around them"
