"""The named data sets, on small files of their layout."""

from __future__ import annotations

import inspect

import numpy as np
import pytest

import appellate.datasets as datasets
from appellate.datasets import realworld
from appellate.datasets.catalogue import known_datasets
from tests.datasets.layouts import small_problem, swap, truncate, write_mat

SPELLINGS = {
    "lost": ["lost.mat", "Lost.mat", "LOST.MAT"],
    "msrcv2": ["MSRCv2.mat", "msrc_v2.mat"],
    "fgnet": ["FG-NET.mat", "FGNET.mat", "fg net.mat"],
    "mirflickr": ["Mirflickr.mat", "mirflicker.mat"],
    "soccer_player": ["Soccer Player.mat", "SoccerPlayer.mat", "soccer.mat"],
    "yahoo_news": ["Yahoo! News.mat", "YahooNews.mat", "yahoo.mat"],
    "birdsong": ["BirdSong.mat", "Bird-Song.mat", "BirdSac.mat"],
}
each = pytest.mark.parametrize("name", SPELLINGS)
ours = pytest.mark.filterwarnings("ignore:.*is not the published file")


def test_help_shows_what_is_returned():
    """It said None, and no types."""
    signature = inspect.signature(datasets.load_lost)
    assert signature.return_annotation == "Any"
    assert signature.parameters["download_if_missing"].annotation == "bool"
    assert "television series" in datasets.load_lost.__doc__


def load(name, home, **options):
    return getattr(datasets, f"load_{name}")(data_home=home, **options)


@ours
@pytest.mark.parametrize(
    ("name", "spelling"), [(name, s) for name, several in SPELLINGS.items() for s in several]
)
def test_any_spelling_is_found(tmp_path, name, spelling):
    X, candidates, truth = small_problem()
    write_mat(tmp_path / spelling, X, candidates, truth, sparse=True)
    data = load(name, tmp_path)
    assert np.array_equal(data.X, X)
    assert np.array_equal(data.candidates, candidates)
    assert np.array_equal(data.y_true, truth)
    assert data.filename == str(tmp_path / spelling)
    entry = known_datasets()[name]
    for words in (entry.page, entry.terms, entry.citation):
        assert words in data.description


@ours
def test_folders_environment_and_tuples(tmp_path, monkeypatch):
    X, candidates, truth = small_problem()
    (tmp_path / "partial").mkdir()
    write_mat(tmp_path / "partial" / "lost.mat", X, candidates, truth, version=7.3)
    monkeypatch.setenv("APPELLATE_DATA_HOME", str(tmp_path))
    for one, other in zip(
        datasets.load_lost(return_X_candidates_y=True), (X, candidates, truth), strict=True
    ):
        assert np.array_equal(one, other)


@each
def test_a_missing_file_says_where_to_put_it(tmp_path, name):
    entry = known_datasets()[name]
    with pytest.raises(FileNotFoundError) as missing:
        load(name, tmp_path, download_if_missing=False)
    said = str(missing.value)
    for words in (str(tmp_path / entry.files[0].path), entry.page, "APPELLATE_DATA_HOME"):
        assert words in said
    assert entry.terms.rstrip(".") in said


@each
def test_another_file_is_read_with_a_warning(tmp_path, name):
    write_mat(tmp_path / SPELLINGS[name][0], *small_problem())
    with pytest.warns(
        UserWarning, match=r"is not the published file.*are not comparable"
    ) as warned:
        load(name, tmp_path)
    assert warned[0].filename == __file__


def test_the_published_file_is_known_by_its_checksum(tmp_path, monkeypatch):
    path = write_mat(tmp_path / "lost.mat", *small_problem(1122, 108, 16))
    with pytest.warns(UserWarning, match="not the published file"):
        load("lost", tmp_path)
    monkeypatch.setattr(realworld, "sha256", lambda _: known_datasets()["lost"].files[0].sha256[0])
    load("lost", tmp_path)
    assert path.is_file()


def test_a_set_without_checksum_is_known_by_its_shape(tmp_path):
    write_mat(tmp_path / "BirdSong.mat", *small_problem(4998, 38, 13))
    assert load("birdsong", tmp_path).X.shape == (4998, 38)


def test_swapped_files_are_refused(tmp_path):
    write_mat(tmp_path / "lost.mat", *small_problem(1122, 108, 16))
    write_mat(tmp_path / "MSRCv2.mat", *small_problem(1758, 48, 23))
    swap(tmp_path / "lost.mat", tmp_path / "MSRCv2.mat")
    with pytest.raises(ValueError, match=r"lost.mat' holds MSRCv2 \(1758 samples.*not Lost"):
        load("lost", tmp_path)
    with pytest.raises(ValueError, match=r"holds Lost.*swapped"):
        load("msrcv2", tmp_path)


def test_a_truncated_file_is_refused(tmp_path):
    path = write_mat(tmp_path / "lost.mat", *small_problem(200, 20))
    truncate(path)
    with pytest.raises(ValueError, match="truncated or damaged"):
        load("lost", tmp_path)


def test_every_public_name_resolves():
    for name in datasets.__all__:
        assert callable(getattr(datasets, name))
    assert dir(datasets) == sorted(datasets.__all__)
    with pytest.raises(AttributeError, match="no attribute 'load_nothing'"):
        _ = datasets.load_nothing
    for name in known_datasets():
        assert f"load_{name}" in datasets.__all__
