"""One run on a table as one object: labels, docket, model, settings, scores."""

from __future__ import annotations

import inspect
import json
import os
import platform
import time
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from html import escape
from importlib.metadata import version
from pathlib import Path
from typing import Any, Unpack

import narwhals.stable.v2 as nw
import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.pipeline import Pipeline

from appellate._files import (
    check_members,
    finish_folder,
    whole_folder,
    write_file,
)
from appellate._table_formats import find_format, names_formats
from appellate._table_options import ReadingOptions, TableOptions, takes_options
from appellate.core.explanation import Explanation
from appellate.docket import frame_backend
from appellate.io import ModelFileError, load_model, save_model
from appellate.notes import NoteWarning, tell
from appellate.plotting import inline_figures
from appellate.rectification.acceptance import ENOUGH, accept_items, check_shares, steps
from appellate.rectification.decisions import Review, decisions_csv, take_decisions
from appellate.rectification.explanation import find_item, fitted_items
from appellate.rectification.features import Features, TellStep, nobody
from appellate.rectification.fitting import FittedLabels, fit_labels
from appellate.rectification.folder import (
    FILES,
    READ_AGAIN,
    check_folder,
    read_own,
)
from appellate.rectification.pages import collect_page
from appellate.rectification.prediction import NO_MODEL, label_rows, read_document
from appellate.rectification.preparation import NOT_KEPT, Preparation, prepare_table
from appellate.rectification.scoring import (
    FIRST,
    N_TRUE,
    RECTIFIED,
    SUGGESTED,
    sample,
    score,
    suggest,
    weigh_columns,
)
from appellate.review.decisions import DECISIONS
from appellate.review.page import render_page
from appellate.tables import Roles, Table, join, read_table, write_table
from appellate.tables.cells import as_number, is_text, printable, with_columns
from appellate.tables.cells import numbers as cell_numbers
from appellate.tables.encoding import encode
from appellate.tables.tools import ENDINGS, HUGGING_FACE, write_dataset, write_suggestions
from appellate.tables.writing import free_names, saved_index

_VERSIONS = ("appellate", "numpy", "scipy", "scikit-learn")


@takes_options(TableOptions)
@names_formats
def rectify(
    data: Any,
    *,
    method: str = "auto",
    base: Any = None,
    decisions: Any = None,
    cost: Any = None,
    order: str | Sequence[str] | None = None,
    random_state: int | None = 0,
    settings: Mapping[str, Any] | None = None,
    **options: Unpack[TableOptions],
) -> Rectification:
    """Label every row of a table.

    Parameters
    ----------
    data : str, path or data frame
        A file (<formats>), a folder or pattern of files that together are one table, or a
        table of pandas, polars or Arrow.
    **options
        Options of the table.
    method : {"auto", "jury", "plcp", "testimony"}, default="auto"
        Testimony weighs annotators' answers and is taken if there are any; the jury judges
        candidate sets; PLCP is the paper's, with a base classifier and its partner, and is
        taken where a `base` is named.
    base : str or estimator, default=None
        Base classifier of PLCP, see `make_base`; ``"auto"`` chooses one and its settings
        without true labels. By default PL-AGGD, SURE for many rows.
    decisions : path, mapping or data frame, default=None
        Reviewed rows, which are certain, see `Rectification.decide`.
    cost : str, path or matrix, default=None
        What a near miss costs: ``"absolute"``, ``"within:3"``, ``"ordinal:3"``, or a file with a
        table of costs, see `appellate.evidence.cost_matrix`.
    order : sequence of str, default=None
        All labels from first to last, if they are ordered and are not numbers. The jury uses the
        order if neighbouring labels look alike; a cost may need it.
    random_state : int or None, default=0
        Seed of everything random.
    settings : mapping, default=None
        Settings of the method's classifier, such as ``{"max_rounds": 3}``, or of its kernel, such
        as ``n_landmarks``; ``scheduler`` is the address of a Dask scheduler whose workers fit.

    Returns
    -------
    Rectification
        Labels, docket, model, scores; `Rectification.save` writes them.

    Raises
    ------
    ValueError
        If the table cannot be read or understood, or settings do not fit: what is wrong, where,
        and what to do.

    Warns
    -----
    NoteWarning
        Once per note: what you should know of the table and of the labels, as
        ``settings["notes"]`` and ``scores["notes"]`` have it.

    Examples
    --------
    >>> import appellate
    >>> table = {
    ...     "size": [1.0, 1.1, 1.2, 5.0, 5.1, 5.2] * 4,
    ...     "weight": [3, 3, 4, 19, 20, 21] * 4,
    ...     "names": ["cat|dog", "cat", "cat", "dog", "dog", "cat|dog"] * 4,
    ... }
    >>> run = appellate.rectify(table, candidates="names")
    >>> run.labels["label"].tolist()[:6]
    ['cat', 'cat', 'cat', 'dog', 'dog', 'dog']
    """
    prepared = prepare_table(
        data,
        method=method,
        base=base,
        cost=cost,
        order=order,
        random_state=random_state,
        settings=settings,
        **options,
    )
    tell(prepared.notes, stacklevel=2)
    run = label_items(prepared, decisions)
    tell(run.scores["notes"], stacklevel=2)
    return run


def label_items(
    prepared: Preparation, decisions: Any = None, step: TellStep = nobody
) -> Rectification:
    """Label the items of a prepared table; `step` is told what begins, and the rounds within."""
    if decisions is not None:
        take_decisions(prepared, {}, decisions)  # reports mistakes before the work
    started = time.perf_counter()
    encoder = rows = None
    if prepared.features.X is not None:
        step("turning columns into numbers")
        encoder = clone(prepared.features.encoder)
        rows = encode(encoder, prepared.features.X, lambda text: step(text, within=True))
    fitting = "fitting" if decisions is None else "fitting without the decisions"
    step(fitting)
    run = _make_run(fit_labels(prepared, encoder, rows, step), started)
    return run if decisions is None else run._decide(decisions, step)


def _make_run(fitted: FittedLabels, started: float) -> Rectification:
    """Collect the result of a fit: tables, model, settings and scores."""
    prepared, added = fitted.prepared, fitted.added
    people = getattr(fitted.classifier, "annotators_", None) if prepared.has_answers else None
    shown = {name: _plain(column) for name, column in (people or {}).items() if column.ndim == 1}
    parts = [("encoder", fitted.encoder), ("classifier", fitted.classifier)]
    backend: Any = frame_backend(prepared.table.native) or "pandas"
    drawn = sample(fitted, *suggest(fitted, SUGGESTED))
    settings = {
        "versions": {"python": platform.python_version()} | {n: version(n) for n in _VERSIONS},
        "source": prepared.table.source.strip("'"),
        "sha256": prepared.table.sha256,
        "rows": len(prepared.table),
        "items": len(prepared.names),
        "labels": prepared.classes.tolist(),
        "roles": prepared.roles.to_dict(),
        "features": _describe_features(prepared.features),
        "n_embeddings": prepared.features.n_embeddings,
        "method": prepared.method,
        "model": str(prepared.estimator),
        "call": prepared.call,
        "columns": dict(zip(added, free_names(prepared.table.names, added), strict=True)),
        "integers": fitted.integers if prepared.table.native is None else (),
        "notes": prepared.notes,
        "seconds": round(time.perf_counter() - started, 3),
        "audit": [prepared.names[i] for i in drawn],
    }
    return Rectification(
        _join_added(prepared.table, settings, added),
        nw.from_dict(fitted.columns, backend=backend).to_native(),
        nw.from_dict(shown, backend=backend).to_native() if shown else None,
        None if fitted.encoder is None else Pipeline(parts),
        json.loads(json.dumps(settings)),
        score(fitted),
        fitted,
    )


def _describe_features(features: Features) -> list[dict[str, Any]]:
    """Return name, kind, model and reading of every feature, in JSON's types."""
    models = {each.column: {"model": each.name, "key": each.key} for each in features.embedders}
    found: list[dict[str, Any]] = []
    for name, kind in features.kinds.items():
        found.append({"name": name, "kind": kind, **models.get(name, {})})
        if name in features.readings:
            found[-1] |= features.readings[name].to_dict()
    return found


def _join_added(table: Table, settings: Mapping[str, Any], added: Mapping[str, list[Any]]) -> Any:
    """Join what is added to a table; numbers of a text file become numbers."""
    import pyarrow as pa

    data, changed = table.data, dict[str, Any]()
    styles = {e["name"]: e.get("decimal") for e in settings["features"] if e["kind"] == "number"}
    words = [mark for mark in settings["roles"]["missing"] if as_number(mark) is None]
    integers = {*settings.get("integers", ())}
    for name, column in zip(table.names, data.columns, strict=True):
        if name in integers:
            changed[name] = column.cast(pa.int64())
        elif table.native is None and name in styles and is_text(column.type):
            numbers = cell_numbers(column, styles[name] or ".", words)
            if numbers is not None:  # as where only the first answer on an item was looked at
                changed[name] = pa.array(numbers, from_pandas=True)
    return join(replace(table, data=with_columns(data, changed)), added)


@dataclass(frozen=True, eq=False, repr=False)
class Rectification:
    """One run on a table: labels, docket, model, settings, scores.

    `appellate.rectify` makes it, `appellate.load` opens one that was saved.

    Attributes
    ----------
    labels : data frame
        The table with the final label of every row in ``label``, its ``confidence``,
        ``first_label`` (before features or later rounds were used), ``runner_up``,
        ``runner_up_confidence``, ``suspicion`` (how likely none of the candidates is true),
        ``votes`` if there are annotators, and ``outcome``: ``changed`` or ``unchanged`` from the
        first to the final label, ``reviewed``, ``excluded`` (by a review), ``unanswered`` or
        ``outside the answers``. A data frame of the library that the table came from; pandas for
        a file. It has one row per row of the table, so one per answer if every answer has its own
        row (``long``), and its columns have the types of the table; merge it with the table by
        these columns.
    docket : data frame
        One row per item: ``id``, ``candidates``, the labels and confidences as in `labels`, with
        ``first_confidence``, ``margin`` (confidence minus that of the next candidate) and
        ``since_round`` (the round since which the label is the final one); with true labels
        also ``first_correct`` and ``correct``. The suspicion of the jury is an order, not a
        probability.
    annotators : data frame or None
        One row per annotator: how many answers, and how reliable they are.
    model : Pipeline or None
        Encoder and classifier, for new rows; None where only answers were learned from.
    settings : dict
        How the run was made, in JSON's types: columns and their roles, features, method,
        versions, hash of the data, what `rectify` was called with.
    scores : dict
        What came out, in JSON's types: ``outcomes``, ``single`` (labels that could not change:
        there was one candidate), ``expected_wrong`` (labels, by calibrated confidence),
        ``first`` (what gave the first labels; None if the labels were decided
        once), ``differing`` (labels that differ from those of each baseline), ``accuracy`` of all
        of them, on the items with an answer and a true label, ``unanswered`` (the accuracy on
        the other items; None if there are none), ``signal`` (whether features inform the
        labels), ``audit`` (the accuracy on reviewed items that were drawn at random),
        ``moved`` (by decisions), and ``notes``: what must be known of these.

    Examples
    --------
    >>> import appellate
    >>> table = {
    ...     "size": [1.0, 1.1, 5.0, 5.1] * 5,
    ...     "weight": [3, 4, 20, 21] * 5,
    ...     "names": ["cat|dog", "cat", "dog", "dog"] * 5,
    ... }
    >>> run = appellate.rectify(table, candidates="names")
    >>> run.docket["label"].tolist()[:4]
    ['cat', 'cat', 'dog', 'dog']
    """

    labels: Any
    docket: Any
    annotators: Any
    model: Any
    settings: dict[str, Any]
    scores: dict[str, Any]
    _fitted: FittedLabels | None = None
    _suggested: Any = None

    def suggest(self, n: int = 20, *, audit: bool = False) -> Any:
        """Return the items that are worth a look, the most useful first.

        An item counts for its own doubt and for that of the items that it is a neighbour of.
        Every fifth is drawn at random instead (``why`` says ``audit``): once 20 of these are
        reviewed, they give an unbiased accuracy.

        Parameters
        ----------
        n : int, default=20
            How many. A run that was loaded knows 100.
        audit : bool, default=False
            Whether all of them are drawn at random, for `accept`. Review all of them.

        Returns
        -------
        data frame
            ``rank``, ``why`` and the columns of the docket.
        """
        fitted = self._fitted
        if fitted is None:
            if audit:
                raise ValueError(
                    "this run was loaded, and cannot draw items. Call rectify again, and suggest "
                    "then."
                )
            return self._suggested[:n]
        if audit:
            rows = fitted.drawn[:n]
            why = ["audit"] * len(rows)
        else:
            rows, why = suggest(fitted, n)
        drawn = [fitted.prepared.names[i] for i in sample(fitted, rows, why)]
        self.settings["audit"] = list(dict.fromkeys([*self.settings["audit"], *drawn]))
        columns: dict[str, list[Any]] = {"rank": list(range(1, len(rows) + 1)), "why": why}
        for name, values in fitted.columns.items():
            columns[name] = [values[i] for i in rows]
        backend: Any = frame_backend(self.docket)
        return nw.from_dict(columns, backend=backend).to_native()

    def decide(self, decisions: Any, *, step: TellStep = nobody) -> Rectification:
        """Treat reviewed items as certain, and label the others again.

        Parameters
        ----------
        decisions : path, mapping or data frame
            The file of all decisions that the docket page leaves; or further decisions: the
            label of an item by its name (its number if the table has no names), or a data frame
            with ``id``, ``decision`` and ``label``, where ``none`` with an empty label says that
            no label is true. Labels are read as those of the table: ``2.0`` is ``2``, ``Dog`` is
            ``dog`` if there is no other such label. Missing labels of a mapping are skipped.
        step : callable, default=no-op
            Told what begins, ``step(text)``, and the rounds within, ``step(text, within=True)``.

        Returns
        -------
        Rectification
            Another run; ``scores["moved"]`` other labels have changed.

        Raises
        ------
        ValueError
            If a decision does not fit the table, as after the table has changed.

        Warns
        -----
        NoteWarning
            If a label was read as another one, is not a label of the table, or is missing.
        """
        run = self._decide(decisions, step)
        tell([n for n in run.scores["notes"] if n not in self.scores["notes"]], stacklevel=2)
        return run

    def _decide(self, decisions: Any, step: TellStep) -> Rectification:
        """Take reviewed items as certain, without warnings."""
        if self._fitted is None:
            return _again(self)._decide(decisions, step)
        started, before = time.perf_counter(), self._fitted
        prepared = before.prepared
        found, notes = take_decisions(prepared, before.reviewed, decisions)
        drawn = {*self.settings["audit"]}  # at random, in this run or in that of the decisions
        if isinstance(decisions, (str, os.PathLike)):
            document = read_document(Path(decisions).parent)
            drawn |= {*(document["settings"].get("audit", []) if document else [])}
        audited = np.zeros(len(prepared.names), dtype=bool)
        audited[[i for i in found.rows.tolist() if prepared.names[i] in drawn]] = True
        unaided = before.docket if before.review is None else before.review.unaided
        labels = before.docket.class_names[before.docket.appeal]
        review = Review(found, audited, labels, unaided, notes)
        step("fitting with the decisions")
        fitted = fit_labels(prepared, before.encoder, before.rows, step, review)
        run = _make_run(fitted, started - self.settings["seconds"])
        earlier = [name for name in prepared.names if name in drawn]
        run.settings["audit"] = list(dict.fromkeys([*earlier, *run.settings["audit"]]))
        return run

    def accept(self, max_error: float = 0.02, *, level: float = 0.95) -> Any:
        """Return the items whose labels can be accepted without review, at some error rate.

        With 50 reviewed items or more that were drawn at random (``suggest(n, audit=True)``), the
        error rate is guaranteed: with the probability `level` it is `max_error` at most. The
        items are those of a confidence from some threshold on. The threshold is found by
        Clopper-Pearson upper bounds at fixed shares of the items, from the most confident items
        on, up to the first bound above `max_error` (fixed-sequence testing); see
        `appellate.rectification.acceptance.acceptable` for the method and its references. The
        guarantee supposes that all items that were drawn up to some point are reviewed, not only
        the easy ones, and that the review is correct.

        With fewer reviewed items the threshold is an estimate: the confidences of the accepted
        items are treated as probabilities, and a `NoteWarning` says so.

        Parameters
        ----------
        max_error : float, default=0.02
            Share of wrong labels among the accepted items, between 0 and 1.
        level : float, default=0.95
            Probability that the share is not larger, between 0 and 1. The estimate has no level.

        Returns
        -------
        data frame
            One row per accepted item: ``id``, ``label``, ``confidence``, and ``guaranteed``,
            which is False for an estimate. A guarantee is for the labels without any decision,
            since decisions on audited items cannot audit labels that they helped to find; only
            reviewed items have the label that was decided.

        Raises
        ------
        ValueError
            If a number is outside its range, the run was loaded, or PLCP, whose confidence is
            not calibrated, would have to estimate.

        Warns
        -----
        NoteWarning
            If the error rate is an estimate, if no item can be accepted, and why, or if accepted
            items have another label in `labels`.
        """
        check_shares(max_error=max_error, level=level)
        fitted = self._fitted
        if fitted is None:
            raise ValueError(
                "this run was loaded. Call rectify with its table and its decisions again, and "
                "accept then."
            )
        if fitted.review is None or fitted.review.audited.sum() < ENOUGH:
            self._check_calibrated("accept by an estimate", f" Or review {ENOUGH} drawn items.")
        table, accepted, notes = accept_items(fitted, max_error, level)
        tell(notes, stacklevel=2)
        backend: Any = frame_backend(self.docket)
        frame = nw.from_dict(table, backend=backend)
        return frame.filter(accepted.tolist()).to_native()

    def explain(self, item: Any) -> Explanation:
        """Say why an item has its label: the score of every label as a sum, printed as a table.

        Parameters
        ----------
        item : str or int
            Name of the item, as in the column ``id`` of the docket, or its number from 0 on if
            no item has this name.

        Returns
        -------
        Explanation
            The parts of the sum, the confidence and the most similar items; see
            `TestimonyClassifier.explain` and `JuryClassifier.explain`.

        Raises
        ------
        ValueError
            If the item does not exist, a review excluded it, or the method is PLCP, whose labels
            do not come from a sum. Or if the run was loaded, it has no model because only answers
            were learned from, and its table cannot be read again.

        Examples
        --------
        >>> import appellate
        >>> table = {
        ...     "size": [1.0, 1.1, 5.0, 5.1] * 5,
        ...     "weight": [3, 4, 20, 21] * 5,
        ...     "names": ["cat|dog", "cat", "dog", "dog"] * 5,
        ... }
        >>> run = appellate.rectify(table, candidates="names")
        >>> run.explain(0).label
        'cat'
        """
        classifier = self._classifier
        if not hasattr(classifier, "explain"):
            raise ValueError(
                "Labels of PLCP do not come from a sum, so there is nothing to explain. Use "
                "method='jury', or method='testimony' if there are annotators."
            )
        docket = nw.from_native(self.docket, eager_only=True)
        names = [str(name) for name in docket["id"].to_list()]
        outcomes = docket["outcome"].to_list()
        row = find_item(item, names)
        if outcomes[row] == "excluded":
            raise ValueError(f"A review excluded item {names[row]!r}: it has no label to explain.")
        kept = fitted_items(classifier, outcomes, docket["label"].to_list())
        if row not in kept:
            raise ValueError(
                f"A review gave item {names[row]!r} a label that the table does not have. The "
                "model did not learn from it."
            )
        (why,) = classifier.explain(kept.index(row))
        return why.named([names[i] for i in kept])

    @cached_property
    def _classifier(self) -> Any:
        """Classifier of the labels; a loaded run without a model labels its table again."""
        if self._fitted is not None:
            return self._fitted.classifier
        if self.model is not None:
            return self.model[-1]
        run, docket = _again(self), nw.from_native(self.docket, eager_only=True)
        columns = (docket[name].to_list() for name in ("outcome", "id", "label"))
        items = list(zip(*columns, strict=True))
        labels = {name: label for outcome, name, label in items if outcome == "reviewed"}
        none = [[name, "none", ""] for outcome, name, _ in items if outcome == "excluded"]
        if labels:
            run = run._decide(labels, nobody)
        if none:
            excluded = zip(("id", "decision", "label"), zip(*none, strict=True), strict=True)
            run = run._decide({name: list(values) for name, values in excluded}, nobody)
        return run._classifier

    def effort(self) -> Any:
        """Say how many wrong labels are to be expected after a review of the least certain items.

        Returns
        -------
        data frame
            ``reviewed``: how many further items are reviewed, those of the least confidence;
            ``expected_wrong``: how many labels of the other items are wrong, by their confidence.

        Raises
        ------
        ValueError
            For PLCP, whose confidence is not calibrated.

        Examples
        --------
        >>> import appellate
        >>> table = {
        ...     "size": [1.0, 1.1, 5.0, 5.1] * 5,
        ...     "weight": [3, 4, 20, 21] * 5,
        ...     "names": ["cat|dog", "cat", "dog", "dog"] * 5,
        ... }
        >>> run = appellate.rectify(table, candidates="names")
        >>> run.effort()["reviewed"].tolist()
        [0, 10, 20]
        """
        self._check_calibrated("expect wrong labels")
        docket = nw.from_native(self.docket, eager_only=True)
        open_ = ~docket["outcome"].is_in(["reviewed", "excluded"]).to_numpy()
        confidence = docket["confidence"].to_numpy().astype(np.float64)
        doubts = np.sort(1 - confidence[open_])[::-1]
        left = np.append(np.cumsum(doubts[::-1])[::-1], 0.0)
        counts = steps(len(doubts))
        columns = {
            "reviewed": counts,
            "expected_wrong": [round(float(left[k]), 2) for k in counts],
        }
        backend: Any = frame_backend(self.docket)
        return nw.from_dict(columns, backend=backend).to_native()

    def _check_calibrated(self, what: str, otherwise: str = "") -> None:
        """Refuse PLCP, whose confidence is not calibrated."""
        if self.settings["method"] == "plcp":
            raise ValueError(
                f"PLCP cannot {what}: its confidence is not calibrated. Use method='jury', or "
                f"method='testimony' if there are annotators.{otherwise}"
            )

    def predict(
        self,
        data: Any,
        *,
        proba: bool = False,
        embeddings: Any = None,
        text_model: Any = None,
        image_model: Any = None,
        **reading: Unpack[ReadingOptions],
    ) -> Any:
        """Label the rows of another table, see `predict`."""
        if self.model is None:
            raise ValueError(NO_MODEL)
        embedders = self._fitted.prepared.features.embedders if self._fitted else ()
        known: dict[str, Any] = {each.kind: each.model for each in embedders}
        given = {"text": text_model, "picture": image_model}
        known |= {kind: model for kind, model in given.items() if model}
        table = read_table(data, **reading)
        added, notes = label_rows(self.model, self.settings, table, known, proba, embeddings)
        tell(notes, stacklevel=2)
        return join(table, added)

    def importance(self) -> dict[str, float]:
        """Say what every column contributes to knowing the labels.

        Half of some items predict the labels of the other half, then again with one column
        shuffled; see `appellate.tables.contributions`. It takes seconds.

        Returns
        -------
        dict of str to float
            By column, and by ``"embeddings"``: how much less probable what was answered of the
            items becomes, the largest first. Empty if there are not two to weigh against each
            other, or too many.
        """
        if self._fitted is None:
            features = self.settings["features"]
            return {e["name"]: e["importance"] for e in features if "importance" in e}
        found = weigh_columns(self._fitted)
        for each in self.settings["features"]:
            if each["name"] in found:
                each["importance"] = found[each["name"]]
        return found

    def export(self, path: str | os.PathLike[str], *, tool: str | None = None) -> Path:
        """Write the labels as suggestions that a labelling tool imports, with their scores.

        Parameters
        ----------
        path : path
            The file; JSON for Label Studio and Argilla, JSON lines for Prodigy and doccano, CSV
            for crowd-kit. For Hugging Face a folder, which ``datasets.load_from_disk`` opens.
        tool : str, default=None
            One of ``"label-studio"``, ``"argilla"``, ``"prodigy"``, ``"doccano"``,
            ``"crowd-kit"``, ``"hugging-face"``; by default the tool that the table was exported
            from.

        Returns
        -------
        Path
            The file.
        """
        if self._fitted is None:
            raise ValueError("this run was loaded. Call rectify again to export its labels.")
        fitted, prepared = self._fitted, self._fitted.prepared
        made = prepared.table.export
        tool = tool or (made.tool if made else None)
        if tool is None:
            raise ValueError(f"Name the labelling tool with tool=: {', '.join(ENDINGS)}.")
        own = made if made and made.tool == tool else None
        names = [n for n in prepared.table.names if n not in prepared.roles.labels]
        items = prepared.table.data.select(names).take(prepared.labels.first)
        labels, sure = fitted.columns["label"], fitted.columns["confidence"]
        classes = prepared.classes.tolist()
        if tool == HUGGING_FACE:
            return write_dataset(items, path, labels, sure, classes)
        beside: dict[str, Any] = {"items": own.items} if own else {"rows": items.to_pylist()}
        beside["question"] = made.question if made else ""
        text = write_suggestions(tool, prepared.names, labels, sure, classes, **beside)
        return write_file(path, text)

    def save(
        self, folder: str | os.PathLike[str], *, tool: str | None = None, step: TellStep = nobody
    ) -> Path:
        """Write everything into a folder, which changes at once or not at all.

        Parameters
        ----------
        folder : path
            Where; files of an earlier run are replaced, all others are kept.
        tool : str, default=None
            Write suggestions for this labelling tool, see `export`; by default for that which
            the table was exported from, if any.
        step : callable, default=no-op
            Told what is written next, ``step(text, within=True)``.

        Returns
        -------
        Path
            The folder, with ``rectified.parquet`` (and ``rectified.csv``, unless the format of
            the table keeps types, as Parquet does), ``docket.csv``, ``docket.html``,
            ``suggested.csv``, ``annotators.csv`` if annotators answered, ``model``, ``run.json``.
        """
        if self._fitted is None:
            raise ValueError("this run was loaded: it is saved already. Copy its folder.")
        check_folder(folder)
        target, fitted = Path(folder), self._fitted
        table, added = fitted.prepared.table, fitted.added
        tables = {"docket": fitted.columns}
        frames = {"suggested": self.suggest(SUGGESTED), "annotators": self.annotators}
        for name, frame in frames.items():
            if frame is not None:
                tables[name] = nw.from_native(frame, eager_only=True).to_dict(as_series=False)
        with whole_folder(target, owned=FILES) as stage:
            write_table(table, stage / "rectified.parquet", added=added)
            kind = find_format(table.kind)
            if kind is None or not kind.typed:
                write_table(table, stage / "rectified.csv", added=added, digits=6)
            chosen = tool or (table.export.tool if table.export else None)
            if chosen is not None:
                self.export(stage / f"suggestions{ENDINGS.get(chosen, '')}", tool=chosen)
            step("finding out what each column contributes", within=True)
            self.importance()
            for name, columns in tables.items():
                write_table(None, stage / f"{name}.csv", added=columns, digits=6)
            write_table(None, stage / "docket.parquet", added=fitted.columns)
            if self.model is not None:  # with what `predict` must know of the columns
                known = ("roles", "features", "n_embeddings", "method")
                meta = {name: self.settings[name] for name in known}
                step("storing the model", within=True)
                try:
                    save_model(self.model, stage / "model", meta=meta)
                except ModelFileError as error:
                    base = getattr(self.model[-1], "estimator", None)
                    if base is None or type(base).__module__.startswith("appellate."):
                        raise
                    self.settings["notes"].append(f"the model is not saved: {error}")
                    tell(self.settings["notes"][-1:], stacklevel=2)
            step("the review page", within=True)
            page = render_page(collect_page(fitted, self.settings, self.scores, target))
            (stage / "docket.html").write_text(page, encoding="utf-8", newline="\n")
            document = {"settings": self.settings, "scores": self.scores}
            text = json.dumps(document, indent=2, ensure_ascii=False, allow_nan=False)
            (stage / "run.json").write_text(f"{text}\n", encoding="utf-8")
        if fitted.review is not None and not os.path.lexists(target / DECISIONS):
            write_file(target / DECISIONS, decisions_csv(fitted.prepared, fitted.reviewed))
        return target

    def summary(self) -> str:
        """Say what came out."""
        scores, outcomes = self.scores, dict(self.scores["outcomes"])
        lines = [f"labels      {scores['items']} items by {self.settings['method']}"]
        same, changed = (outcomes.pop(name, 0) for name in ("unchanged", "changed"))
        single = scores.get("single", 0)
        if scores.get("first"):
            lines.append(
                f"            {changed} changed, {same - single} unchanged compared with the "
                f"first labels ({scores['first']})"
            )
        if single:
            lines.append(f"            {single} with one candidate, which could not change")
        lines += [f"            {count} {name}" for name, count in outcomes.items()]
        if "expected_wrong" in scores:
            labelled = scores["items"] - outcomes.get("excluded", 0)
            lines.append(
                f"            expected errors: about {scores['expected_wrong']:.0f} of {labelled} "
                "(from the confidence)"
            )
        for name, count in scores["differing"].items():
            if name != FIRST[self.settings["method"]]:
                lines.append(f"            {count} differ from {name}")
        for number, line in enumerate(scores.get("found", ())):
            lines.append(f"{'' if number else 'found':12}{line}")
        if "moved" in scores:
            lines.append(f"decisions   changed {scores['moved']} other labels")
        if scores["audit"]:
            audit = scores["audit"]
            low, high = audit["low"], audit["high"]
            lines.append(
                f"audit       {audit['accuracy']:.1%} correct (95% interval {low:.1%} to "
                f"{high:.1%}), from {audit['rows']:.0f} randomly chosen items that were reviewed"
            )
        for name, value in (scores["accuracy"] or {}).items():
            if name != N_TRUE:
                who = "Appellate" if name == RECTIFIED else f"{name} (baseline)"
                lines.append(f"accuracy    {value:.3f} {who}")
        if scores.get("unanswered"):
            rest = scores["unanswered"]
            lines.append(f"unanswered  {rest['items']} items have no answer")
            if rest[N_TRUE]:
                lines[-1] += f"; accuracy {rest['accuracy']:.3f} on {rest[N_TRUE]}"
        for note in scores["notes"]:
            lines.append(f"note        {note}")
        return "\n".join(map(printable, lines))

    def __repr__(self) -> str:
        """Say how the columns were read and what came out."""
        given: dict[str, Any] = {
            name: tuple(value) if isinstance(value, list) else value
            for name, value in self.settings["roles"].items()
        }
        read = "\n".join(f"  {line}" for line in str(Roles(**given)).splitlines())
        source = self.settings["source"]
        return f"Rectification of {source}\nHow the columns are used\n{read}\n{self.summary()}"

    def _repr_html_(self) -> str:
        """Show the summary, two figures and the first rows of the docket in a notebook."""
        figures = inline_figures(self)
        rows = f'<div style="overflow-x: auto">{self.docket.head(10)._repr_html_()}</div>'
        return f"<pre>{escape(repr(self))}</pre>{figures}{rows}"


def load(folder: str | os.PathLike[str]) -> Rectification:
    """Open a run that was saved.

    Parameters
    ----------
    folder : path
        What `Rectification.save` or ``appellate rectify`` wrote.

    Returns
    -------
    Rectification
        The saved run. `Rectification.decide` reads the data again, from its original place.

    Raises
    ------
    ValueError
        If the folder holds no run, or one of an earlier version.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> import appellate
    >>> table = {
    ...     "size": [1.0, 1.1, 5.0, 5.1] * 5,
    ...     "weight": [3, 4, 20, 21] * 5,
    ...     "names": ["cat|dog", "cat", "dog", "dog"] * 5,
    ... }
    >>> with TemporaryDirectory() as folder:
    ...     _ = appellate.rectify(table, candidates="names").save(f"{folder}/run")
    ...     appellate.load(f"{folder}/run").labels["label"].tolist()[:4]
    ['cat', 'cat', 'dog', 'dog']
    """
    home = Path(folder)
    finish_folder(home)
    document = read_document(home)
    if document is None:
        raise ValueError(f"'{folder}' holds no run. Name a folder that rectify wrote.")
    check_members(home, READ_AGAIN)
    model, people = home / "model", home / "annotators.csv"
    settings = document["settings"]
    docket = read_table(home / "docket.parquet").data.to_pandas()
    if "label" not in docket:
        raise ValueError(
            f"'{folder}' was written by an earlier version, which named the columns of the docket "
            "differently. Run rectify again on the same table; decisions.csv can be used again."
        )
    table, index = read_table(home / "rectified.parquet"), saved_index(home / "rectified.parquet")
    labels = _join_added(table, settings, {})
    if index is not None and len(index) == len(labels):
        labels = labels.drop(columns=[name for name in index.names if name in labels.columns])
        labels.index = index
    return Rectification(
        labels,
        docket,
        read_own(people) if people.exists() else None,
        load_model(model) if model.is_dir() else None,
        settings,
        document["scores"],
        _suggested=read_own(home / "suggested.csv"),
    )


def _again(run: Rectification) -> Rectification:
    """Label the table of a loaded run again, if it has not changed."""
    call = dict(run.settings["call"])
    data = call.pop("data")
    if data is None:
        raise ValueError(
            "this run was loaded, and its table was not a file. Call rectify(table, ...) with the "
            "same arguments, and decide then."
        )
    lost = [name for name, value in call.items() if isinstance(value, dict) and NOT_KEPT in value]
    if lost:
        kinds = ", ".join(f"{name} was a {call[name][NOT_KEPT]}" for name in lost)
        raise ValueError(
            "this run was loaded, and its folder does not contain everything that the run was "
            f"made with: {kinds}. "
            f"Call rectify('{data}', ...) with the same arguments, and decide then."
        )
    # Folders of earlier versions hold the settings among the other arguments.
    known = inspect.signature(rectify).parameters
    loose = {name: call.pop(name) for name in [*call] if name not in known}
    call["settings"] = {**(call.get("settings") or {}), **loose}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NoteWarning)  # they were told when the run was made
        made = rectify(data, **call)
    if made.settings["sha256"] != run.settings["sha256"]:
        raise ValueError(
            f"{made.settings['source']} has changed since the run was made. Call rectify on it."
        )
    made.settings["audit"] = run.settings["audit"]
    return made


def _plain(values: NDArray[Any]) -> list[Any]:
    return [None if value != value else value for value in values.tolist()]
