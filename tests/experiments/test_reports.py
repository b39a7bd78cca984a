"""Tables and pages: numbers of the store, the paper's beside them, everything escaped."""

from __future__ import annotations

from dataclasses import replace
from html.parser import HTMLParser

import numpy as np
import pytest

from appellate.datasets.home import resolve
from appellate.experiments.figures import draw_table
from appellate.experiments.layouts import Column, Line, ResultTable
from appellate.experiments.methods import PAPER_BASES, alone, coupled
from appellate.experiments.reports import (
    Report,
    Sheet,
    p_value,
    report_table,
    share,
    to_csv,
    to_latex,
    to_markdown,
    write_index,
)
from appellate.experiments.results import Results, fill
from appellate.experiments.store import Store
from appellate.paper.layouts import MEASURES, TABLES, make_table
from appellate.paper.printed import figures, lookup, published

TABLE = ResultTable(
    "small",
    "Small",
    "A caption.",
    (
        Line("SURE", alone("sure"), "test"),
        Line("SURE-PLCP", coupled("sure"), "test", (coupled("sure"), alone("sure"))),
        Line("absent", alone("lalo"), "test"),
    ),
    published("test_accuracy"),
)


@pytest.fixture
def results(stored, problem):
    with Store(stored) as store:
        return Results(store, {"small": problem}, range(3))


@pytest.fixture
def filled(results):
    return fill(TABLE, results, [Column("Lost", "small")])


def test_cells_are_means_over_splits(filled, results):
    scores = results.scores("small", coupled("sure"), "test")
    base = results.scores("small", alone("sure"), "test")
    cell = filled.cells[TABLE.lines[1], filled.columns[0]]
    assert cell.mean == scores.mean()
    assert cell.std == scores.std(ddof=1)
    assert cell.comparison.difference == pytest.approx(np.mean(scores - base))
    assert cell.paper.mean == 0.719
    assert cell.paper_gain == pytest.approx(0.719 - 0.709)
    assert cell.difference == pytest.approx(scores.mean() - 0.719)
    assert sum(filled.counts(TABLE.lines[1])) == 1
    assert filled.counts(TABLE.lines[1], paper=True) == (1, 0, 0)
    assert filled.improvement(TABLE.lines[1], paper=True) == pytest.approx(0.719 / 0.709 - 1)
    assert filled.improvement(TABLE.lines[1]) == pytest.approx(scores.mean() / base.mean() - 1)


def test_one_split_has_no_deviation_and_no_test(stored, problem):
    with Store(stored) as store:
        results = Results(store, {"small": problem}, range(1))
    filled = fill(TABLE, results, [Column("Lost", "small")])
    report = report_table(filled, results, {})
    ours = [row[2] for row in report.sheets[0].rows if row[1] == "ours"]
    assert [len(text) for text in ours] == [5, 5, 1], "three digits, and nothing beside them"
    record = report.records[1]
    assert record["our_mean"] is not None
    names = ("our_std", "p_paired_t", "p_wilcoxon", "p_corrected_t")
    assert [record[name] for name in names] == [None] * 4
    assert draw_table(filled).axes


def test_missing_runs_are_gaps_not_numbers(filled, results):
    cell = filled.cells[TABLE.lines[2], filled.columns[0]]
    assert (cell.mean, cell.std, cell.comparison) == (None, None, None)
    report = report_table(filled, results, {})
    assert report.sheets[0].rows[-1] == ("absent", "ours", "-")
    assert draw_table(filled).axes


def test_other_data_have_no_scores(stored, problem):
    changed = replace(problem, X=problem.X + 1)
    with Store(stored) as store:
        results = Results(store, {"small": changed}, range(3))
    assert results.scores("small", alone("sure"), "test") is None


def test_a_report_in_three_formats(filled, results):
    report = report_table(filled, results, {"far": "far away"})
    assert "| SURE-PLCP | paper | 0.719 ± 0.021 • |" in to_markdown(report)
    assert "- Left out: far away" in to_markdown(report)
    header, *lines = to_csv(report).splitlines()
    assert header.startswith("table,method,column,score,paper_mean")
    assert len(lines) == len(TABLE.lines)
    assert r"\bullet" in to_latex(report)
    assert to_latex(report).count("{") == to_latex(report).count("}")


class Reader(HTMLParser):
    def __init__(self):
        super().__init__()
        self.tags, self.open = [], []

    def handle_starttag(self, tag, attributes):
        self.tags.append(tag)
        if tag not in ("meta", "img"):
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


def test_the_page_escapes_everything(tmp_path):
    bad = "<script>alert('&')</script>"
    sheet = Sheet(bad, (bad,), ((bad,),))
    reports = [Report(bad, bad, bad, (sheet, sheet), (), (bad,))]
    write_index(reports, tmp_path, title=bad, lead=bad, missing=[bad])
    page = (tmp_path / "index.html").read_text(encoding="utf-8")
    assert "<script" not in page
    reader = Reader()
    reader.feed(page)
    assert reader.open == []
    assert "table" in reader.tags


@pytest.mark.parametrize("name", TABLES[:5])
def test_every_printed_figure_has_its_line(name):
    table = make_table(name, list(PAPER_BASES))
    lines = {line.paper or line.title for line in table.lines}
    printed = {method for method, _ in table.published.figures}
    assert printed <= lines
    for line in table.lines:
        called = line.paper or line.title
        found = [table.published.figures.get((called, column.title)) for column in MEASURES]
        assert all(found) or not any(found)


def test_the_papers_numbers():
    assert lookup("correction_ratio_percent", "SURE", "Lost").mean == pytest.approx(0.0667)
    assert lookup("test_accuracy", "nothing", "Lost") is None


def test_printed_correction_ratios_that_cannot_be():
    """At least the net gain in transductive accuracy must have been corrected.

    Figures are taken half a unit of the last printed digit in the paper's favour.
    """
    known, half, impossible = figures(), 0.0005, []
    for base in PAPER_BASES.values():
        for column in (each.title for each in MEASURES):
            before = known["transductive_accuracy", base, column].mean + half
            after = known["transductive_accuracy", f"{base}-PLCP", column].mean - half
            ratio = known["correction_ratio_percent", base, column].mean + half / 10
            if ratio < (after - before) / (1 - before):
                impossible.append(column)
    assert len(impossible) == 22
    ours = {"FG-NET", "Lost", "MSRCv2", "FG-NET(MAE3)", "FG-NET(MAE5)"}
    assert sum(column in ours for column in impossible) == 13


def test_small_texts():
    assert (p_value(0.0001), p_value(0.04), p_value(float("nan"))) == ("< 0.001", "0.040", "-")
    assert share(0.0, sign=True) == "+0.000"
    with pytest.raises(ValueError, match=r"unknown table 'zzz'. Known are a, b"):
        resolve("zzz", ["a", "b"], "table")


def test_no_cell_of_a_csv_is_a_formula():
    report = Report("t", "T", "c", (), ({"data": "=1+1.csv", "score": -0.5},))
    assert to_csv(report) == "data,score\n'=1+1.csv,-0.5\n"
