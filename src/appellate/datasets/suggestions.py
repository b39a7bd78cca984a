"""What to type next, once it is known what kind of labels a file holds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

_MULTI_LABEL = """\
# All labels of a row are true: use a multi-label classifier of scikit-learn.
from sklearn.linear_model import LogisticRegression
from sklearn.multiclass import OneVsRestClassifier

model = OneVsRestClassifier(LogisticRegression())  # .fit(X, indicator_matrix)"""

_PLAIN = """\
# Nothing is ambiguous: any classifier of scikit-learn will do. To see what ambiguity costs:
from appellate.datasets import load_partial_csv, make_partial_labels

data = {load}
labels = data.class_names[data.candidates.argmax(axis=1)]
candidates = make_partial_labels(labels, flip_probability=0.3, random_state=0)"""

_WRONG_LABELS = """\
# One label a row, some of them wrong: there is no set to choose from. Collect the answers of
# several people and keep them all, one column each; then:
from appellate.datasets import load_partial_csv

help(load_partial_csv)  # candidates=["first person", "second person"], layout="annotators\""""

_PARTIAL = """\
{imports}from appellate import AGGDClassifier, PLCPClassifier, as_candidates
from appellate.datasets import load_partial_csv

data = {load}
{impute}sets = as_candidates(data.candidates, classes=data.class_names)
model = PLCPClassifier(AGGDClassifier(), random_state=0).fit({X}, sets)
model.docket({ids})  # verdict, appeal and outcome of every row"""


_LONG = """\
import csv

from appellate import as_candidates

with open({file!r}, encoding={encoding!r}, newline="") as file:
    rows = list(csv.DictReader(file, delimiter={delimiter!r}))
answers = [tuple(row[name] for name in {titles!r}) for row in rows]
sets = as_candidates(answers, layout="long", rule="union")  # or "votes:2", "share:0.8"
# Then PLCPClassifier(...).fit(X, sets), the rows of X in the order of sets.ids."""


def suggest_long(
    file: Path, roles: Mapping[str, str], delimiter: str, encoding: str = "utf-8"
) -> str:
    """Return lines of Python for a table with one answer a row."""
    return _LONG.format(
        file=str(file),
        titles=tuple(roles.values()),
        delimiter=delimiter,
        encoding="utf-8-sig" if encoding == "utf-8" else encoding,
    )


def suggest(
    kind: str,
    file: Path,
    columns: Sequence[str],
    separator: str | None,
    truth: str | None,
    ids: str | None,
    facts: Mapping[str, Any],
    reading: Mapping[str, Any],
) -> str:
    """Return lines of Python that go on from a diagnosis.

    Parameters
    ----------
    kind, columns, separator, truth, ids, facts
        See `appellate.datasets.diagnosis.Diagnosis`.
    file : Path
        The file that was diagnosed.
    reading : mapping
        How it was read, in options of `load_partial_csv`.
    """
    if kind == "multi-label":
        return _MULTI_LABEL
    people = "people" in facts
    if kind == "noisy" and not people:
        return _WRONG_LABELS
    options: dict[str, Any] = {"candidates": list(columns) if len(columns) > 1 else columns[0]}
    if people:
        options["layout"] = "annotators"
    elif kind == "plain" and len(columns) == 1:
        options["layout"] = "labels"
    if separator not in (None, "|"):
        options["separator"] = separator
    if truth is not None:
        options["truth"] = truth
        if facts["truth_coverage"] is not None and facts["truth_coverage"] < 1:
            options["noisy"] = True
    if ids is not None:
        options["ids"] = ids
    if facts["other_columns"]:
        options["ignore"] = facts["other_columns"]
    if facts["missing_cells"]:
        options["allow_nan"] = True
    options |= reading
    arguments = "".join(f", {name}={value!r}" for name, value in options.items())
    load = f"load_partial_csv({str(file)!r}{arguments})"
    if kind == "plain":
        return _PLAIN.format(load=load)
    holes = bool(facts["missing_cells"])
    return _PARTIAL.format(
        ids="" if ids is None else "ids=data.ids",
        load=load,
        imports="from sklearn.impute import SimpleImputer\n\n" if holes else "",
        impute="X = SimpleImputer().fit_transform(data.X)\n" if holes else "",
        X="X" if holes else "data.X",
    )
