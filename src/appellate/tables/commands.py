"""How to say in a terminal, or in Python, what the columns of a table are."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from appellate.tables.probabilities import pattern_of

if TYPE_CHECKING:
    from appellate.tables.reading import Table
    from appellate.tables.roles import Roles


#: Why a column has its role if the user named it.
SPECIFIED = "specified"


def options_of(table: Table, roles: Roles) -> dict[str, Any]:
    """Return what to tell `rectify` so that it reads the table in this way.

    One label per row leaves nothing to decide among candidates. It is one answer, which
    `rectify` compares with the features.
    """
    given = [name for name, why in roles.reasons.items() if why == SPECIFIED]
    layout = "annotators" if roles.one_label else roles.layout
    found: dict[str, Any] = {layout: roles.labels}
    if layout == "candidates" and len(roles.labels) == 1 and roles.separator not in (None, "|"):
        found["separator"] = roles.separator
    for role in ("id", "truth", "image", "text", "missing"):
        found[role] = getattr(roles, role)
    options: dict[str, Any] = dict(table.options)
    for role, value in found.items():
        values = [value] if isinstance(value, str) else list(value or ())
        if values:
            options[role] = values[0] if len(values) == 1 else values
    if layout in ("annotators", "counts"):  # a pattern, if it stands for just these
        stem = re.split(r"[\d*?\[\],]", roles.labels[0], maxsplit=1)[0]
        stem = stem if len(stem) < len(roles.labels[0]) else _start(roles.labels)
        alike = stem and len(roles.labels) > 3 and {*table.find([f"{stem}*"])} == {*roles.labels}
        options[layout] = f"{stem}*" if alike else list(roles.labels)
    if roles.model_probabilities:
        options["model_probabilities"] = pattern_of(roles.model_probabilities)
    for role, columns in (("features", roles.features), ("ignore", roles.ignore)):
        chosen = [name for name in columns if name in given]
        if chosen:
            options[role] = chosen
    return options


def _start(names: tuple[str, ...]) -> str:
    """Return what all names begin with, up to the last mark between words."""
    first, last = min(names), max(names)
    same = next((i for i, letter in enumerate(first) if last[i : i + 1] != letter), len(first))
    return re.sub(r"[^\W_]*$", "", first[:same])


def in_python(options: Mapping[str, Any]) -> str:
    """Write options as keyword arguments.

    Examples
    --------
    >>> print(in_python({"annotators": ["a", "b"], "truth": "gold"}))
    annotators=['a', 'b'], truth='gold'
    """
    return ", ".join(f"{name}={value!r}" for name, value in options.items())


def in_terminal(options: Mapping[str, Any]) -> list[str]:
    """Write options as the words of a command.

    Examples
    --------
    >>> in_terminal({"annotators": ["a", "b"], "long": ["item", "label"], "missing": "-1"})
    ['--annotators', 'a', '--annotators', 'b', '--long', 'item,label', '--missing=-1']
    """
    words = []
    for name, value in options.items():
        several = list(map(str, value)) if isinstance(value, (list, tuple)) else [str(value)]
        if name == "long" and not any("," in each for each in several):
            several = [",".join(several)]
        option = f"--{name.replace('_', '-')}"
        for each in several:
            each = "\\t" if each == "\t" else each
            words += [f"{option}={each}"] if each.startswith("-") else [option, each]
    return words


def command(path: str, options: Mapping[str, Any]) -> str:
    """Return the command that reads a file in this way, and writes to a folder that is free."""
    words = ["appellate", "rectify", f"./{path}" if re.match("-.", path) else path]
    stem = re.sub(r"[*?\[\]\s]+", "", Path(path).stem).strip("-.") or "rectified"
    names = (stem, *(f"{stem}-{i}" for i in range(2, 10_000)))
    free = next(name for name in names if not Path(name).exists())  # where the user stands
    return shlex.join([*words, *in_terminal(options), "--out", free])
