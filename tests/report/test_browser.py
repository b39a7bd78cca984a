"""The page in a real browser: Debian's Chromium, driven by Playwright; skipped without it."""

from __future__ import annotations

import csv
import shutil
import threading
import time

import numpy as np
import pytest

from appellate.cli.app import run
from tests.cli.tables import HOSTILE, read_rows, write_table
from tests.report.dockets import make_docket

playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
pytest.importorskip("jinja2")
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
pytestmark = [
    pytest.mark.skipif(CHROMIUM is None, reason="no Chromium on this machine"),
    pytest.mark.xdist_group("browser"),
]
FLAGS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
SIZES = {"desktop": (1280, 900), "phone": (390, 844)}


@pytest.fixture(scope="module")
def browser():
    with playwright.sync_playwright() as driver:
        chromium = driver.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        yield chromium
        chromium.close()


@pytest.fixture
def visit(browser):
    """Open a page; at the end nothing was written to the console, nothing asked elsewhere."""
    contexts, troubles = [], []

    def open_page(address, size="desktop", scheme="light", elsewhere="blob:"):
        width, height = SIZES[size]
        context = browser.new_context(
            viewport={"width": width, "height": height}, color_scheme=scheme, accept_downloads=True
        )
        contexts.append(context)
        page = context.new_page()
        page.on("console", lambda message: troubles.append(message.text))
        page.on("pageerror", lambda error: troubles.append(str(error)))
        page.on("dialog", lambda dialog: troubles.append("a dialog: " + dialog.message))
        origin = address.split("?")[0]
        page.on(
            "request",
            lambda r: (
                None if r.url.startswith((origin, "blob:", elsewhere)) else troubles.append(r.url)
            ),
        )
        page.goto(address)
        page.wait_for_selector("html[data-ready]")
        return page

    yield open_page
    for context in contexts:
        context.close()
    assert not troubles


@pytest.fixture(scope="module")
def ran(tmp_path_factory):
    home = tmp_path_factory.mktemp("browser")
    write_table(home / "t.csv", n=300)
    options = ["--candidates", "labels", "--id", "item", "--truth", "truth", "--base", "sure"]
    arguments = ["rectify", str(home / "t.csv"), *options, "--suggest", "8"]
    assert run([*arguments, "--out", str(home / "o")]) == 0
    return home, arguments


def as_url(path):
    return path.resolve().as_uri()


def test_review_five_rows_by_keyboard_and_feed_them_back(ran, visit, tmp_path):
    home, arguments = ran
    page = visit(as_url(home / "o" / "docket.html"))
    chosen = {}
    for key in ("a", "a", "1", "n", "2"):
        row = page.locator('[role=row][aria-selected="true"] .id').inner_text()
        wanted = (
            page.locator(".cands .name")
            .nth(1 if key == "2" else 0)
            .evaluate("node => node.firstChild.textContent")
        )
        chosen[row] = "" if key == "n" else wanted
        page.keyboard.press(key)
    assert page.locator("#progress").inner_text().startswith("5 of 300 reviewed")
    with page.expect_download() as download:
        page.keyboard.press("e")
    download.value.save_as(tmp_path / "decisions.csv")
    decided = {r["id"]: r["label"] for r in read_rows(tmp_path / "decisions.csv")}
    assert decided == chosen

    page.reload()
    page.wait_for_selector("html[data-ready]")
    assert page.locator("#progress").inner_text().startswith("5 of 300"), "kept by the browser"
    page.keyboard.press("u")
    assert page.locator("#progress").inner_text().startswith("4 of 300")

    more = ["--decisions", str(tmp_path / "decisions.csv"), "--out", str(tmp_path / "again")]
    assert run([*arguments, *more]) == 0
    after = {r["item"]: r for r in read_rows(tmp_path / "again" / "rectified.csv")}
    assert {i: after[i]["label"] for i in chosen} == chosen
    page = visit(as_url(tmp_path / "again" / "docket.html"))
    assert page.locator("#progress").inner_text().startswith("5 of 300")


def test_search_filter_sort_and_neighbours(ran, visit):
    home, _ = ran
    page = visit(as_url(home / "o" / "docket.html"))
    docket = read_rows(home / "o" / "docket.csv")
    count = page.locator("#count")
    page.select_option("#outcome", "overturned")
    overturned = sum(r["outcome"] == "overturned" for r in docket)
    assert count.inner_text() == f"{overturned} of 300 samples"
    page.select_option("#outcome", "")
    page.fill("#search", "i29")
    playwright.expect(count).to_have_text("11 of 300 samples")
    page.fill("#search", "nothing like this")
    page.wait_for_selector(".empty")
    page.fill("#search", "")
    page.select_option("#class", label="cat")
    cats = sum("cat" in (r["verdict"], r["appeal"]) for r in docket)
    assert count.inner_text() == f"{cats} of 300 samples"
    page.select_option("#class", "")
    page.locator("#margin").evaluate(
        "node => { node.value = 0.2; node.dispatchEvent(new Event('input')); }"
    )
    close = sum(float(r["margin"]) <= 0.2 for r in docket)
    assert abs(int(count.inner_text().split()[0]) - close) <= 1
    page.get_by_role("button", name="margin").click()
    shown = [float(t) for t in page.locator(".r .num").all_inner_texts()]
    assert shown == sorted(shown)
    assert page.locator('[aria-sort="ascending"]').inner_text() == "margin"
    first = page.locator(".near button span").first.inner_text()
    page.locator(".near button").first.click()
    assert page.locator("#detail h2").inner_text() == first
    page.keyboard.press("Escape")
    page.keyboard.press("Home")
    assert page.locator(".trajectory").count() == 1
    page.keyboard.press("?")
    assert page.locator("#help").is_visible()
    page.keyboard.press("Escape")
    assert not page.locator("#help").is_visible()


def test_fifty_thousand_rows(visit, tmp_path):
    n = 50_000
    docket = make_docket(n)
    neighbors = np.random.default_rng(0).integers(n, size=(n, 5))
    docket.to_html(tmp_path / "d.html", neighbors=neighbors, title="large")
    started = time.perf_counter()
    page = visit(as_url(tmp_path / "d.html"))
    took = time.perf_counter() - started
    marked = page.evaluate("performance.now()")
    assert min(took, marked / 1000) < 3
    assert page.locator("#count").inner_text() == "50,000 of 50,000 samples"
    assert page.locator(".r").count() < 60
    frames = page.evaluate(
        """async () => {
          const body = document.getElementById("body"), times = [];
          for (let i = 0; i < 40; i++) {
            const start = performance.now();
            body.scrollTop += 4000;
            await new Promise((done) => requestAnimationFrame(() => setTimeout(done)));
            times.push(performance.now() - start);
          }
          return times.sort((a, b) => a - b)[20];
        }"""
    )
    assert frames < 100, "half of all steps are drawn in well under a tenth of a second"
    assert page.locator(".r").count() < 60
    page.keyboard.press("End")
    assert page.locator('[aria-selected="true"]').get_attribute("aria-rowindex") == "50001"
    started = time.perf_counter()
    page.fill("#search", "item 49999")
    playwright.expect(page.locator("#count")).to_have_text("1 of 50,000 samples")
    assert time.perf_counter() - started < 3


def test_hostile_content_shows_as_text(visit, tmp_path):
    names = np.array(HOSTILE[:12], dtype=object)
    ids = [f"{HOSTILE[i % 12]}{i}" for i in range(48)]
    images = ["http://127.0.0.1:9/x.png", "//127.0.0.1:9/x.png", "javascript:alert(1)", "", "", ""]
    make_docket(48, 12, class_names=names, ids=ids).to_html(
        tmp_path / "d.html", title=HOSTILE[0], texts=list(ids), images=images * 8
    )
    page = visit(as_url(tmp_path / "d.html"))
    assert page.locator("h1").inner_text() == HOSTILE[0]
    page.select_option("#order", "docket")
    for i in range(12):
        page.keyboard.press("Home")
        for _ in range(i):
            page.keyboard.press("j")
        assert page.locator(".detail .text").text_content() == ids[i]
        page.keyboard.press("1")
    with page.expect_download() as download:
        page.locator("#export").click()
    download.value.save_as(tmp_path / "decisions.csv")
    with (tmp_path / "decisions.csv").open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    from appellate.tables.cells import restore

    assert [restore(r["id"]) for r in rows] == ids[:12]
    assert {restore(r["label"]) for r in rows} <= set(HOSTILE)
    assert not any(cell[:1] in ("=", "@") for row in rows for cell in row.values())


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

    from appellate.cli.server import make_server

    (tmp_path / "pics").mkdir()
    Image.new("RGB", (8, 6), "teal").save(tmp_path / "pics" / "a #1%.png")
    cells = ["pics/a #1%.png"] * 18 + ["pics/gone.png", "https://127.0.0.1:9/x.png"]
    write_table(tmp_path / "t.csv", n=20, extra=lambda i: {"photo": cells[i]})
    arguments = ["rectify", str(tmp_path / "t.csv"), "--candidates", "labels", "--base", "knn"]
    assert run([*arguments, "--image", "photo", "--out", str(tmp_path / "o")]) == 0
    notes = capsys.readouterr().err
    assert "1 of 19 picture files do not exist, e.g. 'pics/gone.png'" in notes
    assert "1 pictures are addresses on the web; the page opens no connection" in notes
    with make_server(tmp_path / "o", "127.0.0.1", 0) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        try:
            page = visit(server.address())
            page.select_option("#order", "docket")
            page.keyboard.press("Home")
            picture = page.locator(".picture")
            picture.evaluate("node => node.decode()")
            assert picture.evaluate("node => node.naturalWidth") == 8
            page.keyboard.press("End")
            assert "lies elsewhere" in page.locator("#detail").inner_text()
        finally:
            server.shutdown()
            thread.join()


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("size", list(SIZES))
def test_sizes_and_schemes(size, scheme, ran, visit):
    home, _ = ran
    page = visit(as_url(home / "o" / "docket.html"), size, scheme)
    wide = page.evaluate("document.documentElement.scrollWidth")
    assert wide <= SIZES[size][0], "nothing is wider than the screen"
    ground = page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert (sum(map(int, ground[4:-1].split(","))) < 200) == (scheme == "dark")
    page.locator(".r").nth(2).click()
    assert page.locator("#detail h2").is_visible()


def test_roles_and_print(ran, visit):
    home, _ = ran
    page = visit(as_url(home / "o" / "docket.html"))
    grid = page.get_by_role("grid", name="Samples")
    assert grid.get_attribute("aria-rowcount") == "301"
    active = grid.get_attribute("aria-activedescendant")
    assert page.locator(f"#{active}").get_attribute("aria-selected") == "true"
    unnamed = page.evaluate(
        """() => [...document.querySelectorAll("button, input, select")]
          .filter((n) => !(n.textContent.trim() || n.ariaLabel || n.labels?.length))
          .map((n) => n.outerHTML)"""
    )
    assert unnamed == []
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.className") == "skip"
    page.emulate_media(media="print")
    page.evaluate("window.dispatchEvent(new Event('beforeprint'))")
    assert page.locator(".r").count() == 300
    assert not page.locator(".controls").is_visible()


def test_served_page_saves_at_once(ran, visit):
    from appellate.cli.server import make_server

    home, _ = ran
    with make_server(home / "o", "127.0.0.1", 0, "a long enough secret") as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        try:
            page = visit(server.address())
            page.keyboard.press("a")
            playwright.expect(page.locator("#progress")).to_contain_text("saved")
            (line,) = read_rows(home / "o" / "decisions.csv")
            assert line["decision"] == "accept"
            other = visit(server.address())
            assert other.locator("#progress").inner_text().startswith("1 of 300")
        finally:
            server.shutdown()
            thread.join()
            (home / "o" / "decisions.csv").unlink(missing_ok=True)


def test_excluded_and_reviewed_rows_are_not_upheld(visit, tmp_path):
    docket = make_docket(40, 4)
    row, other = np.flatnonzero(~docket.overturned)[:2].tolist()
    decided = int(docket.appeal[other])
    docket.to_html(tmp_path / "d.html", decisions={row: ("none", -1), other: ("accept", decided)})
    page = visit((tmp_path / "d.html").as_uri())
    page.select_option("#outcome", "done")
    shown = page.locator(f"#r-{row}")
    shown.click()
    assert shown.locator(".a").inner_text() not in docket.class_names
    assert "Excluded by review" in page.locator("#detail .says").inner_text()
    page.select_option("#outcome", "")
    page.keyboard.press("u")
    assert shown.locator(".chip").inner_text() == "excluded", "until the case is heard again"
    page.select_option("#order", "docket")
    page.locator("#body").evaluate("node => { node.scrollTop = 0; }")
    page.locator(f"#r-{other}").click()
    page.keyboard.press("u")
    assert page.locator(f"#r-{other} .chip").inner_text() == "reviewed"
    page.select_option("#outcome", "upheld")
    assert page.locator(f"#r-{row}").count() == 0
    upheld = int((~docket.overturned).sum()) - 2
    assert page.locator("#count").inner_text().startswith(f"{upheld} of 40")
