"""The check of the built site: which links count as dead."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

TOOL = Path(__file__).parents[1] / "tools" / "check_site.py"


def check(folder: Path, body: str) -> subprocess.CompletedProcess[str]:
    (folder / "index.html").write_text(body, encoding="utf-8")
    return subprocess.run(
        [sys.executable, str(TOOL), str(folder)], capture_output=True, text=True, check=False
    )


def test_reports_a_link_to_a_missing_file_or_anchor(tmp_path):
    result = check(tmp_path, '<a href="#gone">a</a><a href="none.html">b</a>')
    assert result.returncode == 1
    assert "dead link #gone" in result.stdout
    assert "dead link none.html" in result.stdout


def test_accepts_the_address_of_a_view_of_the_review_page(tmp_path):
    page = '<a href="#labels">a</a><section id="view-labels"></section>'
    assert check(tmp_path, page).returncode == 0
    assert check(tmp_path, page.replace("view-labels", "view-rows")).returncode == 1


def test_reports_a_script_from_another_host(tmp_path):
    result = check(tmp_path, '<script src="https://example.org/a.js"></script>')
    assert result.returncode == 1
    assert "loads https://example.org/a.js" in result.stdout
