"""Figures of a run or a docket: what is drawn is what the run says."""

from __future__ import annotations

import base64

import numpy as np
import pytest
from matplotlib import pyplot
from matplotlib.figure import Figure
from scipy.stats import beta

import appellate
from appellate import JuryClassifier, TestimonyClassifier, as_answers, plotting
from appellate.docket import Docket
from appellate.plotting import plot_annotators, plot_confusion, plot_effort, plot_reliability
from appellate.testing import make_clusters
from tests.test_rectification import NAMES, make_crowd, make_table

pytestmark = pytest.mark.filterwarnings("ignore::appellate.NoteWarning")
PNG = b"\x89PNG"


@pytest.fixture(scope="module")
def crowd():
    table, truth = make_crowd()
    table["truth"] = NAMES[truth]
    return appellate.rectify(table, annotators="w*")


@pytest.fixture(scope="module")
def sets():
    return appellate.rectify(make_table()[0], candidates="maybe")


@pytest.fixture
def axes():
    return Figure(layout="constrained").subplots()


def dots(axes):
    """The points that are drawn as dots, (k, 2)."""
    found = [line.get_xydata() for line in axes.lines if line.get_marker() == "o"]
    return np.concatenate(found) if found else np.empty((0, 2))


def texts(axes):
    return [text.get_text() for text in axes.texts]


def test_reliability_shows_the_share_of_correct_labels_by_confidence(crowd, axes):
    plot_reliability(crowd, axes=axes)
    sure = crowd.docket["confidence"].to_numpy()
    right = (crowd.docket["label"] == crowd.docket["truth"]).to_numpy()
    expected, counts, spans = [], [], []
    for low in range(10):
        inside = (sure >= low / 10) & ((sure < (low + 1) / 10) | (low == 9))
        if inside.any():
            hits, n = right[inside].sum(), inside.sum()
            expected.append((sure[inside].mean(), hits / n))
            counts.append(str(n))
            spans.append(beta.ppf([0.025, 0.975], hits + 0.5, n - hits + 0.5))
    np.testing.assert_allclose(dots(axes), expected)
    assert [text for text in texts(axes) if text.isdigit()] == counts
    drawn = [path.vertices[:, 1] for path in axes.collections[0].get_paths()]
    np.testing.assert_allclose(drawn, spans)
    assert axes.get_title(loc="left").startswith(f"{right.mean():.1%} of {len(right)} labels")


def test_no_count_of_reliability_hides_a_dot_or_leaves_the_figure():
    sure = np.repeat([0.05, 0.46, 0.55, 0.97], [1, 24, 40, 80])
    right = np.arange(len(sure)) % 2 == 0
    right[0], right[-80:] = False, True
    shown = np.stack([sure, 1 - sure], axis=1)
    docket = Docket(
        np.ones((len(sure), 2), dtype=bool),
        np.array(["cat", "dog"]),
        shown,
        shown,
        np.zeros((2, len(sure)), dtype=int),
        truth=np.where(right, "cat", "dog"),
    )
    figure = plotting.new_figure(3.4, 3.2)
    axes = plot_reliability(docket, axes=figure.subplots())
    figure.canvas.draw()
    centres = axes.transData.transform(dots(axes))
    counts = [text for text in axes.texts if text.get_text().isdigit()]
    assert len(counts) == len(centres) == 4
    for text in axes.texts:
        box = text.get_window_extent()
        assert figure.bbox.x0 <= box.x0
        assert box.x1 <= figure.bbox.x1
        assert box.y1 <= figure.bbox.y1
    radius = 3 / 72 * figure.dpi
    for text in counts:
        box = text.get_window_extent()
        nearest = np.clip(centres, box.min, box.max)
        assert np.linalg.norm(nearest - centres, axis=1).min() > radius


def test_reliability_leaves_out_reviewed_rows_and_unknown_truths(axes):
    X, candidates, truth = make_clusters()
    docket = JuryClassifier("kernel", random_state=0).fit(X, candidates).docket(output="docket")
    known = truth.astype(object)
    known[::2] = None
    plot_reliability(docket, truth=known, axes=axes)
    assert f"of {len(known[1::2])} labels" in axes.get_title(loc="left")
    table, right = make_crowd()
    table["truth"] = NAMES[right]
    run = appellate.rectify(table, annotators="w*").decide({"0": NAMES[right[0]]})
    again = Figure().subplots()
    plot_reliability(run, axes=again)
    assert f"of {len(table) - 1} labels" in again.get_title(loc="left")


def test_confusion_counts_true_and_final_labels(crowd, axes):
    plot_confusion(crowd, axes=axes)
    frame = crowd.docket
    cells = {(text.get_position(), text.get_text()) for text in axes.texts}
    expected = set()
    for i, true in enumerate(NAMES):
        for j, final in enumerate(NAMES):
            count = int(((frame["truth"] == true) & (frame["label"] == final)).sum())
            if count:
                expected.add(((j, i), str(count)))
    note = {each for each in cells if "differ" in each[1]}
    assert cells - note == expected
    assert [tick.get_text() for tick in axes.get_yticklabels()] == NAMES.tolist()
    assert (axes.get_ylabel(), axes.get_xlabel()) == ("true label", "final label")


def test_confusion_with_answers_and_with_first_labels(crowd, sets, axes):
    plot_confusion(crowd, against="answers", axes=axes)
    votes = crowd._fitted.prepared.votes
    final = crowd.docket["label"].to_numpy()
    expected = np.array([votes[final == name].sum(axis=0) for name in NAMES])
    cells = {t.get_position(): t.get_text() for t in axes.texts if t.get_text().isdigit()}
    for (j, i), text in cells.items():
        assert expected[int(i), int(j)] == int(text)
    assert len(cells) == np.count_nonzero(expected)
    other = plot_confusion(sets, axes=Figure().subplots())
    assert other.get_ylabel() == "first label"
    changed = int((sets.docket["first_label"] != sets.docket["label"]).sum())
    assert other.get_title(loc="left") == f"{changed} of {len(sets.docket)} differ"
    with pytest.raises(ValueError, match="no annotators' answers"):
        plot_confusion(sets, against="answers")
    with pytest.raises(ValueError, match="No true label is known"):
        plot_confusion(sets, against="truth")
    with pytest.raises(ValueError, match="against='votes' is not known"):
        plot_confusion(sets, against="votes")


def test_confusion_of_many_labels_draws_those_of_the_most_mistakes(axes):
    rng = np.random.default_rng(0)
    l = 30
    truth = np.repeat(np.arange(l), 4)
    X = np.eye(l)[truth] + 0.05 * rng.normal(size=(4 * l, l))
    sets = np.eye(l, dtype=bool)[truth]
    model = JuryClassifier("kernel", random_state=0).fit(X, sets)
    wrong = model.classes_[truth].copy()
    wrong[truth == 29] = model.classes_[28]  # mistakes of these two only
    plot_confusion(model.docket(truth=wrong, output="docket"), axes=axes)
    drawn = [tick.get_text() for tick in axes.get_yticklabels()]
    assert len(drawn) == 20
    assert {"28", "29"} <= set(drawn)
    assert any("10 labels with fewer mistakes are left out" in text for text in texts(axes))


def test_annotators_are_drawn_with_intervals_the_least_reliable_first(crowd, axes):
    plot_annotators(crowd, axes=axes)
    people = crowd.annotators.sort_values("accuracy")
    assert [tick.get_text() for tick in axes.get_yticklabels()] == people["person"].tolist()
    np.testing.assert_allclose(dots(axes)[:, 0], people["accuracy"])
    drawn = [each.get_paths()[0].vertices[:, 0] for each in axes.collections]
    np.testing.assert_allclose(drawn, people[["low", "high"]])
    counts = [text for text in texts(axes) if text.replace(",", "").isdigit()]
    assert counts == [f"{n:,.0f}" for n in people["answers"]]
    few = plot_annotators(crowd._fitted.classifier, most=2, axes=Figure().subplots())
    assert len(dots(few)) == 2
    assert any("2 more are not shown" in text for text in texts(few))


def test_a_docket_and_candidate_sets_have_no_annotators(sets):
    for source in (sets, sets._fitted.docket):
        with pytest.raises(ValueError, match="The source has no annotators"):
            plot_annotators(source)


def test_effort_is_that_of_the_run_and_of_the_true_labels(crowd, axes):
    plot_effort(crowd, axes=axes)
    expected, true = (line.get_ydata() for line in axes.lines[:2])
    effort = crowd.effort()
    for reviewed, left in zip(effort["reviewed"], effort["expected_wrong"], strict=True):
        assert abs(expected[reviewed] - left) <= 0.0051
    wrong = (crowd.docket["label"] != crowd.docket["truth"]).to_numpy()
    assert true[0] == wrong.sum()
    order = np.argsort(crowd.docket["confidence"].to_numpy(), kind="stable")
    assert true[30] == wrong[order[30:]].sum()
    assert true[-1] == expected[-1] == 0


def test_effort_of_a_docket_without_true_labels(axes):
    X, candidates, _ = make_clusters()
    model = JuryClassifier("kernel", random_state=0).fit(X, candidates)
    plot_effort(model.docket(output="docket"), axes=axes)
    lines = [line for line in axes.lines if line.get_marker() != "o"]
    assert len(lines) == 1
    assert np.isclose(lines[0].get_ydata()[0], (1 - model.confidence_.max(axis=1)).sum())
    assert any(text.endswith("now") for text in texts(axes))


def test_effort_of_plcp_is_refused():
    run = appellate.rectify(make_table()[0], candidates="maybe", base="knn")
    with pytest.raises(ValueError, match="its confidence is not calibrated"):
        plot_effort(run)
    assert "<img" in run._repr_html_()  # the other figure


def test_a_loaded_run_draws_the_same(crowd, tmp_path):
    pytest.importorskip("skops")
    again = appellate.load(crowd.save(tmp_path / "run"))
    for draw in (plot_reliability, plot_annotators, plot_effort, plot_confusion):
        one, two = (draw(run, axes=Figure().subplots()) for run in (crowd, again))
        assert texts(one) == texts(two)
        np.testing.assert_allclose(dots(one), dots(two), atol=1e-4)


def test_without_axes_a_figure_of_pyplot_is_made(crowd):
    axes = plot_effort(crowd)
    assert axes.figure.number in pyplot.get_fignums()
    pyplot.close(axes.figure)


def test_names_are_never_read_as_formulas(axes):
    answers = [["$\\frac{", "$\\frac{", "<b>"], ["<b>", "<b>", "<b>"], ["$\\frac{"] * 3]
    model = TestimonyClassifier().fit(None, as_answers(answers))
    plot_confusion(model.docket(output="docket"), axes=axes)
    axes.figure.canvas.draw()
    assert [t.get_text() for t in axes.get_yticklabels()] == ["$\\frac{", "<b>"]


def test_refuses_what_is_neither_a_run_nor_a_docket():
    with pytest.raises(
        TypeError, match=r"needs a run of appellate\.rectify or a Docket, not a dict"
    ):
        plot_effort({})
    with pytest.raises(ValueError, match="truth has 2 values, but there are"):
        plot_effort(
            TestimonyClassifier().fit(None, [["a"], ["b"], ["a"]]).docket(output="docket"),
            truth=["a", "b"],
        )


# -- in a notebook --------------------------------------------------------------------------


def images(html):
    parts = html.split("data:image/png;base64,")[1:]
    return [base64.b64decode(part.partition('"')[0]) for part in parts]


def test_a_notebook_shows_the_summary_and_two_figures(crowd, sets):
    for run in (crowd, sets):
        html = run._repr_html_()
        assert [image[:4] for image in images(html)] == [PNG, PNG]
        assert html.startswith("<pre>Rectification of")
    table = make_crowd(60)[0]
    alone = appellate.rectify(table, annotators="w*")
    assert "Reliability of the annotators" in alone._repr_html_()


def test_a_notebook_without_matplotlib_shows_the_summary(crowd, monkeypatch):
    find = plotting.find_spec
    monkeypatch.setattr(
        plotting, "find_spec", lambda name: None if name == "matplotlib" else find(name)
    )
    html = crowd._repr_html_()
    assert "<img" not in html
    assert html.startswith("<pre>Rectification of")
    with pytest.raises(ImportError, match="Figures need matplotlib"):
        plot_effort(crowd)


def test_a_notebook_escapes_the_names_of_a_table():
    table = make_crowd(60)[0].replace({"cat": "<script>alert(1)</script>"})
    html = appellate.rectify(table, annotators="w*")._repr_html_()
    assert "<script>" not in html


def test_figures_leave_pyplot_alone_in_a_notebook(crowd):
    before = pyplot.get_fignums()
    crowd._repr_html_()
    assert pyplot.get_fignums() == before
