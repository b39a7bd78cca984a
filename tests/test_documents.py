"""Code blocks of README and docs run, links exist, and repeated figures agree."""

from __future__ import annotations

import pkgutil
import re
import shutil
import sys
from pathlib import Path

import pytest

pytest.importorskip("markdown_it")

from tests.cli.tables import write_table
from tests.documents import SKIP, Reader, commands, read_blocks
from tools.figures import fill, read_figures

ROOT = Path(__file__).parents[1]
PAGES = sorted(page for page in (ROOT / "README.md", *(ROOT / "docs").glob("*.md")))
# Pages whose commands need data or hours; their Python is run.
LONG = {
    "deep.md": "trains networks; tests/cli/test_deep.py runs the commands",
    "large.md": "needs large data; benchmarks/scale.py runs it",
    "results_networks.md": "trains networks; tests/cli/test_deep.py runs the commands",
    "ordered.md": "needs tables of ages and sizes; tests/cli/test_costs.py runs the commands",
    "reproduction.md": "needs the data sets; tests/cli/test_reproduce.py runs the commands",
}


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder with the tables that the pages use."""
    write_table(tmp_path / "pets.csv")
    write_table(tmp_path / "birds.csv")
    text = (tmp_path / "birds.csv").read_text().replace("labels", "names", 1)
    (tmp_path / "birds.csv").write_text(text)
    shutil.copy(tmp_path / "birds.csv", tmp_path / "new.csv")
    for module in (ROOT / "docs").glob("[a-z]*.py"):
        shutil.copy(module, tmp_path)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setenv("APPELLATE_DATA_HOME", str(tmp_path / "data"))
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.setenv("MPLBACKEND", "agg")
    yield tmp_path
    sys.modules.pop("nearest_mean", None)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_blocks_run(page, folder, capsys):
    reader = Reader(page)
    for block in read_blocks(page):
        if not (page.name in LONG and block.language in ("sh", "console")):
            reader.run(block, capsys)


def test_skipped_blocks_give_a_reason():
    for page in PAGES:
        for line in page.read_text(encoding="utf-8").splitlines():
            if line.startswith(SKIP) and page.name not in LONG:
                assert re.fullmatch(r"<!-- skip: next \(.+\) -->", line), f"{page.name}: {line}"


@pytest.mark.parametrize("page", [*PAGES, *sorted(ROOT.glob("[CST]*.md"))], ids=lambda p: p.name)
def test_links_to_files_exist(page):
    made = ("auto_examples/", "generated/")  # the build makes these and checks them
    for target in re.findall(r"\]\(([^)#\s]+)[^)]*\)", page.read_text(encoding="utf-8")):
        if not re.match(r"https?:|mailto:", target) and not target.startswith(made):
            assert (page.parent / target).exists(), f"{page.name}: {target}"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_repeated_figures_are_those_of_the_file(page):
    """`python tools/figures.py` writes them."""
    text = page.read_text(encoding="utf-8")
    assert fill(text, read_figures()) == text


@pytest.mark.parametrize("page", [*PAGES, ROOT / "CONTRIBUTING.md"], ids=lambda page: page.name)
def test_quoted_names_exist(page):
    pytest.importorskip("torch")
    others = {"appellate.base_classifiers"}  # a group of entry points
    names = set(re.findall(r"\bappellate(?:\.[A-Za-z_]\w*)+", page.read_text(encoding="utf-8")))
    for name in sorted(names - others):
        assert pkgutil.resolve_name(name) is not None, name


def test_figures_are_written_into_tables_and_sentences():
    figures = {"t": {"columns": {"a": "A"}, "rows": {"r": {"title": "R", "a": "**.5**"}}}}
    page = "<!-- figures: t -->\nold\n<!-- end of figures -->\nIt is .4<!-- =t.r.a --> here."
    assert fill(page, figures) == (
        "<!-- figures: t -->\n\n| | A |\n| --- | --- |\n| R | **.5** |\n\n"
        "<!-- end of figures -->\n"
        "It is .5<!-- =t.r.a --> here."
    )


def test_every_page_is_in_the_navigation():
    pages = {page.stem for page in (ROOT / "docs").glob("*.md")}
    listed = {"index"}
    for page in (ROOT / "docs").glob("*.md"):
        text = page.read_text(encoding="utf-8")
        for tree in re.findall(r"```{toctree}\n(.*?)```", text, re.DOTALL):
            lines = [line for line in tree.splitlines() if line and not line.startswith(":")]
            listed |= {re.sub(r".*<(.*)>", r"\1", line) for line in lines}
    assert pages == {name for name in listed if "/" not in name}


def test_reader_reports_wrong_blocks(tmp_path, capsys):
    page = tmp_path / "page.md"
    page.write_text(
        "```python\nz = 1 / 0\n```\n\n```pycon\n>>> 1 + 1\n3\n```\n\n"
        "```console\n$ appellate --version\nappellate 99\n```\n\n"
        f"{SKIP} (it fails) -->\n```python\nraise ValueError\n```\n"
    )
    wrong, false, other, skipped = read_blocks(page)
    with pytest.raises(ZeroDivisionError):
        Reader(page).run(wrong, capsys)
    for block in (false, other):
        with pytest.raises(AssertionError):
            Reader(page).run(block, capsys)
    Reader(page).run(skipped, capsys)
    assert commands(other) == [("appellate --version", "appellate 99\n")]


def test_version_of_the_command_is_that_of_the_package(capsys):
    from appellate import __version__
    from appellate.cli.app import run

    run(["--version"])
    assert capsys.readouterr().out.split()[1] == __version__
