"""Learning curves: what more labels, a missing truth and shared sets do to every method."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.datasets import load_digits

from appellate.datasets import make_partial_labels
from appellate.experiments.figures import COLOURS, place_legend
from appellate.experiments.methods import JURY, RIDGE, alone, coupled, with_jury
from appellate.experiments.problems import Dataset
from appellate.experiments.reports import FIXED, Report, Sheet, mean_text
from appellate.experiments.results import Results, mean_spread
from appellate.plotting import dress, new_figure

if TYPE_CHECKING:
    from matplotlib.figure import Figure

#: What is varied: its meaning, and the values that it takes.
CURVES = {
    "flip": ("probability of a further candidate (q)", (0.1, 0.3, 0.5, 0.7)),
    "noise": ("share of rows whose truth is missing (q = 0.3)", (0.0, 0.1, 0.2, 0.3)),
    "shared": ("share of rows in bags with shared sets (else q = 0.3)", (0.0, 0.5, 1.0)),
}


#: Methods that are drawn: strong and simple ones, PL-AGGD alone and coupled.
CURVE_METHODS = (RIDGE, alone("aggd"), coupled("aggd"), with_jury("aggd"), JURY)


def curve_problems() -> dict[str, Dataset]:
    """Digits of scikit-learn with made-up candidate sets, one problem a point."""
    images, truth = load_digits(return_X_y=True)
    X, truth = images / 16, truth.astype(np.intp)
    given: dict[str, Any] = {"classes": list(range(10)), "random_state": 0}
    found = {}
    for curve, value in ((curve, x) for curve, (_, values) in CURVES.items() for x in values):
        options = given | {"flip_probability": value if curve == "flip" else 0.3}
        if curve == "noise":
            options |= {"strategy": "noisy", "eta": value}
        sets = make_partial_labels(truth, **options)
        shared = np.random.default_rng(0).random(len(truth)) < value
        if curve == "shared" and shared.any():
            sets[shared] = make_partial_labels(truth[shared], strategy="set_first", **given)
        name = f"digits-{curve}-{value:g}"
        found[name] = Dataset(name, name, X, sets, truth)
    return found


def report_curves(results: Results, *_: object) -> Report:
    """Report test and transductive accuracy at every point of the three curves."""
    sheets, records = [], []
    for curve, (meaning, values) in CURVES.items():
        names = [f"digits-{curve}-{value:g}" for value in values]
        for score in ("test", "transductive"):
            rows = []
            for method in CURVE_METHODS:
                found = [mean_spread(results.scores(name, method, score)) for name in names]
                rows.append((method.title, *(mean_text(*each) for each in found)))
                records += [
                    {"curve": curve, "value": x, "score": score, "method": method.title}
                    | {"mean": mean}
                    for x, (mean, _) in zip(values, found, strict=True)
                ]
            header = ("method", *(f"{value:g}" for value in values))
            sheets.append(Sheet(f"{meaning}: {score} accuracy", header, tuple(rows)))
    caption = "Digits, 1,797 images, sets made up; mean and deviation over splits."
    notes = (f"{len(results.splits)} splits. {FIXED}",)
    title, drawn = "Learning curves", _draw(results)
    return Report("curves", title, caption, tuple(sheets), tuple(records), notes, drawn)


def _draw(results: Results) -> Figure:
    """Draw test accuracy over what is varied, one panel each, one line a method."""
    figure = new_figure(9.6, 3.2)
    panels = figure.subplots(1, len(CURVES), sharey=True, squeeze=False)[0]
    for panel, (curve, (meaning, values)) in zip(panels, CURVES.items(), strict=True):
        for method, (colour, marker) in zip(CURVE_METHODS, COLOURS, strict=True):
            found = [results.scores(f"digits-{curve}-{x:g}", method, "test") for x in values]
            points = [(x, v.mean()) for x, v in zip(values, found, strict=True) if v is not None]
            look: dict[str, Any] = {"color": colour, "marker": marker, "markersize": 4.5}
            panel.plot(*zip(*points, strict=True), label=method.title, **look)
        panel.set_xlabel(meaning, size=8)
        dress(panel, "both")
    panels[0].set_ylabel("test accuracy", size=9)
    place_legend(figure, panels[0].get_lines())
    return figure
