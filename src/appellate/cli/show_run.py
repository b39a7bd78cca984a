"""What a run of ``rectify`` says and writes, from what it found."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from appellate.cli.outputs import NAMES
from appellate.cli.tables_in import Table, name_some

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from appellate.cli.hearing import Hearing, Setting
    from appellate.cli.roles import Case, Labels
    from appellate.review import Decisions

Say = Callable[[str], None]
_HEARD = {  # columns of the docket that say nothing of a row that a review excluded
    "verdict",
    "appeal",
    "verdict_confidence",
    "appeal_confidence",
    "margin",
    "round",
    "verdict_correct",
    "appeal_correct",
}
_VERSIONS = ("appellate", "numpy", "scipy", "scikit-learn")


def say_inferred(
    say: Say,
    table: Table,
    case: Case,
    labels: Labels,
    given: dict[str, Any],
    setting: Setting,
    decisions: Decisions | None,
) -> None:
    """Say what was understood before the work starts."""
    from appellate.docket import free_separator

    n, l = case.sets.shape
    sizes = case.sets.matrix.sum(axis=1)
    say(f"{table.source}: {len(table)} rows, {len(table.columns)} columns")
    say(
        f"samples     {n}, {l} labels ({name_some(case.sets.class_names.tolist(), 6)}), "
        f"{sizes.mean():.2f} candidates each, {int((sizes == 1).sum())} with one"
    )
    where = labels.candidates or ", ".join(labels.annotators or labels.long)
    say(f"labels      {where}" + ("" if labels.candidates else f" (rule {labels.rule})"))
    glue = free_separator(case.sets.class_names.tolist())
    if glue != "|":
        say(f"            a label contains '|': sets of labels are written with {glue!r} between")
    if case.embeddings is not None:
        say(f"features    {case.embeddings.shape[1]} numbers from '{given['embeddings']}'")
    else:
        texts = [name for name, column in case.features.items() if column.dtype == object]
        numbers = [name for name in case.features if name not in texts]
        if numbers:
            say(f"features    {len(numbers)} numbers: {name_some(numbers, 6)}")
        if texts:
            head = " " * 8 if numbers else "features"
            say(f"{head}    {len(texts)} categories, one-hot encoded: {name_some(texts, 6)}")
    for name, reason in list(case.ignored.items())[:8]:
        say(f"ignored     {name_some([name])}: {reason}")
    if len(case.ignored) > 8:
        say(f"            and {len(case.ignored) - 8} more columns")
    say(f"method      {setting.base} and its partner (PLCP). {setting.why}")
    if given["cost"]:
        ordered = f", in the order {name_some(given['order'], 8)}" if given["order"] else ""
        say(f"cost        {given['cost']}: near misses count by it{ordered}")
    if decisions is not None:
        excluded = int((decisions.labels < 0).sum())
        said = f"decisions   {len(decisions.rows)} rows reviewed, {excluded} of them excluded"
        say(said + (f"; {decisions.unknown} of unknown ids ignored" if decisions.unknown else ""))


def suggested(
    heard: Hearing, neighbors: NDArray[Any], most: int, decisions: Decisions | None
) -> NDArray[np.intp]:
    """Return the rows to review next, at most so many."""
    from appellate.cli import hearing

    reviewed: Any = [] if decisions is None else decisions.rows
    return hearing.suggest(heard.docket, neighbors, most, reviewed)


def write_tables(
    stage: Path,
    table: Table,
    case: Case,
    heard: Hearing,
    decisions: Decisions | None,
    chosen: NDArray[np.intp],
) -> list[str]:
    """Write the rectified table, the docket and the suggestions; return the added columns."""
    from appellate.cli import outputs

    docket = {name: column.tolist() for name, column in heard.docket.columns().items()}
    labels = list(docket["appeal"])
    confidence: list[Any] = [round(c, 6) for c in docket["appeal_confidence"]]
    if decisions is not None:
        docket["review"] = [""] * len(case)
        for i, (kind, name) in decisions.by_row().items():
            docket["review"][i] = kind
            docket["outcome"][i] = "reviewed" if name else "excluded"
            labels[i], confidence[i] = (name, 1.0) if name else (None, None)
            if not name:
                for name in docket.keys() & _HEARD:
                    docket[name][i] = None
    owner = case.owner.tolist()
    added = {
        "label": [labels[i] for i in owner],
        "confidence": [confidence[i] for i in owner],
        "outcome": [docket["outcome"][i] for i in owner],
    }
    names = outputs.write_rectified(table, added, stage / "rectified.csv")
    outputs.write_columns(docket, stage / "docket.csv")
    outputs.write_parquet(docket, stage / "docket.parquet")
    if len(chosen):
        rows = chosen.tolist()
        part = {name: [column[i] for i in rows] for name, column in docket.items()}
        outputs.write_columns({"rank": range(1, len(rows) + 1), **part}, stage / "suggested.csv")
    return names


def write_page(
    path: Path,
    folder: Path,
    data: str,
    table: Table,
    case: Case,
    heard: Hearing,
    decisions: Decisions | None,
    neighbors: NDArray[Any],
    chosen: NDArray[np.intp],
    given: dict[str, Any],
) -> None:
    """Write the docket page, with pictures, texts, neighbours and earlier decisions."""
    from appellate.cli.cells import as_text

    options: dict[str, Any] = {}
    if given["text"]:
        options["texts"] = [as_text(c) for c in case.per_sample(table.columns[given["text"]])]
    if given["image"]:
        cells = [as_text(c) for c in case.per_sample(table.columns[given["image"]])]
        options["images"] = [_relative(cell, _home(data), folder) for cell in cells]
    if decisions is not None:
        options["decisions"] = decisions.by_row()
    name = "standard input" if data == "-" else Path(data).name
    docket = heard.docket if case.named else replace(heard.docket, ids=None)
    docket.to_html(
        path,
        title=name,
        neighbors=neighbors,
        suggested=chosen,
        table=f"sha256:{table.sha256[:32]}",
        **options,
    )


def picture_notes(data: str, table: Table, case: Case, column: str) -> list[str]:
    """Say of how many samples the page will show no picture."""
    from appellate.cli.cells import as_text

    cells = [as_text(c) for c in case.per_sample(table.columns[column])]
    files = [cell for cell in cells if cell and _is_file_name(cell)]
    gone = [cell for cell in files if not os.path.isfile(_home(data) / cell)]
    away = [cell for cell in cells if cell.lower().startswith(("http://", "https://"))]
    where, notes = f"{table.source}, column '{column}' (--image)", []
    if gone:
        notes.append(
            f"{where}: {len(gone)} of {len(files)} picture files do not exist, e.g. "
            f"{name_some(gone[:1])}. Paths are relative to the table."
        )
    if away:
        notes.append(
            f"{where}: {len(away)} pictures are addresses on the web; the page opens no "
            "connection and shows none of them. Name local files instead."
        )
    return notes


def _home(data: str) -> Path:
    """Return the folder that paths in the table are relative to."""
    return Path() if data == "-" else Path(data).parent


def _is_file_name(cell: str) -> bool:
    return "://" not in cell and not cell.startswith("data:")


def _relative(cell: str, home: Path, folder: Path) -> str:
    """Rewrite a picture's path, relative to the table, as relative to the page."""
    if not cell or not _is_file_name(cell):
        return cell
    return Path(os.path.relpath((home / cell).absolute(), folder.absolute())).as_posix()


def write_model(path: Path, table: Table, case: Case, setting: Setting, heard: Hearing) -> None:
    """Write the pipeline with what `predict` needs to know of the columns."""
    from appellate.costs import describe_cost
    from appellate.io import save_model

    kinds = {n: "category" if v.dtype == object else "number" for n, v in case.features.items()}
    kinds |= dict.fromkeys(case.booleans, "boolean")
    meta = {
        "columns": None if case.embeddings is not None else kinds,
        "n_embeddings": None if case.embeddings is None else case.embeddings.shape[1],
        "base": setting.base,
        "cost": describe_cost(setting.cost) or None,
        "data_sha256": table.sha256,
    }
    save_model(heard.pipeline, path, meta=meta)


def run_document(
    argv: list[str],
    table: Table,
    case: Case,
    setting: Setting,
    heard: Hearing,
    before: Hearing | None,
    decisions: Decisions | None,
    timings: dict[str, float],
    given: dict[str, Any],
) -> dict[str, Any]:
    """Collect what ``run.json`` holds: how the run was made and what came out."""
    import platform
    from importlib.metadata import version

    docket = heard.docket
    out = _mask(decisions.rows[decisions.labels < 0] if decisions else [], len(case))
    others = ~_mask(decisions.rows if decisions else [], len(case))
    overturned = int((docket.overturned & others).sum())
    upheld = int(others.sum()) - overturned
    document: dict[str, Any] = {
        "command": ["appellate", *argv[1:]],
        "versions": {"python": platform.python_version()} | {n: version(n) for n in _VERSIONS},
        "settings": {
            "base": setting.base,
            "kernel": setting.kernel,
            "seed": setting.seed,
            "cost": given["cost"],
            "params": setting.params,
            "why": setting.why,
            "options": {
                k: v if isinstance(v, (int, str)) else _plain(v) for k, v in given.items()
            },
            "model": repr(heard.pipeline[-1]),
        },
        "data": {
            "source": table.source.strip("'"),
            "sha256": table.sha256,
            "rows": len(table),
            "samples": len(case),
            "labels": len(case.sets.class_names),
            "candidates_per_sample": round(float(case.sets.matrix.sum(axis=1).mean()), 4),
        },
        "result": {"upheld": upheld, "overturned": overturned},
        "timings": {name: round(seconds, 3) for name, seconds in timings.items()},
    }
    if docket.truth is not None:
        document["result"]["accuracy"] = _accuracies(case, heard, ~out)
    if decisions is not None and before is not None:
        moved = (docket.appeal != before.docket.appeal) & others
        document["result"]["reviewed"] = len(decisions.rows) - int(out.sum())
        document["result"]["excluded"] = int(out.sum())
        document["result"]["moved_by_decisions"] = int(moved.sum())
    return document


def _plain(value: Any) -> Any:
    return (
        None
        if value is None
        else [str(v) for v in value]
        if isinstance(value, tuple)
        else str(value)
    )


def _mask(rows: Any, n: int) -> NDArray[np.bool_]:
    import numpy as np

    out = np.zeros(n, dtype=bool)
    out[rows] = True
    return out


def _accuracies(case: Case, heard: Hearing, kept: NDArray[np.bool_]) -> dict[str, Any]:
    """Score trivial answers, verdict and appeal on the kept samples whose truth is known."""
    import numpy as np

    docket, names = heard.docket, case.sets.class_names
    truth = np.asarray(docket.truth, dtype=object)
    known = np.array([t is not None for t in truth]) & kept
    count = max(int(known.sum()), 1)
    inside = names[None, :].astype(object) == truth[:, None]
    share = (case.sets.matrix & inside).sum(axis=1) / case.sets.matrix.sum(axis=1)

    def right(labels: Any) -> float:
        return round(float((np.asarray(labels, dtype=object) == truth)[known].sum() / count), 4)

    scores = {
        "samples_with_truth": int(known.sum()),
        "truth_among_candidates": round(float((share > 0)[known].sum() / count), 4),
        "any_candidate": round(float(share[known].sum() / count), 4),
    }
    if case.votes is not None:
        scores["majority_vote"] = right(case.votes)
    return scores | {
        "verdict": right(names[docket.verdict]),
        "appeal": right(names[docket.appeal]),
    }


def say_result(
    say: Say, folder: Path, document: dict[str, Any], chosen: NDArray[np.intp], case: Case
) -> None:
    """Say what came out and where it is."""
    result, settings = document["result"], document["settings"]
    if settings["params"] is not None:
        chosen_by = settings["why"].split("; ")[-1]
        values = ", ".join(f"{name} {value}" for name, value in settings["params"].items())
        say(f"selected    {settings['base']}, {values}; {chosen_by}")
    parts = {"decided": result.get("reviewed"), "excluded": result.get("excluded")}
    counts = " and ".join(f"{count} {what}" for what, count in parts.items() if count)
    review = f", {counts} by review" if counts else ""
    say(f"verdicts    {result['overturned']} overturned, {result['upheld']} upheld{review}")
    if "moved_by_decisions" in result:
        say(
            f"decisions   {result['moved_by_decisions']} other labels moved because of the "
            f"{result['reviewed'] + result['excluded']} reviewed rows"
        )
    for name, score in result.get("accuracy", {}).items():
        if isinstance(score, float):
            say(f"accuracy    {name.replace('_', ' ')}: {score:.3f}")
    scores = result.get("accuracy", {})
    if scores and scores["appeal"] < scores["verdict"]:
        say("            the appeals did not help here: the base alone was better")
    if len(chosen):
        say(f"review      {name_some([case.ids[i] for i in chosen.tolist()], 10)}")
    written = [name for name in NAMES if (folder / name).exists()]
    say(f"written     '{folder}': {', '.join(written)}")
    say(f"next        open '{folder / 'docket.html'}', or run: appellate serve {folder}")
