"""Files that are either whole or not there."""

from __future__ import annotations

import csv
import os
import shutil
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from appellate.cli.errors import UserError

if TYPE_CHECKING:
    from numpy.typing import NDArray


def check_folder(folder: Path, names: Sequence[str]) -> None:
    """Raise a `UserError` if files of these names cannot be written into a folder.

    Nothing is created, so that a long computation can be refused before it starts.
    """
    try:
        nearest = next(path for path in (folder, *folder.absolute().parents) if path.exists())
        taken = [folder / name for name in names if (folder / name).is_dir()]
    except OSError as error:
        raise _unwritable(folder, error) from error
    if not nearest.is_dir():
        raise UserError(
            f"cannot write into '{folder}': '{nearest}' is a file, not a folder. "
            "Name another folder with --out."
        )
    if not os.access(nearest, os.W_OK | os.X_OK):
        raise UserError(
            f"cannot write into '{folder}': no permission to write in '{nearest}'. "
            "Name another folder with --out."
        )
    if taken:
        raise UserError(
            f"cannot write '{taken[0]}': a folder has that name. "
            "Remove it, or name another folder with --out."
        )


@contextmanager
def staged(folder: Path) -> Iterator[Path]:
    """Lend a temporary folder whose files move into `folder` when all are written.

    Each file is replaced at once. If the block raises, files of the same name stay as they
    were and a folder that did not exist is not left behind.

    Parameters
    ----------
    folder : Path
        Where the files shall be; made if it does not exist.

    Yields
    ------
    Path
        Where to write them.
    """
    made = [path for path in (folder, *folder.parents) if not path.exists()]
    stage = None
    try:
        folder.mkdir(parents=True, exist_ok=True)
        stage = Path(tempfile.mkdtemp(prefix=".appellate-", dir=folder))
        yield stage
        for file in sorted(stage.iterdir()):
            os.replace(file, folder / file.name)
    except OSError as error:
        raise _unwritable(folder, error) from error
    finally:
        if stage is not None:
            shutil.rmtree(stage, ignore_errors=True)
        for path in made:
            with suppress(OSError):
                path.rmdir()  # only where it is empty


def write_csv(columns: Mapping[str, NDArray[Any]], path: Path) -> None:
    """Write columns of equal length as UTF-8 CSV with a header; floats get six digits."""
    plain = [_plain(column.tolist()) for column in columns.values()]
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(columns)
        writer.writerows(zip(*plain, strict=True))


def _plain(values: list[Any]) -> list[Any]:
    return [f"{value:.6g}" if isinstance(value, float) else value for value in values]


def _unwritable(folder: Path, error: OSError) -> UserError:
    reason = error.strerror or str(error)
    return UserError(f"cannot write into '{folder}': {reason}. Name another folder with --out.")
