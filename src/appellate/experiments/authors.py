"""PLCP as its authors' code reads the paper, and what the paper says of the rounds, measured."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from appellate.base import Result
from appellate.bases.aggd import AGGDClassifier
from appellate.bases.plcl import PLCLClassifier
from appellate.datasets import load_lost
from appellate.experiments import problems as experiments
from appellate.experiments.methods import Method, alone, coupled
from appellate.experiments.protocol import split_rows
from appellate.experiments.reports import Report, Sheet, overview, report_table, share
from appellate.experiments.results import Results, fill
from appellate.experiments.tables import COLUMNS, Column, Table, make_table
from appellate.numerics.entries import CandidateEntries, Values
from appellate.numerics.simplex import project_entries
from appellate.numerics.smoothers import CandidateMap
from appellate.partner import PartnerClassifier
from appellate.plcp import PLCPClassifier
from appellate.problem import Problem

_ALTERNATIONS = 30


class AuthorsAGGD(AGGDClassifier):
    """PL-AGGD that keeps its old output: supervision enters through the graph alone."""

    def _solve(self, problem: Problem, start: Values | None) -> Result:
        if start is None:
            self._before = None
        result = super()._solve(problem, start)
        self._before = result.output
        return result


class AuthorsPartner(PartnerClassifier):
    """The partner after 30 alternations of regression and projection, from all candidates."""

    def _solve(self, problem: Problem, start: Values | None) -> Result:
        smooth = problem.on_candidates(self.kernel, self.regularization)
        initial = problem.uniform(start)
        current = np.ones_like(initial)  # C = 1 - Y
        aggressive = self.link == "aggressive"
        weight = self.collaboration / (1.0 if aggressive else 2.0)
        room = 1 + self.collaboration * aggressive
        for _ in range(_ALTERNATIONS):
            current = project_entries((smooth(current) + weight * initial) / room, problem.entries)
        output = smooth(current)
        return self._result(problem, initial, current, output, _ALTERNATIONS, complement=True)


class AuthorsPLCP(PLCPClassifier):
    """PLCP in the authors' reading: with PL-AGGD as base both habits, else the partner's.

    Their labels on their own data are these, row by row.
    """

    _partner_type = AuthorsPartner

    def _make_base(self) -> Any:
        base = super()._make_base()
        if type(base) is AGGDClassifier:
            return AuthorsAGGD(**base.get_params(deep=False))
        return base


class SupplementPLCL(PLCLClassifier):
    """PL-CL whose non-candidate confidence starts as the paper's supplement prints it.

    ``1 / (l - |S|)`` outside the candidates and 0 on them; `PLCLClassifier` starts from 1 - Y.
    """

    def _open_complement(self, problem: Problem, smooth: CandidateMap) -> Values:
        others = CandidateEntries(~problem.candidates)
        start = (1 / np.maximum(others.counts, 1)).astype(problem.dtype)
        smoother = problem.smoother(self.kernel, self._complementary_ridge)
        return 1 - problem.entries.gather(smoother.regress(others, others.spread(start))[0])


class AuthorsMethod(Method):
    """A coupled base in the authors' reading, as a row of the experiments."""

    def base_code(self) -> str | None:
        """Hash of this module, which is no part of the hash of all runs."""
        return hashlib.sha256(Path(__file__).read_bytes()).hexdigest()[:16]

    def _build_coupled(self, seed: int) -> Any:
        settings = {key: value for key, value in self.settings if key != "reading"}
        return AuthorsPLCP(self._build_base(seed), **settings)


#: PL-AGGD-PLCP by the authors' code, to stand beside ``coupled("aggd")``.
AUTHORS = AuthorsMethod(
    "PL-AGGD-PLCP (authors' reading)", "plcp", "aggd", settings=(("reading", "authors"),)
)


def stopping_round(
    label_history: NDArray[np.intp], truth: NDArray[np.intp], share: float = 0.05
) -> int | None:
    """Round after which the paper's rule stops; None if it never does.

    The rule: "a consistent correction of over 5 % of mislabeled samples across two consecutive
    iterations", that is, in each of two rounds in a row more than this share of the rows that
    were wrong before it is right after it. **It needs the truth**, which nobody has who uses the
    method, so that `PLCPClassifier` has `tol` instead.

    Parameters
    ----------
    label_history : ndarray of int, shape (rounds + 1, n)
        As `PLCPClassifier.label_history_`: the verdict, then every round's labels.
    truth : ndarray of int, shape (n,)
        True labels.
    share : float, default=0.05
        Of the mislabelled rows.

    Examples
    --------
    >>> truth = np.zeros(4, dtype=int)
    >>> stopping_round(np.array([[1, 1, 1, 0], [0, 1, 1, 0], [0, 0, 1, 0], [0, 0, 1, 0]]), truth)
    2
    """
    above = corrected_shares(label_history, truth) > share
    twice = np.flatnonzero(above[1:] & above[:-1])
    return int(twice[0]) + 2 if len(twice) else None


def corrected_shares(
    label_history: NDArray[np.intp], truth: NDArray[np.intp]
) -> NDArray[np.float64]:
    """Share of the wrong labels that every round makes right; 0 where none is wrong."""
    right = label_history == truth
    return np.array(
        [np.sum(after & ~before) / max(1, np.sum(~before)) for before, after in pairwise(right)]
    )


def monotone_share(
    confidences: Sequence[NDArray[Any]], candidates: NDArray[np.bool_], tol: float = 1e-6
) -> float:
    """Share of ambiguous candidates whose confidence only rises or only falls over the rounds.

    The paper says that each does. Candidates of rows that have one only do not count.

    Parameters
    ----------
    confidences : sequence of ndarray, shape (n, l)
        One a round, such as ``[r.base_confidence for r in model.history_]`` of a fit with
        ``keep_confidences=True``.
    candidates : ndarray of bool, shape (n, l)
        Candidate sets.
    tol : float, default=1e-6
        Smaller changes are none.

    Examples
    --------
    >>> rounds = [np.array([[0.5, 0.5]]), np.array([[0.6, 0.5]]), np.array([[0.7, 0.4]])]
    >>> monotone_share(rounds, np.array([[True, True]]))
    1.0
    """
    counted = candidates & (candidates.sum(axis=1, keepdims=True) > 1)
    steps = np.diff(np.array([each[counted] for each in confidences]), axis=0)
    rises, falls = (steps >= -tol).all(axis=0), (steps <= tol).all(axis=0)
    return float(np.mean(rises | falls))


def load_raw_lost() -> experiments.Problem:
    """Load Lost without scaling, as the authors' PL-AGGD and PLCP have it.

    `load_problem` z-scores it, as their PL-CL does.

    Raises
    ------
    UnavailableError
        If its file is missing or cannot be read.
    """
    found, data = experiments.load_problem("lost"), load_lost(download_if_missing=False)
    rows = np.asarray(data.X, dtype=np.float64)
    return replace(found, name="lost_raw", title="Lost (as it stands)", X=rows)


RAW = Column("Lost (as it stands)", "lost_raw", paper="Lost")
_ROUNDS = 10  # in which the paper's rule is looked for


def authors_tables(bases: Sequence[str]) -> list[Table]:
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
    filled = [fill(table, results, (*COLUMNS, RAW)) for table in authors_tables(bases)]
    report = report_table(filled[0], results, missing)
    trained = replace(overview(filled[1]), title="Transductive accuracy")
    sheets = (*report.sheets, trained, _stopping_sheet(results))
    title = "The authors' reading, and Lost as it stands"
    caption = f"{report.caption} The paper's one column of Lost stands beside both of ours."
    return replace(report, title=title, caption=caption, sheets=sheets)


def _stopping_sheet(results: Results) -> Sheet:
    """Ten rounds of either reading on Lost: what each corrects, and where the rule stops."""
    rows, problems, splits = [], results.problems, results.splits
    for name in ("lost", RAW.dataset):
        for method in (coupled("aggd"), AUTHORS):
            found = [_history(method, problems[name], split) for split in splits]
            shares = np.array([each for each, _ in found]).mean(axis=0)
            stops = [stop for _, stop in found if stop is not None]
            told = f"{len(stops)} of {len(splits)}"
            told += f", after round {np.mean(stops):.1f}" if stops else ""
            numbers = (share(v, percent=True) for v in (*shares[:3], shares[3:].max()))
            rows.append((problems[name].title, method.title, *numbers, told))
    title = (
        f"The paper's rule to stop, {_ROUNDS} rounds: per cent of the wrong training labels that "
        "a round corrects (it needs the truth, and stops after two rounds in a row above 5)"
    )
    rounds = ("round 1", "round 2", "round 3", "most of the later")
    return Sheet(title, ("data set", "method", *rounds, "splits that stop"), tuple(rows))


def _history(
    method: Method, problem: experiments.Problem, split: int
) -> tuple[NDArray[np.float64], int | None]:
    """Shares of wrong labels that every round corrects, and the round after which to stop."""
    if problem.truth is None:
        raise ValueError("the paper's rule needs the truth.")
    train, _ = split_rows(len(problem.X), split)
    model = method.build(split, len(train)).set_params(max_rounds=_ROUNDS)
    history = model.fit(problem.X[train], problem.candidates[train]).label_history_
    truth = problem.truth[train]
    return corrected_shares(history, truth), stopping_round(history, truth)
