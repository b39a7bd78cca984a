"""The review page in a real browser: what it shows, its keys, its lists, sizes and colours."""

from __future__ import annotations

import csv
import json
import threading

import numpy as np
import pytest

from appellate.cli.app import run
from appellate.review import page_data, write_page
from appellate.review.decisions import neutralize, parse, restore
from appellate.review.server import DocketServer
from tests.cli.tables import HOSTILE, read_rows, write_table
from tests.review.conftest import SIZES
from tests.review.dockets import make_docket

playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
pytest.importorskip("jinja2")
pytestmark = pytest.mark.xdist_group("browser")


@pytest.fixture(scope="module")
def ran(tmp_path_factory):
    home = tmp_path_factory.mktemp("browser")
    write_table(home / "t.csv", n=300)
    options = ["--candidates", "labels", "--id", "item", "--truth", "truth", "--base", "sure"]
    arguments = ["rectify", str(home / "t.csv"), *options]
    assert run([*arguments, "--out", str(home / "o")]) == 0
    return home, arguments


@pytest.fixture(scope="module")
def rich(tmp_path_factory):
    """A page with everything that a page can have, and its data."""
    home = tmp_path_factory.mktemp("rich")
    write_page(make_rich(), home / "docket.html")
    return home / "docket.html"


def explain(docket, i, rng):
    """Parts that add up to the log of the confidence, and similar rows."""
    labels = np.flatnonzero(docket.candidates[i])
    log = np.log(docket.appeal_confidence[i, labels])
    parts = rng.normal(size=(2, len(labels)))
    parts = [*parts, log - parts.sum(axis=0)]
    names = ("the features", "ann's answer", "annotators err together")
    return {
        "labels": labels.tolist(),
        "parts": [
            {"name": name, "values": part.tolist()}
            | ({"annotator": 0} if name == "ann's answer" else {})
            for name, part in zip(names, parts, strict=True)
        ],
        "neighbours": [[(i + 7) % len(docket.candidates), 0.5]],
    }


def make_rich(n=60, **more):
    rng = np.random.default_rng(3)
    docket = make_docket(n, 6, share=0.7, kept=0.6, truth=[f"class {i % 6}" for i in range(n)])
    people = ["ann", "ben", "cleo"]
    answers = {
        "people": people,
        "row": np.repeat(np.arange(n), 3),
        "person": np.tile(np.arange(3), n),
        "label": [
            rng.choice(np.flatnonzero(docket.candidates[i])) for i in range(n) for _ in "abc"
        ],
    }
    square = "data:image/gif;base64,R0lGODlhAQABAIAAAAAA/wAAACwAAAAAAQABAAACAkQBADs="
    return page_data(
        docket,
        title="everything",
        neighbors=(np.arange(n)[:, None] + [1, 2, 3]) % n,
        texts=[f"text of {i}\nwith more" for i in range(n)],
        images=[square] * n,
        groups=[f"group {i // 3}" for i in range(n)],
        suggested=[4, 9, 14, 19],
        audit=[14],
        answers=answers,
        annotators=[
            {"name": name, "answers": n, "agreement": 0.8, "reliability": 0.9 - 0.2 * k,
             "low": 0.8 - 0.3 * k, "high": 0.95 - 0.1 * k}
            for k, name in enumerate(people)
        ],
        votes=rng.integers(6, size=n),
        suspicion=np.where(np.arange(n) % 10 == 4, 0.7, 0.05),
        features=[{"name": "width", "kind": "number", "importance": 0.7}, {"name": "height"}],
        scores=[{"name": "majority vote", "accuracy": 0.99}],
        warnings=["the features say little"],
        expected_wrong=float((1 - docket.appeal_confidence.max(axis=1)).sum()),
        first="base alone",
        why=[explain(docket, i, rng) for i in range(n)],
        command="appellate rectify t.csv --out o --decisions o/decisions.csv",
        **more,
    )  # fmt: skip


def as_url(path, view=""):
    return path.resolve().as_uri() + (f"#{view}" if view else "")


def shown_row(page):
    return page.locator("#item h2").inner_text()


def reviewed(page):
    return page.evaluate(
        "() => Number(document.getElementById('progress').textContent.split(' ')[0])"
    )


def listed(page):
    return page.locator("#count").inner_text()


def go(page, view):
    page.locator(f"nav [data-view={view}]").click()


def export(page, name, path):
    page.keyboard.press("e")
    with page.expect_download() as download:
        page.get_by_role("button", name=name, exact=True).click()
    download.value.save_as(path)
    page.keyboard.press("Escape")
    return path


def test_review_five_rows_by_keyboard_and_feed_them_back(ran, visit, tmp_path):
    home, arguments = ran
    page = visit(as_url(home / "o" / "docket.html", "review"))
    chosen = {}
    for key in ("2", "a", "1", "n", "a"):  # the fifth row, drawn at random, may be certain
        row = shown_row(page)
        wanted = page.locator(".cands .name").nth(1 if key == "2" else 0).inner_text()
        chosen[row] = "" if key == "n" else wanted
        page.keyboard.press(key)
    assert reviewed(page) == 5
    export(page, "decisions.csv", tmp_path / "decisions.csv")
    decided = {r["id"]: r["label"] for r in read_rows(tmp_path / "decisions.csv")}
    assert decided == chosen

    page.reload()
    page.wait_for_selector("html[data-ready]")
    assert reviewed(page) == 5, "kept by the browser"
    assert shown_row(page) not in chosen, "at the first row not reviewed"

    more = ["--decisions", str(tmp_path / "decisions.csv"), "--out", str(tmp_path / "again")]
    assert run([*arguments, *more]) == 0
    after = {r["item"]: r for r in read_rows(tmp_path / "again" / "rectified.csv")}
    assert {i: after[i]["label"] for i in chosen} == chosen
    page = visit(as_url(tmp_path / "again" / "docket.html"))
    assert reviewed(page) == 5


def test_decisions_by_number_on_an_edited_table_are_refused(visit, tmp_path, capsys):
    write_table(tmp_path / "t.csv", n=40)
    lines = (tmp_path / "t.csv").read_text().splitlines(keepends=True)
    unnamed = "".join(line.partition(",")[2] for line in lines)  # without the names of items
    (tmp_path / "t.csv").write_text(unnamed)
    arguments = ["rectify", str(tmp_path / "t.csv"), "--candidates", "labels", "--base", "knn"]
    assert run([*arguments, "--out", str(tmp_path / "o")]) == 0
    page = visit(as_url(tmp_path / "o" / "docket.html", "review"))
    page.keyboard.press("a")
    export(page, "decisions.jsonl", tmp_path / "d.jsonl")
    more = ["--decisions", str(tmp_path / "d.jsonl"), "--out", str(tmp_path / "p")]
    assert run([*arguments, *more]) == 0
    content = (tmp_path / "t.csv").read_text().splitlines(keepends=True)
    (tmp_path / "t.csv").write_text("".join([content[0], *content[2:]]))
    capsys.readouterr()
    assert run([*arguments, *more]) == 2
    assert "another version of the table" in capsys.readouterr().err


def test_a_label_outside_the_candidates_goes_round(visit, tmp_path):
    write_table(tmp_path / "t.csv", n=40)
    arguments = ["rectify", str(tmp_path / "t.csv"), "--candidates", "labels", "--id", "item"]
    arguments += ["--base", "knn"]
    assert run([*arguments, "--out", str(tmp_path / "o")]) == 0
    page = visit(as_url(tmp_path / "o" / "docket.html", "review"))
    row = shown_row(page)
    page.keyboard.press("o")
    page.keyboard.type("zebra")
    page.keyboard.press("Enter")
    assert page.locator("#queue", has_text="✓ zebra").is_visible()
    export(page, "labels.csv", tmp_path / "labels.csv")
    (found,) = [r for r in read_rows(tmp_path / "labels.csv") if r["id"] == row]
    assert (found["label"], found["outcome"], found["confidence"]) == ("zebra", "reviewed", "1")
    export(page, "decisions.csv", tmp_path / "d.csv")
    more = ["--decisions", str(tmp_path / "d.csv"), "--out", str(tmp_path / "p")]
    assert run([*arguments, *more]) == 0
    after = {r["item"]: r for r in read_rows(tmp_path / "p" / "rectified.csv")}
    assert (after[row]["label"], after[row]["outcome"]) == ("zebra", "reviewed")


def test_search_filter_and_sort(ran, visit):
    home, _ = ran
    page = visit(as_url(home / "o" / "docket.html", "labels"))
    docket = read_rows(home / "o" / "docket.csv")
    assert listed(page) == "300 rows"
    assert not page.locator("#clear").is_visible()
    page.select_option("#show", "changed")
    changed = sum(r["outcome"] == "changed" for r in docket)
    assert listed(page) == f"{changed} of 300 rows"
    page.locator("#clear").click()
    page.fill("#search", "i29")
    playwright.expect(page.locator("#count")).to_have_text("11 of 300 rows")
    assert page.locator(".r mark").all_inner_texts() == ["i29"] * 11
    page.fill("#search", "nothing like this")
    playwright.expect(page.locator("#empty")).to_be_visible()
    page.locator("#empty-clear").click()
    cat = page.locator(".facet", has_text="cat")
    cat.click()
    cats = sum("cat" in (r["first_label"], r["label"]) for r in docket)
    assert listed(page) == f"{cats} of 300 rows"
    assert page.evaluate("document.activeElement.className") == "facet", "focus stays"
    cat.click()
    close = sum(float(r["margin"]) < 0.0999 and int(r["n_candidates"]) > 1 for r in docket)
    page.select_option("#show", "close")
    assert abs(int(listed(page).split()[0]) - close) <= 1
    page.select_option("#show", "")
    page.keyboard.press("End")
    page.get_by_role("button", name="confidence", exact=True).click()
    found = [float(t) for t in page.locator(".r .meter").all_inner_texts()]
    assert found == sorted(found)
    assert found[0] == min(round(float(r["confidence"]), 2) for r in docket)
    assert page.locator("#table").evaluate("node => node.scrollTop") == 0
    assert page.locator('[aria-sort="ascending"]').inner_text() == "confidence"
    page.keyboard.press("?")
    assert page.locator("#help").is_visible()
    page.keyboard.press("Escape")
    assert not page.locator("#help").is_visible()


def test_keys_do_what_they_say(ran, visit):
    home, _ = ran
    page = visit(as_url(home / "o" / "docket.html", "review&show=all"))
    page.keyboard.press("u")
    assert page.locator("#said").inner_text() == "Nothing to undo."
    first = shown_row(page)
    page.keyboard.press("a")
    second = shown_row(page)
    page.keyboard.press("a")
    assert (reviewed(page), len({first, second, shown_row(page)})) == (2, 3)
    page.keyboard.press("u")
    assert (reviewed(page), shown_row(page)) == (1, second), "the last one, and there we are"
    page.keyboard.press("k")
    page.keyboard.press("u")
    assert (reviewed(page), shown_row(page)) == (0, first), "this row's own"
    page.keyboard.press("s")
    assert shown_row(page) == second, "skipped"
    page.keyboard.press("n")
    assert page.locator("#queue", has_text="✗ not usable").is_visible()
    page.keyboard.press("/")
    page.keyboard.type("a1")
    assert page.locator("#search").input_value() == "a1"
    assert reviewed(page) == 1, "no letter of a search decides"
    for name in ("show", "order"):
        page.locator(f"#{name}").focus()
        before = page.locator(f"#{name}").input_value()
        page.keyboard.press("j")
        assert page.locator(f"#{name}").input_value() == before, "a select eats no key"
        assert page.evaluate("document.activeElement.id") == "table"


def test_a_similar_row_opens_without_wiping_filters(rich, visit):
    page = visit(as_url(rich, "review"))
    start = shown_row(page)
    page.locator(".near button").first.click()
    assert shown_row(page) != start
    assert page.evaluate("document.activeElement.id") == "item"
    assert page.locator("#queue-name").inner_text() == "Suggested"
    page.locator(".near button").first.click()
    page.keyboard.press("b")
    page.locator(".back").click()
    assert shown_row(page) == start
    page.locator(".near button").first.click()
    page.keyboard.press("a")
    assert shown_row(page) == start, "a decision there comes back here"


def test_a_row_shows_all_that_is_known_of_it(rich, visit):
    page = visit(as_url(rich, "review"))
    data = make_rich()
    assert shown_row(page) == "item 4"
    panel = page.locator("#panel").inner_text().replace("\u00a0", " ")
    of_ann = data["answers"]["label"][12]
    assert f"class {of_ann}" in page.locator(".cands li", has_text="ann 90").inner_text()
    for text in ("said so: ", "Group: group 1", "None of the answers is true: 70 %",
                 "Tick: first labels (base alone)"):  # fmt: skip
        assert text in panel, text
    assert page.locator(".text").text_content() == "text of 4\nwith more"
    assert page.locator(".q .q-text").first.inner_text().startswith("text of 4")
    assert page.locator(".q img.thumb").count() == 4
    assert "text of 11" in page.locator(".near button").inner_text(), "a line of its text"
    picture = page.locator(".picture")
    picture.evaluate("node => node.decode()")
    assert picture.bounding_box()["height"] > 130, "small images are enlarged"


def test_the_true_label_is_hidden_until_it_is_asked_for(rich, visit):
    page = visit(as_url(rich, "review"))
    assert "True label" not in page.locator("#view-review").inner_text()
    assert "true label," not in page.locator(".cands").inner_text()
    page.keyboard.press("t")
    assert "True label: class 4" in page.locator("#panel").inner_text()
    page.keyboard.press("t")
    assert "True label" not in page.locator("#view-review").inner_text()


def test_the_chart_ends_where_the_bars_end(rich, visit):
    page = visit(as_url(rich, "review"))
    page.locator("summary").click()
    last = page.locator(".rounds path").evaluate_all(
        "nodes => nodes.map((node) => Number(node.getAttribute('d').split(/[ML ]/).at(-1)))"
    )
    shares = page.locator(".cands .share").all_inner_texts()
    ends = sorted(112 - float(text.split()[0]) for text in shares)
    np.testing.assert_allclose(sorted(last), ends, atol=0.1)
    names = page.locator(".rounds text.c-appeal, .rounds text.c-verdict, .rounds text.c-rival")
    assert sorted(names.all_text_contents()) == sorted(
        page.locator(".cands .name").all_inner_texts()
    )


LINE = "parseFloat(getComputedStyle(document.documentElement).getPropertyValue('--card'))"
TALLEST = """Math.max(...[...document.querySelectorAll('.card-item')].map((card) =>
  card.getBoundingClientRect().bottom - card.parentNode.getBoundingClientRect().top))"""


@pytest.mark.parametrize("size", SIZES)
def test_no_card_is_taller_than_its_line(rich, visit, size):
    page = visit(as_url(rich, "labels"), size)
    page.keyboard.press("g")
    assert page.locator(".card-item").count() > 3
    assert page.evaluate(TALLEST) <= page.evaluate(LINE)


def test_gallery(rich, visit):
    page = visit(as_url(rich, "labels"))
    page.keyboard.press("g")
    across = page.locator(".cards").first.locator(".card-item").count()
    assert across > 2
    page.locator("#table").focus()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowLeft")
    place = page.evaluate(
        "[...document.querySelectorAll('.card-item')].findIndex(c => c.ariaSelected === 'true')"
    )
    assert place == across - 1
    page.keyboard.press("Enter")
    page.keyboard.press("a")
    page.go_back()
    assert page.locator(".card-item .done").count() == 1
    page.locator("#gallery").click()
    assert page.locator(".r").count() > 3


def test_import_and_export_go_round(rich, visit, tmp_path):
    page = visit(as_url(rich, "review"))
    page.keyboard.press("m")
    page.keyboard.type("blurred; =1")
    page.get_by_role("button", name="Save").click()
    for key in ("a", "n", "2", "o"):
        page.keyboard.press(key)
    page.keyboard.type("-1 new; label")
    page.keyboard.press("Enter")
    files = {
        name: export(page, name, tmp_path / name).read_bytes()
        for name in ("decisions.csv", "decisions.jsonl", "labels.csv", "labels.jsonl")
    }
    found = parse(files["decisions.csv"], "it")
    as_json = parse(files["decisions.jsonl"], "it")
    keep = ("id", "decision", "label", "candidates", "data", "note")
    assert [[r[k] for k in keep] for r in found] == [[r[k] for k in keep] for r in as_json]
    assert {r["decision"] for r in found} >= {"accept", "none"}
    assert {r["id"]: r["note"] for r in found if r["note"]} == {"item 4": "blurred; =1"}
    labels = [json.loads(line) for line in files["labels.jsonl"].decode().splitlines()]
    assert (
        len(labels) == len(list(csv.reader(files["labels.csv"].decode().splitlines()))) - 1 == 60
    )
    assert sum(row["outcome"] in ("reviewed", "excluded") for row in labels) == 4

    semicolons = "\n".join(
        ";".join(f'"{cell}"' for cell in row)
        for row in csv.reader(files["decisions.csv"].decode().splitlines())
    )
    semicolons = semicolons.encode("utf-8-sig")
    other = visit(as_url(rich))
    for name, content in [("d.csv", semicolons), ("d.jsonl", files["decisions.jsonl"])]:
        (tmp_path / name).write_bytes(content)
        other.keyboard.press("e")
        other.set_input_files("#import", tmp_path / name)
        playwright.expect(other.locator("#imported")).to_contain_text("Imported")
        other.keyboard.press("Escape")
        assert reviewed(other) == 4
    assert "4 were here already" in other.locator("#said").inner_text()
    (tmp_path / "bad.csv").write_text("a,b\n1,2\n")
    other.keyboard.press("e")
    other.set_input_files("#import", tmp_path / "bad.csv")
    playwright.expect(other.locator("#imported")).to_contain_text("cannot be imported")
    assert reviewed(other) == 4


def test_fifty_thousand_rows(visit, tmp_path):
    n = 50_000
    neighbors = np.random.default_rng(0).integers(n, size=(n, 5))
    make_docket(n).to_html(tmp_path / "d.html", neighbors=neighbors, title="large")
    page = visit(as_url(tmp_path / "d.html", "labels"))
    assert listed(page) == "50,000 rows"
    assert page.locator(".r").count() < 60
    page.locator("#table").focus()
    page.keyboard.press("End")
    assert page.locator('[aria-selected="true"]').get_attribute("aria-rowindex") == "50001"
    assert page.locator(".r").count() < 60
    page.fill("#search", "item 49999")
    playwright.expect(page.locator("#count")).to_have_text("1 of 50,000 rows")
    page.locator("#clear").click()
    page.evaluate("window.dispatchEvent(new Event('beforeprint'))")
    assert page.locator("#paper tbody tr").count() == 5000
    assert "first 5,000 of 50,000 rows" in page.locator("#paper p").text_content()


def test_hostile_content_shows_as_text(visit, tmp_path):
    names = np.array(HOSTILE[:12], dtype=object)
    ids = [f"{HOSTILE[i % 12]}{i}" for i in range(48)]
    images = ["http://127.0.0.1:9/x.png", "//127.0.0.1:9/x.png", "javascript:alert(1)",
              "file://host/x.png", "", ""]  # fmt: skip
    make_docket(48, 12, class_names=names, ids=ids).to_html(
        tmp_path / "d.html", title=HOSTILE[0], texts=list(ids), images=images * 8,
        groups=ids, warnings=[HOSTILE[0]], features=[{"name": HOSTILE[1]}],
    )  # fmt: skip
    page = visit(as_url(tmp_path / "d.html", "review&show=all&order=table"))
    assert HOSTILE[0] in page.locator("#title").inner_text()
    for i in range(12):
        assert page.locator("#item .text").text_content() == ids[i]
        page.keyboard.press("1")
    for view in ("overview", "labels"):
        go(page, view)
    export(page, "decisions.csv", tmp_path / "decisions.csv")
    with (tmp_path / "decisions.csv").open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert [restore(r["id"]) for r in rows] == ids[:12]
    assert {restore(r["label"]) for r in rows} <= set(HOSTILE)
    assert not any(cell[:1] in ("=", "@") for row in rows for cell in row.values())


def test_the_page_and_python_neutralise_alike(visit, tmp_path):
    values = [
        *HOSTILE[2:9],
        "-1.5",
        "-1,5",
        "'-1.5",
        "+",
        "+1e5",
        "''=x",
        "\t",
        "\uff1dx",
        "1-2",
        "'tis",
        ".5",
        "-x",
    ]
    n = len(values)
    make_docket(n, 2, ids=values).to_html(tmp_path / "d.html")
    page = visit(as_url(tmp_path / "d.html"))
    export(page, "labels.csv", tmp_path / "labels.csv")
    with (tmp_path / "labels.csv").open(newline="", encoding="utf-8") as file:
        assert [row["id"] for row in csv.DictReader(file)] == [neutralize(v) for v in values]


def test_images_and_texts_next_to_the_page(visit, tmp_path):
    from PIL import Image

    (tmp_path / "data").mkdir()
    Image.new("RGB", (8, 6), "teal").save(tmp_path / "data" / "a #1%.png")
    extra = {"photo": "a #1%.png", "caption": "a\nteal <b>square</b>"}
    write_table(tmp_path / "data" / "t.csv", n=20, extra=lambda _: extra)
    arguments = ["rectify", str(tmp_path / "data" / "t.csv"), "--candidates", "labels"]
    arguments += ["--base", "sure", "--image", "photo", "--text", "caption"]
    assert run([*arguments, "--out", str(tmp_path / "deep" / "o")]) == 0
    address = as_url(tmp_path / "deep" / "o" / "docket.html", "review")
    page = visit(address, elsewhere=as_url(tmp_path / "data"))
    picture = page.locator(".picture")
    picture.evaluate("node => node.decode()")
    assert picture.evaluate("node => node.naturalWidth") == 8
    assert page.locator(".text").text_content() == extra["caption"]


def test_served_images_next_to_the_table(visit, tmp_path, capsys):
    from PIL import Image

    (tmp_path / "pics").mkdir()
    Image.new("RGB", (8, 6), "teal").save(tmp_path / "pics" / "a #1%.png")
    cells = ["pics/a #1%.png"] * 18 + ["pics/gone.png", "https://127.0.0.1:9/x.png"]
    write_table(tmp_path / "t.csv", n=20, extra=lambda i: {"photo": cells[i]})
    arguments = ["rectify", str(tmp_path / "t.csv"), "--candidates", "labels", "--base", "knn"]
    assert run([*arguments, "--image", "photo", "--out", str(tmp_path / "o")]) == 0
    notes = capsys.readouterr().err
    assert "1 of 19 image files do not exist, e.g. 'pics/gone.png'" in notes
    assert "1 images are web addresses, which the review page does not open" in notes
    with DocketServer(tmp_path / "o") as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        try:
            page = visit(server.address(), allowed=("404 (Not Found)", "net::ERR"))
            page.evaluate("location.hash = '#review&show=all&order=table'")
            picture = page.locator(".picture")
            picture.evaluate("node => node.decode()")
            assert picture.evaluate("node => node.naturalWidth") == 8
            page.keyboard.press("End")
            assert "stored elsewhere" in page.locator("#item").inner_text()
        finally:
            server.shutdown()
            thread.join()


def test_excluded_and_reviewed_rows_are_not_unchanged(visit, tmp_path):
    docket = make_docket(40, 4)
    row, other = np.flatnonzero(~docket.overturned)[:2].tolist()
    decided = str(docket.class_names[docket.appeal[other]])
    docket.to_html(tmp_path / "d.html", decisions={row: ("none", ""), other: ("accept", decided)})
    page = visit(as_url(tmp_path / "d.html"))
    facts = page.locator("#facts").inner_text()
    assert "An earlier review decided 1 row and excluded 1." in facts
    go(page, "labels")
    page.select_option("#show", "done")
    assert page.locator(f"#r-{row} .labels").inner_text().endswith("\N{EN DASH}")
    page.locator(f"#r-{row}").click()
    assert "earlier review excluded this row" in page.locator("#panel .says").inner_text()
    page.keyboard.press("u")
    page.keyboard.press("j")
    page.keyboard.press("u")
    go(page, "labels")
    for name, word in ((row, "excluded"), (other, "reviewed")):
        page.fill("#search", f"item {name}")
        chip = page.locator(f"#r-{name} .chip")
        playwright.expect(chip).to_have_text(word)  # until the next run
    page.locator("#clear").click()
    page.select_option("#show", "unchanged")
    free = docket.contested.copy()
    free[[row, other]] = False
    unchanged = int((free & ~docket.overturned).sum())
    assert listed(page) == f"{unchanged} of 40 rows", "that could change"


# -- sizes, keyboard, paper -----------------------------------------------------------------

IN_VIEW = """() => [...document.querySelectorAll(".r")].filter((row) => {
  const box = row.getBoundingClientRect();
  const list = document.getElementById("table").getBoundingClientRect();
  const foot = document.getElementById("status").getBoundingClientRect().top;
  return box.top >= list.top + document.getElementById("head").offsetHeight - 1 &&
    box.bottom <= Math.min(list.bottom, foot) + 1; }).length"""
VIEWS = ("overview", "review", "people", "labels")


@pytest.mark.parametrize(
    ("size", "rows"), [("desktop", 14), ("laptop", 9), ("tablet", 10), ("phone", 8)]
)
def test_rows_in_view_on_the_first_screen_of_the_labels(size, rows, ran, rich, visit):
    home, _ = ran
    for path in (home / "o" / "docket.html", rich):
        page = visit(as_url(path, "labels"), size)
        assert page.evaluate(IN_VIEW) >= rows


@pytest.mark.parametrize(
    ("scheme", "size"),
    [*(("light", size) for size in SIZES), ("dark", "laptop"), ("dark", "phone")],
)
def test_every_view_fits_and_axe_finds_nothing(scheme, size, rich, visit):
    page = visit(as_url(rich), size, color_scheme=scheme)
    for view in VIEWS:
        go(page, view)
        assert page.locator(f"#view-{view}").is_visible()
        assert page.locator(".view:visible").count() == 1
        wide = page.evaluate("document.documentElement.scrollWidth")
        assert wide <= SIZES[size][0], "nothing is wider than the screen"
        assert violations(page) == [], view
    ground = page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert (sum(map(int, ground[4:-1].split(","))) < 200) == (scheme == "dark")


def violations(page):
    axe = pytest.importorskip("axe_playwright_python.sync_playwright")
    found = axe.Axe().run(page).response["violations"]
    return [(rule["id"], [node["html"][:200] for node in rule["nodes"]]) for rule in found]


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing_in_dialogs_and_after_decisions(rich, visit, scheme):
    page = visit(as_url(rich, "review"), color_scheme=scheme)
    page.keyboard.press("t")
    for key in ("a", "n"):
        page.keyboard.press(key)
    page.locator(".near button").first.click()
    assert violations(page) == []
    for key, name in (("?", "help"), ("e", "files"), ("o", "other"), ("m", "note")):
        page.keyboard.press(key)
        assert page.locator(f"#{name}").is_visible()
        assert violations(page) == []
        page.keyboard.press("Escape")
    page.keyboard.press("b")
    for key in ("a", "a"):
        page.keyboard.press(key)
    assert page.locator("#end").is_visible()
    assert violations(page) == []
    go(page, "overview")
    page.locator("#accept-button").click()
    assert violations(page) == []
    page.keyboard.press("Escape")
    page.keyboard.press("/")
    page.keyboard.type("nothing at all")
    playwright.expect(page.locator("#empty")).to_be_visible()
    assert violations(page) == []


def test_targets_are_44_pixels(rich, visit):
    for size in ("laptop", "phone"):
        page = visit(as_url(rich), size, has_touch=size == "phone")
        for view in VIEWS:
            go(page, view)
            small = page.evaluate(
                """() => [...document.querySelectorAll("button, input, select, .r, .q, .way")]
                  .filter((n) => n.offsetParent && !n.closest(".head, .matrix, .histogram, #ask"))
                  .filter((n) => Math.min(n.offsetHeight, n.offsetWidth) < 43.5)
                  .map((n) => n.outerHTML.slice(0, 120))"""
            )
            assert small == [], (size, view)
            tiny = page.evaluate(
                """() => [...document.querySelectorAll(".matrix button, .column, #ask button")]
                  .filter((n) => n.offsetParent && Math.min(n.offsetHeight, n.offsetWidth) < 24)
                  .map((n) => n.outerHTML.slice(0, 120))"""
            )
            assert [each for each in tiny if "column" not in each] == [], (size, view)


def test_keyboard_only_from_first_to_last(rich, visit):
    page = visit(as_url(rich))
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.className") == "skip"
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.id") == "main"
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.id") == "begin"
    page.keyboard.press("Enter")
    assert page.evaluate("document.documentElement.dataset.view") == "review"
    seen = set()
    for _ in range(40):
        page.keyboard.press("Tab")
        seen.add(
            page.evaluate("(n => n.dataset.key || n.id || n.className)(document.activeElement)")
        )
    assert {"1", "2", "o", "n", "s", "m", "text", "queue"} <= seen
    for _ in range(4):
        page.keyboard.press("a")
    assert page.locator("#progress").inner_text() == "4 of 4"
    assert page.locator("#end").is_visible()


def test_roles_and_one_live_region(ran, visit):
    home, _ = ran
    page = visit(as_url(home / "o" / "docket.html", "labels"))
    grid = page.get_by_role("grid", name="Rows")
    assert grid.get_attribute("aria-rowcount") == "301"
    active = grid.get_attribute("aria-activedescendant")
    assert page.locator(f"#{active}").get_attribute("aria-selected") == "true"
    assert page.locator("[aria-live], [role=status], [role=alert]").count() == 1
    go(page, "review")
    active = page.locator("#queue").get_attribute("aria-activedescendant")
    assert page.locator(f"#{active}").get_attribute("aria-selected") == "true"


def test_forced_colours_show_the_selected_row(rich, visit):
    for view, row in (("labels", ".r"), ("review", ".q")):
        page = visit(as_url(rich, view), forced_colors="active")
        style = page.locator(f'{row}[aria-selected="true"]').evaluate(
            "node => getComputedStyle(node).outlineStyle"
        )
        assert style == "solid"


def test_paper_has_all_rows_in_light_colours(ran, visit):
    home, _ = ran
    page = visit(as_url(home / "o" / "docket.html"), color_scheme="dark")
    page.emulate_media(media="print", color_scheme="dark")
    page.evaluate("window.dispatchEvent(new Event('beforeprint'))")
    assert page.locator("#paper tbody tr").count() == 300
    assert "300 of 300 rows" in page.locator("#paper p").inner_text()
    assert page.locator("#paper thead").evaluate("n => getComputedStyle(n).display") == (
        "table-header-group"
    )
    assert not page.locator("#controls").is_visible()
    ink = page.evaluate("getComputedStyle(document.body).color")
    assert sum(map(int, ink[4:-1].split(","))) < 200
    page.evaluate("window.dispatchEvent(new Event('afterprint'))")
    assert page.locator("#paper tr").count() == 0
