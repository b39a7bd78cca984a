"""The examples run, without data that may not be passed on; `make docs` runs them too."""

from __future__ import annotations

import runpy
from pathlib import Path

import pytest

EXAMPLES = sorted((Path(__file__).parents[1] / "examples").glob("plot_*.py"))


@pytest.mark.slow
@pytest.mark.skipif(not EXAMPLES, reason="the examples are not part of this installation")
@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_examples_run(path, tmp_path, monkeypatch):
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    monkeypatch.setenv("APPELLATE_DATA_HOME", str(tmp_path))
    monkeypatch.setattr(plt, "show", lambda: None)
    before = plt.get_fignums()
    runpy.run_path(str(path))
    drawn = [n for n in plt.get_fignums() if n not in before]
    assert drawn
    for number in drawn:
        plt.figure(number).savefig(tmp_path / "figure.png", dpi=40)
    assert (tmp_path / "figure.png").stat().st_size > 1000
    plt.close("all")
