"""Features of a table: one column as numbers or categories, and embeddings of a file."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from appellate.cli.cells import as_text, is_empty
from appellate.cli.errors import UserError

if TYPE_CHECKING:
    from numpy.typing import NDArray

MOST_CATEGORIES = 50
FROM_ZERO = "(rows are counted from 0, after the header)"


def read_embeddings(path: Path, n: int) -> NDArray[Any]:
    """Read features from a ``.npy`` file, one row a sample; pickled objects are refused."""
    import numpy as np

    try:
        matrix = np.load(path, mmap_mode="r", allow_pickle=False)
    except FileNotFoundError as error:
        raise UserError(f"there is no file '{path}' (--embeddings).") from error
    except (ValueError, OSError, EOFError) as error:
        raise UserError(
            f"'{path}' cannot be read as a .npy file of numbers: {error}. Write it with "
            "numpy.save."
        ) from error
    if not isinstance(matrix, np.ndarray) or matrix.ndim < 2 or matrix.dtype.kind not in "biuf":
        raise UserError(f"'{path}' must hold a matrix of numbers, one row a sample.")
    if len(matrix) != n:
        raise UserError(f"'{path}' has {len(matrix)} rows, but the table has {n} samples.")
    rows = np.array(matrix.reshape(n, -1), dtype=np.float64)
    if np.isnan(rows).all():
        raise UserError(f"'{path}' holds no number: all its cells are NaN. Compute it again.")
    bad = np.argwhere(np.isinf(rows))
    if len(bad):
        raise UserError(f"'{path}': row {bad[0][0]} holds an infinite number {FROM_ZERO}.")
    return rows


def read_feature(
    cells: list[Any], name: str, source: str, *, forced: bool = False
) -> tuple[NDArray[Any] | None, str]:
    """Read a column as numbers, else as categories; None and a reason if it is neither."""
    import numpy as np

    numbers, wrong = as_numbers(cells)
    filled = [cell for cell in cells if not is_empty(cell)]
    if not filled:
        return None, "empty"
    if numbers is not None:
        infinite = np.flatnonzero(np.isinf(numbers))
        if infinite.size:
            raise UserError(
                f"{source}, column '{name}': row {infinite[0]} holds an infinite number "
                f"{FROM_ZERO}. Correct it or leave the cell empty."
            )
        constant = bool(np.nanmin(numbers) == np.nanmax(numbers))
        return (None, "the same in all rows") if constant else (numbers, "")
    if _is_vector(wrong[1]):
        raise UserError(
            f"{source}, column '{name}': row {wrong[0]} holds a list of numbers {FROM_ZERO}. Save "
            "the lists as a matrix with numpy.save and give --embeddings FILE.npy, or leave the "
            "column out by naming the others with --features."
        )
    texts = [None if is_empty(cell) else as_text(cell) for cell in cells]
    kinds = len(set(texts) - {None})
    if kinds == 1 and None not in texts:
        return None, "the same in all rows"
    if kinds > MOST_CATEGORIES or (kinds > 10 and kinds > len(filled) / 2 and not forced):
        row, cell = wrong
        return (
            None,
            f"text with {kinds} different values, e.g. {as_text(cell)[:30]!r} in row {row}",
        )
    return np.array(texts, dtype=object), ""


def read_commas(cells: list[Any], delimiter: str) -> list[Any] | None:
    """Write decimal commas as points where a table has them; None if the cells have none."""
    from appellate.datasets.textfiles import decimal_points

    if delimiter == "," or not all(isinstance(cell, str) for cell in cells):
        return None
    return decimal_points(["" if is_empty(cell) else cell for cell in cells], delimiter)


def _is_vector(cell: Any) -> bool:
    return isinstance(cell, (list, tuple)) and any(isinstance(c, (int, float)) for c in cell)


def as_numbers(cells: list[Any]) -> tuple[NDArray[Any] | None, tuple[int, Any]]:
    """Return numbers with NaN for empty cells, or None and the first cell that is no number."""
    import numpy as np

    try:
        numbers = np.array(cells, dtype=float)
    except (ValueError, TypeError):
        numbers = np.empty((0, 0))
    if numbers.ndim == 1:  # a column of lists of one length makes a matrix
        return numbers, (0, None)
    out = np.empty(len(cells))
    for i, cell in enumerate(cells):
        try:
            out[i] = np.nan if is_empty(cell) else float(cell)
        except (ValueError, TypeError):
            return None, (i, cell)
    return out, (0, None)
