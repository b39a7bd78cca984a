"""The data home and the catalogue of known data sets."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pooch
import pytest

from appellate.datasets import get_data_home
from appellate.datasets.catalogue import find_dataset, known_datasets
from appellate.datasets.home import find_file, sha256


def test_argument_then_environment_then_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("APPELLATE_DATA_HOME", str(tmp_path))
    assert get_data_home("here") == Path("here")
    assert get_data_home() == tmp_path
    assert get_data_home("~/data") == Path.home() / "data"
    monkeypatch.delenv("APPELLATE_DATA_HOME")
    assert get_data_home() == pooch.os_cache("appellate")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    assert get_data_home() == pooch.os_cache("appellate")
    assert not (tmp_path / "cache").exists()


def test_files_are_found_by_letters_and_digits(tmp_path):
    (tmp_path / "sub").mkdir()
    (tmp_path / "fg-net.mat").mkdir()  # a folder is no file
    (tmp_path / "sub" / "FG NET.mat").write_text("")
    assert find_file(tmp_path, ["FG-NET.mat"]) == tmp_path / "sub" / "FG NET.mat"
    (tmp_path / "FGNET.MAT").write_text("")
    assert find_file(tmp_path, ["FG-NET.mat"]) == tmp_path / "FGNET.MAT"
    assert find_file(tmp_path, ["lost.mat"]) is None
    assert find_file(tmp_path / "nowhere", ["lost.mat"]) is None


def test_files_of_common_names_are_looked_for_in_their_folder_only(tmp_path):
    for folder in ("other", "cifar-100-binary"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "test.bin").write_text(folder)
    found = find_file(tmp_path, ["test.bin"], "cifar100")
    assert found == tmp_path / "cifar-100-binary" / "test.bin"
    assert find_file(found.parent, ["test.bin"], "cifar100") == found
    assert find_file(tmp_path / "other", ["test.bin"], "cifar100") is None


def test_folders_without_permission_are_passed_over(tmp_path, monkeypatch):
    (tmp_path / "closed").mkdir()
    (tmp_path / "closed" / "lost.mat").write_text("")
    monkeypatch.setattr(os, "access", lambda *_: False)
    assert find_file(tmp_path, ["lost.mat"]) is None


def test_checksums(tmp_path):
    (tmp_path / "file").write_bytes(b"abc")
    assert sha256(tmp_path / "file").startswith("ba7816bf8f01cfea")


def test_the_catalogue_is_whole():
    known = known_datasets()
    assert {"lost", "labelme", "cifar10"} < {*known}
    for name, entry in known.items():
        assert entry.name == name
        assert len(entry.shape) == 3
        assert entry.page.startswith("https://")
        assert entry.terms
        assert entry.citation
        paths = [file.path for file in entry.files]
        assert len(set(paths)) == len(paths) > 0
        for file in entry.files:
            assert all(re.fullmatch("[0-9a-f]{64}", known) for known in file.sha256)
        brought = [path for download in entry.downloads for path in download.paths]
        assert set(brought) == (set(paths) if entry.downloads else set())
        for download in entry.downloads:
            assert download.url.startswith("https://")
            checked = all(file.sha256 for file in entry.files if file.path in download.paths)
            assert download.sha256 or checked  # nothing unknown is ever kept
        assert set(entry.needs) <= set(known)


@pytest.mark.parametrize("name", ["FG-NET", "fgnet", "fg_net", "Yahoo! News", "CIFAR-10N"])
def test_any_spelling_of_a_name(name):
    assert find_dataset(name).name in ("fgnet", "yahoo_news", "cifar10n")


def test_an_unknown_name_has_a_nearest():
    with pytest.raises(ValueError, match=r"unknown data set 'lsot'. Did you mean 'lost'. Known"):
        find_dataset("lsot")
    with pytest.raises(ValueError, match=r"unknown data set 'zzzz'. Known"):
        find_dataset("zzzz")
