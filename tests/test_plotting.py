"""Figures of confidence trajectories."""

from __future__ import annotations

import sys

import numpy as np
import pytest
from matplotlib import pyplot
from matplotlib.figure import Figure
from sklearn.exceptions import NotFittedError

from appellate import PLCPClassifier, PLKNNClassifier, SUREClassifier
from appellate.datasets import make_partial_labels
from appellate.plotting import plot_trajectories


@pytest.fixture(scope="module")
def truth():
    return np.array(["ant", "bee", "cat"])[np.arange(60) % 3]


@pytest.fixture(scope="module")
def model(truth):
    rng = np.random.default_rng(0)
    X = 0.9 * np.eye(3)[np.arange(60) % 3] + rng.normal(scale=0.5, size=(60, 3))
    candidates = make_partial_labels(truth, flip_probability=0.6, random_state=0)
    names = [[n for n, c in zip(np.unique(truth), row, strict=True) if c] for row in candidates]
    return PLCPClassifier(PLKNNClassifier(5), keep_confidences=True).fit(X, names)


@pytest.fixture
def figure():
    return Figure(layout="constrained")


def lines_of(panel):
    """The trajectories of a panel, by label: base and partner, without the level lines."""
    return [line for line in panel.lines if len(line.get_xdata()) > 2]


def title_of(panel):
    return " ".join(
        text.get_text() for box in panel.artists for text in box.findobj() if _has_text(text)
    )


def _has_text(artist):
    return hasattr(artist, "get_text") and isinstance(artist.get_text(), str)


def contested(model):
    return np.flatnonzero(model.overturned_)


def test_one_panel_a_sample_with_base_and_partner_of_both_labels(model, truth, figure):
    rows = contested(model)[:3]
    assert len(rows) == 3
    panels = plot_trajectories(model, rows, truth=truth, figure=figure)
    assert panels.shape == (3,)
    for panel in panels:
        for line in lines_of(panel):
            assert len(line.get_xdata()) == model.n_iter_ + 1
            assert min(line.get_ydata()) >= 0
            assert max(line.get_ydata()) <= 1
        assert len(lines_of(panel)) in (4, 6)
    ticks = [tick.get_text() for tick in panels[-1].get_xticklabels()]
    assert ticks == ["start", *map(str, range(1, model.n_iter_ + 1))]
    # Two panels stand side by side and the third below the first.
    labels = [panel.get_xlabel() for panel in panels]
    assert labels == ["", "round of mutual supervision", "round of mutual supervision"]


def test_the_lines_are_the_recorded_confidences(model, figure):
    row = int(contested(model)[0])
    (panel,) = plot_trajectories(model, row, figure=figure)
    verdict = model.label_history_[0, row]
    partner, base = lines_of(panel)[:2]
    size = model.candidates_[row].sum()
    for line, name in ((base, "base_confidence"), (partner, "partner_confidence")):
        rounds = [getattr(each, name)[row] for each in model.history_]
        expected = [1 / size, *(c[verdict] / c.sum() for c in rounds)]
        assert np.allclose(line.get_ydata(), expected)
    levels = [line.get_ydata()[0] for line in panel.lines if len(line.get_xdata()) == 2]
    assert model.verdict_confidence_[row, verdict] in levels


def test_titles_name_sample_labels_and_truth(model, truth, figure):
    row = int(contested(model)[0])
    ids = [f"photo-{i}" for i in range(60)]
    (panel,) = plot_trajectories(model, row, truth=truth, ids=ids, figure=figure)
    title = title_of(panel)
    assert f"sample photo-{row}" in title
    assert f"first label {model.verdict_[row]}" in title
    assert f"final label {model.transduction_[row]}" in title
    truth_is_drawn = f"{truth[row]} (true)" in title or f"true label {truth[row]}" in title
    assert truth_is_drawn


def test_an_unchanged_label_is_shown_with_the_next_candidate(model, figure):
    row = int(np.flatnonzero(~model.overturned_ & (model.candidates_.sum(axis=1) > 1))[0])
    (panel,) = plot_trajectories(model, row, figure=figure)
    assert len(lines_of(panel)) == 4
    assert "next candidate" in title_of(panel)


def test_a_single_candidate_has_one_label(model, figure):
    row = int(np.flatnonzero(model.candidates_.sum(axis=1) == 1)[0])
    (panel,) = plot_trajectories(model, row, figure=figure)
    assert len(lines_of(panel)) == 2


def test_a_mask_and_missing_truths_are_fine(model, truth, figure):
    partly = [None] * 30 + truth[30:].tolist()
    panels = plot_trajectories(model, model.overturned_, truth=partly, figure=figure)
    assert len(panels) == model.overturned_.sum()
    assert len(figure.axes) == len(panels)


def test_the_legend_overlaps_no_panel(model, truth, figure):
    panels = plot_trajectories(model, contested(model)[:4], truth=truth, figure=figure)
    figure.draw_without_rendering()
    legend = figure.legends[0].get_window_extent()
    for panel in panels:
        assert not legend.overlaps(panel.get_tightbbox())


def test_pyplot_makes_the_figure_by_default(model):
    before = set(pyplot.get_fignums())
    panels = plot_trajectories(model, [0, 1])
    (number,) = set(pyplot.get_fignums()) - before
    assert panels[0].figure is pyplot.figure(number)
    pyplot.close(number)


def test_saving_needs_no_pyplot_figure(model, figure, tmp_path):
    before = pyplot.get_fignums()
    panels = plot_trajectories(model, [0, 1, 2, 3, 4], figure=figure)
    for name, start in (("a.png", b"\x89PNG"), ("a.pdf", b"%PDF")):
        panels[0].figure.savefig(tmp_path / name)
        assert (tmp_path / name).read_bytes().startswith(start)
    assert pyplot.get_fignums() == before


@pytest.mark.parametrize(
    ("samples", "options", "message"),
    [
        ([60], {}, "row 60: no such training row; they go from 0 to 59"),
        ([-1], {}, "row -1: no such"),
        ([], {}, "samples must be one or more numbers"),
        ([0.5], {}, "samples must be one or more numbers"),
        ([True, False], {}, "a mask of 60 booleans"),
        ([0], {"truth": ["ant"]}, r"truth has shape \(1,\), but 60 samples"),
        ([0], {"ids": [1, 2]}, r"ids has shape \(2,\)"),
    ],
)
def test_mistakes_are_named(model, figure, samples, options, message):
    with pytest.raises(ValueError, match=message):
        plot_trajectories(model, samples, figure=figure, **options)


def test_confidences_must_have_been_kept(figure):
    model = PLCPClassifier(SUREClassifier()).fit([[0.0], [1.0]], ["a|b", "b"])
    with pytest.raises(ValueError, match="keep_confidences=True"):
        plot_trajectories(model, 0, figure=figure)
    with pytest.raises(NotFittedError):
        plot_trajectories(PLCPClassifier(SUREClassifier()), 0, figure=figure)


def test_without_matplotlib_the_extra_is_named(model, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(ImportError, match=r"matplotlib: pip install 'appellate\[plot\]'"):
        plot_trajectories(model, 0)
