"""``appellate serve``: what it says, and what it refuses."""

from __future__ import annotations

import pytest

import appellate
from appellate.cli.app import run
from tests.review.test_server import write_docket
from tests.test_rectification import exclude, make_table

pytest.importorskip("jinja2")


@pytest.fixture
def folder(tmp_path):
    write_docket(tmp_path)
    return tmp_path


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--token", "short"], "16 characters or more"),
        (["--host", "no.such.host.invalid"], "Cannot serve"),
    ],
)
def test_mistakes(options, message, folder, capsys):
    assert run(["serve", str(folder), *options]) == 2
    assert message in capsys.readouterr().err


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("docket.html", "not a review page of this version"),
        ("decisions.csv", "not a file of decisions"),
    ],
)
def test_files_that_are_not_ours(name, message, folder, capsys):
    (folder / name).write_text("mine")
    assert run(["serve", str(folder), "--port", "0"]) == 2
    assert message in capsys.readouterr().err


def test_a_folder_without_a_docket(tmp_path, capsys):
    assert run(["serve", str(tmp_path)]) == 2
    assert "has no docket.html" in capsys.readouterr().err


def test_the_address_has_a_token_and_ctrl_c_ends_it(folder, capsys, monkeypatch):
    def interrupt(self):
        raise KeyboardInterrupt

    monkeypatch.setattr("appellate.review.server.DocketServer.serve_forever", interrupt)
    opened = []
    monkeypatch.setattr("click.launch", opened.append)
    assert run(["serve", str(folder), "--port", "0", "--open"]) == 0
    said = capsys.readouterr().out.splitlines()
    assert "/?token=" in said[0]
    assert opened == said[:1]
    assert "decisions.csv" in said[1]


def test_rows_are_explained_by_the_run_of_the_folder(tmp_path, capsys, monkeypatch):
    pytest.importorskip("skops")
    home, whys = tmp_path / "o", []
    sets = appellate.rectify(make_table()[0], candidates="maybe")
    sets.save(home)
    unsure = sets.docket.sort_values("confidence")["id"]
    name = next(each for each in unsure if each not in ("i0", "i1"))

    def rerun(self):
        whys.append(self.why(name))
        whys.append(self.why(name))
        decided.save(home)
        whys.append(self.why(name))
        raise KeyboardInterrupt

    decided = sets.decide({"i1": "dog"}).decide(exclude("i0"))
    monkeypatch.setattr("appellate.review.server.DocketServer.serve_forever", rerun)
    assert run(["serve", str(home), "--port", "0"]) == 0
    expected = [each.explain(name).to_page()["parts"] for each in (sets, sets, decided)]
    assert [why["parts"] for why in whys] == expected
    assert expected[0] != expected[2]
