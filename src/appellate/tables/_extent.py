"""Measure a sheet in a process of its own: ``python -P _extent.py PATHS SHEET MANY < workbook``.

The reader of spreadsheets allocates memory for every cell between those that are filled, and ends
its process if there is not enough. This script ends instead. It imports nothing of Appellate, so
that it starts fast.
"""

from __future__ import annotations

import json
import sys
from io import BytesIO
from typing import Any

MEMORY = 8 << 30  # bytes of address space
SECONDS = 600  # of the processor


def _measure(content: bytes, sheet: str | int, many: int) -> dict[str, Any]:
    """Return the extent of a sheet; of many cells, how many are filled, and the outermost."""
    import python_calamine

    try:
        book = python_calamine.CalamineWorkbook.from_filelike(BytesIO(content))
        name = sheet if isinstance(sheet, str) else book.sheet_names[sheet]
        page = book.get_sheet_by_name(name)
    except (python_calamine.CalamineError, IndexError, OSError, ValueError):
        return {}  # whoever reads the file says what is wrong with it
    (top, left), (bottom, right) = page.start or (0, 0), page.end or (0, 0)
    found: dict[str, Any] = {"name": name, "rows": bottom - top + 1, "columns": right - left + 1}
    if found["rows"] * found["columns"] < many:
        return found
    last = widest = (0, 0)
    cells = 0
    for i, row in enumerate(page.iter_rows(), top):
        filled = [j for j, cell in enumerate(row, left) if cell != ""]
        cells += len(filled)
        if filled:
            last = i, filled[-1]
            widest = max(widest, (filled[-1], i))
    return found | {"cells": cells, "bottom": last, "right": widest[::-1]}


def _main() -> None:
    """Read the standard input, and write what was found as JSON."""
    sys.path[:] = json.loads(sys.argv[1])
    try:
        import resource

        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
        resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS))
    except (ImportError, ValueError, OSError):  # Windows, or a lower limit of the user
        pass
    sheet, many = map(json.loads, sys.argv[2:])
    sys.stdout.write(json.dumps(_measure(sys.stdin.buffer.read(), sheet, many)))


if __name__ == "__main__":
    _main()
