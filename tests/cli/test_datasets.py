"""``appellate datasets``: list, info, fetch."""

from __future__ import annotations

import json
import subprocess
import sys

import numpy as np
import pytest

from appellate.cli.app import run
from appellate.datasets import download
from appellate.datasets.catalogue import known_datasets
from tests.datasets.layouts import small_problem, write_cifar10, write_mat


@pytest.fixture
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("APPELLATE_DATA_HOME", str(tmp_path))
    write_mat(tmp_path / "Lost.mat", *small_problem())
    write_cifar10(tmp_path)
    (tmp_path / "cifar-10-batches-bin" / "test_batch.bin").unlink()
    return tmp_path


def test_the_list_says_what_is_there(home, capsys):
    assert run(["datasets", "list"]) == 0
    said = capsys.readouterr().out
    rows = {line.split()[0]: line for line in said.splitlines() if line.strip()}
    for name, entry in known_datasets().items():
        assert str(entry.shape[0]) in rows[name]
    assert "yes," in rows["lost"]
    assert "5 of 6 files" in rows["cifar10"]
    assert "by hand" in rows["soccer_player"]
    assert rows["msrcv2"].rstrip().endswith("no")
    assert str(home) in said
    assert max(map(len, said.splitlines())) <= 99


def test_the_list_as_json(home, capsys):
    assert run(["datasets", "list", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["data_home"] == str(home)
    lost = document["datasets"][0]
    assert lost["name"] == "lost"
    assert lost["present"] is True
    assert lost["bytes"] == (home / "Lost.mat").stat().st_size
    assert len(document["datasets"]) == len(known_datasets())


def test_another_home(home, tmp_path_factory, capsys):
    other = tmp_path_factory.mktemp("other")
    assert run(["datasets", "list", "--json", "--data-home", str(other)]) == 0
    document = json.loads(capsys.readouterr().out)
    assert not any(row["present"] for row in document["datasets"])


def test_info_names_terms_and_checks_files(home, capsys):
    assert run(["datasets", "info", "LOST"]) == 0
    said = capsys.readouterr().out
    entry = known_datasets()["lost"]
    for words in (entry.terms, entry.citation, entry.page, "load_lost()", str(home / "Lost.mat")):
        assert words in said
    assert "NOT the published file" in said
    assert run(["datasets", "info", "yahoo_news"]) == 0
    said = capsys.readouterr().out
    assert "missing" in said
    assert f"put it at '{home / 'Yahoo! News.mat'}'" in said
    assert run(["datasets", "info", "cifar10n"]) == 0
    said = capsys.readouterr().out
    assert "needs: cifar10" in said
    assert run(["datasets", "info", "cifar100"]) == 0
    assert "appellate datasets fetch cifar100" in capsys.readouterr().out


def test_info_as_json(home, capsys, monkeypatch):
    digest = known_datasets()["lost"].files[0].sha256[0]
    monkeypatch.setattr("appellate.datasets.home.sha256", lambda _: digest)
    assert run(["datasets", "info", "lost", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["files"] == [
        {
            "path": "lost.mat",
            "found": str(home / "Lost.mat"),
            "bytes": (home / "Lost.mat").stat().st_size,
            "published": True,
        }
    ]


def test_fetch_shows_the_terms_and_where_the_files_are(home, capsys, monkeypatch):
    real = download.fetch_dataset
    counts = home / "source.npy"
    np.save(counts, np.ones((3, 10)))

    def fetch(name, **options):
        def copy(_, output_file, __):
            with open(output_file, "wb") as file:
                file.write(counts.read_bytes())

        return real(name, downloader=copy, **options)

    monkeypatch.setattr(download, "fetch_dataset", fetch)
    assert run(["datasets", "fetch", "cifar10h"]) == 2
    said = capsys.readouterr()
    assert "CC BY-NC-SA 4.0" in said.err
    assert "is not the published file" in said.err
    monkeypatch.setattr("pooch.retrieve", lambda *_, **__: counts)
    monkeypatch.setattr(
        download, "sha256", lambda _: known_datasets()["cifar10h"].files[0].sha256[0]
    )
    assert run(["datasets", "fetch", "cifar10h"]) == 0
    said = capsys.readouterr()
    assert "CC BY-NC-SA 4.0" in said.err
    place = home / "cifar-10h" / "cifar10h-counts.npy"
    assert f"{place} (368 bytes)" in said.out
    assert run(["datasets", "fetch", "cifar10h", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["files"] == {"cifar-10h/cifar10h-counts.npy": str(place)}


@pytest.mark.usefixtures("home")
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["info", "lsot"], "Did you mean 'lost'?"),
        (["fetch", "nothing"], "unknown data set 'nothing'"),
        (["fetch", "soccer_player"], "Soccer Player is not in the data home"),
        (["info"], "Missing argument 'NAME'"),
        (["lsit"], "Did you mean 'list'?"),
    ],
)
def test_mistakes_end_with_2(arguments, message, capsys):
    assert run(["datasets", *arguments]) == 2
    said = capsys.readouterr()
    assert message in said.err
    assert "Traceback" not in said.err
    assert not said.out


@pytest.mark.parametrize("command", [["datasets"], ["check"], ["generate"]])
def test_help_has_examples(command, capsys):
    assert run([*command, "--help"]) == 0
    said = capsys.readouterr().out
    assert f"Examples:\n    appellate {command[0]}" in said
    assert max(map(len, said.splitlines())) <= 80


@pytest.mark.parametrize(
    "arguments", ["datasets --help", "datasets list", "datasets info lost", "check --help"]
)
def test_nothing_heavy_is_loaded_to_list_and_to_help(arguments, tmp_path):
    code = (
        "import sys\n"
        f"sys.argv = ['appellate', *{arguments.split()!r}]\n"
        "from appellate.cli import main\n"
        "try: main()\n"
        "except SystemExit: pass\n"
        "sys.stderr.write('loaded: ' + ' '.join(sys.modules))"
    )
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = set(said.stderr.split("loaded: ")[1].split())
    assert not {"numpy", "scipy", "sklearn", "numba", "pandas", "polars", "pooch"} & loaded
