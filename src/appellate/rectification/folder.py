"""The folder of a run: which files it has, what may be written there, and how they are read."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import narwhals.stable.v2 as nw

from appellate._files import check_writable, finish_folder, read_csv
from appellate.rectification.prediction import read_document
from appellate.tables.cells import as_number, restore

#: Files of a run; others in its folder are never touched.
FILES = (
    "rectified.csv", "rectified.parquet", "suggestions", "suggestions.csv", "suggestions.json",
    "suggestions.jsonl", "docket.csv", "docket.parquet", "docket.html", "suggested.csv",
    "annotators.csv", "model", "run.json",
)  # fmt: skip
#: Files and folders of a run that are read again.
READ_AGAIN = {"model": "a folder"} | dict.fromkeys(
    ("rectified.parquet", "docket.parquet", "suggested.csv", "annotators.csv"), "a file"
)


def check_folder(folder: str | os.PathLike[str]) -> None:
    """Refuse a folder that a run cannot or must not be written to, before the work.

    Raises
    ------
    WriteError
        If it cannot be written.
    ValueError
        If it has files of the names that a run writes, but not from a run.
    """
    check_writable(folder)
    target = Path(folder)
    finish_folder(target)
    taken = [name for name in FILES if os.path.lexists(target / name)]
    if taken and read_document(target) is None:
        raise ValueError(
            f"'{folder}' has {', '.join(taken)}, not from a run of appellate, but a run writes "
            "files of these names. Name another folder, or move them away."
        )


def read_own(path: Path) -> Any:
    """Read a CSV file that a run wrote; columns of numbers as numbers."""
    columns: dict[str, list[Any]] = {}
    for name, cells in read_csv(path).items():
        texts = [restore(cell) or None for cell in cells]
        numbers = [None if text is None else as_number(text) for text in texts]
        missing = [text is None for text in texts]
        if [number is None for number in numbers] != missing:
            columns[name] = texts
        elif any(missing) or any(number != int(number) for number in numbers if number):
            columns[name] = numbers
        else:
            columns[name] = [int(number or 0) for number in numbers]
    return nw.from_dict(columns, backend="pandas").to_native()
