"""The page in a real browser: what it shows, its keys, its lists, whom it leaves out."""

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


def make_rich(n=60, **more):
    rng = np.random.default_rng(3)
    docket = make_docket(n, 6, share=0.7, kept=0.6, truth=[f"class {i % 6}" for i in range(n)])
    people = ["ann", "ben", "cleo"]
    answers = {
        "people": people,
        "row": np.repeat(np.arange(n), 3),
        "person": np.tile(np.arange(3), n),
        "label": rng.integers(6, size=3 * n),
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
             "confusion": ("class 0", "class 1", 7) if k else None}
            for k, name in enumerate(people)
        ],
        votes=rng.integers(6, size=n),
        suspicion=np.where(np.arange(n) % 10 == 4, 0.7, 0.05),
        features=[{"name": "width", "kind": "number", "importance": 0.7}, {"name": "height"}],
        scores=[{"name": "majority vote", "accuracy": 0.99}],
        warnings=["the features say little"],
        **more,
    )  # fmt: skip


def as_url(path):
    return path.resolve().as_uri()


def selected(page):
    return page.locator('[role=row][aria-selected="true"] .whole').text_content()


def reviewed(page):
    return int(page.locator("#progress").inner_text().split()[0])


def test_review_five_rows_by_keyboard_and_feed_them_back(ran, visit, tmp_path):
    home, arguments = ran
    page = visit(as_url(home / "o" / "docket.html"))
    chosen = {}
    for key in ("2", "a", "1", "n", "a"):  # the fifth row, drawn at random, may be certain
        row = selected(page)
        wanted = page.locator(".cands .name").nth(1 if key == "2" else 0).inner_text()
        chosen[row] = "" if key == "n" else wanted
        page.keyboard.press(key)
    assert reviewed(page) == 5
    page.keyboard.press("e")
    with page.expect_download() as download:
        page.get_by_role("button", name="decisions.csv").click()
    download.value.save_as(tmp_path / "decisions.csv")
    decided = {r["id"]: r["label"] for r in read_rows(tmp_path / "decisions.csv")}
    assert decided == chosen

    page.reload()
    page.wait_for_selector("html[data-ready]")
    assert reviewed(page) == 5, "kept by the browser"
    assert selected(page) not in chosen, "at the first row not reviewed"

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
    page = visit(as_url(tmp_path / "o" / "docket.html"))
    page.keyboard.press("a")
    page.keyboard.press("e")
    with page.expect_download() as download:
        page.get_by_role("button", name="decisions.jsonl").click()
    download.value.save_as(tmp_path / "d.jsonl")
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
    page = visit(as_url(tmp_path / "o" / "docket.html"))
    row = selected(page)
    page.keyboard.press("o")
    page.keyboard.type("zebra")
    page.keyboard.press("Enter")
    assert page.locator("text=✓ zebra").first.is_visible()
    page.keyboard.press("e")
    with page.expect_download() as download:
        page.get_by_role("button", name="labels.csv").click()
    download.value.save_as(tmp_path / "labels.csv")
    (found,) = [r for r in read_rows(tmp_path / "labels.csv") if r["id"] == row]
    assert (found["label"], found["outcome"], found["confidence"]) == ("zebra", "reviewed", "1")
    with page.expect_download() as download:
        page.get_by_role("button", name="decisions.csv").click()
    download.value.save_as(tmp_path / "d.csv")
    more = ["--decisions", str(tmp_path / "d.csv"), "--out", str(tmp_path / "p")]
    assert run([*arguments, *more]) == 0
    after = {r["item"]: r for r in read_rows(tmp_path / "p" / "rectified.csv")}
    assert (after[row]["label"], after[row]["outcome"]) == ("zebra", "reviewed")


def test_search_filter_and_sort(ran, visit):
    home, _ = ran
    page = visit(as_url(home / "o" / "docket.html"))
    docket = read_rows(home / "o" / "docket.csv")
    count = page.locator("#count")
    assert count.inner_text() == "300 rows"
    assert not page.locator("#clear").is_visible()
    page.select_option("#show", "overturned")
    overturned = sum(r["outcome"] == "overturned" for r in docket)
    assert count.inner_text() == f"{overturned} of 300 rows"
    page.locator("#clear").click()
    page.fill("#search", "i29")
    playwright.expect(count).to_have_text("11 of 300 rows")
    page.fill("#search", "nothing like this")
    playwright.expect(page.locator("#empty")).to_be_visible()
    page.locator("#empty-clear").click()
    page.select_option("#label", label="cat")
    cats = sum("cat" in (r["verdict"], r["appeal"]) for r in docket)
    assert count.inner_text() == f"{cats} of 300 rows"
    page.select_option("#label", "")
    close = sum(float(r["margin"]) < 0.0999 and int(r["n_candidates"]) > 1 for r in docket)
    page.select_option("#show", "close")
    assert abs(int(count.inner_text().split()[0]) - close) <= 1
    page.select_option("#show", "")
    page.keyboard.press("End")
    page.get_by_role("button", name="margin").click()
    shown = [float(t) for t in page.locator(".r .num").all_inner_texts()]
    assert shown == sorted(shown)
    assert shown[0] == min(round(float(r["margin"]), 2) for r in docket)
    assert page.locator("#table").evaluate("node => node.scrollTop") == 0
    assert page.locator('[aria-sort="ascending"]').inner_text() == "margin"
    page.keyboard.press("?")
    assert page.locator("#help").is_visible()
    page.keyboard.press("Escape")
    assert not page.locator("#help").is_visible()


def test_keys_do_what_they_say(ran, visit):
    home, _ = ran
    page = visit(as_url(home / "o" / "docket.html"))
    page.keyboard.press("u")
    assert page.locator("#said").inner_text() == "Nothing to undo."
    first = selected(page)
    page.keyboard.press("a")
    second = selected(page)
    page.keyboard.press("a")
    assert (reviewed(page), len({first, second, selected(page)})) == (2, 3)
    page.keyboard.press("u")
    assert (reviewed(page), selected(page)) == (1, second), "the last one, and there we are"
    page.keyboard.press("k")
    page.keyboard.press("u")
    assert (reviewed(page), selected(page)) == (0, first), "this row's own"

    page.select_option("#show", "suggested")
    assert page.evaluate("document.activeElement.id") == "table"
    for name in ("show", "label", "order"):
        page.locator(f"#{name}").focus()
        before = page.locator(f"#{name}").input_value()
        page.keyboard.press("a")
        assert page.locator(f"#{name}").input_value() == before
        assert page.evaluate("document.activeElement.id") == "table"
    assert reviewed(page) == 3, "a select eats no review key"
    page.select_option("#show", "open")
    assert page.locator("#count").inner_text() == "297 of 300 rows"
    gone = selected(page)
    page.keyboard.press("n")
    assert page.locator("#count").inner_text() == "296 of 300 rows"
    assert selected(page) != gone
    page.keyboard.press("/")
    page.keyboard.type("a1")
    assert page.locator("#search").input_value() == "a1"
    assert reviewed(page) == 4


def test_a_neighbour_opens_without_wiping_filters(rich, visit):
    page = visit(as_url(rich))
    page.select_option("#show", "suggested")
    start = page.locator("#detail h2").inner_text()
    page.locator(".near button").first.click()
    assert page.locator("#detail h2").inner_text() != start
    assert page.locator("#show").input_value() == "suggested"
    assert page.locator("#count").inner_text() == "4 of 60 rows"
    page.locator(".near button").first.click()
    page.keyboard.press("b")
    page.locator(".back").click()
    assert page.locator("#detail h2").inner_text() == start
    page.locator(".near button").nth(1).click()
    page.keyboard.press("a")
    assert page.locator("#detail h2").inner_text() == start, "a decision there comes back here"
    assert reviewed(page) == 1


def test_buttons_of_the_first_screen(rich, visit):
    page = visit(as_url(rich))
    data = make_rich()
    for name, rows in (("suggested", 4), ("suspected", 6), ("close", data["summary"]["close"])):
        page.locator(f"[data-show={name}]").click()
        assert page.locator("#count").inner_text() == f"{rows} of 60 rows"
        assert page.evaluate("document.activeElement.id") == "table"
    change = data["summary"]["changes"]["shown"][0]
    page.locator(".changes button").first.click()
    assert page.locator("#count").inner_text() == f"{change['count']} of 60 rows"
    assert (
        page.locator("#show option:checked").inner_text() == f"{change['from']} → {change['to']}"
    )


def test_a_row_shows_all_that_is_known_of_it(rich, visit):
    page = visit(as_url(rich))
    data = make_rich()
    assert page.locator("#detail h2").inner_text() == "item 4"
    detail = page.locator("#detail").inner_text()
    first = data["answers"]["label"][12]
    for text in (f"ann class {first} 90% reliable", f"Majority: class {data['votes'][4]}",
                 "Group: group 1", "None of the answers: 70%",
                 "Learned from width (70.0%), height", "Truth: class 4"):  # fmt: skip
        assert text in detail, text
    assert page.locator(".text").text_content() == "text of 4\nwith more"
    assert page.locator(".r .snippet").first.inner_text().startswith("text of 4")
    assert page.locator(".r img.thumb").count() > 3
    assert page.locator(".near img.thumb").count() == 3
    picture = page.locator(".picture")
    picture.evaluate("node => node.decode()")
    assert picture.bounding_box()["height"] > 130, "small pictures are enlarged"
    summary = page.locator("#numbers").inner_text()
    for text in ("said class 1 for class 0 (7)", "Confidence and truth", "majority vote", "width"):
        assert text in summary, text


def test_the_chart_ends_where_the_bars_end(rich, visit):
    page = visit(as_url(rich))
    last = page.locator(".rounds path").evaluate_all(
        "nodes => nodes.map((node) => Number(node.getAttribute('d').split(/[ML ]/).at(-1)))"
    )
    shares = page.locator(".cands .share:nth-child(2)").all_inner_texts()
    ends = sorted(112 - float(text.split()[-1].rstrip("%")) for text in shares)
    np.testing.assert_allclose(sorted(last), ends, atol=0.1)
    names = page.locator(".rounds text.c-appeal, .rounds text.c-verdict, .rounds text.c-rival")
    assert sorted(names.all_text_contents()) == sorted(
        page.locator(".cands .name").all_inner_texts()
    )


LINE = "parseFloat(getComputedStyle(document.documentElement).getPropertyValue('--card'))"
TALLEST = """Math.max(...[...document.querySelectorAll('.card')].map((card) =>
  card.getBoundingClientRect().bottom - card.parentNode.getBoundingClientRect().top))"""


@pytest.mark.parametrize("size", SIZES)
def test_no_card_is_taller_than_its_line(rich, visit, size):
    page = visit(as_url(rich), size)
    page.keyboard.press("g")
    assert page.locator(".card").count() > 3
    assert page.evaluate(TALLEST) <= page.evaluate(LINE)


def test_gallery(rich, visit):
    page = visit(as_url(rich))
    page.keyboard.press("g")
    across = page.locator(".cards").first.locator(".card").count()
    assert across > 2
    page.keyboard.press("ArrowDown")
    place = page.evaluate(
        "[...document.querySelectorAll('.card')].findIndex(c => c.ariaSelected === 'true')"
    )
    assert place == across
    page.keyboard.press("ArrowLeft")
    page.keyboard.press("a")
    assert page.locator(".card .done").count() == 1
    page.locator("#gallery").click()
    assert page.locator(".r").count() > 3


def test_import_and_export_go_round(rich, visit, tmp_path):
    page = visit(as_url(rich))
    for key in ("a", "n", "2", "o"):
        page.keyboard.press(key)
    page.keyboard.type("-1 new; label")
    page.keyboard.press("Enter")
    files = {}
    page.keyboard.press("e")
    for name in ("decisions.csv", "decisions.jsonl", "labels.csv", "labels.jsonl"):
        with page.expect_download() as download:
            page.get_by_role("button", name=name, exact=True).click()
        download.value.save_as(tmp_path / name)
        files[name] = (tmp_path / name).read_bytes()
    found = parse(files["decisions.csv"], "it")
    as_json = parse(files["decisions.jsonl"], "it")
    keep = ("id", "decision", "label", "candidates", "data")
    assert [[r[k] for k in keep] for r in found] == [[r[k] for k in keep] for r in as_json]
    assert {r["decision"] for r in found} >= {"accept", "none"}
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
    page = visit(as_url(tmp_path / "d.html"))
    assert page.locator("#count").inner_text() == "50,000 rows"
    assert page.locator(".r").count() < 60
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
    page = visit(as_url(tmp_path / "d.html"))
    assert HOSTILE[0] in page.locator("h1").inner_text()
    page.select_option("#order", "table")
    for i in range(12):
        page.keyboard.press("Home")
        for _ in range(i):
            page.keyboard.press("j")
        assert page.locator(".detail .text").text_content() == ids[i]
        page.keyboard.press("1")
    page.keyboard.press("e")
    with page.expect_download() as download:
        page.get_by_role("button", name="decisions.csv").click()
    download.value.save_as(tmp_path / "decisions.csv")
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
    page.keyboard.press("e")
    with page.expect_download() as download:
        page.get_by_role("button", name="labels.csv").click()
    download.value.save_as(tmp_path / "labels.csv")
    with (tmp_path / "labels.csv").open(newline="", encoding="utf-8") as file:
        assert [row["id"] for row in csv.DictReader(file)] == [neutralize(v) for v in values]


def test_pictures_and_texts_beside_the_page(visit, tmp_path):
    from PIL import Image

    (tmp_path / "data").mkdir()
    Image.new("RGB", (8, 6), "teal").save(tmp_path / "data" / "a #1%.png")
    extra = {"photo": "a #1%.png", "caption": "a\nteal <b>square</b>"}
    write_table(tmp_path / "data" / "t.csv", n=20, extra=lambda _: extra)
    arguments = ["rectify", str(tmp_path / "data" / "t.csv"), "--candidates", "labels"]
    arguments += ["--base", "sure", "--image", "photo", "--text", "caption"]
    assert run([*arguments, "--out", str(tmp_path / "deep" / "o")]) == 0
    address = as_url(tmp_path / "deep" / "o" / "docket.html")
    page = visit(address, elsewhere=as_url(tmp_path / "data"))
    picture = page.locator(".picture")
    picture.evaluate("node => node.decode()")
    assert picture.evaluate("node => node.naturalWidth") == 8
    assert page.locator(".text").text_content() == extra["caption"]


def test_served_pictures_beside_the_table(visit, tmp_path, capsys):
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
            page = visit(server.address(), allowed=("404 (Not Found)",))
            page.select_option("#order", "table")
            page.keyboard.press("Home")
            picture = page.locator(".picture")
            picture.evaluate("node => node.decode()")
            assert picture.evaluate("node => node.naturalWidth") == 8
            page.keyboard.press("End")
            assert "lies elsewhere" in page.locator("#detail").inner_text()
        finally:
            server.shutdown()
            thread.join()


def test_excluded_and_reviewed_rows_are_not_upheld(visit, tmp_path):
    docket = make_docket(40, 4)
    row, other = np.flatnonzero(~docket.overturned)[:2].tolist()
    decided = str(docket.class_names[docket.appeal[other]])
    docket.to_html(tmp_path / "d.html", decisions={row: ("none", ""), other: ("accept", decided)})
    page = visit((tmp_path / "d.html").as_uri())
    assert "Review decided 1 row and excluded 1." in page.locator("#top").inner_text()
    page.select_option("#show", "done")
    shown = page.locator(f"#r-{row}")
    shown.click()
    assert shown.locator(".a").inner_text() not in docket.class_names
    assert "Excluded by review" in page.locator("#detail .says").inner_text()
    page.select_option("#show", "")
    page.select_option("#order", "table")
    for name, word in ((row, "excluded"), (other, "reviewed")):
        page.locator(f"#r-{name}").click()
        page.keyboard.press("u")
        assert page.locator(f"#r-{name} .chip").inner_text() == word, "until it is heard again"
    page.select_option("#show", "upheld")
    free = docket.contested.copy()
    free[[row, other]] = False
    upheld = int((free & ~docket.overturned).sum())
    assert page.locator("#count").inner_text() == f"{upheld} of 40 rows", "that could change"


# -- sizes, people, paper -------------------------------------------------------------------

IN_VIEW = """() => [...document.querySelectorAll(".r")].filter((row) => {
  const box = row.getBoundingClientRect();
  const list = document.getElementById("table").getBoundingClientRect();
  const foot = document.getElementById("status").getBoundingClientRect().top;
  return box.top >= list.top + document.getElementById("head").offsetHeight - 1 &&
    box.bottom <= Math.min(list.bottom, foot) + 1; }).length"""


@pytest.mark.parametrize(
    ("size", "rows"), [("desktop", 12), ("laptop", 8), ("tablet", 6), ("phone", 5)]
)
def test_rows_in_view_on_the_first_screen(size, rows, ran, rich, visit):
    home, _ = ran
    for path in (home / "o" / "docket.html", rich):
        page = visit(as_url(path), size)
        assert page.evaluate(IN_VIEW) >= rows
        wide = page.evaluate("document.documentElement.scrollWidth")
        assert wide <= SIZES[size][0], "nothing is wider than the screen"


def test_on_a_phone_a_row_is_a_sheet(rich, visit):
    page = visit(as_url(rich), "phone", has_touch=True)
    assert not page.locator("#detail").is_visible()
    page.locator(".r").nth(1).tap()
    title = page.locator("#detail h2")
    first = title.inner_text()
    assert page.locator("#detail").bounding_box()["width"] == 390
    page.locator('[data-key="a"]').tap()
    assert title.inner_text() != first
    page.get_by_role("button", name="← List").tap()
    assert not page.locator("#detail").is_visible()
    assert reviewed(page) == 1
    page.locator("#filters").tap()
    page.select_option("#show", "done")
    assert page.locator("#count").inner_text() == "1 of 60 rows"


def test_targets_are_44_pixels(rich, visit):
    for size in ("laptop", "phone"):
        page = visit(as_url(rich), size, has_touch=True)
        if size == "phone":
            page.locator(".r").first.tap()
        small = page.evaluate(
            """() => [...document.querySelectorAll("button, input, select, .r")]
              .filter((n) => n.offsetParent && !n.closest(".head"))
              .filter((n) => Math.min(n.offsetHeight, n.offsetWidth) < 44)
              .map((n) => n.outerHTML.slice(0, 120))"""
        )
        assert small == []


def violations(page):
    axe = pytest.importorskip("axe_playwright_python.sync_playwright")
    found = axe.Axe().run(page).response["violations"]
    return [(rule["id"], [node["html"][:200] for node in rule["nodes"]]) for rule in found]


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing(rich, visit, scheme):
    page = visit(as_url(rich), color_scheme=scheme)
    assert violations(page) == []
    ground = page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert (sum(map(int, ground[4:-1].split(","))) < 200) == (scheme == "dark")
    for key in ("a", "n", "j"):
        page.keyboard.press(key)
    page.locator(".near button").first.click()
    assert violations(page) == []
    page.keyboard.press("g")
    assert violations(page) == []
    for key, name in (("?", "help"), ("e", "files"), ("o", "other")):
        page.keyboard.press(key)
        assert page.locator(f"#{name}").is_visible()
        assert violations(page) == []
        page.keyboard.press("Escape")
    page.keyboard.press("/")
    page.keyboard.type("nothing at all")
    playwright.expect(page.locator("#empty")).to_be_visible()
    assert violations(page) == []
    phone = visit(as_url(rich), "phone", color_scheme=scheme)
    assert violations(phone) == []
    phone.locator(".r").first.click()
    assert violations(phone) == []


def test_keyboard_only_from_first_to_last(rich, visit):
    page = visit(as_url(rich))
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.className") == "skip"
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.id") == "table"
    seen = set()
    for _ in range(60):
        page.keyboard.press("Tab")
        seen.add(
            page.evaluate("(n => n.id || n.dataset.key || n.className)(document.activeElement)")
        )
    assert {"a", "n", "o", "text"} <= seen
    page.locator(".starts button").first.focus()
    page.keyboard.press("Enter")
    for _ in range(4):
        page.keyboard.press("a")
    assert "4 of the 4 suggested" in page.locator("#progress").inner_text()
    assert (
        page.locator("#audit").inner_text() == "Of 1 reviewed rows drawn at random, 1 was right."
    )


def test_roles_and_one_live_region(ran, visit):
    home, _ = ran
    page = visit(as_url(home / "o" / "docket.html"))
    grid = page.get_by_role("grid", name="Rows")
    assert grid.get_attribute("aria-rowcount") == "301"
    active = grid.get_attribute("aria-activedescendant")
    assert page.locator(f"#{active}").get_attribute("aria-selected") == "true"
    assert page.locator("[aria-live], [role=status], [role=alert]").count() == 1


def test_forced_colours_show_the_selected_row(rich, visit):
    page = visit(as_url(rich), forced_colors="active")
    style = page.locator('.r[aria-selected="true"]').evaluate(
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
