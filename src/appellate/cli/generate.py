"""``appellate generate``: hide known labels in candidate sets and write a file."""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import compress
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import click

from appellate.cli.errors import UserError, in_options
from appellate.cli.files import check_folder, staged

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from appellate.datasets.plans import Strategy

_EPILOG = """\b
Examples:
  appellate generate --from digits --flip 0.3 --out digits.csv
  appellate generate --from digits --strategy noisy --eta 0.1 --out digits.npz
  appellate generate --from my.csv --truth species --strategy hierarchical \\
      --group cat,dog --group car,bus --out ambiguous.csv
"""

_OPTIONS = {
    "flip_probability": "--flip",
    "n_false": "--n-false",
    "epsilon": "--epsilon",
    "eta": "--eta",
    "groups": "--group",
    "min_candidates": "--min-candidates",
}
_BUILT_IN = ("digits", "iris", "wine", "breast_cancer")
_STRATEGIES = (
    "uniform",
    "fixed",
    "cooccurring",
    "pairwise",
    "instance_dependent",
    "hierarchical",
    "noisy",
)


@dataclass(frozen=True)
class Source:
    """Features and true labels to start from.

    Attributes
    ----------
    columns : dict of str to list of str
        All columns of the table as they are to be written, but for the labels.
    X : ndarray, shape (n, q)
        The features.
    y : ndarray, shape (n,)
        The true labels.
    truth : str
        Title of the column of true labels.
    """

    columns: dict[str, list[str]]
    X: NDArray[np.float64]
    y: NDArray[Any]
    truth: str


@click.command(epilog=_EPILOG, short_help="Hide known labels in candidate sets.")
@click.option(
    "--from",
    "source",
    required=True,
    metavar="NAME|FILE",
    help=f"One of {', '.join(_BUILT_IN)}, or a CSV file.",
)
@click.option(
    "--truth",
    metavar="COL",
    default="truth",
    show_default=True,
    help="True labels in the CSV file.",
)
@click.option(
    "--out",
    "target",
    required=True,
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="What to write: .csv with columns 'candidates' and truth, or .npz.",
)
@click.option(
    "--strategy",
    type=click.Choice(_STRATEGIES),
    metavar="NAME",
    default="uniform",
    show_default=True,
    help=f"How false labels are chosen: {', '.join(_STRATEGIES)}.",
)
@click.option(
    "--flip",
    "flip_probability",
    type=float,
    metavar="Q",
    help="Probability with which a false label joins (all but fixed and cooccurring).",
)
@click.option("--n-false", type=int, metavar="R", help="False labels a row (fixed).")
@click.option("--epsilon", type=float, metavar="E", help="Chance of the partner (cooccurring).")
@click.option("--eta", type=float, metavar="P", help="Chance that the truth is left out (noisy).")
@click.option(
    "--group",
    "groups",
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
    "--seed",
    type=click.IntRange(0, 2**32 - 1),
    metavar="N",
    default=0,
    show_default=True,
    help="Seed of the candidate sets.",
)
@click.option("--separator", default="|", show_default=True, help="Between candidates in a cell.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON, nothing else.")
def generate(
    source: str,
    truth: str,
    target: Path,
    strategy: str,
    groups: tuple[str, ...],
    min_candidates: int,
    seed: int,
    separator: str,
    as_json: bool,
    **options: Any,
) -> None:
    """Hide known labels in candidate sets and write features, candidates and truth.

    What was realised (mean size, singletons, truth coverage) is printed.
    """
    if target.suffix not in (".csv", ".npz"):
        raise UserError(f"cannot write '{target}': name a .csv or .npz file with --out.")
    check_folder(target.parent, [target.name])
    from appellate.datasets.generators import make_partial_labels

    _check_used(strategy, options | {"groups": groups or None})
    try:
        start = _built_in(source) if source in _BUILT_IN else _read(Path(source), truth)
        candidates, summary = make_partial_labels(
            start.y,
            strategy=cast("Strategy", strategy),
            min_candidates=min_candidates,
            groups=_groups(groups),
            X=start.X if strategy == "instance_dependent" else None,
            return_summary=True,
            random_state=seed,
            **options,
        )
        cells = _cells(candidates, start.y, separator)
    except (OSError, TypeError, ValueError) as error:
        raise UserError(_in_options(str(error))) from error
    with staged(target.parent) as stage:
        if target.suffix == ".csv":
            _write_csv(stage / target.name, start, cells)
        else:
            _write_npz(stage / target.name, start, candidates)
    if as_json:
        setting = {"from": source, "strategy": strategy, "seed": seed}
        document = setting | {"file": str(target), "summary": summary.to_dict()}
        click.echo(json.dumps(document, indent=2))
        return
    click.echo(f"wrote {target}: {summary}.")
    if target.suffix == ".csv":
        click.echo(f"Look at it with: appellate check '{target}'")


def _check_used(strategy: str, options: dict[str, Any]) -> None:
    """Refuse an option that the strategy does not use."""
    from appellate.datasets.plans import OPTIONS

    own = [_OPTIONS[name] for name in OPTIONS[strategy] if name in _OPTIONS]
    for name, value in options.items():
        if value is not None and _OPTIONS[name] not in own:
            raise UserError(
                f"--strategy {strategy} does not use {_OPTIONS[name]}; it uses {', '.join(own)}."
            )


def _in_options(message: str) -> str:
    """Name the options of the command line where the generator names its parameters."""
    message = re.sub(r"groups=\{.*\}", "--group cat,cow --group car", message)
    message = re.sub(r"strategy='(\w+)'", r"--strategy \1", message)
    words = {f"{name}=": f"{option} " for name, option in _OPTIONS.items()}
    return in_options(
        message, words | {"needs groups": "needs --group", "groups names": "--group names"}
    )


def _built_in(name: str) -> Source:
    import sklearn.datasets

    data = getattr(sklearn.datasets, f"load_{name}")()
    y = data.target if name == "digits" else data.target_names[data.target]
    titles = [str(title).replace(" ", "_") for title in data.feature_names]
    columns = {t: [repr(v) for v in data.data[:, j].tolist()] for j, t in enumerate(titles)}
    return Source(columns, data.data, y, "truth")


def _read(path: Path, truth: str) -> Source:
    """Read a CSV file; columns of text are kept, columns of numbers are the features."""
    import numpy as np

    from appellate.datasets.textfiles import (
        check_titles,
        is_number,
        read_columns,
        read_header,
        to_numbers,
    )

    if not path.suffix:
        known = ", ".join(_BUILT_IN)
        raise ValueError(f"'{path}' is neither a CSV file nor one of {known}.")
    header = read_header(path)
    columns = read_columns(path, header)
    check_titles([truth], header.titles, path.name)
    if "candidates" in columns:
        raise ValueError(f"'{path}' has a column 'candidates' already. Rename or remove it.")
    y = np.array([cell.strip() for cell in columns.pop(truth)])
    numeric = [title for title, cells in columns.items() if all(map(is_number, cells))]
    if not numeric:
        raise ValueError(f"'{path}' has no column of numbers beside '{truth}'.")
    X = np.stack([to_numbers(columns[t], t, path.name) for t in numeric], axis=1)
    return Source(columns, X, y, truth)


def _groups(groups: Sequence[str]) -> dict[Any, int] | None:
    if not groups:
        return None
    members = [(name.strip(), i) for i, group in enumerate(groups) for name in group.split(",")]
    twice = {name for name, _ in members if [m for m, _ in members].count(name) > 1}
    if twice:
        raise ValueError(f"class {', '.join(sorted(twice))} is in several groups.")
    return {key: i for name, i in members for key in _spellings(name)}


def _spellings(name: str) -> list[Any]:
    """Return a class name as typed and, if it is one, as a whole number."""
    return [name, int(name)] if name.lstrip("-").isdecimal() else [name]


def _cells(candidates: NDArray[np.bool_], y: NDArray[Any], separator: str) -> list[str]:
    import numpy as np

    names = [str(name) for name in np.unique(y)]
    if not separator or any(separator in name for name in names):
        name = next((name for name in names if separator in name), "")
        raise ValueError(
            f"class {name!r} contains the separator {separator!r}. Choose another one with "
            "--separator."
        )
    return [separator.join(compress(names, row)) for row in candidates.tolist()]


def _write_csv(path: Path, start: Source, cells: list[str]) -> None:
    columns = start.columns | {"candidates": cells, start.truth: [str(v) for v in start.y]}
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(columns)
        writer.writerows(zip(*columns.values(), strict=True))


def _write_npz(path: Path, start: Source, candidates: NDArray[np.bool_]) -> None:
    import numpy as np

    names, codes = np.unique(start.y, return_inverse=True)
    np.savez_compressed(
        path, X=start.X, candidates=candidates, y_true=codes, class_names=names.astype(str)
    )
