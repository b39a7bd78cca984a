"""Exports of labelling tools: in as a table of answers, out as suggestions for their reviewers.

Label Studio (JSON), Argilla (records as JSON), Prodigy and doccano (JSON lines) are read to their
documentation; crowd-kit's tables of task, worker and label are ordinary tables, as are data sets
of Hugging Face, whose class names are put back by `name_classes` (`write_dataset` writes one).
"""

from __future__ import annotations

import io
import json
import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from appellate._files import whole_folder
from appellate._text import import_extra
from appellate.tables.cells import TableError, as_label, name_some

HUGGING_FACE = "hugging-face"
ENDINGS = {"label-studio": ".json", "argilla": ".json", "prodigy": ".jsonl", "doccano": ".jsonl",
           "crowd-kit": ".csv", HUGGING_FACE: ""}  # fmt: skip
TOOLS = tuple(tool for tool, ending in ENDINGS.items() if ending)
_BY = "appellate"  # whose the suggestions are
_LARGEST_INFO = 16 << 20  # bytes of the description of a data set
_PRODIGY = ("answer", "accept", "label", "_task_hash", "_annotator_id", "_session_id",
            "_timestamp", "_view_id", "_is_binary")  # fmt: skip
_SOURCES = ("text", "image", "html", "audio", "video")

# Who answered what to which question: item, its record, person (None if not known), labels.
_Answer = tuple[Any, Mapping[str, Any], Any, str, list[str]]


@dataclass(frozen=True, eq=False)
class Export:
    """What annotators did in a labelling tool.

    Attributes
    ----------
    tool : str
        ``label-studio``, ``argilla``, ``prodigy``, ``doccano`` or ``crowd-kit``.
    columns : dict of str to list
        One row per answer: the item, the label, the annotator, and what the tool showed.
    roles : dict of str to str or tuple of str
        What columns are: ``long``, or ``candidates`` and ``id`` if no annotator is known; empty
        if nobody chose a label.
    items : dict of str to dict
        The records of the tool by item, without answers.
    question : str
        The question that was read, if the tool asks several.
    notes : tuple of str
        What is good to know.
    records : sequence of dict
        All that the tool wrote.

    Examples
    --------
    >>> open_export([{"id": 4, "text": "Yes!", "label": ["good", "bad"]}], "doccano").roles
    {'candidates': 'label', 'id': 'task'}
    """

    tool: str
    columns: dict[str, list[Any]]
    roles: dict[str, Any]
    items: dict[str, dict[str, Any]]
    question: str = ""
    notes: tuple[str, ...] = ()
    records: Sequence[Mapping[str, Any]] = ()


def find_tool(records: Sequence[Any]) -> str | None:
    """Say which labelling tool wrote records; None if none that is known.

    Parameters
    ----------
    records : sequence of dict
        A JSON array, or one object a line.

    Returns
    -------
    str or None

    Examples
    --------
    >>> find_tool([{"id": 7, "data": {"text": "Good."}, "annotations": []}])
    'label-studio'
    >>> find_tool([{"id": 7, "text": "Good."}])
    """
    some = records[:100]
    known = bool(some) and all(isinstance(record, Mapping) for record in some)
    return next((tool for tool, test in _SIGNS.items() if known and all(map(test, some))), None)


def _is_doccano(record: Mapping[str, Any]) -> bool:
    labels = record.get("labels" if "labels" in record else "label")
    known = isinstance(labels, list) and all(isinstance(label, str) for label in labels)
    signs = {"Comments", "username", "annotation_approver"} & record.keys()
    return known and "text" in record and bool(signs or (len(record) == 3 and "id" in record))


_SIGNS: dict[str, Callable[[Mapping[str, Any]], bool]] = {
    "label-studio": lambda r: isinstance(r.get("data"), dict) and bool(
        {"annotations", "completions", "predictions"} & r.keys()
    ),
    "argilla": lambda r: isinstance(r.get("fields"), dict) and isinstance(
        r.get("responses") or {}, dict
    ) and bool({"responses", "suggestions"} & r.keys()),
    "prodigy": lambda r: "_input_hash" in r or (
        r.get("answer") in ("accept", "reject", "ignore") and bool(
            {"accept", "label", "options"} & r.keys()
        )
    ),
    "doccano": _is_doccano,
}  # fmt: skip


def open_export(
    records: Sequence[Mapping[str, Any]],
    tool: str,
    *,
    source: str = "the export",
    people: Sequence[str | None] | None = None,
    question: str | None = None,
) -> Export:
    """Read what annotators did in a labelling tool, one row per answer.

    Parameters
    ----------
    records : sequence of dict
        What the tool exported.
    tool : str
        See `find_tool`.
    source : str, default="the export"
        What the export is called in messages.
    people : sequence of str, default=None
        Who made each record, if the tool writes one file per annotator, as doccano does.
    question : str, default=None
        Which of several questions; by default the one with the most answers.

    Returns
    -------
    Export

    Raises
    ------
    TableError
        If it is not built as the tool builds it, or the question does not exist.

    Examples
    --------
    >>> answer = {"from_name": "mood", "to_name": "text", "type": "choices",
    ...           "value": {"choices": ["good"]}}
    >>> task = {"id": 7, "data": {"text": "Yes!"},
    ...         "annotations": [{"completed_by": 3, "result": [answer]}]}
    >>> open_export([task], "label-studio").columns
    {'task': ['7'], 'label': ['good'], 'worker': ['3'], 'text': ['Yes!']}
    """
    title = {"label-studio": "Label Studio", "doccano": tool}.get(tool, tool.capitalize())
    try:
        answers = list(_READERS[tool](records, people))
    except (AttributeError, TypeError, KeyError) as error:
        raise TableError(
            f"{source} looks like an export of {title}, but is not built as one "
            f"({error}). Export it again."
        ) from error
    asked = Counter(each[3] for each in answers if each[4])
    if question is not None and question not in asked:
        raise TableError(f"{source} asks no question {question!r}, but {name_some(asked)}.")
    chosen = question or (asked.most_common(1)[0][0] if asked else "")
    notes = [f"read as an export of {title}; suggestions go back in the same form."]
    if len(asked) > 1:
        others = [name for name in asked if name != chosen]
        notes.append(f"question {chosen!r} is read; there are also {name_some(others)}.")
    items: dict[str, Any] = {}
    rows: dict[str, list[tuple[str | None, str | None]]] = {}  # labels and who chose them
    for item, record, person, asks, labels in answers:
        key = as_label(item) or ""
        items.setdefault(key, record)
        who = None if person is None else str(person)
        rows.setdefault(key, []).extend((label, who) for label in labels if asks == chosen)
    columns, roles = _lay_out(rows, {key: _shown(tool, each) for key, each in items.items()})
    if not asked:
        notes.append("nobody chose a label of a whole item there.")
        del columns[roles["long"][1] if "long" in roles else roles["candidates"]]
    return Export(tool, columns, roles if asked else {}, items, chosen, tuple(notes), records)


def _lay_out(
    rows: Mapping[str, Sequence[tuple[str | None, str | None]]], shown: Mapping[str, Any]
) -> tuple[dict[str, list[Any]], dict[str, Any]]:
    """Return answers as columns, and what these are; `shown` are further cells of each item.

    One row per answer if annotators are known, else one row per item with its candidates.
    """
    titles = dict.fromkeys(name for cells in shown.values() for name in cells)
    long = [f"_{name}" if name in titles else name for name in ("task", "label", "worker")]
    task, label, _ = long
    columns: dict[str, list[Any]]
    if any(who is not None for each in rows.values() for _, who in each):
        flat = [(key, *each) for key, given in rows.items() for each in given or [(None, None)]]
        columns = {name: [row[j] for row in flat] for j, name in enumerate(long)}
        roles: dict[str, Any] = {"long": tuple(long)}
    else:
        named = [list(dict.fromkeys(name for name, _ in given)) for given in rows.values()]
        columns = {task: list(rows), label: named}
        roles = {"candidates": label, "id": task}
    for name in titles:
        columns[name] = [shown[key].get(name) for key in columns[task]]
    return columns, roles


def _shown(tool: str, record: Mapping[str, Any]) -> dict[str, Any]:
    """Return what the tool showed of an item, and what is known of it: plain cells only."""
    if tool == "label-studio":
        cells = dict(record["data"])
    elif tool == "argilla":
        cells = {**(record.get("vectors") or {}), **(record.get("metadata") or {}),
                 **record["fields"]}  # fmt: skip
    else:
        gone = {"options", "id", "doc_id", "Comments", "username", "annotation_approver"}
        cells = {n: v for n, v in record.items() if n not in gone and not n.startswith("_")}
        cells |= cells.pop("meta", None) or {} if isinstance(cells.get("meta"), dict) else {}
        cells.pop("score", None)
    plain = (str, int, float, type(None))
    return {
        str(name): value
        for name, value in cells.items()
        if isinstance(value, plain)
        or (isinstance(value, list) and value and {*map(type, value)} <= {int, float})
    }


def _labels(value: Any) -> list[str]:
    """Return a label or a list of labels as texts; nothing of what is not a label."""
    values = value if isinstance(value, list) else [value]
    plain = (as_label(each) for each in values if isinstance(each, (str, int, float)))
    return [label for label in plain if label]


def _read_label_studio(records: Iterable[Any], _: Any) -> Iterator[_Answer]:
    for number, task in enumerate(records):
        item = task.get("id", number)
        base = {name: task[name] for name in ("id", "data", "meta") if task.get(name) is not None}
        yield item, base, None, "", []
        for made in task.get("annotations") or task.get("completions") or []:
            results = made.get("result") if not made.get("was_cancelled") else []
            by = made.get("completed_by")
            by = (by.get("email") or by.get("id")) if isinstance(by, dict) else by
            for result in results or []:
                value = result.get("value") or {}
                labels = _labels(value.get("choices", value.get("rating")))
                base.setdefault("_control", {}).setdefault(
                    str(result.get("from_name")),
                    {n: result[n] for n in ("from_name", "to_name", "type") if n in result},
                )
                yield item, base, by, str(result.get("from_name")), labels


def _read_argilla(records: Iterable[Any], _: Any) -> Iterator[_Answer]:
    for number, record in enumerate(records):
        item = record.get("id") or record.get("_server_id") or number
        base = {n: v for n, v in record.items() if n not in ("responses", "suggestions", "status")}
        yield item, base, None, "", []
        for question, given in (record.get("responses") or {}).items():
            for response in given or []:
                if response.get("status") != "discarded":
                    labels = _labels(response.get("value"))
                    yield item, base, response.get("user_id"), question, labels


def _read_prodigy(records: Iterable[Any], _: Any) -> Iterator[_Answer]:
    records = list(records)
    named = {str(r["label"]) for r in records if r.get("label") is not None}
    for record in records:
        source = next((record[name] for name in _SOURCES if record.get(name)), None)
        item = record.get("_input_hash", source)
        base = {name: value for name, value in record.items() if name not in _PRODIGY}
        who = record.get("_annotator_id") or record.get("_session_id")
        labels = _labels(record["accept"] if "accept" in record else record.get("label"))
        if record.get("answer", "accept") == "reject" and len(named) == 1 and labels:
            labels = [f"not {labels[0]}"]
        elif record.get("answer", "accept") != "accept":
            labels = []
        if "accept" not in record and record.get("label") is not None:
            base["_binary"] = labels[0].removeprefix("not ") if len(named) == 1 and labels else ""
        yield item, base, who, "", labels


def _read_doccano(records: Iterable[Any], people: Any) -> Iterator[_Answer]:
    for number, record in enumerate(records):
        item = record.get("id", record.get("doc_id", record["text"]))
        base = {n: v for n, v in record.items() if n not in ("label", "labels", "username")}
        who = record.get("username") or (people[number] if people else None)
        labels = _labels(record["labels" if "labels" in record else "label"])
        yield item, base, who, "", labels


_READERS: dict[str, Callable[[Any, Any], Iterator[_Answer]]] = {
    "label-studio": _read_label_studio,
    "argilla": _read_argilla,
    "prodigy": _read_prodigy,
    "doccano": _read_doccano,
}


def write_suggestions(
    tool: str,
    ids: Sequence[Any],
    labels: Sequence[str | None],
    scores: Sequence[float | None],
    classes: Sequence[str],
    *,
    items: Mapping[str, Mapping[str, Any]] | None = None,
    rows: Sequence[Mapping[str, Any]] | None = None,
    question: str = "",
) -> str:
    """Write labels as predictions or suggestions that a labelling tool imports.

    Parameters
    ----------
    tool : str
        ``label-studio``, ``argilla``, ``prodigy``, ``doccano`` or ``crowd-kit``.
    ids : sequence
        Names of the n items.
    labels, scores : sequence of str, of float
        Label of each item and how confident; None for an item without a label.
    classes : sequence of str
        All labels, offered to the reviewers where the tool asks for them.
    items : mapping, default=None
        `Export.items`, if the table came from a tool.
    rows : sequence of mapping, default=None
        Else the cells of every item, by column.
    question : str, default=""
        `Export.question`.

    Returns
    -------
    str
        What the file to import holds: a JSON array for Label Studio and Argilla, JSON lines for
        Prodigy and doccano, CSV for crowd-kit.

    Examples
    --------
    >>> rows = [{"text": "Yes!"}]
    >>> print(write_suggestions("doccano", ["7"], ["good"], [0.9], ["good", "bad"], rows=rows))
    {"text": "Yes!", "id": "7", "label": ["good"], "score": 0.9}
    <BLANKLINE>
    """
    if tool not in TOOLS:
        raise ValueError(f"{tool!r} is not a known labelling tool: {', '.join(TOOLS)}.")
    found = []
    for i, (name, label, score) in enumerate(zip(ids, labels, scores, strict=True)):
        known = (items or {}).get(str(name))
        base = _blank(tool, name, rows[i] if rows else {}) if known is None else dict(known)
        sure = None if score is None else round(float(score), 6)
        found.append(_suggest(tool, base, name, label, sure, classes, question))
    if tool == "crowd-kit":
        from appellate.tables.writing import write_csv  # which reads tables, and so this

        stream = io.StringIO()
        columns = {name: [each[name] for each in found] for name in ("task", "agg_label", "score")}
        write_csv(None, stream, added=columns)
        return stream.getvalue()
    if tool in ("label-studio", "argilla"):
        return json.dumps(found, ensure_ascii=False, indent=1, default=str) + "\n"
    return "".join(json.dumps(each, ensure_ascii=False, default=str) + "\n" for each in found)


def _blank(tool: str, name: Any, row: Mapping[str, Any]) -> dict[str, Any]:
    """Return the record of an item that comes from no tool."""
    cells = {title: value for title, value in row.items() if value is not None}
    if tool == "label-studio":
        return {"data": {**cells, "id": name}}
    if tool == "argilla":
        texts = {title: value for title, value in cells.items() if isinstance(value, str)}
        others = {title: value for title, value in cells.items() if title not in texts}
        return {"id": name, "fields": texts, "metadata": others, "vectors": {}}
    if tool == "prodigy":
        source = next((title for title in _SOURCES if title in cells), None)
        first = {source: cells.pop(source)} if source else {}
        return {**first, "meta": {**cells, "id": name}}
    return {**cells, "id": name}


def _suggest(
    tool: str, base: dict[str, Any], name: Any, label: Any, score: Any, classes: Any, question: str
) -> dict[str, Any]:
    """Return the record of an item with what is suggested for it."""
    if tool == "label-studio":
        controls, data = base.pop("_control", {}), base["data"]
        to = next((name for name in _SOURCES if name in data), next(iter(data), "text"))
        plain = {"from_name": question or "label", "to_name": to, "type": "choices"}
        control = {**plain, **controls.get(question, {})}
        rated = control["type"] == "rating" and label
        value = {"rating": int(float(label))} if rated else {"choices": [label]}
        result = [{**control, "value": value}] if label else []
        return {**base, "predictions": [{"model_version": _BY, "score": score, "result": result}]}
    if tool == "argilla":
        made = {question or "label": {"value": label, "score": score, "agent": _BY}}
        return {**base, "suggestions": made if label else {}, "responses": {}}
    if tool == "prodigy":
        only = base.pop("_binary", None)
        meta = base["meta"] if isinstance(base.get("meta"), dict) else {}
        base = {**base, "meta": {**meta, "score": score}}
        if only:
            return {**base, "label": only, "answer": "accept" if label == only else "reject"}
        if only is not None:
            return {**base, "label": label}
        options = [{"id": name, "text": name} for name in classes]
        return {"options": options, **base, "accept": [label] if label else []}
    if tool == "doccano":
        return {**base, "label": [label] if label else [], "score": score}
    return {"task": name, "agg_label": label, "score": score}


def open_datasets() -> Any:
    """Return the library ``datasets``, or raise an ImportError that says how to get it."""
    return import_extra("datasets", f"tool={HUGGING_FACE!r}", "tools")


def write_dataset(
    data: Any, path: str | os.PathLike[str], labels: Sequence[str | None],
    scores: Sequence[float | None], classes: Sequence[str],
) -> Path:  # fmt: skip
    """Write items and their labels as a data set of Hugging Face, as ``save_to_disk`` does.

    Parameters
    ----------
    data : pyarrow.Table
        The items.
    path : path
        A folder that ``datasets.load_from_disk`` opens; an earlier data set is replaced.
    labels, scores : sequence of str, of float
        Further columns ``label``, of classes, and ``score``; None for an item without a label.
    classes : sequence of str
        All labels, in their order.

    Returns
    -------
    Path
        The folder.

    Raises
    ------
    ImportError
        If the library ``datasets`` is not installed.
    TableError
        If there is a folder of something else.
    """
    library, folder = open_datasets(), Path(path)
    if folder.is_dir() and any(folder.iterdir()) and not (folder / "dataset_info.json").exists():
        raise TableError(f"'{path}' exists, but is not a data set. Name another folder.")
    names = list(dict.fromkeys(name for name in (*classes, *labels) if name is not None))
    place = {name: code for code, name in enumerate(names)}
    taken = data.column_names
    label, score = (f"_{name}" if name in taken else name for name in ("label", "score"))
    codes = [None if name is None else place[name] for name in labels]
    data = data.append_column(label, pa.array(codes, pa.int64()))
    data = data.append_column(score, pa.array(scores, pa.float64()))
    kinds = library.Features.from_arrow_schema(data.schema)
    kinds[label] = library.ClassLabel(names=names)
    made = library.Dataset(
        library.table.InMemoryTable(data), info=library.DatasetInfo(features=kinds)
    )
    shown = library.is_progress_bar_enabled()
    library.disable_progress_bars()
    try:
        with whole_folder(folder) as stage:
            made.save_to_disk(str(stage))
    finally:
        if shown:
            library.enable_progress_bars()
    return folder


def name_classes(data: Any, folder: Path) -> Any:
    """Put the names of classes for their numbers, in a data set that Hugging Face saved.

    Parameters
    ----------
    data : pyarrow.Table
        Its columns.
    folder : Path
        Where ``dataset_info.json`` is.

    Returns
    -------
    pyarrow.Table
        Columns of class numbers (and lists of them) as texts; all others as they are.
    """
    place = folder / "dataset_info.json"
    try:
        regular = place.is_file() and place.stat().st_size <= _LARGEST_INFO  # a FIFO never ends
        kinds = dict(json.loads(place.read_text(encoding="utf-8"))["features"]) if regular else {}
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return data
    for i, name in enumerate(data.column_names):
        kind = kinds.get(name)
        kind = kind[0] if isinstance(kind, list) and kind else kind
        kind = kind.get("feature", kind) if isinstance(kind, dict) else None
        if not isinstance(kind, dict) or kind.get("_type") != "ClassLabel":
            continue
        listed, column = kind.get("names"), data.column(i)
        names = dict(enumerate(map(str, listed if isinstance(listed, list) else ())))
        codes = getattr(column.type, "value_type", column.type)  # of numbers, or of lists of them
        if not names or not pa.types.is_integer(codes):
            continue
        texts = [
            [names.get(each) for each in code] if isinstance(code, list) else names.get(code)
            for code in column.to_pylist()
        ]
        data = data.set_column(i, name, pa.array(texts))
    return data
