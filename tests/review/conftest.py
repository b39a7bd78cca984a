"""A real browser: Chromium, driven by Playwright; without one its tests are skipped."""

from __future__ import annotations

import shutil

import pytest

# The shell without a user interface takes less than half the CPU time of the whole browser.
NAMES = "chromium-headless-shell", "chromium", "chromium-browser"
CHROMIUM = next(filter(None, map(shutil.which, NAMES)), None)
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
SIZES = {
    "desktop": (1440, 900),
    "laptop": (1280, 720),
    "tablet": (1024, 768),
    "upright": (768, 1024),
    "phone": (390, 844),
}


@pytest.fixture(scope="session")
def browser():
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    pytest.importorskip("jinja2")
    if CHROMIUM is None:
        pytest.skip("no Chromium on this machine")
    with playwright.sync_playwright() as driver:
        chromium = driver.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        yield chromium
        chromium.close()


@pytest.fixture
def visit(browser):
    """Open a page; at the end nothing was written to the console, nothing asked elsewhere."""
    contexts, troubles = [], []

    def open_page(address, size="laptop", elsewhere="blob:", allowed=(), **options):
        width, height = SIZES[size]
        context = browser.new_context(
            viewport={"width": width, "height": height}, accept_downloads=True, **options
        )
        contexts.append(context)
        page = context.new_page()

        def note(text):
            if not any(part in text for part in allowed):
                troubles.append(text)

        page.on("console", lambda message: note(message.text))
        page.on("pageerror", lambda error: note(str(error)))
        page.on("dialog", lambda dialog: note("a dialog: " + dialog.message))
        ours = (address.split("#")[0].split("?")[0], "blob:", "data:", elsewhere)
        page.on("request", lambda r: None if r.url.startswith(ours) else note(r.url))
        page.goto(address)
        page.wait_for_selector("html[data-ready]")
        return page

    yield open_page
    for context in contexts:
        context.close()
    assert not troubles
