"""Nobody's work is lost: decisions made while a server is away, killed or full."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys

import pytest

from appellate.review import page_data, write_page
from appellate.review.decisions import parse
from tests.review.dockets import make_docket

playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
pytest.importorskip("jinja2")
pytestmark = pytest.mark.xdist_group("browser")
AWAY = ("ERR_CONNECTION", "ERR_EMPTY_RESPONSE", "ERR_SOCKET", "net::ERR")


class Server:
    """A server in a process of its own, which can be killed."""

    def __init__(self, folder, port=None):
        self.folder, self.process = folder, None
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = port or probe.getsockname()[1]

    def start(self):
        command = [sys.executable, "-m", "appellate", "serve", str(self.folder), "--port"]
        self.process = subprocess.Popen(
            [*command, str(self.port)], stdout=subprocess.PIPE, text=True, env={**os.environ}
        )
        return self.process.stdout.readline().strip() + "#review"

    def kill(self):
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()
        self.process.stdout.close()
        self.process = None

    def decided(self):
        path = self.folder / "decisions.csv"
        return parse(path.read_bytes(), "it") if path.exists() else []


@pytest.fixture
def make(tmp_path):
    servers = []

    def make_one(name="run", n=30, port=None, ids=True, seed=0):
        folder = tmp_path / name
        folder.mkdir(exist_ok=True)
        docket = make_docket(n, 4, seed=seed, **({} if ids else {"ids": None}))
        write_page(page_data(docket), folder / "docket.html")
        servers.append(Server(folder, port))
        return servers[-1]

    yield make_one
    for server in servers:
        if server.process is not None:
            server.kill()


def status(page, text, timeout=15_000):
    playwright.expect(page.locator("#saved")).to_contain_text(re.compile(text), timeout=timeout)


def ready(page):
    page.wait_for_selector("html[data-ready]")


def test_three_decisions_around_a_killed_server(make, visit):
    server = make()
    page = visit(server.start(), allowed=AWAY)
    page.keyboard.press("a")
    status(page, "All saved")
    server.kill()
    page.keyboard.press("n")
    status(page, "1 not saved: the server does not answer")
    assert page.locator(".q.unsaved .q-label").all_inner_texts() == ["✗ not usable"]
    bar = page.locator("#status").bounding_box()
    assert bar["y"] + bar["height"] == 720, "in sight"
    page.locator("nav [data-view=overview]").click()
    page.evaluate("document.getElementById('numbers').scrollIntoView()")
    assert page.locator("#status").bounding_box() == bar, "wherever the page is"
    page.go_back()
    server.start()
    page.keyboard.press("a")
    status(page, "All saved")
    assert page.locator(".q.unsaved").count() == 0
    records = server.decided()
    assert [r["decision"] for r in records] == ["accept", "none", "accept"]
    assert len({r["key"] for r in records}) == 3
    page.reload()
    ready(page)
    assert page.locator("#progress").inner_text().startswith("3 of 30")
    assert page.evaluate("localStorage.length") == 0


def test_unsaved_decisions_outlive_the_window(make, browser):
    server = make()
    context = browser.new_context()
    page = context.new_page()
    page.goto(server.start())
    ready(page)
    page.keyboard.press("a")
    status(page, "All saved")
    server.kill()
    page.keyboard.press("n")
    page.keyboard.press("u")
    page.keyboard.press("1")
    status(page, "3 not saved")
    page.close()
    address = server.start()
    page = context.new_page()
    page.goto(address)
    ready(page)
    status(page, "All saved")
    assert [r["decision"] for r in server.decided()[:3]] == ["accept", "none", "clear"]
    assert len(server.decided()) == 4
    assert page.locator("#progress").inner_text().startswith("2 of 30")
    context.close()


def test_the_servers_file_is_the_only_source(make, browser):
    context = browser.new_context()
    page = context.new_page()
    one = make("one")
    page.goto(one.start())
    ready(page)
    page.keyboard.press("a")
    status(page, "All saved")
    one.kill()
    page.keyboard.press("a")
    status(page, "1 not saved")
    other = make("other", port=one.port)  # the same data on the same port
    page.goto(other.start())
    ready(page)
    assert page.locator("#progress").inner_text().startswith("0 of 30")
    assert page.locator("#saved").inner_text() == ""
    assert not (other.folder / "decisions.csv").exists()
    other.kill()
    page.goto(one.start())
    ready(page)
    status(page, "All saved")
    assert len(one.decided()) == 2
    (one.folder / "decisions.csv").unlink()
    page.reload()
    ready(page)
    assert page.locator("#progress").inner_text().startswith("0 of 30")
    context.close()


def test_two_windows(make, browser):
    context = browser.new_context()
    server = make()
    address = server.start()
    pages = [context.new_page() for _ in range(2)]
    for page in pages:
        page.goto(address)
        ready(page)
    server.kill()
    for page, moves in zip(pages, (0, 5), strict=True):
        for _ in range(moves):
            page.keyboard.press("j")
        page.keyboard.press("a")
        page.keyboard.press("a")
        status(page, "2 not saved")
    server.start()
    for page in pages:
        status(page, "All saved")
    assert len(server.decided()) == 4
    context.close()


@pytest.mark.parametrize("named", [True, False])
def test_a_docket_written_anew_under_unsaved_decisions(make, visit, named):
    server = make(ids=named)
    page = visit(server.start(), allowed=(*AWAY, "409"))
    server.kill()
    page.keyboard.press("a")
    page.keyboard.press("a")
    status(page, "2 not saved")
    make(ids=named, n=31)  # the same rows and one more
    server.start()
    status(page, "2 not saved: the page was written again: reload it")
    page.reload()
    ready(page)
    if named:
        status(page, "All saved")
    else:
        status(page, "2 decisions on another version of this table are kept aside")
        page.keyboard.press("e")
        with page.expect_download() as download:
            page.get_by_role("button", name="aside.csv").click()
        assert download.value.path().read_text().count("\n") == 3
    assert len(server.decided()) <= (2 if named else 0)


def test_what_the_server_refuses_is_said(make, visit):
    server = make()
    page = visit(server.start(), allowed=("422",))
    page.evaluate("""() => {
        const send = fetch;
        fetch = (path, options) => send(path, { ...options,
            body: options.body && options.body.replace('"accept"', '"none"') });
    }""")
    page.keyboard.press("a")
    status(page, "Refused: .* is a candidate of")
    assert page.locator("#progress").inner_text().startswith("0 of 30"), "shown as not decided"
    page.locator("#dismiss").click()
    assert page.locator("#saved").inner_text() == ""
    assert server.decided() == []


def test_without_a_token_there_is_no_page(make, browser):
    server = make()
    address = server.start()
    page = browser.new_page()
    assert page.goto(address.split("?")[0]).status == 403
    page.close()


@pytest.mark.slow
def test_two_hundred_decisions_and_three_kills(make, visit):
    server = make(n=210)
    page = visit(server.start(), allowed=AWAY)
    for i in range(200):
        page.keyboard.press("an1"[i % 3])
        page.wait_for_timeout(180)
        if i in (40, 100, 150):
            server.kill()
        if i in (55, 110, 170):
            server.start()
    status(page, "All saved", timeout=30_000)
    records = server.decided()
    assert len(records) == 200
    assert len({r["key"] for r in records}) == 200
    assert len({r["id"] for r in records}) == 200
    assert page.locator("#progress").inner_text().startswith("200 of 210")
