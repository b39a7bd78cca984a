"""Fetching, with a downloader that copies local files."""

from __future__ import annotations

import hashlib
import io
import logging
import os
import shutil
import stat
import sys
import tarfile
from dataclasses import replace

import pooch
import pytest

from appellate.datasets import catalogue, download, fetch_dataset, load_cifar10, load_lost
from appellate.datasets.catalogue import DataFile, Download, known_datasets
from tests.datasets.layouts import small_problem, write_mat


class Web:
    """A downloader that knows a few addresses, and counts."""

    def __init__(self, **files):
        self.files = files
        self.calls = []

    def __call__(self, url, output_file, _):
        self.calls.append(url)
        name = url.rpartition("/")[2]
        if name not in self.files:
            raise OSError("Name or service not known")
        with open(output_file, "wb") as file:
            file.write(self.files[name])


def digest(content):
    return hashlib.sha256(content).hexdigest()


def register(monkeypatch, name, files, downloads):
    """Replace the files of a known data set by small ones."""
    entry = replace(known_datasets()[name], files=files, downloads=downloads)
    changed = known_datasets() | {name: entry}
    monkeypatch.setattr(catalogue, "known_datasets", lambda: changed)
    return entry


def tar_of(members):
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as archive:
        for name, content in members.items():
            info = tarfile.TarInfo(name)
            info.size = len(content)
            archive.addfile(info, io.BytesIO(content))
    return buffer.getvalue()


COUNTS = b"some counts"


@pytest.fixture
def counts(monkeypatch):
    return register(
        monkeypatch,
        "cifar10h",
        (DataFile("cifar-10h/cifar10h-counts.npy", (digest(COUNTS),)),),
        (Download("https://web/counts.npy", ("cifar-10h/cifar10h-counts.npy",), digest(COUNTS)),),
    )


def test_a_file_is_fetched_once_after_its_terms_were_shown(tmp_path, counts):
    web, told = Web(**{"counts.npy": COUNTS}), []
    level = pooch.get_logger().level

    def announce(text):
        assert not web.calls
        told.append(text)

    home = tmp_path / "new" / "home"
    options = {"data_home": home, "downloader": web, "announce": announce}
    for _ in range(2):
        found = fetch_dataset("CIFAR-10H", **options)
        assert found == {counts.files[0].path: home / "cifar-10h" / "cifar10h-counts.npy"}
    assert (home / "cifar-10h" / "cifar10h-counts.npy").read_bytes() == COUNTS
    assert len(web.calls) == 1
    assert pooch.get_logger().level == level
    assert counts.terms in told[0]
    assert counts.citation in told[0]
    assert [path.name for path in home.iterdir()] == ["cifar-10h"]


@pytest.mark.usefixtures("counts")
def test_the_terms_are_logged_by_default(tmp_path, caplog):
    with caplog.at_level(logging.WARNING, logger="appellate"):
        fetch_dataset("cifar10h", data_home=tmp_path, downloader=Web(**{"counts.npy": COUNTS}))
    assert "CC BY-NC-SA" in caplog.text


@pytest.mark.usefixtures("counts")
def test_another_content_is_refused_and_not_kept(tmp_path):
    with pytest.raises(ValueError, match=r"https://web/counts.npy is not the published file"):
        fetch_dataset("cifar10h", data_home=tmp_path, downloader=Web(**{"counts.npy": b"evil"}))
    assert not list(tmp_path.iterdir())


@pytest.mark.usefixtures("counts")
def test_without_network_the_error_says_what_to_do(tmp_path):
    with pytest.raises(ConnectionError) as failed:
        fetch_dataset("cifar10h", data_home=tmp_path, downloader=Web())
    for words in (
        "Name or service",
        str(tmp_path / "cifar-10h" / "cifar10h-counts.npy"),
        "github",
    ):
        assert words in str(failed.value)
    assert not list(tmp_path.iterdir())


@pytest.mark.usefixtures("counts")
def test_an_interrupted_download_leaves_nothing(tmp_path):
    def interrupt(_, output_file, __):
        with open(output_file, "wb") as file:
            file.write(b"half")
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fetch_dataset("cifar10h", data_home=tmp_path, downloader=interrupt)
    assert not list(tmp_path.iterdir())


def test_members_of_an_archive_are_put_in_their_places(tmp_path, monkeypatch):
    members = {
        f"cifar-10-batches-bin/{name}.bin": name.encode() * 3
        for name in [*(f"data_batch_{i}" for i in range(1, 6)), "test_batch"]
    }
    archive = tar_of(members | {"../evil": b"evil", "cifar-10-batches-bin/readme": b"?"})
    register(
        monkeypatch,
        "cifar10",
        tuple(DataFile(path, (digest(content),)) for path, content in members.items()),
        (Download("https://web/cifar.tar.gz", tuple(members), digest(archive)),),
    )
    web = Web(**{"cifar.tar.gz": archive})
    found = fetch_dataset("cifar10", data_home=tmp_path, downloader=web, announce=str)
    assert {path: place.read_bytes() for path, place in found.items()} == members
    assert sorted(p.name for p in tmp_path.iterdir()) == ["cifar-10-batches-bin"]
    assert len(list((tmp_path / "cifar-10-batches-bin").iterdir())) == 6
    assert not (tmp_path.parent / "evil").exists()


def fake_unpacker(folder, name="bsdtar"):
    """A program of that name which writes 'archive:member' out, or fails."""
    path = folder / name
    path.write_text(
        f"#!{sys.executable}\nimport sys\n"
        "if sys.argv[-1] == 'broken.mat': sys.exit('no such member')\n"
        "sys.stdout.buffer.write(open(sys.argv[-2], 'rb').read())\n"
    )
    path.chmod(path.stat().st_mode | stat.S_IXUSR)


@pytest.fixture
def only_fake_programs(tmp_path, monkeypatch):
    programs = tmp_path / "bin"
    programs.mkdir()
    monkeypatch.setenv("PATH", str(programs))
    return programs


@pytest.mark.skipif(os.name == "nt", reason="a script is no program on Windows")
@pytest.mark.parametrize("program", download.UNPACKERS)
def test_rar_archives_are_unpacked_by_whatever_is_there(
    tmp_path, monkeypatch, only_fake_programs, program
):
    fake_unpacker(only_fake_programs, program)
    content = write_mat(tmp_path / "source.mat", *small_problem()).read_bytes()
    archive = "https://web/lost.rar"
    entry = register(
        monkeypatch,
        "lost",
        (DataFile("lost.mat", (digest(content),)),),
        (Download(archive, ("lost.mat",)),),
    )
    home = tmp_path / "home"
    web = Web(**{"lost.rar": content})
    found = fetch_dataset("lost", data_home=home, downloader=web, announce=str)
    assert found == {"lost.mat": home / "lost.mat"}
    assert (home / "lost.mat").read_bytes() == content
    wrong = Web(**{"lost.rar": b"something else"})
    with pytest.raises(ValueError, match=r"'lost.mat' from .* is not the published file"):
        fetch_dataset("lost", data_home=tmp_path / "other", downloader=wrong, announce=str)
    assert not list((tmp_path / "other").iterdir())
    assert entry.files[0].sha256


@pytest.mark.skipif(os.name == "nt", reason="a script is no program on Windows")
def test_an_unpacker_that_fails_is_quoted(tmp_path, monkeypatch, only_fake_programs):
    fake_unpacker(only_fake_programs)
    register(
        monkeypatch,
        "lost",
        (DataFile("broken.mat", (digest(b""),)),),
        (Download("https://web/lost.rar", ("broken.mat",)),),
    )
    with pytest.raises(ValueError, match=r"bsdtar could not unpack 'broken.mat'.*no such member"):
        fetch_dataset(
            "lost", data_home=tmp_path / "h", downloader=Web(**{"lost.rar": b"x"}), announce=str
        )


@pytest.mark.usefixtures("only_fake_programs")
def test_without_an_unpacker_nothing_is_downloaded(tmp_path):
    web = Web()
    with pytest.raises(FileNotFoundError, match=r"RAR archive, and none of bsdtar.*lost.mat"):
        fetch_dataset("lost", data_home=tmp_path / "home", downloader=web)
    assert not web.calls


def test_what_has_no_address_is_explained(tmp_path):
    web = Web()
    with pytest.raises(FileNotFoundError, match=r"Soccer Player is not in the data.*palm.seu"):
        fetch_dataset("soccer_player", data_home=tmp_path, downloader=web)
    assert not web.calls


def test_without_pooch_the_extra_is_named(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "pooch", None)
    with pytest.raises(ImportError, match=r"pip install 'appellate\[data\]' .*\. Or: Get"):
        fetch_dataset("cifar10h", data_home=tmp_path)


def test_loaders_fetch_what_is_missing(tmp_path, monkeypatch):
    source = tmp_path / "source.mat"
    write_mat(source, *small_problem())
    asked = []

    def fetch(name, *, data_home):
        asked.append(name)
        shutil.copy(source, data_home / "lost.mat")
        return {"lost.mat": data_home / "lost.mat"}

    monkeypatch.setattr(download, "fetch_dataset", fetch)
    home = tmp_path / "home"
    home.mkdir()
    for _ in range(2):
        with pytest.warns(UserWarning, match="not the published"):
            load_lost(data_home=home)
    assert asked == ["lost"]
    with pytest.raises(FileNotFoundError, match="CIFAR-10 is not in the data home"):
        load_cifar10(data_home=home, download_if_missing=False)
