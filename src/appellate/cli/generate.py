"""``appellate generate``: hide known labels in candidate sets, or in answers of a crowd."""

from __future__ import annotations

import json
import shlex
from collections.abc import Sequence
from itertools import compress
from pathlib import Path
from typing import Any

import click

from appellate.cli._options import (
    READING,
    json_option,
    out_option,
    random_state_option,
    table_options,
)
from appellate.cli._terminal import UserError, user_errors

_EPILOG = """\b
Examples:
  appellate generate --from digits --flip 0.3 --out digits.csv
  appellate generate --from digits --strategy noisy --eta 0.1 --out digits.npz
  appellate generate --from my.csv --truth species --strategy hierarchical \\
      --groups cat,dog --groups car,bus --out ambiguous.csv
  appellate generate --from digits --answers 3 --spammers 0.3 --out crowd.csv
"""

_ARRAYS = ["X", "candidates", "y_true", "class_names"]
_CROWD = ("people", "accuracy", "experts", "spammers", "confusion", "shared_errors", "layout")
_PEOPLE = 30
_BUILT_IN = ("digits", "iris", "wine", "breast_cancer")


@click.command(epilog=_EPILOG, short_help="Hide known labels in candidate sets or answers.")
@click.option(
    "--from",
    "source",
    required=True,
    metavar="NAME|FILE",
    help=f"One of {', '.join(_BUILT_IN)}, or a table.",
)
@table_options("truth", "features", "ignore", *READING)
@out_option(
    "What to write: a table (.csv, .tsv, .parquet, .jsonl, .json) with a column 'candidates' or "
    "with answers, or arrays (.npz).",
    required=True,
    metavar="FILE",
)
@click.option(
    "--strategy",
    metavar="NAME",
    default="uniform",
    show_default=True,
    help="How false labels are chosen: uniform, fixed, cooccurring, pairwise, "
    "instance_dependent, hierarchical, noisy, set_first.",
)
@click.option(
    "--flip-probability",
    "--flip",
    type=float,
    metavar="Q",
    help="Probability with which a false label joins (all but fixed and cooccurring).",
)
@click.option("--n-false", type=int, metavar="R", help="False labels a row (fixed).")
@click.option("--epsilon", type=float, metavar="E", help="Chance of the partner (cooccurring).")
@click.option("--eta", type=float, metavar="P", help="Chance that the truth is left out (noisy).")
@click.option("--bag-size", type=int, metavar="N", help="Rows that share a set (set_first).")
@click.option("--n-distractors", type=int, metavar="N", help="Further labels a bag (set_first).")
@click.option(
    "--groups",
    multiple=True,
    metavar="A,B,...",
    help="Classes of one super-class (hierarchical); several times.",
)
@click.option(
    "--min-candidates",
    type=int,
    metavar="N",
    default=1,
    show_default=True,
    help="Fewest candidates of a row; 2 forbids sets of one.",
)
@click.option(
    "--answers", type=int, metavar="N", help="Instead of sets: answers of people to each row."
)
@click.option("--people", type=int, metavar="P", help="People in the crowd; 30 by default.")
@click.option("--accuracy", type=float, metavar="A", help="Their mean accuracy; 0.7 by default.")
@click.option("--experts", type=float, metavar="S", help="Share of people right in 95 of 100.")
@click.option("--spammers", type=float, metavar="S", help="Share of people who do not look.")
@click.option("--confusion", type=float, metavar="S", help="Share of errors on a look-alike.")
@click.option("--shared-errors", type=float, metavar="S", help="Share of rows hard for all.")
@click.option(
    "--layout",
    type=click.Choice(["wide", "long"]),
    help="One column a person (wide, by default), or one row an answer.",
)
@random_state_option
@click.option("--separator", default="|", show_default=True, help="Between candidates in a cell.")
@json_option
def generate(
    source: str,
    out: Path,
    strategy: Any,
    groups: tuple[str, ...],
    min_candidates: int,
    random_state: int,
    separator: str,
    as_json: bool,
    truth: str | None,
    features: Any,
    ignore: Any,
    answers: int | None,
    **options: Any,
) -> None:
    """Hide known labels in candidate sets and write features, candidates and truth.

    With --answers they are hidden in what a crowd says of them. What was realised (mean size,
    singletons, truth coverage; accuracy of the answers) is printed.
    """
    from appellate._files import check_writable
    from appellate.datasets.generators import make_partial_labels
    from appellate.tables import check_ending, find_roles, read_labels, read_table, write_table

    with user_errors():
        arrays = out.suffix.lower() == ".npz"
        reading = {name: options.pop(name) for name in READING}
        crowd = {name: value for name in _CROWD if (value := options.pop(name)) is not None}
        _refuse_mixture(
            answers,
            crowd,
            {"strategy": strategy, "groups": groups, "min_candidates": min_candidates, **options},
            arrays,
        )
        if not arrays:
            check_ending(out)
        check_writable(out)
        given = _built_in(source) if source in _BUILT_IN else source
        table = read_table(given, **reading)
        name = table.find([truth or "truth"], "truth")[0]
        layout = crowd.pop("layout", "wide")
        added = ["candidates"]
        if answers is not None:
            count = crowd.get("people", _PEOPLE)
            added = ["item", "worker", "label"]
            if layout == "wide":
                added = [f"worker_{j + 1}" for j in range(count)]
        _refuse_to_replace(out, source, [*table.names, *added], arrays)
        taken = next((name for name in added if name in table.names), None)
        if taken is not None:
            raise ValueError(f"{table.source} has a column {taken!r} already. Rename it.")
        others = {"features": features, "ignore": ignore, "id": False, "truth": False}
        roles = find_roles(table, candidates=name, separator="", **others)
        read = read_labels(table, roles)
        _refuse_gaps(read)
        y = read.class_names[read.labels]
        if answers is not None:
            told = _write_crowd(out, table, y, added, answers, crowd, random_state)
            _tell_crowd(out, source, random_state, told, as_json)
            return
        if strategy == "instance_dependent":
            options["X"] = _encoded(table, roles)
        sets, summary = make_partial_labels(
            y,
            strategy=strategy,
            min_candidates=min_candidates,
            groups=_read_groups(groups),
            classes=read.class_names,
            return_summary=True,
            random_state=random_state,
            **options,
        )
        if arrays:
            _write_npz(out, table, roles, sets, read)
        else:
            cells = _cells(sets, read.class_names.tolist(), separator)
            write_table(table, out, added={"candidates": cells})
    if as_json:
        setting = {"from": source, "strategy": strategy, "random_state": random_state}
        document = setting | {"file": str(out), "summary": summary.to_dict()}
        click.echo(json.dumps(document, indent=2))
        return
    click.echo(f"wrote {out}: {summary}.")
    if not arrays:
        click.echo(f"Look at it with: appellate check {shlex.quote(str(out))}")


def _refuse_mixture(
    answers: int | None, crowd: dict[str, Any], sets: dict[str, Any], arrays: bool
) -> None:
    """Say which options of crowds and of sets do not go together."""
    if answers is None:
        if crowd:
            raise UserError(
                f"--{next(iter(crowd)).replace('_', '-')} is for crowds; add --answers."
            )
        return
    sets = {name: value for name, value in sets.items() if value not in (None, (), "uniform", 1)}
    if sets:
        raise UserError(
            f"--{next(iter(sets)).replace('_', '-')} is for sets; leave out --answers."
        )
    if arrays:
        raise UserError("answers are written as a table: .csv, .tsv, .parquet, .jsonl or .json.")


def _write_crowd(
    out: Path, table: Any, y: Any, names: list[str], n: int, crowd: dict[str, Any], seed: int
) -> dict[str, Any]:
    """Write the table with a column a person, or once for every answer; say how good they are."""
    import numpy as np

    from appellate.datasets import make_crowd
    from appellate.tables import write_table

    people = crowd.pop("people", _PEOPLE)
    made = make_crowd(y, n_people=people, n_answers=n, random_state=seed, **crowd)
    said, classes = made.answers, made.answers.class_names
    labels = classes[said.labels]
    if names[0] == "item":
        items = (said.rows + 1).tolist()
        workers = [f"worker_{j + 1}" for j in said.people]
        long = zip(names, (items, workers, labels.tolist()), strict=True)
        write_table(table.data.take(said.rows), out, added=dict(long))
    else:
        given = np.full((len(y), people), None, dtype=object)
        given[said.rows, said.people] = labels
        write_table(table, out, added=dict(zip(names, given.T.tolist(), strict=True)))
    kinds, counts = np.unique(made.kind.astype(str), return_counts=True)
    return {
        "rows": len(y),
        "answers": len(labels),
        "right": float(np.mean(labels == y[said.rows])),
        "people": dict(zip(kinds.tolist(), counts.tolist(), strict=True)),
    }


def _tell_crowd(out: Path, source: str, seed: int, summary: dict[str, Any], as_json: bool) -> None:
    if as_json:
        document = {"from": source, "random_state": seed, "file": str(out), "summary": summary}
        click.echo(json.dumps(document, indent=2))
        return
    who = ", ".join(
        f"{count} {kind}{'s' if count > 1 else ''}" for kind, count in summary["people"].items()
    )
    click.echo(
        f"wrote {out}: {summary['answers']} answers to {summary['rows']} rows by {who}; "
        f"{summary['right']:.1%} of the answers are right."
    )
    click.echo(f"Look at it with: appellate check {shlex.quote(str(out))}")


def _built_in(name: str) -> dict[str, Any]:
    import sklearn.datasets

    data = getattr(sklearn.datasets, f"load_{name}")()
    y = data.target if name == "digits" else data.target_names[data.target]
    titles = [str(title).replace(" ", "_") for title in data.feature_names]
    return dict(zip(titles, data.data.T, strict=True)) | {"truth": y}


def _refuse_to_replace(out: Path, source: str, names: list[str], arrays: bool) -> None:
    """Replace an earlier result only: a file with the very columns that would be written."""
    import numpy as np

    from appellate.tables import TableError, read_table

    if not out.exists():
        return
    if Path(source).exists() and out.samefile(source):
        raise UserError(f"'{out}' is the table that is read. Name another file with --out.")
    try:
        if arrays:
            with np.load(out) as file:
                own = [*file] == _ARRAYS
        else:
            own = read_table(out).names == names
    except (TableError, OSError, ValueError):
        own = False
    if not own:
        raise UserError(
            f"'{out}' is there already and is no earlier result of this. Remove it, or name "
            "another file with --out."
        )


def _refuse_gaps(read: Any) -> None:
    import numpy as np

    from appellate.tables.cells import name_rows

    empty = np.flatnonzero(np.bincount(read.rows, minlength=read.n_rows) == 0)
    if len(empty):
        raise ValueError(f"no truth in {name_rows(empty)}. Fill the cells or drop the rows.")


def _encoded(table: Any, roles: Any) -> Any:
    from appellate.tables import features, make_encoder

    frame = features(table, roles)
    return make_encoder(frame, text=roles.text).fit_transform(frame)


def _read_groups(groups: Sequence[str]) -> dict[str, int] | None:
    if not groups:
        return None
    members = [(name.strip(), i) for i, group in enumerate(groups) for name in group.split(",")]
    twice = {name for name, _ in members if [m for m, _ in members].count(name) > 1}
    if twice:
        raise ValueError(f"class {', '.join(sorted(twice))} is in several groups.")
    return dict(members)


def _cells(sets: Any, names: list[str], separator: str) -> list[str]:
    if not separator or any(separator in name for name in names):
        name = next((name for name in names if separator in name), "")
        raise ValueError(f"separator={separator!r} is part of class {name!r}. Choose another one.")
    return [separator.join(compress(names, row)) for row in sets.tolist()]


def _write_npz(out: Path, table: Any, roles: Any, sets: Any, read: Any) -> None:
    import numpy as np

    from appellate._files import whole_file
    from appellate.tables import features

    frame = features(table, roles)
    if any(dtype.kind != "f" for dtype in frame.dtypes):
        raise ValueError("arrays (.npz) hold numbers only. Name such features, or write a table.")
    arrays = (frame.to_numpy(), sets, read.labels, read.class_names)
    with whole_file(out) as stage, stage.open("wb") as file:
        np.savez_compressed(file, **dict(zip(_ARRAYS, arrays, strict=True)))
