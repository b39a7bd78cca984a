"""Studies around Lost: sensitivity, samples that went astray, and the authors' own reading."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np

from appellate.experiments import problems
from appellate.experiments.figures import OURS, place_legend
from appellate.experiments.layouts import Column, ResultTable
from appellate.experiments.methods import Method, alone, coupled
from appellate.experiments.problems import Dataset
from appellate.experiments.protocol import split_rows
from appellate.experiments.reports import (
    FIXED,
    MARKS,
    Report,
    Sheet,
    mean_text,
    overview,
    p_value,
    report_table,
    share,
)
from appellate.experiments.results import Results, fill, finite, mean_spread
from appellate.metrics import paired_comparison
from appellate.paper.authors import AUTHORS, corrected_shares, stopping_round
from appellate.paper.layouts import MEASURES, make_table
from appellate.paper.printed import REPRESENTATIVE_ERRORS
from appellate.paper.traces import TRACED, TRACES
from appellate.plotting import INK, MUTED, dress, new_figure, plot_trajectories

if TYPE_CHECKING:
    from matplotlib.figure import Figure

DATASET = "lost"
BASE = "aggd"
_TRAINING = "transductive accuracy"
_RECORDED = (
    *("parameter", "symbol", "value", "default", "test_mean", "test_std"),
    *("transductive_mean", "transductive_std", "gain_over_default", "p_paired_t"),
)


@dataclass(frozen=True)
class Curve:
    """One parameter of PLCP and the values it is given.

    Attributes
    ----------
    parameter, symbol, meaning : str
        Name here, in the paper, and in words.
    values : tuple of float
        From small to large, the default among them.
    default : float
        The paper's choice.
    log : bool
        Whether to draw the values on a logarithmic scale.
    """

    parameter: str
    symbol: str
    meaning: str
    values: tuple[float, ...]
    default: float
    log: bool = False

    def method(self, value: float) -> Method:
        """PL-AGGD-PLCP with the parameter at a value."""
        if value == self.default:
            return coupled(BASE)
        title = f"PL-AGGD-PLCP {self.parameter}={value:g}"
        return coupled(BASE, title=title, settings={self.parameter: value})


_RIDGES = (0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1.0)
_LINKS = (0.1, 0.5, 1.0, 2.0, 4.0, 8.0)
_SHARES = (0.0, 0.1, 0.3, 0.5, 0.7, 0.9)
_BLURS = (-6.0, -4.0, -3.0, -2.0, -1.0, 0.0, 1.0, 2.0, 3.0)
SENSITIVITY = (
    Curve("regularization", "lambda", "ridge of the partner", _RIDGES, 0.05, log=True),
    Curve("smoothing", "alpha", "share of the old confidence", _SHARES, 0.5),
    Curve("collaboration", "gamma", "weight of the link", _LINKS, 2.0, log=True),
    Curve("blur", "k", "temperature of the blur", _BLURS, -1.0),
)


def sensitivity_methods(_: object, problem: Dataset) -> list[Method]:
    """All methods of the four curves, and the base alone."""
    if problem.name != DATASET:
        return []
    found = [curve.method(value) for curve in SENSITIVITY for value in curve.values]
    return list(dict.fromkeys([alone(BASE), *found]))


def trace_methods() -> dict[str, Method]:
    """Traced methods by the name of their line: three bases, two also with a graph start."""
    bases = {"aggd": "PL-AGGD", "sure": "SURE", "lalo": "LALO"}
    own = {t: Method(f"{t}-PLCP, traced", "plcp", b, details=TRACED) for b, t in bases.items()}
    for base in ("sure", "lalo"):
        title = f"{bases[base]}-PLCP, graph start, traced"
        graph = Method(title, "plcp", base, start="graph", details=TRACED)
        own[f"{bases[base]}, graph start"] = graph
    return own


def report_sensitivity(results: Results, *_: object) -> Report:
    """Report the four curves over lambda, alpha, gamma and k on Lost."""
    reference = results.scores(DATASET, coupled(BASE), "test")
    sheets = []
    records = []
    stacked = []
    for curve in SENSITIVITY:
        rows = []
        for value in curve.values:
            method, default = curve.method(value), value == curve.default
            test = results.scores(DATASET, method, "test")
            training = results.scores(DATASET, method, "transductive")
            if test is None or training is None or reference is None:
                continue
            pair = paired_comparison(test, reference)
            gain = share(pair.difference, sign=True), p_value(pair.t_pvalue)
            told = ("", "", "") if default else (*gain, MARKS[pair.outcome()])
            first, last = mean_spread(test), mean_spread(training)
            name = f"{value:g}{' (the paper)' if default else ''}"
            rows.append((name, mean_text(*first), *told, mean_text(*last)))
            stacked.append((curve.symbol, name, mean_text(*first), mean_text(*last), told[-1]))
            numbers = (*first, *last, pair.difference, finite(pair.t_pvalue))
            named = (curve.parameter, curve.symbol, value, default, *numbers)
            records.append(dict(zip(_RECORDED, named, strict=True)))
        header = (curve.symbol, "test accuracy", "against the default", "p", "mark", _TRAINING)
        sheets.append(Sheet(f"{curve.symbol}, {curve.meaning}", header, tuple(rows)))
    base = results.scores(DATASET, alone(BASE), "test")
    notes = [
        f"{len(results.splits)} splits of Lost. The paper draws these curves without giving "
        "numbers, so only our numbers are printed.",
        "A bullet (•) or circle (○) means that the value is significantly better or worse than "
        "the paper's choice (paired t-test at 0.05).",
    ]
    if base is not None:
        notes.append(f"PL-AGGD alone: test accuracy {share(float(base.mean()))}.")
    title = "Sensitivity of PL-AGGD-PLCP on Lost"
    caption = "Test accuracy when one parameter is varied and the others are the paper's."
    columns = ("parameter", "value", "test accuracy", _TRAINING, "mark")
    all_sheets = (Sheet("Overview", columns, tuple(stacked)), *sheets)
    texts, drawn = ("sensitivity", title, caption), _draw_sensitivity(results)
    return Report(*texts, all_sheets, tuple(records), tuple(notes), drawn)


def traced(_: object, problem: Dataset) -> list[Method]:
    """All traced methods."""
    return list(trace_methods().values()) if problem.name == DATASET else []


def report_trajectories(results: Results, *_: object) -> Report:
    """Report the errors that are corrected: false labels that start high, or rise."""
    examples = []
    counts = []
    records = []
    for title, method in trace_methods().items():
        rows = {split: results.row(DATASET, method, split) for split in results.splits}
        found = {s: row.details for s, row in rows.items() if row is not None and row.details}
        if not found:
            continue
        told = [
            (
                each["mislabeled"],
                each["corrected"],
                *(each["counts"][kind] for kind in TRACES),
            )
            for each in found.values()
        ]
        counts.append(
            (title, *(f"{sum(each) / len(told):.1f}" for each in zip(*told, strict=True)))
        )
        base, graph = title.split(",")[0], "," in title
        for kind in ("rises", "starts high"):
            if (base, kind) in REPRESENTATIVE_ERRORS and graph == (kind == "starts high"):
                printed = _arrows(*REPRESENTATIVE_ERRORS[base, kind])
                examples.append((base, kind, "paper", "", *printed))
            split = next((s for s in found if found[s]["examples"][kind]), None)
            if split is None:
                continue
            first = found[split]["examples"][kind][0]
            arrows = _arrows(first["false_confidence"], first["true_confidence"])
            examples.append((title, kind, "ours", f"{first['row']} (split {split})", *arrows))
            for each in found[split]["examples"][kind]:
                record = {"base": title, "error": kind, "split": split}
                record |= {key: each[key] for key in ("row", "false_label", "true_label")}
                for which in ("false", "true"):
                    names = (f"{which}_{when}" for when in ("start", "alone", "coupled"))
                    record |= zip(names, each[f"{which}_confidence"], strict=True)
                records.append(record)
    header = (
        *("base", "error", "source", "row", "false label alone", "true label alone"),
        *("false label with PLCP", "true label with PLCP"),
    )
    title = f"How often, mean over {len(results.splits)} splits"
    sheets = (
        Sheet("Overview", header, tuple(examples)),
        Sheet(title, ("base", "wrong verdicts", "corrected", *TRACES), tuple(counts)),
    )
    caption = (
        "Confidence in the false label of the verdict and in the true label, from the start to "
        "the end of the base alone, and from there to the appeal. "
        + " ".join(f"'{kind}': {text}." for kind, text in TRACES.items())
    )
    note = (
        "The clearest sample of each kind in the first split that has one; the figure shows "
        f"two of each for PL-AGGD in split {results.splits[0]}. 'Graph start' begins with the "
        f"confidence of the neighbour graph, as PL-AGGD does, instead of equal shares. {FIXED}"
    )
    drawn = _draw_trajectories(results)
    title = "Representative errors on Lost (the paper's Fig. 2 and its table of errors)"
    return Report("trajectories", title, caption, sheets, tuple(records), (note,), drawn)


def _arrows(false: Any, true: Any) -> list[str]:
    steps = ((each, i) for i in (0, 1) for each in (false, true))
    return [f"{each[i]:.4f} → {each[i + 1]:.4f}" for each, i in steps]


def _draw_sensitivity(results: Results) -> Figure:
    """Draw the four curves on Lost: test accuracy, its deviation, and the base alone."""
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    figure = new_figure(9.6, 2.9)
    panels = figure.subplots(1, len(SENSITIVITY), sharey=True, squeeze=False)[0]
    base = results.scores(DATASET, alone(BASE), "test")
    for panel, curve in zip(panels, SENSITIVITY, strict=True):
        scores = [results.scores(DATASET, curve.method(v), "test") for v in curve.values]
        found = [(v, s) for v, s in zip(curve.values, scores, strict=True) if s is not None]
        x = [value for value, _ in found]
        mean = np.array([s.mean() for _, s in found])
        spread = np.array([s.std(ddof=min(1, len(s) - 1)) for _, s in found])
        panel.fill_between(x, mean - spread, mean + spread, color=OURS, alpha=0.16, linewidth=0)
        panel.plot(x, mean, color=OURS, marker="o", markersize=4.5, linewidth=1.6)
        panel.axvline(curve.default, color=INK, linestyle=(0, (1, 2)), linewidth=1)
        if base is not None:
            panel.axhline(base.mean(), color=MUTED, linestyle=(0, (5, 2)), linewidth=1.2)
        if curve.log:
            panel.set_xscale("log")
        symbol = f"${curve.symbol}$" if len(curve.symbol) == 1 else rf"$\{curve.symbol}$"
        panel.set_xlabel(f"{symbol}, {curve.meaning}", size=9, color=INK)
        dress(panel, "both")
    panels[0].set_ylabel("test accuracy on Lost", size=9, color=INK)
    handles = [
        Line2D([], [], color=OURS, marker="o", markersize=5, label="PL-AGGD-PLCP"),
        Patch(facecolor=OURS, alpha=0.16, label="± deviation over splits"),
        Line2D([], [], color=MUTED, linestyle=(0, (5, 2)), label="PL-AGGD alone"),
        Line2D([], [], color=INK, linestyle=(0, (1, 2)), label="the paper's value"),
    ]
    place_legend(figure, handles)
    return figure


def _draw_trajectories(results: Results) -> Figure | None:
    """Fit PL-AGGD-PLCP on the first split again and draw two samples of each error."""
    split, problem = results.splits[0], results.problems[DATASET]
    row = results.row(DATASET, trace_methods()["PL-AGGD"], split)
    if row is None or row.details is None or problem.truth is None:
        return None
    kinds = {
        example["position"]: kind
        for kind in ("starts high", "rises")
        for example in row.details["examples"][kind]
    }
    if not kinds:
        return None
    train, _ = split_rows(len(problem.X), split)
    model = coupled(BASE, settings={"keep_confidences": True}).build(split)
    model.fit(problem.X[train], problem.candidates[train])
    names = [
        f"{row}: false label {kinds[i]}" if i in kinds else row for i, row in enumerate(train)
    ]
    figure = new_figure(6.8, 0.6 + 2.6 * -(-len(kinds) // 2))
    ids, truth = np.array(names, dtype=object), problem.truth[train]
    panels = plot_trajectories(model, list(kinds), truth=truth, ids=ids, figure=figure)
    # The panels share one scale, which must hold them all.
    highest = max(np.max(line.get_ydata()) for panel in panels for line in panel.lines)
    panels[0].set_ylim(0, 1.06 * highest)
    return figure


# -- the authors' reading of the paper ------------------------------------------------------


_RAW = Column(problems.RAW["lost_raw"].title, "lost_raw", paper="Lost")
_ROUNDS = 10  # in which the paper's rule is looked for


def load_with_raw_lost(names: list[str]) -> tuple[dict[str, Dataset], dict[str, str]]:
    """Load data sets as `load_problems`, and Lost also without scaling, if it is available."""
    found, missing = problems.load_problems(names)
    if DATASET in found:
        found[_RAW.dataset] = problems.load_problem(_RAW.dataset)
    return found, missing


def authors_tables(bases: Sequence[str]) -> list[ResultTable]:
    """Declare test and transductive accuracy, the authors' reading below PL-AGGD-PLCP."""
    pair, tables = (AUTHORS, alone("aggd")), []
    for name in ("test-accuracy", "transductive"):
        table = make_table(name, ["aggd", *(base for base in bases if base != "aggd")])
        before, after, *rest = (e for e in table.lines if e.method.kind in ("base", "plcp"))
        kept = [e for e in rest if e.score == before.score and not e.method.settings]
        own = replace(after, title=AUTHORS.title, method=AUTHORS, compared=pair, paper=after.title)
        tables.append(replace(table, name="authors", lines=(before, after, own, *kept)))
    return tables


def report_authors(results: Results, bases: Sequence[str], missing: Mapping[str, str]) -> Report:
    """Report the authors' reading, Lost raw and z-scored, and what the paper's rule would do."""
    filled = [fill(table, results, (*MEASURES, _RAW)) for table in authors_tables(bases)]
    report = report_table(filled[0], results, missing)
    trained = replace(overview(filled[1]), title="Transductive accuracy")
    sheets = (*report.sheets, trained, _stopping_sheet(results))
    title = "The authors' reading, and Lost as it stands"
    caption = f"{report.caption} The paper's one column of Lost is next to both of ours."
    return replace(report, title=title, caption=caption, sheets=sheets)


def _stopping_sheet(results: Results) -> Sheet:
    """Ten rounds of either reading on Lost: what each corrects, and where the rule stops."""
    rows, splits = [], results.splits
    for name, method in product((DATASET, _RAW.dataset), (coupled(BASE), AUTHORS)):
        problem = results.problems[name]
        shares = []
        stops = []
        for split in splits:
            train, _ = split_rows(len(problem.X), split)
            model = method.build(split, len(train)).set_params(max_rounds=_ROUNDS)
            history = model.fit(problem.X[train], problem.candidates[train]).label_history_
            truth: Any = problem.truth
            shares.append(corrected_shares(history, truth[train]))
            stops.append(stopping_round(history, truth[train]))
        mean = np.mean(shares, axis=0)
        ended = [stop for stop in stops if stop is not None]
        text = f"{len(ended)} of {len(splits)}"
        text += f", after round {np.mean(ended):.1f}" if ended else ""
        numbers = (share(v, percent=True) for v in (*mean[:3], mean[3:].max()))
        rows.append((problem.title, method.title, *numbers, text))
    title = (
        f"The paper's rule to stop, {_ROUNDS} rounds: per cent of the wrong training labels that "
        "a round corrects (it needs true labels, and stops after two rounds in a row above 5)"
    )
    rounds = ("round 1", "round 2", "round 3", "most of the later")
    return Sheet(title, ("data set", "method", *rounds, "splits that stop"), tuple(rows))
