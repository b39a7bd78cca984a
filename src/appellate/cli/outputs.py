"""The folder of a run: written beside its place, moved there when it is whole."""

from __future__ import annotations

import csv
import json
import os
import secrets
import shutil
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from appellate.cli.cells import as_text, neutralize, safe_texts
from appellate.cli.errors import UserError
from appellate.cli.files import check_folder
from appellate.cli.tables_in import Table

RUN_FILE = "run.json"
NAMES = (
    "rectified.csv",
    "docket.csv",
    "docket.parquet",
    "docket.html",
    "suggested.csv",
    "model",
    RUN_FILE,
)


def check_out(folder: Path, force: bool) -> None:
    """Raise a `UserError` if a run cannot or must not be written to a folder."""
    parent = folder.absolute().parent
    check_folder(folder, [])
    check_folder(parent, [])
    if not folder.exists() or is_run(folder) or not any(folder.iterdir()):
        return
    taken = [name for name in NAMES if os.path.lexists(folder / name)]
    if taken:
        raise UserError(
            f"'{folder}' has {', '.join(taken)}, not from a run of appellate, but a run writes "
            "files of these names. Name another folder with --out, or move them away."
        )
    if not force:
        raise UserError(
            f"'{folder}' has files that are not from a run of appellate. Name another folder with "
            "--out, or add --force to write beside them."
        )


def is_run(folder: Path) -> bool:
    """Tell whether a folder was written by `rectify`."""
    try:
        document = json.loads((folder / RUN_FILE).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return False
    versions = document.get("versions") if isinstance(document, dict) else None
    return isinstance(versions, dict) and "appellate" in versions


@contextmanager
def whole_folder(folder: Path) -> Iterator[Path]:
    """Lend a temporary folder that becomes `folder` when the block ends well.

    In a folder that is there already the files of an earlier run are replaced and all others
    kept; if the block raises, everything stays as it was.
    """
    target = folder.absolute()
    made = [path for path in target.parents if not path.exists()]
    stage = None
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        # Named before it is made: an interrupt in between leaves nothing behind.
        stage = target.parent / f".{target.name}-{secrets.token_hex(4)}"
        stage.mkdir(mode=0o700)
        yield stage
        stage.chmod(0o755)
        if target.exists():
            _swap(stage, target)
        else:
            os.replace(stage, target)
    except OSError as error:
        reason = error.strerror or str(error)
        raise UserError(
            f"cannot write '{folder}': {reason}. Name another folder with --out."
        ) from error
    finally:
        if stage is not None:
            shutil.rmtree(stage, ignore_errors=True)
        for path in made:
            if path.exists() and not any(path.iterdir()):
                path.rmdir()


def _swap(stage: Path, target: Path) -> None:
    """Put the files of a run into a folder, in the place of those of an earlier run.

    Nothing else in the folder is touched, so that a server may go on appending to its file of
    decisions. If anything goes wrong on the way, the earlier files return.
    """
    old = Path(tempfile.mkdtemp(prefix=f".{target.name}-old-", dir=target.parent))
    new = sorted(stage.iterdir())
    try:
        for entry in [target / name for name in NAMES if (target / name).exists()]:
            os.replace(entry, old / entry.name)
        for entry in new:
            os.replace(entry, target / entry.name)
    except BaseException:
        for entry in new:
            if not entry.exists():
                os.replace(target / entry.name, entry)
        for entry in old.iterdir():
            os.replace(entry, target / entry.name)
        raise
    finally:
        shutil.rmtree(old, ignore_errors=True)


def write_rectified(table: Table, added: Mapping[str, Sequence[Any]], path: Path) -> list[str]:
    """Write the user's table with more columns; return the names that these got."""
    with path.open("w", encoding="utf-8", newline="") as file:
        return print_rectified(table, added, file)


def print_rectified(table: Table, added: Mapping[str, Sequence[Any]], file: IO[str]) -> list[str]:
    """Write the table of `write_rectified` to an open file; return the names."""
    names: list[str] = []
    for name in added:
        taken = {*table.columns, *names}
        free = (f"appeal_{name}{suffix}" for suffix in ("", *map(str, range(2, 100))))
        names.append(name if name not in taken else next(c for c in free if c not in taken))
    columns = [safe_texts(column, _separator(column)) for column in table.columns.values()]
    columns += [safe_texts(column) for column in added.values()]
    writer = csv.writer(file, delimiter=table.delimiter, lineterminator="\n")
    writer.writerow([neutralize(name) for name in [*table.columns, *names]])
    writer.writerows(zip(*columns, strict=True))
    return names


def _separator(column: Sequence[Any]) -> str:
    """Return what can stand between the labels of a column of lists, and in none of them."""
    from appellate.docket import free_separator

    lists = (cell for cell in column if isinstance(cell, (list, tuple, set)))
    return free_separator([as_text(label) for cell in lists for label in cell])


def write_columns(columns: Mapping[str, Sequence[Any]], path: Path) -> None:
    """Write columns as CSV: floats with six digits, texts neutralised."""
    cells = [
        [f"{c:.6g}" if isinstance(c, float) else c for c in column] for column in columns.values()
    ]
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(columns)
        writer.writerows(zip(*(safe_texts(column) for column in cells), strict=True))


def write_parquet(columns: Mapping[str, Sequence[Any]], path: Path) -> bool:
    """Write columns as Parquet, texts as they are; False where pyarrow is not installed."""
    from importlib.util import find_spec

    if find_spec("pyarrow") is None:
        return False
    import pyarrow
    import pyarrow.parquet

    plain = {
        name: column
        if len({type(c) for c in column} - {type(None)}) <= 1
        else [as_text(c) for c in column]
        for name, column in columns.items()
    }
    pyarrow.parquet.write_table(pyarrow.table(plain), path)
    return True


def write_json(document: Any, path: Path) -> None:
    """Write a document for people and programs."""
    text = json.dumps(document, indent=2, ensure_ascii=False, allow_nan=False)
    path.write_text(text + "\n", encoding="utf-8")
