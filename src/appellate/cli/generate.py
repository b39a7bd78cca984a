"""``appellate generate``: hide known labels in candidate sets, or in answers of a crowd."""

from __future__ import annotations

import json
import shlex
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from itertools import compress
from pathlib import Path
from typing import Any

import click

from appellate.cli._options import (
    READING,
    RenamedOption,
    json_option,
    out_option,
    random_state_option,
    refuse_to_replace,
    table_options,
)
from appellate.cli._terminal import UserError, as_typed, user_errors

_EPILOG = """\b
Examples:
  appellate generate --from digits --flip 0.3 --out digits.csv
  appellate generate --from digits --strategy noisy --eta 0.1 --out digits.npz
  appellate generate --from my.csv --truth species --strategy hierarchical \\
      --super-class cat,dog --super-class car,bus --out ambiguous.csv
  appellate generate --from digits --answers 3 --spammers 0.3 --out crowd.csv
"""

_ARRAYS = ["X", "candidates", "y_true", "class_names"]
_CROWD = ("n_people", "accuracy", "experts", "spammers", "confusion", "shared_errors", "layout")
_BUILT_IN = ("digits", "iris", "wine", "breast_cancer")
_number = partial(click.option, type=int, metavar="N")
_share = partial(click.option, type=float, metavar="P")


@click.command(
    epilog=_EPILOG, short_help="Simulate candidate sets or annotators from known labels."
)
@click.option(
    "--from",
    "source",
    required=True,
    metavar="NAME|FILE",
    help=f"Table with known labels: {', '.join(_BUILT_IN)}, or a file.",
)
@click.option(
    "--truth",
    metavar="COL",
    default="truth",
    show_default=True,
    help="Column with the true labels.",
)
@table_options("features", "ignore", *READING)
@out_option(
    "Output file: a table (.csv, .tsv, .parquet, .jsonl, .json) with a column 'candidates' or "
    "with answers, or arrays (.npz).",
    required=True,
    metavar="FILE",
)
@click.option(
    "--strategy",
    metavar="NAME",
    default="uniform",
    show_default=True,
    help="How wrong labels are chosen: uniform, fixed, cooccurring, pairwise, "
    "instance_dependent, hierarchical, noisy, set_first.",
)
@_share(
    "--flip-probability",
    "--flip",
    help="Probability that a wrong label is added; not for fixed and cooccurring (default: 0.3).",
)
@_number("--n-false", help="Number of wrong labels per row, for fixed (default: 1).")
@_share(
    "--epsilon",
    help="Probability that the wrong label is the next class, for cooccurring (default: 0.5).",
)
@_share("--eta", help="Probability that the true label is left out, for noisy (default: 0.1).")
@_number(
    "--bag-size", help="Number of rows that share a candidate set, for set_first (default: 4)."
)
@_number(
    "--n-distractors",
    help="Number of labels added to each shared set, for set_first (default: 0).",
)
@click.option(
    "--super-class",
    "groups",
    cls=RenamedOption,
    former="--groups",
    multiple=True,
    metavar="A,B",
    help="Labels of one super-class, for hierarchical; repeatable (default: none).",
)
@_number(
    "--min-candidates", default=1, show_default=True, help="Smallest number of candidates per row."
)
@_number(
    "--answers",
    "n_answers",
    help="Number of answers per row, to simulate annotators (default: none; candidate sets).",
)
@_number("--people", "n_people", help="Number of annotators (default: 30).")
@_share("--accuracy", help="Mean accuracy of the annotators (default: 0.7).")
@_share("--experts", help="Share of annotators who are experts, 95% correct (default: 0).")
@_share("--spammers", help="Share of annotators who answer without looking (default: 0).")
@_share("--confusion", help="Share of errors that go to one similar class (default: 0).")
@_share("--shared-errors", help="Share of rows that are hard for all annotators (default: 0).")
@click.option(
    "--layout",
    type=click.Choice(["wide", "long"]),
    help="Table layout: wide, one column per annotator; long, one answer per row (default: wide).",
)
@random_state_option
@click.option(
    "--separator",
    default="|",
    show_default=True,
    help="Character between candidates within a cell.",
)
@json_option
def generate(source: str, out: Path, random_state: int, as_json: bool, **options: Any) -> None:
    """Simulate candidate sets from known labels, to test methods with.

    The output holds the features, the candidates and the true labels. With --answers, the command
    simulates annotators instead. It prints the mean size of the sets, the share of rows with one
    candidate and the share of sets with the true label, or the accuracy of the answers.
    """
    from appellate import tables
    from appellate._files import check_writable
    from appellate.datasets import make_partial_labels
    from appellate.tables.cells import list_rows, name_some

    with user_errors():
        arrays = out.suffix.lower() == ".npz"
        reading = {name: options.pop(name) for name in READING}
        columns = {name: options.pop(name) for name in ("features", "ignore")}
        truth, separator = options.pop("truth"), options.pop("separator")
        groups, answers = options.pop("groups"), options.pop("n_answers")
        crowd = {name: value for name in _CROWD if (value := options.pop(name)) is not None}
        _refuse_mixture(answers, crowd, options | {"groups": groups}, arrays)
        if not arrays:
            tables.check_ending(out)
        check_writable(out)
        known = _built_in(source) if source in _BUILT_IN else source
        table = tables.read_table(known, **reading)
        name = table.find([truth], "truth")[0]
        people, layout = crowd.pop("n_people", 30), crowd.pop("layout", None)
        added = ["candidates"]
        if answers is not None:
            wide = [f"worker_{j + 1}" for j in range(people)]
            added = ["item", "worker", "label"] if layout == "long" else wide
        titles = _ARRAYS if arrays else [*table.names, *added]
        refuse_to_replace(out, [source], titles, titles)
        taken = next((name for name in added if name in table.names), None)
        if taken is not None:
            raise ValueError(f"{table.source} already has a column {taken!r}. Rename it.")
        columns |= {"id": False, "truth": False}
        roles = tables.find_roles(table, candidates=name, separator="", **columns)
        read = tables.read_labels(table, roles)
        empty = [i for i, label in enumerate(read.majority) if label < 0]
        if empty:
            where = list_rows(empty, read.lines)
            raise ValueError(f"No true label in {where}. Add one, or drop the rows.")
        y = read.class_names[read.labels]
        document = {"from": source, "random_state": random_state, "file": str(out)}
        if answers is not None:
            crowd |= {"n_people": people, "n_answers": answers, "random_state": random_state}
            table, cells, summary, said = _ask_crowd(table, y, layout == "long", crowd)
        else:
            document["strategy"] = options["strategy"]
            if options["strategy"] == "instance_dependent":
                frame = tables.features(table, roles)
                options["X"] = tables.make_encoder(frame, text=roles.text).fit_transform(frame)
            options |= {"groups": _read_groups(groups), "classes": read.class_names}
            hidden, realised = make_partial_labels(
                y, random_state=random_state, return_summary=True, **options
            )
            summary, said = realised.to_dict(), str(realised)
            cells = [] if arrays else [_cells(hidden, read.class_names.tolist(), separator)]
        if arrays:
            _write_npz(out, tables.features(table, roles), hidden, read)
        else:
            tables.write_table(table, out, added=dict(zip(added, cells, strict=True)))
    if as_json:
        click.echo(json.dumps(document | {"summary": summary}, indent=2))
        return
    click.echo(f"wrote {out}: {said}.")
    left = [title for title in table.names if title not in (*roles.features, *roles.text, name)]
    if arrays and left:
        click.echo(f"Columns that the arrays do not hold: {name_some(left)}.")
    if not arrays:
        click.echo(f"Look at it with: appellate check {shlex.quote(str(out))}")


def _refuse_mixture(
    answers: int | None, crowd: dict[str, Any], sets: dict[str, Any], arrays: bool
) -> None:
    """Say which options of crowds and of sets do not go together."""
    if answers is not None and arrays:
        raise UserError("--answers needs a table as --out: .csv, .tsv, .parquet, .jsonl or .json.")
    if sets["strategy"] == "hierarchical" and answers is None and not sets["groups"]:
        raise UserError(
            "--strategy hierarchical needs --super-class, once for each super-class: "
            "--super-class cat,dog --super-class car,bus"
        )
    unasked = {"strategy": "uniform", "min_candidates": 1, "groups": ()}
    own = [name for name, value in sets.items() if value != unasked.get(name)]
    wrong = list(crowd) if answers is None else own
    if wrong:
        what = "annotators; add" if answers is None else "candidate sets; leave out"
        raise UserError(as_typed(f"{wrong[0]}= is for {what} n_answers=."))


def _ask_crowd(
    table: Any, y: Any, long: bool, crowd: dict[str, Any]
) -> tuple[Any, list[list[Any]], dict[str, Any], str]:
    """Simulate annotators: the rows to write, the answer columns, and how good they are."""
    import numpy as np

    from appellate.datasets import make_crowd

    made = make_crowd(y, **crowd)
    said = made.answers
    labels = said.class_names[said.labels]
    if long:
        workers = [f"worker_{j + 1}" for j in said.people]
        columns = [(said.rows + 1).tolist(), workers, labels.tolist()]
        table = replace(table, data=table.data.take(said.rows))
    else:
        given = np.full((crowd["n_people"], len(y)), None, dtype=object)
        given[said.people, said.rows] = labels
        columns = given.tolist()
    kinds, counts = np.unique(made.kind.astype(str), return_counts=True)
    people = dict(zip(kinds.tolist(), counts.tolist(), strict=True))
    right = float(np.mean(labels == y[said.rows]))
    who = ", ".join(f"{n} {kind}{'s' if n > 1 else ''}" for kind, n in people.items())
    text = (
        f"{len(labels)} answers to {len(y)} rows by {who}; {right:.1%} of the answers are correct"
    )
    summary = {"rows": len(y), "answers": len(labels), "right": right, "people": people}
    return table, columns, summary, text


def _built_in(name: str) -> dict[str, Any]:
    import sklearn.datasets

    data = getattr(sklearn.datasets, f"load_{name}")()
    y = data.target if name == "digits" else data.target_names[data.target]
    titles = [str(title).replace(" ", "_") for title in data.feature_names]
    return dict(zip(titles, data.data.T, strict=True)) | {"truth": y}


def _read_groups(groups: Sequence[str]) -> dict[str, int] | None:
    if not groups:
        return None
    members = [(name.strip(), i) for i, group in enumerate(groups) for name in group.split(",")]
    twice = {name for name, _ in members if [m for m, _ in members].count(name) > 1}
    if twice:
        raise ValueError(
            f"Class {', '.join(sorted(twice))} is in several --super-class options. Keep it in "
            "one of them."
        )
    return dict(members)


def _cells(sets: Any, names: list[str], separator: str) -> list[str]:
    if not separator or any(separator in name for name in names):
        name = next((name for name in names if separator in name), "")
        raise ValueError(
            f"--separator {separator!r} is part of class {name!r}. Choose another one."
        )
    return [separator.join(compress(names, row)) for row in sets.tolist()]


def _write_npz(out: Path, frame: Any, sets: Any, read: Any) -> None:
    import numpy as np

    from appellate._files import whole_file

    if any(dtype.kind != "f" for dtype in frame.dtypes):
        raise ValueError(
            "Arrays (.npz) hold numbers only. Name number columns with --features, or use .csv."
        )
    arrays = (frame.to_numpy(), sets, read.labels, read.class_names)
    with whole_file(out) as stage, stage.open("wb") as file:
        np.savez_compressed(file, **dict(zip(_ARRAYS, arrays, strict=True)))
