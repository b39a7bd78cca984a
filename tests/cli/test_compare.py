"""``appellate compare``: what it refuses, and its exit code."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from appellate.cli.app import run

pytest.importorskip("matplotlib"), pytest.importorskip("jinja2")


def write(path, labels):
    lines = [f"r{i},{i * 7 % 5}.5,{i * 3 % 4}.1,{label}" for i, label in enumerate(labels)]
    path.write_text("\n".join(["id,x,z,c", *lines]) + "\n")
    return ["compare", str(path), "--candidates", "c", "--id", "id", "--methods", "knn"]


def test_refuses_a_table_with_one_label(tmp_path, capsys):
    """It scored all methods 0.000, after a warning about the shape of y."""
    arguments = write(tmp_path / "t.csv", ["a"] * 12)
    assert run([*arguments, "--out", str(tmp_path / "o")]) == 2
    said = capsys.readouterr().err
    assert "all rows have the same label, so there is nothing to compare" in said
    assert "Warning" not in said
    assert not (tmp_path / "o").exists()


@pytest.mark.parametrize(("failures", "code"), [({}, 0), ({"run": "why"}, 1)])
def test_the_exit_code_tells_whether_methods_failed(failures, code, tmp_path, monkeypatch):
    summary = SimpleNamespace(failures=failures)
    monkeypatch.setattr("appellate.cli.compare.compute_runs", lambda *_: (summary, None))
    monkeypatch.setattr("appellate.experiments.writing.write_comparison", lambda *_: [])
    arguments = write(tmp_path / "t.csv", ["a|b", "a", "b"] * 4)
    assert run([*arguments, "--out", str(tmp_path / "o")]) == code
